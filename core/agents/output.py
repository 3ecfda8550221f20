"""What an answer must be: a type, its JSON schema, and how what a model wrote becomes a value of it."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from pydantic_core import from_json

from core.agents.arguments import checked_int
from core.errors import ParlourError, SettingsError, shown
from core.messages.json_text import repaired
from core.tools.from_function import untitled
from core.tools.run_context import RETRIES, ModelRetry, called, context_parameter, parameters_of
from core.tools.typed_dicts import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.languages import Lang
    from core.tools.run_state import RunState

Output = TypeVar("Output")
_WRAPPED: Final = "result"  # what is no object stands under this name: services want one
_MOST_RETRIES: Final = 20
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")
_FENCE: Final = "```"
_NO_TYPES: Final = (
    str,
    bytes,
    int,
    float,
    list,
    tuple,
    dict,
    set,
    frozenset,
    BaseModel,
)  # values, where a type belongs
_TYPES: Final = (
    "Write a pydantic model, a dataclass, a TypedDict, Literal[...], list[...], a union or a typed function."
)
_MOST_PROBLEMS: Final = 20  # that the model is told of at once
_LONGEST_ERROR: Final = 1_500
_HOW: Final[Mapping[Lang, str]] = {
    "en": "Answer with one JSON value and nothing else: no words around it, no marks such as [1] in its texts. "
    "It must fit this JSON schema:\n{schema}",
    "zh": "只回答一个 JSON 值：前后不要有任何文字，其中的文本里也不要写 [1] 这样的标记。"
    "它必须符合以下 JSON Schema：\n{schema}",
}
_AGAIN: Final[Mapping[Lang, str]] = {
    "en": "This does not fit: {why} Write the whole JSON value again, corrected, and nothing else.",
    "zh": "不符合要求：{why} 请改正后重新写出完整的 JSON 值，不要写其他内容。",
}
_AGAIN_TEXT: Final[Mapping[Lang, str]] = {
    "en": "This does not do: {why} Answer again.",
    "zh": "这样不行：{why} 请重新回答。",
}


class OutputError(ParlourError):
    """What the model wrote is not what was asked for, also after it was told so.

    Args:
        text: What it wrote last.
        problems: What was wrong with it.
        tries: How often it wrote.
    """

    key = "output_wrong"

    def __init__(self, text: str, problems: str, tries: int) -> None:
        times = "once" if tries == 1 else f"{tries} times"
        said = f"The model answered {times}, and its answer does not fit: {problems}"
        hint = "Ask for less, raise output_retries, or take a larger model."
        super().__init__(said if said.endswith(".") else f"{said}.", hint=hint, tries=tries)
        self.text = text
        self.problems = problems
        self.tries = tries


@dataclass(frozen=True, slots=True)
class OutputType(Generic[Output]):
    """A type that an answer can have.

    Args:
        name: What the schema is called.
        schema: JSON Schema of what the model writes.
        adapter: Makes a value of it.
        wrapped: Whether that stands under the one field of an object.
        function: Called with the fields of the value, if the type is a function; its result is the output.
    """

    name: str
    schema: Mapping[str, Any]
    adapter: TypeAdapter[Any]
    wrapped: bool = False
    function: Callable[..., Any] | None = None

    @classmethod
    def of(cls, given: Any) -> OutputType[Any] | None:
        """What `output_type` says; `None` for text.

        Raises:
            SettingsError: Nothing can be made of it.
        """
        if given is str or given is None:
            return None
        try:
            return _made(given)
        except TypeError:  # it has no hash
            return cls.made_of(given)

    @classmethod
    def made_of(cls, given: Any) -> OutputType[Any]:
        """The type, made anew. Raises SettingsError."""
        if isinstance(given, _NO_TYPES) or given is Ellipsis:
            raise _value_for_a_type(given)
        function: Callable[..., Any] | None = given if inspect.isroutine(given) else None
        made: Any = given if function is None else _arguments(function)
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(readable(made))
            schema = cast("dict[str, Any]", untitled(adapter.json_schema()))
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema) as error:
            raise _no_type(given, "no JSON schema can be made of it") from error
        except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
            raise _no_type(given, str(error).partition("\n")[0]) from error
        wrapped = schema.get("type") != "object" or "properties" not in schema
        if wrapped:
            defs = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
            inner = {"type": "object", "properties": {_WRAPPED: schema}, "required": [_WRAPPED]}
            schema = {**inner, **defs}
        name = str(getattr(given, "__name__", "") or _WRAPPED)
        return cls(_NAME.sub("_", name)[:60] or _WRAPPED, schema, adapter, wrapped, function)

    def response_format(self) -> dict[str, Any]:
        """The schema as services of OpenAI's protocol take it; strict where the schema can be that."""
        strict = _strict(self.schema)
        body: dict[str, Any] = {"name": self.name, "schema": strict or dict(self.schema)}
        if strict is not None:
            body["strict"] = True
        return {"type": "json_schema", "json_schema": body}

    def instruction(self, lang: Lang) -> str:
        """What the model is told."""
        return _HOW[lang].format(schema=json.dumps(self.schema, ensure_ascii=False))

    def read(self, text: str, context: Mapping[str, Any] | None = None) -> Any:
        """The value in what a model wrote: fences, words around it and slips of JSON are passed over.

        Raises:
            ValueError: It is none; the message is for the model.
        """
        problem: ValueError | None = None
        for value in _values_in(text):
            fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
            wrapped = [fields[_WRAPPED]] if self.wrapped and _WRAPPED in fields else []
            for tried in (*wrapped, cast("Any", value)):
                try:
                    return self.adapter.validate_python(tried, context=dict(context or {}))
                except ValidationError as error:
                    problem = problem or ValueError(_sentences(error, self.schema))
        raise problem or ValueError("It is no JSON.")

    def partial(self, text: str) -> tuple[Any, Any]:
        """What has come of a value that is still written: as JSON, and as the type where it fits already."""
        begun = text[min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=len(text)) :]
        try:
            value: Any = from_json(begun, allow_partial="trailing-strings")
        except ValueError:
            return None, None
        if self.wrapped:
            value = cast("dict[str, Any]", value).get(_WRAPPED) if isinstance(value, dict) else None
        try:
            return value, None if self.function is not None else self.adapter.validate_python(value)
        except ValidationError:
            return value, None


@lru_cache(maxsize=256)  # a schema takes a thousand times as long to make as to look up
def _made(given: Any) -> OutputType[Any]:
    return OutputType.made_of(given)


@dataclass(slots=True)
class TypedOutput:
    """How the answer of one reply is checked, and sent back where it does not fit.

    Args:
        kind: The type; `None` for text, which only the checks of the program look at.
        retries: How often it may be sent back.

    Attributes:
        value: The output, once it is `settled`.
        tries: How many answers were looked at.
    """

    kind: OutputType[Any] | None = None
    retries: int = RETRIES
    settled: bool = False
    value: Any = None
    tries: int = 0
    text: str = ""
    _told: list[str] = field(default_factory=list[str])
    _rewritten: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def is_data(self) -> bool:
        """Whether it is JSON."""
        return self.kind is not None

    def generate(self, model: object, *, offers_tools: bool) -> Mapping[str, Any]:
        """The schema for a model whose service holds to it; nothing where calls are written as text, too."""
        may_call = offers_tools and not getattr(model, "native_calls", False)
        if self.kind is None or may_call or not getattr(model, "takes_schema", False):
            return {}
        return {"response_format": self.kind.response_format(), "if_taken": ["response_format"]}

    def rewritten(self, before: str, after: str) -> None:
        """Note that a guard put another text in the place of one, before an output is made of it."""
        self._rewritten[before.strip()] = after

    def guarded(self, text: str) -> str:
        """What the guards, of several agents one after the other, have made of a text."""
        while text.strip() in self._rewritten:
            text = self._rewritten.pop(text.strip())
        return text

    async def sent_back(self, text: str, state: RunState) -> str:
        """What the model is told where its answer does not fit; "" where it does, or is not sent back any more.

        Raises:
            OutputError: It does not fit, and was sent back often enough.
        """
        self.tries += 1
        self.text = text
        words = _AGAIN if self.kind is not None else _AGAIN_TEXT
        try:
            value: Any = text
            if self.kind is not None:
                told = {"passages": list(state.evidence), "needs_sources": self.tries <= self.retries}
                value = self.kind.read(text, told)
                value = await self._made(value, state)
            context = state.context(attempt=self.tries - 1)
            for check in state.hooks.check:
                changed = await called(check, context, value)
                value = value if changed is None else changed
        except (ModelRetry, ValueError) as error:
            why = str(error)[:_LONGEST_ERROR]
        else:
            self.value, self.settled = value, True
            return ""
        if self.tries > self.retries:
            raise OutputError(text, why, self.tries)
        return words[state.lang].format(why=why if why.endswith((".", "!", "?", "。")) else f"{why}.")

    async def _made(self, value: Any, state: RunState) -> Any:
        """The result of the function that the output is, if it is one."""
        function = self.kind.function if self.kind is not None else None
        if function is None:
            return value
        names = list(type(cast("BaseModel", value)).model_fields)
        given = {name: getattr(value, name) for name in names}
        context = state.context(attempt=self.tries - 1)
        return await called(_filled(function, given), context)


def _filled(function: Callable[..., Any], given: Mapping[str, Any]) -> Callable[..., Any]:
    """The function with all arguments but the context."""
    wants = context_parameter(function)

    if inspect.iscoroutinefunction(function):

        async def later(*context: Any) -> Any:
            return await function(*context, **given)

        chosen: Callable[..., Any] = later
    else:

        def now(*context: Any) -> Any:
            return function(*context, **given)

        chosen = now
    chosen.__name__ = function.__name__
    if wants is not None:
        first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        hints = get_type_hints(function)
        chosen.__annotations__ = {"context": hints[wants[0]]}
        chosen.__signature__ = inspect.Signature([first])  # type: ignore[attr-defined]
    return chosen


def checked_retries(given: object) -> int:
    """`output_retries` as it was given. Raises SettingsError."""
    return checked_int("output_retries", given, 0, _MOST_RETRIES, such_as=RETRIES)


def _arguments(function: Callable[..., Any]) -> type[BaseModel]:
    """What a function of the output takes, without the context. Raises SettingsError."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise _no_type(function, str(error)) from error
    wants = context_parameter(function, hints)
    fields: dict[str, Any] = {}
    for one in parameters_of(function):
        if wants is not None and one.name == wants[0]:
            continue
        if one.name not in hints or one.kind in {one.VAR_KEYWORD, one.VAR_POSITIONAL, one.POSITIONAL_ONLY}:
            raise _no_type(function, f"its parameter {one.name!r} needs a type and a name")
        fields[one.name] = (readable(hints[one.name]), ... if one.default is one.empty else one.default)
    said = inspect.getdoc(function)
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), __doc__=said, **fields)


def _value_for_a_type(given: Any) -> SettingsError:
    """A value was given where a type belongs; the hint has the type that is likely meant."""
    listed = cast("Sequence[object]", given) if isinstance(given, list | tuple) else ()
    names = [one.__name__ for one in listed if isinstance(one, type)]
    meant = ""
    if names and len(names) == len(listed):
        meant = f"list[{' | '.join(names)}]" if isinstance(given, list) else " | ".join(names)
    elif isinstance(given, BaseModel):
        meant = type(given).__name__
    elif isinstance(given, str) and given.isidentifier():
        meant = given
    said = f"output_type must be a type, not {shown(given)}."
    return SettingsError(said, hint=f"Write output_type={meant}." if meant else _TYPES, name="output_type")


def _no_type(given: object, why: str) -> SettingsError:
    named = getattr(given, "__name__", None) if callable(given) else None
    said = f"output_type cannot be {named or repr(given)}: {why.rstrip('.')}."
    return SettingsError(said, hint=_TYPES, name="output_type")


def _strict(schema: Any) -> dict[str, Any] | None:
    """The schema as OpenAI's strict mode wants it; `None` where it cannot be that."""
    if isinstance(schema, list):
        parts = [_strict(one) for one in cast("list[Any]", schema)]
        return None if None in parts else cast("Any", parts)
    if not isinstance(schema, dict):
        return schema
    entries = cast("dict[str, Any]", schema)
    names = cast("dict[str, Any]", entries.get("properties") or {})
    is_object = entries.get("type") == "object"
    if is_object and (not names or set(names) != set(entries.get("required") or ())):
        return None
    made: dict[str, Any] = {}
    for key, value in entries.items():
        if key in {"properties", "$defs"}:
            inner = {name: _strict(one) for name, one in cast("dict[str, Any]", value).items()}
            if None in inner.values():
                return None
            made[key] = inner
        elif key in {"items", "anyOf", "prefixItems"}:
            made[key] = _strict(value)
            if made[key] is None:
                return None
        elif key in {"oneOf", "allOf", "discriminator", "patternProperties"}:
            return None
        else:
            made[key] = value
    return {**made, "additionalProperties": False} if is_object else made


def _values_in(text: str) -> list[Any]:
    """What a text may mean as JSON, the likeliest first."""
    for one in (text.strip(), _fenced(text)):
        try:
            return [json.loads(one)]
        except (ValueError, RecursionError):
            continue
    begun = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if begun >= 0:
        try:
            mended: Any = json.loads(repaired(text[begun:]))
        except (ValueError, RecursionError):
            return [text.strip()]
        if isinstance(mended, dict | list) and mended:
            return [cast("Any", mended)]
    return [text.strip()]  # a word of a `Literal`, say


def _fenced(text: str) -> str:
    """What stands between the first fence and the last; "" where there are none."""
    first, last = text.find(_FENCE), text.rfind(_FENCE)
    return text[text.find("\n", first) + 1 : last].strip() if 0 <= first < last else ""


def _sentences(error: ValidationError, schema: Mapping[str, Any]) -> str:
    """What is wrong, for the model: each field once."""
    lines: list[str] = []
    for one in error.errors(include_url=False, include_input=False)[:_MOST_PROBLEMS]:
        where = ".".join(str(part) for part in one["loc"])
        said = str(one["msg"]).removeprefix("Value error, ").rstrip(".")
        lines.append(f"{where}: {said}." if where else f"{said}.")
    names = ", ".join(cast("Mapping[str, Any]", schema.get("properties") or {}))
    known = f" Its fields are {names}." if any("missing" in one["type"] for one in error.errors()) else ""
    return " ".join(dict.fromkeys(lines)) + known
