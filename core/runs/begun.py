"""What agents that are tools had done when the process of a run ended, by the run's log."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from core.agents.going_on import Begun, open_calls, settled
from core.messages.computed import noted_event
from core.messages.events import CallStarted, ToolStarted
from core.runs.log import ApprovalAsked, ApprovalGiven, NestedEvent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from core.messages.events import Event
    from core.runs.log import LoggedEvent

    Logs = Mapping[tuple[str, ...], Sequence[Event]]


def begun_in(logged: Sequence[LoggedEvent], calls: Collection[str], *, parked: bool = False) -> dict[str, Begun]:
    """What agents had done for calls that have no result; by the call, where there is any of it.

    Args:
        logged: The events of the run.
        calls: Those calls.
        parked: Whether it was ended with all that had happened in the log: what had not started was not made.
    """
    logs = _logs(logged, calls)
    waits = waiting_within(logged)
    return {one: _begun(logs, (one,), (one, *waits.get(one, ())), parked=parked) for one in calls if (one,) in logs}


def noted_before(logged: Iterable[LoggedEvent]) -> list[LoggedEvent]:
    """The log of a run that goes on: what agents within it found that was computed by program stays so."""
    return [
        replace(one, event=replace(one.event, event=noted_event(one.event.event)))
        if isinstance(one.event, NestedEvent)
        else one
        for one in logged
    ]


def without_broken(logged: Sequence[LoggedEvent], calls: Collection[str]) -> list[LoggedEvent]:
    """The log without what comes anew: what an agent was writing for a call that has no result."""
    logs = _logs(logged, calls)
    stays = {id(one) for events in logs.values() for one in settled(events)}
    return [
        one
        for one in logged
        if not isinstance(one.event, NestedEvent) or one.event.calls not in logs or id(one.event.event) in stays
    ]


def _logs(logged: Iterable[LoggedEvent], calls: Collection[str]) -> Logs:
    """The events of each agent, by the calls down to it."""
    found: dict[tuple[str, ...], list[Event]] = defaultdict(list)
    for one in logged:
        if isinstance(one.event, NestedEvent) and one.event.calls[0] in calls:
            found[one.event.calls].append(one.event.event)
    return dict(found)


def waiting_within(logged: Iterable[LoggedEvent]) -> dict[str, tuple[str, ...]]:
    """The calls that wait to be allowed, or were not: by the outermost, those down to it."""
    found: dict[str, tuple[str, ...]] = {}
    for one in logged:
        if isinstance(one.event, ApprovalAsked):
            found[one.event.call_id] = tuple(one.event.within)
        elif isinstance(one.event, ApprovalGiven) and one.event.allowed:
            found.pop(one.event.call_id, None)
    return found


def _begun(logs: Logs, path: tuple[str, ...], asked: tuple[str, ...], *, parked: bool) -> Begun:
    """What the agent at the end of a path had done.

    Args:
        asked: The calls down to the one that waits to be allowed.
    """
    events = settled(logs[path])
    waiting = open_calls(events)
    started = {one.call_id for one in events if isinstance(one, ToolStarted)}
    untouched = waiting - started if parked else frozenset[str]()
    if asked[: len(path)] == path and len(asked) > len(path) and asked[len(path)] in waiting:
        # Calls are decided about one after the other: none behind it was.
        order = [one.call_id for one in events if isinstance(one, CallStarted) and one.call_id in waiting]
        untouched |= {one for one in order[order.index(asked[len(path)]) :] if one not in started}
    within = {one: _begun(logs, (*path, one), asked, parked=parked) for one in waiting if (*path, one) in logs}
    return Begun(events, within, untouched)
