"""Puts a text in place of one parameter of a function, in each of the ways in which a stranger's text comes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from tests.texts.feeds import MADE, OURS, VALUES
from tests.texts.finding import Taker
from tests.texts.measuring import Call

STREAMED = frozenset({"feed", "add", "say", "write", "is_literal"})
_PIECE = 20
_ENDS = ("close", "end", "rest", "finish", "flush")


@dataclass(frozen=True)
class Way:
    """One parameter of a function, and how text comes to it: whole, in a list, or piece by piece."""

    taker: Taker
    parameter: str
    kind: str

    def __str__(self) -> str:
        return f"{self.taker.path}({self.parameter}, {self.kind})"

    @property
    def is_whole(self) -> bool:
        """Whether it is one call; so many calls as there are letters take their own time."""
        return not self.kind.startswith("by ")

    def call(self, text: str) -> Call:
        """The call with this text; what is made for it beforehand is made now."""
        if self.kind.startswith("by "):
            return self._streamed(
                [text[at : at + int(self.kind[3:])] for at in range(0, len(text), int(self.kind[3:]))]
            )
        function, others = bound(self.taker)
        given: Any = text
        if self.kind != "whole":
            pieces = [text] if self.kind == "list" else [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
            given = shaped(parameters(self.taker)[self.parameter], pieces)
        others[self.parameter] = given
        return lambda: _used(function(*_positional(self.taker, others), **_named(self.taker, others)))

    def _streamed(self, pieces: list[str]) -> Call:
        function, others = bound(self.taker)
        end = ended(getattr(function, "__self__", None))

        def call() -> None:
            for piece in pieces:
                others[self.parameter] = piece
                _used(function(**others))
            if end is not None:
                _used(end())

        return call


def ended(reader: object) -> Callable[[], Any] | None:
    """What is called when no more text comes."""
    found: Any = next((one for name in _ENDS if callable(one := getattr(reader, name, None))), None)
    if found is None:
        return None
    needs_cut = (
        "cut" in (taken := inspect.signature(found).parameters) and taken["cut"].default is inspect.Parameter.empty
    )
    return partial(found, cut=False) if needs_cut else found


def ways(taker: Taker) -> Iterator[Way]:
    """Each way in which text comes to a function."""
    for name in taker.texts:
        if name in OURS:
            continue
        if parameters(taker)[name].kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        annotation = str(parameters(taker)[name].annotation)
        method = taker.name.rpartition(".")[2]
        if taker.owner is not None and method in STREAMED and annotation == "str":
            yield from (Way(taker, name, kind) for kind in ("whole", "by 20", "by 1"))
        elif _is_one(annotation):
            yield Way(taker, name, "whole")
        else:
            yield from (Way(taker, name, kind) for kind in ("list", "pieces"))


@cache
def parameters(taker: Taker) -> dict[str, inspect.Parameter]:
    """Those of a function, without the instance."""
    return {name: one for name, one in inspect.signature(taker.function).parameters.items() if name != "self"}


def bound(taker: Taker) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function with its other arguments; a method with an instance of its own."""
    function = taker.function
    if taker.owner is not None:
        function = getattr(instance(taker), taker.name.rpartition(".")[2])
    made = MADE.get(f"{taker.path}()")
    others = made() if made is not None else {}
    for name, one in parameters(taker).items():
        if name not in others and one.default is one.empty and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}:
            others[name] = value_of(one, taker)
    return function, others


def instance(taker: Taker) -> Any:
    """A new one of the class whose method it is."""
    assert taker.owner is not None
    made = MADE.get(f"{taker.module}:{taker.owner.__name__}")
    if made is not None:
        return made()
    given = {
        name: value_of(one, taker)
        for name, one in _signature(taker.owner).parameters.items()
        if one.default is one.empty and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
    }
    return taker.owner(**given)


@cache
def _signature(owner: type[Any]) -> inspect.Signature:
    return inspect.signature(owner)


def value_of(parameter: inspect.Parameter, taker: Taker) -> Any:
    """What stands for a parameter of this kind."""
    annotation = parameter.annotation if isinstance(parameter.annotation, str) else parameter.annotation.__name__
    if annotation not in VALUES:
        raise LookupError(f"{taker.path}: say in feeds.py how a {annotation!r} is made, for {parameter.name!r}")
    return VALUES[annotation]()


def shaped(parameter: inspect.Parameter, pieces: list[str]) -> Any:
    """Pieces as the parameter wants them."""
    annotation = str(parameter.annotation)
    if annotation.startswith("tuple"):
        return tuple(pieces)
    if annotation.startswith(("set", "frozenset", "AbstractSet", "Collection")):
        return set(pieces) if annotation.startswith(("set", "AbstractSet")) else frozenset(pieces)
    return pieces


def _is_one(annotation: str) -> bool:
    return "[" not in annotation or annotation.split("|", maxsplit=1)[0].strip() in {"str", "Path"}


def _positional(taker: Taker, given: dict[str, Any]) -> list[Any]:
    return [
        given[name]
        for name, one in parameters(taker).items()
        if name in given and one.kind in {one.POSITIONAL_ONLY, one.VAR_POSITIONAL}
    ]


def _named(taker: Taker, given: dict[str, Any]) -> dict[str, Any]:
    kinds = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}
    return {name: value for name, value in given.items() if parameters(taker)[name].kind not in kinds}


def _used(found: Any) -> None:
    """What is made while somebody reads it is read to its end."""
    if inspect.isgenerator(found):
        for _ in found:
            pass
