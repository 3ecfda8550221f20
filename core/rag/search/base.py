"""The `Searcher` protocol, and the catalog of the ways of searching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from core.registry import Entry, Registry

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence

    from core.rag.index_file import IndexFile
    from core.rag.search.stored_vectors import Vectors
    from core.rag.search.word_index import WordIndex

# Chunk id, and the text under which it is found: title, headings and its own words.
IndexEntry = tuple[int, str]


class Searcher(Protocol):
    """Finds chunks by a question.

    Made with the library's index file, where it has its own tables, its vectors, and the quick index of words of a
    large library.

    `add` and `remove` run in the transaction that changes the chunks, while others wait to write; slow work is done
    before, in `prepare`.
    """

    def __init__(self, file: IndexFile, vectors: Sequence[Vectors] = (), quick: WordIndex | None = None) -> None: ...

    def prepare(self, texts: Sequence[str]) -> list[Any]:
        """The indexed form of each text."""
        ...

    def add(self, db: sqlite3.Connection, chunk_ids: Sequence[int], prepared: Sequence[Any]) -> None:
        """Add chunks with the result of `prepare`."""
        ...

    def remove(self, db: sqlite3.Connection, chunk_ids: Sequence[int]) -> None:
        """Remove chunks."""
        ...

    def rebuild(self, db: sqlite3.Connection, entries: Sequence[IndexEntry]) -> None:
        """Rebuild the tables with these chunks, whatever state the old ones are in."""
        ...

    def find(self, question: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """The ids of the best `k` chunks, the best first, each with its score; higher is better.

        Raises:
            DamagedIndexError: The tables must be built anew.
        """
        ...


SEARCHERS: Mapping[str, Entry] = {
    "keyword": Entry("core.rag.search.keyword:KeywordSearcher"),
    "vector": Entry("core.rag.search.vector:VectorSearcher"),
    "hybrid": Entry("core.rag.search.vector:HybridSearcher"),
    "front_page": Entry("core.rag.search.keyword:FrontPageSearcher"),
}
SEARCHER_REGISTRY: Registry[type[Searcher]] = Registry("way of searching", SEARCHERS)
