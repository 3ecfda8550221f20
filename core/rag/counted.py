"""How many rows, columns, sheets or pages documents have, and sums of columns, by program: passages to be cited."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from core.errors import BadArgumentsError, ToolError
from core.rag.count_questions import count_question, figure_question, may_count, plain_name
from core.rag.document import Passage, numbered_as
from core.rag.page_content import kind_of
from core.rag.row_flags import says_flag
from core.rag.row_follow_ups import goes_on, gone_on, refers_back
from core.rag.row_pairs import parted
from core.rag.row_questions import may_ask_rows
from core.rag.rows_told import rows_told, whole_question
from core.rag.tables.store import quoted
from core.rag.tables.subjects import (
    adds_up,
    different,
    forms_of,
    has_hidden_totals,
    head_of,
    is_figure_of,
    is_of,
    key_of,
    names_of,
    subjects_of,
    titles_of,
)
from core.rag.tables.wording import (
    WORDS,
    body,
    called_in,
    label,
    line,
    number_of,
    passage,
    passage_at,
    rows_in,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from core.languages import Lang
    from core.rag.count_questions import CountQuestion, FigureQuestion
    from core.rag.document import Document, Heading
    from core.rag.library import Library
    from core.rag.tables.query import Answer, Named
    from core.rag.tables.store import Column

_MOST: Final = 6  # documents of which something is said: more would say what nobody asked for
_MOST_VALUES: Final = 4_000  # cells of a table that may stand in a question
_MOST_BEFORE: Final = 3  # questions of which a later one may speak
_QUANTITY: Final = "数量"
_MOST_NAMED: Final = 20  # tables of a document that are told by their names


@dataclass(frozen=True, slots=True)
class Count:
    """What was counted.

    Args:
        passages: A sentence for each place.
        alone: Whether nothing else in the documents can say it: then a search would only distract.
    """

    passages: tuple[Passage, ...] = ()
    alone: bool = False


def may_be_counted(question: str, earlier: Sequence[str] = ()) -> bool:
    """Whether it is worth looking into documents for what a question counts or sums.

    Args:
        earlier: The questions before it, oldest first.
    """
    return _may_ask(question) or _may_ask(gone_on(question, earlier)[0])


def _may_ask(question: str) -> bool:
    return may_count(question) or may_ask_rows(question)


def counted(
    library: Library,
    documents: Collection[str],
    question: str,
    lang: Lang = "en",
    stopped: Callable[[], bool] | None = None,
    earlier: Sequence[str] = (),
) -> Count:
    """What a question counts or sums, under conditions or none; nothing where it asks otherwise, or it is not sure.

    Blocks, and reads tables that were not read before.

    Args:
        documents: Ids; what is not read to its end is left out.
        lang: The language of the sentences.
        stopped: As of `Tables.of`.
        earlier: The questions before it, oldest first: "and in the West?" asks what the one before it asked.

    Raises:
        DocumentError: `stopped` said so.
        NoSpaceError: The disk is full.
        StorageError: The library cannot be read.
    """
    if not may_be_counted(question, earlier):
        return Count()
    wanted = set(documents)
    there = [one for one in library.documents() if one.id in wanted and one.status == "ready"]
    sheets = [one.id for one in there if one.tables]
    ids = [one.id for one in there]
    whole = ""
    if goes_on(question):
        tables = library.tables.of(sheets, stopped) if sheets else []
        whole = whole_question(question, earlier, tables, partial(library.tables.ask, ids, most=_MOST_VALUES))
    if whole:
        question = whole
    elif refers_back((parted(question) or (question,))[0]) and any(_may_ask(one) for one in earlier[-_MOST_BEFORE:]):
        return Count()  # "how many of these orders are open?"
    headings = library.headings(sheets) if sheets else {}
    titles = [heading.text for found in headings.values() for heading in found]
    names = {*titles, *(name for one in there for name in names_of(one.name))}
    found = _all_counted(library, there, question, names, headings, lang, stopped)
    if found.passages or not sheets or not may_ask_rows(question):
        return found
    tables = library.tables.of(sheets, stopped)
    told = rows_told(question, tables, partial(library.tables.ask, ids, most=_MOST_VALUES), lang)
    return Count(tuple(told), alone=all(_is_sheet(one) for one in there))


def _all_counted(  # noqa: PLR0913, PLR0917 - what `counted` found out
    library: Library,
    there: Sequence[Document],
    question: str,
    names: Collection[str],
    headings: Mapping[str, Sequence[Heading]],
    lang: Lang,
    stopped: Callable[[], bool] | None,
) -> Count:
    """What is counted or summed of all there is, without a condition. Raises as `counted`."""
    asked = count_question(question, names)
    if asked is None:
        wanted_figure = figure_question(question, names)
        return Count() if wanted_figure is None else _figures(library, there, wanted_figure, lang, stopped)
    meant = _meant(there, asked)
    if asked.counted == "pages":
        return Count(tuple(_pages(meant, lang)), alone=True)
    if not any(one.tables for one in there):
        return Count()
    tables = library.tables.of([one.id for one in there], stopped)
    if asked.counted == "sheets":
        return Count(tuple(_sheets(meant, headings, lang)), alone=True)
    ids = {one.id for one in meant}
    chosen = _named_in(asked, [one for one in tables if one.document_id in ids])
    if asked.counted == "things":
        if any(says_flag(column.name, column.samples, question) for one in chosen for column in one.table.columns):
            return Count()  # "how many products are in stock?" of a sheet that is called "Stock"
        if _QUANTITY in question and any(_holds_quantities(one) for one in chosen):
            return Count()  # "订单总数量": how many orders, or how many pieces
        found = _things(chosen, asked, partial(library.tables.ask, [one.id for one in there]), lang)
        return Count(tuple(found), alone=all(_is_sheet(one) for one in there))
    return Count(tuple(_in_documents(chosen, asked, lang)), alone=True)


def _holds_quantities(named: Named) -> bool:
    return any(one.kind == "number" and plain_name(one.name) == _QUANTITY for one in named.table.columns)


# ---- which documents and tables are meant


def _meant(documents: Sequence[Document], asked: CountQuestion | FigureQuestion) -> list[Document]:
    """The documents that are named; all where none is."""
    return [one for one in documents if names_of(one.name) & asked.names] or list(documents)


def _named_in(asked: CountQuestion | FigureQuestion, tables: Sequence[Named]) -> list[Named]:
    """The tables that are named; all where none is."""
    return [one for one in tables if titles_of(one.table) & asked.names] or list(tables)


def _is_sheet(document: Document) -> bool:
    return kind_of(document.media_type) == "sheet"


# ---- pages and sheets


def _pages(documents: Sequence[Document], lang: Lang) -> list[Passage]:
    found = [one for one in documents if one.pages and numbered_as(one.name) != "sheet"]
    if len(found) > _MOST:
        return []
    words = WORDS[lang]["page"]
    return [
        passage(
            one.id,
            one.name,
            words.format(document=line(one.name), n=number_of(numbered_as(one.name), one.pages, lang)),
            f"{one.pages or 0:,}",
        )
        for one in found
    ]


def _sheets(documents: Sequence[Document], headings: Mapping[str, Sequence[Heading]], lang: Lang) -> list[Passage]:
    found = [one for one in documents if one.pages and numbered_as(one.name) == "sheet"]
    if len(found) > _MOST:
        return []
    passages: list[Passage] = []
    for one in found:
        names = list(dict.fromkeys(heading.text for heading in headings.get(one.id, ()) if heading.level == 1))
        n = number_of("sheet", one.pages, lang)
        text = WORDS[lang]["page"].format(document=line(one.name), n=n)
        if len(names) == one.pages and len(names) <= _MOST_NAMED:
            each = WORDS[lang]["between"].join(map(line, names))
            text = WORDS[lang]["sheets"].format(document=line(one.name), n=n, each=each)
        passages.append(passage(one.id, one.name, text, f"{one.pages:,}"))
    return passages


# ---- rows and columns


def _in_documents(tables: Sequence[Named], asked: CountQuestion, lang: Lang) -> list[Passage]:
    """The rows or columns of each table; of several in one document their rows together."""
    by_document: dict[str, list[Named]] = {}
    for one in tables:
        if one.table.sheet or not asked.things:  # entries of what is no sheet may stand outside of its tables
            by_document.setdefault(one.document_id, []).append(one)
    if len(by_document) > _MOST:
        return []
    passages: list[Passage] = []
    for found in by_document.values():
        if not all(one.table.whole for one in found):
            continue
        if asked.counted == "rows" and len(found) > 1:
            passages.append(_together(found, lang))
        elif len(found) <= _MOST:
            passages += [_of_table(one, asked.counted, lang) for one in found]
    return passages


def _of_table(named: Named, counted: str, lang: Lang) -> Passage:
    table, words = named.table, WORDS[lang]
    if counted == "columns":
        n = number_of("column", len(table.columns), lang)
        text = words["columns"].format(table=called_in(named, lang), n=n)
        return passage_at(named, text, f"{len(table.columns):,}")
    text = words["rows"].format(table=called_in(named, lang), rows=rows_in(table, lang))
    return passage_at(named, text, f"{body(table):,}")


def _together(tables: Sequence[Named], lang: Lang) -> Passage:
    words, first = WORDS[lang], tables[0]
    rows = sum(body(one.table) for one in tables)
    each = [words["each"].format(title=label(one), n=f"{body(one.table):,}") for one in tables[:_MOST_NAMED]]
    more = ["…"] if len(tables) > _MOST_NAMED else []
    text = words["all"].format(
        document=line(first.document),
        n=len(tables),
        rows=number_of("row", rows, lang),
        each=words["between"].join([*each, *more]),
    )
    return passage(first.document_id, first.document, text, f"{rows:,}")


# ---- things that rows stand for


def _things(tables: Sequence[Named], asked: CountQuestion, ask: Callable[[str], Answer], lang: Lang) -> list[Passage]:
    """What sheets say of how many there are of something, by their names and by the heads of their columns."""
    forms = forms_of(asked.things)
    sheets = [one for one in tables if one.table.sheet]
    if any(is_figure_of(column, forms) for one in sheets for column in one.table.columns):
        return []  # the column holds how many: rows are something else
    own = [one for one in sheets if not forms.isdisjoint(subjects_of(one, sheets))]
    found = [(one, key_of(one.table, forms)) for one in own or sheets]
    if asked.different or not own:
        found = [(one, key) for one, key in found if key is not None and is_of(key, forms)]
    places = {(one.document_id, one.table.title) for one, _ in found}
    if len(found) > _MOST or len(places) < len(found):  # of several tables on a sheet nobody knows which is meant
        return []
    passages = [_thing(one, key, ask, lang) for one, key in found if one.table.whole]
    return [one for one in passages if one is not None]


def _thing(named: Named, key: Column | None, ask: Callable[[str], Answer], lang: Lang) -> Passage | None:
    table = named.table
    if key is None:
        return None if adds_up(named, ask) else _of_table(named, "rows", lang)
    found = different(named, key, ask)
    if found is None:
        return None
    if found == body(table):
        return _of_table(named, "rows", lang)
    rows, n = number_of("row", body(table), lang), number_of("value", found, lang)
    text = WORDS[lang]["different"].format(table=called_in(named, lang), n=n, column=line(key.name), rows=rows)
    return passage_at(named, text, f"{found:,}")


# ---- figures of a column

_AGGREGATES: Final[Mapping[str, str]] = {
    "sum": "sum", "average": "avg", "median": "median", "highest": "max", "lowest": "min",
}  # fmt: skip


def _figures(
    library: Library,
    documents: Sequence[Document],
    asked: FigureQuestion,
    lang: Lang,
    stopped: Callable[[], bool] | None,
) -> Count:
    """The figure of each sheet that has such a column. Raises as `counted`."""
    sheets = [one for one in documents if one.tables and _is_sheet(one)]
    if not sheets:
        return Count()
    ids = [one.id for one in _meant(sheets, asked)]
    tables = [one for one in _named_in(asked, library.tables.of(ids, stopped)) if one.table.sheet]
    if not all(one.table.whole for one in tables):
        return Count()
    is_there, forms = _columns_of(tables, {asked.itself} if asked.itself else set()), set(asked.columns)
    if is_there and asked.figure != "sum":  # a column holds averages: which row is meant is another question
        return Count()
    found = is_there or _columns_of(tables, forms)
    places = {(one.document_id, one.table.title) for one, _ in found}
    if len(found) > _MOST or len(places) < len(found):  # of several on a sheet nobody knows which is meant
        return Count()
    ask = partial(library.tables.ask, ids)
    passages = [_figure(one, column, asked.figure, ask, lang) for one, column in found]
    if not all(passages):
        return Count()
    alone = len(sheets) == len(documents)
    return Count(tuple(one for one in passages if one is not None), alone=alone)


def _columns_of(tables: Sequence[Named], called: set[str]) -> list[tuple[Named, Column]]:
    """The columns that are called so; of a sheet also by a letter."""
    forms = {form for name in called for form in forms_of(name)}
    found: list[tuple[Named, Column]] = []
    for one in tables:
        columns = [column for column in one.table.columns if not forms.isdisjoint(_called(column, one))]
        letters = [column for column in one.table.columns if column.letter.casefold() in called - {""}]
        found += [(one, column) for column in columns or letters]
    return found


def _called(column: Column, named: Named) -> set[str]:
    """What a column may be called: the second of one head by that head, too."""
    heads = {one.name.casefold() for one in named.table.columns}
    head = head_of(column.name)
    return forms_of(plain_name(column.name)) | (forms_of(plain_name(head)) if head.casefold() in heads else set())


def _figure(named: Named, column: Column, figure: str, ask: Callable[[str], Answer], lang: Lang) -> Passage | None:
    """`None` where it cannot be told: no numbers, several currencies, or shares, which add up to nothing."""
    if column.kind != "number" or "/" in column.unit or (figure == "sum" and column.unit == "%"):
        return None
    name = quoted(column.name)
    try:
        if has_hidden_totals(named, ask):
            return None
        # Both names are quoted, and the query is checked to be one SELECT.
        answer = ask(
            f"SELECT {_AGGREGATES[figure]}({name}), count({name}) FROM {quoted(named.name)} WHERE NOT _total"  # noqa: S608
        )
    except (BadArgumentsError, ToolError):
        return None
    value, some = answer.rows[0] if answer.rows else (None, 0)
    if not isinstance(value, int | float) or not some:
        return None
    words, rows = WORDS[lang], number_of("row", body(named.table), lang)
    told = " ".join(one for one in (written(value), column.unit) if one)
    text = words["figure"].format(
        table=called_in(named, lang).strip(),
        figure=words[figure],
        column=line(column.name),
        value=told,
        rows=rows if some == body(named.table) else words["some"].format(some=f"{some:,}", rows=rows),
    )
    return passage_at(named, text, told)
