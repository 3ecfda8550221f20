"""Agents that lead other agents: who belongs to them, and how one of them is let speak."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from core.agents.base import Agent
from core.agents.keywords import handed_on
from core.errors import SettingsError
from core.messages.events import CallStarted, MessageFinished, MessageStarted, TextDelta
from core.messages.message import SYSTEM, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.llm.request import Lang, Stream
    from core.messages.events import Event
    from core.messages.message import Message


class MultiAgentHub:
    """What has several agents. A subclass keeps them in `self._agents`, which `checked_members` makes."""

    _agents: list[Agent]

    @property
    def agents(self) -> list[Agent]:
        """The agents.

        Raises:
            SettingsError: There are none, one has no name, or two have the same.
        """
        return checked_members(self, getattr(self, "_agents", ()))

    @property
    def agent_names(self) -> list[str]:
        """Their names, in the same order."""
        return [agent.name or "" for agent in self.agents]

    @property
    def nonuser_agents(self) -> list[Agent]:
        """Those that are no persons."""
        from core.agents.user_agent import UserAgent  # is an agent itself

        return [agent for agent in self.agents if not isinstance(agent, UserAgent)]


def checked_members(owner: object, given: object) -> list[Agent]:
    """The agents that somebody leads, in a list of its own.

    Raises:
        SettingsError: It is no list, there are none, one is no agent, has no name or the owner's or another one's, or
            is the owner.
    """
    what = type(owner).__name__
    if not isinstance(given, Iterable):
        raise SettingsError(f"{what} takes a list of agents, not {given!r}.", hint="Pass agents=[...].")
    members = list(cast("Iterable[Any]", given))
    if not members:
        raise SettingsError(f"{what} has no agents.", hint="Pass agents=[...].")
    taken = {getattr(owner, "name", None)} - {None}
    for member in members:
        if not isinstance(member, Agent):
            raise SettingsError(f"{what} cannot lead this, which is no agent: {member!r}.")
        if member is owner or owner in within(member):
            raise SettingsError(f"{what} cannot be one of its own agents.", hint="Leave it out of agents=[...].")
        if not (member.name or "").strip():
            raise SettingsError(f"An agent of {what} has no name.", hint="Pass name=... to each of them.")
        if member.name in taken:
            raise SettingsError(f"Two agents are named {member.name!r}.", hint="Give each a name of its own.")
        taken.add(member.name)
    return members


def within(agent: object) -> list[object]:
    """Every agent that this one leads or can call, and those that they lead or can call; each once."""
    found: list[object] = []
    waiting = list(_directly_within(agent))
    while waiting:
        one = waiting.pop()
        if not any(one is known for known in found):
            found.append(one)
            waiting += _directly_within(one)
    return found


def circle(agent: object) -> list[object]:
    """The way from an agent over those that it leads or can call back to itself; empty where there is none."""
    ways: list[list[object]] = [[agent]]
    seen: list[object] = []
    while ways:
        way = ways.pop(0)
        for one in _directly_within(way[-1]):
            if one is agent:
                return [*way, agent]
            if not any(one is known for known in seen):
                seen.append(one)
                ways.append([*way, one])
    return []


def _directly_within(agent: object) -> Iterator[object]:
    yield from getattr(agent, "_agents", ())
    for tool in getattr(agent, "function_map", {}).values():
        if (called := getattr(tool, "agent", None)) is not None:
            yield called


async def speech(agent: Agent, messages: Sequence[Message], lang: Lang, **kwargs: Any) -> Stream:
    """What one agent says, under its own name; leaving early stops it."""
    async with aclosing(agent.stream(messages, lang=lang, **handed_on(agent, kwargs))) as events:
        async for event in events:
            unnamed = isinstance(event, MessageStarted) and event.name is None
            yield MessageStarted(agent.name) if unnamed else event


def with_taken(messages: Sequence[Message], ids: Iterable[str]) -> list[Message]:
    """The conversation for one more agent of the same reply, whose calls must not be taken for those there were.

    Args:
        messages: What it reads.
        ids: The calls that other agents have made and it does not read of.
    """
    taken = sorted(ids)
    if not taken or not messages:
        return list(messages)
    last = messages[-1]
    return [*messages[:-1], last.model_copy(update={"extra": {**(last.extra or {}), "taken": taken}})]


class CallIds:
    """The calls of a reply so far."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def note(self, event: object) -> None:
        """Take one event in."""
        if isinstance(event, CallStarted):
            self.taken.add(event.call_id)


def said(speaker: str | None, text: str) -> Iterator[Event]:
    """A sentence that no model wrote."""
    yield MessageStarted(speaker)
    yield TextDelta(text)
    yield MessageFinished("stop")


def as_private(messages: list[Message]) -> list[Message]:
    """What was left out may have been private: whoever decides about a call must know."""
    marked = next((at for at, one in enumerate(messages) if one.role in {SYSTEM, USER}), None)
    if marked is None:
        return messages
    extra = messages[marked].extra or {}
    extra = {**extra, "files": extra.get("files") or [""]}
    return [*messages[:marked], messages[marked].model_copy(update={"extra": extra}), *messages[marked + 1 :]]
