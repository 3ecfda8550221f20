"""A `TypedDict` of the standard library, as pydantic reads it."""

from __future__ import annotations

import sys
from types import UnionType
from typing import Annotated, Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import typing_extensions

_IS_READ: Final = sys.version_info >= (3, 12)  # before, `typing` keeps too little of its own for pydantic


def readable(kind: Any) -> Any:
    """The same type, in which every `typing.TypedDict` is one of `typing_extensions` with the same fields."""
    return kind if _IS_READ else _rebuilt(kind, ())


def _rebuilt(kind: Any, outer: tuple[Any, ...]) -> Any:
    """The type, anew where it must be.

    Args:
        kind: A type.
        outer: Those that it stands in; one that stands in itself is left as it is.
    """
    if type(kind).__module__ == "typing" and typing_extensions.is_typeddict(kind):
        return kind if kind in outer else _dict_of(kind, (*outer, kind))
    origin, inside = get_origin(kind), get_args(kind)
    if not inside or origin is None or origin is Literal:
        return kind
    if origin is Annotated:
        inner = _rebuilt(inside[0], outer)
        return kind if inner is inside[0] else Annotated[(inner, *inside[1:])]
    made = tuple(_rebuilt(one, outer) for one in inside)
    if all(new is old for new, old in zip(made, inside, strict=True)):
        return kind
    return Union[made] if origin in {Union, UnionType} else origin[made]  # noqa: UP007 - made of what is known only here


def _dict_of(kind: Any, outer: tuple[Any, ...]) -> Any:
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):  # pydantic says what is wrong with it
        return kind
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        said = get_origin(hint)
        marked = said is Required or said is NotRequired
        needed = said is Required if marked else name in kind.__required_keys__
        inner = _rebuilt(get_args(hint)[0] if marked else hint, outer)
        fields[name] = Required[inner] if needed else NotRequired[inner]
    made: Any = typing_extensions.TypedDict(kind.__name__, fields)  # type: ignore[operator]
    made.__module__, made.__qualname__, made.__doc__ = kind.__module__, kind.__qualname__, kind.__doc__
    return made
