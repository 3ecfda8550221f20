"""The report of a run in Markdown. What models and suites say is put in as text, never as Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.judging.figures import GROUPS, changes, grouped, headline, overall, reasons, since
from core.judging.report_words import said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.judging.figures import Line
    from core.judging.result import SuiteRun
    from core.judging.row import Row
    from core.llm.request import Lang

_SIGNS: Final = re.compile(r"([\\`*_\[\]<>#|~&]|(?<=\w):(?=//)|(?<=[Ww]{3})\.)")
_FENCES: Final = re.compile(r"`{3,}")


def markdown(run: SuiteRun, lang: Lang = "en") -> str:
    """The report."""
    return "\n".join(_lines(run, lang)).rstrip() + "\n"


def _lines(run: SuiteRun, lang: Lang) -> Iterator[str]:
    yield f"# {plain(run.suite)}: {headline(run, lang)}"
    yield ""
    yield from _table("", overall(run, lang), lang, compared=run.before is not None)
    if run.before is not None:
        yield f"## {plain(since(run, lang))}"
        yield ""
        listed = changes(run, lang)
        for name, ids in listed:
            yield f"- {name}: {', '.join(map(plain, ids))}"
        if not listed:
            yield said(lang, "nothing_changed")
        yield ""
    for group in GROUPS:
        if lines := grouped(run, group, lang):
            yield from _table(said(lang, f"group.{group}"), lines, lang, compared=run.before is not None)
    yield f"## {said(lang, 'tasks')}"
    yield ""
    yield f"| {said(lang, 'task')} | {said(lang, 'result')} | |"
    yield "|---|---|---|"
    for row in run.rows:
        why = " ".join(reasons(row, lang))
        yield f"| {plain(row.id)} | {said(lang, 'passed' if row.passed else 'failed')} | {plain(why)} |"
    yield ""
    for row in run.rows:
        if not row.passed:
            yield from _failed(row, lang)


def _table(title: str, lines: Sequence[Line], lang: Lang, *, compared: bool) -> Iterator[str]:
    head = [title, said(lang, "before"), said(lang, "now")] if compared else [title, said(lang, "now")]
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for line in lines:
        cells = [line.name, line.before, line.now] if compared else [line.name, line.now]
        yield f"| {' | '.join(map(plain, cells))} |"
    yield ""


def _failed(row: Row, lang: Lang) -> Iterator[str]:
    yield f"### {plain(row.id)}"
    yield ""
    for name, text in (("question", row.question), ("answer", row.answer or said(lang, "no_answer"))):
        yield f"{said(lang, name)}:"
        yield ""
        yield _fenced(text)
        yield ""
    if row.calls:
        yield f"{said(lang, 'calls')}:"
        yield ""
        yield _fenced("\n".join(f"{name} {arguments}" for name, arguments in row.calls))
        yield ""


def plain(text: str) -> str:
    """A text on one line that Markdown leaves alone."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))


def _fenced(text: str) -> str:
    fence = "`" * max(3, max((len(found) for found in _FENCES.findall(text)), default=0) + 1)
    return f"{fence}text\n{text}\n{fence}"
