"""`ZeroGpuModel`: a model of the Transformers library that borrows a GPU for each reply, and the threads that wait."""

from __future__ import annotations

import math
import threading
from contextvars import Context
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import Field

from core.llm.backends.local import QuestionQueue
from core.llm.backends.transformers.load import Loaded, Place, load
from core.llm.backends.transformers.model import Engine, TaskQuestion, TransformersConfig, TransformersModel
from core.llm.backends.transformers.writing import StoppedError, Task, Writing
from core.llm.backends.zerogpu.hardware import asking_for, in_emulation, on_gpu, refusal, report_start
from core.llm.validation import read_config
from core.llm.visitors import on_zero_gpu

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from core.llm.backends.zerogpu.hardware import Piece, Writes
    from core.messages.events import Event

_BEGINNING: Final = 5.0  # seconds until the weights are on the GPU
_READ: Final = 2_000  # tokens of a prompt that are read in a second
_BEAT: Final = 0.25  # seconds between signs of life, at which somebody who left is noticed


class ZeroGpuConfig(TransformersConfig):
    """The settings of this back end; unknown ones are ignored."""

    gpu_seconds: int = Field(default=60, ge=10, le=3600)
    tokens_per_second: float = Field(default=30.0, gt=0)
    gpu_size: Literal["large", "xlarge"] | None = None
    at_once: int = Field(default=4, ge=1, le=100)


@dataclass(frozen=True, slots=True)
class Borrowing:
    """For how long a GPU is borrowed.

    Args:
        most: Seconds of one reply.
        tokens_per_second: How many tokens the model writes in a second.
    """

    most: float
    tokens_per_second: float

    def seconds(self, asked: int, longest: int) -> float:
        """Whole seconds for a reply, from the tokens of its prompt and those that it may have.

        A visitor who has less time left gets no GPU at all, so nothing is asked for that is not needed.
        """
        needed = _BEGINNING + asked / _READ + longest / self.tokens_per_second
        return float(min(self.most, math.ceil(needed)))


class ZeroGpuModel(TransformersModel):
    """A model of the Transformers library on a Space with ZeroGPU hardware; elsewhere, as `transformers`.

    Args:
        cfg: As of `TransformersModel`, and `gpu_seconds`: the longest that a GPU is borrowed for one reply, which ends
            there and can be continued; `tokens_per_second`: how fast the model writes, from which the seconds that are
            asked for are estimated; `gpu_size`: `large` or `xlarge`, which takes twice the visitor's time; `at_once`:
            how many replies may be written, or wait for a GPU, at a time.

    Raises:
        MissingExtraError: A package is not installed; the message has the command.
        SettingsError: A value is wrong, or no model is named.
    """

    model_type = "zerogpu"
    _config_class: ClassVar[type[TransformersConfig]] = ZeroGpuConfig

    def _packages(self) -> tuple[str, ...]:
        return ("torch", "transformers", *(("spaces",) if on_zero_gpu() else ()))

    def _open(self, place: Place) -> tuple[Loaded, Engine]:
        if not on_zero_gpu():
            return super()._open(place)
        config = read_config(ZeroGpuConfig, self.cfg)
        # Transformers would bring the weights to the device in threads that know of no emulation.
        loaded: Loaded = in_emulation(partial(load, replace(place, moves=True)))
        writing = Writing(loaded, place)
        hold = Hold(writing)
        borrowing = Borrowing(config.gpu_seconds, config.tokens_per_second)
        write = on_gpu(hold.write, config.gpu_size)
        in_emulation(report_start)
        return loaded, ZeroGpuEngine(hold, write, borrowing, at_once=config.at_once)


class Hold:
    """A loaded model, as long as it is wanted: the package keeps the function that is handed to it for good."""

    def __init__(self, writing: Writing) -> None:
        self.writing: Writing | None = writing

    @property
    def write(self) -> Callable[[Task, float], Generator[Piece]]:
        """Writes a reply within so many seconds; in the process that has the GPU."""

        def write(task: Task, seconds: float) -> Generator[Piece]:
            yield None  # the GPU is there: who has left meanwhile is noticed before anything is read
            if self.writing is not None:
                yield from pieces(self.writing, task, max(1.0, seconds - _BEGINNING))

        return write


def pieces(writing: Writing, task: Task, seconds: float) -> Generator[Piece]:
    """A reply as it is written by a thread, its error as the last, and `None` as often as nothing came for a moment.

    Closing it stops the thread within a layer of the model.
    """
    heard: SimpleQueue[Piece | Literal["over"]] = SimpleQueue()
    unwanted = threading.Event()

    def work() -> None:
        try:
            heard.put(writing.write(task, heard.put, unwanted.is_set, seconds))
        except StoppedError:
            pass
        except Exception as error:  # noqa: BLE001 - handed on as a named error
            heard.put(_alone(writing.failure(error)))
        heard.put("over")

    thread = threading.Thread(target=work, name="parlour-zerogpu-write", daemon=True)
    thread.start()
    try:
        while True:
            try:
                piece = heard.get(timeout=_BEAT)
            except Empty:
                piece = None
            if piece == "over":
                return
            yield piece
    finally:
        unwanted.set()
        thread.join()


def _alone(error: Any) -> Any:
    """The error without the one underneath, which may not be fit to go to another process."""
    error.exception = error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class ZeroGpuEngine:
    """Answers by borrowing a GPU for each question.

    Args:
        hold: Has the loaded model; counts tokens here, and writes elsewhere.
        write: Writes a reply in a process that has a GPU.
        borrowing: For how long.
        at_once: How many questions may wait for a GPU or be answered at a time; further ones wait for these.
    """

    def __init__(self, hold: Hold, write: Writes, borrowing: Borrowing, *, at_once: int) -> None:
        self._hold = hold
        self._write = write
        self._borrowing = borrowing
        self._queue: QuestionQueue[Task, Event] = QuestionQueue(at_once)
        self._threads = [
            threading.Thread(target=self._work, name=f"parlour-zerogpu-{number}", daemon=True)
            for number in range(at_once)
        ]
        for thread in self._threads:
            thread.start()

    def ask(self, question: TaskQuestion) -> None:
        """Queue the question. Set `question.unwanted` to stop it, also while it waits for a GPU."""
        self._queue.put(question)

    def count_tokens(self, text: str) -> int:
        """How many tokens the text takes."""
        writing = self._hold.writing
        return writing.count_tokens(text) if writing is not None else len(text)

    def close(self) -> None:
        """Stop all answers. Blocks until the GPUs are given back; idempotent."""
        if not self._queue.close():
            return
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._hold.writing = None

    def _work(self) -> None:
        for question in self._queue:
            # In a context of its own: what the package reads there is this question's.
            Context().run(self._answer, question)
            question.emit(None)
            del question  # nothing of it is kept while the queue is empty

    def _answer(self, question: TaskQuestion) -> None:
        def is_unwanted() -> bool:
            return self._queue.closed or question.unwanted.is_set()

        writing, task = self._hold.writing, question.body
        if writing is None or is_unwanted():
            return
        try:  # before a GPU is asked for, which takes the visitor's time
            asked = writing.count_tokens(writing.prompt(task))
            seconds = self._borrowing.seconds(asked, writing.longest(asked, task.sampling.max_tokens))
        except Exception as error:  # noqa: BLE001 - handed to the caller as a named error
            question.emit(writing.failure(error))
            return
        token, alone = task.token, replace(task, token="")
        try:
            with asking_for(token, is_unwanted):
                self._follow(question, self._write(alone, seconds), is_unwanted)
        except Exception as error:  # noqa: BLE001 - likewise
            if not is_unwanted():
                question.emit(refusal(error, seconds, known=bool(token)))

    def _follow(self, question: TaskQuestion, stream: Any, is_unwanted: Callable[[], bool]) -> None:
        try:
            for piece in stream:
                if is_unwanted():
                    return
                if piece is not None:
                    question.emit(piece)
        finally:
            stream.close()  # waits until the process is done and the GPU is given back
