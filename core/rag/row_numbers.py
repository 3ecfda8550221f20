"""Rows of a table by their numbers, as runs and as people write them ("2–13, 15"), and columns by their letters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Rows by their numbers, from the first to the last of each run."""

_LETTERS = 26
_RUN = re.compile(r"(\d{1,9})(?:–(\d{1,9}))?")


def column_letters(column: int) -> str:
    """A column's name in a sheet, counted from 0: A to Z, then AA."""
    name = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, _LETTERS)
        name = chr(ord("A") + rest) + name
    return name


def joined(runs: Iterable[tuple[int, int]]) -> Runs:
    """Runs in order, those that touch each other as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def written(runs: Runs, most: int = 60) -> str:
    """Runs as a text, with "…" where there are more than `most`."""
    told = [str(first) if first == last else f"{first}–{last}" for first, last in runs[:most]]
    return ", ".join([*told, "…"] if len(runs) > most else told)


def read(text: str) -> Runs:
    """The runs of such a text."""
    return tuple((int(first), int(last or first)) for first, last in _RUN.findall(text))


def shortened(text: str, most: int = 6) -> str:
    """Such a text with its first runs."""
    parts = text.split(", ")
    return text if len(parts) <= most else ", ".join([*parts[:most], "…"])


def has(runs: Runs, number: int) -> bool:
    """Whether a row is among them."""
    return any(first <= number <= last for first, last in runs)
