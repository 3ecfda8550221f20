"""What puts the passages that a search found into a better order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Reranker(Protocol):
    """Reads a question together with each passage, which is slow and good: for the best of a search only."""

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the question; higher is better.

        Raises:
            ModelServiceError: It cannot say now.
        """
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


def reranker(chosen: Mapping[str, Any] | None) -> Reranker | None:
    """The one that settings name: a service with `model`, `base_url` and `api_key`.

    Raises:
        SettingsError: A field is missing, unknown or out of range.
    """
    if chosen is None:
        return None
    from core.rag.rerank_service import ServiceReranker

    return ServiceReranker(chosen)
