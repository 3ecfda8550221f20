"""What was done for a reply of the page, as a tree: read from the log of its run, whether traces are kept or not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, cast

from core.export.traces import Traced, shortened
from core.mcp.journal import one_line
from core.messages.events import CallDelta, CallStarted, MessageStarted, ToolFinished, ToolStarted
from core.runs.log import ModelAsked, ModelCalled, NestedEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.export.redaction import Redaction
    from core.messages.message import Message
    from core.runs.log import LoggedEvent, RunEvent

_LONGEST: Final = 160  # characters of what went wrong
_SPEAKING: Final = frozenset({"answer", "step", "agent"})  # what a model is called for that speaks in a reply


@dataclass(slots=True)
class _Call:
    """A call of a tool, as far as it has come."""

    id: str
    name: str
    speaker: str
    began: float
    pieces: list[str] = field(default_factory=list[str])
    ended: float | None = None
    result: Message | None = None
    inside: _Level | None = None


@dataclass(slots=True)
class _Level:
    """What one agent does: the one that answers, or one that was called as a tool."""

    calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    models: list[tuple[str, float, ModelCalled]] = field(default_factory=list[tuple[str, float, ModelCalled]])
    spoke: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])  # at which event who began a message
    speaker: str = ""

    def at(self, path: Sequence[str]) -> _Level | None:
        """The level inside of these calls; `None` where one of them is not known."""
        level = self
        for call_id in path:
            call = level.calls.get(call_id)
            if call is None:
                return None
            call.inside = level = call.inside or _Level()
        return level

    def apply(self, event: RunEvent, seq: int, at: float) -> None:
        """Take in what happened in it."""
        match event:
            case MessageStarted():
                self.speaker = event.name or ""
                self.spoke.append((seq, self.speaker))
            case CallStarted():
                self.calls[event.call_id] = _Call(event.call_id, event.name, self.speaker, at)
            case CallDelta() if event.call_id in self.calls:
                self.calls[event.call_id].pieces.append(event.arguments)
            case ToolStarted() if event.call_id in self.calls:
                call = self.calls[event.call_id]
                call.began, call.ended, call.result = at, None, None  # after a restart it may begin anew
            case ToolFinished() if event.call_id in self.calls:
                call = self.calls[event.call_id]
                call.ended, call.result = at, event.message
            case _:
                pass

    def called(self, line: ModelCalled, asked: int | None, at: float) -> None:
        """Take in a model call with its speaker: who began the first message after the model was asked.

        The order of events tells, not their times: those are when they were told, and a call may take less than that.
        Where a log was shortened it does not say when the model was asked, and nobody is named.
        """
        speaker = ""
        if asked is not None and line.purpose in _SPEAKING:
            speaker = next((name for seq, name in self.spoke if seq > asked), "")
        self.models.append((speaker, at, line))


def traced_reply(logged: Iterable[LoggedEvent], began: float, redaction: Redaction) -> tuple[Traced, ...]:
    """What was done for a reply, in the order in which it began: models, tools, and agents with what they did.

    A tool that is an agent has in it what the agent did; where several agents spoke, what each did lies in it.

    Args:
        logged: The events of its run.
        began: When that began, in Unix seconds.
        redaction: Takes keys out of arguments and of what failed.
    """
    whole, last = _Level(), 0.0
    asked: dict[str, int] = {}  # at which event a model was asked
    for one in logged:
        event, path = one.event, tuple[str, ...]()
        if isinstance(event, NestedEvent):
            event, path = event.event, event.calls
        if isinstance(event, ModelAsked):
            asked.setdefault(event.call_id, one.seq)
        elif isinstance(event, ModelCalled):
            (whole.at(event.within) or whole).called(event, asked.get(event.call_id), one.at)
        elif (level := whole.at(path)) is not None:
            level.apply(event, one.seq, one.at)
        last = max(last, one.at)
    return _drawn(whole, began, last, redaction)


def _drawn(level: _Level, began: float, last: float, redaction: Redaction) -> tuple[Traced, ...]:
    found = [(speaker, _model(line, began + ended, redaction)) for speaker, ended, line in level.models]
    found += [(call.speaker, _tool(call, began, last, redaction)) for call in level.calls.values()]
    found.sort(key=lambda one: one[1].began)
    if len({name for name, _ in found} - {""}) < 2:
        return tuple(one for _, one in found)
    drawn: list[Traced] = []
    for name, group in groupby(found, key=lambda one: one[0]):
        inside = tuple(one for _, one in group)
        drawn += [_agent(name, inside)] if name else inside
    return tuple(drawn)


def _agent(name: str, inside: tuple[Traced, ...]) -> Traced:
    ends = max(one.began + one.seconds for one in inside)
    return Traced(inside[0].id, "agent", name, inside[0].began, ends - inside[0].began, inside=inside)


def _model(line: ModelCalled, ended: float, redaction: Redaction) -> Traced:
    error = line.outcome if line.outcome in {"failed", "interrupted"} else ""
    told = Traced(line.call_id, "model", line.model, ended - line.seconds, line.seconds, error, line.usage, line.first)
    return replace(told, said=one_line(redaction.said(line.said), _LONGEST), outcome=line.outcome, purpose=line.purpose)


def _tool(call: _Call, began: float, last: float, redaction: Redaction) -> Traced:
    told = (call.result.extra or {}) if call.result is not None else {}
    failed = str(told.get("failed") or "")
    seconds = max(0.0, (last if call.ended is None else call.ended) - call.began)
    given = told.get("arguments")
    arguments = shortened(cast("dict[str, Any]", redaction.value(given if isinstance(given, dict) else _read(call))))
    inside = _drawn(call.inside, began, last, redaction) if call.inside is not None else ()
    outcome = "stopped" if failed == "stopped" else ""
    error = "" if outcome else failed
    own = Traced(call.id, "tool", call.name, began + call.began, seconds, error, arguments=arguments)
    said = redaction.machine(call.result.get_text_content()) if error and call.result is not None else ""
    return replace(own, said=one_line(said, _LONGEST), outcome=outcome, inside=inside)


def _read(call: _Call) -> dict[str, Any]:
    try:
        given: Any = json.loads("".join(call.pieces) or "{}")
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}
