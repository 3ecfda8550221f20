"""`@tool`: a typed function with a docstring becomes a tool."""

from __future__ import annotations

import inspect
import re
from functools import update_wrapper
from typing import TYPE_CHECKING, Annotated, Any, Generic, ParamSpec, TypeVar, cast, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model

from core.errors import BadArgumentsError, SettingsError
from core.tools.arguments import read_arguments
from core.tools.base import BaseTool, Returned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pydantic_core import ErrorDetails

P = ParamSpec("P")
R = TypeVar("R")

_EMPTY: Mapping[str, Any] = {"type": "object", "properties": {}, "required": []}
_ARGS_HEADING = re.compile(r"^\s*(args|arguments|parameters|参数)\s*[:：]\s*$", re.IGNORECASE)
_OTHER_HEADING = re.compile(r"^\s*(returns?|raises|yields|examples?|notes?|返回|异常)\s*[:：]", re.IGNORECASE)
_GOOGLE_ARG = re.compile(r"^(\s*)\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*[:：]\s*(.*)$")
_SPHINX_ARG = re.compile(r"^\s*:param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


class FunctionTool(BaseTool, Generic[P, R]):
    """A function as a tool. It can still be called like the function.

    Args:
        function: Its parameters need types. A parameter that starts with `_` is not for a model: it is given what the
            agent passes along under that name (`_lang`, `_messages`, `_progress`), else it needs a default.
        name: Its name for models, the function's by default.
        description: What it does, the beginning of the docstring by default.
        cfg: Options as of every tool.

    Raises:
        SettingsError: A parameter has no type, or one that no JSON can fill.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        description: str | None = None,
        cfg: Mapping[str, Any] | None = None,
    ) -> None:
        said, of_arguments = _read_docstring(inspect.getdoc(function) or "")
        self._function = function
        self._hidden = [name for name in (one.name for one in _parameters(function)) if name.startswith("_")]
        self._model = _model_of(function, of_arguments)
        self.name = name or function.__name__
        self.description = description or said or self.name
        self.parameters = _plain_schema(self._model)
        super().__init__(cfg)
        update_wrapper(cast("Callable[..., Any]", self), function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself."""
        return self._function(*args, **kwargs)

    @property
    def is_async(self) -> bool:
        """Whether the function is `async def`."""
        return inspect.iscoroutinefunction(self._function)

    def verify(self, arguments: dict[str, Any]) -> None:
        """Check by the function's types; a number written as text is understood."""
        self._values(arguments)

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> Returned | Awaitable[Returned]:
        """Call the function with the arguments in their Python types."""
        hidden = {name: kwargs[name[1:]] for name in self._hidden if name[1:] in kwargs}
        result: Any = self._function(**self._values(read_arguments(params)), **hidden)  # type: ignore[call-arg]
        return result if inspect.isawaitable(result) or _is_returnable(result) else str(result)

    def _values(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            filled = self._model.model_validate(arguments)
        except ValidationError as error:
            raise BadArgumentsError(_sentence(error.errors()[0])) from error
        given = {name: getattr(filled, name) for name in filled.model_fields_set}
        return {**given, **(filled.model_extra or {})}


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, cfg: Mapping[str, Any] | None = None
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    cfg: Mapping[str, Any] | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function, with or without options.

    Types become the JSON Schema (`Annotated[int, "what it is"]`, `Literal`, `Optional`, lists, dicts, pydantic models),
    the docstring's beginning the description, and its `Args:` those of the parameters.

    Args:
        function: Its parameters need types; without it, a decorator is returned.
        name: Its name for models, the function's by default.
        description: What it does, the beginning of the docstring by default.
        cfg: Options as of every tool.

    Raises:
        SettingsError: A parameter has no type, or one that no JSON can fill.
    """

    def make(inner: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(inner, name=name, description=description, cfg=cfg)

    return make if function is None else make(function)


def _model_of(function: Callable[..., Any], of_arguments: Mapping[str, str]) -> type[BaseModel]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise SettingsError(f"A type of the tool {function.__name__!r} is not known: {error}.") from error
    except TypeError as error:
        raise SettingsError(f"This is no function that can be a tool: {function!r}.") from error
    fields: dict[str, Any] = {}
    for parameter in _parameters(function):
        if parameter.name.startswith("_") or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY or parameter.name not in hints:
            raise SettingsError(
                f"The parameter {parameter.name!r} of the tool {function.__name__!r} needs a type and a name.",
                hint=f"Write for example `{parameter.name}: str`.",
            )
        fields[parameter.name] = _field(parameter, hints[parameter.name], of_arguments.get(parameter.name))
    try:
        return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)
    except (TypeError, ValueError, PydanticUserError) as error:
        said = str(error).partition("\n")[0]
        raise SettingsError(f"The parameters of the tool {function.__name__!r} do not work: {said}") from error


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError as error:
        hint = "Write a function around it whose parameters have types."
        raise SettingsError(f"Python does not tell the parameters of {function!r}.", hint=hint) from error


def _field(parameter: inspect.Parameter, hint: Any, documented: str | None) -> tuple[Any, Any]:
    """Type and default, as pydantic wants them; a word of its own in the type beats the docstring's."""
    noted = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, str)]
    described = [note for note in getattr(hint, "__metadata__", ()) if getattr(note, "description", None)]
    words = noted[0] if noted else documented
    if words and not described:
        hint = Annotated[hint, Field(description=words)]
    return hint, ... if parameter.default is parameter.empty else parameter.default


def _plain_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema without pydantic's titles, which only cost a model tokens."""
    try:
        schema = cast("dict[str, Any]", _untitled(model.model_json_schema()))
    except PydanticUserError as error:
        said = str(error).partition("\n")[0]
        raise SettingsError(f"The parameters of the tool {model.__name__!r} have no JSON Schema: {said}") from error
    schema.pop("additionalProperties", None)
    schema.pop("description", None)
    return {**_EMPTY, **schema}


def _untitled(schema: Any, *, names: bool = False) -> Any:
    if isinstance(schema, dict):
        entries = cast("dict[str, Any]", schema)
        return {
            key: _untitled(value, names=key in ("properties", "$defs") and not names)
            for key, value in entries.items()
            if names or key != "title"
        }
    if isinstance(schema, list):
        return [_untitled(value) for value in cast("list[Any]", schema)]
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
            return f"There is no field {field!r}."
        case _:
            said = error["msg"][:1].lower() + error["msg"][1:]
            return f"The field {field!r} does not fit: {said}." if field else f"The arguments do not fit: {said}."


def _is_returnable(result: object) -> bool:
    return result is None or not isinstance(result, (int, float, complex, bytes))
