"""What is kept of one reply while it is made: its deps, its hooks, what it has used and what it may use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from core.errors import LimitReachedError, SettingsError, shown
from core.messages.message import USER, Message
from core.tools.run_context import OwnFunctionError, RunContext, called

if TYPE_CHECKING:
    from core.languages import Lang
    from core.llm.request import ChatRequest
    from core.messages.message import Usage
    from core.messages.transcript import Transcript
    from core.tools.base import ToolResult

_HINTS = {"calls": "5", "tokens": "20_000", "cost": "0.10", "seconds": "30"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one reply may use; what is left out has no limit.

    Tokens and cost are known when a model call is over: where they have reached the limit then, the calls of tools that
    it asks for are not made, and no model is asked again. An answer that needs no more is the reply.

    Args:
        calls: Model calls, those of agents that it calls included.
        tokens: Tokens of all of them, questions and answers.
        cost: What they cost, in the currency of the price list.
        seconds: From the question on.

    Raises:
        SettingsError: One is no number above 0.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            given: object = getattr(self, one.name)
            counts = one.name in {"calls", "tokens"}
            kinds = int if counts else (int, float)
            if given is not None and (isinstance(given, bool) or not isinstance(given, kinds) or not given > 0):  # pyright: ignore[reportOperatorIssue] - a number
                kind = "a whole number above 0" if counts else "a number above 0"
                said = f"{one.name} of Limits must be {kind}, not {given!r}."
                raise SettingsError(said, hint=f"Write Limits({one.name}={_HINTS[one.name]}).", name=one.name)


@dataclass(slots=True)
class Meter:
    """What a reply has used; agents that it calls count, too."""

    limits: Limits = field(default_factory=Limits)
    calls: int = 0
    usage: Usage | None = None
    handoffs: int = 0
    confirmed: Counter[str] = field(default_factory=Counter[str])
    began: float = field(default_factory=monotonic)

    def check(self) -> None:
        """Called before each model call.

        Raises:
            LimitReachedError: It may not be made; key `call_limit`, `token_limit`, `cost_limit` or `time_limit`.
        """
        limits = self.limits
        if limits.calls is not None and self.calls >= limits.calls:
            raise _reached(f"The reply has taken its {limits.calls} model calls.", "call_limit", calls=limits.calls)
        self.check_used()
        if limits.seconds is not None and monotonic() - self.began >= limits.seconds:
            raise out_of_time(limits.seconds)

    def check_used(self) -> None:
        """Called before the tools that a model asks for run: what has used too much goes no further.

        Raises:
            LimitReachedError: key `token_limit` or `cost_limit`.
        """
        limits, used = self.limits, self.usage
        if limits.tokens is not None and used is not None and used.total_tokens >= limits.tokens:
            said = f"The reply has taken {used.total_tokens} tokens of {limits.tokens}."
            raise _reached(said, "token_limit", tokens=limits.tokens)
        if limits.cost is not None and used is not None and (used.cost or 0.0) >= limits.cost:
            said = f"The reply has cost {used.cost:.4g} of {limits.cost:.4g}."
            raise _reached(said, "cost_limit", cost=used.cost, limit=limits.cost)

    def pay(self, usage: Usage | None, calls: int = 1) -> None:
        """Add what model calls have used."""
        self.calls += calls
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage


def _reached(said: str, key: str, **details: Any) -> LimitReachedError:
    return LimitReachedError(said, hint="Raise its limit, or ask for less.", key=key, **details)


def out_of_time(seconds: float) -> LimitReachedError:
    """The error of a reply that took too long."""
    said = f"The reply has taken its {seconds:g} seconds."
    return _reached(said, "time_limit", minutes=round(seconds / 60, 1), seconds=seconds)


Hook: TypeAlias = Callable[..., Any]
HookName: TypeAlias = Literal[
    "before_model", "after_model", "before_tool", "after_tool", "before_reply", "after_reply", "check"
]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions of the program's around the steps of a reply, each list in the order in which it runs.

    A function may begin with a `RunContext`; what it returns takes the place of what it was given, `None` leaves it.

    Args:
        before_model: Given the `ChatRequest`.
        after_model: Given the messages of the model's turn, to look at.
        before_tool: Given the tool's name and the arguments of the call.
        after_tool: Given the tool's name and its `ToolResult`.
        before_reply: Given the conversation, before anything is made of it.
        after_reply: Given the `Reply`.
        check: Given the output; it raises `ModelRetry` to send it back.
    """

    before_model: tuple[Hook, ...] = ()
    after_model: tuple[Hook, ...] = ()
    before_tool: tuple[Hook, ...] = ()
    after_tool: tuple[Hook, ...] = ()
    before_reply: tuple[Hook, ...] = ()
    after_reply: tuple[Hook, ...] = ()
    check: tuple[Hook, ...] = ()

    def joined(self, other: Hooks) -> Hooks:
        """Both: these first."""
        names = [one.name for one in fields(self)]
        return Hooks(**{name: getattr(self, name) + getattr(other, name) for name in names})


class OutputCheck(Protocol):
    """What an answer must be, beyond text."""

    settled: bool

    @property
    def is_data(self) -> bool:
        """Whether it is JSON, in which nothing is marked."""
        ...

    def generate(self, model: object, *, offers_tools: bool) -> Mapping[str, Any]:
        """What of `generate_cfg` makes the model answer so."""
        ...

    def rewritten(self, before: str, after: str) -> None:
        """Note that a guard put another text in the place of one."""
        ...

    def guarded(self, text: str) -> str:
        """What guards have made of a text."""
        ...

    async def sent_back(self, text: str, state: RunState) -> str:
        """What the model is told where its answer does not fit; "" where it does."""
        ...


@dataclass(slots=True, eq=False)
class RunState:
    """One reply.

    Args:
        deps: What the program passed for its own functions.
        meter: What it uses.
        hooks: Around its steps.
        output: What its answer must be; `None` for any text.
        messages: The conversation so far.
        lang: Its language.
        files: Those of the question, by path: whether one must be read, or may fail, since its folder brought it.

    Attributes:
        data: What tools gave to the program, by call.
        attempts: How often each tool was sent back to the model.
        evidence: The passages that were found, in the order of their numbers.
        stopped: Why a guard ended the reply; "" where none did.
    """

    deps: Any = None
    meter: Meter = field(default_factory=Meter)
    hooks: Hooks = field(default_factory=Hooks)
    output: OutputCheck | None = None
    messages: Sequence[Message] = ()
    lang: Lang = "en"
    files: Mapping[str, Literal["must", "may_fail"]] = field(default_factory=dict[str, Literal["must", "may_fail"]])
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    attempts: Counter[str] = field(default_factory=Counter[str])
    evidence: Sequence[Any] = ()
    stopped: str = ""

    def context(self, tool: str = "", call_id: str = "", attempt: int = 0) -> RunContext[Any]:
        """What a function of the program's is told."""
        question = next((one.get_text_content() for one in reversed(self.messages) if one.role == USER), "")
        return RunContext(
            self.deps,
            question,
            tuple(self.messages),
            self.lang,
            self.meter.usage,
            self.meter.calls,
            tool,
            call_id,
            attempt,
        )

    def inner(self) -> RunState:
        """The state of an agent that is called as a tool: its own, but for deps and what may be used."""
        return RunState(self.deps, self.meter)

    def with_hooks(self, hooks: Hooks) -> RunState:
        """The same reply for one of its agents, with that agent's hooks after those that hold for all of it."""
        return replace(self, hooks=self.hooks.joined(hooks))

    async def before_model(self, request: ChatRequest) -> ChatRequest:
        """The request, as the program's functions want it."""
        return await self._passed("before_model", request)

    async def after_model(self, turn: Transcript) -> None:
        """Show the program's functions what the model said."""
        messages = turn.messages() if self.hooks.after_model else []
        for hook in self.hooks.after_model:
            await called(hook, self.context(), messages)

    async def before_tool(self, tool: str, call_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call, as the program's functions want them."""
        for hook in self.hooks.before_tool:
            found: object = await called(hook, self.context(tool, call_id), tool, arguments)
            if found is not None and not isinstance(found, dict):
                raise _no_such(hook, "before_tool", "a dict of arguments", found)
            arguments = arguments if found is None else cast("dict[str, Any]", found)
        return arguments

    async def after_tool(self, tool: str, call_id: str, result: ToolResult) -> ToolResult:
        """The result of a call, as the program's functions want it."""
        for hook in self.hooks.after_tool:
            found: object = await called(hook, self.context(tool, call_id), tool, result)
            if isinstance(found, str):
                result = replace(result, text=found)
            elif found is not None and not isinstance(found, type(result)):
                raise _no_such(hook, "after_tool", "a ToolResult or a text", found)
            elif found is not None:
                result = found
        return result

    async def before_reply(self, messages: list[Message]) -> list[Message]:
        """The conversation, as the program's functions want it."""
        return await self._passed("before_reply", messages)

    async def _passed(self, name: HookName, value: Any) -> Any:
        context = self.context()
        for hook in getattr(self.hooks, name):
            found: Any = await called(hook, context, value)
            if found is None:
                continue
            is_list = isinstance(value, list)
            if type(found) is not type(value) or (is_list and not all(isinstance(one, Message) for one in found)):
                raise _no_such(hook, name, "a list of messages" if is_list else f"a {type(value).__name__}", found)
            value = found
        return value


def _no_such(hook: Hook, where: str, wanted: str, found: object) -> OwnFunctionError:
    name = getattr(hook, "__name__", type(hook).__name__)
    said = f"{where}: {name!r} returned {shown(found)}, and {wanted} takes the place of what it was given."
    return OwnFunctionError(said, hint=f"Return {wanted}, or None.", name=where)


def state_of(context: Mapping[str, Any]) -> RunState | None:
    """The state of the reply among what tools are passed, if it has one."""
    found = context.get("run_state")
    return found if isinstance(found, RunState) else None
