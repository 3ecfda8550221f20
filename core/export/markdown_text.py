"""Text that becomes part of a Markdown file: its own Markdown stays, but nothing of it reaches past its place.

Headings of it move below those of the file, tags become text, pictures links, and a block of code that nobody closed is
closed. Where code could be read in two ways, it is read as text: ugly, and safe.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FENCE: Final = re.compile(r"(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)")
_MARKS: Final = re.compile(r"`{3,}|~{3,}")
_HEADING: Final = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_DASHES: Final = re.compile(r"( {0,3})(-{1,}|={1,})([ \t]*)")
_TAG: Final = re.compile(r"<(?!https?://[^\s<>`]+>)(?=[A-Za-z/!?])")
_BARE: Final = r"(?<!\\)((?:\\\\)*)"  # before a sign that no backslash takes the meaning from
_LINK: Final = re.compile(
    _BARE + r"\](?=\()(?!\(\s*(?:<?(?:https?://|mailto:)|[/?#)]|[^\s:&\\%<>()]+[/?#)\s]))", re.IGNORECASE
)
"""The end of a link's text, but for one whose target is on the web, a mail address, or has no scheme at all."""
_LIVE: Final = re.compile(_BARE + r"(?=!\[|\[\^)")
_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]#|~$!^]")
_BELOW: Final = 2  # levels that headings move down
_DEEPEST: Final = 6

_HTML: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def plain(text: str) -> str:
    """Text in a line that stands as it is, whatever signs are in it."""
    line = _SPECIAL.sub(lambda found: "\\" + found[0], " ".join(text.split()))
    return re.sub("[&<>]", lambda found: _HTML[found[0]], line)


def html(text: str) -> str:
    """Text in a line of HTML."""
    return re.sub("[&<>]", lambda found: _HTML[found[0]], " ".join(text.split()))


def fenced(text: str, info: str = "") -> str:
    """Text as a block of code, whatever is in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    body = re.sub(r"\r\n?", "\n", text).rstrip("\n")
    return f"{marks}{info}\n{body}\n{marks}"


def safe(text: str, *, lines: bool = False, prose: Callable[[str], str] | None = None) -> str:
    """Markdown that stays within its place.

    Args:
        text: The Markdown.
        lines: Whether line breaks are kept, as a person meant them.
        prose: Changes what is not code, after it was made safe.
    """
    written = re.sub(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]", "\n", text).strip("\n").split("\n")
    out: list[str] = []
    for part, is_code in _parts(written):
        out += part if is_code else _prose(part, lines=lines, prose=prose)
    return "\n".join(out)


def _parts(written: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Blocks of code and what is between them; where a fence is not plainly one, there is no code at all."""
    blocks = _blocks(written)
    if blocks is None:
        yield [_MARKS.sub(lambda run: "".join("\\" + mark for mark in run[0]), line) for line in written], False
        return
    at = 0
    for start, end, closing in blocks:
        yield written[at:start], False
        yield [*written[start:end], *closing], True
        at = end
    yield written[at:], False


def _blocks(written: list[str]) -> list[tuple[int, int, list[str]]] | None:
    """Where blocks of code begin and end, with the line that is missing at the end; `None` where that is not sure."""
    found: list[tuple[int, int, list[str]]] = []
    at = 0
    while at < len(written):
        opening = _FENCE.fullmatch(written[at])
        if opening is None:
            if _MARKS.search(written[at]):
                return None
            at += 1
            continue
        end = _end(written, at, opening)
        if end is None:
            return None
        closed = end <= len(written)
        found.append((at, min(end, len(written)), [] if closed else [opening["indent"] + opening["marks"]]))
        at = min(end, len(written))
    return found


def _end(written: list[str], start: int, opening: re.Match[str]) -> int | None:
    """The line after a block of code, one more than there are where nothing closes it; `None` where it is not sure."""
    indent, marks = opening["indent"], opening["marks"]
    deep = len(indent) > 3
    for at in range(start + 1, len(written)):
        line = written[at]
        closing = re.fullmatch(r"([ \t]*)(`{3,}|~{3,})[ \t]*", line)
        if closing is not None and closing[2][0] == marks[0] and len(closing[2]) >= len(marks):
            return at + 1 if closing[1] == indent and (not deep or len(closing[2]) == len(marks)) else None
        if (line.strip() and not line.startswith(indent)) or (deep and (not line.strip() or _MARKS.search(line))):
            return None
    return None if deep else len(written) + 1


def _prose(part: list[str], *, lines: bool, prose: Callable[[str], str] | None) -> list[str]:
    out: list[str] = []
    block: list[str] = []
    for line in [*part, ""]:
        if line.strip():
            block.append(line)
            continue
        has_code = all(_spans(one) is not None for one in block)
        out += [_line(one, has_code=has_code, prose=prose) for one in block]
        if lines and block:
            last = len(out) - 1
            for index in range(len(out) - len(block), last):
                out[index] = out[index].rstrip() + "  "
        block = []
        out.append("")
    return out[:-1]


def _spans(line: str) -> list[str] | None:
    """The line cut into text and code in turns; `None` where it is not sure what is code."""
    if "`" not in line:
        return [line]
    if "\\`" in line:
        return None
    cut = re.split(r"(`+)", line)  # text, marks, text, marks, …
    parts: list[str] = [cut[0]]
    at = 1
    while at < len(cut):
        marks = cut[at]
        closing = next((index for index in range(at + 2, len(cut), 2) if cut[index] == marks), None)
        if closing is None:
            return None
        parts += ["".join(cut[at : closing + 1]), cut[closing + 1]]
        at = closing + 2
    return parts


def _line(line: str, *, has_code: bool, prose: Callable[[str], str] | None) -> str:
    begins = line.lstrip(" ")[:1]
    dashes = _DASHES.fullmatch(line) if begins and begins in "-=" else None
    if dashes is not None:  # under a line of text it would make a heading of it
        return f"{dashes[1]}***" if len(dashes[2]) > 2 and dashes[2][0] == "-" else f"{dashes[1]}\\{dashes[2]}"
    if begins == "#" and _HEADING.match(line):
        line = _HEADING.sub(lambda found: found[1] + "#" * min(_DEEPEST, len(found[2]) + _BELOW), line, count=1)
    parts = _spans(line) if has_code else None
    if parts is None:
        return _text(line, prose)
    return "".join(_text(part, prose) if index % 2 == 0 else part for index, part in enumerate(parts))


def _text(text: str, prose: Callable[[str], str] | None) -> str:
    if "<" in text:
        text = _TAG.sub("&lt;", text)
    if "[" in text or "]" in text:
        text = _LINK.sub(r"\1\\]", text).replace("]:", "]&#58;")  # or it says where links lead
        text = _LIVE.sub(r"\1\\", text)
    return prose(text) if prose is not None else text
