"""Public models say in one sentence which field is wrong; the error is still a `ValidationError` of pydantic's."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import pydantic
from pydantic import AliasChoices, AliasPath, BaseModel
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

from core.errors import ParlourError, SettingsError, WrongParametersError, shown
from core.plain_calls import Call, is_marked, name_of, telling_fields
from core.plain_names import meant, needed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_DEEP: Final = 2  # the place of an error in a part of a field is longer
_NEAR: Final = 0.85
_IGNORES: Final = frozenset({None, "ignore"})
_STANDARD: Final = frozenset(get_args(ErrorType))
_MUST_BE: Final = {
    "bool": ("true or false", "True"),
    "dict": ("a dict", "{…}"),
    "float": ("a number", "1.5"),
    "int": ("a whole number", "1"),
    "list": ("a list", "[…]"),
    "model": ("a dict", "{…}"),
    "string": ("a text", '"…"'),
    "tuple": ("a list", "[…]"),
}
"""What pydantic's kinds of errors begin with, what a sentence calls what is wanted, and what to write."""


class ValidationError(SettingsError, pydantic.ValidationError):
    """A public model was given a wrong value; `errors()` tells all of them, as of pydantic's error."""

    def __new__(cls, *given: Any) -> ValidationError:
        """As pydantic makes it; without anything there is nothing wrong."""
        return super().__new__(cls, *(given or ("", [])))

    def __init__(self, *_: Any) -> None:
        super().__init__()

    def __reduce__(self) -> tuple[Any, ...]:
        """As pydantic copies it, with its sentence."""
        made: Any = super().__reduce__()
        return (*made[:2], {**vars(self), "args": self.args})

    @classmethod
    def of(cls, name: str, fields: Collection[str], error: pydantic.ValidationError) -> ValidationError:
        """The same as `error`, with one sentence."""
        every = error.errors(include_url=False)
        lines = [_line(one) for one in every]
        told = cast("ValidationError", cls.from_exception_data(error.title, lines))
        said, hint = _said(name, fields, every)
        told.args, told.hint, told.__suppress_context__ = (said,), hint, True
        return told


def tells_wrong_fields(kind: type[BaseModel]) -> None:
    """Let the constructor of a model say in one sentence what is wrong with what it is given."""
    made: Any = getattr(kind, "__init__")  # noqa: B009 - a type checker takes it for an object's
    is_inherited = made is not vars(kind).get("__init__", BaseModel.__init__)  # and says it already
    if is_marked(made) or is_inherited or not kind.model_fields:
        return
    call, is_pydantics = Call(made), made is BaseModel.__init__

    def said(error: Exception, one: BaseModel, values: Sequence[Any], named: Mapping[str, Any]) -> Exception:
        if isinstance(error, ParlourError):
            return error
        if isinstance(error, pydantic.ValidationError):
            return ValidationError.of(name_of(type(one)), type(one).model_fields, error)
        if is_pydantics and values:
            name, first = name_of(type(one)), next(iter(kind.model_fields))
            return WrongParametersError(f"{name} takes no value without a name.", hint=f"Write {name}({first}=…).")
        return call.said(error, (one, *values), named)

    def check(one: BaseModel, named: Mapping[str, Any]) -> None:
        if not _takes_otherwise(type(one), kind):
            _check_names(name_of(type(one)), _fields(type(one)), named, takes_any=not is_pydantics)

    looks = kind.model_config.get("extra") in _IGNORES  # else pydantic does
    told = telling_fields(made, kind.model_fields if looks else None, check, said)
    setattr(kind, "__init__", told)  # noqa: B010 - a type checker refuses the assignment


def _takes_otherwise(one: type[BaseModel], kind: type[BaseModel]) -> bool:
    """Whether a class that a program derived from ours takes other names, or looks at them itself."""
    if one is kind:
        return False
    before = {name for name, each in one.__pydantic_decorators__.model_validators.items() if each.info.mode != "after"}
    own = before - kind.__pydantic_decorators__.model_validators.keys()
    return bool(own) or one.model_config.get("extra") not in _IGNORES


def _fields(kind: type[BaseModel]) -> list[str]:
    """The names of its fields, with other ones that a program gave them."""
    others = [(field.alias, field.validation_alias) for field in kind.model_fields.values()]
    return [*kind.model_fields, *(name for names in others for one in names for name in _aliases(one))]


def _aliases(given: str | AliasPath | AliasChoices | None) -> list[str]:
    if isinstance(given, AliasChoices):
        return [name for one in given.choices for name in _aliases(one)]
    return [str(given.path[0])] if isinstance(given, AliasPath) else [given] if given else []


def _check_names(name: str, fields: Collection[str], named: Mapping[str, Any], *, takes_any: bool) -> None:
    """Raise WrongParametersError for a name that no field has; where any is taken, for one that is nearly right."""
    for one in named:
        if one not in fields and (not takes_any or get_close_matches(one, fields, n=1, cutoff=_NEAR)):
            said = f"{name} has no parameter `{one}`."
            raise WrongParametersError(said, hint=meant(one, fields), name=one)


def _line(one: Any) -> InitErrorDetails:
    """A line of an error, to make another error of."""
    known = {"type": one["type"], "loc": one["loc"], "input": one["input"], "ctx": one.get("ctx", {})}
    if one["type"] in _STANDARD:
        return cast("InitErrorDetails", known)
    return InitErrorDetails(type=PydanticCustomError(one["type"], one["msg"]), loc=one["loc"], input=one["input"])


def _said(name: str, fields: Collection[str], every: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """What is wrong first, and what to write."""
    missing = [str(one["loc"][0]) for one in every if one["type"] == "missing" and len(one["loc"]) == 1]
    unknown = [str(one["loc"][0]) for one in every if one["type"] == "extra_forbidden"]
    if unknown:
        return f"{name} has no parameter `{unknown[0]}`.", meant(unknown[0], fields)
    if missing:
        error = needed(name, missing)
        return str(error.args[0]), error.hint
    wrong = next((one for one in every if len(one["loc"]) > _DEEP), every[0])  # of a list the part says more
    if wrong["type"] == "value_error":
        return f"{str(wrong['ctx']['error']).rstrip('.')}.", ""
    field, is_part = str(wrong["loc"][0]), len(wrong["loc"]) > _DEEP
    place = field + "".join(f"[{one}]" for one in wrong["loc"][1:] if isinstance(one, int))
    told = [wrong] if is_part else [one for one in every if one["loc"][0] == field]
    wanted = dict(_MUST_BE[kind] for one in told if (kind := one["type"].partition("_")[0]) in _MUST_BE)
    if not wanted:
        return f"{place} of {name} is wrong: {_lowered(wrong['msg'])}.", f"Correct {place}."
    said = f"{place} of {name} must be {' or '.join(wanted)}, not {shown(wrong['input'])}."
    example = next(iter(wanted.values()))
    return said, f"Write {example} there." if is_part else f"Write {name}({field}={example})."


def _lowered(message: str) -> str:
    said = message.removeprefix("Value error, ").rstrip(".")
    return f"{said[:1].lower()}{said[1:]}"
