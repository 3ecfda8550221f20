"""Vectors that were made once and are kept in a file, so that a second measurement takes minutes and not an hour.

The file is `parlour-bench-vectors.sqlite` in the folder that `BENCH_CACHE` names, by default that of temporary files.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from core.rag.embedding import catalog
from core.rag.embedding.local import LocalEmbedder, loaded
from core.rag.embedding.packaged import LocalName

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from core.rag.embedding.base import Floats

_NAME = "parlour-bench-vectors.sqlite"


class KeptEmbedder:
    """A model of this machine, asked once for each text.

    Args:
        name: As in `core.rag.embedding.local`.

    Set `remembers_questions` to false to see what a question costs.
    """

    def __init__(self, name: LocalName) -> None:
        self._name = name
        self.model = LocalEmbedder(name).model
        self.at_once = 8
        self.remembers_questions = True
        self._guard = threading.Lock()
        self._encode: Any = None
        folder = Path(os.environ.get("BENCH_CACHE") or tempfile.gettempdir())
        self._db = sqlite3.connect(folder / _NAME, check_same_thread=False, isolation_level=None, timeout=60)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def ready(self) -> bool:
        """It is asked when a text is new."""
        return True

    def questions(self, texts: Sequence[str]) -> Floats:
        """Vectors to search with."""
        return np.stack([self._one(text, is_question=True) for text in texts])

    def passages(self, texts: Sequence[str]) -> Floats:
        """Vectors to be found."""
        return np.stack([self._one(text, is_question=False) for text in texts])

    def close(self) -> None:
        """Others may ask it still."""

    def _one(self, text: str, *, is_question: bool) -> Floats:
        key = hashlib.sha256(f"{self.model}|{is_question}|{text}".encode()).digest()
        with self._guard:
            row = self._db.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
            if row and (self.remembers_questions or not is_question):
                return np.frombuffer(row[0], np.float32)
            self._encode = self._encode or loaded(self._name)
            vector: Floats = self._encode([text[:4_000]], is_question=is_question)[0]
            self._db.execute("INSERT OR IGNORE INTO vectors VALUES (?, ?)", (key, vector.tobytes()))
            return vector


@contextmanager
def kept() -> Generator[dict[str, KeptEmbedder]]:
    """Libraries that are opened meanwhile take their vectors from the file; the models by name."""
    models: dict[str, KeptEmbedder] = {}

    def local(name: LocalName) -> KeptEmbedder:
        return models.setdefault(name, KeptEmbedder(name))

    name = "local_embedder"  # one model for the whole process, on purpose
    before: Any = getattr(catalog, name)
    setattr(catalog, name, local)
    try:
        yield models
    finally:
        setattr(catalog, name, before)
