"""A document that is read in one place and taken into a library in another: on another machine, say."""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from core.errors import DocumentError, ModelServiceError
from core.rag.draft import Draft, Piece, display_name
from core.rag.embedding.catalog import AUTO, embedders
from core.rag.originals import too_large
from core.rag.parsers import process
from core.rag.parsers.catalog import HEAD, parser_for
from core.rag.records import searched_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

    from core.rag.config import RAGConfig
    from core.rag.embedding.base import Embedder
    from core.rag.parsers.process import Limits
    from core.rag.shelf import Shelf, Vectors

    Halves = NDArray[np.float16]

_BY_MEANING = frozenset({"vector", "hybrid"})


@dataclass(frozen=True, slots=True)
class Prepared:
    """What there is of a document before a library has it.

    Args:
        piece: All of it; its document's id is the hash of its bytes.
        vectors: A row for each chunk, by the model that made them.
    """

    piece: Piece
    vectors: Mapping[str, Halves] = field(default_factory=dict[str, "Halves"])


def bulk_embedders(chosen: str | Mapping[str, Any]) -> list[Embedder]:
    """The models whose vectors a library of any size has: of the two of this machine, the quick one. Raises as there.

    Args:
        chosen: As of `embedders`.
    """
    models = embedders(chosen)
    return models[1:] if chosen == AUTO and len(models) > 1 else models


def prepared(path: Path, name: str, config: RAGConfig, limits: Limits, models: list[Embedder]) -> Prepared:
    """Read a file to its end, as a library with this config would, without one.

    Args:
        name: What it is called.
        models: Make its vectors; where one cannot now, the library makes them later.

    Raises:
        DocumentError: It cannot be read, or there is no text in it.
        OSError: The file cannot be opened.
    """
    shown, size = display_name(name), path.stat().st_size
    if size > limits.file_bytes:
        raise too_large(size, limits.file_bytes)
    with path.open("rb") as stream:
        head = stream.read(HEAD)
        parser, media_type = parser_for(shown, head, config.pdf_reader)
        stream.seek(0)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    draft = Draft(digest, shown, media_type, size, config)
    with closing(process.stream(path, shown, parser, limits)) as found:
        for _ in draft.steps(found):
            pass
    piece = draft.last()
    if piece.document.status == "no_text":
        raise DocumentError(f"{shown} has no text.", key=piece.document.note or "document_no_text")
    wanted = models if config.retrieval_type in _BY_MEANING else []
    return Prepared(piece, _vectors(piece, wanted))


def _vectors(piece: Piece, models: list[Embedder]) -> dict[str, Halves]:
    title = piece.document.title or piece.document.name
    texts = [searched_text(title, one.heading, one.text) for one in piece.chunks]
    made: dict[str, Halves] = {}
    for model in models:
        try:
            if model.ready():
                step = model.at_once
                rows = [model.passages(texts[at : at + step]) for at in range(0, len(texts), step)]
                made[model.model] = np.concatenate(rows).astype(np.float16)
        except ModelServiceError:
            continue
    return made


class PreparedVectors:
    """Keeps vectors that were made elsewhere, in a library that has their chunks.

    Args:
        shelf: The library's.
        chosen: Which models the library uses, as of `embedders`; vectors of others are passed over.
    """

    def __init__(self, shelf: Shelf, chosen: str | Mapping[str, Any]) -> None:
        self._shelf = shelf
        self._models = {one.model: one for one in bulk_embedders(chosen)}
        self._kept: dict[str, Vectors | None] = {}

    def keep(self, document_id: str, made: Mapping[str, Halves]) -> None:
        """Keep the vectors of a document that was just put.

        Raises:
            ModelMisbehavedError: They cannot be compared with those that are there.
            StorageError: They cannot be written.
        """
        for name, rows in made.items():
            vectors = self._of(name)
            ids = self._shelf.first_ids(document_id, len(rows) + 1)
            if vectors is not None and len(ids) == len(rows) > 0:
                vectors.check_size(rows.shape[1])
                vectors.keep(list(zip(ids, rows, strict=True)))

    def _of(self, name: str) -> Vectors | None:
        if name not in self._models:
            return None
        if name not in self._kept:
            model = self._models[name]
            self._kept[name] = self._shelf.vectors(model, most=None, in_parts=False, moved=lambda: None)
        return self._kept[name]

    def close(self) -> None:
        """Let go of the models."""
        for model in self._models.values():
            model.close()
