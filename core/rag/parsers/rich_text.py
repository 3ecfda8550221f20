"""Rich text (RTF) through striprtf, which knows the words; headings and tables are marked for it beforehand."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from core.errors import BrokenDocumentError
from core.rag.document import About, Block
from core.rag.parsers.base import PLAIN, Found, ParseOptions, Rows, clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MEDIA_TYPE = "application/rtf"
_START = b"{\\rtf"
_BINARY = re.compile(rb"\\bin(\d{1,9}) ?")
_UNUSUAL = re.compile("[\x80-\xff]")
_STYLES = re.compile(r"\{\\stylesheet\b")
_STYLE = re.compile(
    r"\{\\s(\d{1,3})(?![0-9])([^{}]{0,600}?)(?<![a-z0-9\\])(?:heading ([1-9])|(title));\}", re.IGNORECASE
)
_WORDS = re.compile(
    r"\\(?:[\\{}]|(cell|nestcell|row|intbl|line|fldinst)(?![a-z]) ?|outlinelevel([0-8])(?![0-9])|s(\d{1,3})(?![0-9]))"
)
_INFO = re.compile(r"\{\\title ?([^{}]{0,1000})\}")
# Characters of the private use area that stand for what striprtf forgets.
_CELL, _ROW, _IN_TABLE, _LINE, _LEVEL = 0xF8A0, 0xF8A1, 0xF8A2, 0xF8A3, 0xF8B0
_MARKS = re.compile(f"[{chr(_CELL)}-{chr(_LEVEL + 9)}]")
_LEVELS = re.compile(f"[{chr(_LEVEL)}-{chr(_LEVEL + 9)}]")
_BULLET = re.compile("^[\u2022\uf020-\uf0ff]\t")  # mostly of a font of signs
_LONGEST_HEADING = 300
_LONGEST_STYLES = 300_000


class RichTextParser:
    """Reads paragraphs, headings and tables."""

    def accepts(self, name: str, head: bytes) -> str:  # noqa: ARG002 - all are asked alike
        """What begins as rich text, whatever it is called: many a file with the ending .doc is."""
        return MEDIA_TYPE if head.startswith(_START) else ""

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Without headers of pages, footnotes and comments, which striprtf leaves out.

        Raises:
            BrokenDocumentError: It is damaged.
        """
        data = path.read_bytes()
        if not data.startswith(_START):
            raise BrokenDocumentError("The file is called RTF, but is none.", key="document_not_what_it_says")
        text = _marked(_without_pictures(data).decode("latin-1"))
        title = _INFO.search(text)
        yield About(title=_plain("{\\rtf1 " + title[1] + "}").strip() if title else "")
        yield from _blocks(_plain(text))


def _plain(text: str) -> str:
    to_text = cast("Any", import_module("striprtf.striprtf")).rtf_to_text
    try:
        plain: str = to_text(text, errors="replace")
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise BrokenDocumentError("The rich text is damaged.") from error
    # Characters beyond the first 65,536 come as two halves.
    return clean(plain.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace"))


def _without_pictures(data: bytes) -> bytes:
    """Without bytes that stand as they are, in which anything may look like a word of the format."""
    kept: list[bytes] = []
    at = 0
    while found := _BINARY.search(data, at):
        kept.append(data[at : found.start()])
        at = found.end() + int(found[1])
    return b"".join([*kept, data[at:]])


def _marked(text: str) -> str:
    """With a character for each cell, row and heading, and with letters of old encodings as the format wants them."""
    levels = _heading_styles(text)

    def mark(found: re.Match[str]) -> str:
        word, level, style = found.groups()
        if word == "fldinst":  # striprtf would look for the ends of links from each of these to the end of the line
            return "\\fldinst "
        if word == "intbl":
            return found[0] + _sign(_IN_TABLE)
        if word:
            return _sign({"row": _ROW, "line": _LINE}.get(word, _CELL))
        number = int(level) + 1 if level else levels.get(style or "", 0)
        return f"{found[0]}{_sign(_LEVEL + number)}" if number else found[0]

    return _UNUSUAL.sub(lambda found: f"\\'{ord(found[0]):02x}", _WORDS.sub(mark, text))


def _sign(code: int) -> str:
    return f"{{\\uc1\\u{code - 0x10000} ?}}"


def _heading_styles(text: str) -> Mapping[str, int]:
    start = _STYLES.search(text)
    if start is None:
        return {}
    styles = _STYLE.finditer(text, start.end(), start.end() + _LONGEST_STYLES)
    return {one[1]: int(one[3]) if one[3] else 1 for one in styles}


def _blocks(text: str) -> Iterator[Block]:
    rows = Rows()
    for piece in re.split(f"([\n{chr(_CELL)}{chr(_ROW)}])", text):
        if piece == chr(_CELL):
            rows.end_cell()
        elif piece == chr(_ROW):
            rows.end_row()
        elif chr(_IN_TABLE) in piece or (rows.is_open and piece != "\n"):
            rows.line(_words(piece))
        elif piece.strip():
            yield from rows.table()
            yield from _paragraph(piece)
    yield from rows.table()


def _paragraph(piece: str) -> Iterator[Block]:
    level = _LEVELS.search(piece)
    words = _BULLET.sub("- ", _words(piece))
    if level and words and len(words) <= _LONGEST_HEADING:
        yield Block("heading", " ".join(words.split()), level=min(ord(level[0]) - _LEVEL, 6))
    elif words:
        yield Block("paragraph", words)


def _words(piece: str) -> str:
    return _MARKS.sub("", piece.replace(chr(_LINE), "\n")).strip()
