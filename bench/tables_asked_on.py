"""Further questions on real tables, and what is right: those that go on, for each time, ranked, two in one, and German.

They are asked by `bench.tables_in_words`. What is right is computed from the files themselves.
"""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from bench.tables import Cell, Gold
from core.rag.tables.query import Named

EACH = 24  # questions of a kind
KINDS = ("going on", "for each time", "ranked", "two in one", "German")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FurtherQuestion:
    """A question with those before it, and the figures that are right, each in the order in which it is told."""

    gold: Gold
    text: str
    right: tuple[tuple[float, ...], ...]
    earlier: tuple[str, ...] = ()


def further(kind: str, gold: Gold, named: Named, lot: random.Random) -> Iterator[FurtherQuestion]:
    """Questions of a kind over a table without end; none where it has no such columns."""
    called = {column.name.rpartition(" / ")[2] for column in named.table.columns}
    numbers = [at for at in gold.of(float) if gold.columns[at] in called]
    texts = [at for at in gold.of(str) if gold.columns[at] in called and not _days(gold, at)]
    days = [at for at in gold.of(str) if gold.columns[at] in called and _days(gold, at)]
    made = {"going on": _going_on, "for each time": _in_time, "ranked": _ranked, "two in one": _two, "German": _german}
    while numbers:
        question = made[kind](gold, lot, lot.choice(numbers), texts, days)
        if question is None and not texts and not days:
            return
        if question is not None:
            yield question
        elif kind in {"for each time", "ranked"} and not (days if kind == "for each time" else _groups(gold, texts)):
            return


def _day(cell: Cell) -> date | None:
    for form in ("%Y-%m-%d", "%d-%b-%y"):
        try:
            return datetime.strptime(str(cell), form).date()  # noqa: DTZ007 - a day
        except ValueError:
            continue
    return None


def _days(gold: Gold, at: int) -> bool:
    return all(_day(cells[at]) for _, cells in gold.rows)


def _groups(gold: Gold, texts: list[int]) -> list[int]:
    return [at for at in texts if len({cells[at] for _, cells in gold.rows}) < len(gold.rows)]


def _of(gold: Gold, at: int, where: dict[int, Cell]) -> list[float]:
    rows = [cells for _, cells in gold.rows if all(cells[key] == value for key, value in where.items())]
    return [cell for cells in rows if isinstance(cell := cells[at], float)]


def _going_on(gold: Gold, lot: random.Random, at: int, texts: list[int], days: list[int]) -> FurtherQuestion | None:
    name = gold.columns[at]
    if days:
        found = [day for _, cells in gold.rows if (day := _day(cells[days[0]]))]
        first, then = lot.choice(found), lot.choice(found)
        held = [
            cell
            for _, cells in gold.rows
            if (day := _day(cells[days[0]])) and (day.year, day.month) == (then.year, then.month)
            if isinstance(cell := cells[at], float)
        ]
        before = f"What is the highest {name} in {_MONTHS[first.month - 1]} {first.year}?"
        text = f"And in {_MONTHS[then.month - 1]} {then.year}?"
        return FurtherQuestion(gold, text, ((max(held),),), (before,)) if held else None
    if not texts:
        values = gold.numbers(at)
        first, then = f"{lot.choice(values):,}".removesuffix(".0"), lot.choice(values)
        said = f"{then:,}".removesuffix(".0")
        before = f"How many rows have {name} over {first}?"
        right = float(sum(value > then for value in values))
        return FurtherQuestion(gold, f"And with {name} over {said}?", ((right,),), (before,))
    of = lot.choice(texts)
    cells = sorted({str(cells[of]) for _, cells in gold.rows if isinstance(cells[of], str)})
    first, then = lot.choice(cells), lot.choice(cells)
    held = _of(gold, at, {of: then})
    if not held or any(len(one) > 40 or re.search(r"[\"\n]", one) for one in (first, then)):
        return None
    before = f"What is the sum of {name} where {gold.columns[of]} is {first}?"
    return FurtherQuestion(gold, f"And for {then}?", ((sum(held),),), (before,))


def _in_time(gold: Gold, lot: random.Random, at: int, _texts: list[int], days: list[int]) -> FurtherQuestion | None:
    if not days:
        return None
    time, key = lot.choice([
        ("month", lambda day: (day.year, day.month)),
        ("quarter", lambda day: (day.year, (day.month + 2) // 3)),
        ("year", lambda day: day.year),
    ])  # fmt: skip
    each: dict[object, list[float]] = {}
    for _, cells in gold.rows:
        if (day := _day(cells[days[0]])) and isinstance(cell := cells[at], float):
            each.setdefault(key(day), []).append(cell)
    figure, said = lot.choice([(sum, "total"), (statistics.mean, "average"), (max, "highest")])
    right = tuple(float(figure(each[one])) for one in sorted(each, key=str if time == "year" else lambda one: one))
    return FurtherQuestion(gold, f"What is the {said} {gold.columns[at]} by {time}?", (right,))


def _ranked(gold: Gold, lot: random.Random, at: int, texts: list[int], _no_days: list[int]) -> FurtherQuestion | None:
    groups = _groups(gold, texts)
    if not groups:
        return None
    of = lot.choice(groups)
    sums: dict[str, float] = {}
    for _, cells in gold.rows:
        if isinstance(cells[of], str) and isinstance(cell := cells[at], float):
            sums[str(cells[of])] = sums.get(str(cells[of]), 0) + cell
    many = lot.choice((2, 3))
    text = f"List the {many} {gold.columns[of]} with the highest total {gold.columns[at]}"
    return FurtherQuestion(gold, text, (tuple(sorted(sums.values(), reverse=True)[:many]),))


def _two(gold: Gold, lot: random.Random, at: int, _texts: list[int], _no_days: list[int]) -> FurtherQuestion | None:
    name, values = gold.columns[at], gold.numbers(at)
    limit = lot.choice(values)
    above = [value for value in values if value > limit]
    if not above:
        return None
    text = f"How many rows have {name} over {f'{limit:,}'.removesuffix('.0')} and what is the sum of their {name}?"
    return FurtherQuestion(gold, text, ((float(len(above)),), (sum(above),)))


def _german(gold: Gold, lot: random.Random, at: int, texts: list[int], _no_days: list[int]) -> FurtherQuestion | None:
    name, values = gold.columns[at], gold.numbers(at)
    limit = lot.choice([one for one in values if one < 1_000] or values)
    above = [value for value in values if value > limit]
    said = f"{limit:,}".removesuffix(".0")
    kinds = [(f"Wie viele Zeilen haben {name} über {said}?", float(len(above)))]
    if above:
        kinds += [
            (f"Was ist die Summe von {name} mit {name} über {said}?", sum(above)),
            (f"Was ist der durchschnittliche {name} mit {name} über {said}?", statistics.mean(above)),
        ]
    if texts:
        of = lot.choice(texts)
        cell = str(lot.choice([cells[of] for _, cells in gold.rows if isinstance(cells[of], str)]))
        held = _of(gold, at, {of: cell})
        if held and len(cell) < 40 and not re.search(r"[\"\n]", cell):
            kinds.append((f"Wie hoch ist die Summe von {name} mit {gold.columns[of]} {cell}?", sum(held)))
    text, right = lot.choice(kinds)
    return FurtherQuestion(gold, text, ((right,),))


def is_told_right(told: list[str], right: tuple[tuple[float, ...], ...]) -> bool:
    """Whether all figures are told, each of them with those that belong to it.

    Args:
        told: The figures of each passage, as texts; another table of the document may tell its own beside.
    """
    return any(
        all(_are_figures(text, figures) for text, figures in zip(told[first:], right, strict=False))
        for first in range(len(told) - len(right) + 1)
    )


def _are_figures(text: str, figures: tuple[float, ...]) -> bool:
    said = [float(one.split(" ")[0].replace(",", "")) for one in text.split(", ")]
    if len(said) != len(figures):
        return False
    return all(abs(one - other) <= 1e-4 * max(1.0, abs(other)) for one, other in zip(said, figures, strict=True))
