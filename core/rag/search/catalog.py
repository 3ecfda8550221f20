"""The ways of searching."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.registry import Entry, Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.rag.search.base import Searcher

SEARCHERS: Mapping[str, Entry] = {
    "keyword": Entry("core.rag.search.keyword:KeywordSearcher"),
    "vector": Entry("core.rag.search.vector:VectorSearcher"),
    "hybrid": Entry("core.rag.search.hybrid:HybridSearcher"),
    "front_page": Entry("core.rag.search.front_page:FrontPageSearcher"),
}
SEARCHER_REGISTRY: Registry[type[Searcher]] = Registry("way of searching", SEARCHERS)
