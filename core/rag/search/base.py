"""What every way of searching promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Sequence

    from core.rag.index_file import IndexFile
    from core.rag.search.word_index import WordIndex
    from core.rag.vectors import Vectors

# Chunk id, and the text under which it is found: title, headings and its own words.
Entry = tuple[int, str]


class Searcher(Protocol):
    """Finds chunks by a question.

    Made with the library's file, where it keeps tables of its own, its vectors, and the quick index of words that a
    large library has.

    `add` and `remove` are called within the transaction that changes the chunks themselves, while others wait for their
    turn to write: what takes time is done before, in `prepare`.
    """

    def __init__(self, file: IndexFile, vectors: Sequence[Vectors] = (), quick: WordIndex | None = None) -> None: ...

    def prepare(self, texts: Sequence[str]) -> list[Any]:
        """What is kept of each text for the search."""
        ...

    def add(self, db: sqlite3.Connection, chunk_ids: Sequence[int], prepared: Sequence[Any]) -> None:
        """Take in chunks with what `prepare` made of them."""
        ...

    def remove(self, db: sqlite3.Connection, chunk_ids: Sequence[int]) -> None:
        """Forget chunks."""
        ...

    def rebuild(self, db: sqlite3.Connection, entries: Sequence[Entry]) -> None:
        """Start anew with these chunks, whatever state the old tables are in."""
        ...

    def find(self, question: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """The ids of the best `k` chunks, the best first, each with its score; higher is better.

        Raises:
            DamagedIndexError: The tables must be built anew.
        """
        ...
