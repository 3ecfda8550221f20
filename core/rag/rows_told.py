# ruff: noqa: S608 - every name and text in a query is quoted, and the query is checked to be one SELECT
"""Counts, sums and extremes of rows under conditions, computed over the tables of documents: passages to be cited.

What is computed is what the whole question says, and nothing is told where that, or the table, leaves a doubt: blank
cells that may stand for the value above them, several units, cells that are no numbers, two columns with one name.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from core.errors import BadArgumentsError, ToolError
from core.messages.computed import Computed
from core.rag.count_questions import plain_name
from core.rag.question_tokens import Vocabulary
from core.rag.row_numbers import joined
from core.rag.row_questions import row_question
from core.rag.row_values import (
    are_apart,
    are_groups,
    cells_in_words,
    labelled,
    literal,
    of_dates,
    percent,
    quoted_text,
    valued,
)
from core.rag.tables.cited import passage_of
from core.rag.tables.query import FOLD, folded
from core.rag.tables.store import quoted
from core.rag.tables.subjects import (
    CURRENCY,
    adds_up,
    forms_of,
    is_figure_of,
    is_name,
    key_of,
    names_of,
    subjects_of,
    titles_of,
    without_key,
)
from core.rag.tables.wording import WORDS, body, called_in, line, number_of, passage_at, written

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.languages import Lang
    from core.rag.document import Passage
    from core.rag.row_questions import Condition, RowQuestion
    from core.rag.tables.query import Answer, Named
    from core.rag.tables.store import Column

_MOST: Final = 6  # tables of which something is told
_MOST_TABLES: Final = 20  # that are looked through for the words of a question
_MOST_ROWS: Final = 300_000
_MOST_LOOKED_THROUGH: Final = 200_000  # cells of texts of all tables: about a second
_MOST_ALIKE: Final = 5  # rows that share the highest value and are all named
_MOST_CELLS: Final = 8  # of a row that are told
_LONGEST_VALUE: Final = 80  # letters of a cell that a question may name
_AT_ONCE: Final = 18  # columns of texts that one query looks through
_MOST_VALUES: Final = 12  # by which rows are counted
_AGAIN: Final = re.compile(r"(.+)_\d+", re.DOTALL)  # the second column of one head has a number behind it
_AGGREGATES: Final[Mapping[str, str]] = {
    "sum": "sum", "average": "avg", "median": "median", "highest": "max", "lowest": "min",
    "row_highest": "max", "row_lowest": "min",
}  # fmt: skip
_SIGNS: Final[Mapping[str, str]] = {"=": "=", "<>": "≠", "<": "<", ">": ">", "<=": "≤", ">=": "≥"}


def rows_told(question: str, tables: Sequence[Named], ask: Callable[[str], Answer], lang: Lang) -> list[Passage]:
    """What a question asks of the rows of tables; nothing where that is not clear, or cannot be told for sure.

    Args:
        tables: All that there are.
        ask: Takes a query, blocks, and gives the answer.
        lang: The language of the sentences.
    """
    if not tables or len(tables) > _MOST_TABLES or sum(map(_looked_through, tables)) > _MOST_LOOKED_THROUGH:
        return []
    question = unicodedata.normalize("NFC", question)
    told: list[tuple[Named, Passage]] = []
    for one in tables:
        if not one.table.whole or one.table.rows > _MOST_ROWS:
            return []  # the question may be about this one
        try:
            known = _vocabulary(one, tables, question, ask)
            asked = row_question(question, known)
            if asked is None:
                continue
            passage = _Told(one, known, ask, lang, tables).passage(asked)
        except (BadArgumentsError, ToolError):
            return []
        if passage is None:
            return []
        told.append((one, passage))
    places = {(one.document_id, one.table.title if one.table.sheet else "") for one, _ in told}
    if len(told) > _MOST or len(places) < len(told):  # of several in one place nobody knows which is meant
        return []
    return [passage for _, passage in told]


def _looked_through(named: Named) -> int:
    """How many cells are looked through for the words of a question."""
    return named.table.rows * sum(one.kind == "text" for one in named.table.columns)


# ---- the words of a table


def _vocabulary(named: Named, tables: Sequence[Named], question: str, ask: Callable[[str], Answer]) -> Vocabulary:
    """What a table is called and holds, as far as it stands in the question. Raises BadArgumentsError, ToolError."""
    columns: dict[str, list[int]] = {}
    heads = {column.name.casefold() for column in named.table.columns}
    for at, column in enumerate(named.table.columns):
        names = _spoken(plain_name(column.name))
        if (again := _AGAIN.fullmatch(column.name)) and again[1].casefold() in heads:
            names |= _spoken(plain_name(again[1]))  # two columns have this head: neither is meant by it alone
        if column.letter:
            letter = column.letter.casefold()
            names |= {f"column {letter}", f"{letter}列", f"{letter} 列"}
        for name in names:
            columns.setdefault(name, []).append(at)
    for at, column in enumerate(named.table.columns):
        for name in _spoken(plain_name(column.name.rpartition(" / ")[2])) - set(columns):
            columns.setdefault(name, []).append(at)
    sheets = [one for one in tables if one.table.sheet]
    called = titles_of(named.table) | names_of(named.document)
    if named.table.sheet:
        called |= subjects_of(named, sheets)
    subjects = frozenset(form for name in called for form in _spoken(name))
    exact = set(columns)
    for at, column in enumerate(named.table.columns):
        for name in _spoken(without_key(plain_name(column.name))) - subjects - exact:
            columns.setdefault(name, []).append(at)
    return Vocabulary(
        {name: tuple(at) for name, at in columns.items() if name},
        [column.kind for column in named.table.columns],
        [column.unit for column in named.table.columns],
        _values(named, question, ask),
        subjects,
    )


def _spoken(name: str) -> set[str]:
    """A name and its plural or singular."""
    if not name:
        return set()
    found = {name, *forms_of(name)}
    if name[-1].isascii() and name[-1].isalpha():
        found |= {f"{name}s", f"{name[:-1]}ies"} if name.endswith("y") else {f"{name}s"}
    return found


def _values(named: Named, question: str, ask: Callable[[str], Answer]) -> dict[str, dict[int, tuple[str, ...]]]:
    """The texts of cells that stand in the question: each with its columns, and there with its spellings."""
    texts = [(at, one) for at, one in enumerate(named.table.columns) if one.kind == "text"]
    said = quoted_text(folded(question))
    found: dict[str, dict[int, tuple[str, ...]]] = {}
    for first in range(0, len(texts), _AT_ONCE):
        each = [
            f"SELECT DISTINCT {at} AS at, {(name := quoted(column.name))} AS said FROM {quoted(named.name)} "
            f"WHERE NOT _total AND length({name}) <= {_LONGEST_VALUE} AND instr({said}, {FOLD}({name}))"
            for at, column in texts[first : first + _AT_ONCE]
        ]
        answer = ask(" UNION ALL ".join(each))
        if answer.total > len(answer.rows):
            raise ToolError("Too many cells stand in the question.")
        for at, value in answer.rows:
            name = plain_name(folded(str(value)))
            spelled = found.setdefault(name, {})
            spelled[at] = (*spelled.get(at, ()), str(value))
    return found


# ---- what is computed


@dataclass(frozen=True, slots=True)
class _Told:
    """Computes over one table.

    Args:
        tables: All that there are.
    """

    named: Named
    known: Vocabulary
    ask: Callable[[str], Answer]
    lang: Lang
    tables: Sequence[Named]

    def passage(self, asked: RowQuestion) -> Passage | None:
        """The sentence; `None` where it cannot be told for sure. Raises BadArgumentsError, ToolError."""
        if not self.named.table.sheet and self._has_twin():
            return None
        if not all(self._is_sure(one) for one in asked.conditions):
            return None
        where = " AND ".join(["NOT _total", *(self._held(one) for one in asked.conditions)])
        by = None if asked.each is None else self.named.table.columns[asked.each]
        if asked.asks == "count":
            return self._counted(asked, where) if by is None else self._by_values(asked, by, where)
        if asked.asks == "share":
            return self._share(asked, where)
        column = self.named.table.columns[asked.column or 0]
        if asked.column is None or column.strays or "/" in column.unit or not self._is_of_one_unit(column, where, by):
            return None
        if asked.asks.startswith("row"):
            return self._row(asked, column, where) if asked.many == 1 else self._rows(asked, column, where)
        return self._figure(asked, column, where) if by is None else self._figures(asked, column, by, where)

    # ---- whether it is sure

    def _has_twin(self) -> bool:
        """Whether another table of the document has the same columns: one that goes on over pages may be two."""
        ours = [one.name for one in self.named.table.columns]
        there = [one for one in self.tables if one.document_id == self.named.document_id]
        return sum([column.name for column in one.table.columns] == ours for one in there) > 1

    def _is_sure(self, condition: Condition) -> bool:
        """Whether cells of the column that are empty or no numbers leave no doubt which rows are meant."""
        column = self.named.table.columns[condition.column]
        if column.strays:
            return False
        if self._is_filled(column):
            return True
        # A group is often named in its first row alone, and the cells below it are empty.
        return column.kind != "text" and condition.operator != "<>"

    def _is_filled(self, column: Column) -> bool:
        """Whether no cell of a column is empty."""
        rows, filled = self._one(f"SELECT count(*), count({quoted(column.name)}) FROM {self._source} WHERE NOT _total")
        return filled == rows

    def _is_of_one_unit(self, column: Column, where: str, by: Column | None) -> bool:
        """Whether no column beside says that amounts are in several currencies; `by` which they are told is clear."""
        if column.kind != "number":
            return True
        for one in self.named.table.columns:
            if one != by and CURRENCY.fullmatch(plain_name(one.name)) and one.kind == "text":
                (different,) = self._one(f"SELECT count(DISTINCT {quoted(one.name)}) FROM {self._source} WHERE {where}")
                if different > 1:
                    return False
        return True

    # ---- queries: all names and texts in them are quoted, and each is checked to be one SELECT

    @property
    def _source(self) -> str:
        return quoted(self.named.name)

    def _one(self, query: str) -> tuple[Any, ...]:
        return self.ask(query).rows[0]

    def _held(self, condition: Condition) -> str:
        """A condition as SQLite has it."""
        column = self.named.table.columns[condition.column]
        name, values = quoted(column.name), condition.values
        if column.kind == "date":
            return of_dates(name, condition)
        match condition.operator:
            case "between":
                return f"{name} BETWEEN {literal(values[0])} AND {literal(values[1])}"
            case "contains":
                return f"instr({FOLD}({name}), {quoted_text(folded(values[0]))})"
            case "=":
                return f"{name} IN ({', '.join(map(literal, values))})"
            case "<>":
                return f"{name} NOT IN ({', '.join(map(literal, values))})"
            case sign:
                return f"{name} {sign} {literal(values[0])}"

    # ---- sentences

    def _counted(self, asked: RowQuestion, where: str) -> Passage | None:
        table, words = self.named.table, WORDS[self.lang]
        answer = self.ask(f"SELECT count(*) FROM {self._source} WHERE {where}")
        some = int(answer.rows[0][0])
        said = {
            "table": called_in(self.named, self.lang).strip(),
            "rows": number_of("row", body(table), self.lang),
            "where": self._where(asked.conditions),
            "some": f"{some:,}",
        }
        column = self._thing(asked)
        if asked.subject and self._is_no_row(asked.subject):
            return None
        if column is not None:
            name = quoted(column.name)
            filled, different = self._one(
                f"SELECT count({name}), count(DISTINCT {name}) FROM {self._source} WHERE {where}"
            )
            if not is_name(column) or filled < some:
                return None  # it says how many there are, or not all rows name one
            if different < some:
                n = number_of("value", different, self.lang)
                text = words["held_different"].format(n=n, column=line(column.name), **said)
                return self._cited(answer, text, f"{different:,}")
        return self._cited(answer, words["held"].format(**said), said["some"])

    def _share(self, asked: RowQuestion, where: str) -> Passage | None:
        """Which part of all rows fulfils a condition."""
        table, rows = self.named.table, body(self.named.table)
        if not all(self._is_filled(table.columns[one.column]) for one in asked.conditions):
            return None  # whether rows without a value count for the whole is not sure
        if not rows or not self._is_each_a_row(asked, "NOT _total"):
            return None
        answer = self.ask(f"SELECT count(*) FROM {self._source} WHERE {where}")
        some = int(answer.rows[0][0])
        share = f"{percent(some, rows)} %"
        text = WORDS[self.lang]["held_share"].format(
            table=called_in(self.named, self.lang).strip(),
            rows=number_of("row", rows, self.lang),
            where=self._where(asked.conditions),
            some=f"{some:,}",
            share=share,
        )
        return self._cited(answer, text, share)

    def _thing(self, asked: RowQuestion) -> Column | None:
        """The column that names what the rows stand for; `None` where rows are meant, or none names them."""
        table = self.named.table
        if asked.thing is not None:
            return table.columns[asked.thing]
        return key_of(table, forms_of(asked.subject)) if asked.subject else None

    def _is_no_row(self, subject: str) -> bool:
        """Whether what the table is called after is not what each of its rows is."""
        forms = forms_of(subject)
        if any(is_figure_of(one, forms) for one in self.named.table.columns):
            return True
        return key_of(self.named.table, forms) is None and adds_up(self.named, self.ask)

    def _by_values(self, asked: RowQuestion, column: Column, where: str) -> Passage | None:
        """How many rows there are for each value of a column."""
        table, words = self.named.table, WORDS[self.lang]
        if asked.bare and not all(map(is_name, table.columns)):
            return None  # "how many per region" may mean what a column of numbers says
        if not self._is_each_a_row(asked, where):
            return None
        answer = self._in_groups(column, "count(*)", where)
        if answer is None or (column.kind == "date" and not are_groups(column, [value for value, _ in answer.rows])):
            return None
        each = [words["value"].format(value=labelled(value, column), n=f"{n:,}") for value, n in answer.rows]
        text = words["held_each_value" if asked.conditions else "each_value"].format(
            table=called_in(self.named, self.lang).strip(),
            rows=number_of("row", body(table), self.lang),
            some=f"{sum(n for _, n in answer.rows):,}",
            where=self._where(asked.conditions),
            column=line(column.name),
            each=words["between"].join(each),
        )
        return self._cited(answer, text, ", ".join(f"{n:,}" for _, n in answer.rows))

    def _in_groups(self, by: Column, told: str, where: str) -> Answer | None:
        """What is told of the rows of each value of a column; `None` where these leave a doubt, or are too many."""
        if by.strays or not self._is_filled(by):
            return None
        name = quoted(by.name)
        answer = self.ask(
            f"SELECT {name} AS said, {told} FROM {self._source} WHERE {where} GROUP BY {name} ORDER BY 2 DESC, {name}"
        )
        if not 0 < answer.total <= _MOST_VALUES or len(answer.sources) != answer.total:
            return None
        return answer if are_apart([str(value) for value, *_ in answer.rows]) else None

    def _figures(self, asked: RowQuestion, column: Column, by: Column, where: str) -> Passage | None:
        """A figure of a column for each value of another one."""
        if not self._has_figure(asked, column, where) or is_name(column):
            return None
        name = quoted(column.name)
        answer = self._in_groups(by, f"{_AGGREGATES[asked.asks]}({name}), count({name}), count(*)", where)
        if answer is None or not any(some for _, _, some, _ in answer.rows):
            return None
        if not are_groups(by, [value for value, *_ in answer.rows]):
            return None
        if asked.asks != "sum" and all(rows == 1 for *_, rows in answer.rows):
            return None  # each value is that of one row: the figure of all of them may be meant
        table, words = self.named.table, WORDS[self.lang]
        rows = number_of("row", body(table), self.lang)
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
            table=called_in(self.named, self.lang).strip(),
            figure=words[asked.asks],
            column=line(column.name),
            by=line(by.name),
            each=words["between"].join(each),
            rows=self._those(f"{held:,}", rows, asked) if asked.conditions else rows,
        )
        return self._cited(answer, text, ", ".join(written(figure) for _, figure, some, _ in answer.rows if some))

    def _those(self, some: str, rows: str, asked: RowQuestion) -> str:
        """The rows that fulfil the conditions, in words."""
        return WORDS[self.lang]["those"].format(some=some, rows=rows, where=self._where(asked.conditions))

    def _has_figure(self, asked: RowQuestion, column: Column, where: str) -> bool:
        """Whether a figure of a column says something: shares are not added up, and each thing is one row."""
        if asked.asks == "sum" and column.unit == "%":
            return False
        if asked.asks != "sum" and not self._is_each_a_row(asked, where):
            return False
        return asked.thing is None or self._is_filled(self.named.table.columns[asked.thing])

    def _is_each_a_row(self, asked: RowQuestion, where: str) -> bool:
        """Whether each thing that is asked for is one row: of what stands in several rows the sum may be meant."""
        if asked.subject and self._is_no_row(asked.subject):
            return False
        thing = self._thing(asked)
        return thing is None or self._names_rows(thing, where)

    def _figure(self, asked: RowQuestion, column: Column, where: str) -> Passage | None:
        if not self._has_figure(asked, column, where):
            return None
        name = quoted(column.name)
        answer = self.ask(
            f"SELECT {_AGGREGATES[asked.asks]}({name}), count({name}), count(*) FROM {self._source} WHERE {where}"
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
            rows=self._those(f"{rows:,}", number_of("row", body(self.named.table), self.lang), asked),
            blank=words["blank"].format(n=f"{rows - some:,}") if some < rows else "",
        )
        return self._cited(answer, text, valued(value, column))

    def _row(self, asked: RowQuestion, column: Column, where: str) -> Passage | None:
        """Which row has the highest or the lowest value."""
        if not self._is_each_a_row(asked, where):
            return None
        name = quoted(column.name)
        (value,) = self._one(f"SELECT {_AGGREGATES[asked.asks]}({name}) FROM {self._source} WHERE {where}")
        if value is None:
            return None
        shown = self.named.table.columns[:_MOST_CELLS]
        cells = ", ".join(quoted(one.name) for one in shown)
        answer = self.ask(f"SELECT _row, {cells} FROM {self._source} WHERE {where} AND {name} = {literal(value)}")
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
            where=words["extreme_where"].format(where=self._where(asked.conditions)) if asked.conditions else "",
            value=valued(value, column),
            row=answer.rows[0][0],
            cells=words["between"].join(cells_in_words(shown, answer.rows[0][1:])),
            n=f"{len(each):,}",
            each="; ".join(each) if self.lang == "en" else "；".join(each),
        )
        thing, figure = self._thing(asked), valued(value, column)
        if len(each) == 1 and thing in shown and (name := answer.rows[0][1 + shown.index(thing)]) is not None:
            figure = valued(name, thing)
        return self._cited(answer, text, figure)

    def _rows(self, asked: RowQuestion, column: Column, where: str) -> Passage | None:
        """Which rows have the highest or the lowest values; `None` where one row more has the last of these, too."""
        if not self._is_each_a_row(asked, where):
            return None
        name, words, many = quoted(column.name), WORDS[self.lang], asked.many
        thing = self._thing(asked) or self.named.table.columns[0]
        shown = [thing, column]
        answer = self.ask(
            f"SELECT _row, {quoted(thing.name)}, {name} FROM {self._source} WHERE {where} AND {name} IS NOT NULL "
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
            where=words["extreme_where"].format(where=self._where(asked.conditions)) if asked.conditions else "",
            each="; ".join(each) if self.lang == "en" else "；".join(each),
        )
        told = replace(answer, sources=answer.sources[:many])
        return self._cited(told, text, ", ".join(written(value) for *_, value in rows))

    def _names_rows(self, column: Column, where: str) -> bool:
        """Whether a column has another value in each row."""
        name = quoted(column.name)
        rows, different = self._one(f"SELECT count(*), count(DISTINCT {name}) FROM {self._source} WHERE {where}")
        return is_name(column) and different == rows

    def _where(self, conditions: Sequence[Condition]) -> str:
        """The conditions in words: "Status = open and Amount > 1,000"."""
        return WORDS[self.lang]["and"].join(self._worded(one) for one in conditions)

    def _worded(self, condition: Condition) -> str:
        column = self.named.table.columns[condition.column]
        said = [valued(one, column) for one in condition.values]
        name = line(column.name)
        if condition.operator == "between":
            return f"{said[0]} ≤ {name} ≤ {said[1]}"
        if condition.operator == "contains":
            return f"{name} ∋ “{said[0]}”"
        return f"{name} {_SIGNS[condition.operator]} {said[0]}"

    def _cited(self, answer: Answer, text: str, figure: str) -> Passage:
        """The sentence with what it rests on: rows and cells, or the table where no row was found."""
        sources = [one for each in answer.sources for one in each]
        if not sources or not sources[0].rows:
            return passage_at(self.named, text, figure)
        source = sources[0]
        if len(sources) > 1:
            runs = joined(run for one in sources for run in one.runs)
            source = replace(source, runs=runs, rows=tuple(row for one in sources for row in one.rows))
        return replace(passage_of(source, text), computed=Computed(figure))
