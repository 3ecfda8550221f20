"""What both reports show of a run, before it is put into a form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.judging.report_words import said, why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.judging.result import Group, SuiteRun, Total
    from core.judging.row import Row
    from core.llm.request import Lang

GROUPS: Final[Sequence[Group]] = ("tag", "lang", "check")
CHANGES: Final = ("better", "worse", "new", "gone", "changed")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a table: what is counted, what came out before, and now."""

    name: str
    before: str
    now: str


def headline(run: SuiteRun, lang: Lang) -> str:
    """How many passed, and their share."""
    return f"{_of(run.total, lang)} {said(lang, 'passed')} ({run.total.share:.0%})"


def overall(run: SuiteRun, lang: Lang) -> list[Line]:
    """The model, the time, tokens, seconds and cost."""
    before = run.before
    lines = [
        Line(said(lang, "model"), before.model if before else "", run.model),
        Line(said(lang, "began"), _moment(before), _moment(run)),
        Line(said(lang, "tasks"), _of(before.total, lang) if before else "", _of(run.total, lang)),
        Line(said(lang, "tokens"), _tokens(before), _tokens(run)),
        Line(said(lang, "seconds"), f"{before.seconds:.1f}" if before else "", f"{run.seconds:.1f}"),
    ]
    if run.usage.cost is not None:
        lines.append(Line(said(lang, "cost"), _cost(before, lang), _cost(run, lang)))
    return lines


def grouped(run: SuiteRun, group: Group, lang: Lang) -> list[Line]:
    """A line for each tag, language or kind of check."""
    before = run.before.totals(group) if run.before else {}
    kind = {"lang": "lang.", "check": "check."}.get(group, "")
    names = {name: said(lang, f"{kind}{name}") if kind else name for name in run.totals(group)}
    old = {name: _of(total, lang) for name, total in before.items()}
    return [Line(names[name], old.get(name, ""), _of(total, lang)) for name, total in run.totals(group).items()]


def reasons(row: Row, lang: Lang) -> list[str]:
    """Why a task did not pass."""
    if row.error:
        return [said(lang, "why.error", why=row.error.get("message", ""))]
    return [why(one, lang) for one in row.checks if not one.passed]


def since(run: SuiteRun, lang: Lang) -> str:
    """What the comparison is with."""
    return said(lang, "since", began=_moment(run.before), model=run.before.model) if run.before else ""


def changes(run: SuiteRun, lang: Lang) -> list[tuple[str, Sequence[str]]]:
    """What is better, worse, new, gone and changed, those that are any."""
    compared = run.compared()
    found: list[tuple[str, Sequence[str]]] = [(name, getattr(compared, name)) for name in CHANGES] if compared else []
    return [(said(lang, name), ids) for name, ids in found if ids]


def _of(total: Total, lang: Lang) -> str:
    return said(lang, "of", passed=total.passed, of=total.of)


def _moment(run: SuiteRun | None) -> str:
    return run.began.partition("+")[0].replace("T", " ") + " UTC" if run else ""


def _tokens(run: SuiteRun | None) -> str:
    return f"{run.usage.total_tokens:,}" if run else ""


def _cost(run: SuiteRun | None, lang: Lang) -> str:
    cost = run.usage.cost if run else None
    return said(lang, "cost.usd", cost=f"{cost:.4f}") if cost is not None else ""
