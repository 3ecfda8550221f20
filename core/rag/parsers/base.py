"""The `Parser` protocol and the values that parsers give, with the text helpers that several share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from core.messages.invisible import without_invisible
from core.rag.document import About, Block, PageShape, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_THREADS: Final = 4
"""Scans that are recognised at once: more need more memory than a reader of documents is allowed."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """OCR of a page or picture is about to begin; it takes seconds.

    Args:
        figure: Whether of a figure alone: its page is not a scanned one.
    """

    page: int
    figure: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A document within the document begins: what it may cost is allowed besides."""

    pages: int


@dataclass(frozen=True, slots=True)
class Invisible:
    """The number of invisible characters removed since the last report."""

    removed: int


@dataclass(frozen=True, slots=True)
class AtRow:
    """How far the reading of a long sheet is; told now and then.

    Args:
        total: Rows of the sheet.
    """

    row: int
    total: int


LONG_SHEET = 10_000
"""Rows from which on it is told how far the reading of a sheet is."""
Found: TypeAlias = About | PageShape | Block | Scanned | Part | Invisible | AtRow

# Control characters except tab and line feed, the soft hyphen, zero-width spaces, marks of writing direction (they can
# make a name or a sentence look like another), and halves of surrogate pairs, which no file can hold.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """How one document is read.

    Args:
        password: Opens it, if it is encrypted.
        pictures: Whether to use OCR, where the extra `ocr` is installed.
        first_page: The page of a PDF or TIFF to start from; those before it were read already.
        depth: In how many other documents it stands.
    """

    password: str = field(default="", repr=False)
    pictures: bool = True
    first_page: int = 1
    depth: int = 0


PLAIN = ParseOptions()


@dataclass(slots=True)
class Tally:
    """Counts the invisible characters removed by this process, which reads one document."""

    removed: int = 0

    def take(self) -> int:
        """The count since the last call."""
        removed, self.removed = self.removed, 0
        return removed


tally = Tally()


class Parser(Protocol):
    """Reads one family of formats. Made without arguments; keeps nothing between documents."""

    def accepts(self, name: str, head: bytes) -> str:
        """The media type if this parser reads such a file, else "". Cheap: imports no document library.

        Args:
            name: The file's name as the user knows it.
            head: The first 64 KB; they count more than the name.
        """
        ...

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:
        """First an `About`, then page shapes and blocks in reading order; a `Scanned` before each OCR.

        Runs in a worker process, so it may crash or hang without harm to others.

        Raises:
            BrokenDocumentError: The bytes are damaged or not what the name says.
            LockedDocumentError: The file is encrypted, and the password does not open it.
        """
        ...


class Rows:
    """Gathers a table where a format has it as text with signs for the ends of cells and rows."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, ...]] = []
        self._row: list[str] = []
        self._cell: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether a row has begun and not ended."""
        return bool(self._row or self._cell)

    def line(self, text: str) -> None:
        """A line of a cell."""
        self._cell.append(text)

    def end_cell(self) -> None:
        """The cell is complete."""
        self._row.append("\n".join(self._cell))
        self._cell = []

    def end_row(self) -> None:
        """The row is complete; an empty one is none."""
        if any(map(str.strip, self._row)):
            self._rows.append(tuple(self._row))
        self._row, self._cell = [], []

    def table(self) -> Iterator[Block]:
        """The table so far, if there is one; the next row begins another. A last row may lack its end."""
        if self._cell:
            self.end_cell()
        self.end_row()
        if self._rows:
            yield table(self._rows)
            self._rows = []


def ending(name: str) -> str:
    """The file ending in lower case with its dot: ".pdf"."""
    return PurePath(name.replace("\\", "/").replace("\x00", "")).suffix.lower()


def clean(text: str) -> str:
    """The text without invisible and invalid characters, with uniform line ends.

    Characters that can hide text, and so are reported, are counted in `tally`.
    """
    if text.isascii() and text.isprintable():  # the usual case
        return text
    text, removed = without_invisible(text)
    tally.removed += removed
    if text.isprintable():
        return text
    return _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0b", "\n").replace("\x0c", "\n"))


def is_ideograph(letter: str) -> bool:
    """Whether the character belongs to Chinese or Japanese writing, which puts no spaces between words."""
    code = ord(letter)
    return (
        0x3000 <= code <= 0x30FF  # punctuation, kana
        or 0x3400 <= code <= 0x9FFF
        or 0xF900 <= code <= 0xFAFF
        or 0xFF00 <= code <= 0xFFEF  # full-width forms
        or 0x20000 <= code <= 0x3FFFF
    )


def is_pdf(head: bytes) -> bool:
    """Whether a file begins as a PDF does; an archive may begin with one that is in it."""
    return b"%PDF-" in head[:1024] and not head.startswith(b"PK\x03\x04")
