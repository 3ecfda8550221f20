"""Plain text, Markdown and source code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.rag.document import About, Block, BlockKind, table
from core.rag.parsers.base import PLAIN, Found, Wishes, ending
from core.rag.parsers.charset import decode, looks_like_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
PROSE = MARKDOWN | {"", ".txt", ".text", ".log", ".rst", ".adoc", ".org", ".tex"}

_HEADING = re.compile(r" {0,3}(#{1,6})\s(.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CLOSING = frozenset(("", ")", "]", "}"))


class PlainParser:
    """Reads whatever is text."""

    def accepts(self, name: str, head: bytes) -> str:
        """Text of any kind; the ending only says how to read it."""
        if not looks_like_text(head):
            return ""
        return "text/markdown" if ending(name) in MARKDOWN else "text/plain"

    def parse(self, path: Path, name: str, wishes: Wishes = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
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
    """Source code in pieces that begin at the margin after a blank line: a class stays with its methods."""
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
    """The heading, listing or table that starts at a line, and the line after it."""
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
