"""A model in memory once, however many ask it: agents have a model each, and mostly it is the same file."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from core.llm.backends.llama_server import Chunk, LlamaQuestion, LlamaServer, Shape

_Key: TypeAlias = "tuple[Path, tuple[int, int], Shape]"


class _Loaded:
    def __init__(self, server: LlamaServer) -> None:
        self.server = server
        self.parts = 0


_GUARD = threading.RLock()  # the collector may let a part go while its own thread takes one
_LOADED: dict[_Key, _Loaded] = {}


class SharedLlama:
    """One asker's part in a model in memory. The same file in the same shape is loaded once.

    A part that is forgotten leaves the model for the next one; closing the last part frees the memory.

    Args:
        path: The GGUF file.
        shape: How it runs.
        load: Loads it, where it is not there yet.

    Raises:
        RuntimeError: The file is no model, or memory is not enough.
    """

    def __init__(self, path: Path, shape: Shape, load: Callable[[Path, Shape], LlamaServer]) -> None:
        key = (path.resolve(), _version(path), shape)
        self._asked: dict[int, LlamaQuestion] = {}
        self._closed = False
        with _GUARD:
            loaded = _LOADED.get(key)
            if loaded is None:
                loaded = _LOADED[key] = _Loaded(load(path, shape))
            loaded.parts += 1
        self._server = loaded.server
        self._leave = weakref.finalize(self, _leave, loaded)
        self._key = key

    def ask(self, question: LlamaQuestion) -> None:
        """Answer it when its turn comes. Set `question.unwanted` to stop within a token."""
        heard, asked = question.heard, self._asked

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
        question.heard = hear
        self._server.ask(question)

    def close(self) -> None:
        """Stop the answers to what was asked here; the last part frees the memory. Calling it again does nothing."""
        with _GUARD:
            if self._closed:
                return
            self._closed = True
            self._leave()
            loaded = _LOADED.get(self._key)
            last = loaded is not None and loaded.server is self._server and not loaded.parts
            if last:
                del _LOADED[self._key]
            asked = list(self._asked.values())
        for question in asked:
            question.unwanted.set()
            question.heard(None)
        if last:
            self._server.close()


def _leave(loaded: _Loaded) -> None:
    with _GUARD:
        loaded.parts -= 1


def _version(path: Path) -> tuple[int, int]:
    """What tells a file from the one that stood there before."""
    try:
        about = path.stat()
    except OSError:
        return 0, 0
    return about.st_size, about.st_mtime_ns
