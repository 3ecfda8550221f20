"""Many vectors in a graph that leads to the nearest ones without comparing all: a thin cover of `usearch`.

The vectors in it are those of the library's file, number for number, so what it finds can be compared exactly.
"""

from __future__ import annotations

import hashlib
import threading
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from core.rag.embedding.base import Floats

    Ids = NDArray[np.int64]
    Halves = NDArray[np.float16]

_LINKS, _LOOKS_ADDING, _LOOKS_SEARCHING = 16, 128, 128
_AT_ONCE = 8  # vectors that are added before a question may have its turn: some ten milliseconds
_BLOCK = 1024 * 1024


class BrokenGraphError(Exception):
    """A file is no graph, or not the one that it should be."""


def is_installed() -> bool:
    """Whether the package is there."""
    return find_spec("usearch") is not None


class NearGraph:
    """Vectors of chunks; many threads may ask while one adds.

    Args:
        size: Numbers in a vector.
    """

    def __init__(self, size: int) -> None:
        index = import_module("usearch.index")
        self._index: Any = index.Index(
            ndim=size,
            metric="ip",  # all vectors have the length 1
            dtype="f16",
            connectivity=_LINKS,
            expansion_add=_LOOKS_ADDING,
            expansion_search=_LOOKS_SEARCHING,
        )
        self._guard = threading.Lock()
        self.size = size
        self.ids: Ids = np.zeros(0, np.int64)
        """The chunks that are in it, by growing numbers."""

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, ids: Ids, rows: Halves) -> None:
        """Take in vectors of chunks that are not in it yet."""
        for at in range(0, len(ids), _AT_ONCE):
            with self._guard:
                self._index.add(ids[at : at + _AT_ONCE], rows[at : at + _AT_ONCE], threads=1)
        self.ids = np.union1d(self.ids, ids)

    def nearest(self, asked: Floats, count: int) -> Ids:
        """The chunks that are nearest to a question, all but surely; `count` at most."""
        with self._guard:
            found: Ids = self._index.search(asked, min(count, len(self.ids)), threads=1).keys
        return found.astype(np.int64)

    def rows(self, ids: Ids) -> Floats:
        """The vectors of chunks that are in it."""
        if not len(ids):
            return np.zeros((0, self.size), np.float32)
        with self._guard:
            found: tuple[Halves, ...] = self._index.get(ids)
        return np.stack(found).astype(np.float32)

    def save(self, path: Path) -> str:
        """Write it to a file; the digest of that.

        Raises:
            OSError: It cannot be written.
        """
        try:
            with self._guard:
                self._index.save(str(path))
        except RuntimeError as error:
            raise OSError(str(error)) from error
        return _digest(path)

    @classmethod
    def load(cls, path: Path, digest: str, size: int) -> NearGraph:
        """Read it from a file.

        Raises:
            BrokenGraphError: It is not the file that was written.
        """
        try:
            if _digest(path) != digest:  # the package may crash on what is damaged
                raise BrokenGraphError(f"{path.name} is damaged.")
            made = cls(size)
            made._index.load(str(path))
        except (OSError, RuntimeError, ValueError) as error:
            raise BrokenGraphError(f"{path.name} cannot be read: {type(error).__name__}.") from error
        if made._index.ndim != size:
            raise BrokenGraphError(f"{path.name} holds other vectors.")
        made.ids = np.sort(made._index.keys[:].astype(np.int64))
        return made


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
