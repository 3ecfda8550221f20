"""Keys of an object argument that its type has no field for, which pydantic passes over without a word.

The function's own parameters, a `TypedDict` and a dataclass refuse such keys by themselves; a model within them does
not, unless it says so. Only keys that are passed over for certain are named: where a validator reads an object in a way
of its own, nobody here knows what it read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel

if TYPE_CHECKING:
    from collections.abc import Iterator


def unknown_key(given: object, filled: object) -> str:
    """The way to the first key that is in no field, its parts separated by dots; "" where there is none.

    Args:
        given: What a model or somebody wrote.
        filled: What pydantic made of it.
    """
    return next((".".join(way) for way in _unknown(given, filled)), "")


def _unknown(given: object, filled: object) -> Iterator[tuple[str, ...]]:
    if isinstance(filled, RootModel):
        yield from _unknown(given, cast("RootModel[object]", filled).root)
        return
    for name, one, made in _inside(given, filled):
        yield from ((name, *way) for way in _unknown(one, made))
    if isinstance(filled, BaseModel) and isinstance(given, Mapping):
        written = cast("Mapping[object, Any]", given)
        fields = {name: _keys(type(filled), name) for name in type(filled).model_fields}
        if _passes_over(type(filled)) and _is_read_as_written(filled, fields, written):
            known = {key for keys in fields.values() for key in keys}
            yield from ((str(key),) for key in written if key not in known)


def _inside(given: object, filled: object) -> Iterator[tuple[str, object, object]]:
    """What was written next to what became of it, one level further in."""
    if isinstance(given, Mapping):
        written = cast("Mapping[str, object]", given)
        if isinstance(filled, BaseModel):
            for name in type(filled).model_fields:
                key = next((one for one in _keys(type(filled), name) if one in written), None)
                if key is not None:
                    yield key, written[key], getattr(filled, name)
        elif isinstance(filled, Mapping):
            made = {str(key): one for key, one in cast("Mapping[object, object]", filled).items()}
            yield from ((key, one, made[key]) for key, one in written.items() if key in made)
        elif is_dataclass(filled):
            yield from ((key, one, getattr(filled, key)) for key, one in written.items() if hasattr(filled, key))
    elif isinstance(given, list) and isinstance(filled, list | tuple):
        pairs = zip(cast("list[object]", given), cast("list[object]", filled), strict=False)
        yield from ((str(n), one, made) for n, (one, made) in enumerate(pairs))


def _passes_over(kind: type[BaseModel]) -> bool:
    """Whether it passes over keys that nobody said are passed over, and reads none in a way of its own."""
    own = kind.__pydantic_decorators__.model_validators.values()
    return kind.model_config.get("extra") is None and not any(one.info.mode in {"before", "wrap"} for one in own)


def _is_read_as_written(filled: BaseModel, fields: Mapping[str, list[str]], written: Mapping[object, Any]) -> bool:
    """Whether all that was read stands there; else a validator before the model made something else of it."""
    return all(any(key in written for key in fields.get(name, ())) for name in filled.model_fields_set)


def _keys(kind: type[BaseModel], name: str) -> list[str]:
    """The keys that a field may be written under."""
    field = kind.model_fields[name]
    alias: Any = field.validation_alias or field.alias
    choices: list[Any] = alias.choices if isinstance(alias, AliasChoices) else [alias]
    keys = [str(one.path[0]) if isinstance(one, AliasPath) else str(one) for one in choices if one]
    by_name = kind.model_config.get("populate_by_name") or kind.model_config.get("validate_by_name")
    return [name, *keys] if by_name or not keys else keys
