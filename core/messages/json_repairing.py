"""Guesses what broken JSON was meant to say, in a time that the length of the text bounds.

The library that guesses looks ahead from nearly every character, so some texts cost it the square of their length.
It is therefore given short and shallow texts only, and a number of characters that it may look at.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, SupportsIndex

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST: Final = 20_000
"""Characters of the longest text that is repaired."""
DEEPEST: Final = 100
"""How many brackets may be open at once."""
# What people and models really write is repaired in 1 to 10 looks a character.
_LOOKS: Final = 20
_LOOKS_OF_ANY: Final = 20_000
_AT_ONCE: Final = 32  # characters that are searched in the time of one look
_KEPT: Final = 256


def repaired(text: str) -> str:
    """The JSON text that `text` was probably meant to be. Results and failures of recent texts are kept.

    Raises:
        ValueError: It is too long or too deep, or would take too long.
    """
    if len(text) > LONGEST:
        raise ValueError(f"JSON of {len(text)} characters is too long to be repaired.")
    found, problem = _remembered(text)
    if problem:
        raise ValueError(problem)
    return found


@lru_cache(maxsize=_KEPT)
def _remembered(text: str) -> tuple[str, str]:
    """The JSON text and no problem, or the other way round: what is raised would not be kept."""
    if _depth(text) > DEEPEST:
        return "", "The JSON is nested too deeply."
    repair: Any = import_module("json_repair")
    try:
        found = repair.loads(_Metered.of(text), skip_json_loads=True)
        return json.dumps(found, ensure_ascii=False), ""
    except RecursionError:
        return "", "The JSON is nested too deeply."
    except (_SpentError, ValueError) as error:
        return "", str(error)


def _depth(text: str) -> int:
    """How many brackets are open at once at most. Strings do not count: where they end is what nobody knows."""
    deepest = depth = 0
    for char in text:
        if char in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "}]" and depth:
            depth -= 1
    return deepest


class _SpentError(Exception):
    """No look is left. Not a `ValueError`, which the library catches."""


class _Metered(str):
    """Text that can be looked at so many times only."""

    __slots__ = ("_spend",)
    _spend: Callable[[int], None]

    @classmethod
    def of(cls, text: str) -> _Metered:
        """The text with the looks that its length gives."""
        left = _LOOKS * len(text) + _LOOKS_OF_ANY

        def spend(looks: int) -> None:
            nonlocal left
            left -= looks
            if left < 0:
                raise _SpentError("It takes too long to guess what this JSON was meant to be.")

        return cls._with(text, spend)

    @classmethod
    def _with(cls, text: str, spend: Callable[[int], None]) -> _Metered:
        made = cls(text)
        made._spend = spend
        return made

    def __getitem__(self, at: SupportsIndex | slice) -> str:
        found = super().__getitem__(at)
        if not isinstance(at, slice):
            self._spend(1)
            return found
        self._spend(1 + len(found))  # it may be gone through one by one
        return self._with(found, self._spend)

    def __add__(self, other: str) -> str:
        return self._with(super().__add__(other), self._spend)

    def __radd__(self, other: str) -> str:
        return self._with(str(other) + str(self), self._spend)

    def find(self, *looked_for: Any) -> int:
        """As ever, for as many looks as it passes characters."""
        found = super().find(*looked_for)
        begin = looked_for[1] if len(looked_for) > 1 else 0
        self._spend(1 + ((found if found >= 0 else len(self)) - begin) // _AT_ONCE)
        return found
