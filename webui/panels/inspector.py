"""The panel of what stands behind a reply: its model calls as a table, and the four stages of the one that is open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from core.export.inspecting import STAGES, Stage, compared, cost_of, total
from webui.panels.trace_tree import trace_html
from webui.render.markup import escaped, verbatim
from webui.render.price import money

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.export.inspecting import Change, InspectedCall, Piece
    from core.export.traces import Traced
    from core.runs.log import ModelCalled
    from webui.words import Words

__all__ = ["inspector_html", "number"]

_BRIEF: Final = 0.1  # seconds: what is shorter has no time
_SHOWN: Final = 40_000  # characters of a body in the panel; the file has all that is kept
_FOLDED: Final = 6  # equal lines in a row from which on they are folded
_AROUND: Final = 2  # of them that stay
_SHAPES: Final = {"finished": "p-ok", "failed": "p-bad", "stopped": "p-off", "interrupted": "p-off"}
_SIGNS: Final = {"added": "+", "left_out": "−", "same": ""}
_PURPOSES: Final = frozenset(
    {
        "answer",
        "step",
        "agent",
        "search",
        "reading",
        "merging",
        "summary",
        "title",
        "follow-up",
        "router",
        "transcription",
        "claims",
        "test",
    }
)


def inspector_html(  # noqa: PLR0913 - each is a part of the panel, by name
    message_id: str,
    lines: Sequence[ModelCalled],
    words: Words,
    *,
    opened: InspectedCall | None = None,
    stage: str = "sent",
    trace: Sequence[Traced] = (),
    has_case: bool = False,
) -> str:
    """Markup for `#page`.

    Args:
        message_id: The reply's.
        lines: Its model calls, in order of time.
        opened: The one whose stages are shown.
        stage: Which of them.
        trace: What was done for it, as trees.
        has_case: Whether it is whole, so that a case can be made of it.
    """
    open_id = opened.line.call_id if opened is not None else ""
    rows = "".join(
        _row(line, message_id, words, opened if opened is not None and line.call_id == open_id else None, stage)
        for line in lines
    )
    table = f'<div class="p-calls">{_head(words)}<ul>{rows}</ul></div>' if lines else _nothing(words)
    place = f"inspect/{open_id}/{stage if open_id else ''}"
    return (
        f'<div class="p-evidence p-inspect" data-open="{escaped(message_id)}" data-place="{escaped(place)}"><header>'
        f'<h2>{escaped(words("inspect.title"))}</h2><span class="p-file">{escaped(_sum(lines, words))}</span>'
        f'<button type="button" class="p-icon p-close" data-do="close" '
        f'aria-label="{escaped(words("inspect.close"))}"></button></header>'
        f'<div class="p-behind" tabindex="-1">{trace_html(trace, words)}{table}</div>'
        f"{_foot(message_id, words, has_case=has_case) if lines else ''}</div>"
    )


def number(count: int) -> str:
    """A count of tokens."""
    return f"{count:,}"


def _sum(lines: Sequence[ModelCalled], words: Words) -> str:
    if not lines:
        return ""
    usage, free = total(lines), all(one.here for one in lines)
    calls = words("inspect.calls_one") if len(lines) == 1 else words("inspect.calls", n=len(lines))
    return words(
        "inspect.sum",
        calls=calls,
        time=words.seconds(sum(one.seconds for one in lines)),
        cost=money(usage.cost, words, free=free),
    )


def _nothing(words: Words) -> str:
    return f'<p class="p-none">{escaped(words("inspect.none"))}</p>'


def _head(words: Words) -> str:
    cells = "".join(f"<span>{escaped(words(f'inspect.{one}'))}</span>" for one in ("for", "model", "time", "tokens"))
    return f'<div class="p-call-head" aria-hidden="true">{cells}<span>{escaped(words("inspect.cost"))}</span></div>'


def _foot(message_id: str, words: Words, *, has_case: bool) -> str:
    """What is hidden, and the files: all that is kept, and a case for a suite of a reply that is whole."""
    at = f"./inspect/{escaped(message_id)}"
    case = (
        f'<span class="p-case">{escaped(words("inspect.case"))} {_download(f"{at}/case.yaml", "YAML", words)} '
        f"{_download(f'{at}/case.json', 'JSON', words)}</span>"
    )
    return (
        f"<footer><span>{escaped(words('inspect.hidden'))}</span>{case if has_case else ''}"
        f'<a class="p-download" download href="{at}.json">{escaped(words("inspect.download"))}</a></footer>'
    )


def _download(address: str, form: str, words: Words) -> str:
    label = escaped(words("inspect.case_as", form=form))
    return f'<a download href="{address}" aria-label="{label}" title="{label}">{form}</a>'


def purpose(line: ModelCalled, words: Words) -> str:
    """What a call was for, in words."""
    if line.agent:
        return words("inspect.for_agent_named", name=line.agent)
    return words(f"inspect.for_{line.purpose if line.purpose in _PURPOSES else 'answer'}")


def _row(line: ModelCalled, message_id: str, words: Words, opened: InspectedCall | None, stage: str) -> str:
    usage = line.usage
    tokens = f"{number(usage.prompt_tokens)}, {number(usage.completion_tokens)}" if usage is not None else ""
    about = escaped(words("inspect.counted")) if usage is not None and usage.estimated else ""
    counted = f'<abbr title="{about}">≈</abbr> ' if about else ""
    time = words.seconds(line.seconds) if line.seconds >= _BRIEF else ""
    cost = "" if usage is None else money(cost_of(line), words, free=line.here and not line.cached)
    model = words.model(line.model).partition(" · ")[0]
    aim = f'data-do="inspect" data-message="{escaped(message_id)}" data-call="{escaped(line.call_id)}"'
    is_open = opened is not None
    closing = ' data-closing="1"' if is_open else ""
    return (
        f'<li class="{"p-opened" if is_open else ""}"><button type="button" {aim}{closing} '
        f'aria-expanded="{"true" if is_open else "false"}">'
        f'<span class="p-for"><span class="p-st {_SHAPES.get(line.outcome, "p-off")}"></span>'
        f'<span class="p-sr">{escaped(words(f"inspect.outcome_{line.outcome}"))}</span>'
        f"{escaped(purpose(line, words))}{_marks(line, words)}</span>"
        f'<span class="p-by-model" title="{escaped(line.model)}">{escaped(model)}</span><span>{escaped(time)}</span>'
        f"<span>{counted}{escaped(tokens)}</span><span>{escaped(cost)}</span></button>"
        f"{_opened(opened, stage, message_id, words) if opened is not None else ''}</li>"
    )


def _marks(line: ModelCalled, words: Words) -> str:
    marks = ""
    if line.retries:
        marks += f'<span class="p-sign p-tried">{escaped(words("inspect.tried", n=line.retries + 1))}</span>'
    if line.cached:
        marks += f'<span class="p-sign">{escaped(words("inspect.cached"))}</span>'
    return marks


# ---- the open call


def _opened(call: InspectedCall, stage: str, message_id: str, words: Words) -> str:
    line = call.line
    said = f'<p class="p-failed-said">{escaped(line.said)}</p>' if line.said else ""
    if not call.stages:
        why = escaped(words("inspect.no_room" if call.left_out else "inspect.pruned"))
        return f'<div class="p-stages">{said}<p class="p-none">{why}</p>{_times(line, words)}</div>'
    stage = stage if stage in STAGES else "sent"
    tabs = "".join(
        f'<button type="button" role="tab" data-do="inspect" data-message="{escaped(message_id)}" '
        f'data-call="{escaped(line.call_id)}" data-stage="{one}" aria-selected="{"true" if one == stage else "false"}">'
        f"{escaped(words(f'inspect.{one}'))}<small>{escaped(_note(call, one))}</small></button>"
        for one in STAGES
    )
    draw = {"given": _given, "sent": _sent, "received": _received, "parsed": _parsed}[stage]
    return (
        f'<div class="p-stages"><div class="p-tabrow" role="tablist">{tabs}</div>{said}'
        f'<div role="tabpanel" class="p-stage">{draw(call, words)}</div>{_times(line, words)}</div>'
    )


def _note(call: InspectedCall, stage: str) -> str:
    usage = call.line.usage
    if usage is None:
        return ""
    if stage == "sent":
        return number(usage.prompt_tokens)
    return number(usage.completion_tokens) if stage == "received" else ""


def _times(line: ModelCalled, words: Words) -> str:
    """When the first word came, and how fast the others did."""
    told: list[str] = []
    if line.first is not None and line.first >= _BRIEF:
        told.append(words("inspect.first", time=words.seconds(line.first)))
    if (speed := per_second(line)) is not None:
        told.append(words("inspect.speed_one") if speed == 1 else words("inspect.speed", n=speed))
    return f'<p class="p-times">{escaped(" · ".join(told))}</p>' if told else ""


def per_second(line: ModelCalled) -> int | None:
    """Tokens a second while it wrote; `None` where that was too short to be told."""
    if line.usage is None or line.first is None or line.cached:
        return None
    seconds = line.seconds - line.first
    return round(line.usage.completion_tokens / seconds) if seconds >= _BRIEF and line.usage.completion_tokens else None


def _given(call: InspectedCall, words: Words) -> str:
    (stage, *_) = call.stages["given"]
    return _diff(compared(stage, stage), words) or _body(stage.body, words)


def _sent(call: InspectedCall, words: Words) -> str:
    tries = call.stages["sent"]
    if not tries:
        return f'<p class="p-none">{escaped(words("inspect.not_sent"))}</p>'
    (given, *_), last = call.stages["given"], tries[-1]
    lines = compared(given, last)
    marks = {what for what, _ in lines}
    legend = "".join(
        f'<span><b class="p-{one}">{_SIGNS[one]}</b> {escaped(words(f"inspect.{one}"))}</span>'
        for one in ("added", "left_out")
        if one in marks
    )
    shown = _diff(lines, words) + (f'<p class="p-legend">{legend}</p>' if legend else "")
    label = escaped(words("inspect.wire"))
    raw = "".join(f"{_head_lines(one)}{_body(one.body, words)}" for one in tries)
    return f'{shown}<details class="p-wire"{"" if shown else " open"}><summary>{label}</summary>{raw}</details>'


def _received(call: InspectedCall, words: Words) -> str:
    tries = call.stages["received"]
    if not tries:
        return f'<p class="p-none">{escaped(words("inspect.not_sent"))}</p>'
    return "".join(f"{_head_lines(one)}{_body(one.body, words)}" for one in tries)


def _parsed(call: InspectedCall, words: Words) -> str:
    (stage, *_) = call.stages["parsed"]
    try:
        messages: Any = json.loads("".join(stage.body.texts)) if not stage.body.cut else None
    except ValueError:
        messages = None
    if not isinstance(messages, list):
        return _body(stage.body, words)
    parts = [part for one in cast("list[dict[str, Any]]", messages) for part in _parts(one, words)]
    return "".join(parts) or f'<p class="p-none">{escaped(words("inspect.empty"))}</p>'


def _parts(message: dict[str, Any], words: Words) -> Iterable[str]:
    """What was made of a message: the thought, the text, the call."""
    call = cast("dict[str, Any]", message.get("function_call") or {})
    made = f"{call.get('name', '')} {call.get('arguments', '')}" if call else ""
    for name, text in (("thought", message.get("reasoning_content")), ("text", message.get("content")), ("call", made)):
        if text:
            yield f'<p class="p-part">{escaped(words(f"inspect.part_{name}"))}</p>{_pre(str(text))}'


def _head_lines(stage: Stage) -> str:
    return _pre("\n".join(stage.head), "p-wire-head") if any(stage.head) else ""


def _pre(text: str, form: str = "") -> str:
    return f'<pre class="{form}" tabindex="0">{verbatim(text)}</pre>'


def _body(body: Piece, words: Words) -> str:
    """A text as it is kept, with where it was cut, and where the panel shows no more of it."""
    shown: list[str] = []
    left = _SHOWN
    for at, text in enumerate(body.texts):
        if at and body.cut:
            shown.append(f'<p class="p-cut">{escaped(words("inspect.cut", n=number(body.cut)))}</p>')
        shown.append(_pre(text[:left]))
        if len(text) > left:
            shown.append(f'<p class="p-cut">{escaped(words("inspect.more", n=number(len(text) - left)))}</p>')
        left = max(left - len(text), 0)
        if not left:
            break
    return "".join(shown)


def _diff(lines: Sequence[tuple[Change, str]], words: Words) -> str:
    """Lines with their signs; long runs of equal ones are folded."""
    if not lines:
        return ""
    rows: list[str] = []
    at, compares = 0, any(what != "same" for what, _ in lines)
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end][0] == lines[at][0]:
            end += 1
        run = lines[at:end]
        if compares and lines[at][0] == "same" and len(run) > _FOLDED:
            head, tail = run[: _AROUND if at else 0], run[len(run) - (_AROUND if end < len(lines) else 0) :]
            middle = run[len(head) : len(run) - len(tail)]
            label = escaped(words("inspect.same", n=len(middle)))
            inner = "".join(map(_line, middle))
            rows += [*map(_line, head), f"<details><summary>{label}</summary>{inner}</details>", *map(_line, tail)]
        else:
            rows += map(_line, run)
        at = end
    return f'<div class="p-diff" tabindex="0">{"".join(rows)}</div>'


def _line(line: tuple[Change, str]) -> str:
    what, text = line
    return f'<div class="p-{what}"><b>{_SIGNS[what]}</b><span>{verbatim(text)}</span></div>'
