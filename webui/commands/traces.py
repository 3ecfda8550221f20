"""`parlour traces`: what was done for a reply, as a tree in the terminal."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.errors import ParlourError
from core.export.traces import trace_file, trace_in, traces_in
from core.mcp.journal import one_line
from webui.commands.command_line import Parser, add_language, positive_int, sentence, words_for
from webui.render.price import money

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.export.traces import Trace, Traced
    from core.messages.message import Usage
    from webui.words import Words

_ID: Final = 8  # letters of an id in the list
_BAR: Final = 24  # columns of the line of time
_NARROWEST: Final = 60
_SHORTEST_LABEL: Final = 24
_LONGEST_VALUE: Final = 40
_HIDDEN: Final = re.compile(
    "[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SIGNS: Final = {"model": "◇ ", "tool": "⚙ "}


def main(arguments: Sequence[str]) -> int:
    """Show the latest traces, or one.

    Returns:
        The exit code: 0, or 1 where there is no such trace.
    """
    given = _parser().parse_args(arguments)
    words = words_for(given.lang)
    try:
        file = trace_file(given.file)
        if given.id is None:
            found = traces_in(file, given.last)
            said = _as_json([one.as_dict() for one in found]) if given.json else listed(found, file, words)
        else:
            one = trace_in(file, given.id)
            width = max(_NARROWEST, shutil.get_terminal_size((120, 24)).columns)
            said = _as_json(one.as_dict()) if given.json else tree(one, words, width)
    except ParlourError as error:
        sys.stderr.write(f"parlour: {sentence(error, words)}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in said))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="parlour traces",
        description="What was done for replies: agents, model calls with their tokens, tools with their arguments, as "
        "a tree beside a timeline. PARLOUR_TRACES=file:traces.jsonl has them written.",
        allow_abbrev=False,
    )
    parser.add_argument("id", nargs="?", help="the beginning of a trace's id, or a run's id; left out, a list")
    parser.add_argument("--file", type=Path, help="where they were written (as PARLOUR_TRACES says)")
    parser.add_argument("--last", type=positive_int, default=20, metavar="N", help="how many of the list (20)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_language(parser)
    return parser


def _as_json(value: object) -> list[str]:
    """As JSON; what a terminal would act on, or nobody would see, is a number in it."""
    return [_HIDDEN.sub(_number, json.dumps(value, ensure_ascii=False, indent=2))]


def _number(found: re.Match[str]) -> str:
    code = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{code[at : at + 2].hex()}" for at in range(0, len(code), 2))


def listed(traces: Sequence[Trace], file: Path, words: Words) -> list[str]:
    """A line for each trace, the latest first."""
    if not traces:
        return [words("traces.none", file=file)]
    rows = [
        (
            one_line(one.id)[:_ID],
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.began)),
            one.name,
            words.seconds(one.seconds),
            _spent(one.usage, words),
            words("traces.failed", n=len(one.errors)) if one.errors else "",
        )
        for one in traces
    ]
    widths = [max(_width(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [*lines, words("traces.more")]


def tree(trace: Trace, words: Words, width: int) -> list[str]:
    """The spans of a trace, each with its place on the line of time, so that what ran side by side stands so.

    Args:
        width: Columns of the terminal.
    """
    head = [
        one_line(trace.id),
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(trace.began)),
        words.seconds(trace.seconds),
    ]
    head += [
        one
        for one in (_spent(trace.usage, words), words("traces.run", id=one_line(trace.run)) if trace.run else "")
        if one
    ]
    rows = [row for root in trace.roots for row in _rows(root, "", "", words)]
    most = max(_SHORTEST_LABEL, width - _BAR - 40)
    label = min(most, max(_width(row[0]) for row in rows))
    lines = [f"{_padded(_cut(text, label), label)}  {_bar(one, trace)}  {about}".rstrip() for text, about, one in rows]
    return ["  ".join(head), *lines]


def _rows(one: Traced, before: str, below: str, words: Words) -> Iterator[tuple[str, str, Traced]]:
    """A span and those in it: the label with its branches, what is told of it, and itself."""
    yield before + _label(one), _about(one, words), one
    for at, inner in enumerate(one.inside):
        last = at == len(one.inside) - 1
        yield from _rows(inner, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), words)


def _label(one: Traced) -> str:
    if one.kind != "tool":
        return _SIGNS.get(one.kind, "") + one.name
    told = ", ".join(f"{one_line(name)}={_value(value)}" for name, value in one.arguments.items())
    return f"{_SIGNS['tool']}{one.name}({told})"


def _value(value: object) -> str:
    text = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
    return json.dumps(text, ensure_ascii=False) if isinstance(value, str) else text


def _about(one: Traced, words: Words) -> str:
    told = [words.seconds(one.seconds)]
    if one.usage is not None:
        told.append(_spent(one.usage, words))
    if one.first is not None:
        told.append(words("traces.first", time=words.seconds(one.first)))
    if one.outcome == "stopped":
        told.append(words("traces.stopped"))
    if one.error:
        told.append(f"✗ {one.error}: {one.said}" if one.said else f"✗ {one.error}")
    return " · ".join(told)


def _spent(usage: Usage, words: Words) -> str:
    told: list[str] = []
    if usage.prompt_tokens or usage.completion_tokens:
        asked, said = f"{usage.prompt_tokens:,}", f"{usage.completion_tokens:,}"
        told.append(words("traces.tokens", asked=asked, said=said))
    if usage.cost:
        told.append(money(usage.cost, words))
    return " · ".join(told)


def _bar(one: Traced, trace: Trace) -> str:
    """Where in the whole a span lies, and how long it is; the shortest is still a mark."""
    whole = trace.seconds or 1.0
    begin = min(_BAR - 1, int((one.began - trace.began) / whole * _BAR))
    length = max(1, min(_BAR - begin, round(one.seconds / whole * _BAR)))
    return "·" * begin + "█" * length + "·" * (_BAR - begin - length)


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while text and _width(text) > width - 1:
        text = text[:-1]
    return f"{text}…"
