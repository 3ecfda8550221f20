"""What a measurement says: a value, its goal, and whether it was met."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the results.

    Args:
        what: What was measured, as a reader would say it.
        value: What came out, in `unit`.
        goal: The most that is allowed, in the same unit.
        unit: "×" for a ratio against the peer, else "s" or "ms"; "" for a share from 0 to 1.
        peer: What it was compared with, and both sides' own figures.
        at_least: The goal is the least that is allowed.
    """

    what: str
    value: float
    goal: float
    unit: str
    peer: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the goal was reached."""
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def row(self) -> str:
        """A row of a Markdown table."""
        met = "yes" if self.met else "NO"
        unit, sign = f" {self.unit}".rstrip(), "≥" if self.at_least else "≤"
        return f"| {self.what} | {self.value:.3g}{unit} | {sign} {self.goal:g}{unit} | {met} | {self.peer} |"


def alternate(ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> tuple[list[float], list[float]]:
    """Measure both in turns, after one round of each that does not count, so that both see the same machine."""
    ours()
    theirs()
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def ratio(ours: Iterable[float], theirs: Iterable[float]) -> float:
    """Ratio of the medians."""
    return statistics.median(ours) / statistics.median(theirs)


def report(figures: Iterable[Figure]) -> None:
    """Print figures so that `python -m bench` can read them."""
    for figure in figures:
        sys.stdout.write(json.dumps(asdict(figure), ensure_ascii=False) + "\n")
        sys.stdout.flush()
