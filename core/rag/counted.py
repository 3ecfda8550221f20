"""How many rows, columns, sheets or pages documents have, and sums of columns, by program: passages to be cited."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from core.errors import BadArgumentsError, ToolError
from core.rag.count_questions import count_question, figure_question, may_count, plain_name
from core.rag.document import Passage, numbered_as
from core.rag.page_content import kind_of
from core.rag.tables.store import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from core.languages import Lang
    from core.rag.count_questions import CountQuestion, FigureQuestion
    from core.rag.document import Document, Heading
    from core.rag.library import Library
    from core.rag.tables.query import Answer, Named
    from core.rag.tables.store import Column, Table

_MOST: Final = 6  # documents of which something is said: more would say what nobody asked for
_LONGEST: Final = 80  # letters of a name
_MOST_NAMED: Final = 20  # tables of a document that are told by their names
_KEY: Final = re.compile(
    r"\b(?:ids?|no\.?|nos\.?|numbers?|num|nr\.?|names?|codes?|keys?|ref(?:erence)?|#)$"
    r"|(?:编号|号码|名称|姓名|代码|编码|号|名|id)$|^(?:id|no\.?|number|nr\.?|name) (?:of )?"
)
_PLAIN_KEY: Final = re.compile(r"ids?|no\.?|nr\.?|#|key|uuid|编号|序号|号码", re.IGNORECASE)
_NAME: Final = re.compile(r"(?:full |last |sur|short )?names?|titles?|姓名|名称|名字|标题", re.IGNORECASE)
_NOISE: Final = re.compile(
    r"\b(?:list|table|sheet|data|overview|register|all|the|of|export|records?)\b"
    r"|(?:列表|清单|明细|一览表?|记录|数据|信息|汇总|名单|表|单)$"
)
_AMOUNT: Final = re.compile(
    r"(?:count|counts|number|quantity|qty|n|headcount|frequency|number of .+|.+ count)|数量|人数|件数|个数|次数|.*数"
)
_PERIOD: Final = re.compile(r"months?|years?|quarters?|weeks?|days?|period|fiscal year|年|月|日|年份|月份|季度|周|期间")
_IRREGULAR: Final = {"people": "person", "persons": "person", "men": "man", "women": "woman", "children": "child"}
_WORDS: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "sheet": "Sheet {title}",
        "titled": "The table {title}",
        "table": "The table in {document}",
        "rows": "{table} has {rows}.",
        "different": "{table} has {n} of {column} in {rows}.",
        "columns": "{table} has {n}.",
        "all": "{document} has {rows} in {n} tables: {each}.",
        "each": "{title} {n}",
        "between": ", ",
        "page": "{document} has {n}.",
        "sheets": "{document} has {n}: {each}.",
        "figure": "{table}: the {figure} of {column} is {value} ({rows}).",
        "sum": "sum",
        "average": "average",
        "median": "median",
        "highest": "highest value",
        "lowest": "lowest value",
        "some": "{some} of {rows}, as the others have no number",
    },
    "zh": {
        "sheet": "工作表 {title} ",
        "titled": "表格 {title} ",
        "table": "{document} 中的表格",
        "rows": "{table}有 {rows}。",
        "different": "{table}有 {rows}，其中 {column} 有 {n}。",
        "columns": "{table}有 {n}。",
        "all": "{document} 的 {n} 个表格一共有 {rows}：{each}。",
        "each": "{title} {n}",
        "between": "，",
        "page": "{document} 有 {n}。",
        "sheets": "{document} 有 {n}：{each}。",
        "figure": "{table}：{column} 的{figure}是 {value}（{rows}）。",
        "sum": "总和",
        "average": "平均值",
        "median": "中位数",
        "highest": "最大值",
        "lowest": "最小值",
        "some": "{rows}中的 {some} 行，其余没有数字",
    },
}
_COUNTS: Final[Mapping[Lang, Mapping[str, tuple[str, str]]]] = {
    "en": {
        "row": ("1 row", "{n} rows"),
        "total": (", and 1 more row with totals", ", and {n} more rows with totals"),
        "value": ("1 value", "{n} different values"),
        "column": ("1 column", "{n} columns"),
        "page": ("1 page", "{n} pages"),
        "slide": ("1 slide", "{n} slides"),
        "sheet": ("1 sheet", "{n} sheets"),
    },
    "zh": {
        "row": ("1 行数据", "{n} 行数据"),
        "total": ("，另有 1 行合计", "，另有 {n} 行合计"),
        "value": ("1 个值", "{n} 个不同的值"),
        "column": ("1 列", "{n} 列"),
        "page": ("1 页", "{n} 页"),
        "slide": ("1 张幻灯片", "{n} 张幻灯片"),
        "sheet": ("1 个工作表", "{n} 个工作表"),
    },
}


@dataclass(frozen=True, slots=True)
class Count:
    """What was counted.

    Args:
        passages: A sentence for each place.
        alone: Whether nothing else in the documents can say it: then a search would only distract.
    """

    passages: tuple[Passage, ...] = ()
    alone: bool = False


def counted(
    library: Library,
    documents: Collection[str],
    question: str,
    lang: Lang = "en",
    stopped: Callable[[], bool] | None = None,
) -> Count:
    """What a question without a condition counts or sums; nothing where it is another, or nothing is known for sure.

    Blocks, and reads tables that were not read before.

    Args:
        documents: Ids; what is not read to its end is left out.
        lang: The language of the sentences.
        stopped: As of `Tables.of`.

    Raises:
        DocumentError: `stopped` said so.
        NoSpaceError: The disk is full.
        StorageError: The library cannot be read.
    """
    if not may_count(question):
        return Count()
    wanted = set(documents)
    there = [one for one in library.documents() if one.id in wanted and one.status == "ready"]
    sheets = [one.id for one in there if one.tables]
    headings = library.headings(sheets) if sheets else {}
    titles = [heading.text for found in headings.values() for heading in found]
    names = {*titles, *(name for one in there for name in _names_of(one.name))}
    asked = count_question(question, names)
    if asked is None:
        wanted_figure = figure_question(question, names)
        return Count() if wanted_figure is None else _figures(library, there, wanted_figure, lang, stopped)
    meant = _meant(there, asked)
    if asked.counted == "pages":
        return Count(tuple(_pages(meant, lang)), alone=True)
    if not sheets:
        return Count()
    tables = library.tables.of([one.id for one in there], stopped)
    if asked.counted == "sheets":
        return Count(tuple(_sheets(meant, headings, lang)), alone=True)
    ids = {one.id for one in meant}
    chosen = _named_in(asked, [one for one in tables if one.document_id in ids])
    if asked.counted == "things":
        found = _things(chosen, asked, partial(library.tables.ask, [one.id for one in there]), lang)
        return Count(tuple(found), alone=all(_is_sheet(one) for one in there))
    return Count(tuple(_in_documents(chosen, asked, lang)), alone=True)


# ---- which documents and tables are meant


def _names_of(name: str) -> set[str]:
    """What a document may be called in a question: its name, that without its ending, and the words of that alone."""
    stem = plain_name(PurePath(name).stem)
    return {plain_name(name), stem, " ".join(word for word in stem.split() if word.isalpha())} - {""}


def _meant(documents: Sequence[Document], asked: CountQuestion | FigureQuestion) -> list[Document]:
    """The documents that are named; all where none is."""
    return [one for one in documents if _names_of(one.name) & asked.names] or list(documents)


def _named_in(asked: CountQuestion | FigureQuestion, tables: Sequence[Named]) -> list[Named]:
    """The tables that are named; all where none is."""
    return [one for one in tables if _titles_of(one.table) & asked.names] or list(tables)


def _titles_of(table: Table) -> set[str]:
    """What a table may be called: its title, its sheet's name, and the words above it."""
    return {plain_name(one) for one in (table.title, *table.title.split(": ", 1)) if one.strip()}


def _is_sheet(document: Document) -> bool:
    return kind_of(document.media_type) == "sheet"


# ---- pages and sheets


def _pages(documents: Sequence[Document], lang: Lang) -> list[Passage]:
    found = [one for one in documents if one.pages and numbered_as(one.name) != "sheet"]
    if len(found) > _MOST:
        return []
    words = _WORDS[lang]["page"]
    return [
        _passage(one.id, one.name, words.format(document=_line(one.name), n=_n(numbered_as(one.name), one.pages, lang)))
        for one in found
    ]


def _sheets(documents: Sequence[Document], headings: Mapping[str, Sequence[Heading]], lang: Lang) -> list[Passage]:
    found = [one for one in documents if one.pages and numbered_as(one.name) == "sheet"]
    if len(found) > _MOST:
        return []
    passages: list[Passage] = []
    for one in found:
        names = list(dict.fromkeys(heading.text for heading in headings.get(one.id, ()) if heading.level == 1))
        n = _n("sheet", one.pages, lang)
        text = _WORDS[lang]["page"].format(document=_line(one.name), n=n)
        if len(names) == one.pages and len(names) <= _MOST_NAMED:
            each = _WORDS[lang]["between"].join(map(_line, names))
            text = _WORDS[lang]["sheets"].format(document=_line(one.name), n=n, each=each)
        passages.append(_passage(one.id, one.name, text))
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
    n = _n("column", len(named.table.columns), lang)
    text = _WORDS[lang]["columns"].format(table=_called(named, lang), n=n)
    if counted != "columns":
        text = _WORDS[lang]["rows"].format(table=_called(named, lang), rows=_rows(named.table, lang))
    return _at(named, text)


def _together(tables: Sequence[Named], lang: Lang) -> Passage:
    words, first = _WORDS[lang], tables[0]
    rows = sum(_body(one.table) for one in tables)
    each = [words["each"].format(title=_label(one), n=f"{_body(one.table):,}") for one in tables[:_MOST_NAMED]]
    more = ["…"] if len(tables) > _MOST_NAMED else []
    text = words["all"].format(
        document=_line(first.document),
        n=len(tables),
        rows=_n("row", rows, lang),
        each=words["between"].join([*each, *more]),
    )
    return _passage(first.document_id, first.document, text)


# ---- things that rows stand for


def _things(tables: Sequence[Named], asked: CountQuestion, ask: Callable[[str], Answer], lang: Lang) -> list[Passage]:
    """What sheets say of how many there are of something, by their names and by the heads of their columns."""
    forms = _forms(asked.things)
    sheets = [one for one in tables if one.table.sheet]
    if any(_is_figure(column, forms) for one in sheets for column in one.table.columns):
        return []  # the column holds how many: rows are something else
    own = [one for one in sheets if not forms.isdisjoint(_subjects(one, sheets))]
    found = [(one, _key(one.table, forms)) for one in own or sheets]
    if asked.different or not own:
        found = [(one, key) for one, key in found if key is not None and _is_of(key, forms)]
    places = {(one.document_id, one.table.title) for one, _ in found}
    if len(found) > _MOST or len(places) < len(found):  # of several tables on a sheet nobody knows which is meant
        return []
    passages = [_thing(one, key, ask, lang) for one, key in found if one.table.whole]
    return [one for one in passages if one is not None]


def _thing(named: Named, key: Column | None, ask: Callable[[str], Answer], lang: Lang) -> Passage | None:
    table = named.table
    if key is None:
        return None if _adds_up(named, ask) else _of_table(named, "rows", lang)
    different = _different(named, key, ask)
    if different is None:
        return None
    if different == _body(table):
        return _of_table(named, "rows", lang)
    rows, n = _n("row", _body(table), lang), _n("value", different, lang)
    return _at(
        named, _WORDS[lang]["different"].format(table=_called(named, lang), n=n, column=_line(key.name), rows=rows)
    )


def _different(named: Named, column: Column, ask: Callable[[str], Answer]) -> int | None:
    """How many different values the column has; `None` where that cannot be told."""
    try:
        # Both names are quoted, and the query is checked to be one SELECT.
        answer = ask(f"SELECT count(DISTINCT {quoted(column.name)}) FROM {quoted(named.name)} WHERE NOT _total")  # noqa: S608
    except (BadArgumentsError, ToolError):
        return None
    return int(answer.rows[0][0]) if answer.rows else None


def _subjects(named: Named, sheets: Sequence[Named]) -> set[str]:
    """What the rows of a sheet may be: what it is called, or its document where that is its only one."""
    called = _titles_of(named.table)
    if sum(one.document_id == named.document_id for one in sheets) == 1:
        called |= _names_of(named.document)
    return {form for name in called for form in _forms(_NOISE.sub("", name).strip() or name)}


def _key(table: Table, forms: set[str]) -> Column | None:
    """The column whose values tell one from the other."""
    ours = [one for one in table.columns if _is_of(one, forms)]
    return next(iter(ours), next((one for one in table.columns if _PLAIN_KEY.fullmatch(one.name.strip())), None))


def _is_of(column: Column, forms: set[str]) -> bool:
    name = plain_name(column.name)
    return not forms.isdisjoint({*_forms(name), *_forms(_KEY.sub("", name).strip())})


def _is_figure(column: Column, forms: set[str]) -> bool:
    return column.kind == "number" and not forms.isdisjoint(_forms(plain_name(column.name)))


def _adds_up(named: Named, ask: Callable[[str], Answer]) -> bool:
    """Whether a row may stand for many: it is a month, or a region, or says how many."""
    columns = named.table.columns
    if any(one.kind == "number" and _AMOUNT.fullmatch(plain_name(one.name)) for one in columns):
        return True
    if any(_NAME.fullmatch(plain_name(one.name)) for one in columns):
        return False
    first = columns[0]
    if _PERIOD.fullmatch(plain_name(first.name)):
        return True
    return first.kind == "text" and _body(named.table) > 1 and _different(named, first, ask) == _body(named.table)


def _forms(word: str) -> set[str]:
    """A word, and its last word in the singular; as singular as it takes for two forms of it to meet."""
    word = " ".join(word.split())
    if not word:
        return set()
    before, _, last = word.rpartition(" ")
    single = _IRREGULAR.get(last, last)
    if single == last and len(last) > 3 and last.endswith("s") and not last.endswith("ss"):
        single = f"{last[:-3]}y" if last.endswith("ies") else last[:-1]
        if re.search(r"(?:s|x|z|ch|sh)es$", last):
            single = last[:-2]
    return {f"{before} {single}".strip()}


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
    forms = {form for name in called for form in _forms(name)}
    found: list[tuple[Named, Column]] = []
    for one in tables:
        columns = [column for column in one.table.columns if not forms.isdisjoint(_forms(plain_name(column.name)))]
        letters = [column for column in one.table.columns if column.letter.casefold() in called - {""}]
        found += [(one, column) for column in columns or letters]
    return found


def _figure(named: Named, column: Column, figure: str, ask: Callable[[str], Answer], lang: Lang) -> Passage | None:
    """`None` where it cannot be told: no numbers, several currencies, or shares, which add up to nothing."""
    if column.kind != "number" or "/" in column.unit or (figure == "sum" and column.unit == "%"):
        return None
    name = quoted(column.name)
    try:
        # Both names are quoted, and the query is checked to be one SELECT.
        answer = ask(
            f"SELECT {_AGGREGATES[figure]}({name}), count({name}) FROM {quoted(named.name)} WHERE NOT _total"  # noqa: S608
        )
    except (BadArgumentsError, ToolError):
        return None
    value, some = answer.rows[0] if answer.rows else (None, 0)
    if not isinstance(value, int | float) or not some:
        return None
    words, rows = _WORDS[lang], _n("row", _body(named.table), lang)
    text = words["figure"].format(
        table=_called(named, lang).strip(),
        figure=words[figure],
        column=_line(column.name),
        value=" ".join(one for one in (_written(value), column.unit) if one),
        rows=rows if some == _body(named.table) else words["some"].format(some=f"{some:,}", rows=rows),
    )
    return _at(named, text)


def _written(value: float) -> str:
    """A number with separators, and as many places as say something."""
    if float(value).is_integer():
        return f"{int(value):,}"
    text = f"{value:,.4f}".rstrip("0").rstrip(".")
    return text if abs(value) >= 1 else f"{value:.6g}"


# ---- in words


def _called(named: Named, lang: Lang) -> str:
    title = _line(named.table.title)
    if title:
        return _WORDS[lang]["sheet" if numbered_as(named.document) == "sheet" else "titled"].format(title=title)
    return _WORDS[lang]["table"].format(document=_line(named.document))


def _label(named: Named) -> str:
    return _line(named.table.title) or f"({named.table.number})"


def _body(table: Table) -> int:
    return table.rows - table.totals


def _rows(table: Table, lang: Lang) -> str:
    return _n("row", _body(table), lang) + (_n("total", table.totals, lang) if table.totals else "")


def _n(of: str, n: int | None, lang: Lang) -> str:
    one, several = _COUNTS[lang][of]
    return one if n == 1 else several.format(n=f"{n or 0:,}")


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _at(named: Named, text: str) -> Passage:
    table = named.table
    return Passage(text, 1.0, named.document, named.document_id, table.page, (), table.title)


def _passage(document_id: str, document: str, text: str) -> Passage:
    return Passage(text, 1.0, document, document_id)
