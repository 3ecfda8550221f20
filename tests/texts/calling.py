"""Puts a text in place of one parameter of a function, in each of the ways in which a stranger's text comes."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from tests.texts.carriers import FORMS, carrier
from tests.texts.feeds import MADE, VALUES
from tests.texts.finding import Taker
from tests.texts.measuring import Call

STREAMED = frozenset({"feed", "add", "say", "write", "is_literal"})
_PIECE, _PART = 20, 50  # characters of a text in a list, and of what carries it
_PATIENCE = 20.0  # seconds that a coroutine may wait for others; on a busy machine imports take one
_ROWS = re.compile(r"\[tuple\[(.*)\]\]")
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

    @property
    def is_carried(self) -> bool:
        """Whether the text comes in values of the house, such as messages."""
        return " of " in self.kind

    def call(self, text: str) -> Call:
        """The call with this text; what is made for it beforehand is made now."""
        kind, _, form = self.kind.partition(" of ")
        wanted = parameters(self.taker)[self.parameter]
        make = FORMS[carrier(str(wanted.annotation))[0]][form] if form else str
        if kind.startswith("by "):
            return self._streamed([make(one) for one in cut(text, int(kind[3:]))])
        function, others = bound(self.taker, self.parameter)
        if kind == "whole":
            others[self.parameter] = make(text)
        else:
            pieces = [text] if kind == "one" else cut(text, _PART if form else _PIECE)
            others[self.parameter] = shaped(wanted, [make(one) for one in pieces])
        return lambda: used(function(*_positional(self.taker, others), **_named(self.taker, others)))

    def _streamed(self, pieces: list[Any]) -> Call:
        function, others = bound(self.taker, self.parameter)
        end = ended(getattr(function, "__self__", None))

        def call() -> None:
            for piece in pieces:
                others[self.parameter] = piece
                used(function(**others))
            if end is not None:
                used(end())

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
        if parameters(taker)[name].kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        annotation = str(parameters(taker)[name].annotation)
        method = taker.name.rpartition(".")[2]
        carried, several = carrier(annotation)
        if taker.owner is not None and method in STREAMED and annotation in {"str", "bytes"}:
            kinds = ("whole", "by 20", "by 1")
        elif several or not (carried or _is_one(annotation)):
            kinds = ("one", "pieces")
        else:
            kinds = ("whole",)
        for kind in kinds:
            if carried:
                yield from (Way(taker, name, f"{kind} of {form}") for form in FORMS[carried])
            else:
                yield Way(taker, name, kind)


@cache
def parameters(taker: Taker) -> dict[str, inspect.Parameter]:
    """Those of a function, without the instance."""
    return {name: one for name, one in inspect.signature(taker.function).parameters.items() if name != "self"}


def bound(taker: Taker, fed: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A function with its arguments but the one that is fed; a method with an instance of its own."""
    function = taker.function
    if taker.owner is not None:
        function = getattr(instance(taker), taker.name.rpartition(".")[2])
    made = MADE.get(f"{taker.path}()")
    others = made() if made is not None else {}
    for name, one in parameters(taker).items():
        if (
            name not in {fed, *others}
            and one.default is one.empty
            and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
        ):
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
    carried, several = carrier(annotation)
    if annotation not in VALUES and carried:
        one = next(iter(FORMS[carried].values()))("a")
        return [one] if several else one
    if annotation not in VALUES:
        raise LookupError(f"{taker.path}: say in feeds.py how a {annotation!r} is made, for {parameter.name!r}")
    return VALUES[annotation]()


def cut(text: str, size: int) -> list[str]:
    """The text in pieces of so many characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def shaped(parameter: inspect.Parameter, pieces: list[Any]) -> Any:
    """Pieces as the parameter wants them."""
    annotation = str(parameter.annotation)
    if rows := _ROWS.search(annotation):
        return [_row(rows[1].split(", "), at, piece) for at, piece in enumerate(pieces)]
    if annotation.startswith("tuple"):
        return tuple(pieces)
    if annotation.startswith(("set", "frozenset", "AbstractSet", "Collection")):
        return set(pieces) if annotation.startswith(("set", "AbstractSet")) else frozenset(pieces)
    return pieces


def _row(kinds: list[str], at: int, piece: Any) -> tuple[Any, ...]:
    """A tuple with a text at each place for one, and how many there were before it at the others."""
    return tuple(piece if kind in {"str", "..."} else at for kind in kinds)


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


def used(found: Any) -> None:
    """What is made while somebody reads it is read to its end; a coroutine is awaited."""
    if inspect.isgenerator(found):
        for _ in found:
            pass
    elif inspect.isasyncgen(found):
        waited_for(_read(found))
    elif inspect.iscoroutine(found):
        waited_for(found)


async def _read(found: AsyncIterable[Any]) -> None:
    async for _ in found:
        pass


def waited_for(work: Coroutine[Any, Any, Any]) -> None:
    """Await what stands still for no longer than a moment: it is the time of the processor that counts."""
    try:
        _runner().run(asyncio.wait_for(work, _PATIENCE))
    except Exception:
        raise
    except BaseException:  # it was ended in the middle
        _runner.cache_clear()
        raise


@cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
