"""What came of a run of a suite: its rows, what they come to, and how it compares with the one before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from core.judging.checks import Outcome, calls_of, cited_places
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.agents.mapping import Answer
    from core.errors import ParlourError


@dataclass(frozen=True, slots=True)
class Row:
    """What came of a task.

    Args:
        mark: Of the task and, after a dash, of who answers: a row with another one is of another run.
        answer: What was said; "" where there is none.
        checks: What came of each check, in their order; none where the task failed.
        tags: What it is counted under.
        calls: Tools that were called, with their arguments as JSON.
        sources: Places that the answer cites.
        seconds: How long it took.
        usage: Tokens and cost, the judge's too.
        error: Why there is no answer, or no verdict: `key`, `message` and `details`.
        scores: Numbers that a program's own evaluators gave, by their names.
    """

    id: str
    mark: str
    question: str
    answer: str = ""
    checks: tuple[Outcome, ...] = ()
    lang: str = "en"
    tags: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    sources: tuple[tuple[str, int | None], ...] = ()
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    error: Mapping[str, Any] | None = None
    scores: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def passed(self) -> bool:
        """Whether every check is met."""
        return self.error is None and all(one.passed for one in self.checks)

    @property
    def task_mark(self) -> str:
        """Of the task alone: the same whoever answers."""
        return self.mark.partition("-")[0]

    def as_dict(self) -> dict[str, Any]:
        """As plain values, without what is empty."""
        own: dict[str, Any] = {"id": self.id, "mark": self.mark, "question": self.question}
        own |= {"error": dict(self.error)} if self.error else {"answer": self.answer}
        more = {
            "checks": [one.as_dict() for one in self.checks],
            "tags": list(self.tags),
            "calls": [list(one) for one in self.calls],
            "sources": [list(one) for one in self.sources],
            "scores": dict(self.scores),
            "usage": self.usage.model_dump() if self.usage.total_tokens else {},
        }
        filled = {name: value for name, value in more.items() if value}
        return {**own, "passed": self.passed, "lang": self.lang, "seconds": round(self.seconds, 3), **filled}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Row:
        """Read back. Raises KeyError, TypeError or ValueError where it is none."""
        error: object = given.get("error")
        return cls(
            id=str(given["id"]),
            mark=str(given.get("mark", "")),
            question=str(given["question"]),
            answer=str(given.get("answer") or ""),
            checks=tuple(Outcome.from_dict(one) for one in given.get("checks") or ()),
            lang=str(given.get("lang") or "en"),
            tags=tuple(str(one) for one in given.get("tags") or ()),
            calls=tuple((str(name), str(arguments)) for name, arguments in given.get("calls") or ()),
            sources=tuple((str(document), page) for document, page in given.get("sources") or ()),
            seconds=float(given.get("seconds") or 0),
            usage=Usage.model_validate(given.get("usage") or {}),
            error=cast("Mapping[str, Any]", error) if isinstance(error, Mapping) else None,
            scores={name: float(one) for name, one in cast("dict[str, Any]", given.get("scores") or {}).items()},
        )


def answer_row(
    row: Row, answer: Answer, checks: list[Outcome], usage: Usage | None, scores: Mapping[str, float]
) -> Row:
    """The row of a task that has an answer and what came of its checks.

    Args:
        row: With what the task says of itself.
    """
    return Row(
        row.id,
        row.mark,
        row.question,
        answer.text,
        tuple(checks),
        row.lang,
        row.tags,
        tuple((call.name, call.arguments) for call in calls_of(answer)),
        tuple(cited_places(answer)),
        answer.seconds,
        (answer.usage or Usage()) + (usage or Usage()),
        scores=scores,
    )


def said_error(error: ParlourError) -> dict[str, Any]:
    """An error as a row keeps it."""
    plain = (str, int, float, list)
    details: dict[str, Any] = {
        name: value if isinstance(value, plain) else str(value) for name, value in error.details.items()
    }
    return {"key": error.words_key, "message": str(error), "details": details}


Group = Literal["tag", "lang", "check"]


@dataclass(frozen=True, slots=True)
class Total:
    """How many of some passed."""

    passed: int = 0
    of: int = 0

    @property
    def share(self) -> float:
        """From 0 to 1; 0 of none."""
        return self.passed / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed since a run, as ids of tasks.

    Args:
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
        model: Who answered.
        began: When, in UTC, as ISO 8601.
        rows: What came of each task.
        before: The last run before it, where there is one.
        left: Tasks that were not asked, or not to their end, when it was stopped.
    """

    suite: str
    model: str
    began: str
    rows: tuple[Row, ...]
    before: SuiteRun | None = None
    left: int = 0

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
        left = {"left": self.left} if self.left else {}
        return {"suite": self.suite, "model": self.model, "began": self.began, "rows": rows, **left}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> SuiteRun:
        """Read back. Raises KeyError, TypeError or ValueError where it is none."""
        rows = cast("Sequence[Mapping[str, Any]]", given["rows"])
        left = int(given.get("left") or 0)
        return cls(
            str(given["suite"]), str(given["model"]), str(given["began"]), tuple(map(Row.from_dict, rows)), left=left
        )

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
