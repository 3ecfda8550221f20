# ruff: noqa: S608 - every name and text in a query is quoted, and the query is checked to be one SELECT
"""Conditions on one table as queries and as words, and whether cells leave no doubt what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from core.messages.computed import Computed
from core.rag.count_questions import plain_name
from core.rag.row_numbers import joined
from core.rag.row_values import has_part, literal, of_dates, quoted_text, valued
from core.rag.tables.cited import passage_of
from core.rag.tables.query import FOLD, folded
from core.rag.tables.store import quoted
from core.rag.tables.subjects import (
    CURRENCY,
    PERIOD,
    SOMEBODY,
    adds_up,
    forms_of,
    is_figure_of,
    is_name,
    key_of,
    without_key,
)
from core.rag.tables.values import is_nothing
from core.rag.tables.wording import WORDS, line, passage_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.languages import Lang
    from core.rag.document import Passage
    from core.rag.question_tokens import Vocabulary
    from core.rag.row_conditions import Condition
    from core.rag.row_questions import RowQuestion
    from core.rag.tables.query import Answer, Named
    from core.rag.tables.store import Column

AGGREGATES: Final[Mapping[str, str]] = {
    "sum": "sum", "average": "avg", "median": "median", "highest": "max", "lowest": "min",
    "row_highest": "max", "row_lowest": "min",
}  # fmt: skip
_MONEY: Final = re.compile(  # nobody asks how many of these there are
    r"\b(?:amounts?|prices?|costs?|revenues?|turnover|values?|fees?|tax|net|gross|discounts?|salary|budget|years?"
    r"|betrag|preis|kosten|umsatz|wert|jahr|gehalt|lohn|wages?)\b|金额|价|费用|工资|成本|收入|销售额|营收|年份"
)
_OF_SALES: Final = re.compile(
    r"\b(?:sales?|orders?|purchases?|transactions?)\b|verk[aä]uf|bestell|auftr[aä]g|销售|订单|交易"
)
_STOCK: Final = re.compile(r"stock|on hand|quantity|qty|inventory|bestand|menge|stück|库存|数量|件数")
_PIECES: Final = re.compile(r"items?|goods|parts?|teile?n?|artikeln?|waren?|货物?|件|物品")
_OF_SUMS: Final = re.compile(
    r"\b(?:daily|weekly|monthly|items?|lines?|positions?)\b|number of|count|position|posten|笔数|单数|订单数|明细|次数"
)
_LONGEST_NOTHING: Final = 12  # letters of "keine Angabe"
_SIGNS: Final[Mapping[str, str]] = {"=": "=", "<>": "≠", "<": "<", ">": ">", "<=": "≤", ">=": "≥"}


@dataclass(frozen=True, slots=True)
class Computing:
    """What computing over one table rests on: conditions as queries, whether they are sure, and how they are told.

    Args:
        known: What the table is called, and what it holds.
        ask: Takes a query, blocks, and gives the answer.
        lang: The language of the sentences.
        tables: All that there are.
    """

    named: Named
    known: Vocabulary
    ask: Callable[[str], Answer]
    lang: Lang
    tables: Sequence[Named]

    def has_twin(self) -> bool:
        """Whether another table of the document has the same columns: one that goes on over pages may be two."""
        ours = [one.name for one in self.named.table.columns]
        there = [one for one in self.tables if one.document_id == self.named.document_id]
        return sum([column.name for column in one.table.columns] == ours for one in there) > 1

    def is_sure(self, condition: Condition) -> bool:
        """Whether cells of the column that are empty or no numbers leave no doubt which rows are meant."""
        column = self.named.table.columns[condition.column]
        if condition.operator == "empty":
            return not column.strays and self.is_mostly_filled(column)
        if column.strays or (condition.operator in {"=", "<>"} and self.is_part_of_others(condition)):
            return False
        if self.is_filled(column):
            return True
        # A group is often named in its first row alone, and the cells below it are empty.
        return column.kind != "text" and condition.operator != "<>"

    def is_part_of_others(self, condition: Condition) -> bool:
        """Whether a cell of texts has what is asked for and something else: "Red & Blue" may be one of the red ones."""
        column = self.named.table.columns[condition.column]
        if column.kind != "text":
            return False
        name, said = quoted(column.name), {folded(str(one)) for one in condition.values}
        for one in said:
            answer = self.ask(
                f"SELECT DISTINCT {name} FROM {self.source} WHERE NOT _total AND instr({FOLD}({name}), "
                f"{quoted_text(one)}) AND length({name}) > {len(one)}"
            )
            if answer.total > len(answer.rows) or any(has_part(str(cell), one) for (cell,) in answer.rows):
                return True
        return False

    def is_filled(self, column: Column) -> bool:
        """Whether no cell of a column is empty."""
        rows, filled = self.one(f"SELECT count(*), count({quoted(column.name)}) FROM {self.source} WHERE NOT _total")
        return filled == rows

    def is_mostly_filled(self, column: Column) -> bool:
        """Whether cells that are empty say that there is no value: others have one, and none says so in words.

        Where most are empty, or no value comes twice, a name may stand in the first row of a group alone.
        """
        name = quoted(column.name)
        rows, filled = self.one(f"SELECT count(*), count({name}) FROM {self.source} WHERE NOT _total")
        (different,) = self.one(f"SELECT count(DISTINCT {name}) FROM {self.source} WHERE NOT _total")
        if 2 * filled <= rows or different == filled:
            return False
        if column.kind != "text":
            return True
        answer = self.ask(
            f"SELECT DISTINCT {name} FROM {self.source} WHERE NOT _total AND length({name}) <= {_LONGEST_NOTHING}"
        )
        return answer.total <= len(answer.rows) and not any(is_nothing(str(value or "x")) for (value,) in answer.rows)

    def is_of_one_unit(self, column: Column, where: str, by: Column | None) -> bool:
        """Whether no column beside says that amounts are in several currencies; `by` which they are told is clear."""
        if column.kind != "number":
            return True
        for one in self.named.table.columns:
            if one != by and CURRENCY.fullmatch(plain_name(one.name)) and one.kind == "text":
                (different,) = self.one(f"SELECT count(DISTINCT {quoted(one.name)}) FROM {self.source} WHERE {where}")
                if different > 1:
                    return False
        return True

    @property
    def source(self) -> str:
        """Its name in queries."""
        return quoted(self.named.name)

    def one(self, query: str) -> tuple[Any, ...]:
        """The first row of an answer. Raises BadArgumentsError, ToolError."""
        return self.ask(query).rows[0]

    def held(self, condition: Condition) -> str:
        """A condition as SQLite has it."""
        column = self.named.table.columns[condition.column]
        name, values = quoted(column.name), condition.values
        if column.kind == "date" and condition.operator != "empty":
            return of_dates(name, condition)
        match condition.operator:
            case "empty":
                return f"{name} IS NULL"
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

    def thing(self, asked: RowQuestion) -> Column | None:
        """The column that names what the rows stand for; `None` where rows are meant, or none names them."""
        table = self.named.table
        if asked.thing is not None:
            return table.columns[asked.thing]
        return key_of(table, forms_of(asked.subject)) if asked.subject else None

    def is_in_pieces(self, word: str) -> bool:
        """Whether "how many items" may be pieces, of which a column says how many there are."""
        stock = [
            one for one in self.named.table.columns if one.kind == "number" and _STOCK.search(plain_name(one.name))
        ]
        return bool(stock and _PIECES.fullmatch(word))

    def is_no_row(self, subject: str) -> bool:
        """Whether what the table is called after is not what each of its rows is."""
        forms = forms_of(subject)
        if any(is_figure_of(one, forms) for one in self.named.table.columns):
            return True
        return key_of(self.named.table, forms) is None and adds_up(self.named, self.ask)

    def has_figure(self, asked: RowQuestion, column: Column, where: str) -> bool:
        """Whether a figure of a column says something: shares are not added up, and each thing is one row."""
        if asked.asks == "sum" and column.unit == "%":
            return False
        if asked.asks != "sum" and not self.is_each_a_row(asked, where):
            return False
        return asked.thing is None or self.is_filled(self.named.table.columns[asked.thing])

    def is_each_a_row(self, asked: RowQuestion, where: str) -> bool:
        """Whether each thing that is asked for is one row: of what stands in several rows the sum may be meant."""
        if asked.subject and self.is_no_row(asked.subject):
            return False
        thing = self.thing(asked)
        return thing is None or self.names_rows(thing, where)

    def is_each_row_a_thing(self) -> bool:
        """Whether "how many were returned" means rows: no column says how many of them there are, and none repeats."""
        first = self.named.table.columns[0]
        for at, one in enumerate(self.named.table.columns):
            is_no_amount = one.kind != "number" or at in self.known.flags or is_name(one)
            if not is_no_amount and not one.unit and not _MONEY.search(plain_name(one.name)):
                return False
        if PERIOD.fullmatch(plain_name(first.name)):
            return False
        return first.kind != "text" or self.names_rows(first, "NOT _total")

    def is_each_somebody(self) -> bool:
        """Whether each row is somebody else: "who has the highest amount" may be who has several orders."""
        texts = [one for one in self.named.table.columns if one.kind == "text"]
        return any(self.names_rows(one, "NOT _total") for one in (self.people or texts)[:1])

    @property
    def people(self) -> list[Column]:
        """The columns of texts that name somebody."""
        texts = [one for one in self.named.table.columns if one.kind == "text"]
        return [one for one in texts if SOMEBODY.search(plain_name(one.name))]

    def is_of(self, what: str) -> bool:
        """Whether each row is one of the "people", the "staff" or the "sales" that no name of the table says."""
        if what == "sales":
            return self._is_each_a_sale()
        return len(self.people) == 1 and self.names_rows(self.people[0], "NOT _total")

    def _is_each_a_sale(self) -> bool:
        """Whether each row is an order: days repeat, unevenly, so that no row is a day's, and no number comes twice."""
        columns = self.named.table.columns
        days = [one for one in columns if one.kind == "date"]
        names = [*self.known.columns, *self.known.subjects]
        if len(days) != 1 or not any(map(_OF_SALES.search, names)) or any(map(_OF_SUMS.search, names)):
            return False
        keys = [one for one in columns if without_key(plain_name(one.name)) or (one.kind == "number" and is_name(one))]
        if not all(self.names_rows(one, "NOT _total") for one in keys if not SOMEBODY.search(plain_name(one.name))):
            return False
        name = quoted(days[0].name)
        fewest, most, days_ = self.one(
            "SELECT min(n), max(n), count(*) FROM (SELECT count(*) AS n FROM "
            f"{self.source} WHERE NOT _total GROUP BY {name})"
        )
        return bool(days_) and fewest < most

    def names_rows(self, column: Column, where: str) -> bool:
        """Whether a column has another value in each row."""
        name = quoted(column.name)
        rows, different = self.one(f"SELECT count(*), count(DISTINCT {name}) FROM {self.source} WHERE {where}")
        return is_name(column) and different == rows

    def those(self, some: str, rows: str, asked: RowQuestion) -> str:
        """The rows that fulfil the conditions, in words; all where there are none."""
        if not asked.conditions:
            return rows
        return WORDS[self.lang]["those"].format(some=some, rows=rows, where=self.where(asked.conditions))

    def where(self, conditions: Sequence[Condition]) -> str:
        """The conditions in words: "Status = open and Amount > 1,000"."""
        return WORDS[self.lang]["and"].join(self._worded(one) for one in conditions)

    def _worded(self, condition: Condition) -> str:
        column = self.named.table.columns[condition.column]
        said = [valued(one, column) for one in condition.values]
        name = line(column.name)
        if condition.operator == "empty":
            return WORDS[self.lang]["empty"].format(column=name)
        if condition.operator == "between":
            return f"{said[0]} ≤ {name} ≤ {said[1]}"
        if condition.operator == "contains":
            return f"{name} ∋ “{said[0]}”"
        return f"{name} {_SIGNS[condition.operator]} {said[0]}"

    def cited(self, answer: Answer, text: str, figure: str) -> Passage:
        """The sentence with what it rests on: rows and cells, or the table where no row was found."""
        sources = [one for each in answer.sources for one in each]
        if not sources or not sources[0].rows:
            return passage_at(self.named, text, figure)
        source = sources[0]
        if len(sources) > 1:
            runs = joined(run for one in sources for run in one.runs)
            source = replace(source, runs=runs, rows=tuple(row for one in sources for row in one.rows))
        return replace(passage_of(source, text), computed=Computed(figure))
