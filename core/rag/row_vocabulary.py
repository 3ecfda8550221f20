# ruff: noqa: S608 - every name and text in a query is quoted, and the query is checked to be one SELECT
"""What a table is called and holds, as far as it stands in a question."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.errors import ToolError
from core.rag.count_questions import plain_name
from core.rag.german_words import forms_in_german, forms_of_value, is_german
from core.rag.question_tokens import Vocabulary
from core.rag.question_words import lexicon
from core.rag.row_flags import flag_names, yes_and_no
from core.rag.row_values import quoted_text
from core.rag.tables.query import FOLD, folded
from core.rag.tables.store import quoted
from core.rag.tables.subjects import forms_of, names_of, subjects_of, titles_of, without_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.rag.question_tokens import Spellings
    from core.rag.tables.query import Answer, Named

_LONGEST_VALUE: Final = 80  # letters of a cell that a question may name
_AT_ONCE: Final = 18  # columns of texts that one query looks through
_MOST_OF_FLAG: Final = 9  # spellings of yes and no
_AGAIN: Final = re.compile(r"(.+)_\d+", re.DOTALL)  # the second column of one head has a number behind it


def vocabulary(named: Named, tables: Sequence[Named], question: str, ask: Callable[[str], Answer]) -> Vocabulary:
    """What a table is called and holds, as far as it stands in the question. Raises BadArgumentsError, ToolError."""
    sheets = [one for one in tables if one.table.sheet]
    called = titles_of(named.table) | names_of(named.document)
    if named.table.sheet:
        called |= subjects_of(named, sheets)
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
    )


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
    """What the columns are called, each name with the numbers of those called so."""
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
    exact = set(columns)
    for at, column in enumerate(named.table.columns):
        for name in _spoken(without_key(plain_name(column.name))) - subjects - exact:
            columns.setdefault(name, []).append(at)
    return columns


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
