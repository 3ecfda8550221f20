"""What was done for a reply, as a tree beside a timeline: models, tools, and agents with what they did."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from core.messages.invisible import written_out
from webui.render.markup import escaped
from webui.render.price import money

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.export.traces import Traced
    from core.messages.message import Usage
    from webui.words import Words

_MOST: Final = 400  # rows in the panel; the file has all of them
_DEEPEST: Final = 12  # levels that are set further in
_LONGEST: Final = 60  # characters of an argument
_BRIEF: Final = 0.1  # seconds: what is shorter has no time
_NARROWEST: Final = 0.6  # per cent of the line of time: what is shorter is still a mark
_KINDS: Final = frozenset({"answer", "step", "agent", "search", "reading", "merging", "summary", "title"})


def trace_html(trace: Sequence[Traced], words: Words) -> str:
    """Markup for the inspector, folded; "" where nothing is known.

    Args:
        trace: As `Inspecting.trace` gives it.
    """
    if not trace:
        return ""
    drawing = _Drawing(trace, words)
    rows = drawing.rows(trace, 0)
    more = len(drawing.everything) - _MOST
    rest = f'<p class="p-none">{escaped(words("trace.more", n=more))}</p>' if more > 0 else ""
    return (
        f'<details class="p-trace"><summary><span>{escaped(words("trace.title"))}</span>'
        f"<small>{escaped(drawing.summary())}</small></summary><ul>{rows}</ul>{rest}</details>"
    )


class _Drawing:
    """Draws the spans of one reply.

    Args:
        trace: All of them, as trees.
    """

    def __init__(self, trace: Sequence[Traced], words: Words) -> None:
        self._words = words
        self.everything = [one for root in trace for one in root.everything]
        self._began = min(one.began for one in self.everything)
        self._whole = max(one.began + one.seconds for one in self.everything) - self._began
        self._left = _MOST

    def summary(self) -> str:
        """How many there are of each kind, and how long all of it took."""
        kinds = Counter(one.kind for one in self.everything)
        many = [
            self._words(f"trace.{kind}s_one" if kinds[kind] == 1 else f"trace.{kind}s", n=kinds[kind])
            for kind in ("agent", "model", "tool")
            if kinds[kind]
        ]
        return " · ".join([self._words("trace.took", time=self._words.seconds(self._whole)), *many])

    def rows(self, spans: Sequence[Traced], depth: int) -> str:
        """The rows of spans, each with those that lie in it, which can be folded."""
        drawn: list[str] = []
        for one in spans:
            if self._left <= 0:
                break
            self._left -= 1
            row = self._row(one, min(depth, _DEEPEST))
            if one.inside:
                inside = self.rows(one.inside, depth + 1)
                row = f'<details open><summary class="p-span">{row}</summary><ul>{inside}</ul></details>'
            else:
                row = f'<div class="p-span">{row}</div>'
            drawn.append(f"<li>{row}</li>")
        return "".join(drawn)

    def _row(self, one: Traced, depth: int) -> str:
        words = self._words
        how = "failed" if one.error else "stopped" if one.outcome == "stopped" else "finished"
        shape = {"failed": "p-bad", "stopped": "p-off"}.get(how, "p-ok")
        wrong = f'<span class="p-wrong-said">{escaped(self._wrong(one))}</span>' if one.error else ""
        told = f"{words(f'inspect.outcome_{how}')} {words(f'trace.{one.kind}')}"
        at = (one.began - self._began) / self._whole * 100 if self._whole else 0.0
        wide = one.seconds / self._whole * 100 if self._whole else 100.0
        at = min(max(at, 0.0), 100 - _NARROWEST)
        wide = min(max(wide, _NARROWEST), 100 - at)
        return (
            f'<span class="p-span-name" style="--deep:{depth}"><span class="p-st {shape}"></span>'
            f'<span class="p-sr">{escaped(told)} </span>'
            f"<span>{self._label(one)}{wrong}</span></span>"
            f'<span class="p-span-line p-of-{one.kind}" aria-hidden="true">'
            f'<i style="left:{at:.2f}%;width:{wide:.2f}%"></i></span>'
            f'<span class="p-span-time">{escaped(words.seconds(one.seconds) if one.seconds >= _BRIEF else "")}</span>'
            f'<span class="p-span-tokens">{escaped(self._spent(one))}</span>'
        )

    def _label(self, one: Traced) -> str:
        if one.kind == "tool":
            return f"<b>{_plain(one.name)}</b>{self._arguments(one.arguments)}"
        name = escaped(self._words.model(one.name).partition(" · ")[0]) if one.kind == "model" else _plain(one.name)
        if one.kind == "model" and one.purpose in _KINDS:
            return f"{escaped(self._words(f'inspect.for_{one.purpose}'))} <small>{name}</small>"
        return name

    def _arguments(self, arguments: Mapping[str, Any]) -> str:
        told = ", ".join(f"{name}={_value(value)}" for name, value in arguments.items())
        return f" <small>{_plain(told[: 4 * _LONGEST])}</small>" if told else ""

    def _wrong(self, one: Traced) -> str:
        return one.said or self._words("trace.wrong", what=one.error)

    def _spent(self, one: Traced) -> str:
        usage: Usage | None = one.usage
        if usage is None:
            return ""
        told = self._words("traces.tokens", asked=f"{usage.prompt_tokens:,}", said=f"{usage.completion_tokens:,}")
        return f"{told} · {money(usage.cost, self._words)}" if usage.cost else told


def _plain(text: str) -> str:
    """What a model or a program wrote, with nothing in it that cannot be seen."""
    return escaped(written_out(text))


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
