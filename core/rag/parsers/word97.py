"""Word documents of Word 97 to 2003 (DOC), by the published description of the format.

No library that is kept and may be used here tells headings and tables; `olefile` opens the container.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError
from core.rag.document import About, Block
from core.rag.parsers.base import PLAIN, Found, ParseOptions, Rows, clean
from core.rag.parsers.compound import compound, compound_kind, locked, stream_of, title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MEDIA_TYPE = "application/msword"
_WORD = 0xA5EC
_OLDEST = 101  # Word 97 is 193, and some programs write 101 to 104 for what is the same
_ENCRYPTED, _SECOND_TABLE = 0x0100, 0x0200
_PART_SIZES = 76  # where the lengths of text, footnotes, headers and so on stand
_PAPX, _CLX = 0x102, 0x1A2
_PAGE = 512
_COMPRESSED = 0x40000000
_HEADINGS = range(1, 10)  # the styles with these numbers are the headings, in every language
_IN_TABLE, _ROW_END, _LEVEL, _LIST = 0x2416, 0x2417, 0x2640, 0x460B
_OPERANDS = (1, 1, 2, 4, 2, 2, 0, 3)  # bytes, by the upper three bits of a property's number; 0: told by its first byte
_LONGEST_HEADING = 300
_END = re.compile("[\r\x07\x0c]")
_SIGNS = str.maketrans(
    {"\x0b": "\n", "\x1e": "-", "\x1f": None, "\x01": None, "\x02": None, "\x05": None, "\x08": None}
)


class Word97Parser:
    """Reads text, headings and tables, then footnotes, endnotes and text boxes."""

    def accepts(self, name: str, head: bytes) -> str:
        """A compound file that says that it is a Word document."""
        return MEDIA_TYPE if compound_kind(name, head) == ".doc" else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Paragraphs in the order of the document; what fields compute, not how; no headers of pages, no comments.

        Raises:
            BrokenDocumentError: It is damaged, another kind of file, or older than Word 97.
            LockedDocumentError: It is encrypted.
        """
        with compound(path, "The Word document") as container:
            main = stream_of(container, "WordDocument")
            mark, version, flags = struct.unpack_from("<HH6xH", main)
            if mark != _WORD or version < _OLDEST:
                raise BrokenDocumentError(
                    "The document is older than Word 97.", hint="Open it in Word and save it as DOCX."
                )
            if flags & _ENCRYPTED:
                raise locked("The document")
            lists = stream_of(container, "1Table" if flags & _SECOND_TABLE else "0Table")
            yield About(title=title_of(container))
            pieces = _pieces(_slice(main, lists, _CLX), len(main))
            properties = _Properties(main, _slice(main, lists, _PAPX))
            text = "".join(piece.text(main) for piece in pieces)
            sizes = struct.unpack_from("<8I", main, _PART_SIZES)
            yield from _blocks(text[: sizes[0]], 0, pieces, properties)
            at = sizes[0]
            for part, size in enumerate(sizes[1:], 1):
                if part in {1, 5, 6}:  # footnotes, endnotes, text boxes
                    yield from _blocks(text[at : at + size], at, pieces, properties)
                at += size


@dataclass(frozen=True, slots=True)
class _Piece:
    """Characters that stand together in the file; the order in the text is not that in the file."""

    first: int
    size: int
    at: int
    width: int

    def text(self, main: bytes) -> str:
        data = main[self.at : self.at + self.size * self.width]
        if self.width == 1:
            return data.decode("cp1252", errors="replace").ljust(self.size)
        # By code units, as positions are counted; halves of surrogate pairs are joined later.
        units = struct.unpack(f"<{len(data) // 2}H", data[: len(data) // 2 * 2])
        return "".join(map(chr, units)).ljust(self.size)


@dataclass(frozen=True, slots=True)
class _Paragraph:
    level: int = 0
    in_table: bool = False
    ends_row: bool = False
    in_list: bool = False


def _slice(main: bytes, lists: bytes, at: int) -> bytes:
    start, size = struct.unpack_from("<II", main, at)
    return lists[start : start + size]


def _pieces(data: bytes, longest: int) -> Sequence[_Piece]:
    """The pieces of the text, in its order; at most so many characters, since each stands in the file."""
    at = 0
    while data[at : at + 1] == b"\x01":  # properties that pieces share
        at += 3 + struct.unpack_from("<H", data, at + 1)[0]
    if data[at : at + 1] != b"\x02":
        raise BrokenDocumentError("The Word document is damaged: its text cannot be found.")
    size = struct.unpack_from("<I", data, at + 1)[0]
    data = data[at + 5 : at + 5 + size]
    count = (len(data) - 4) // 12
    starts = struct.unpack_from(f"<{count + 1}I", data)
    found: list[_Piece] = []
    for number in range(count):
        place = struct.unpack_from("<I", data, 4 * (count + 1) + 8 * number + 2)[0]
        is_narrow = bool(place & _COMPRESSED)
        place &= _COMPRESSED - 1
        length = starts[number + 1] - starts[number]
        if not 0 <= length <= longest or starts[number] != (found[-1].first + found[-1].size if found else 0):
            raise BrokenDocumentError("The Word document is damaged: its text has gaps.")
        longest -= length
        found.append(_Piece(starts[number], length, place // 2 if is_narrow else place, 1 if is_narrow else 2))
    return found


class _Properties:
    """What paragraphs are, by where they end in the file."""

    def __init__(self, main: bytes, bins: bytes) -> None:
        count = max(0, (len(bins) - 4) // 8)
        self._starts: list[int] = []
        self._found: list[_Paragraph] = []
        for number in range(count):
            page = struct.unpack_from("<I", bins, 4 * (count + 1 + number))[0] & 0x3FFFFF
            self._take(main[page * _PAGE : (page + 1) * _PAGE])

    def at(self, place: int) -> _Paragraph:
        """Those of the paragraph whose end stands at this place of the file."""
        number = bisect_right(self._starts, place) - 1
        return self._found[number] if number >= 0 else _Paragraph()

    def _take(self, page: bytes) -> None:
        if len(page) < _PAGE:
            return
        count = page[-1]
        if 4 * (count + 1) + 13 * count > _PAGE:
            return
        starts = struct.unpack_from(f"<{count}I", page)
        if self._starts and starts and starts[0] < self._starts[-1]:  # damage: places only grow
            return
        for number, start in enumerate(starts):
            at = 2 * page[4 * (count + 1) + 13 * number]
            self._starts.append(start)
            self._found.append(_paragraph(_entry(page, at)) if at else _Paragraph())


def _entry(page: bytes, at: int) -> bytes:
    size = page[at]
    return page[at + 1 : at + 2 * size] if size else page[at + 2 : at + 2 + 2 * page[at + 1]]


def _paragraph(entry: bytes) -> _Paragraph:
    if len(entry) < 2:
        return _Paragraph()
    style = struct.unpack_from("<H", entry)[0]
    level = style if style in _HEADINGS else 0
    in_table = ends_row = in_list = False
    at = 2
    while at + 3 <= len(entry):
        number, value = struct.unpack_from("<HB", entry, at)
        if number == _IN_TABLE:
            in_table = bool(value)
        elif number == _ROW_END:
            ends_row = bool(value)
        elif number == _LEVEL and value < len(_HEADINGS):
            level = value + 1
        elif number == _LIST:
            in_list = bool(value)
        at += 2 + (_OPERANDS[number >> 13] or 1 + value)
    return _Paragraph(level, in_table, ends_row, in_list)


def _blocks(text: str, first: int, pieces: Sequence[_Piece], properties: _Properties) -> Iterator[Block]:
    rows = Rows()
    starts = [piece.first for piece in pieces]
    begin = 0
    for end in _END.finditer(text):
        at = first + end.start()
        piece = pieces[max(0, bisect_right(starts, at) - 1)]
        kind = properties.at(piece.at + (at - piece.first) * piece.width)
        words, begin = _shown(text[begin : end.start()]), end.end()
        if kind.ends_row:
            rows.end_row()
        elif kind.in_table or end[0] == "\x07":
            rows.line(words)
            if end[0] == "\x07":
                rows.end_cell()
        else:
            yield from rows.table()
            yield from _shown_as(words, kind)
    yield from rows.table()
    yield from _shown_as(_shown(text[begin:]), _Paragraph())


def _shown_as(words: str, kind: _Paragraph) -> Iterator[Block]:
    if not words:
        return
    if kind.level and len(words) <= _LONGEST_HEADING:
        yield Block("heading", " ".join(words.split()), level=min(kind.level, 6))
    else:
        yield Block("paragraph", f"- {words}" if kind.in_list else words)


def _shown(text: str) -> str:
    """What a reader sees of it: of a field the result, no signs of pictures."""
    if "\x13" in text or "\x14" in text or "\x15" in text:
        text = _without_codes(text)
    plain = text.translate(_SIGNS)
    if not plain.isascii():  # joins surrogate pairs
        plain = plain.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")
    return clean(plain).strip()


def _without_codes(text: str) -> str:
    """Without what stands between the beginning of a field and its result."""
    kept: list[str] = []
    codes: list[bool] = []  # of the fields around, whether their result has begun
    for piece in re.split("([\x13\x14\x15])", text):
        if piece == "\x13":
            codes.append(False)
        elif piece == "\x14":
            codes[-1:] = [True] if codes else []
        elif piece == "\x15":
            codes[-1:] = []
        elif all(codes):
            kept.append(piece)
    return "".join(kept)
