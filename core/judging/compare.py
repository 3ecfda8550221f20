"""Two runs of a suite held against each other, task by task, with how sure the difference is.

The interval is that of the paired bootstrap: tasks are drawn with replacement, each with both of its results, and the
2.5th and 97.5th percentile of the mean difference are taken (Efron and Tibshirani, "An Introduction to the Bootstrap",
1993, chapter 13). Whether a task is passed is tested by McNemar's test in its exact form: under the hypothesis that
both are as good, each task that only one of them passes is a throw of a fair coin (McNemar, Psychometrika 12, 1947).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, isfinite, nan
from random import Random
from typing import TYPE_CHECKING, Any, Final

from core.agents.arguments import checked_int
from core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.judging.result import Row, SuiteRun

PASSED: Final = "passed"
MOST_RESAMPLES: Final = 100_000
"""More make the interval no better, and each costs a draw for every task."""
_FEWEST: Final = 100
_RESAMPLES: Final = 10_000
_SEED: Final = 7


@dataclass(frozen=True, slots=True)
class Difference:
    """How two runs differ in one thing.

    Args:
        name: `passed`, or the name of a score.
        of: How many tasks have it in both.
        before: The mean of the first run: of `passed` the share.
        after: That of the second.
        low: Where the 95 % interval of the difference begins.
        high: Where it ends.
        p: Of `passed`, how likely a difference at least as large is where both are as good; `None` of a score.
    """

    name: str
    of: int
    before: float
    after: float
    low: float
    high: float
    p: float | None = None

    @property
    def by(self) -> float:
        """The second less the first."""
        return self.after - self.before

    @property
    def verdict(self) -> str:
        """`better` or `worse` where the interval lies on one side of zero; else `unsure`."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "unsure"

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        own = {"name": self.name, "of": self.of, "before": self.before, "after": self.after, "difference": self.by}
        return {**own, "low": self.low, "high": self.high, "p": self.p, "verdict": self.verdict}


def compare(before: SuiteRun, after: SuiteRun, *, resamples: int = _RESAMPLES, seed: int = _SEED) -> list[Difference]:
    """How two runs of a suite differ, such as those of two agents: first `passed`, then each score that both have.

    Only tasks count that ask and check the same in both. A score that is no finite number (NaN: it could not be told)
    counts as none: its task is left out of that score, and `of` says how many are left.

    Args:
        before: What is compared with.
        after: What is looked at.
        resamples: How many samples the interval is made of, from 100 to 100,000.
        seed: Of the draws, from 0: the same gives the same interval.

    Raises:
        SettingsError: They have no task in common, or `resamples` or `seed` is no such number.
    """
    checked_int("resamples", resamples, _FEWEST, MOST_RESAMPLES, such_as=_RESAMPLES)
    checked_int("seed", seed, 0, such_as=_SEED)
    old = {row.id: row for row in before.rows}
    pairs = [(old[row.id], row) for row in after.rows if row.id in old and old[row.id].task_mark == row.task_mark]
    if not pairs:
        said = "The two runs have no task in common that asks and checks the same."
        raise SettingsError(said, hint="Compare runs of one suite.", name="after")
    draws = Random(seed)  # noqa: S311 - no secret
    passed = [(float(a.passed), float(b.passed)) for a, b in pairs]
    only_before, only_after = sum(a > b for a, b in passed), sum(b > a for a, b in passed)
    found = [_difference(PASSED, passed, resamples, draws, mcnemar(only_before, only_after))]
    names = dict.fromkeys(name for _, row in pairs for name in row.scores)
    for name in names:
        given = [(a.scores.get(name, nan), b.scores.get(name, nan)) for a, b in pairs]
        both = [(one, other) for one, other in given if isfinite(one) and isfinite(other)]
        found += [_difference(name, both, resamples, draws)] if both else []
    return found


def mcnemar(only_before: int, only_after: int) -> float:
    """The two-sided p of McNemar's exact test.

    Args:
        only_before: Tasks that only the first passes.
        only_after: Tasks that only the second passes.
    """
    of = only_before + only_after
    tail = sum(comb(of, k) for k in range(min(only_before, only_after) + 1))
    return min(1.0, 2 * tail / 2**of)


def score_means(rows: Sequence[Row]) -> Mapping[str, float]:
    """The mean of each score over the tasks that have it as a finite number."""
    given: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.scores.items():
            if isfinite(value):
                given.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in given.items()}


def _difference(
    name: str, pairs: Sequence[tuple[float, float]], resamples: int, draws: Random, p: float | None = None
) -> Difference:
    of = len(pairs)
    by = [after - before for before, after in pairs]
    means = sorted(sum(draws.choices(by, k=of)) / of for _ in range(resamples))
    low, high = means[int(0.025 * resamples)], means[min(resamples - 1, int(0.975 * resamples))]
    return Difference(name, of, sum(one[0] for one in pairs) / of, sum(one[1] for one in pairs) / of, low, high, p)
