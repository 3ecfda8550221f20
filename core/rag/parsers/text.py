"""Plain text, Markdown and source code, in any character encoding."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from core.rag.document import About, Block, BlockKind, table
from core.rag.parsers.base import PLAIN, Found, ParseOptions, clean, ending

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is how this one begins
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 64 * 1024
_CONTROLS = frozenset(range(32)) - {9, 10, 12, 13, 27}


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file can be text in any encoding."""
    if encoding_mark(head) or wide_encoding(head):
        return True
    return bool(head) and 0 not in head and sum(byte in _CONTROLS for byte in head) <= len(head) // 100


def encoding_mark(data: bytes) -> str:
    """The encoding of the byte order mark, or ""."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")


def wide_encoding(data: bytes) -> str:
    """UTF-16 without a byte order mark, told by the zeros in every second byte of Latin text, or ""."""
    sample = data[: _SAMPLE & ~1]
    if len(sample) < 4:
        return ""
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = sample[first::2].count(0), sample[1 - first :: 2].count(0)
        if zeros > len(sample) // 6 and others == 0:
            return encoding
    return ""


def decode(data: bytes) -> str:
    """The text of a file, whatever its encoding; bytes that fit nowhere become U+FFFD."""
    named = encoding_mark(data) or wide_encoding(data)
    if named:
        return clean(data.decode(named, errors="replace"))
    try:
        return clean(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        # A few bad bytes in a long UTF-8 text are damage, not another encoding.
        valid = data[: error.start].decode("utf-8")
        if sum(letter > "\x7f" for letter in valid) >= 64:
            return clean(data.decode("utf-8", errors="replace"))
    return clean(data.decode(_old_encoding(data[:_SAMPLE]), errors="replace"))


def _old_encoding(sample: bytes) -> str:
    """The legacy encoding of a text.

    Chinese is decided by the table of *everyday* characters that the byte pairs fall into: short texts, such as a poem,
    are too little for the statistics of a general detector.
    """
    simplified = _everyday_share(sample, "gb18030", 0xB0A1, 0xD7F9)
    traditional = _everyday_share(sample, "big5", 0xA440, 0xC67E)
    if max(simplified, traditional) >= 0.7:
        return "gb18030" if simplified >= traditional else "big5hkscs"
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    return best.encoding if best else "cp1252"


def _everyday_share(sample: bytes, encoding: str, first: int, last: int) -> float:
    """The share of everyday ones among the two-byte characters; 0 if the bytes are not in this encoding."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return 0.0
    pairs = everyday = 0
    for letter in text:
        code = letter.encode(encoding, errors="replace")
        if len(code) == 2:
            pairs += 1
            value = code[0] << 8 | code[1]
            # Punctuation counts as everyday too: both tables keep it before the characters.
            everyday += (first <= value <= last and code[1] >= 0x40) or letter in "，。、；：？！「」『』（）《》“”"
    wide = sum(len(letter.encode("utf-8")) > 1 for letter in text)
    return everyday / wide if wide else 0.0


MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
PROSE = MARKDOWN | {"", ".txt", ".text", ".log", ".rst", ".adoc", ".org", ".tex"}

_HEADING = re.compile(r" {0,3}(#{1,6})\s(.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CLOSING = frozenset(("", ")", "]", "}"))


class PlainParser:
    """Reads whatever is text."""

    def accepts(self, name: str, head: bytes) -> str:
        """Any text; the file ending only says how to read it."""
        if not looks_like_text(head):
            return ""
        return "text/markdown" if ending(name) in MARKDOWN else "text/plain"

    def parse(self, path: Path, name: str, options: ParseOptions = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Paragraphs; in Markdown headings, tables and listings too."""
        text = decode(path.read_bytes())
        kind = ending(name)
        yield About(title=_front_title(text) if kind in MARKDOWN else "")
        if kind in MARKDOWN:
            yield from markdown_blocks(text)
        elif kind in PROSE:
            yield from paragraphs(text, "paragraph")
        else:
            yield from _definitions(text)


def paragraphs(text: str, kind: BlockKind) -> Iterator[Block]:
    """Pieces between blank lines; code keeps its line breaks and indents."""
    for piece in re.split(r"\n[ \t]*\n", text):
        if piece.strip():
            yield Block(kind, piece.strip("\n").rstrip() if kind == "code" else piece.strip())


def _definitions(text: str) -> Iterator[Block]:
    """Source code, split where an unindented line follows a blank one: a class stays with its methods."""
    piece: list[str] = []
    after_blank = False
    for line in [*text.split("\n"), None]:
        begins = line is None or (after_blank and line[:1] not in _CLOSING and not line[0].isspace())
        if begins and (code := "\n".join(piece)).strip():
            yield Block("code", code.strip("\n").rstrip())
        piece = [] if begins else piece
        after_blank = line is not None and not line.strip(" \t")
        piece.append(line or "")


def _front_title(text: str) -> str:
    """The title in a Markdown file's front matter, if it has one."""
    front = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    title = re.search(r"^title:\s*(.+)$", front[1], re.MULTILINE) if front else None
    return title[1].strip().strip("\"'") if title else ""


def markdown_blocks(text: str) -> Iterator[Block]:
    """The blocks of a Markdown text."""
    lines = text.split("\n")
    pending: list[str] = []
    at = 0
    while at < len(lines):
        block, after = _markdown_block(lines, at, pending)
        if block or not lines[at].strip():
            yield from _paragraph(pending)
            pending = []
        elif after == at + 1:
            pending.append(lines[at])
        if block:
            yield block
        at = after
    yield from _paragraph(pending)


def _paragraph(lines: list[str]) -> Iterator[Block]:
    text = "\n".join(lines).strip()
    if text:
        yield Block("paragraph", text)


def _markdown_block(lines: list[str], at: int, pending: list[str]) -> tuple[Block | None, int]:
    """The heading, code block or table that starts at a line, and the number of the line after it."""
    line = lines[at]
    if heading := _HEADING.match(line):
        title = heading[2].strip()
        bare = title.rstrip("#")
        title = bare.rstrip() if not bare or bare[-1].isspace() else title  # closing marks, but not those of "C#"
        return (Block("heading", title, level=len(heading[1])) if title else None), at + 1
    if fence := _FENCE.match(line):
        end = at + 1
        while end < len(lines) and not lines[end].lstrip().startswith(fence[1]):
            end += 1
        code = "\n".join(lines[at + 1 : end])
        return (Block("code", code) if code.strip() else None), end + 1
    if at + 1 < len(lines):
        underline = lines[at + 1]
        if "|" in line and "|" in underline and _is_rule(underline):
            return _pipe_table(lines, at)
        if line.strip() and not pending and _UNDERLINE.match(underline) and len(underline.strip()) > 1:
            return Block("heading", line.strip(), level=1 if "=" in underline else 2), at + 2
    return None, at + 1


def _is_rule(line: str) -> bool:
    """The line under a table's header."""
    return set(line.strip()) <= set("|:- ") and "-" in line


def _pipe_table(lines: list[str], at: int) -> tuple[Block, int]:
    end = at + 2
    while end < len(lines) and "|" in lines[end] and lines[end].strip():
        end += 1
    rows = [lines[at], *lines[at + 2 : end]]
    return table([_cells(row) for row in rows]), end


def _cells(row: str) -> tuple[str, ...]:
    inner = row.strip().removeprefix("|").removesuffix("|")
    return tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner))
