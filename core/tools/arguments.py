"""Arguments of calls: read once, leniently if need be, checked with one clear sentence; code taken out of fences."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, cast

from core.errors import BadArgumentsError
from core.messages.json_text import read_object
from core.tools.faults import fault_of_schema

_log = logging.getLogger(__name__)

_MOST_REFERENCES = 10_000  # followed in one check: a few lines of schema may ask for a thousand million
_references: ContextVar[list[None]] = ContextVar("references")

_A_TYPE = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class ArgumentText(str):
    """The JSON text of arguments that remembers what it says, so that nobody parses it again."""

    __slots__ = ("parsed",)

    parsed: dict[str, Any]

    @classmethod
    def of(cls, arguments: dict[str, Any]) -> ArgumentText:
        """The text of `arguments`."""
        text = cls(json.dumps(arguments, ensure_ascii=False))
        text.parsed = arguments
        return text


def read_arguments(text: str | Mapping[str, Any], *, strict: bool = False) -> dict[str, Any]:
    """The arguments as a dict of the caller's own.

    Args:
        text: What the model wrote. JSON is read first; what is nearly JSON (single quotes, trailing commas,
            a missing brace) is read leniently unless `strict`. Empty text means no arguments.
        strict: JSON and nothing else.

    Raises:
        BadArgumentsError: It is not an object.
    """
    if not isinstance(text, str):
        return dict(text)
    if isinstance(text, ArgumentText):
        return dict(text.parsed)
    if not text.strip():
        return {}
    if not strict:
        text = _unwrapped(text)
    try:
        found: object = json.loads(text) if strict else read_object(text)
    except ValueError as error:
        raise BadArgumentsError(
            f"The arguments are not {'valid JSON' if strict else 'a JSON object'}: {_shown(text)}."
        ) from error
    if not isinstance(found, dict):
        raise BadArgumentsError(f"The arguments must be a JSON object, not {_shown(found)}.")
    return cast("dict[str, Any]", found)


def _unwrapped(text: str) -> str:
    """The text inside a JSON string, which is how a call that was not JSON is kept."""
    if not text.startswith('"'):
        return text
    try:
        inner = json.loads(text)
    except ValueError:
        return text
    return inner if isinstance(inner, str) else text


def check(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Check arguments against a JSON Schema. A schema that is itself broken checks nothing.

    Schemas come from strangers too, and are checked where everything else waits. So what regular expressions say, which
    may take for ever, is left to the tool, and a schema that refers to itself without an end checks nothing.

    Raises:
        BadArgumentsError: One sentence that names the field.
    """
    worst = _worst_error(arguments, schema)
    if worst is not None:
        field = ".".join(str(part) for part in worst.absolute_path)
        raise BadArgumentsError(_sentence(field, worst), field=field, **fault_of_schema(worst))


def check_booleans(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Refuse true and false where a schema has neither: Python takes them for the numbers 1 and 0.

    Args:
        arguments: What a model wrote.
        schema: As of `check`, which looks at all the rest.

    Raises:
        BadArgumentsError: One sentence that names the field.
    """
    if not _has_boolean(arguments):
        return
    for error in _errors(arguments, schema):
        wrong: Any = _misplaced_boolean(error)
        if wrong is None:
            continue
        field = ".".join(str(part) for part in wrong.absolute_path)
        raise BadArgumentsError(_sentence(field, wrong), field=field, **fault_of_schema(wrong))


def _has_boolean(arguments: Mapping[str, Any]) -> bool:
    left: list[Any] = [arguments]
    while left:
        one: Any = left.pop()
        if isinstance(one, bool):
            return True
        if isinstance(one, Mapping | list):
            left.extend(cast("Mapping[str, Any]", one).values() if isinstance(one, Mapping) else cast("list[Any]", one))
    return False


def _misplaced_boolean(error: Any) -> Any:
    """The error of a boolean among an error and those of its choices; `None` where something else is wrong as well."""
    if error.validator in {"anyOf", "oneOf"}:
        choices: dict[object, Any] = {}
        for one in error.context:
            if one.validator == "type" and one.validator_value == "null":
                continue  # "or nothing": nobody meant that
            choice: object = one.schema_path[0]
            if choices.get(choice) is None:
                choices[choice] = _misplaced_boolean(one)
        found: list[Any] = [one for one in choices.values() if one is not None]
        return found[0] if found and (len(found) == len(choices) or isinstance(error.instance, bool)) else None
    is_kind = error.validator in {"type", "enum", "const"}
    return error if is_kind and isinstance(error.instance, bool) else None


def _worst_error(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """The error of `jsonschema` (which has no full types) that tells most; `None` where all fits."""
    jsonschema: Any = import_module("jsonschema")
    return jsonschema.exceptions.best_match(iter(_errors(arguments, schema)))


def _errors(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Any]:
    """All errors of `jsonschema`; none where the schema is broken."""
    jsonschema: Any = import_module("jsonschema")
    unresolvable = import_module("referencing.exceptions").Unresolvable
    broken = (jsonschema.SchemaError, unresolvable, _WithoutEndError, RecursionError)
    _references.set([])
    try:
        validator = _validator(json.dumps(dict(schema), default=_plain))
        return list(validator.iter_errors(arguments))
    except broken as error:
        _log.warning("These parameters are no JSON Schema, so nothing is checked: %s", str(error).partition("\n")[0])
        return []


def _plain(value: object) -> object:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else str(value)


def make_ready() -> None:
    """Load what checks arguments, for which the first call would wait otherwise: a tenth of a second."""
    _validator(json.dumps({"type": "object"}))


@lru_cache(maxsize=512)
def _validator(schema: str) -> Any:
    """Made once for each schema: checking that itself is a schema takes ten times as long as checking arguments."""
    jsonschema: Any = import_module("jsonschema")
    referencing: Any = import_module("referencing")
    given = json.loads(schema)
    jsonschema.Draft202012Validator.check_schema(given)
    # The registry is given by hand: a `$ref` to another machine is never fetched.
    return _bounded()(given, registry=referencing.Registry())


class _WithoutEndError(Exception):
    """Too much would have to be looked at."""


@lru_cache(maxsize=1)
def _bounded() -> Any:
    """The class of validators whose checks have an end."""
    jsonschema: Any = import_module("jsonschema")
    usual: Any = jsonschema.Draft202012Validator
    references = {name: _counted(usual.VALIDATORS[name]) for name in ("$ref", "$dynamicRef")}
    expressions = dict.fromkeys(("pattern", "patternProperties", "unevaluatedProperties"), _unchecked)
    more = {"additionalProperties": _unless_by_pattern(usual.VALIDATORS["additionalProperties"])}
    return jsonschema.validators.extend(usual, {**references, **expressions, **more})


def _counted(follow: Any) -> Any:
    def followed(*about: Any) -> Iterator[Any]:
        so_far = _references.get()
        so_far.append(None)
        if len(so_far) > _MOST_REFERENCES:
            raise _WithoutEndError("It refers to itself again and again.")
        yield from follow(*about)

    return followed


def _unless_by_pattern(look: Any) -> Any:
    def looked(validator: Any, extra: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from look(validator, extra, instance, schema)

    return looked


def _unchecked(*_: Any) -> tuple[()]:
    return ()


def _sentence(field: str, error: Any) -> str:
    named = f"The field {field!r}" if field else "The arguments"
    match error.validator:
        case "required":
            missing = next((name for name in error.validator_value if name not in error.instance), "")
            return f"The field {'.'.join(filter(None, (field, missing)))!r} is missing."
        case "type":
            wanted: Any = error.validator_value
            names = [wanted] if isinstance(wanted, str) else list(wanted)
            kinds = " or ".join(_A_TYPE.get(name, name) for name in names)
            return f"{named} must be {kinds}, not {_shown(error.instance)}."
        case "enum" | "const":
            allowed = error.validator_value if error.validator == "enum" else [error.validator_value]
            return f"{named} must be one of {', '.join(map(_shown, allowed))}, not {_shown(error.instance)}."
        case _:
            return f"{named} does not fit: {_short(error.message)}."


def _shown(value: object) -> str:
    return _short(json.dumps(value, ensure_ascii=False, default=str))


def _short(text: str, limit: int = 160) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


# Of tildes only the first of a line can begin one: else each of many in a long line is tried to its end.
_FENCE: Final = re.compile(
    r"(?:(?<!`)(?P<ticks>`{3,}+)|^[ \t]*+(?P<tildes>~{3,}+))[^\n`]*\n"
    r"(?P<code>.*?)(?:^[ \t]*(?(ticks)(?P=ticks)|(?P=tildes))|\Z)",
    re.DOTALL | re.MULTILINE,
)


def extract_code(text: str) -> str:
    """The code in `text`: the `code` of a JSON object, else the first fence with something in it, else all of it.

    A fence that is not closed reaches to the end.
    """
    if text.lstrip().startswith("{"):
        try:
            code = read_object(text).get("code")
        except ValueError:
            code = None  # it is code that begins with a brace
        if isinstance(code, str):
            return _out_of_fence(code)
    return _out_of_fence(text)


def _out_of_fence(text: str) -> str:
    found = next((match["code"] for match in _FENCE.finditer(text) if match["code"].strip()), None)
    return text if found is None else found
