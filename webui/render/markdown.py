"""Markdown of models, tools and people, made safe to show.

The page's sanitiser keeps forms, positions and ids: with them a reply could paint over the page. So nothing but a few
bare tags survives as HTML, outside code. Code is found line by line and written again in one form that no reader can
take for anything else: a fence longer than any in it, after an empty line, closed. Then what we take for code is code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from webui.render.delimiters import MARKS, NOTE, note_mark
from webui.render.diagrams import LONGEST, drawable
from webui.render.inline import Inline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webui.render.inline import Cite
    from webui.words import Words

_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<item>(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}|~{3,})(?P<info>.*)\Z")
_QUOTE = re.compile(r" {0,3}>[ \t]?")
_LANGUAGE = re.compile(r"[\w+#.-]+")
_TICKS = re.compile(r"`+")
_FORBIDDEN = re.compile(f"[{MARKS}\0]|{NOTE}")
_NOTE = re.compile(NOTE)
_DEPTH = 6


def markdown(
    text: str, words: Words, cite: Cite | None = None, *, growing: bool = False, notes: Sequence[tuple[int, str]] = ()
) -> str:
    """Text as Markdown for the Chatbot.

    Args:
        text: As it was written; may end anywhere, also in the middle of code.
        words: For what is said about pictures from elsewhere.
        cite: What marks such as `[1]` become; without it they stay.
        growing: More of it will come: drawings are still code, for each new frame would begin them anew, and the
            browser may take away the place that one is just being drawn into.
        notes: Markup of ours and where it goes: behind so many characters of the text, in growing order. What would
            stand in code is left out.
    """

    def picture(alt: str, host: str) -> str:
        return words("reply.picture_of", alt=alt or words("reply.picture"), host=host)

    inline = Inline(cite, picture, [markup for _, markup in notes])
    lines = _with_marks(text, [end for end, _ in notes]).split("\n")
    made = "\n".join(_blocks(lines, _Way(inline, not growing, words("reply.drawing_long")), _DEPTH))
    return _NOTE.sub("", made) if notes else made


def _with_marks(text: str, ends: Sequence[int]) -> str:
    """The text without what must not be in it, and with the marks of our notes, which can come from us alone."""
    pieces = [text[start:end] for start, end in pairwise([0, *ends, len(text)])]
    clean = [_FORBIDDEN.sub("", piece.replace("\r\n", "\n").replace("\r", "\n")) for piece in pieces]
    return "".join(piece + note_mark(index) for index, piece in enumerate(clean[:-1])) + clean[-1]


@dataclass(frozen=True, slots=True)
class _Way:
    """How text between code is made safe, whether drawings are drawn, and what is said of one that is too long."""

    inline: Inline
    draws: bool
    too_long: str


def fenced(text: str, language: str = "", indent: str = "") -> list[str]:
    """Lines of a code block, whatever the text holds; an indented one needs an empty line before it."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = [fence + language, *text.split("\n"), fence]
    return [indent + line for line in lines] if indent else lines


def _blocks(lines: list[str], way: _Way, depth: int) -> list[str]:
    """Split into code, quotes and the text between, and make each safe."""
    out: list[str] = []
    text: list[str] = []

    def flush() -> None:
        if text:
            out.append(way.inline.safe("\n".join(text)))
            text.clear()

    at = 0
    while at < len(lines):
        fence = _opened(lines[at])
        if fence:
            flush()
            at = _code(lines, at, fence, out, way)
        elif _QUOTE.match(lines[at]):
            flush()
            at = _quote(lines, at, way, depth, out)
        else:
            text.append(lines[at])
            at += 1
    flush()
    return out


def _opened(line: str) -> re.Match[str] | None:
    match = _FENCE.match(line)
    return match if match and not (match["fence"][0] == "`" and "`" in match["info"]) else None


def _code(lines: list[str], at: int, fence: re.Match[str], out: list[str], way: _Way) -> int:
    """Write the code block that opens at `at` in its one form; returns the line after it."""
    column = len(fence["indent"].expandtabs(4))
    if fence["item"]:
        # An item that begins with code: its text is nothing, so that the code can stand on lines of its own.
        out.append(fence["indent"] + fence["item"] + "&#8203;")
        column += len(fence["item"].expandtabs(4))
    closing = re.compile(rf"[ \t]*{re.escape(fence['fence'][0])}{{{len(fence['fence'])},}}[ \t]*\Z")
    end = at + 1
    while end < len(lines) and not closing.match(lines[end]):
        end += 1
    closed = end < len(lines)
    body = "\n".join(_outdented(line, column) for line in lines[at + 1 : end])
    language = _LANGUAGE.match(fence["info"].strip())
    if out and out[-1].strip():
        out.append("")
    out.extend(_written(body, language[0] if language else "", " " * column, way, closed=closed))
    return end + 1


def _written(body: str, language: str, indent: str, way: _Way, *, closed: bool) -> list[str]:
    if language != "mermaid":
        return fenced(body, language, indent)
    # A drawing is drawn when it is whole; until then, and where it cannot be told from its end, it is code.
    if not (way.draws and closed) or indent or "```" in body:
        return fenced(body, "", indent)
    if len(body) > LONGEST:
        return [f'<p class="p-cap">{way.too_long}</p>', "", *fenced(body)]
    safe = drawable(body)
    return ["```mermaid", safe, "```"] if safe is not None else fenced(body)


def _outdented(line: str, column: int) -> str:
    """Without up to `column` leading columns."""
    if not column:
        return line
    stripped = line.lstrip(" \t")
    width = len(line[: len(line) - len(stripped)].expandtabs(4))
    return " " * max(0, width - column) + stripped


def _quote(lines: list[str], at: int, way: _Way, depth: int, out: list[str]) -> int:
    """A quote is a text of its own; returns the line after it."""
    inner: list[str] = []
    while at < len(lines) and (match := _QUOTE.match(lines[at])):
        inner.append(lines[at][match.end() :])
        at += 1
    if depth:
        out.extend("> " + line for block in _blocks(inner, way, depth - 1) for line in block.split("\n"))
    else:
        out.append("> " + way.inline.safe(" ".join(line.lstrip("> \t") for line in inner)))
    return at
