"""What a server wants to know, as a form: the fields of its flat schema, and the values that come of what is typed."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from core.errors import ParlourError
from core.mcp.shown import many_lines, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

FieldKind: TypeAlias = Literal["text", "number", "integer", "truth", "choice", "choices"]

_KINDS: dict[str, FieldKind] = {"string": "text", "number": "number", "integer": "integer", "boolean": "truth"}
_BOUNDS: dict[FieldKind, tuple[str, str]] = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}
_MOST_CHOICES = 200
_LONGEST_HINT = 500
_LONGEST_ANSWER = 20_000
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")


class FormField(NamedTuple):
    """A field of a form. What people read of it is the server's: without hidden signs, and not too long.

    Args:
        name: What the server calls it.
        kind: What may stand in it; of a `truth`, "true" or "false"; of `choices`, a JSON list of some of them.
        title: What people are shown for a name.
        hint: What the server says of it.
        needed: Whether it must be filled in.
        text: What stands in it at first.
        choices: Of a `choice` or `choices`, each value with what people are shown for it.
        least: The smallest number, or the least characters or choices.
        most: The largest number, or the most characters or choices.
    """

    name: str
    kind: FieldKind
    title: str
    hint: str
    needed: bool
    text: str
    choices: tuple[tuple[str, str], ...] = ()
    least: float | None = None
    most: float | None = None


def form_of(schema: Mapping[str, Any]) -> tuple[FormField, ...] | None:
    """The fields of a flat schema of an object, in order; `None` where one that must be filled in cannot be shown."""
    given = schema.get("properties")
    if not isinstance(given, dict):
        return () if given is None else None
    asked = schema.get("required")
    needed = set(map(str, cast("list[Any]", asked))) if isinstance(asked, list) else set[str]()
    found: list[FormField] = []
    for name, about in cast("dict[str, Any]", given).items():
        field = _field(name, about, needed=name in needed)
        if field is not None:
            found.append(field)
        elif name in needed:
            return None
    return tuple(found)


def answers(fields: tuple[FormField, ...], typed: Mapping[str, object]) -> dict[str, Any]:
    """The values that a server is sent: of each field what was typed, nothing for one that was left empty.

    Where something was ticked at first and nothing is any more, that is an answer, too: an empty list.

    Args:
        fields: Of the form.
        typed: Texts by the fields' names.

    Raises:
        ParlourError: key `wrong_answer` (details: name): something is missing, or is not what the field takes.
    """
    made: dict[str, Any] = {}
    for field in fields:
        text = typed.get(field.name, "")
        if not isinstance(text, str) or len(text) > _LONGEST_ANSWER:
            raise _wrong(field)
        value = _value(field, text) if text.strip() else ""
        if value not in ("", []) or (value == [] and _says_none(field)):
            made[field.name] = value
        elif field.needed:
            raise _wrong(field)
    return made


def _says_none(field: FormField) -> bool:
    """Whether nothing ticked is an answer: without one, a server would take what was ticked at first."""
    return field.needed or (field.text != "[]" and _within(field, 0))


def _field(name: str, about: Any, *, needed: bool) -> FormField | None:
    if not isinstance(about, dict):
        return None
    known = cast("dict[str, Any]", about)
    items = known.get("items") if known.get("type") == "array" else None
    choices = _choices(cast("dict[str, Any]", items) if isinstance(items, dict) else known)
    many = items is not None and bool(choices)
    kind: FieldKind | None = "choices" if many else "choice" if choices else _KINDS.get(str(known.get("type")))
    if kind is None or choices is None:
        return None
    text = _first(known.get("default"), kind, dict(choices))
    title, hint = _text(known.get("title")), many_lines(_text(known.get("description")), _LONGEST_HINT)
    least, most = _BOUNDS.get(kind, ("minimum", "maximum"))
    return FormField(
        name,
        kind,
        one_line(title or name),
        hint,
        needed,
        text,
        choices,
        _number(known.get(least)),
        _number(known.get(most)),
    )


def _first(default: object, kind: FieldKind, choices: Mapping[str, str]) -> str:
    """What stands in a field at first, as text."""
    if kind == "choices":
        given = cast("list[object]", default) if isinstance(default, list) else []
        return json.dumps([one for one in choices if one in given], ensure_ascii=False)
    text = "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return "" if (kind == "choice" and text not in choices) or len(text) > _LONGEST_ANSWER else text


def _choices(about: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    """The values to choose from; empty where anything may be typed, `None` where they cannot be shown."""
    values: list[Any]
    named: list[Any]
    several = about.get("oneOf") or about.get("anyOf")
    if isinstance(several, list):
        ones = [cast("dict[str, Any]", one) for one in cast("list[Any]", several) if isinstance(one, dict)]
        values, named = [one.get("const") for one in ones], [one.get("title") for one in ones]
    elif isinstance(about.get("enum"), list):
        values = about["enum"]
        names = about.get("enumNames")
        named = cast("list[Any]", names) if isinstance(names, list) else []
    else:
        return ()
    if not 0 < len(values) <= _MOST_CHOICES or not all(isinstance(value, str) for value in values):
        return None
    named = [*named, *([None] * len(values))]
    return tuple((value, one_line(_text(name) or value)) for value, name in zip(values, named, strict=False))


def _picked(field: FormField, text: str) -> list[str]:
    """Some of the choices, each once, in the order in which they are offered."""
    try:
        given: object = json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong(field) from None
    known = dict(field.choices)
    if not isinstance(given, list) or not all(
        isinstance(one, str) and one in known for one in cast("list[Any]", given)
    ):
        raise _wrong(field)
    picked = [one for one in known if one in cast("list[Any]", given)]
    if (picked or field.needed) and not _within(field, len(picked)):
        raise _wrong(field)
    return picked


def _value(field: FormField, text: str) -> Any:
    match field.kind:
        case "choices":
            return _picked(field, text)
        case "text":
            value, size = text, float(len(text))
        case "choice":
            value, size = text, None
            if text not in dict(field.choices):
                raise _wrong(field)
        case "truth":
            value, size = text == "true", None
            if text not in {"true", "false"}:
                raise _wrong(field)
        case "number" | "integer":
            value = _read_number(field, text.strip())
            size = float(value)
    if size is not None and not _within(field, size):
        raise _wrong(field)
    return value


def _read_number(field: FormField, text: str) -> int | float:
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise _wrong(field)
    value = float(text)
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    if field.kind == "integer":
        raise _wrong(field)
    return value


def _within(field: FormField, size: float) -> bool:
    return (field.least is None or size >= field.least) and (field.most is None or size <= field.most)


def _wrong(field: FormField) -> ParlourError:
    text = f"{field.title!r} cannot be answered in this way."
    return ParlourError(text, hint="Correct it.", key="wrong_answer", name=field.title)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
