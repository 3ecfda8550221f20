"""What the rows of a table may be called, and which column tells one from the other."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from core.errors import BadArgumentsError, ToolError
from core.rag.count_questions import plain_name
from core.rag.german_words import numbers
from core.rag.tables.store import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.rag.tables.query import Answer, Named
    from core.rag.tables.store import Column, Table

_KEY: Final = re.compile(
    r"\b(?:ids?|no\.?|nos\.?|numbers?|num|nr\.?|names?|codes?|keys?|ref(?:erence)?|#)$"
    r"|(?:编号|号码|名称|姓名|代码|编码|号|名|id)$|^(?:id|no\.?|number|nr\.?|name) (?:of )?"
)
_PLAIN_KEY: Final = re.compile(r"ids?|no\.?|nr\.?|#|key|uuid|编号|序号|号码", re.IGNORECASE)
_NUMBER: Final = re.compile(
    r"(?:\b(?:ids?|no\.?|nr\.?|#|key|code|ref)|编号|号码|序号|号|编码|代码)$|\w(?:nummer|nr)\.?$", re.IGNORECASE
)
_NAME: Final = re.compile(r"(?:full |last |sur|short )?names?|titles?|姓名|名称|名字|标题", re.IGNORECASE)
_NOISE: Final = re.compile(
    r"\b(?:list|table|sheet|data|overview|register|all|the|of|export|records?)\b"
    r"|(?:列表|清单|明细|一览表?|记录|数据|信息|汇总|名单|表|单)$"
)
_AMOUNT: Final = re.compile(
    r"(?:count|counts|number|quantity|qty|n|headcount|frequency|number of .+|.+ count)|数量|人数|件数|个数|次数|.*数"
    r"|anzahl.*|menge|stückzahl|stück|besucher|einwohner"
)
PERIOD: Final = re.compile(
    r"months?|years?|quarters?|weeks?|days?|period|fiscal year|年|月|日|年份|月份|季度|周|期间"
    r"|monate?|jahre?|quartale?|woche|tag|zeitraum"
)
CURRENCY: Final = re.compile(r"currency|curr\.?|units?|währung|einheit|币种|货币|单位|uom", re.IGNORECASE)
SOMEBODY: Final = re.compile(
    r"^(?:(?:full |last |sur|first |customer |client |employee )?name)$|\b(?:customer|client|buyer|seller|user|member"
    r"|person|employee|worker|student|pupil|patient|guest|visitor|player|driver|author|owner|agent|sales ?rep)$"
    r"|kunde|kundin|käufer|mitarbeiter|schüler|student|patient|mitglied|客户|顾客|用户|会员|员工|姓名|学生|患者|销售员"
)
_SUMS_UP: Final = (
    "subtotal%", "sub-total%", "total %", "% total", "all", "all %", "overall%", "zwischensumme%", "summe %", "gesamt%",
    "alle %", "%合计", "%小计", "%总计", "合计%", "全部%", "总计%",
)  # fmt: skip
_AGAIN: Final = re.compile(r"^(.+)_\d+$", re.DOTALL)
_IRREGULAR: Final[Mapping[str, str]] = {
    "people": "person",
    "persons": "person",
    "men": "man",
    "women": "woman",
    "children": "child",
}


def names_of(name: str) -> set[str]:
    """What a document may be called in a question: its name, that without its ending, and the words of that alone."""
    stem = plain_name(PurePath(name).stem)
    return {plain_name(name), stem, " ".join(word for word in stem.split() if word.isalpha())} - {""}


def titles_of(table: Table) -> set[str]:
    """What a table may be called: its title, its sheet's name, and the words above it."""
    return {plain_name(one) for one in (table.title, *table.title.split(": ", 1)) if one.strip()}


def subjects_of(named: Named, sheets: Sequence[Named]) -> set[str]:
    """What the rows of a sheet may be: what it is called, or its document where that is its only one."""
    called = titles_of(named.table)
    if sum(one.document_id == named.document_id for one in sheets) == 1:
        called |= names_of(named.document)
    return {form for name in called for form in forms_of(_NOISE.sub("", name).strip() or name)}


def key_of(table: Table, forms: set[str]) -> Column | None:
    """The column whose values tell one from the other."""
    ours = [one for one in table.columns if is_of(one, forms)]
    return next(iter(ours), next((one for one in table.columns if _PLAIN_KEY.fullmatch(one.name.strip())), None))


def without_key(name: str) -> str:
    """What a column such as "order id" tells one from the other; "" where its name says no such thing."""
    found = _KEY.sub("", name).strip()
    return found if found != name else ""


def is_of(column: Column, forms: set[str]) -> bool:
    """Whether a column names one of these things, by itself or as "number of"."""
    name = plain_name(column.name)
    if any(numbers(name, form) for form in forms):
        return True
    return not forms.isdisjoint({*forms_of(name), *forms_of(_KEY.sub("", name).strip())})


def is_name(column: Column) -> bool:
    """Whether cells name something and say no amount: texts, dates, and numbers of orders, "Order ID"."""
    return column.kind != "number" or bool(_NUMBER.search(plain_name(column.name)))


def is_figure_of(column: Column, forms: set[str]) -> bool:
    """Whether a column of numbers says how many of them there are."""
    return column.kind == "number" and not forms.isdisjoint(forms_of(plain_name(column.name)))


def adds_up(named: Named, ask: Callable[[str], Answer]) -> bool:
    """Whether a row may stand for many: it is a month, or a region, or says how many."""
    columns = named.table.columns
    if any(one.kind == "number" and _AMOUNT.fullmatch(plain_name(one.name)) for one in columns):
        return True
    if any(_NAME.fullmatch(plain_name(one.name)) for one in columns):
        return False
    first = columns[0]
    if PERIOD.fullmatch(plain_name(first.name)):
        return True
    return first.kind == "text" and _body(named.table) > 1 and different(named, first, ask) == _body(named.table)


def has_hidden_totals(named: Named, ask: Callable[[str], Answer]) -> bool:
    """Whether a row may add up others without being known as one: "Subtotal North", "North total", "All regions".

    Raises:
        BadArgumentsError, ToolError: The query failed.
    """
    first = next((one for one in named.table.columns if one.kind == "text"), None)
    if first is None:
        return False
    name = quoted(first.name)
    likes = " OR ".join(f"{name} LIKE '{one}'" for one in _SUMS_UP)
    answer = ask(f"SELECT count(*) FROM {quoted(named.name)} WHERE NOT _total AND ({likes})")  # noqa: S608 - quoted
    return bool(answer.rows[0][0])


def head_of(name: str) -> str:
    """The head of a column whose name has a number behind it, as another column has the same head: "Value_2"."""
    return _AGAIN.sub(r"\1", name)


def forms_of(word: str) -> set[str]:
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
    elif re.search(r"[a-z](?:[sz])e$", single):
        single = single[:-1]  # one of "expenses", of which no rule tells whether they are "expens" or "expense"
    return {f"{before} {single}".strip()}


def different(named: Named, column: Column, ask: Callable[[str], Answer]) -> int | None:
    """How many different values the column has; `None` where that cannot be told."""
    try:
        # Both names are quoted, and the query is checked to be one SELECT.
        answer = ask(f"SELECT count(DISTINCT {quoted(column.name)}) FROM {quoted(named.name)} WHERE NOT _total")  # noqa: S608
    except (BadArgumentsError, ToolError):
        return None
    return int(answer.rows[0][0]) if answer.rows else None


def _body(table: Table) -> int:
    return table.rows - table.totals
