"""Public functions and constructors, wrapped: a sentence says what is wrong with how they are called.

What a parameter takes is read from how it is written in the signature. Only words that are plain are known here; a
parameter with any other in it is left to the code that takes it, and what that says itself comes first.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from inspect import Parameter, iscoroutinefunction, signature
from itertools import chain
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args, get_origin

from core.errors import ParlourError, WrongParametersError, shown
from core.plain_names import wrong_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_HOUSE: Final = "".join(f"{part}." for part in __name__.split(".")[:-2])  # "parlour." in a wheel
OURS: Final = tuple(f"{_HOUSE}{room}." for room in ("core", "webui"))
_TOLD: Final = "__tells_wrong_parameters__"
_TAKES: Final = "takes"
"""In `details` of what is said here: whoever was given the value first says it better."""
_WRONG_VALUE: Final = (AttributeError, TypeError, ValueError)
"""What Python says of a value of another kind, deep in what takes it."""
_TEXTS: Final = (str, bytes, bytearray)


@dataclass(frozen=True, slots=True)
class Kind:
    """What one parameter takes.

    Args:
        words: What a sentence calls it.
        example: What to write.
        types: Classes of values that fit.
        tests: What else fits.
        values: The only ones, where they are named.
        plain: Classes whose own objects fit without a further look.
    """

    words: str
    example: str
    types: tuple[type, ...] = ()
    tests: tuple[Callable[[Any], bool], ...] = ()
    values: tuple[object, ...] = ()
    plain: frozenset[type] = frozenset()

    def fits(self, value: Any) -> bool:
        """Whether it takes the value; true and false are no numbers."""
        if isinstance(value, self.types):
            return type(value) is not bool or bool in self.types or object in self.types
        return any(test(value) for test in self.tests) or any(_is_same(value, one) for one in self.values)


def _is_same(value: Any, one: object) -> bool:
    try:
        return bool(value == one)
    except (TypeError, ValueError):  # an array is compared part by part
        return False


def _is_switch(value: Any) -> bool:
    """Whether it is a single true or false of NumPy's."""
    return getattr(getattr(value, "dtype", None), "kind", "") == "b" and getattr(value, "ndim", 1) == 0


def _is_many(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (*_TEXTS, Mapping, type))


def _is_dict(value: Any) -> bool:
    return isinstance(value, Mapping) or (hasattr(value, "keys") and not isinstance(value, type))


def _are_texts(value: Any) -> bool:
    is_held = isinstance(value, list | tuple | set | frozenset)  # anything else is read once
    return _is_many(value) and (
        not is_held or all(isinstance(one, str | PathLike) for one in cast("Iterable[object]", value))
    )


_MANY: Final = Kind("a list", "[…]", tests=(_is_many,), plain=frozenset({list, tuple}))
_TEXT_LIST: Final = Kind("a list of texts", '["…"]', tests=(_are_texts,))
_DICT: Final = Kind("a dict", "{…}", tests=(_is_dict,), plain=frozenset({dict}))
_PATH: Final = Kind("a path", 'Path("…")', types=(PathLike,))
_KINDS: Final[Mapping[str, Kind]] = {
    "None": Kind("None", "None", types=(type(None),)),
    "str": Kind("a text", '"…"', types=(str,)),
    "bool": Kind("True or False", "True", types=(bool,), tests=(_is_switch,)),
    "int": Kind("a whole number", "1", types=(int, Integral)),
    "float": Kind("a number", "1.5", types=(int, float, Real)),
    "bytes": Kind("bytes", 'b"…"', types=(bytes,)),
    "Callable": Kind("a function", "the_function", tests=(callable,)),
    "AsyncIterable": Kind("an asynchronous stream", "agent.events(…)", types=(AsyncIterable,)),
    "tuple[str, ...]": _TEXT_LIST,
    **dict.fromkeys(("Collection[str]", "Sequence[str]", "list[str]"), _TEXT_LIST),
    **dict.fromkeys(("Mapping", "dict"), _DICT),
    **dict.fromkeys(("Path", "PathLike"), _PATH),
    **dict.fromkeys(("Collection", "Iterable", "Sequence", "list", "tuple"), _MANY),
}
"""By how it is written in a signature."""
_OF_OURS: Final = frozenset({"Limits", "Passage", "Policy", "Reply", "SignIn", "SuiteRun", "Transcriber", "Usage"})
"""Classes of which programs make no others of the same shape, also where only type checkers import them."""


def kinds_of(made: Callable[..., Any]) -> dict[str, Kind]:
    """The parameters of a function of which it is plain what they take, in order, without its own object."""
    scope: dict[str, Any] = getattr(made, "__globals__", {})
    named = (one for one in signature(made).parameters.values() if one.kind is not Parameter.VAR_KEYWORD)
    return {one.name: kind for one in named if (kind := _kind(one.annotation, scope)) is not None}


def _kind(written: Any, scope: Mapping[str, Any]) -> Kind | None:
    """None where any part of it is not plain."""
    if not isinstance(written, str):
        return None
    found = [_KINDS.get(part) or _KINDS.get(part.partition("[")[0]) or _found(part, scope) for part in _parts(written)]
    kinds = [one for one in found if one is not None]
    if len(kinds) < len(found):
        return None
    words = [one.words for one in kinds]
    if _PATH in kinds and _KINDS["str"] in kinds:  # a path as text is one
        words.remove("a text")
    types = tuple(chain.from_iterable(one.types for one in kinds))
    return Kind(
        _either(words),
        kinds[0].example,
        types,
        tuple(chain.from_iterable(one.tests for one in kinds)),
        tuple(chain.from_iterable(one.values for one in kinds)),
        frozenset(types).union(*(one.plain for one in kinds)),
    )


def _found(written: str, scope: Mapping[str, Any]) -> Kind | None:
    """A class or a choice of values, by the name that it has where the function stands."""
    name = written.partition("[")[0]
    found = scope.get(name)
    if get_origin(found) is Literal:
        choices = get_args(found)
        return Kind(_either([repr(one) for one in choices]), repr(choices[0]), values=choices)
    if get_origin(found) is Callable:
        return _KINDS["Callable"]
    words, example = f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}", f"{name}(…)"
    if found is None and name in _OF_OURS:
        return Kind(words, example, tests=(partial(_is_named, name),))
    is_protocol = getattr(found, "_is_protocol", False)
    if isinstance(found, type) and not is_protocol and found.__module__.startswith(OURS):
        return Kind(words, example, types=(found,))
    return None


def _is_named(name: str, value: Any) -> bool:
    return any(one.__name__ == name for one in type(value).__mro__)


def _either(words: Sequence[str]) -> str:
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} or {last}" if first else last


def _parts(written: str) -> Iterator[str]:
    """What stands between the bars that are in no brackets."""
    depth, start = 0, 0
    for place, letter in enumerate(f"{written}|"):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            yield written[start:place].strip()
            start = place + 1


def telling(made: Callable[..., Any], *, checks: bool = False) -> Callable[..., Any]:
    """The function, with sentences.

    Args:
        made: It.
        checks: Whether values are looked at where it took them; where it failed with an error of Python's they are.
    """
    call = Call(made, checks=checks)

    @wraps(made)
    def told(*values: Any, **named: Any) -> Any:
        try:
            result = made(*values, **named)
        except _WRONG_VALUE as error:
            raise call.said(error, values, named)  # noqa: B904 - it has its cause, or needs none
        if checks:
            call.check(values, named)
        return result

    @wraps(made)
    async def told_later(*values: Any, **named: Any) -> Any:
        try:
            result = await made(*values, **named)
        except _WRONG_VALUE as error:
            raise call.said(error, values, named)  # noqa: B904 - it has its cause, or needs none
        if checks:
            call.check(values, named)
        return result

    return marked(told_later if iscoroutinefunction(made) else told)


def telling_fields(
    made: Callable[..., None],
    fields: Collection[str] | None,
    check: Callable[[Any, Mapping[str, Any]], None],
    said: Callable[[Exception, Any, Sequence[Any], Mapping[str, Any]], Exception],
) -> Callable[..., None]:
    """The constructor of a model of pydantic's, with sentences.

    Args:
        made: It.
        fields: The names that it takes; None where it looks itself.
        check: Told the object and what is given where a name is none of these.
        said: The sentence for an error, or the error.
    """
    known = None if fields is None else frozenset(fields)

    @wraps(made)
    def told(own: Any, /, *values: Any, **named: Any) -> None:
        if known is not None and not named.keys() <= known:
            check(own, named)
        try:
            made(own, *values, **named)
        except (TypeError, ValueError) as error:
            raise said(error, own, values, named)  # noqa: B904 - it has its cause, or needs none

    return marked(told)


def marked(told: Callable[..., Any]) -> Callable[..., Any]:
    """The wrapped function, so marked that it is not wrapped again."""
    setattr(told, _TOLD, True)
    return told


def is_marked(made: Any) -> bool:
    """Whether a function is wrapped."""
    return hasattr(made, _TOLD)


class Call:
    """One function or constructor, and what is wrong with how it is called."""

    def __init__(self, made: Callable[..., Any], *, checks: bool = False) -> None:
        owner = made.__qualname__.rpartition(".")[0]
        self._made = made
        self._own = 1 if owner and not owner.endswith("<locals>") else 0  # its object, or its class
        self._kinds: Mapping[str, Kind] | None = kinds_of(made) if checks else None
        self._order = _order(made)[self._own :] if checks else []

    def check(self, values: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Raise WrongParametersError where a value is of another kind than its parameter takes."""
        if wrong := self._misfit(values, named):
            raise wrong

    def said(self, error: Exception, values: Sequence[Any], named: Mapping[str, Any]) -> Exception:
        """The sentence, if an error is about how it was called; else the error."""
        if isinstance(error, ParlourError) and _TAKES not in error.details:
            return error  # it says it itself
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:  # it was called
            if wrong := self._misfit(values, named):
                wrong.__cause__ = error
            return wrong or error
        if self._own and not (values and self._is_of(_class_of(values))):
            return self._without_object() or error
        kind = our_class(_class_of(values)) if self._own else None
        if wrong := wrong_names(self._name(values), self._made, values[self._own :], named, kind):
            wrong.__suppress_context__ = True
        return wrong or error

    def _is_of(self, kind: type) -> bool:
        """Whether a class has it, as its own or as one that it inherits."""
        where = (self._made.__module__, self._made.__qualname__.rpartition(".")[0])
        return any((one.__module__, one.__qualname__) == where or self._is_in(one) for one in kind.__mro__)

    def _is_in(self, kind: type) -> bool:
        method = vars(kind).get(self._made.__name__)
        return getattr(getattr(method, "__func__", method), "__wrapped__", None) is self._made

    def _without_object(self) -> WrongParametersError | None:
        """The sentence for a method that was called on a class."""
        name = self._made.__name__
        if name.startswith("_"):
            return None
        hint = f"Make an object of the class first, and call {name} of that."
        wrong = WrongParametersError(f"{name} was called on a class, not on an object of it.", hint=hint)
        wrong.__suppress_context__ = True
        return wrong

    def _misfit(self, values: Sequence[Any], named: Mapping[str, Any]) -> WrongParametersError | None:
        if self._kinds is None:
            self._kinds, self._order = kinds_of(self._made), _order(self._made)[self._own :]
        for name, value in (*zip(self._order, values[self._own :], strict=False), *named.items()):
            kind = self._kinds.get(name)
            if kind is not None and type(value) not in kind.plain and not kind.fits(value):
                owner = self._name(values)
                said = f"{name} of {owner} must be {kind.words}, not {shown(value)}."
                hint = f"Write {owner}({name}={kind.example})."
                return WrongParametersError(said, hint=hint, name=name, **{_TAKES: kind.words})
        return None

    def _name(self, values: Sequence[Any]) -> str:
        """What a program writes before the parentheses."""
        name = self._made.__name__
        if not self._own:
            return name
        owner = name_of(_class_of(values))
        return owner if name == "__init__" else f"{owner}.{name}"


def _class_of(values: Sequence[Any]) -> type:
    return values[0] if isinstance(values[0], type) else type(values[0])


def our_class(kind: type) -> type:
    """The nearest class of the library, for a program may derive its own; of none of ours it is that one."""
    return next((one for one in kind.__mro__ if one.__module__.startswith(OURS)), kind)


def name_of(kind: type) -> str:
    """What a program calls it."""
    return our_class(kind).__name__.partition("[")[0]


def _order(made: Callable[..., Any]) -> list[str]:
    """The parameters that may be given without a name."""
    taken = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in signature(made).parameters.values() if one.kind in taken]
