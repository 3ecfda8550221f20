"""Who decides whether a call is made: rules, what the tool may do, what the conversation has seen, and the user.

The guard of what runs now is passed on to whatever agents and tools call, without their doing anything.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from core.bridge.cancellation import contained
from core.bridge.sync import on_loop
from core.errors import ParlourError, SettingsError, shown
from core.messages.message import USER, Message
from core.tools.taint import Taint

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence

    from core.messages.message import Message
    from core.tools.base import BaseTool


Reason: TypeAlias = Literal[
    "writes", "runs_code", "destructive", "unknown_address", "rule", "always", "changed", "expensive"
]
Mode: TypeAlias = Literal["writes", "always", "never"]
Why: TypeAlias = Literal["user", "timeout", "unattended", "compared", "rule", "policy", "made"]
Verdict: TypeAlias = Literal["run", "refuse"] | Reason

_MODES = ("writes", "always", "never")
_LASTING = frozenset(
    {"writes", "runs_code", "always", "expensive"}
)  # what is let run in a chat is asked no more for these reasons
_SOMEBODY_ELSES = "mcp:"  # such a tool's word for what it does is not enough


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What the user is asked.

    Args:
        call_id: The call that waits.
        name: The tool's name for models.
        arguments: What it would be called with.
        reason: Why there is a question at all; `destructive` outranks every other.
        wants: Completes "Parlour wants to …", by language.
        addresses: Web addresses that the call would reach.
    """

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    reason: Reason
    wants: Mapping[str, str]
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call is made.

    Args:
        allowed: Only `True` itself is a yes.
        arguments: Other arguments, where the user edited them.
        why: Who or what decided.
    """

    allowed: bool
    arguments: Mapping[str, Any] | None = None
    why: Why = "user"


class ApprovalFailedError(ParlourError):
    """Whoever decides about calls raised: the call was not made, and the reply ends. The cause is `__cause__`.

    Args:
        name: The tool that would have been called.
        error: What was raised.
    """

    def __init__(self, name: str, error: Exception) -> None:
        said = f"Deciding about a call of {name!r} failed with {type(error).__name__}: {error}"
        hint = "The call was not made: mend what is passed as `approval`."
        super().__init__(said if said.endswith((".", "!", "?")) else f"{said}.", hint=hint, name=name)


Ask: TypeAlias = Callable[[ApprovalRequest], Awaitable[Decision] | Awaitable[bool] | Decision | bool]


@dataclass(frozen=True, slots=True)
class Policy:
    """What runs, what asks, and what is refused, without anybody being asked about that.

    Args:
        mode: `writes` asks for what changes something, runs code or costs much, `always` for everything, `never` for
            nothing.
        allow: Patterns of tools that run without a question.
        ask: Patterns of tools that always ask; they outrank `allow`.
        deny: Patterns of tools that never run; they outrank everything.
        lasting: Full names of tools that the user let run in this chat. What may destroy something or reaches an
            unknown address asks all the same.

    A pattern is compared with the tool's full name, `*` stands for anything: `calculator`, `mcp:*:delete_*`. Those that
    ask or deny do so whatever the case of the letters. `exactly` makes the pattern of one name.

    Raises:
        SettingsError: There is no such mode, or patterns are one text.
    """

    mode: Mode = "writes"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    lasting: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise SettingsError(f"There is no mode {self.mode!r} of asking.", hint=f"Known: {', '.join(_MODES)}.")
        if any(isinstance(patterns, str) for patterns in (self.allow, self.ask, self.deny, self.lasting)):
            raise SettingsError("Rules are lists of patterns, not one text.", hint='Write ("calculator",).')

    def verdict(self, tool: BaseTool, arguments: Mapping[str, Any], seen: Taint) -> Verdict:
        """Of a call of `tool` with `arguments` after what was `seen`: `run`, `refuse`, or why the user is asked."""
        name = tool.full_name
        if _matches(name, self.deny):
            return "refuse"
        reason = self._reason(tool, arguments, seen)
        if reason is None:
            return "run"
        if tool.destroys(arguments):
            return "destructive"
        return "run" if reason in _LASTING and name in self.lasting else reason

    def _reason(self, tool: BaseTool, arguments: Mapping[str, Any], seen: Taint) -> Reason | None:
        name = tool.full_name
        if tool.changed:
            return "changed"
        if tool.needs_consent or _matches(name, self.ask):
            return "rule"
        if any(fnmatchcase(name, pattern) for pattern in self.allow) or self.mode == "never":
            return None
        # The first, since "always" is no answer to it.
        if seen.private and any(not seen.knows(url) for url in tool.addresses(arguments)):
            return "unknown_address"
        if tool.runs_code:
            return "runs_code"
        if tool.destroys(arguments) or tool.changes(arguments) or _is_unknown(tool):
            return "writes"
        if tool.costs_much(arguments):
            return "expensive"
        return "always" if self.mode == "always" else None


class Guard:
    """Stands before every call of a run.

    Args:
        policy: The rules.
        ask: Asks the user, where the rules want that. Without it nobody is there, and what would be asked is refused.
    """

    outer: Guard | None = None  # the guard in whose place it stands, and which is heard whenever it is

    def __init__(self, policy: Policy, ask: Ask | None = None) -> None:
        self.policy = policy
        self._ask = ask

    @classmethod
    def of(cls, given: Guard | Policy | Ask | None) -> Guard | None:
        """The guard of what a program passes as `approval`: a guard, rules without anybody to ask, or who is asked.

        A function alone is asked about each call: it was given no rules that could let one run without it.
        """
        match given:
            case None | Guard():
                return given
            case Policy():
                return cls(given)
            case _ if callable(given) and not isinstance(given, type):
                return cls(Policy("always"), given)
            case _:
                said = f"approval must be a Guard, a Policy or a function that decides, not {shown(given)}."
                raise SettingsError(said, hint="Write approval=Policy().", name="approval")

    @property
    def asks(self) -> Ask | None:
        """Who is asked; `None` where nobody is there."""
        return self._ask

    async def rules(self) -> Policy:
        """The rules as they are now."""
        return self.policy

    def wraps(self, other: Guard) -> bool:
        """Whether it is `other`, or decides nothing without it."""
        return self is other or (self.outer is not None and self.outer.wraps(other))

    async def decide(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        """Decide about one call, by asking where the rules want that; cancelled means that it is not made.

        Args:
            tool: What would run.
            call_id: The call.
            arguments: Checked against the tool's parameters; edited ones that come back are not yet.
            messages: The conversation so far.

        Raises:
            ApprovalFailedError: Asking raised; the call is not made, and the reply ends.
        """
        seen = Taint.of(messages)
        verdict = (await self.rules()).verdict(tool, arguments, seen)
        while verdict not in ("run", "refuse"):
            if self._ask is None:
                return Decision(allowed=False, why="unattended")
            asking = _asking(tool, call_id, arguments, verdict)
            decision = await decided_by(self._ask, asking)
            # While the user thinks, rules may change, and what a server says of its tool: another question then.
            verdict = (await self.rules()).verdict(tool, arguments, seen)
            if not decision.allowed or verdict != "changed" or _asking(tool, call_id, arguments, verdict) == asking:
                return decision if verdict != "refuse" else Decision(allowed=False, why="rule")
        return Decision(verdict == "run", why="policy" if verdict == "run" else "rule")


def _asking(tool: BaseTool, call_id: str, arguments: Mapping[str, Any], reason: Reason) -> ApprovalRequest:
    shown = json.loads(json.dumps(dict(arguments)))  # what is shown cannot change what runs
    wants = {"en": tool.wants(arguments, "en"), "zh": tool.wants(arguments, "zh")}
    return ApprovalRequest(call_id, tool.name, shown, reason, wants, tool.addresses(arguments))


def escape_pattern(name: str) -> str:
    """The pattern that one name matches and no other, whatever signs are in it."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


async def decided_by(ask: Ask, asking: ApprovalRequest) -> Decision:
    """The user's decision; whatever is not plainly a yes is a no.

    Raises:
        ApprovalFailedError: `ask` raised.
    """
    try:
        with contained():
            answer: object = ask(asking) if _is_async(ask) else await to_thread(ask, asking)
            if inspect.isawaitable(answer):
                answer = await answer
    except Exception as error:
        raise ApprovalFailedError(asking.name, error) from error
    if isinstance(answer, Decision):
        return answer if answer.allowed is True else Decision(allowed=False, why=answer.why)
    return Decision(allowed=answer is True)


def _is_async(ask: Ask) -> bool:
    return inspect.iscoroutinefunction(ask) or inspect.iscoroutinefunction(getattr(ask, "__call__", None))  # noqa: B004 - an object whose call is `async def`


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns)


def _is_unknown(tool: BaseTool) -> bool:
    """Whether nobody the user trusts says what it does."""
    return tool.full_name.startswith(_SOMEBODY_ELSES) and not tool.trusted


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
        return NestedGuard(now.guard, now.messages)
    if own.wraps(now.guard):
        return own
    return now.guard if now.guard.wraps(own) else BothGuards(now.guard, own)


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


class NestedGuard(Guard):
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


class LoopBoundGuard(Guard):
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


_within: ContextVar[tuple[str, ...]] = ContextVar(
    "calls within a call, down to the one that is decided about", default=()
)


def asked_within() -> tuple[str, ...]:
    """While something is decided: the calls within the one that the user sees, down to the one that it is about."""
    return _within.get()


class OneQuestion(Guard):
    """Passes every decision on to another guard as one about the outer call, one at a time.

    It belongs to the loop that it is made on; a call on another loop (a tool in a thread that asks an agent) waits for
    what is decided there.

    Args:
        outer: Who decides.
        call_id: The call that the user sees.
    """

    def __init__(self, outer: Guard, call_id: str) -> None:
        super().__init__(outer.policy)
        self.outer = self._guard = outer
        self._call_id = call_id
        self._loop = asyncio.get_running_loop()
        # Two questions at once about one call would take each other's place, and one would never be answered.
        self._turn = asyncio.Lock()  # noqa: TID251 - said above
        self._deciding: asyncio.Task[Decision] | None = None
        self._is_over = False
        self._waited, self._since = 0.0, 0.0  # seconds; monotonic time, 0.0 while nothing is decided

    @property
    def waited(self) -> float:
        """Seconds spent on decisions so far."""
        return self._waited + (monotonic() - self._since if self._since else 0.0)

    def close(self) -> None:
        """The call is over: a thread that it left behind is asked about no more, and may do nothing."""
        self._is_over = True
        if self._deciding is not None:
            self._deciding.cancel()

    async def decide(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        """What the outer guard decides. Raises RuntimeError where its loop waits for this call."""
        calls = (call_id, *_within.get())
        return await on_loop(self._loop, lambda: self._decide(calls, tool, arguments, messages))

    async def _decide(
        self, calls: tuple[str, ...], tool: BaseTool, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        async with self._turn:
            if self._is_over:
                return Decision(allowed=False, why="unattended")
            self._since = monotonic()
            token = _within.set(calls)
            try:
                self._deciding = asyncio.create_task(self._guard.decide(tool, self._call_id, arguments, messages))
                return await self._decided(self._deciding)
            finally:
                _within.reset(token)
                self._waited, self._since = self.waited, 0.0

    async def _decided(self, deciding: asyncio.Task[Decision]) -> Decision:
        try:
            return await deciding
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if not self._is_over or (asking is not None and asking.cancelling()):
                raise
            return Decision(allowed=False, why="unattended")
        finally:
            deciding.cancel()  # whoever asked was cancelled: it is no question any more
            self._deciding = None
