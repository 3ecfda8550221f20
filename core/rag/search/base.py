"""The `Searcher` protocol, and the catalog of the ways of searching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from core.registry import Entry, Registry

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.rag.shelf import Found, Vectors


class Searcher(Protocol):
    """Finds chunks by a question.

    Made with the shelf where they are, and with the vectors of each model, the best first.
    """

    def __init__(self, shelf: Found, vectors: Sequence[Vectors] = ()) -> None: ...

    def find(self, question: str, k: int, documents: Collection[str] | None = None) -> list[tuple[int, float]]:
        """The ids of the best `k` chunks, the best first, each with its score; higher is better.

        Raises:
            DamagedIndexError: The index must be built anew.
        """
        ...


SEARCHERS: Mapping[str, Entry] = {
    "keyword": Entry("core.rag.search.keyword:KeywordSearcher"),
    "vector": Entry("core.rag.search.vector:VectorSearcher"),
    "hybrid": Entry("core.rag.search.vector:HybridSearcher"),
    "front_page": Entry("core.rag.search.keyword:FrontPageSearcher"),
}
SEARCHER_REGISTRY: Registry[type[Searcher]] = Registry("way of searching", SEARCHERS)
