# ruff: noqa: S608 - every name and text in a query is quoted, and the query is checked to be one SELECT
"""What a table is called and holds, as far as it stands in a question."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.errors import ToolError
from core.rag.count_questions import plain_name
from core.rag.german_words import forms_in_german, forms_of_value, is_german
from core.rag.question_figures import names_a_month
from core.rag.question_tokens import Vocabulary
from core.rag.question_words import lexicon
from core.rag.row_flags import flag_names, yes_and_no
from core.rag.row_values import quoted_text
from core.rag.tables.query import FOLD, folded
from core.rag.tables.store import quoted
from core.rag.tables.subjects import forms_of, head_of, is_name, names_of, subjects_of, titles_of, without_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.rag.question_tokens import Spellings
    from core.rag.tables.query import Answer, Named
    from core.rag.tables.store import Column

_LONGEST_VALUE: Final = 80  # letters of a cell that a question may name
_AT_ONCE: Final = 18  # columns of texts that one query looks through
_MOST_OF_FLAG: Final = 9  # spellings of yes and no
_UNIT: Final = re.compile(
    r"\s*(?:[(\[（](?:in )?(?P<unit>eur|usd|gbp|chf|cny|rmb|[€$£¥元%]|k?g|k?m|[cm]m|m[²2]|m?l|h|hours|days|min|k?wh|°c"
    r"|pcs|stk|stück|个|件|天|小时|岁|分)[)\]）]| in (?:eur|usd|gbp|chf|[€$£¥%]))$",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"year|month|quarter|week|jahr|monat|quartal|年(?!龄)|月|季|\b(?:zip|plz|postcode)\b|邮编")


def vocabulary(named: Named, tables: Sequence[Named], question: str, ask: Callable[[str], Answer]) -> Vocabulary:
    """What a table is called and holds, as far as it stands in the question. Raises BadArgumentsError, ToolError."""
    called = _called(named, tables)
    german = is_german(question)
    subjects = frozenset(form for name in called for form in _spoken(name, german=german))
    columns, flags = _columns(named, subjects), _flags(named, question, ask)
    columns = _in_german(columns, named, subjects) if german else columns
    for at, (names, _) in flags.items():
        for name in names:
            if at not in columns.setdefault(name, []):
                columns[name].append(at)
    return Vocabulary(
        {name: tuple(at) for name, at in columns.items() if name},
        [column.kind for column in named.table.columns],
        [column.unit for column in named.table.columns],
        _in_all_forms(_values(named, question, ask), columns, question) if german else _values(named, question, ask),
        subjects,
        {at: found for at, (_, found) in flags.items()},
        frozenset(name for names, _ in flags.values() for name in names),
        tuple(at for at, one in enumerate(named.table.columns) if at not in flags and _is_amount(one)),
        _year(named, question, ask),
    )


def called_in_all(named: Named, tables: Sequence[Named]) -> set[str]:
    """What a table and its columns are called, as names are compared, without a query."""
    heads = [plain_name(column.name) for column in named.table.columns]
    return _called(named, tables) | {*heads, *map(without_key, heads), *map(_without_unit, heads)}


def _called(named: Named, tables: Sequence[Named]) -> set[str]:
    """What a table is called by its title, its document and, in a workbook, by its rows."""
    called = titles_of(named.table) | names_of(named.document)
    return called | subjects_of(named, [one for one in tables if one.table.sheet]) if named.table.sheet else called


def _is_amount(column: Column) -> bool:
    """Whether it holds numbers of something, and no years or numbers of orders."""
    return column.kind == "number" and not is_name(column) and not _YEAR.search(plain_name(column.name))


def _year(named: Named, question: str, ask: Callable[[str], Answer]) -> str:
    """The year of all dates, where a month may stand in the question without one; "" where there are several."""
    days = [one for one in named.table.columns if one.kind == "date"]
    if len(days) != 1 or days[0].strays or not names_a_month(question):
        return ""
    name = quoted(days[0].name)
    answer = ask(f"SELECT min({name}), max({name}) FROM {quoted(named.name)} WHERE NOT _total")
    first, last = (str(one or "")[: len("2024")] for one in answer.rows[0])
    return first if first == last else ""


def _in_all_forms(
    values: dict[str, dict[int, tuple[str, ...]]], columns: Mapping[str, Sequence[int]], question: str
) -> dict[str, dict[int, tuple[str, ...]]]:
    """Values with the forms that they take before a noun, written small: "offene Bestellungen" are "offen"."""
    found = dict(values)
    for value, spelled in values.items():
        for form in forms_of_value(value) - set(values) - set(columns) - lexicon(german=True).words.keys():
            if re.search(rf"(?<!\w){re.escape(form)} \w", question):
                found[form] = spelled
    return found


def _columns(named: Named, subjects: frozenset[str]) -> dict[str, list[int]]:
    """What the columns are called, each name with the numbers of those called so: the whole name before its parts."""
    columns: dict[str, list[int]] = {}
    for at, names in enumerate(_whole_names(named)):
        for name in names:
            columns.setdefault(name, []).append(at)
    heads = [column.name for column in named.table.columns]
    shorter = (
        ([plain_name(one.rpartition(" / ")[2]) for one in heads], frozenset[str]()),
        ([_without_unit(one) for one in heads], subjects),
        ([without_key(plain_name(one)) for one in heads], subjects),
    )
    for names, others in shorter:
        taken = set(columns) | others
        for at, name in enumerate(names):
            for spoken in _spoken(name) - taken:
                columns.setdefault(spoken, []).append(at)
    return columns


def _whole_names(named: Named) -> list[set[str]]:
    """What each column is called as a whole: the second of one head by that head, too, and by its letter."""
    heads = {column.name.casefold() for column in named.table.columns}
    found: list[set[str]] = []
    for column in named.table.columns:
        names = _spoken(plain_name(column.name))
        if (head := head_of(column.name)) != column.name and head.casefold() in heads:
            names |= _spoken(plain_name(head))  # two columns have this head: neither is meant by it alone
        if column.letter:
            letter = column.letter.casefold()
            names |= {f"column {letter}", f"{letter}列", f"{letter} 列"}
        found.append(names)
    return found


def _without_unit(name: str) -> str:
    """What a column such as "Amount (EUR)" or "Preis in €" is called without its unit; "" where it has none."""
    found = _UNIT.sub("", name).strip()
    return "" if found == name else plain_name(found)


def _in_german(columns: dict[str, list[int]], named: Named, subjects: frozenset[str]) -> dict[str, list[int]]:
    """The names of columns with the forms that these take in German."""
    found = dict(columns)
    for at, column in enumerate(named.table.columns):
        for name in forms_in_german(plain_name(column.name)) - set(columns) - subjects:
            found[name] = [*found.get(name, ()), at]
    return found


def _flags(
    named: Named, question: str, ask: Callable[[str], Answer]
) -> dict[int, tuple[frozenset[str], tuple[Spellings, Spellings]]]:
    """The columns of yes and no of which the question says something, with what is said and the spellings of both."""
    text = plain_name(question)
    found: dict[int, tuple[frozenset[str], tuple[Spellings, Spellings]]] = {}
    for at, column in enumerate(named.table.columns):
        names = flag_names(plain_name(column.name.rpartition(" / ")[2]))
        if column.kind == "date" or column.strays or column.unit or not any(name in text for name in names):
            continue
        if column.samples and yes_and_no(column.samples) is None:
            continue  # no query is needed
        answer = ask(
            f"SELECT DISTINCT {quoted(column.name)} FROM {quoted(named.name)} WHERE NOT _total LIMIT {_MOST_OF_FLAG}"
        )
        values = [value for (value,) in answer.rows]
        both = None if None in values or len(values) == _MOST_OF_FLAG else yes_and_no(values)
        if both is not None:
            found[at] = (names, both)
    return found


def _spoken(name: str, *, german: bool = False) -> set[str]:
    """A name and its plural or singular."""
    if not name:
        return set()
    found = {name, *forms_of(name), *(forms_in_german(name) if german else ())}
    if name[-1].isascii() and name[-1].isalpha():
        found |= {f"{name}s", f"{name[:-1]}ies"} if name.endswith("y") else {f"{name}s"}
        found |= {name[:-1]} if name.endswith(("ses", "zes")) else set()  # one of "expenses" is an "expense"
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
