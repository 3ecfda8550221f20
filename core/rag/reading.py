"""From a file to what is kept of it: a document with its chunks and page shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError
from core.rag.chunking import chunks_of
from core.rag.document import Chunk, Document, PageShape
from core.rag.parsers.base import clean, ending
from core.rag.parsers.catalog import parser_for
from core.rag.parsers.plain import MARKDOWN, markdown_blocks, paragraphs
from core.rag.parsers.process import Limits, Parsed, parse

if TYPE_CHECKING:
    from pathlib import Path

    from core.rag.config import RAGConfig

_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Reading:
    """A document that was read, not yet kept."""

    document: Document
    chunks: list[Chunk]
    shapes: list[PageShape]


def read_file(path: Path, head: bytes, document_id: str, name: str, config: RAGConfig, limits: Limits) -> Reading:
    """Read a file in the worker process.

    Raises:
        DocumentError: It cannot be read.
    """
    parser, media_type = parser_for(name, head, config.pdf_reader)
    return _reading(parse(path, name, parser, limits), document_id, name, media_type, path.stat().st_size, config)


def read_text(text: str, page: int | None, document_id: str, name: str, config: RAGConfig) -> Reading:
    """Read a text that is in memory already; there is nothing in it to be afraid of.

    Raises:
        BrokenDocumentError: It is empty.
    """
    text = clean(text)
    is_markdown = ending(name) in MARKDOWN
    blocks = markdown_blocks(text) if is_markdown else paragraphs(text, "paragraph")
    parsed = Parsed(blocks=[replace(block, page=page) for block in blocks])
    media_type = "text/markdown" if is_markdown else "text/plain"
    return _reading(parsed, document_id, name, media_type, len(text.encode()), config)


def _reading(parsed: Parsed, document_id: str, name: str, media_type: str, size: int, config: RAGConfig) -> Reading:
    chunks = [
        chunk for chunk in chunks_of(parsed.blocks, config.chunk_size, config.chunk_overlap) if chunk.text.strip()
    ]
    if not chunks and media_type.startswith("text/"):
        raise BrokenDocumentError("There is no text in the file.", key="document_empty")
    is_unread = media_type == "application/pdf" and not parsed.scanned  # no words, and nobody to recognise them
    told = "document_damaged" if parsed.about.damaged else ""
    note = told if chunks else ("document_scanned" if is_unread else "document_no_text")
    document = Document(
        document_id,
        name,
        media_type,
        parsed.about.pages,
        len(chunks),
        "ready" if chunks else "no_text",
        note,
        parsed.about.title[:_LONGEST_NAME],
        size,
    )
    return Reading(document, chunks, parsed.shapes)


def display_name(name: str) -> str:
    """A name fit to be shown: the last part of a path, one line, nothing that cannot be seen. It is never a path."""
    last = " ".join(clean(name).replace("\\", "/").rstrip("/").rpartition("/")[2].split())
    if len(last) > _LONGEST_NAME:
        kind = ending(last)[:16]
        last = last[: _LONGEST_NAME - len(kind) - 1] + "…" + kind
    return last or "document"
