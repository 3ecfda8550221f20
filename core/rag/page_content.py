"""The content of pages, to be shown: blocks, made once by the worker and cached beside the page pictures.

A page of a PDF is shown as a picture; its blocks say where each printed line is. A slide is shown by its boxes, a sheet
by its rows, a text by its lines. Long pages are stored in parts, of which one or two are shown at a time.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from bisect import bisect_right
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakValueDictionary

from core.errors import BrokenDocumentError, NotFoundError
from core.rag.document import Block, PageShape, block_from, block_values, letters_from
from core.rag.index_file import translated
from core.rag.page_letters import Letters
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import HEAD, PICTURES, parser_for
from core.rag.parsers.process import Limits, stream
from core.rag.places import Places, units_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from core.rag.document import Document, WordRow
    from core.rag.parsers.base import Found

_log = logging.getLogger(__name__)

ContentKind: TypeAlias = Literal["page", "slide", "sheet", "lines", "text"]
_SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_SHEETS = frozenset(
    {
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.oasis.opendocument.spreadsheet",
        "application/vnd.ms-excel",
        "text/csv",
        "text/tab-separated-values",
    }
)
_LINES = frozenset({"text/plain", "text/markdown"})
_PARSERS = {"sheet": "grid", "lines": "lines"}
_KEPT = "content-1.json"
_FOOT = 16  # bytes at the end that say where the table of parts begins
_BLOCKS, _LETTERS = 60, 12_000  # of a text in a part
ROWS = 100  # of a table in a block of a text
# Shares of a quotation: practically all of it, enough to stop searching, more than a repeated heading.
_WHOLE, _SOME, _TRACE = 0.99, 0.3, 0.04
_RECOGNISED = 4  # scanned pages that are recognised again while somebody waits for a page
_CLOSE = 8  # rows from the edge of a part, where the neighbouring part is shown too


def kind_of(media_type: str) -> ContentKind:
    """How a document of this media type is shown."""
    if media_type in PICTURES:
        return "page"
    if media_type == _SLIDES:
        return "slide"
    if media_type in _SHEETS:
        return "sheet"
    return "lines" if media_type in _LINES else "text"


@dataclass(frozen=True, slots=True)
class PageContent:
    """A page, or the parts of it that are shown at once.

    Args:
        kind: How it is shown.
        page: From 1; `None` where the format has no pages.
        parts: How many parts the page, or the document without pages, has.
        part: The first of those shown, from 1.
        last: The last of those shown.
        first: The number of its first block, from 1, counted from the start of the page.
        blocks: In reading order; of a sheet and of lines, the first cell of each row is its number.
        shape: The size of a slide or page, where it is known.
        title: The name of a sheet.
        letters: The letters of a page that is a picture, by which marks on it are proved; `None` where an earlier
            program read it.
    """

    kind: ContentKind
    page: int | None
    parts: int
    part: int
    last: int
    first: int
    blocks: tuple[Block, ...]
    shape: PageShape | None = None
    title: str = ""
    letters: Letters | None = None

    @property
    def is_numbered(self) -> bool:
        """Whether the first cell of each row is its number."""
        return self.kind in {"sheet", "lines"}

    @property
    def is_undrawn(self) -> bool:
        """Whether what it says stands nowhere in the picture of the page: the fields of a form that is XML alone."""
        return self.kind == "page" and bool(self.blocks) and not any(block.lines for block in self.blocks)


def content_among(found: Iterable[Found], page: int) -> PageContent | None:
    """A page among what a parser found, as `Contents.get` tells it; `None` where it is not there."""
    shape, blocks = None, list[Block]()
    for one in found:
        if isinstance(one, PageShape) and one.page == page:
            shape = one
        elif isinstance(one, Block) and one.page == page:
            blocks.append(one)
    if shape is None:
        return None
    letters = None if shape.letters is None else Letters(shape.letters)
    return PageContent("page", page, 1, 1, 1, 1, tuple(blocks), shape, letters=letters)


@dataclass(slots=True)
class _Index:
    """The parts in the file: page, number of the first block, offset, length in bytes."""

    parts: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])
    shapes: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    titles: dict[str, str] = field(default_factory=dict[str, str])
    letters: dict[str, list[int]] = field(default_factory=dict[str, list[int]])  # of each page: offset, length in bytes

    def of(self, page: int | None) -> list[tuple[int, int, int, int]]:
        return [one for one in self.parts if one[0] == (page or 0)]


class ContentWriter:
    """Writes what a parser gives to a file, page by page.

    Args:
        folder: The document's own; made if it is missing.
        kind: How it will be shown.
    """

    def __init__(self, folder: Path, kind: ContentKind) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._kind: ContentKind = kind
        self._kept = folder / _KEPT
        self._waiting = folder / f".{secrets.token_hex(8)}"
        self._out: BinaryIO = self._waiting.open("xb")
        self._index = _Index()
        self._held: list[Block] = []
        self._letters = 0
        self._counted: dict[int, int] = {}

    def take(self, found: Found) -> None:
        """Write a page's shape or a block; anything else is ignored."""
        match found:
            case PageShape():
                self._index.shapes[str(found.page)] = [found.width, found.height, found.text_box]
                if found.letters is not None:
                    self._index.letters[str(found.page)] = self._written(found.letters)
            case Block():
                if self._kind == "sheet" and not found.cells:
                    self._index.titles[str(found.page or 0)] = found.text
                    return
                for block in self._cut(found):
                    self._add(block)
            case _:
                pass

    def finish(self, *, unseen: bool = False) -> None:
        """Put the file in its place.

        Args:
            unseen: Whether there are scanned pages whose words were not recognised.
        """
        self._part()
        at = self._out.tell()
        index: dict[str, Any] = {"parts": self._index.parts, "shapes": self._index.shapes, "titles": self._index.titles}
        if self._index.letters:
            index["letters"] = self._index.letters
        if unseen:
            index["unseen"] = True
        self._out.write(json.dumps(index, separators=(",", ":")).encode())
        self._out.write(f"{at:{_FOOT}d}".encode())
        self._out.close()
        self._waiting.replace(self._kept)

    def close(self) -> None:
        """Close and delete an unfinished file."""
        with suppress(OSError):  # what is left in memory has no room
            self._out.close()
        with suppress(OSError):
            self._waiting.unlink(missing_ok=True)

    def _add(self, block: Block) -> None:
        if self._held and self._is_full(block):
            self._part()
        self._held.append(block)
        self._letters += len(block.text)

    def _is_full(self, block: Block) -> bool:
        """Whether a part ends before this block, preferably before a heading."""
        if block.page != self._held[-1].page or self._kind in {"sheet", "lines"}:
            return True
        if self._kind != "text":
            return False
        share = max(len(self._held) / _BLOCKS, (self._letters + len(block.text)) / _LETTERS)
        return share > (0.5 if block.kind == "heading" else 1.0)

    def _cut(self, block: Block) -> Iterator[Block]:
        """A block, a long table in several; the text of a table is not written beside its cells."""
        if self._kind == "page" or not block.cells:
            yield block
            return
        step = ROWS if self._kind == "text" else len(block.cells)
        for at in range(0, len(block.cells), step):
            yield Block(block.kind, "", block.page, block.lines, block.level, block.cells[at : at + step])

    def _part(self) -> None:
        if not self._held:
            return
        page = self._held[0].page or 0
        first = self._counted.get(page, 0)
        self._counted[page] = first + len(self._held)
        at, length = self._written([block_values(one) for one in self._held])
        self._index.parts.append((page, first + 1, at, length))
        self._held, self._letters = [], 0

    def _written(self, values: Sequence[Any]) -> list[int]:
        """Write values as a line; where it begins, and its length in bytes."""
        line = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"
        at = self._out.tell()
        self._out.write(line)
        return [at, len(line)]


class Contents:
    """The content of documents' pages, cached in the folder of their pictures; the folder may be deleted at any time.

    Args:
        pdf_reader: As in `RAGConfig`.
        limits: What reading one file again may cost.
    """

    def __init__(self, folder: Path, pdf_reader: str = "pymupdf", limits: Limits | None = None) -> None:
        self._folder, self._pdf_reader, self._limits = folder, pdf_reader, limits or Limits()
        self._guard = threading.Lock()
        self._making: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()

    def writer(self, document_id: str, media_type: str) -> ContentWriter:
        """A writer for the content of a document that is being read; raises OSError if it cannot write."""
        return ContentWriter(self._folder / document_id, kind_of(media_type))

    def before(self, document_id: str, page: int) -> list[Found]:
        """The cached content of all pages before this one; empty if any is missing."""
        try:
            with (self._folder / document_id / _KEPT).open("rb") as file:
                return _Reader(file, "page", None).before(page)
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return []

    def get(  # noqa: PLR0913 - what is known of the place
        self,
        document: Document,
        original: Path,
        page: int | None = None,
        part: int | None = None,
        *,
        quote: str = "",
        near: float = 0.0,
        row: int | None = None,
    ) -> PageContent:
        """What is shown of a page.

        Args:
            page: From 1; `None` where it has none.
            part: Which part; by default the one with the quotation, else the first.
            quote: A passage of the page.
            near: Where it is on the page, roughly, from 0 to 1; saves searching all of a long page.
            row: Of a sheet: the number of the row that is looked for instead.

        Raises:
            DocumentError: It cannot be read.
            NotFoundError: There is no such page.
            NoSpaceError, StorageError: It cannot be kept.
        """
        kind = kind_of(document.media_type)
        page = None if document.pages is None and kind in {"lines", "sheet", "text"} else page
        for _ in range(2):
            path = self._made(document, original)
            try:
                with path.open("rb") as file:
                    reader = _Reader(file, kind, page)
                    return reader.get(reader.part_with(row) if part is None and row else part, quote, near)
            except (OSError, ValueError, KeyError, TypeError, IndexError):
                _log.warning("What was kept of a page is damaged and is made again.")
                path.unlink(missing_ok=True)
        raise NotFoundError(f"Page {page} cannot be shown.")

    def blocks(self, document: Document, original: Path) -> Generator[Block]:
        """All blocks of a document, in its own order; a long table comes in several of up to 100 rows.

        Where what was kept of a scan is lost, its words are recognised again, which takes a while.

        Raises:
            DocumentError: It cannot be read, or what was kept of it is damaged.
            NotFoundError: It is still being read.
            NoSpaceError, StorageError: It cannot be kept.
        """
        try:
            with self._made(document, original, whole=True).open("rb") as file:
                yield from _Reader(file, kind_of(document.media_type), None).every()
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise BrokenDocumentError("What was kept of the document is damaged.") from error

    def _made(self, document: Document, original: Path, *, whole: bool = False) -> Path:
        """The file with the content of a document, made where there is none.

        Args:
            whole: With the words of its scanned pages, however many these are.
        """
        path, kind = self._folder / document.id / _KEPT, kind_of(document.media_type)
        if not _is_kept(path, whole=whole and document.scanned > 0):
            if kind == "page" and document.status == "reading":  # it is on its way; twice at once helps nobody
                raise NotFoundError(f"{document.name} is being read.")
            with self._alone(document.id):
                if not _is_kept(path, whole=whole and document.scanned > 0):  # somebody else made it meanwhile
                    self._make(document, original, kind, recognises=whole or document.scanned <= _RECOGNISED)
        return path

    def _alone(self, document_id: str) -> threading.Lock:
        """The lock of whoever reads a document again; others wait for the result."""
        with self._guard:
            return self._making.setdefault(document_id, threading.Lock())

    def _make(self, document: Document, original: Path, kind: ContentKind, *, recognises: bool) -> None:
        """Read the file again; without OCR, which takes long, unless a scan is short or somebody wants all of it."""
        if not original.is_file():
            hint = "Try again; if it stays so, add the file again."
            raise NotFoundError(f"The file of {document.name} is not on this machine.", hint=hint)
        parser = _PARSERS.get(kind, "")
        if not parser:
            with original.open("rb") as file:
                parser, _ = parser_for(document.name, file.read(HEAD), self._pdf_reader)
        try:
            with closing(self.writer(document.id, document.media_type)) as writer:
                pictures = document.scanned > 0 and recognises
                for found in stream(original, document.name, parser, self._limits, ParseOptions(pictures=pictures)):
                    writer.take(found)
                writer.finish(unseen=document.scanned > 0 and not pictures)
        except OSError as error:
            raise translated(error) from error


def _index_of(file: BinaryIO) -> dict[str, Any]:
    """The table of parts at the end of a cached file. Raises OSError, ValueError."""
    file.seek(-_FOOT, 2)
    end = file.tell()
    at = int(file.read(_FOOT))
    file.seek(at)
    index: dict[str, Any] = json.loads(file.read(end - at))
    return index


def _is_kept(path: Path, *, whole: bool) -> bool:
    """Whether there is a cached file; `whole` with the words of scanned pages."""
    if not path.is_file() or not whole:
        return path.is_file()
    try:
        with path.open("rb") as file:
            return not _index_of(file).get("unseen")
    except (OSError, ValueError):
        return False


class _Reader:
    """Reads parts of one page from a cached file."""

    def __init__(self, file: BinaryIO, kind: ContentKind, page: int | None) -> None:
        self._file, self._page = file, page
        self._kind: ContentKind = kind
        index = _index_of(file)
        parts, letters = [tuple(one) for one in index["parts"]], index.get("letters", {})
        self._index = _Index(parts, index["shapes"], index["titles"], letters)
        self._parts = self._index.of(page)

    def get(self, part: int | None, quote: str, near: float) -> PageContent:
        shape = self._index.shapes.get(str(self._page))
        if not self._parts and not shape and str(self._page or 0) not in self._index.titles:
            raise NotFoundError(f"There is no page {self._page}.")
        if part is not None:
            at = min(max(part, 1), max(1, len(self._parts))) - 1
            shown = range(at, at + 1)
        else:
            shown = self._around(quote, near) if quote and len(self._parts) > 1 else range(1)
        blocks = [block for one in shown for block in self._blocks(one)]
        return PageContent(
            self._kind,
            self._page,
            max(1, len(self._parts)),
            shown.start + 1,
            shown.stop,
            self._parts[shown.start][1] if self._parts else 1,
            tuple(blocks),
            self._shape_of(shape, self._page or 1) if shape else None,
            self._index.titles.get(str(self._page or 0), ""),
            None if (rows := self._rows_of(self._page)) is None else Letters(rows),
        )

    def _rows_of(self, page: int | None) -> tuple[WordRow, ...] | None:
        """The letters of a page as they were packed; `None` where they were not kept."""
        place = self._index.letters.get(str(page))
        return None if place is None else letters_from(self._values(*place))

    def part_with(self, row: int) -> int | None:
        """The part of a sheet that holds a row, from 1; `None` where rows have no numbers. Reads few of the parts."""
        if self._kind != "sheet" or not self._parts:
            return None
        return max(1, bisect_right(range(len(self._parts)), row, key=self._first_row))

    def _first_row(self, part: int) -> int:
        """The number of the first row of a part of a sheet."""
        cells = self._blocks(part)[0].cells
        return int(cells[1][0]) if len(cells) > 1 else 0

    def every(self) -> Iterator[Block]:
        """All blocks of all pages."""
        for _, _, at, length in self._index.parts:
            yield from self._read(at, length)

    def before(self, page: int) -> list[Found]:
        """Each page's shape, then its blocks. Raises KeyError for a page that is not here."""
        blocks: dict[int, list[Block]] = {number: [] for number in range(1, page)}
        for number, _, at, length in self._index.parts:
            if number in blocks:
                blocks[number].extend(self._read(at, length))
        found: list[Found] = []
        for number, there in blocks.items():
            found.append(
                replace(self._shape_of(self._index.shapes[str(number)], number), letters=self._rows_of(number))
            )
            found.extend(there)
        return found

    @staticmethod
    def _shape_of(values: Sequence[Any], page: int) -> PageShape:
        width, height, box = values
        return PageShape(page, width, height, tuple(box) if box else None)

    def _blocks(self, part: int) -> list[Block]:
        if part >= len(self._parts):
            return []
        _, _, at, length = self._parts[part]
        return self._read(at, length)

    def _read(self, at: int, length: int) -> list[Block]:
        return [block_from(values) for values in self._values(at, length)]

    def _values(self, at: int, length: int) -> list[Any]:
        self._file.seek(at)
        values: list[Any] = json.loads(self._file.read(length))
        return values

    def _around(self, quote: str, near: float) -> range:
        """The parts with a quotation, at most three; the neighbouring part too if it is at an edge."""
        guess = min(int(near * len(self._parts)), len(self._parts) - 1)
        best, at, edges = 0.0, guess, (False, False)
        for part in sorted(range(len(self._parts)), key=lambda one: abs(one - guess)):
            share, there = self._share(part, quote)
            if share > best:
                best, at, edges = share, part, there
            if best >= _WHOLE or (best > _SOME and abs(part - at) > 2):
                break
        if best >= _WHOLE:
            # At both edges it fills the part, and what follows matters more than what came before.
            after = edges[1] and at + 1 < len(self._parts)
            return range(at - (edges[0] and at > 0 and not after), at + 1 + after)
        first = at - (at > 0 and self._share(at - 1, quote)[0] > _TRACE)
        return range(first, at + 1 + (at + 1 < len(self._parts) and self._share(at + 1, quote)[0] > _TRACE))

    def _share(self, part: int, quote: str) -> tuple[float, tuple[bool, bool]]:
        """How much of a quotation is in a part, and whether it is close to the part's edges."""
        units = units_of(self._blocks(part), numbered=self._kind in {"sheet", "lines"})
        places = Places(units)
        spans = places.find(quote)
        rows = [one.unit for one in spans] or [_CLOSE]
        return places.share(quote, spans), (min(rows) < _CLOSE, max(rows) >= len(units) - _CLOSE)
