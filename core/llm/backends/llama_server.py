"""llama.cpp in this process: a loaded model, threads that ask it, and answers that can be stopped at any token."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, TypeAlias

from core.llm.backends.questions import Question, Waiting

if TYPE_CHECKING:
    from pathlib import Path

Chunk: TypeAlias = Mapping[str, Any]
LlamaQuestion: TypeAlias = Question[dict[str, Any], Chunk]
"""The body is a request in the OpenAI protocol, each piece of the answer one of its chunks."""

_PROMPT_BATCH = 64  # tokens read between two chances to stop
_PROMPT_CACHE_MB = 256


@dataclass(frozen=True, slots=True)
class Shape:
    """How the model runs.

    Args:
        context: Tokens of all answers at once, prompts included.
        threads: Of the processor.
        parallel: Answers at once; further ones wait their turn.
    """

    context: int
    threads: int
    parallel: int


class LlamaServer:
    """A model in memory. Loading blocks; answers arrive from threads of its own, first come, first served.

    Args:
        path: The GGUF file.
        shape: How it runs.

    Raises:
        RuntimeError: The file is no model, or memory is not enough.
    """

    def __init__(self, path: Path, shape: Shape) -> None:
        self._server: Any = _load(path, shape)
        self._waiting: Waiting[dict[str, Any], Chunk] = Waiting(shape.parallel)
        self._threads = [
            threading.Thread(target=self._work, name=f"parlour-llama-{n}", daemon=True) for n in range(shape.parallel)
        ]
        for thread in self._threads:
            thread.start()
        # llama.cpp ends the process where the interpreter goes away under a callback, so answers are stopped before.
        atexit.register(self.close)

    def ask(self, question: LlamaQuestion) -> None:
        """Answer it when its turn comes. Set `question.unwanted` to stop within a token."""
        self._waiting.put(question)

    def close(self) -> None:
        """Stop all answers and free the memory. Blocks for a token at most; calling it again does nothing."""
        if not self._waiting.close():
            return
        atexit.unregister(self.close)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._server = None

    def _work(self) -> None:
        for question in self._waiting:
            if not self._is_unwanted(question):
                self._answer(question)
            question.heard(None)
            del question  # nothing of it is kept while nobody asks

    def _answer(self, question: LlamaQuestion) -> None:
        def hear(chunk: Chunk) -> bool:
            """Pass a chunk on; `True` ends the answer."""
            if not self._is_unwanted(question):
                question.heard(chunk)
            return self._is_unwanted(question)

        try:
            self._server.handle_chat_completions({**question.body, "stream": True, "return_progress": True}, hear)
        except (RuntimeError, ValueError, TypeError) as error:
            question.heard(error)

    def _is_unwanted(self, question: LlamaQuestion) -> bool:
        return question.unwanted.is_set() or self._waiting.closed


def _load(path: Path, shape: Shape) -> Any:
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
    # Loading holds the interpreter's lock, so the page stands still meanwhile: no trial runs, no reading it all twice.
    params.warmup = params.fit_params = False
    params.verbosity = -1
    # The library opens a port on this machine that we do not use: nobody else may either.
    params.api_keys = [token_urlsafe(32)]
    params.endpoint_slots = params.ui = False
    params.cors_origins = ""
    params.n_threads_http = 1
    return llama.Server(params)
