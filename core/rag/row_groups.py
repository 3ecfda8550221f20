# ruff: noqa: S608 - every name and text in a query is quoted, and the query is checked to be one SELECT
"""Counts and figures for each value of a column: "6 rows by status: closed: 3, open: 2, pending: 1."."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from core.rag.count_questions import plain_name
from core.rag.row_computing import AGGREGATES
from core.rag.row_values import are_apart, are_groups, labelled, valued
from core.rag.tables.store import quoted
from core.rag.tables.subjects import PERIOD, is_name
from core.rag.tables.wording import WORDS, body, called_in, line, number_of, written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.rag.document import Passage
    from core.rag.row_computing import Computing
    from core.rag.row_questions import RowQuestion
    from core.rag.tables.query import Answer
    from core.rag.tables.store import Column

_MOST_VALUES: Final = 12  # by which rows are counted
_MOST_PERIODS: Final = 24
_MOST_RANKED: Final = 200  # values that have a place
_NEAR: Final = 1e-9  # by which sums may differ that are the same
_PERIODS: Final[Mapping[str, str]] = {  # of dates as in ISO 8601
    "month": "substr({day}, 1, 7)",
    "quarter": "substr({day}, 1, 4) || '-Q' || ((CAST(substr({day}, 6, 2) AS INTEGER) + 2) / 3)",
    "year": "substr({day}, 1, 4)",
}


def by_values(over: Computing, asked: RowQuestion, column: Column, where: str) -> Passage | None:
    """How many rows there are for each value of a column."""
    table, words = over.named.table, WORDS[over.lang]
    if asked.bare and not all(map(is_name, table.columns)):
        return None  # "how many per region" may mean what a column of numbers says
    if not over.is_each_a_row(asked, where):
        return None
    answer = _in_groups(over, column, "count(*)", where, asked.period)
    if answer is None or (column.kind == "date" and not are_groups(column, [value for value, _ in answer.rows])):
        return None
    each = [words["value"].format(value=labelled(value, column), n=f"{n:,}") for value, n in answer.rows]
    text = words["held_each_value" if asked.conditions else "each_value"].format(
        table=called_in(over.named, over.lang).strip(),
        rows=number_of("row", body(table), over.lang),
        some=f"{sum(n for _, n in answer.rows):,}",
        where=over.where(asked.conditions),
        column=_called(over, column, asked.period),
        each=words["between"].join(each),
    )
    return over.cited(answer, text, ", ".join(f"{n:,}" for _, n in answer.rows))


def _called(over: Computing, by: Column, period: str) -> str:
    """What rows are told by: a column, or the months of its dates."""
    return WORDS[over.lang][f"by_{period}"].format(column=line(by.name)) if period else line(by.name)


def _in_groups(over: Computing, by: Column, told: str, where: str, period: str = "") -> Answer | None:
    """What is told of the rows of each value of a column; `None` where these leave a doubt, or are too many."""
    if by.strays or not over.is_filled(by):
        return None
    name, order = quoted(by.name), "1" if period else f"2 DESC, {quoted(by.name)}"
    name = _PERIODS[period].format(day=name) if period else name
    answer = over.ask(
        f"SELECT {name} AS said, {told} FROM {over.source} WHERE {where} GROUP BY {name} ORDER BY {order}"
    )
    most = _MOST_PERIODS if period else _MOST_VALUES
    if not 0 < answer.total <= most or len(answer.sources) != answer.total:
        return None
    return answer if are_apart([str(value) for value, *_ in answer.rows]) else None


def most_rows(over: Computing, asked: RowQuestion, by: Column, where: str) -> Passage | None:
    """Which value of a column most rows, or the fewest, have; all of those that share the place."""
    if not over.is_each_a_row(asked, where) or not _are_all_there(over, asked, by, where):
        return None
    answer = _ranks(over, asked, by, where, "count(*)")
    if answer is None or not answer.rows:
        return None
    first = [row for row in answer.rows if row[1] == answer.rows[0][1]]
    if len(first) == len(answer.rows) > 1:
        return None  # all are alike
    words, whole = WORDS[over.lang], number_of("row", body(over.named.table), over.lang)
    each = [words["value"].format(value=labelled(value, by), n=f"{n:,}") for value, n in first]
    text = words["ranked_rows" if len(first) == 1 else "ranked_rows_shared"].format(
        table=called_in(over.named, over.lang).strip(),
        by=_called(over, by, asked.period),
        n=len(first),
        rank=words[f"rows_{asked.ranked}"],
        each=words["between"].join(each),
        rows=over.those(f"{sum(n for _, n in answer.rows):,}", whole, asked) if asked.conditions else whole,
    )
    told = replace(answer, sources=answer.sources[: len(first)])
    return over.cited(told, text, ", ".join(labelled(value, by) for value, _ in first))


def _is_of_several_years(over: Computing, asked: RowQuestion, by: Column) -> bool:
    """Whether a month may be that of any year, as another column of times, under no condition, stands beside."""
    columns, given = over.named.table.columns, {one.column for one in asked.conditions}
    others = [one for at, one in enumerate(columns) if one != by and at not in given]
    return any(one.kind == "date" or PERIOD.fullmatch(plain_name(one.name)) for one in others)


def _are_all_there(over: Computing, asked: RowQuestion, by: Column, where: str) -> bool:
    """Whether no value that could be the lowest is left out, as it has no row under the conditions."""
    if asked.ranked == "highest":
        return True
    name = quoted(by.name)
    if asked.period:
        name = _PERIODS[asked.period].format(day=name)
        first, last, there = over.one(
            f"SELECT min({name}), max({name}), count(DISTINCT {name}) FROM {over.source} WHERE {where}"
        )
        return there == _between(str(first), str(last), asked.period)
    (there,) = over.one(f"SELECT count(DISTINCT {name}) FROM {over.source} WHERE {where}")
    (every,) = over.one(f"SELECT count(DISTINCT {name}) FROM {over.source} WHERE NOT _total")
    return there == every


def _between(first: str, last: str, period: str) -> int:
    """How many months, quarters or years there are from the first to the last, both among them."""
    times = {"month": 12, "quarter": 4, "year": 1}[period]

    def number(said: str) -> int:
        year, _, part = said.partition("-")
        return int(year) * times + int(part.removeprefix("Q") or 0)

    return number(last) - number(first) + 1


def _ranks(over: Computing, asked: RowQuestion, by: Column, where: str, told: str) -> Answer | None:
    """The values with what is told of each, the first place before the others; `None` where these leave a doubt."""
    if by.strays or not over.is_filled(by):
        return None
    group = quoted(by.name)
    group = _PERIODS[asked.period].format(day=group) if asked.period else group
    answer = over.ask(
        f"SELECT {group} AS said, {told} FROM {over.source} "
        f"WHERE {where} GROUP BY {group} ORDER BY 2 {'DESC' if asked.ranked == 'highest' else 'ASC'}, {group}"
    )
    if not 0 < answer.total <= _MOST_RANKED or len(answer.sources) != answer.total or len(answer.rows) != answer.total:
        return None
    return answer if are_apart([str(value) for value, *_ in answer.rows]) else None


def ranked_values(over: Computing, asked: RowQuestion, column: Column, by: Column, where: str) -> Passage | None:
    """The values of a column with the highest or lowest figures; `None` where the last place is shared."""
    if not over.has_figure(asked, column, where) or is_name(column) or not _are_all_there(over, asked, by, where):
        return None
    if PERIOD.fullmatch(plain_name(by.name)) and _is_of_several_years(over, asked, by):
        return None
    name, words, many = quoted(column.name), WORDS[over.lang], asked.many
    answer = _ranks(over, asked, by, where, f"{AGGREGATES[asked.asks]}({name}), count({name}), count(*)")
    if answer is None or answer.total < many:
        return None
    rows = answer.rows
    if any(some < n for _, _, some, n in rows):
        return None  # a figure that is not known may be the highest one
    if len(rows) > many and abs(rows[many][1] - rows[many - 1][1]) <= _NEAR * max(1.0, abs(rows[many][1])):
        return None
    if not _is_sure_place(over, asked, column, by, where, rows[0][0]):
        return None
    held, whole = sum(n for *_, n in rows), number_of("row", body(over.named.table), over.lang)
    each = [
        words["value"].format(value=labelled(value, by), n=valued(figure, column)) for value, figure, *_ in rows[:many]
    ]
    text = words["ranked" if many > 1 else "ranked_first"].format(
        table=called_in(over.named, over.lang).strip(),
        n=many,
        rank=words[f"rank_{asked.ranked}"],
        figure=words[asked.asks],
        column=line(column.name),
        by=_called(over, by, asked.period),
        each=words["between"].join(each),
        rows=over.those(f"{held:,}", whole, asked) if asked.conditions else whole,
    )
    told = replace(answer, sources=answer.sources[:many])
    figure = labelled(rows[0][0], by) if many == 1 else ", ".join(written(value) for _, value, *_ in rows[:many])
    return over.cited(told, text, figure)


def _is_sure_place(over: Computing, asked: RowQuestion, column: Column, by: Column, where: str, first: object) -> bool:
    """Whether the first place is the same whichever figure, or whichever month of several years, is meant."""
    name = quoted(column.name)
    others = [f"sum({quoted(over.named.table.columns[one].name)})" for one in asked.also]
    if asked.in_doubt:
        extreme = "max" if asked.ranked == "highest" else "min"
        others += [f"avg({name})", f"{extreme}({name})"]
    for other in others:
        answer = _ranks(over, asked, by, where, other)
        if answer is None or answer.rows[0][0] != first or _is_shared(answer):
            return False
    if asked.period in {"", "year"}:
        return True
    name = quoted(by.name)
    years = over.one(f"SELECT min(substr({name}, 1, 4)), max(substr({name}, 1, 4)) FROM {over.source} WHERE {where}")
    return bool(years[0] == years[1])  # else all Mays may be meant


def _is_shared(answer: Answer) -> bool:
    """Whether the first place is shared."""
    return len(answer.rows) > 1 and abs(answer.rows[0][1] - answer.rows[1][1]) <= _NEAR * max(
        1.0, abs(answer.rows[0][1])
    )


def figures_by_values(over: Computing, asked: RowQuestion, column: Column, by: Column, where: str) -> Passage | None:
    """A figure of a column for each value of another one."""
    if not over.has_figure(asked, column, where) or is_name(column):
        return None
    name = quoted(column.name)
    answer = _in_groups(over, by, f"{AGGREGATES[asked.asks]}({name}), count({name}), count(*)", where, asked.period)
    if answer is None or not any(some for _, _, some, _ in answer.rows):
        return None
    if not are_groups(by, [value for value, *_ in answer.rows]):
        return None
    if asked.asks != "sum" and all(rows == 1 for *_, rows in answer.rows):
        return None  # each value is that of one row: the figure of all of them may be meant
    table, words = over.named.table, WORDS[over.lang]
    rows = number_of("row", body(table), over.lang)
    held = sum(n for *_, n in answer.rows)
    each = [
        words["value_blank" if some < n else "value"].format(
            value=labelled(value, by),
            n=valued(figure, column) if some else words["no_number"],
            blank=f"{n - some:,}",
        )
        for value, figure, some, n in answer.rows
    ]
    text = words["each_figure"].format(
        table=called_in(over.named, over.lang).strip(),
        figure=words[asked.asks],
        column=line(column.name),
        by=_called(over, by, asked.period),
        each=words["between"].join(each),
        rows=over.those(f"{held:,}", rows, asked) if asked.conditions else rows,
    )
    return over.cited(answer, text, ", ".join(written(figure) for _, figure, some, _ in answer.rows if some))
