"""The embedding models of this machine, for programs. What they are made of is imported when it is asked for."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, cast

from core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.embedding.packaged import LocalName


def embedding_models() -> list[str]:
    """Their names, the best first; none where the documents' packages are not installed."""
    try:
        from core.rag.embedding.catalog import embedder_names
    except ModuleNotFoundError:
        return []
    return embedder_names()


def vector_length(model: str) -> int:
    """How many numbers the vectors of a model have. Raises SettingsError where there is none of that name."""
    from core.rag.embedding.local import DIMENSIONS

    length = DIMENSIONS.get(cast("LocalName", model))
    if length is None:
        raise SettingsError(f"There is no embedding model {model!r} here.")
    return length


def vectors(model: str, texts: Sequence[str], *, as_text: bool) -> list[Any]:
    """A vector for each text; it takes a while.

    Args:
        as_text: As base64 of 32-bit floats, which is what OpenAI's package asks for; else as numbers.

    Raises:
        ParlourError: The model does not run here.
    """
    from core.rag.embedding.catalog import embedder_named

    rows = embedder_named(model).passages(texts)
    if as_text:
        return [base64.b64encode(row.astype("<f4").tobytes()).decode("ascii") for row in rows]
    return [row.tolist() for row in rows]
