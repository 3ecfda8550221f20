"""What a tool, an instruction or a check of the program's own is told of the reply that it is part of."""

from __future__ import annotations

import inspect
from asyncio import to_thread
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

from core.bridge.cancellation import contained
from core.errors import SettingsError, ToolError, shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from core.languages import Lang
    from core.messages.message import Message, Usage

Deps = TypeVar("Deps")
RETRIES: Final = 2
"""How often a tool, or an output, is sent back to the model unless it says otherwise."""


class ModelRetry(ToolError):  # noqa: N818 - what the model is told, as other libraries call it
    """Raised by a tool, a check or a function of the output: the model is told why, and tries again.

    Args:
        message: What is wrong, and what would be right, for the model.
    """

    key = "tool_failed"


class OwnFunctionError(SettingsError):
    """A function of the program's wants something else than it is given, or returns something else than it may.

    The reply ends: the program learns of it, and not the model.
    """


@dataclass(frozen=True, slots=True)
class RunContext(Generic[Deps]):
    """The reply that a function of the program's is called for: the first parameter of one that wants to know.

    Args:
        deps: What `ask` was given as `deps`.
        question: The text of the user's last message.
        messages: The conversation so far.
        lang: The language of the reply.
        usage: Tokens and cost of the reply so far.
        calls: How many model calls it has made.
        tool: The tool that is called; "" outside of one.
        call_id: Its call.
        attempt: How often the tool, or the output, was sent back to the model in this reply before.
    """

    deps: Deps
    question: str = ""
    messages: Sequence[Message] = ()
    lang: Lang = "en"
    usage: Usage | None = None
    calls: int = 0
    tool: str = ""
    call_id: str = ""
    attempt: int = 0
    _report: Callable[..., None] | None = field(default=None, repr=False, compare=False)

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Tell whoever follows how far the tool is.

        Args:
            text: In words.
            done: How much of it.
            total: Of how much.
        """
        if self._report is not None:
            self._report(text, done, total)

    def reporting(self, report: Callable[..., None] | None) -> RunContext[Deps]:
        """The same, whose `progress` is told to `report`."""
        return replace(self, _report=report)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of a function. Raises SettingsError where Python does not tell them."""
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError as error:
        hint = "Write a function around it whose parameters have types."
        raise SettingsError(f"Python does not tell the parameters of {function!r}.", hint=hint) from error


def context_parameter(function: Callable[..., Any], hints: Mapping[str, Any] | None = None) -> tuple[str, Any] | None:
    """The first parameter of a function and the type of its deps, where that parameter is a `RunContext`.

    Args:
        function: Any; a method's `self` is passed over.
        hints: Its types, where they are known.

    Raises:
        SettingsError: A later parameter is one.
    """
    if hints is None:
        try:
            hints = get_type_hints(function if inspect.isroutine(function) else type(function).__call__)
        except (NameError, TypeError, AttributeError):
            return None
    named = [one for one in parameters_of(function) if one.name not in {"self", "cls"}]
    found: tuple[str, Any] | None = None
    for place, parameter in enumerate(named):
        kind = hints.get(parameter.name)
        if kind is RunContext or get_origin(kind) is RunContext:
            if place:
                said = f"The parameter {parameter.name!r} of {_name(function)!r} is a RunContext in place {place + 1}."
                hint = "Write one, as the first parameter." if found else "Write it as the first parameter."
                raise SettingsError(said, hint=hint, name=parameter.name)
            found = parameter.name, next(iter(get_args(kind)), Any)
    return found


def check_deps(function: Callable[..., Any], wanted: Any, given: object) -> None:
    """Check what was passed as `deps` against the type that a function wants.

    Raises:
        SettingsError: It is of another type.
    """
    kind = get_origin(wanted) or wanted
    if not isinstance(kind, type) or kind is object or getattr(kind, "_is_protocol", False) or _fits(given, kind):
        return
    wants = kind.__name__
    got = "nothing" if given is None else shown(given)
    said = f"{_name(function)!r} wants deps of the type {wants}, and was given {got}."
    raise OwnFunctionError(said, hint=f"Write ask(..., deps={wants}(...)).", name="deps")


def _fits(given: object, kind: type) -> bool:
    try:
        return isinstance(given, kind)
    except TypeError:  # a TypedDict, say
        return True


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)


async def called(function: Callable[..., Any], context: RunContext[Any], *args: Any) -> Any:
    """What a function of the program's gives for some arguments, with the context before them where it wants that.

    A plain `def` runs in a thread of its own, so that it may wait.

    Raises:
        SettingsError: It wants deps of another type.
    """
    wants = context_parameter(function)
    if wants is not None:
        check_deps(function, wants[1], context.deps)
        args = (context, *args)
    with contained():
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004 - an object whose call is `async def`
            return await cast("Awaitable[Any]", function(*args))
        found: Any = await to_thread(function, *args)
        return await found if inspect.isawaitable(found) else found
