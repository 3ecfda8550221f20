"""Where an agent that is a tool of another stood when its process ended, so that it goes on there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.agents.protocol import nested_agents
from core.messages.events import CallStarted, Event, MessageFinished, ToolFinished, ToolStarted
from core.messages.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.message import Message
    from core.tools.base import BaseTool


@dataclass(frozen=True, slots=True)
class Begun:
    """What an agent had done for a call that has no result.

    Args:
        events: Those of its reply, as `settled` leaves them.
        within: The same of the agents that it had called, by their calls.
        untouched: Its calls that surely were not made: they wait to be allowed.
    """

    events: tuple[Event, ...]
    within: Mapping[str, Begun] = field(default_factory=dict[str, "Begun"])
    untouched: frozenset[str] = frozenset()

    @property
    def messages(self) -> list[Message]:
        """The reply so far."""
        return Transcript(self.events).messages()

    @property
    def may_have_run(self) -> frozenset[str]:
        """Its calls without a result that may have been made."""
        return open_calls(self.events) - self.untouched


def settled(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events up to the last result of a call, and calls behind it that are whole: what else there is comes anew.

    Which calls began after that result stays, too: they may have been made.
    """
    results = [at for at, one in enumerate(events) if isinstance(one, ToolFinished)]
    after = results[-1] + 1 if results else 0
    ends = [at for at, one in enumerate(events) if at >= after and isinstance(one, MessageFinished)]
    calls = any(isinstance(one, CallStarted) for one in events[after : ends[-1]]) if ends else False
    return tuple(one for at, one in enumerate(events) if calls or at < after or isinstance(one, ToolStarted))


def open_calls(events: Sequence[Event]) -> frozenset[str]:
    """The calls that are whole and have no result."""
    return frozenset(str((one.extra or {})["function_id"]) for one in Transcript(events).unanswered())


def goes_on(agent: object) -> bool:
    """Whether the replies of an agent, and of those that it leads, are made by Parlour's own loop, which can go on."""
    ours = __name__.rpartition(".")[0]
    for one in (agent, *nested_agents(agent)):
        made_by = next((cls for cls in type(one).__mro__ if {"_run", "_stream_reply"} & set(vars(cls))), type(one))
        if made_by.__module__ == f"{ours}.base" or made_by.__module__.rpartition(".")[0] != ours:
            return False
    return True


def has_acted(tool: object, begun: Begun | None) -> bool:
    """Whether an agent that is a tool has begun a call that must not be made twice."""
    if begun is None:
        return False
    tools: Mapping[str, BaseTool] = getattr(getattr(tool, "agent", None), "function_map", {})
    names = {one.call_id: one.name for one in begun.events if isinstance(one, CallStarted)}
    for one in begun.events:
        made = tools.get(names.get(one.call_id, "")) if isinstance(one, ToolStarted) else None
        if made is None or made.idempotent or not isinstance(one, ToolStarted):
            continue
        within = begun.within.get(one.call_id)
        if within is None or has_acted(made, within):
            return True
    return False
