"""Who decides whether a call is made: rules, what the tool may do, what the conversation has seen, and the user.

>>> guard = Guard(Policy(deny=("mcp:*:delete_*",)), ask=on_the_page)
>>> ToolRunner(tools, guard=guard)
"""

from __future__ import annotations

import inspect
import json
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from core.bridge.endings import contained
from core.errors import ParlourError, SettingsError
from core.tools.seen import Seen

if TYPE_CHECKING:
    from core.messages.message import Message
    from core.tools.base import BaseTool

Reason: TypeAlias = Literal["writes", "runs_code", "destructive", "unknown_address", "rule", "always", "changed"]
Mode: TypeAlias = Literal["writes", "always", "never"]
Why: TypeAlias = Literal["user", "timeout", "unattended", "rule", "policy"]
Verdict: TypeAlias = Literal["run", "refuse"] | Reason

_MODES = ("writes", "always", "never")
_LASTING = frozenset({"writes", "runs_code", "always"})  # what is let run in a chat is asked no more for these reasons
_SOMEBODY_ELSES = "mcp:"  # such a tool's word for what it does is not enough


@dataclass(frozen=True, slots=True)
class Asking:
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


Ask: TypeAlias = Callable[[Asking], Awaitable[Decision] | Awaitable[bool] | Decision | bool]


@dataclass(frozen=True, slots=True)
class Policy:
    """What runs, what asks, and what is refused, without anybody being asked about that.

    Args:
        mode: `writes` asks for what changes something or runs code, `always` for everything, `never` for nothing.
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

    def verdict(self, tool: BaseTool, arguments: Mapping[str, Any], seen: Seen) -> Verdict:
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

    def _reason(self, tool: BaseTool, arguments: Mapping[str, Any], seen: Seen) -> Reason | None:
        name = tool.full_name
        if tool.changed:
            return "changed"
        if _matches(name, self.ask):
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
        return "always" if self.mode == "always" else None


class Guard:
    """Stands before every call of a run.

    Args:
        policy: The rules.
        ask: Asks the user. Without it nobody is there, and what would be asked is refused.
    """

    outer: Guard | None = None  # the guard in whose place it stands, and which is heard whenever it is

    def __init__(self, policy: Policy, ask: Ask | None = None) -> None:
        self.policy = policy
        self._ask = ask

    @classmethod
    def of(cls, given: Guard | Policy | Ask | None) -> Guard | None:
        """The guard of what a program passes as `approval`: a guard, rules without anybody to ask, or who is asked."""
        match given:
            case None | Guard():
                return given
            case Policy():
                return cls(given)
            case _ if callable(given):
                return cls(Policy(), given)
            case _:
                raise SettingsError("`approval` is a Guard, a Policy, or a function that decides.")

    async def rules(self) -> Policy:
        """The rules as they are now."""
        return self.policy

    def stands_for(self, other: Guard) -> bool:
        """Whether it is `other`, or decides nothing without it."""
        return self is other or (self.outer is not None and self.outer.stands_for(other))

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
        seen = Seen.of(messages)
        verdict = (await self.rules()).verdict(tool, arguments, seen)
        while verdict not in ("run", "refuse"):
            if self._ask is None:
                return Decision(allowed=False, why="unattended")
            asking = _asking(tool, call_id, arguments, verdict)
            decision = await _asked(self._ask, asking)
            # While the user thinks, rules may change, and what a server says of its tool: another question then.
            verdict = (await self.rules()).verdict(tool, arguments, seen)
            if not decision.allowed or verdict != "changed" or _asking(tool, call_id, arguments, verdict) == asking:
                return decision if verdict != "refuse" else Decision(allowed=False, why="rule")
        return Decision(verdict == "run", why="policy" if verdict == "run" else "rule")


def _asking(tool: BaseTool, call_id: str, arguments: Mapping[str, Any], reason: Reason) -> Asking:
    shown = json.loads(json.dumps(dict(arguments)))  # what is shown cannot change what runs
    wants = {"en": tool.wants(arguments, "en"), "zh": tool.wants(arguments, "zh")}
    return Asking(call_id, tool.name, shown, reason, wants, tool.addresses(arguments))


def exactly(name: str) -> str:
    """The pattern that one name matches and no other, whatever signs are in it."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)


async def _asked(ask: Ask, asking: Asking) -> Decision:
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
