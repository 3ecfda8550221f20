"""A run of a suite: its rows, what they come to, and how it compares with the one before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from core.judging.row import Row
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Group = Literal["tag", "lang", "check"]


@dataclass(frozen=True, slots=True)
class Total:
    """How many of some passed."""

    passed: int = 0
    of: int = 0

    @property
    def share(self) -> float:
        """From 0 to 1; 1 of none."""
        return self.passed / self.of if self.of else 1.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed since a run, as ids of tasks.

    Args:
        before: That run.
        better: Passed now, and did not then.
        worse: Passed then, and do not now.
        new: Were not there.
        gone: Are not there any more.
        changed: Are there, but ask or check something else, or ask another agent: they are compared with nothing.
    """

    before: SuiteRun
    better: tuple[str, ...]
    worse: tuple[str, ...]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """A run.

    Args:
        suite: The suite's name.
        model: Who answered.
        began: When, in UTC, as ISO 8601.
        rows: What came of each task.
        before: The last run before it, where there is one.
    """

    suite: str
    model: str
    began: str
    rows: tuple[Row, ...]
    before: SuiteRun | None = None

    @property
    def total(self) -> Total:
        """Of all tasks."""
        return total(self.rows)

    @property
    def usage(self) -> Usage:
        """Tokens and cost of all tasks."""
        usage = Usage()
        for row in self.rows:
            usage += row.usage
        return usage

    @property
    def seconds(self) -> float:
        """The sum over all tasks; those that run side by side count each."""
        return sum(row.seconds for row in self.rows)

    def totals(self, group: Group) -> dict[str, Total]:
        """Tasks by tag or language, or checks by their kind."""
        counted: dict[str, list[bool]] = {}
        for row in self.rows:
            for name, passed in _counted(row, group):
                counted.setdefault(name, []).append(passed)
        return {name: Total(sum(counted[name]), len(counted[name])) for name in sorted(counted)}

    def compared(self) -> Comparison | None:
        """With the run before; `None` where there is none."""
        if self.before is None:
            return None
        old = {row.id: row for row in self.before.rows}
        now = {row.id: row for row in self.rows}
        same = [name for name in now if name in old and old[name].task_mark == now[name].task_mark]
        return Comparison(
            self.before,
            better=tuple(name for name in same if now[name].passed and not old[name].passed),
            worse=tuple(name for name in same if old[name].passed and not now[name].passed),
            new=tuple(name for name in now if name not in old),
            gone=tuple(name for name in old if name not in now),
            changed=tuple(name for name in now if name in old and name not in set(same)),
        )

    def as_dict(self) -> dict[str, Any]:
        """As plain values, without the run before."""
        rows = [row.as_dict() for row in self.rows]
        return {"suite": self.suite, "model": self.model, "began": self.began, "rows": rows}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> SuiteRun:
        """Read back. Raises KeyError, TypeError or ValueError where it is none."""
        rows = cast("Sequence[Mapping[str, Any]]", given["rows"])
        return cls(str(given["suite"]), str(given["model"]), str(given["began"]), tuple(map(Row.from_dict, rows)))

    def after(self, before: SuiteRun | None) -> SuiteRun:
        """The same, to be compared with `before`."""
        return replace(self, before=before and replace(before, before=None))


def total(rows: Iterable[Row]) -> Total:
    """How many of the rows passed."""
    passed = [row.passed for row in rows]
    return Total(sum(passed), len(passed))


def _counted(row: Row, group: Group) -> list[tuple[str, bool]]:
    if group == "check":
        return [(one.kind, one.passed) for one in row.checks]
    return [(name, row.passed) for name in (row.tags if group == "tag" else (row.lang,))]
