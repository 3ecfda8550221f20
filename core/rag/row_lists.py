# ruff: noqa: S608 - every name and text in a query is quoted, and the query is checked to be one SELECT
"""The different values of a column in rows under a condition: "list all customers from Kiel"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.rag.row_values import are_apart, labelled
from core.rag.tables.store import quoted
from core.rag.tables.subjects import is_name
from core.rag.tables.wording import WORDS, body, called_in, line, number_of

if TYPE_CHECKING:
    from core.rag.document import Passage
    from core.rag.row_computing import Computing
    from core.rag.row_questions import RowQuestion
    from core.rag.tables.store import Column

_MOST: Final = 40  # values that are told


def listed_values(over: Computing, asked: RowQuestion, where: str) -> Passage | None:
    """The values, each once; of more than forty how many there are, and the first of them."""
    column = _column(over, asked)
    if column is None or column.strays or not is_name(column) or not _are_sure(over, asked, column):
        return None
    name, words = quoted(column.name), WORDS[over.lang]
    some, filled = over.one(f"SELECT count(*), count({name}) FROM {over.source} WHERE {where}")
    if filled < some or not some:
        return None
    answer = over.ask(
        f"SELECT {name} AS said, count(*) FROM {over.source} WHERE {where} GROUP BY {name} ORDER BY min(_row)"
    )
    values = [labelled(value, column) for value, _ in answer.rows]
    if not are_apart(values):
        return None
    told = values[:_MOST]
    kind = "listed_some" if answer.total > _MOST else "listed" if asked.conditions else "listed_all"
    if kind == "listed_some" and not asked.conditions:
        return None
    text = words[kind].format(
        table=called_in(over.named, over.lang).strip(),
        n=number_of("value", answer.total, over.lang),
        column=line(column.name),
        some=f"{some:,}",
        rows=number_of("row", body(over.named.table), over.lang),
        where=over.where(asked.conditions),
        each=words["between"].join(told),
        first=len(told),
        left=f"{answer.total - len(told):,}",
    )
    return over.cited(answer, text, f"{answer.total:,}")


def _column(over: Computing, asked: RowQuestion) -> Column | None:
    """The column whose values are asked for: that which names somebody where people are."""
    if asked.of in {"people", "staff"}:
        return over.people[0]
    return over.thing(asked)


def _are_sure(over: Computing, asked: RowQuestion, column: Column) -> bool:
    """Whether conditions on rows say the same of what is listed, of which each may stand in several rows.

    A customer with a sum of 100 has one order of so much, or several that add up to it; one whose orders are not open
    has no open one, or one that is not.
    """
    if over.names_rows(column, "NOT _total"):
        return True
    columns = over.named.table.columns
    return not asked.flagged and all(
        one.operator in {"=", "between"} and columns[one.column].kind != "number" for one in asked.conditions
    )
