# ruff: noqa: S608 - every name and text in a query is quoted, and the query is checked to be one SELECT
"""Counts, sums and extremes of rows under conditions, computed over the tables of documents: passages to be cited.

What is computed is what the whole question says, and nothing is told where that, or the table, leaves a doubt: blank
cells that may stand for the value above them, several units, cells that are no numbers, two columns with one name.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from core.errors import BadArgumentsError, ToolError
from core.rag.count_questions import plain_name
from core.rag.row_computing import AGGREGATES, Computing
from core.rag.row_differences import row_difference
from core.rag.row_follow_ups import exchanged, gone_on
from core.rag.row_groups import by_values, figures_by_values, most_rows, ranked_values
from core.rag.row_lists import listed_values
from core.rag.row_pairs import row_pair
from core.rag.row_questions import may_be_of, row_question
from core.rag.row_values import cells_in_words, literal, percent, valued
from core.rag.row_vocabulary import called_in_all, vocabulary
from core.rag.tables.store import quoted
from core.rag.tables.subjects import has_hidden_totals, is_name
from core.rag.tables.wording import WORDS, body, called_in, line, number_of, passage_at, written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.languages import Lang
    from core.rag.document import Passage
    from core.rag.row_differences import Difference
    from core.rag.row_questions import RowQuestion
    from core.rag.tables.query import Answer, Named
    from core.rag.tables.store import Column

_MOST: Final = 6  # tables of which something is told
_MOST_TABLES: Final = 20  # that are looked through for the words of a question
_MOST_ROWS: Final = 300_000
_MOST_LOOKED_THROUGH: Final = 200_000  # cells of texts of all tables: about a second
_MOST_ALIKE: Final = 5  # rows that share the highest value and are all named
_MOST_CELLS: Final = 8  # of a row that are told


def rows_told(question: str, tables: Sequence[Named], ask: Callable[[str], Answer], lang: Lang) -> list[Passage]:
    """What a question asks of the rows of tables; nothing where that is not clear, or cannot be told for sure.

    Args:
        tables: All that there are.
        ask: Takes a query, blocks, and gives the answer.
        lang: The language of the sentences.
    """
    if not _is_looked_through(tables):
        return []
    question = unicodedata.normalize("NFC", question)
    told: list[tuple[Named, list[Passage]]] = []
    for one in tables:
        if not one.table.whole or one.table.rows > _MOST_ROWS:
            return []  # the question may be about this one
        try:
            if not may_be_of(question, called_in_all(one, tables)):
                continue
            known = vocabulary(one, tables, question, ask)
            passages = _Told(one, known, ask, lang, tables).passages(question)
            if passages is None:
                continue
        except (BadArgumentsError, ToolError):
            return []
        if not all(passages):
            return []
        told.append((one, [passage for passage in passages if passage is not None]))
    places = {(one.document_id, one.table.title if one.table.sheet else "") for one, _ in told}
    if len(told) > _MOST or len(places) < len(told):  # of several in one place nobody knows which is meant
        return []
    return [passage for _, passages in told for passage in passages]


def whole_question(question: str, earlier: Sequence[str], tables: Sequence[Named], ask: Callable[[str], Answer]) -> str:
    """The question that one stands for which goes on from those before it; "" where that is not clear.

    Args:
        question: Such a one, "and in the West?".
        earlier: The questions before it, oldest first.
        tables: As of `rows_told`.
        ask: As of `rows_told`.
    """
    if not _is_looked_through(tables):
        return ""
    whole, fragments = gone_on(question, earlier)
    for fragment in fragments:
        both = unicodedata.normalize("NFC", f"{whole} | {fragment.said}")
        try:
            found = {exchanged(whole, fragment, vocabulary(one, tables, both, ask)) for one in tables} - {""}
        except (BadArgumentsError, ToolError):
            return ""
        if len(found) != 1:
            return ""
        whole = found.pop()
    return whole


def _is_looked_through(tables: Sequence[Named]) -> bool:
    """Whether there are tables, and not more cells of texts than a second looks through."""
    return 0 < len(tables) <= _MOST_TABLES and sum(map(_looked_through, tables)) <= _MOST_LOOKED_THROUGH


def _looked_through(named: Named) -> int:
    """How many cells are looked through for the words of a question."""
    return named.table.rows * sum(one.kind == "text" for one in named.table.columns)


def _figure_of(passage: Passage | None) -> float | None:
    """The number that a sentence tells, without its unit."""
    said = "" if passage is None else str(passage.computed).split(" ")[0].replace(",", "")
    return float(said) if re.fullmatch(r"-?\d+(?:\.\d+)?(?:e-\d+)?", said) else None


# ---- what is computed


class _Told(Computing):
    """Computes over one table."""

    def passages(self, question: str) -> list[Passage | None] | None:
        """A sentence for each thing that is asked for, `None` for one that cannot be told; `None` where none is asked.

        Raises:
            BadArgumentsError, ToolError: A query failed.
        """
        asked = row_question(question, self.known)
        both = row_pair(question, self.known) if asked is None else (asked,)
        if both is None:
            apart = row_difference(question, self.known)
            if apart is None:
                return None
            return [None] if has_hidden_totals(self.named, self.ask) else self._difference(apart)
        if has_hidden_totals(self.named, self.ask):
            return [None]
        return [self.passage(each) for each in both] if len(both) == 1 or self.is_of_rows(both[0]) else [None]

    def _difference(self, apart: Difference) -> list[Passage | None]:
        """Both figures, and how much one is above the other."""
        both = [self.passage(apart.first), self.passage(apart.second)]
        figures = [_figure_of(one) for one in both]
        more, less = figures if apart.way != "second" else figures[::-1]
        if more is None or less is None:
            return [None]
        if apart.way == "apart" and more < less:
            more, less = less, more
        unit = "" if apart.first.column is None else self.named.table.columns[apart.first.column].unit
        difference = " ".join(one for one in (written(round(more - less, 4)), unit) if one)
        text = WORDS[self.lang]["difference"].format(
            table=called_in(self.named, self.lang).strip(),
            more=written(more),
            less=written(less),
            difference=difference,
        )
        return [*both, passage_at(self.named, text, difference)]

    def passage(self, asked: RowQuestion) -> Passage | None:
        """The sentence; `None` where it cannot be told for sure. Raises BadArgumentsError, ToolError."""
        if not self.named.table.sheet and self.has_twin():
            return None
        if not all(self.is_sure(one) for one in asked.conditions):
            return None
        if asked.of and not self.is_of(asked.of):
            return None
        where = " AND ".join(["NOT _total", *(self.held(one) for one in asked.conditions)])
        by = None if asked.each is None else self.named.table.columns[asked.each]
        match asked.asks:
            case "count" if by is not None:
                return (most_rows if asked.ranked else by_values)(self, asked, by, where)
            case "count":
                return self._counted(asked, where)
            case "share":
                return self._share(asked, where)
            case "list":
                return listed_values(self, asked, where)
            case _:
                return self._of_column(asked, by, where)

    def _of_column(self, asked: RowQuestion, by: Column | None, where: str) -> Passage | None:
        """A figure of a column, for each value of another one or once, or which row or value has it."""
        column = self.named.table.columns[asked.column or 0]
        if asked.column is None or column.strays or "/" in column.unit or not self.is_of_one_unit(column, where, by):
            return None
        if asked.ranked and by is not None:
            return ranked_values(self, asked, column, by, where)
        if asked.asks.startswith("row"):
            told = self._row(asked, column, where) if asked.many == 1 else self._rows(asked, column, where)
            return told or self._of_group(asked, column, where)
        return self._figure(asked, column, where) if by is None else figures_by_values(self, asked, column, by, where)

    def _of_group(self, asked: RowQuestion, column: Column, where: str) -> Passage | None:
        """Which value, that stands in many rows, has the highest figures: "which region has the highest revenue?"."""
        if asked.thing is None or column.kind != "number" or (asked.in_doubt and asked.many > 1):
            return None
        by = self.named.table.columns[asked.thing]
        if by.kind != "text" or self.names_rows(by, where):
            return None
        rank = asked.asks.removeprefix("row_")
        of_all = replace(asked, asks="sum", thing=None, each=asked.thing, ranked=rank)
        told = ranked_values(self, of_all, column, by, where)
        return self._extreme(asked, column, where) if told is not None and asked.in_doubt == "extreme" else told

    def is_of_rows(self, asked: RowQuestion) -> bool:
        """Whether what a question is about are rows, each of which another question can speak of."""
        where = " AND ".join(["NOT _total", *(self.held(one) for one in asked.conditions)])
        return self.is_each_a_row(asked, where)

    def _counted(self, asked: RowQuestion, where: str) -> Passage | None:
        table, words = self.named.table, WORDS[self.lang]
        answer = self.ask(f"SELECT count(*) FROM {self.source} WHERE {where}")
        some = int(answer.rows[0][0])
        said = {
            "table": called_in(self.named, self.lang).strip(),
            "rows": number_of("row", body(table), self.lang),
            "where": self.where(asked.conditions),
            "some": f"{some:,}",
        }
        column = self.thing(asked)
        if asked.subject and self.is_no_row(asked.subject):
            return None
        if column is not None and self.is_in_pieces(plain_name(column.name)):
            return None
        if asked.bare and not self.is_each_row_a_thing():
            return None
        if column is not None:
            name = quoted(column.name)
            filled, different = self.one(
                f"SELECT count({name}), count(DISTINCT {name}) FROM {self.source} WHERE {where}"
            )
            if not is_name(column) or filled < some:
                return None  # it says how many there are, or not all rows name one
            if different < some and asked.flagged:
                return None  # "how many customers returned": those who came back, or whose orders did
            if any(one.operator == "empty" for one in asked.conditions) and not self.names_rows(column, "NOT _total"):
                return None  # "how many customers have no orders": they stand in no row
            if different < some:
                n = number_of("value", different, self.lang)
                text = words["held_different"].format(n=n, column=line(column.name), **said)
                return self.cited(answer, text, f"{different:,}")
        return self.cited(answer, words["held"].format(**said), said["some"])

    def _share(self, asked: RowQuestion, where: str) -> Passage | None:
        """Which part of all rows fulfils a condition."""
        table, rows = self.named.table, body(self.named.table)
        if not all(self.is_filled(table.columns[one.column]) for one in asked.conditions):
            return None  # whether rows without a value count for the whole is not sure
        if not rows or not self.is_each_a_row(asked, "NOT _total"):
            return None
        if asked.bare and not self.is_each_row_a_thing():
            return None
        answer = self.ask(f"SELECT count(*) FROM {self.source} WHERE {where}")
        some = int(answer.rows[0][0])
        share = f"{percent(some, rows)} %"
        text = WORDS[self.lang]["held_share"].format(
            table=called_in(self.named, self.lang).strip(),
            rows=number_of("row", rows, self.lang),
            where=self.where(asked.conditions),
            some=f"{some:,}",
            share=share,
        )
        return self.cited(answer, text, share)

    def _figure(self, asked: RowQuestion, column: Column, where: str) -> Passage | None:
        if not self.has_figure(asked, column, where):
            return None
        name = quoted(column.name)
        answer = self.ask(
            f"SELECT {AGGREGATES[asked.asks]}({name}), count({name}), count(*) FROM {self.source} WHERE {where}"
        )
        value, some, rows = answer.rows[0]
        if not isinstance(value, int | float) or not some:
            return None
        words = WORDS[self.lang]
        text = words["figure_where"].format(
            table=called_in(self.named, self.lang).strip(),
            figure=words[asked.asks],
            column=line(column.name),
            value=valued(value, column),
            rows=self.those(f"{rows:,}", number_of("row", body(self.named.table), self.lang), asked),
            blank=words["blank"].format(n=f"{rows - some:,}") if some < rows else "",
        )
        return self.cited(answer, text, valued(value, column))

    def _row(self, asked: RowQuestion, column: Column, where: str) -> Passage | None:
        """Which row has the highest or the lowest value."""
        if not self.is_each_a_row(asked, where) or (asked.who and asked.thing is None and not self.is_each_somebody()):
            return None
        return self._extreme(asked, column, where)

    def _extreme(self, asked: RowQuestion, column: Column, where: str) -> Passage | None:
        """The rows that have the highest or the lowest value."""
        name = quoted(column.name)
        (value,) = self.one(f"SELECT {AGGREGATES[asked.asks]}({name}) FROM {self.source} WHERE {where}")
        if value is None:
            return None
        shown = self.named.table.columns[:_MOST_CELLS]
        cells = ", ".join(quoted(one.name) for one in shown)
        answer = self.ask(f"SELECT _row, {cells} FROM {self.source} WHERE {where} AND {name} = {literal(value)}")
        if not 0 < answer.total <= _MOST_ALIKE or len(answer.sources) != answer.total:
            return None
        words = WORDS[self.lang]
        each = [
            words["each_row"].format(row=row, cells=words["between"].join(cells_in_words(shown, values)))
            for row, *values in answer.rows
        ]
        text = words["extreme" if len(each) == 1 else "extremes"].format(
            table=called_in(self.named, self.lang).strip(),
            figure=words[asked.asks.removeprefix("row_")],
            column=line(column.name),
            where=words["extreme_where"].format(where=self.where(asked.conditions)) if asked.conditions else "",
            value=valued(value, column),
            row=answer.rows[0][0],
            cells=words["between"].join(cells_in_words(shown, answer.rows[0][1:])),
            n=f"{len(each):,}",
            each="; ".join(each) if self.lang == "en" else "；".join(each),
        )
        who = self.people[0] if asked.who and self.people else None
        thing, figure = self.thing(asked) or who, valued(value, column)
        if len(each) == 1 and thing in shown and (name := answer.rows[0][1 + shown.index(thing)]) is not None:
            figure = valued(name, thing)
        return self.cited(answer, text, figure)

    def _rows(self, asked: RowQuestion, column: Column, where: str) -> Passage | None:
        """Which rows have the highest or the lowest values; `None` where one row more has the last of these, too."""
        if not self.is_each_a_row(asked, where):
            return None
        name, words, many = quoted(column.name), WORDS[self.lang], asked.many
        thing = self.thing(asked) or self.named.table.columns[0]
        shown = [thing, column]
        answer = self.ask(
            f"SELECT _row, {quoted(thing.name)}, {name} FROM {self.source} WHERE {where} AND {name} IS NOT NULL "
            f"ORDER BY {name} {'DESC' if asked.asks == 'row_highest' else 'ASC'}, _row LIMIT {many + 1}"
        )
        if len(answer.rows) < many or len(answer.sources) != len(answer.rows):
            return None
        if len(answer.rows) > many and answer.rows[many][-1] == answer.rows[many - 1][-1]:
            return None
        rows = answer.rows[:many]
        each = [
            words["each_row"].format(row=row, cells=words["between"].join(cells_in_words(shown, values)))
            for row, *values in rows
        ]
        text = words["tops"].format(
            table=called_in(self.named, self.lang).strip(),
            figure=words[f"{asked.asks.removeprefix('row_')}_of"].format(n=many),
            column=line(column.name),
            where=words["extreme_where"].format(where=self.where(asked.conditions)) if asked.conditions else "",
            each="; ".join(each) if self.lang == "en" else "；".join(each),
        )
        told = replace(answer, sources=answer.sources[:many])
        return self.cited(told, text, ", ".join(written(value) for *_, value in rows))
