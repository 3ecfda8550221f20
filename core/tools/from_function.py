"""`@tool`: a typed function with a docstring becomes a tool."""

from __future__ import annotations

import inspect
import json
import re
import sys
from contextlib import aclosing
from copy import copy, deepcopy  # noqa: TID251 - a program may ask for a deep copy
from dataclasses import is_dataclass
from functools import partial, update_wrapper
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_type_hints,
    overload,
)

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic_core import to_jsonable_python

from core.errors import BadArgumentsError, SettingsError, shown
from core.tools.arguments import check_booleans, read_arguments
from core.tools.base import BaseTool, Returned, ToolResult
from core.tools.faults import fault_of_pydantic, fault_of_unknown
from core.tools.run_context import RETRIES, RunContext, check_deps, context_parameter, parameters_of
from core.tools.typed_dicts import readable
from core.tools.unknown_keys import unknown_key

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping

    from pydantic_core import ErrorDetails

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

_GATHERS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_NO_FIELD = "There is no field {!r}."
_LIKE_THIS = "Write @tool above a function, or tool(the_function)."
_EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}, "required": []}
_ARGS_HEADING = re.compile(r"^\s*(args|arguments|parameters|参数)\s*[:：]\s*$", re.IGNORECASE)
_OTHER_HEADING = re.compile(r"^\s*(returns?|raises|yields|examples?|notes?|返回|异常)\s*[:：]", re.IGNORECASE)
_GOOGLE_ARG = re.compile(r"^(\s*)\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*[:：]\s*(.*)$")
_SPHINX_ARG = re.compile(r"^\s*:param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


class Flags(TypedDict, total=False):
    """What a call may do, by the names that `BaseTool` has for it."""

    writes: bool
    runs_code: bool
    reaches_out: bool
    destructive: bool
    idempotent: bool
    deduplicate: bool
    needs_consent: bool


class FunctionTool(BaseTool, Generic[P, R]):
    """A function as a tool. It can still be called like the function.

    Args:
        function: Its parameters need types. A parameter that starts with `_` is not for a model: it is given what the
            agent passes along under that name (`_lang`, `_messages`, `_progress`), else it needs a default. A first
            parameter of the type `RunContext[...]` is given the reply, with the program's `deps`. One that is a method
            is a tool of each object that has it. One that yields tells its progress; what it returns is its result, of
            an asynchronous one the last thing that it yields.
        name: Its name for models, the function's by default.
        description: What it does, the beginning of the docstring by default.
        cfg: Options as of every tool.
        timeout: Seconds that a call may take, more than 0; 60 by default.
        retries: How often in one reply a call that raises `ModelRetry` is sent back to the model.
        flags: What a call may do, as `tool` has it.

    Raises:
        SettingsError: A parameter has no type, or one that no JSON can fill, or an option makes no sense.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        cfg: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        retries: int = RETRIES,
        **flags: Unpack[Flags],
    ) -> None:
        for field, given in (("name", name), ("description", description)):
            if not isinstance(cast("object", given), str | None):
                told = f"{field} of the tool {function.__name__!r} must be a text, not {shown(given)}."
                raise SettingsError(told, hint=f'Write @tool({field}="…").', name=field)
        said, of_arguments = _read_docstring(inspect.getdoc(function) or "")
        self._function = function
        self._of_method = _is_method(function)
        self._hidden = [name for name in (one.name for one in parameters_of(function)) if name.startswith("_")]
        self._wants = context_parameter(function, _hints(function))
        self._model = _model_of(function, of_arguments, {self._wants[0]} if self._wants else set())
        self.name = name or function.__name__
        self.description = description or said or self.name
        self.parameters = plain_schema(self._model)
        self.retries = _checked("retries", retries, self.name, whole=True)
        for flag, given in flags.items():
            setattr(self, flag, _checked_flag(flag, given, self.name))
        super().__init__(
            cfg if timeout is None else {**(cfg or {}), "timeout": _checked("timeout", timeout, self.name)}
        )
        update_wrapper(cast("Callable[..., Any]", self), function, updated=())

    @overload
    def __get__(self, instance: None, kind: type | None = None) -> FunctionTool[P, R]: ...
    @overload
    def __get__(
        self: FunctionTool[Concatenate[Any, Q], R], instance: object, kind: type | None = None
    ) -> FunctionTool[Q, R]: ...
    def __get__(self, instance: object, kind: type | None = None) -> FunctionTool[Any, R]:
        """The tool of one object, where it was made of a method."""
        if instance is None or not self._of_method:
            return self
        bound = copy(self)
        # Its own copy: the function is filled in with its object.
        vars(bound).update(_of_method=False, _function=partial(cast("Callable[..., Any]", self._function), instance))
        return bound

    def __copy__(self) -> Self:
        """Another tool of the same function."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Another tool of the same function, with options and an object of its own."""
        made = copy(self)
        memo[id(self)] = made
        function: Any = self._function
        if isinstance(function, partial):
            bound = cast("partial[Any]", function)
            function = partial(bound.func, *deepcopy(bound.args, memo))
        vars(made).update(_function=function, cfg=deepcopy(self.cfg, memo))
        return made

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By the place of the function, where another process finds it. Raises TypeError where it would not."""
        function: Any = self._function
        plain = _plain(function)
        place = str(plain.__qualname__)
        try:
            there: Any = attrgetter(place)(sys.modules[plain.__module__])
        except (AttributeError, KeyError):
            there = None
        if there is self:
            return place
        if there is not plain and not (isinstance(there, FunctionTool) and vars(there).get("_function") is plain):
            said = f"The tool {self.name!r} cannot be pickled: its function is not found as {plain.__module__}.{place}."
            raise TypeError(f"{said} Write it at the top of a module.")
        how: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "cfg": dict(self.cfg),
            "retries": self.retries,
        }
        how |= {flag: value for flag, value in vars(self).items() if flag in Flags.__annotations__}
        own = function.args if isinstance(function, partial) else ()
        return _again, (type(self), there, how, own)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self._function(*args, **kwargs)

    @property
    def is_async(self) -> bool:
        """Whether the function is `async def`."""
        function = _plain(self._function)
        return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)

    def verify(self, arguments: dict[str, Any]) -> None:
        """Check by the function's types; a number written as text is understood."""
        self._values(arguments)

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> Returned | Awaitable[Returned]:
        """Call the function with the arguments in their Python types."""
        if self._of_method:
            said = f"The tool {self.name!r} is a method, and was given without its object."
            raise SettingsError(said, hint=f"Write function_list=[the_object.{self.name}].")
        hidden = {name: kwargs[name[1:]] for name in self._hidden if name[1:] in kwargs}
        if self._wants is not None:
            hidden[self._wants[0]] = self._context(kwargs)
        function: Any = _plain(self._function)
        result: Any = self._function(**self._values(read_arguments(params)), **hidden)  # type: ignore[call-arg]
        if inspect.isasyncgenfunction(function):
            return _last(result, kwargs.get("progress"))
        if inspect.isgeneratorfunction(function):
            return _returnable(_returned(result, kwargs.get("progress")))
        return _awaited(result) if inspect.isawaitable(result) else _returnable(result)

    def _context(self, kwargs: Mapping[str, Any]) -> RunContext[Any]:
        """The reply, for the function. Raises SettingsError where its deps are of another type."""
        told: RunContext[Any] | None = kwargs.get("run_context")
        if told is None:
            told = RunContext(None, tool=self.name, call_id=str(kwargs.get("call_id", "")))
        check_deps(self._function, self._wants[1] if self._wants else Any, told.deps)
        return told.reporting(kwargs.get("progress"))

    def _values(self, arguments: dict[str, Any]) -> dict[str, Any]:
        check_booleans(arguments, self.schema)
        try:
            filled = self._model.model_validate(arguments)
        except ValidationError as error:
            all_ = error.errors()
            field = ".".join(map(str, all_[0]["loc"]))
            fault = fault_of_pydantic(cast("list[dict[str, Any]]", all_), arguments) or {}
            raise BadArgumentsError(_sentence(all_[0]), field=field, **fault) from error
        if field := unknown_key(arguments, filled):
            raise BadArgumentsError(_NO_FIELD.format(field), field=field, **fault_of_unknown(field))
        given = {name: getattr(filled, name) for name in filled.model_fields_set}
        return {**given, **(filled.model_extra or {})}


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    cfg: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    retries: int = RETRIES,
    writes: bool = False,
    runs_code: bool = False,
    reaches_out: bool = False,
    destructive: bool = False,
    idempotent: bool = True,
    deduplicate: bool = False,
    needs_consent: bool = False,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(  # noqa: PLR0913 - a function, and each option by name
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    cfg: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    retries: int = RETRIES,
    writes: bool = False,
    runs_code: bool = False,
    reaches_out: bool = False,
    destructive: bool = False,
    idempotent: bool = True,
    deduplicate: bool = False,
    needs_consent: bool = False,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function, with or without options.

    Types become the JSON Schema (`Annotated[int, "what it is"]`, `Literal`, `Optional`, lists, dicts, pydantic models),
    the docstring's beginning the description, and its `Args:` those of the parameters.

    Args:
        function: Its parameters need types; without it, a decorator is returned.
        name: Its name for models, the function's by default.
        description: What it does, the beginning of the docstring by default.
        cfg: Options as of every tool.
        timeout: Seconds that a call may take, more than 0; 60 by default.
        retries: How often in one reply a call that raises `ModelRetry` is sent back to the model.
        writes: A call may change something; rules decide by this, and by the next three, whether somebody is asked.
        runs_code: A call may run code.
        reaches_out: A call may reach an address of the web that is in its arguments.
        destructive: What a call changes may be lost.
        idempotent: A call that may have run before a crash may run again after it; so it is by default.
        deduplicate: Equal calls of one turn are made once.
        needs_consent: Somebody is asked about every call, whatever the rules let run.

    Raises:
        SettingsError: A parameter has no type, or one that no JSON can fill, or an option makes no sense.
    """
    flags: Flags = {
        "writes": writes,
        "runs_code": runs_code,
        "reaches_out": reaches_out,
        "destructive": destructive,
        "idempotent": idempotent,
        "deduplicate": deduplicate,
        "needs_consent": needs_consent,
    }

    def make(inner: Callable[P, R]) -> FunctionTool[P, R]:
        if not callable(inner):
            raise SettingsError(f"tool takes a function, not {shown(inner)}.", hint=_LIKE_THIS, name="function")
        return FunctionTool(
            inner, name=name, description=description, cfg=cfg, timeout=timeout, retries=retries, **flags
        )

    return make if function is None else make(function)


def _again(kind: type[FunctionTool[Any, Any]], found: Any, how: Mapping[str, Any], own: tuple[Any, ...]) -> BaseTool:
    """The tool of a function that was found by its place, for `own`'s object where it is a method's."""
    made = kind(vars(found)["_function"] if isinstance(found, FunctionTool) else found, **how)
    return made.__get__(*own) if own else made


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise SettingsError(f"A type of the tool {function.__name__!r} is not known: {error}.") from error
    except TypeError as error:
        raise SettingsError(f"This is no function that can be a tool: {function!r}.") from error


def _model_of(function: Callable[..., Any], of_arguments: Mapping[str, str], hidden: set[str]) -> type[BaseModel]:
    hints = _hints(function)
    fields: dict[str, Any] = {}
    for parameter in parameters_of(function)[_is_method(function) :]:
        if parameter.name.startswith("_") or parameter.name in hidden:
            continue
        if parameter.kind in _GATHERS:
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise SettingsError(
                f"The parameter '{stars}{parameter.name}' of the tool {function.__name__!r} has no names that a model "
                "could fill in.",
                hint=f"Write each with its name and type, or one such as `{parameter.name}: list[str]`.",
                name=parameter.name,
            )
        if parameter.kind is parameter.POSITIONAL_ONLY or parameter.name not in hints:
            raise SettingsError(
                f"The parameter {parameter.name!r} of the tool {function.__name__!r} needs a type and a name.",
                hint=f"Write for example `{parameter.name}: str`.",
            )
        fields[parameter.name] = _field(parameter, readable(hints[parameter.name]), of_arguments.get(parameter.name))
    try:
        return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    except (TypeError, ValueError, PydanticUserError) as error:
        said = str(error).partition("\n")[0]
        raise SettingsError(f"The parameters of the tool {function.__name__!r} do not work: {said}") from error


def _is_method(function: Callable[..., Any]) -> bool:
    """Whether it is the function of a method, as it stands in a class: its first parameter has no type."""
    first = next(iter(parameters_of(function)), None)
    inside = getattr(function, "__qualname__", "").rpartition(".")[0]
    is_self = first is not None and first.name == "self" and first.annotation is first.empty
    return is_self and bool(inside) and not inside.endswith("<locals>")


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.func if isinstance(function, partial) else function


def _checked(name: str, given: object, tool: str, *, whole: bool = False) -> Any:
    fits = not isinstance(given, bool) and isinstance(given, int if whole else (int, float))
    if fits and (given >= 0 if whole else given > 0):  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]
        return given
    kind = "a whole number from 0" if whole else "a number of seconds above 0"
    said = f"{name} of the tool {tool!r} must be {kind}, not {given!r}."
    raise SettingsError(said, hint=f"Write @tool({name}={2 if whole else 30}).")


def _checked_flag(name: str, given: object, tool: str) -> bool:
    if name not in Flags.__annotations__:
        known = ", ".join(Flags.__annotations__)
        raise SettingsError(f"A tool has no option {name!r}.", hint=f"Its flags are {known}.", name=name)
    if isinstance(given, bool):
        return given
    said = f"{name} of the tool {tool!r} must be True or False, not {given!r}."
    raise SettingsError(said, hint=f"Write @tool({name}=True).", name=name)


def _field(parameter: inspect.Parameter, hint: Any, documented: str | None) -> tuple[Any, Any]:
    """Type and default, as pydantic wants them; a word of its own in the type beats the docstring's."""
    noted = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, str)]
    described = [note for note in getattr(hint, "__metadata__", ()) if getattr(note, "description", None)]
    words = noted[0] if noted else documented
    if words and not described:
        hint = Annotated[hint, Field(description=words)]
    return hint, ... if parameter.default is parameter.empty else parameter.default


def plain_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema without pydantic's titles, which only cost a model tokens."""
    try:
        schema = cast("dict[str, Any]", untitled(model.model_json_schema()))
    except PydanticUserError as error:
        said = str(error).partition("\n")[0]
        raise SettingsError(f"The parameters of the tool {model.__name__!r} have no JSON Schema: {said}") from error
    schema.pop("additionalProperties", None)
    schema.pop("description", None)
    return {**_EMPTY, **schema}


def untitled(schema: Any, *, names: bool = False) -> Any:
    """The schema without the titles that pydantic makes."""
    if isinstance(schema, dict):
        entries = cast("dict[str, Any]", schema)
        return {
            key: untitled(value, names=key in ("properties", "$defs") and not names)
            for key, value in entries.items()
            if names or key != "title"
        }
    if isinstance(schema, list):
        return [untitled(value) for value in cast("list[Any]", schema)]
    return schema


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The part before the arguments, and what is said of each argument."""
    said: list[str] = []
    arguments: dict[str, str] = {}
    section, last, depth = "text", "", None
    for line in text.splitlines():
        if line.strip().startswith((":return", ":raises")):
            section = "other"
        elif _ARGS_HEADING.match(line):
            section = "arguments"
        elif _OTHER_HEADING.match(line):
            section = "other"
        elif match := _SPHINX_ARG.match(line):
            section, last = "sphinx", match[1]
            arguments[last] = match[2]
        elif section == "text":
            said.append(line)
        elif section == "arguments" and (match := _GOOGLE_ARG.match(line)) and depth in (None, len(match[1])):
            depth, last = len(match[1]), match[2]
            arguments[last] = match[3]
        elif section in ("arguments", "sphinx") and last and line.strip():
            arguments[last] = f"{arguments[last]} {line.strip()}".strip()
    return "\n".join(said).strip(), arguments


def _sentence(error: ErrorDetails) -> str:
    field = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "missing":
            return f"The field {field!r} is missing."
        case "extra_forbidden":
            return _NO_FIELD.format(field)
        case _:
            said = error["msg"][:1].lower() + error["msg"][1:]
            return f"The field {field!r} does not fit: {said}." if field else f"The arguments do not fit: {said}."


async def _awaited(result: Awaitable[Any]) -> Any:
    return _returnable(await result)


def _returnable(result: Any) -> Any:
    """What a function gave, as a tool may return it: values with fields as JSON, numbers as text."""
    if isinstance(result, BaseModel) or (is_dataclass(result) and not isinstance(result, type | ToolResult)):
        return ToolResult(_as_text(result), data=result)
    return str(result) if isinstance(result, int | float | complex | bytes) else result


def _as_text(value: Any) -> str:
    return json.dumps(to_jsonable_python(value, fallback=str), ensure_ascii=False)


def _returned(steps: Generator[Any, None, Any], report: Callable[..., None] | None) -> Any:
    """What a generator returns; what it yields is its progress."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value
        _tell(report, step)


async def _last(steps: AsyncGenerator[Any, None], report: Callable[..., None] | None) -> Any:
    """The last thing that an asynchronous generator yields; what comes before is its progress."""
    waiting: list[Any] = []
    async with aclosing(steps):
        async for step in steps:
            for before in waiting:
                _tell(report, before)
            waiting = [step]
    return _returnable(waiting[0]) if waiting else None


def _tell(report: Callable[..., None] | None, step: Any) -> None:
    """A text, or a text with what is done and the total."""
    if report is None:
        return
    told = cast("tuple[Any, ...]", step) if isinstance(step, tuple) else (step,)
    report(str(told[0]), *told[1:3])
