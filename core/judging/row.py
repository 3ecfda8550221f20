"""What came of one task, as it stands in a line of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from core.judging.checks import Outcome, calls_of, cited_places
from core.messages.message import Usage

if TYPE_CHECKING:
    from core.agents.mapping import Answer
    from core.errors import ParlourError


@dataclass(frozen=True, slots=True)
class Row:
    """What came of a task.

    Args:
        id: The task's.
        mark: Of the task and, after a dash, of who answers: a row with another one is of another run.
        question: What was asked.
        answer: What was said; "" where there is none.
        checks: What came of each check, in their order; none where the task failed.
        lang: The task's language.
        tags: What it is counted under.
        calls: Tools that were called, with their arguments as JSON.
        sources: Places that the answer cites.
        seconds: How long it took.
        usage: Tokens and cost, the judge's too.
        error: Why there is no answer, or no verdict: `key`, `message` and `details`.
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
        )


def answer_row(row: Row, answer: Answer, checks: list[Outcome], usage: Usage | None) -> Row:
    """The row of a task that has an answer and what came of its checks.

    Args:
        row: With what the task says of itself.
        answer: It.
        checks: What came of each.
        usage: What judging took.
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
    )


def said_error(error: ParlourError) -> dict[str, Any]:
    """An error as a row keeps it."""
    plain = (str, int, float, list)
    details: dict[str, Any] = {
        name: value if isinstance(value, plain) else str(value) for name, value in error.details.items()
    }
    return {"key": error.words_key, "message": str(error), "details": details}
