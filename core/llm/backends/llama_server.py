"""llama.cpp in this process: models loaded once and shared, threads that answer, and replies that can be stopped."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, TypeAlias

from core.errors import extra_for
from core.llm.backends.local import Question, QuestionQueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Chunk: TypeAlias = Mapping[str, Any]
LlamaQuestion: TypeAlias = Question[dict[str, Any], Chunk]
"""The body is a request of the OpenAI protocol, each piece of the answer one of its chunks."""

_PROMPT_BATCH = 64  # tokens read between two checks for a stop
_PROMPT_CACHE_MB = 256


@dataclass(frozen=True, slots=True)
class Shape:
    """How the model runs.

    Args:
        context: Tokens of all concurrent answers, prompts included.
        parallel: Concurrent answers; further ones queue.
    """

    context: int
    threads: int
    parallel: int


class LlamaServer:
    """A model in memory, with threads that answer first come, first served. Loading blocks.

    Args:
        shape: How it runs.

    Raises:
        RuntimeError: The file is not a model, or memory is too small.
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        self._server: Any = _load(path, shape)
        self._queue: QuestionQueue[dict[str, Any], Chunk] = QuestionQueue(shape.parallel)
        self._threads = [
            threading.Thread(target=self._work, name=f"parlour-llama-{n}", daemon=True) for n in range(shape.parallel)
        ]
        for thread in self._threads:
            thread.start()
        # llama.cpp ends the process if the interpreter exits during a callback, so answers are stopped before.
        atexit.register(self.close)

    def ask(self, question: LlamaQuestion) -> None:
        """Queue the question. Set `question.unwanted` to stop within a token."""
        self._queue.put(question)

    def close(self) -> None:
        """Stop all answers and free the memory. Blocks for a token at most; idempotent."""
        if not self._queue.close():
            return
        atexit.unregister(self.close)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._server = None

    def _work(self) -> None:
        for question in self._queue:
            if not self._is_unwanted(question):
                self._answer(question)
            question.emit(None)
            del question  # nothing of it is kept while the queue is empty

    def _answer(self, question: LlamaQuestion) -> None:
        def hear(chunk: Chunk) -> bool:
            """Pass on a chunk; returning true ends the answer."""
            if not self._is_unwanted(question):
                question.emit(chunk)
            return self._is_unwanted(question)

        try:
            self._server.handle_chat_completions({**question.body, "stream": True, "return_progress": True}, hear)
        except (RuntimeError, ValueError, TypeError) as error:
            question.emit(error)

    def _is_unwanted(self, question: LlamaQuestion) -> bool:
        return question.unwanted.is_set() or self._queue.closed


def _load(path: Path, shape: Shape) -> Any:
    with extra_for("A model in this process"):
        llama: Any = import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = str(path)
    params.n_ctx = shape.context
    params.n_parallel = shape.parallel
    params.kv_unified = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = shape.threads
    params.n_batch = params.n_ubatch = _PROMPT_BATCH
    params.n_gpu_layers = 0
    params.cache_ram_mib = _PROMPT_CACHE_MB
    params.cache_idle_slots = False  # what both begin with is known to the next question though it is a small part
    # Loading holds the GIL, which freezes the page: no warm-up, no second read to fit memory.
    params.warmup = params.fit_params = False
    params.verbosity = -1
    # The library opens a local port that we do not use: nobody else may either.
    params.api_keys = [token_urlsafe(32)]
    params.endpoint_slots = params.ui = False
    params.cors_origins = ""
    params.n_threads_http = 1
    return llama.Server(params)


_Key: TypeAlias = "tuple[Path, tuple[int, int], Shape]"


class _Loaded:
    def __init__(self, server: LlamaServer) -> None:
        self.server = server
        self.shares = 0


_GUARD = threading.RLock()  # the garbage collector may finalize a share while its own thread takes one
_LOADED: dict[_Key, _Loaded] = {}


class SharedLlama:
    """A share of a model in memory. The same file in the same shape is loaded once.

    A share that is garbage-collected leaves the model loaded; closing the last share frees the memory.

    Args:
        shape: How it runs.
        load: Loads it if it is not there yet.

    Raises:
        RuntimeError: The file is not a model, or memory is too small.
    """

    def __init__(self, path: Path, shape: Shape, load: Callable[[Path, Shape], LlamaServer]) -> None:
        key = (path.resolve(), _stamp(path), shape)
        self._asked: dict[int, LlamaQuestion] = {}
        self._closed = False
        with _GUARD:
            loaded = _LOADED.get(key)
            if loaded is None:
                loaded = _LOADED[key] = _Loaded(load(path, shape))
            loaded.shares += 1
        self._server = loaded.server
        self._leave = weakref.finalize(self, _leave, loaded)
        self._key = key

    def ask(self, question: LlamaQuestion) -> None:
        """Queue the question. Set `question.unwanted` to stop within a token."""
        heard, asked = question.emit, self._asked

        def hear(piece: Chunk | Exception | None) -> None:
            if piece is None:
                asked.pop(id(question), None)
            heard(piece)

        with _GUARD:
            if not self._closed:
                asked[id(question)] = question
        if id(question) not in asked:
            heard(None)
            return
        question.emit = hear
        self._server.ask(question)

    def close(self) -> None:
        """Stop this share's answers; the last share frees the memory. Idempotent."""
        with _GUARD:
            if self._closed:
                return
            self._closed = True
            self._leave()
            loaded = _LOADED.get(self._key)
            last = loaded is not None and loaded.server is self._server and not loaded.shares
            if last:
                del _LOADED[self._key]
            asked = list(self._asked.values())
        for question in asked:
            question.unwanted.set()
            question.emit(None)
        if last:
            self._server.close()


def is_loaded(path: Path) -> bool:
    """Whether a model of that file is in this process's memory."""
    with _GUARD:
        return any(known == path.resolve() for known, _, _ in _LOADED)


def _leave(loaded: _Loaded) -> None:
    with _GUARD:
        loaded.shares -= 1


def _stamp(path: Path) -> tuple[int, int]:
    """Size and modification time, which tell a replaced file."""
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_size, about.st_mtime_ns
