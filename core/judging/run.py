"""Running a suite: its tasks side by side, each written down as it is over."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from core.agents.arguments import checked_int
from core.agents.mapping import ask_agent
from core.batch.job import AnswerFile, Tally
from core.batch.questions import BatchQuestion
from core.bridge.sync import run as run_sync
from core.errors import ParlourError
from core.judging.checks import Outcome, checked
from core.judging.evaluators import Evaluator, checked_evaluators, evaluated, mark_of
from core.judging.plan import AgentGiven, Asked, Plan
from core.judging.problems import suite_problem
from core.judging.result import Row, SuiteRun, answer_row, said_error
from core.judging.run_folder import Runs
from core.judging.suite import Suite
from core.llm.concurrency import in_order
from core.messages.message import Usage
from core.tools.approval import Guard, Policy

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from core.judging.checks import Judge

DEFAULT_CONCURRENCY = 4


def evaluate(
    suite: Suite | Mapping[str, Any] | str | Path, agent: AgentGiven | None = None, **options: Any
) -> SuiteRun:
    """As `aevaluate`, from synchronous code; interrupting it keeps what is done, where `out` is given."""
    return run_sync(aevaluate(Suite.of(suite), agent, **options))


async def aevaluate(  # noqa: PLR0913 - two things, and by name how
    suite: Suite | Mapping[str, Any] | str | Path,
    agent: AgentGiven | None = None,
    *,
    out: str | Path | None = None,
    judge: AgentGiven | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    tag: str | None = None,
    policy: Policy | None = None,
    variables: Mapping[str, object] | None = None,
    cached: bool = True,
    told: Callable[[Tally], None] | None = None,
    evaluators: Sequence[Evaluator] = (),
    limit: int | None = None,
    seconds: float | None = None,
) -> SuiteRun:
    """Ask an agent the questions of a suite and judge its answers.

    A task whose agent or model fails counts as not passed, and the others go on. Broken off, a run that has a folder
    goes on where it was.

    Args:
        suite: As `Suite.of` takes it.
        agent: Who is asked: an agent, or its configuration; left out, the suite's own, or else one with the model of
            Parlour's settings.
        out: A folder for the rows, the replies of models and earlier runs; left out, nothing is kept.
        judge: An agent, or its configuration, whose model judges; left out, the suite says, or else it is the agent's.
        concurrency: How many tasks run at the same time.
        tag: Only tasks with it.
        policy: Decides about calls of tools; what it would ask about is refused, for nobody is there.
        variables: For the blanks of prompts.
        cached: Whether replies of models are kept in `out` and given again to the same request.
        told: Called before the first task, and after each.
        evaluators: Functions, `def` or `async def`, that are given each case and its `Reply`. What they return as a
            `bool` decides with the checks whether the task is passed; a `float` is counted; `Score` has a name of its
            own.
        limit: How many tasks are asked at most; those that have an answer in `out` do not count.
        seconds: When to stop: tasks that are not over by then are left. What is returned then has `left` tasks, and
            with `out` the next run goes on with these.

    Raises:
        ConfigError: The suite is wrong, an agent cannot be made, or a task does not fit its agent.
        SettingsError: A model cannot be made, `concurrency` is below 1, or `limit` below 0.
        OSError: `out` cannot be written.
    """
    suite, own = Suite.of(suite), checked_evaluators(evaluators)
    if limit is not None:
        checked_int("limit", limit, 0, such_as=10)
    tasks = [task for task in suite.tasks if tag is None or tag in task.tags]
    if not tasks:
        raise suite_problem("suite_none_left", tag=tag or "")
    with TemporaryDirectory(prefix="parlour-eval-") as spare:
        runs = Runs(Path(spare) if out is None else Path(out), suite.name or "")
        kept = None if out is None or not cached else runs.cache
        with Plan(suite, agent, judge, kept, variables, mark_of(own)) as plan:
            asked = plan.asked(tasks)
            examiner = _Examiner(plan.judge_of(tasks), Guard(policy or Policy()), told, own)
            began = datetime.now(UTC)
            try:
                with AnswerFile(runs.unfinished(tag)) as file:
                    await _within(seconds, examiner.examine(asked, file, concurrency, limit))
            finally:
                with suppress(ParlourError):  # of a model that did not start
                    await plan.aclose()
            rows = runs.rows([one.row for one in asked], tag)
            left = len(asked) - len(rows)
            made = SuiteRun(suite.name or "", plan.labels, began.isoformat(timespec="seconds"), tuple(rows), left=left)
            return runs.compared(made) if left else runs.finished(made, tag)


async def _within(seconds: float | None, work: Coroutine[Any, Any, None]) -> None:
    """Do this for so long, and no longer."""
    clock = asyncio.timeout(seconds)
    try:
        async with clock:
            await work
    except TimeoutError:
        if not clock.expired():  # it is something else that took too long
            raise


class _Examiner:
    """Asks and judges.

    Args:
        judge: Of what a model must judge.
        guard: Of the calls of tools.
        told: Called after each task.
        evaluators: The program's own.
    """

    def __init__(
        self,
        judge: Judge | None,
        guard: Guard,
        told: Callable[[Tally], None] | None,
        evaluators: Sequence[Evaluator],
    ) -> None:
        self._judge = judge
        self._guard = guard
        self._told = told
        self._evaluators = evaluators

    async def examine(self, asked: Sequence[Asked], file: AnswerFile, concurrency: int, limit: int | None) -> None:
        """Every task that has no row yet, or the first `limit` of these."""
        by_id = {one.task.id: one for one in asked}
        questions = [BatchQuestion(one.task.id, one.row.mark, one.messages, n) for n, one in enumerate(asked, 1)]
        left = file.left(questions)
        there = len(asked) - len(left)
        left = left if limit is None else left[:limit]
        tally = Tally(total=len(left), there=there)

        async def ask(question: BatchQuestion) -> None:
            row = await self._row(by_id[question.id])
            file.add(row.as_dict())
            tally.answered += row.passed
            tally.failed += not row.passed
            tally.usage += row.usage
            if self._told is not None:
                self._told(tally)

        if self._told is not None and left:
            self._told(tally)
        await in_order(ask, left, concurrency, keep_errors=False)

    async def _row(self, asked: Asked) -> Row:
        try:
            answer = await ask_agent(asked.agent, asked.messages, approval=self._guard, lang=asked.lang)
            outcomes: list[Outcome] = []
            usage = Usage()
            for check in asked.task.checks:
                if check.judged and self._judge is not None:
                    said = await self._judge.judged(asked.task.question, answer.text, check.judged, asked.lang)
                    outcomes.append(said[0])
                    usage += said[1] or Usage()
                else:
                    outcomes.append(checked(check, answer))
            found, scores = await evaluated(self._evaluators, asked.task, asked.messages, answer)
        except ParlourError as error:
            return replace(asked.row, error=said_error(error))
        return answer_row(asked.row, answer, [*outcomes, *found], usage, scores)
