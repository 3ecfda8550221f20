"""What a program adds to an agent it has made: tools, instructions, checks, guards, and functions around each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from core.agents.extras import Extras
from core.errors import SettingsError, shown
from core.tools.run_context import context_parameter, parameters_of

if TYPE_CHECKING:
    from core.tools.base import BaseTool
    from core.tools.from_function import FunctionTool
    from core.tools.run_state import HookName

Added = TypeVar("Added", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class Extends:
    """Decorators of an agent: each adds a function to it, for all its replies from then on, and returns it unchanged.

    A function may begin with a `RunContext`, and may be `async def`; a plain `def` runs in a thread of its own. They
    run in this order, and several of a kind in the order in which they were added: `before_reply`, `input_guard`,
    `instructions`, `toolset`; for each model call `before_model` and `after_model`; for each call of a tool
    `before_tool`, then whoever approves, then `after_tool`; of the answer `output_guard`, then `check`; `after_reply`.
    """

    extras: Extras | None = None
    """What was added."""
    function_map: dict[str, BaseTool]

    def instructions(self, function: Added) -> Added:
        """Add instructions that are made for each reply: the function returns a text for the system message, or `None`.

        Raises:
            SettingsError: It takes what it is not given.
        """
        check_function("instructions", function, 0, "() -> str")
        self._extras().instructions.append(function)
        return function

    def tool(self, function: Callable[P, R]) -> FunctionTool[P, R]:
        """Add a function as a tool; `@tool(...)` below it has the options.

        Raises:
            SettingsError: A parameter has no type, or one that no JSON can fill.
        """
        from core.tools.from_function import FunctionTool

        is_one = isinstance(function, FunctionTool)
        made = cast("FunctionTool[P, R]", function) if is_one else FunctionTool(function)
        self.function_map = {**self.function_map, made.name: made}
        return made

    def toolset(self, function: Added) -> Added:
        """Add tools that depend on the reply: the function returns a list of what `function_list` takes.

        Raises:
            SettingsError: It takes what it is not given.
        """
        check_function("toolset", function, 0, "() -> list")
        self._extras().toolsets.append(function)
        return function

    def check(self, function: Added) -> Added:
        """Add a check of the output: the function is given it, and raises `ModelRetry` to send it back.

        What it returns takes the place of the output, `None` leaves it.

        Raises:
            SettingsError: It takes what it is not given.
        """
        return self._around("check", function, 1, "(output)")

    def input_guard(self, function: Added) -> Added:
        """Add a guard of questions: the function is given the text of each before anything is made of it.

        It returns `None` (go on), a text (go on with that), `Stop("…")` (answer so) or `Confirm("…")` (ask somebody).

        Raises:
            SettingsError: It takes what it is not given.
        """
        check_function("input_guard", function, 1, "(text: str)")
        self._extras().input_guards.append(function)
        return function

    def output_guard(self, function: Added) -> Added:
        """Add a guard of answers: the function is given the text of each before anybody sees it. It returns the same.

        Raises:
            SettingsError: It takes what it is not given.
        """
        check_function("output_guard", function, 1, "(text: str)")
        self._extras().output_guards.append(function)
        return function

    def before_reply(self, function: Added) -> Added:
        """Add a function that is given the conversation; a list of messages from it takes its place.

        Raises:
            SettingsError: It takes what it is not given.
        """
        return self._around("before_reply", function, 1, "(messages: list[Message])")

    def after_reply(self, function: Added) -> Added:
        """Add a function that is given the `Reply` of `ask`; a `Reply` from it takes its place.

        Raises:
            SettingsError: It takes what it is not given.
        """
        return self._around("after_reply", function, 1, "(reply: Reply)")

    def before_model(self, function: Added) -> Added:
        """Add a function that is given each `ChatRequest`; a request from it takes its place.

        Raises:
            SettingsError: It takes what it is not given.
        """
        return self._around("before_model", function, 1, "(request: ChatRequest)")

    def after_model(self, function: Added) -> Added:
        """Add a function that is given the messages of each turn of the model, to look at.

        Raises:
            SettingsError: It takes what it is not given.
        """
        return self._around("after_model", function, 1, "(messages: list[Message])")

    def before_tool(self, function: Added) -> Added:
        """Add a function that is given a tool's name and the arguments of a call; a dict from it takes their place.

        Raising `ModelRetry` or `ToolError` keeps the call from being made; the model is told why.

        Raises:
            SettingsError: It takes what it is not given.
        """
        return self._around("before_tool", function, 2, "(name: str, arguments: dict)")

    def after_tool(self, function: Added) -> Added:
        """Add a function that is given a tool's name and its `ToolResult`; a result or a text takes its place.

        Raises:
            SettingsError: It takes what it is not given.
        """
        return self._around("after_tool", function, 2, "(name: str, result: ToolResult)")

    def _around(self, name: HookName, function: Added, takes: int, signature: str) -> Added:
        check_function(name, function, takes, signature)
        extras = self._extras()
        extras.hooks = replace(extras.hooks, **{name: (*getattr(extras.hooks, name), function)})
        return function

    def _extras(self) -> Extras:
        """What was added to this very agent."""
        if "extras" not in vars(self) or self.extras is None:
            self.extras = Extras()
        return self.extras


def check_function(name: str, function: object, takes: int, signature: str) -> None:
    """Raises SettingsError where a function cannot be called with so many values."""
    called = getattr(function, "__name__", "") if callable(function) else ""
    called = called if called.isidentifier() else name
    hint = f"Write def {called}{signature}, with a RunContext before that if it is wanted."
    if not callable(function):
        raise SettingsError(f"{name} takes a function, not {shown(function)}.", hint=hint, name=name)
    given = cast("Callable[..., Any]", function)
    wants = context_parameter(given)
    several = [one for one in parameters_of(given) if one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD}]
    places = several[wants is not None :]
    needed = [one for one in places if one.default is one.empty]
    named = [one.name for one in parameters_of(given) if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    if named:
        said = f"{name} calls its function by place, and {_named(given)!r} wants {named[0]!r} by name."
        raise SettingsError(said, hint=hint, name=name)
    any_number = any(one.kind is one.VAR_POSITIONAL for one in parameters_of(given))
    if len(needed) > takes or (len(places) < takes and not any_number):
        values = {0: "no values", 1: "one value", 2: "two values"}[takes]
        said = f"{name} calls its function with {values}, and {_named(given)!r} takes {len(needed) or len(places)}."
        raise SettingsError(said, hint=hint, name=name)


def _named(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
