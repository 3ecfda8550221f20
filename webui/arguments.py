"""Arguments of a call as fields that a reader can change: one for each name, text as it is, all else as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from core.errors import ParlourError

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind: TypeAlias = Literal["text", "number", "truth", "list", "object", "json"]


class Field(NamedTuple):
    """A field.

    Args:
        name: The argument's name.
        kind: What may stand in it.
        text: What stands in it.
    """

    name: str
    kind: Kind
    text: str


def fields(arguments: Mapping[str, Any]) -> list[Field]:
    """The fields of arguments, in their order."""
    return [Field(name, _kind(value), _text(value)) for name, value in arguments.items()]


def changed(arguments: Mapping[str, Any], edits: object) -> dict[str, Any] | None:
    """The arguments with what was typed into their fields; None where nothing was changed.

    Args:
        arguments: As they are.
        edits: What stands in the fields that were touched, by name: nothing else is taken over.

    Raises:
        ParlourError: key `wrong_arguments`: what was typed is not of the kind that stood there.
    """
    if not isinstance(edits, dict):
        return None
    typed = cast("dict[str, object]", edits)
    made = {name: _read(typed[name], value) if name in typed else value for name, value in arguments.items()}
    return None if made == dict(arguments) else made


def _read(text: object, before: Any) -> Any:
    if not isinstance(text, str):
        raise _wrong()
    whole = text.encode(errors="replace").decode()
    if isinstance(before, str):
        return whole
    try:
        value = json.loads(whole, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _wrong() from error
    kind = _kind(before)
    if kind not in {"json", _kind(value)}:
        raise _wrong()
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON.")


def _wrong() -> ParlourError:
    return ParlourError("What was typed is not of the kind that stood there.", key="wrong_arguments")


def _kind(value: Any) -> Kind:
    match value:
        case str():
            return "text"
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case list():
            return "list"
        case dict():
            return "object"
        case _:
            return "json"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, list | dict) and value else None)
