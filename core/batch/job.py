"""A batch: an agent, the questions that are left, and the file that their answers go to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.agents.mapping import Answer, ask_agent
from core.errors import ParlourError
from core.llm.concurrency import in_order
from core.messages.message import FUNCTION, Usage
from core.tools.approval import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.agents.base import Agent
    from core.batch.answers import AnswerFile
    from core.batch.questions import BatchQuestion
    from core.tools.approval import Policy


@dataclass(slots=True)
class Tally:
    """How far a batch has come.

    Args:
        total: Questions to ask in this run.
        there: Questions that had an answer before.
        answered: Those that have one now.
        failed: Those whose row is an error.
        usage: Tokens and cost of this run.
        first_error: What the first failure was.
    """

    total: int
    there: int = 0
    answered: int = 0
    failed: int = 0
    usage: Usage = field(default_factory=Usage)
    first_error: ParlourError | None = None

    @property
    def done(self) -> int:
        """Questions of this run that are over."""
        return self.answered + self.failed


async def run_batch(  # noqa: PLR0913 - four things, and by name how
    agent: Agent,
    questions: Sequence[BatchQuestion],
    file: AnswerFile,
    tally: Tally,
    *,
    concurrency: int,
    policy: Guard | Policy,
    told: Callable[[Tally], None] | None = None,
) -> None:
    """Ask the questions and write each answer as it comes; one that fails is a row with its error.

    Cancelled, what is done is in the file, and what is under way is not.

    Args:
        agent: Who answers.
        questions: Those to ask.
        file: Where the answers go.
        tally: Kept up to date.
        concurrency: How many are asked at the same time.
        policy: Decides about the calls; what it would ask about is refused, for nobody is there. The `rules` of a
            guard are read anew at each call.
        told: Called after each question.

    Raises:
        SettingsError: `concurrency` is below 1.
        OSError: An answer cannot be written.
    """
    guard = Guard.of(policy)

    async def ask(question: BatchQuestion) -> None:
        try:
            answer = await ask_agent(agent, question.messages, approval=guard)
        except ParlourError as error:
            file.add(_failed(question, error))
            tally.failed += 1
            tally.first_error = tally.first_error or error
        else:
            file.add(_answer(question, answer))
            tally.answered += 1
            tally.usage += answer.usage or Usage()
        if told is not None:
            told(tally)

    await in_order(ask, questions, concurrency, keep_errors=False)


def _answer(question: BatchQuestion, answer: Answer) -> dict[str, Any]:
    results = [message for message in answer.messages if message.role == FUNCTION]
    row: dict[str, Any] = {
        "id": question.id,
        "mark": question.mark,
        "question": question.text,
        "answer": answer.text,
        "seconds": round(answer.seconds, 3),
    }
    if answer.usage is not None:
        row["usage"] = answer.usage.model_dump()
    if results:
        row["tools"] = [message.name for message in results]
    failures = [(one.name, str((one.extra or {}).get("failed") or "")) for one in results]
    if refused := [name for name, why in failures if why.startswith("refused")]:
        row["refused"] = refused
    if any(why == "call_limit" for _, why in failures):
        row["stopped"] = "call_limit"
    passages = [passage for message in results for passage in (message.extra or {}).get("passages") or ()]
    if passages:
        places = [{"document": one.get("document"), "page": one.get("page")} for one in passages]
        row["sources"] = [place for n, place in enumerate(places) if place not in places[:n]]
    return row


def _failed(question: BatchQuestion, error: ParlourError) -> dict[str, Any]:
    said = {"key": error.words_key, "message": str(error.args[0]) if error.args else "", "hint": error.hint}
    return {"id": question.id, "mark": question.mark, "question": question.text, "error": said}
