"""The guard of what runs now, which agents and tools pass on to whatever they call without doing anything.

It travels in a context variable. A generator runs in the context of whoever takes its next item, so the variable is set
for each of its steps and no longer: agents that take turns in one thread do not see each other's guard. Threads that a
program starts itself begin without it, as with every context variable, unless they run in a copy of the context
(`contextvars.copy_context().run`); else `approval=` is passed on by hand.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from core.bridge.sync import on_loop
from core.messages.message import USER, Message
from core.tools.approval import Decision, Guard, Policy

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence

    from core.tools.approval import Ask
    from core.tools.base import BaseTool

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Guarded:
    """What runs within one reply, or one call of a tool.

    Args:
        guard: Who decides.
        messages: The conversation that the reply or the call is part of.
    """

    guard: Guard
    messages: Sequence[Message] = ()


_now: ContextVar[Guarded | None] = ContextVar("what runs now, and its guard", default=None)


def guard_for(approval: Guard | Policy | Ask | None) -> Guard | None:
    """Who decides about calls: `approval`, and within a guarded reply its guard as well.

    Raises:
        SettingsError: `approval` is nothing that decides.
    """
    own, now = Guard.of(approval), _now.get()
    if now is None:
        return own
    if own is None:
        return PassedOn(now.guard, now.messages)
    if own.stands_for(now.guard):
        return own
    return now.guard if now.guard.stands_for(own) else BothGuards(now.guard, own)


@contextmanager
def under(guarded: Guarded | None) -> Generator[None, None, None]:
    """Let its guard decide about all that is called meanwhile; nobody does with `None`."""
    token = _now.set(guarded)
    try:
        yield
    finally:
        _now.reset(token)


async def events_under(guarded: Guarded, events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The same events, each made under the guard; closing it closes them."""
    try:
        while True:
            token = _now.set(guarded)
            try:
                event = await anext(events)
            except StopAsyncIteration:
                return
            finally:
                _now.reset(token)
            yield event
    finally:
        with under(guarded):
            await events.aclose()


def items_under(guarded: Guarded, items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The same items, each made under the guard; closing it closes them."""
    try:
        while True:
            token = _now.set(guarded)
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                _now.reset(token)
            yield item
    finally:
        with under(guarded):
            items.close()


class PassedOn(Guard):
    """The guard of a reply, for an agent within it that was told nothing.

    What such an agent is asked may come from anywhere: words of a user that the reply was not asked itself count as
    somebody else's, and as private.

    Args:
        outer: The guard.
        messages: The conversation that it was part of.
    """

    def __init__(self, outer: Guard, messages: Sequence[Message]) -> None:
        super().__init__(outer.policy)
        self.outer = self._guard = outer
        self._before = messages

    async def decide(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        """What the guard decides."""
        known = {one.get_text_content() for one in self._before if one.role == USER}
        own = [one if one.role != USER or one.get_text_content() in known else _heard(one) for one in messages]
        return await self._guard.decide(tool, call_id, arguments, [*self._before, *own])


class OnThisLoop(Guard):
    """A guard that decides on the loop that this is made on, whichever loop a call is made on.

    Args:
        outer: The guard.
    """

    def __init__(self, outer: Guard) -> None:
        super().__init__(outer.policy)
        self.outer = self._guard = outer
        self._loop = asyncio.get_running_loop()

    async def decide(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        """What the guard decides. Raises RuntimeError where its loop waits for this call."""
        return await on_loop(self._loop, lambda: self._guard.decide(tool, call_id, arguments, messages))


class BothGuards(Guard):
    """What both allow is made: an agent within a guarded reply may make it stricter, and never looser.

    Args:
        outer: The guard of the reply; it sees what the other one has edited.
        own: That of the agent within.
    """

    def __init__(self, outer: Guard, own: Guard) -> None:
        super().__init__(_joined(outer.policy, own.policy))
        self.outer = self._guard = outer
        self._own = own

    async def decide(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        """Decide about one call. Arguments that the outer one edits are shown to the other again."""
        messages = list(messages)
        first = await self._own.decide(tool, call_id, arguments, messages)
        if not first.allowed:
            return first
        wanted = arguments if first.arguments is None else first.arguments
        last = await self._guard.decide(tool, call_id, wanted, messages)
        if not last.allowed or last.arguments is None:
            return last if not last.allowed or first.arguments is None else first
        again = await self._own.decide(tool, call_id, last.arguments, messages)
        if again.allowed and again.arguments is not None:  # it goes round: neither has agreed to what the other wants
            return Decision(allowed=False, why=again.why)
        return last if again.allowed else again


def _heard(message: Message) -> Message:
    return message.model_copy(update={"extra": {**(message.extra or {}), "heard": True, "files": [""]}})


def _joined(outer: Policy, own: Policy) -> Policy:
    """The rules of both as far as they refuse; the rest is asked of each."""
    return Policy(outer.mode, outer.allow, outer.ask, (*outer.deny, *own.deny), outer.lasting)
