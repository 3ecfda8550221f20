"""A document while it is read: counts what its parser finds, and hands out its chunks in pieces."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError
from core.messages.invisible import plain_line, without_invisible
from core.rag.chunking import Cutter
from core.rag.document import About, Block, Chunk, Document, Figure, PageShape, ReadingProgress
from core.rag.figure_labels import caption_in, label_of
from core.rag.parsers.base import AtRow, Found, Invisible, Part, clean, ending
from core.rag.parsers.text import MARKDOWN, markdown_blocks, paragraphs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from core.rag.config import RAGConfig
    from core.rag.half_read import KeptPages

_LONGEST_NAME = 255
_FIRST_PAGES = 8  # that are searchable before the others are read
_LONGEST_WAIT = 1.0  # seconds that what was read waits to be searchable
_MOST_WAITING = 512  # chunks


@dataclass(frozen=True, slots=True)
class Piece:
    """What was read since the last piece, and the document's record including it.

    Args:
        kept: Pages that have become whole with it, for whoever goes on where this reading does not come to its end.
    """

    document: Document
    chunks: list[Chunk]
    shapes: list[PageShape]
    figures: list[Figure] = field(default_factory=list[Figure])
    kept: KeptPages | None = None


class Draft:
    """A document that is being read.

    Args:
        config: How it is chunked.
        before: Its record when reading was stopped, to resume it: those chunks are not handed out again.
    """

    def __init__(
        self,
        document_id: str,
        name: str,
        media_type: str,
        size: int,
        config: RAGConfig,
        *,
        before: Document | None = None,
    ) -> None:
        fresh = Document(document_id, name, media_type, None, 0, "reading", size=size)
        self._document = replace(before, status="reading", tables=0) if before else fresh
        self.document_id = document_id
        self._there, self._earlier = (before.chunks, before.seconds) if before else (0, 0.0)
        self._cutter = Cutter(config.chunk_size, config.chunk_overlap)
        self._chunks: list[Chunk] = []
        self._shapes: list[PageShape] = []
        self._figures: list[Figure] = []
        self._numbered = 0  # figures so far; what was read before counts again, so they keep their numbers
        self._page = 0
        self._scanned: list[int] = []  # the pages where words were recognised since reading began
        self._row = self._rows = 0  # of a long sheet: how far it is, and how many it has
        self._begun = 0  # the page where words are being recognised, or were last
        self._counted_again: list[int] = []
        self._found = 0  # chunks, those that wait among them
        self._header: tuple[str, ...] = ()  # of the table before
        self._is_damaged = False
        self._left_out = 0  # files in it that could not be read
        self._began = self._handed = time.monotonic()
        self.is_begun = before is not None
        """Whether a piece was handed out."""

    def steps(self, found: Iterable[Found]) -> Iterator[None]:
        """Take in what the parser finds; yields after each small step, so that the caller can check progress."""
        for one in found:
            match one:
                case About():
                    self._know(one)
                case PageShape():
                    self._shapes.append(one)
                    self._is_damaged = self._is_damaged or not one.width  # lost, maybe before reading was stopped
                    yield from self._take(self._cutter.turn(one.page))
                    self._page = max(self._page, one.page)
                case Block():
                    if (one.page or 0) > self._page:
                        self._row = self._rows = 0  # another sheet
                    self._page = max(self._page, one.page or 0)
                    self._count(one)
                    yield from self._take(self._cutter.take(one))
                case Part():
                    pass
                case AtRow():
                    self._row, self._rows = one.row, one.total
                case Invisible():
                    self._document = replace(self._document, invisible=self._document.invisible + one.removed)
                case _:  # words are about to be recognised
                    self._begun = one.page
                    if not one.figure and one.page not in self._scanned[-1:]:
                        self._document = replace(self._document, scanned=self._document.scanned + 1)
                        self._scanned.append(one.page)
            yield
        yield from self._take(self._cutter.end())

    def is_due(self) -> bool:
        """Whether a piece should be made searchable now."""
        if not self._chunks and not self._shapes:
            return False
        is_first = not self._document.chunks and self._chunks
        if is_first and self._page > _FIRST_PAGES:  # the present page is not read yet
            return True
        return len(self._chunks) >= _MOST_WAITING or time.monotonic() - self._handed > _LONGEST_WAIT

    def is_searchable(self) -> bool:
        """Whether any chunk was handed out."""
        return self._document.chunks > 0

    def is_worth_keeping(self) -> bool:
        """Whether it has chunks that were not searchable before."""
        return self._found > self._there

    def piece(self) -> Piece:
        """What was read since the last time."""
        chunks, self._chunks = self._chunks, []
        shapes, self._shapes = self._shapes, []
        figures, self._figures = self._figures, []
        self._document = replace(self._document, chunks=max(self._found, self._there), seconds=self._seconds())
        self._handed, self.is_begun = time.monotonic(), True
        return Piece(self._document, chunks, shapes, figures)

    def last(self) -> Piece:
        """The rest, when all is read.

        Raises:
            BrokenDocumentError: It is a text without words.
        """
        media_type, found = self._document.media_type, self._found
        if not found and media_type.startswith("text/"):
            raise BrokenDocumentError("There is no text in the file.", key="document_empty")
        # no words, and nobody to recognise them
        is_unread = media_type == "application/pdf" and not self._document.scanned and not self._begun
        told = "document_damaged" if self._is_damaged else "document_parts_unread" if self._left_out else ""
        note = told if found else ("document_scanned" if is_unread else "document_no_text")
        self._document = replace(self._document, status="ready" if found else "no_text", note=note)
        return self.piece()

    def stopped(self) -> Piece:
        """The last piece of a reading that is stopped."""
        if self._document.pages is not None:
            for _ in self._take(self._cutter.turn(self._whole_pages() + 1)):
                pass
        # The last page is read again with the rest, and counted then.
        self._counted_again = [page for page in self._scanned if page >= self._page]
        scanned = self._document.scanned - len(self._counted_again)
        self._document = replace(self._document, status="stopped", scanned=scanned)
        return self.piece()

    def _whole_pages(self) -> int:
        """How many pages were read completely."""
        return max(0, self._page - 1, self._begun - 1)

    def progress(self) -> ReadingProgress:
        """The progress; chunks count once they were handed out."""
        known = self._document
        is_stopped = known.status not in {"reading", "stopped"}
        pages = 0 if known.pages is None else self._page if is_stopped else self._whole_pages()
        scanned = known.scanned + sum(page <= pages for page in self._counted_again)
        figures = (known.tables, known.chunks, self._seconds())
        rows = (self._row, self._rows) if known.status == "reading" else (0, 0)
        progress = ReadingProgress(known.id, pages, known.pages, scanned, *figures, invisible=known.invisible)
        return replace(progress, row=rows[0], rows=rows[1])

    def _know(self, about: About) -> None:
        self._is_damaged = about.damaged or self._is_damaged
        self._left_out += about.left_out
        self._document = replace(self._document, pages=about.pages)
        if not self.is_begun:  # chunks are found by the title too: later it would count for some only
            self._document = replace(self._document, title=about.title[:_LONGEST_NAME])

    def _count(self, block: Block) -> None:
        """Count figures, and tables; a long table comes in parts that repeat its header."""
        if block.kind == "figure" and block.source:
            self._numbered += 1
            caption, place = caption_in(block.text), block.lines[0][1] if block.lines else None
            known = (block.page, label_of(caption), caption, None if block.source == "page" else place, block.source)
            self._figures.append(Figure(self.document_id, self._document.name, self._numbered, *known))
        header = block.cells[0] if block.kind == "table" and block.cells else ()
        if block.kind == "table" and (not header or header != self._header):
            self._document = replace(self._document, tables=self._document.tables + 1)
        self._header = header

    def _take(self, chunks: Iterable[Chunk]) -> Iterator[None]:
        for chunk in chunks:
            if chunk.text.strip():
                self._found += 1
                if self._found > self._there:
                    self._chunks.append(chunk)
            yield

    def _seconds(self) -> float:
        return round(self._earlier + time.monotonic() - self._began, 3)


def parsed_text(text: str, name: str, page: int | None) -> tuple[str, list[Found]]:
    """The media type of a text in memory, and its blocks; parsed here, as plain text needs no worker process."""
    text, removed = without_invisible(text)
    text = clean(text)
    is_markdown = ending(name) in MARKDOWN
    blocks = markdown_blocks(text) if is_markdown else paragraphs(text, "paragraph")
    found: list[Found] = [replace(block, page=page) for block in blocks]
    if removed:
        found.append(Invisible(removed))
    return ("text/markdown" if is_markdown else "text/plain"), found


def progress_of(document: Document) -> ReadingProgress:
    """The progress of a document that was read."""
    return ReadingProgress(
        document.id,
        document.pages or 0,
        document.pages,
        document.scanned,
        document.tables,
        document.chunks,
        document.seconds,
        invisible=document.invisible,
    )


def display_name(name: str) -> str:
    """A name for display: the last part of a path on one line, without invisible characters. Never used as a path."""
    last = plain_line(clean(name).replace("\\", "/").rstrip("/").rpartition("/")[2])
    if len(last) > _LONGEST_NAME:
        kind = ending(last)[:16]
        last = last[: _LONGEST_NAME - len(kind) - 1] + "…" + kind
    return last or "document"
