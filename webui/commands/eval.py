"""`parlour eval suite.yaml`: an agent's answers to a suite of tasks, judged, and compared with the last run."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from core.agents.config.problems import ConfigError
from core.errors import ParlourError, SettingsError
from core.export.exporting import file_name
from core.judging.cases import add_cases, cases_from
from core.judging.compare import PASSED, compare, score_means
from core.judging.evaluators import named_evaluator
from core.judging.junit import junit
from core.judging.report import changes, markdown, page
from core.judging.run import DEFAULT_CONCURRENCY, evaluate
from core.judging.suite import Suite
from core.llm.local_files import BUILT_IN
from core.llm.weights import WeightStore
from core.llm.weights_catalog import named
from core.settings import Settings
from core.storage.data_folder import drafted
from core.tools.approval import Policy
from webui.bundles import assets_folder
from webui.commands.command_line import (
    INTERRUPTED,
    Parser,
    ProgressLine,
    above_zero,
    add_allowed,
    add_language,
    add_variables,
    fraction,
    positive_int,
    sentence,
    stored_sentence,
    traced,
    words_for,
)
from webui.panels.weight_files import size_said

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from core.batch.job import Tally
    from core.judging.compare import Difference
    from core.judging.plan import AgentGiven
    from core.judging.result import SuiteRun
    from webui.words import Words


def main(arguments: Sequence[str]) -> int:
    """Run a suite.

    Returns:
        The exit code: 0 where as many tasks passed as were asked for, 1 where fewer did or nothing could begin, 130
        after an interruption.
    """
    given = _parser().parse_args(arguments)
    words = words_for(given.lang)
    if given.from_file is not None:
        return _made_of(given.from_file, Path(given.suite), words)
    given.until = None if given.minutes is None else monotonic() + 60 * given.minutes
    suite = _path(given.suite)
    if suite is None:
        return _wrong(words("eval.no_suite", file=given.suite, known=", ".join(_shipped())))
    out: Path = given.out or Path(f"{suite.stem}.eval")
    try:
        with traced():
            if given.built_in:
                return compared(given, suite, out, words)
            return _evaluated(given, suite, out, words)
    except ConfigError as error:
        for one in error.problems:
            _wrong(sentence(one, words))
    except ParlourError as error:
        return _wrong(sentence(error, words))
    except OSError as error:
        return _wrong(words("eval.no_write", folder=out, why=error.strerror or type(error).__name__))
    return 1


def _parser() -> Parser:
    parser = Parser(
        prog="parlour eval",
        description="Ask an agent the questions of a suite and judge its answers. The folder that it writes holds "
        "a report in Markdown and one in HTML, named after the suite, and every run, which the next one is compared "
        "with. Interrupted, it goes on when "
        "it is started again.",
        allow_abbrev=False,
    )
    parser.add_argument("suite", help="YAML, TOML or JSON, or the name of a suite of Parlour's own: samples")
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--agent", type=Path, help="a file of who is asked (the suite's, or Parlour's own model)")
    who.add_argument(
        "--built-in",
        metavar="NAME,…",
        help="models of `parlour models` that are asked one after another; the report names the smallest that passes "
        "in each language",
    )
    parser.add_argument(
        "--judge", type=Path, help="a file of an agent whose model judges (the suite's, or the agent's)"
    )
    parser.add_argument("--out", type=Path, help="folder of reports and runs (suite.eval)")
    parser.add_argument(
        "--concurrency",
        type=positive_int,
        default=DEFAULT_CONCURRENCY,
        help=f"tasks at the same time ({DEFAULT_CONCURRENCY})",
    )
    parser.add_argument("--tag", help="only tasks with this tag")
    parser.add_argument("--limit", type=positive_int, metavar="N", help="tasks asked in this run (all)")
    parser.add_argument(
        "--minutes",
        type=above_zero,
        metavar="N",
        help="stop after so long; the report is of what is done, and the next run goes on",
    )
    parser.add_argument(
        "--at-least", type=fraction, default=1.0, metavar="SHARE", help="what must pass for exit code 0, 0 to 1 (1)"
    )
    parser.add_argument("--no-cache", action="store_true", help="ask the model again what it was asked before")
    parser.add_argument(
        "--evaluator",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="a function of your own that is given each case and its reply; may be given again",
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="another agent's file: the report says how --agent differs from it, with a 95 %% interval; exit code 1 "
        "where it is surely worse",
    )
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write what came of it as JUnit's XML")
    parser.add_argument("--json", action="store_true", help="also print all that came of it as JSON")
    parser.add_argument(
        "--from",
        dest="from_file",
        type=Path,
        metavar="FILE",
        help="ask nothing: make cases of the answers of `parlour batch` or `parlour eval` in this file, and put them "
        "into the suite, a .json file",
    )
    add_allowed(parser)
    add_variables(parser)
    add_language(parser)
    return parser


def _made_of(answers: Path, suite: Path, words: Words) -> int:
    """Put cases made of answers into a suite's file."""
    try:
        cases = cases_from(answers)
        add_cases(suite, cases)
    except ConfigError as error:
        for one in error.problems:
            _wrong(sentence(one, words))
        return 1
    except ParlourError as error:
        return _wrong(sentence(error, words))
    sys.stderr.write(words("eval.cases", n=len(cases), file=suite) + "\n")
    return 0


def _evaluated(given: Namespace, suite: Path, out: Path, words: Words) -> int:
    before = None
    if given.against is not None:
        before = run_of(given, suite, given.against, out / "against", words)
        if before is None:
            return INTERRUPTED
    run = run_of(given, suite, given.agent, out, words)
    if run is None:
        return INTERRUPTED
    differences = [] if before is None else _differences(before, run)
    for one in differences:
        sys.stderr.write(_difference(one, words) + "\n")
    if given.junit is not None:
        given.junit.parent.mkdir(parents=True, exist_ok=True)
        _written(given.junit, junit(_told(run, words), words.spoken))
    if given.json:
        total = {"passed": run.total.passed, "of": run.total.of, "scores": dict(score_means(run.rows))}
        told = {**run.as_dict(), **total, "differences": [one.as_dict() for one in differences]}
        sys.stdout.write(json.dumps(told, ensure_ascii=False, indent=2) + "\n")
    if any(one.name == PASSED and one.verdict == "worse" for one in differences):
        sys.stderr.write(words("eval.worse", file=given.against) + "\n")
        return 1
    if not run.rows:
        return 1
    if run.total.share >= given.at_least:
        return 0
    sys.stderr.write(words("eval.below", least=f"{given.at_least:.0%}") + "\n")
    return 1


def _differences(before: SuiteRun, run: SuiteRun) -> list[Difference]:
    """How two runs differ; in nothing where one was stopped before it had a task of the other."""
    try:
        return compare(before, run)
    except SettingsError:
        if before.left or run.left:
            return []
        raise


def _difference(one: Difference, words: Words) -> str:
    """How two agents differ in one thing."""
    share = one.name == PASSED
    shown = [f"{value:.0%}" if share else f"{value:.3g}" for value in (one.before, one.after)]
    signed = [f"{value:+.0%}" if share else f"{value:+.3g}" for value in (one.by, one.low, one.high)]
    name = words("eval.passed") if share else one.name
    blanks = {"before": shown[0], "after": shown[1], "by": signed[0], "low": signed[1], "high": signed[2]}
    told = words("eval.difference", name=name, of=one.of, **blanks)
    return told if one.p is None else told + words("eval.exact", p=f"{one.p:.3f}")


def compared(given: Namespace, suite: Path, out: Path, words: Words) -> int:
    """Ask built-in models one after another, each into a folder of its own, and tell the smallest that is good enough.

    Good enough is a model of which, in each language, as many tasks passed as `--at-least` says.
    """
    store = WeightStore(Settings.load().weights_dir)
    names: list[str] = str(given.built_in).split(",")
    asked = {name: named(name) for name in names if name}
    good: list[tuple[int, str]] = []
    for name, weights in asked.items():
        model = {"model_type": BUILT_IN, "model": name, "weights_dir": str(store.folder)}
        run = run_of(given, suite, {"llm": model}, out / name, words)
        if run is None:
            return INTERRUPTED
        size = (known := store.known(weights)).size or known.about
        shares = run.totals("lang")
        each = words("lang.comma").join(f"{lang} {one.share:.0%}" for lang, one in shares.items())
        seconds = words.seconds(run.seconds / max(1, len(run.rows)))
        said = words("eval.model", shares=each, seconds=seconds) if each else words("eval.model_none")
        sys.stdout.write(words("eval.of_model", name=name, size=size_said(size), said=said) + "\n")
        is_whole = not run.left or given.until is None or monotonic() < given.until
        if is_whole and all(one.share >= given.at_least for one in shares.values()):
            good.append((size, name))
    least = f"{given.at_least:.0%}"
    if not good:
        sys.stdout.write(words("eval.none_passes", least=least) + "\n")
        return 1
    sys.stdout.write(words("eval.smallest", name=min(good)[1], least=least) + "\n")
    return 0


def run_of(given: Namespace, suite: Path, agent: AgentGiven | None, out: Path, words: Words) -> SuiteRun | None:
    """Run a suite with one agent and write its reports, also of what is done by an interruption; `None` after one."""
    line = ProgressLine(words, key="eval.progress")
    tallies: list[Tally] = []

    def tell(tally: Tally) -> None:
        tallies[:] = [tally]
        line.tell(tally)

    def asked(limit: int | None) -> SuiteRun:
        return evaluate(
            Suite.of(suite),
            agent,
            out=out,
            judge=given.judge,
            concurrency=given.concurrency,
            tag=given.tag,
            policy=Policy(allow=tuple(given.allow)),
            variables=dict(given.var),
            cached=not given.no_cache,
            told=tell,
            evaluators=[named_evaluator(one) for one in given.evaluator],
            limit=limit,
            seconds=None if given.until is None else max(0.0, given.until - monotonic()),
        )

    try:
        run = asked(given.limit)
    except KeyboardInterrupt:
        line.end()
        with suppress(KeyboardInterrupt):  # whoever interrupts again wants no report
            if tallies:
                _reported(asked(0), out, words, tallies)
        return None
    line.end()
    _reported(run, out, words, tallies)
    return run


def _reported(run: SuiteRun, out: Path, words: Words, tallies: list[Tally]) -> None:
    """Write the reports of a run, and tell what came of it."""
    told = _told(run, words)
    in_text, to_see = (out / name for name in report_names(run.suite))
    _written(in_text, markdown(told, words.spoken))
    _written(to_see, page(told, words.spoken))
    there = tallies[0].there if tallies else len(run.rows)
    for said in summary(told, to_see, words, there=there):
        sys.stderr.write(f"{said}\n")


def report_names(suite: str) -> tuple[str, str]:
    """The files of a suite's reports, in Markdown and HTML; no other suite of the folder has them."""
    stem = file_name(suite, "md").removesuffix(".md")
    if stem != suite:  # another name may come out the same
        stem += f"-{sha256(suite.encode()).hexdigest()[:8]}"
    return f"report-{stem}.md", f"report-{stem}.html"


def _told(run: SuiteRun, words: Words) -> SuiteRun:
    """The run, with what went wrong in the reader's language."""
    rows = (
        replace(row, error={**row.error, "message": stored_sentence(row.error, words)}) if row.error else row
        for row in run.rows
    )
    return replace(run, rows=tuple(rows))


def _written(path: Path, text: str) -> None:
    """Write a report; there is never half of one."""
    with drafted(path) as draft:
        draft.write_text(text, encoding="utf-8")


def summary(run: SuiteRun, report: Path, words: Words, *, there: int = 0) -> list[str]:
    """What is told at the end, line by line."""
    passed = run.total
    share = f"{passed.share:.0%}"
    over = words("eval.over", passed=passed.passed, of=passed.of, share=share, file=report)
    said = [over if run.rows else words("eval.none_done", file=report)]
    said += [words("eval.score", name=name, mean=f"{mean:.3g}") for name, mean in score_means(run.rows).items()]
    if there:
        said.append(words("eval.there", there=there))
    failed = next((row.error for row in run.rows if row.error), None)
    if failed is not None:
        said.append(words("batch.first_error", what=failed.get("message", "")))
    if run.left:
        said.append(words("eval.left", left=run.left))
    if run.before is not None:
        listed = changes(run, words.spoken)
        said += [words("eval.change", name=name, ids=", ".join(ids)) for name, ids in listed]
        if not listed:
            said.append(words("eval.no_change"))
    return said


def _path(name: str) -> Path | None:
    """The file of a suite: the one that is named, or Parlour's own of that name."""
    path = Path(name)
    return path if path.exists() or path.suffix else _shipped().get(name)


def _shipped() -> dict[str, Path]:
    return {path.stem: path for path in sorted((assets_folder() / "suites").glob("*.yaml"))}


def _wrong(said: str) -> int:
    sys.stderr.write(f"parlour: {said}\n")
    return 1
