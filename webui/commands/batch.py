"""`parlour batch questions.jsonl --agent agent.yaml`: a file of questions, answered into a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from core.agents.base import Agent
from core.batch.job import AnswerFile, Tally, run_batch
from core.batch.problems import BatchError
from core.batch.questions import BatchQuestion, read_questions
from core.bridge.sync import run
from core.errors import ParlourError
from core.tools.approval import Policy
from webui.commands.command_line import (
    INTERRUPTED,
    Parser,
    ProgressLine,
    add_allowed,
    add_language,
    add_variables,
    positive_int,
    sentence,
    traced,
    words_for,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from webui.words import Words


def main(arguments: Sequence[str]) -> int:
    """Answer the questions.

    Returns:
        The exit code: 0 where every question has an answer, 1 where one failed or nothing could begin, 130 after an
        interruption.
    """
    given = _parser().parse_args(arguments)
    words = words_for(given.lang)
    try:
        with traced():
            return _answered(given, words)
    except ParlourError as error:
        sys.stderr.write(f"parlour: {sentence(error, words)}\n")
    except OSError as error:
        why = error.strerror or type(error).__name__
        sys.stderr.write(f"parlour: {words('batch.no_write', file=error.filename or given.out or '', why=why)}\n")
    return 1


def _parser() -> Parser:
    parser = Parser(
        prog="parlour batch",
        description="Answer a file of questions. Started again, it goes on where it was broken off.",
        allow_abbrev=False,
    )
    parser.add_argument("questions", type=Path, help="JSON lines (texts, or objects with question or messages), or CSV")
    parser.add_argument("--agent", type=Path, help="YAML, TOML or JSON (an assistant with Parlour's own model)")
    parser.add_argument(
        "--out",
        type=Path,
        help="where the answers go (questions.answers.jsonl, of a CSV file questions.csv.answers.jsonl)",
    )
    parser.add_argument("--concurrency", type=positive_int, default=4, help="questions asked at the same time (4)")
    parser.add_argument("--limit", type=positive_int, help="questions asked in this run (all)")
    add_allowed(parser)
    add_variables(parser)
    add_language(parser)
    return parser


def _answered(given: Namespace, words: Words) -> int:
    questions = read_questions(given.questions)
    # Questions in two forms may stand side by side under one name.
    called = given.questions.name if given.questions.suffix == ".csv" else given.questions.stem
    out: Path = given.out or given.questions.with_name(f"{called}.answers.jsonl")
    if out.absolute() == given.questions.absolute() or (out.exists() and out.samefile(given.questions)):
        raise BatchError("batch_same_file")
    agent = Agent.from_config(given.agent or {}, variables=dict(given.var))
    with AnswerFile(out) as file:
        left = file.left(questions)
        tally = Tally(total=min(len(left), given.limit or len(left)), there=len(questions) - len(left))
        return _run(agent, left[: tally.total], file, tally, given, words)


def _run(
    agent: Agent, questions: list[BatchQuestion], file: AnswerFile, tally: Tally, given: Namespace, words: Words
) -> int:
    line = ProgressLine(words)
    policy = Policy(allow=tuple(given.allow))
    code = 0
    try:
        asking = run_batch(agent, questions, file, tally, concurrency=given.concurrency, policy=policy, told=line.tell)
        run(asking)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        line.end()
    for said in summary(tally, file.path, words):
        sys.stderr.write(f"{said}\n")
    return code or int(tally.failed > 0)


def summary(tally: Tally, out: Path, words: Words) -> list[str]:
    """What is told at the end, line by line."""
    said = [
        words("batch.over", answered=tally.answered, failed=tally.failed, there=tally.there, file=out),
    ]
    if left := tally.total - tally.done:
        said.append(words("batch.left", left=left))
    if tally.first_error is not None:
        said.append(words("batch.first_error", what=sentence(tally.first_error, words)))
    usage = tally.usage
    if usage.total_tokens:
        about = words("batch.about") if usage.estimated else ""
        cost = words("batch.cost", cost=f"{usage.cost:.4f}") if usage.cost is not None else words("batch.no_cost")
        tokens = words("batch.tokens", asked=f"{usage.prompt_tokens:,}", said=f"{usage.completion_tokens:,}")
        said.append(f"{about}{tokens}{cost}")
    return said
