"""Which row, or which value of a column, has the highest or lowest figures, by the places of a question's words."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from core.rag.question_tokens import NAMES_A_ROW
from core.rag.row_places import (
    FIGURES,
    Ask,
    after_values,
    begins_condition,
    called,
    column_beside,
    has_extremes,
    is_countable,
    is_group,
    is_said_of,
    means_rows,
    without,
)
from core.rag.tables.subjects import SOMEBODY, forms_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from core.rag.question_tokens import Vocabulary
    from core.rag.question_words import Token
    from core.rag.row_places import Asked

ADDS_UP: Final = re.compile(  # nobody means another figure of many rows than their sum
    r"(?:(?:net|gross|total) )?(?:revenues?|sales|turnover|income|earnings|profits?|expenses|spending|umsatz|umsätze"
    r"|einnahmen|ausgaben|erlöse?|gewinn)|totals?|(?:销售|营业)?收入|销售额|营业额|营收|支出|利润"
)
_COSTS: Final = re.compile(r"\b(?:expenses?|costs?|spending|ausgaben?|kosten)\b|费用|支出|花费|成本")
_MOST_ROWS: Final = frozenset({"最多", "最少"})
_OTHER_PEOPLE: Final = re.compile(
    r"doctor|physician|nurse|teacher|manager|sales ?person|assignee|contact|representative|vendor|supplier|company"
    r"|arzt|ärztin|lehrer|leiter|betreuer|lieferant|firma|医生|老师|教师|负责人|经理|供应商|公司"
)
_SOLD: Final = re.compile(
    r"^(?:total |net |gross )?(?:quantity|qty|units?|pieces|sold|amount|total|revenue|sales|turnover|price)\b"
    r"|menge|stück|anzahl|umsatz|betrag|summe|erlös|preis|数量|销量|件数|金额|销售额|收入|价"
)
_OF_SALES: Final = re.compile(
    r"\b(?:sales?|orders?|sold|invoices?)\b|umsatz|umsätze|verk[aä]uf|bestell|rechnung|销售|订单|销量"
)
_BUYERS: Final = re.compile(
    r"customer|client|buyer|supplier|vendor|kunde|kundin|käufer|lieferant|客户|顾客|买家|供应商"
)
_NO_SALES: Final = re.compile(
    r"stock|inventory|purchas|bought|bestand|lager|einkauf|库存|采购|退货|target|plan|budget|ziel"
)
EXTREMES: Final[dict[str, Asked]] = {"highest": "row_highest", "lowest": "row_lowest"}


def which_row(tokens: list[Token], which: int | None, figure: int, known: Vocabulary) -> Ask | None:
    """Which row has the highest or lowest value; what is asked for means rows, or is a column that names each."""
    if any(one.kind == "count" for one in tokens):
        return None
    said, of = EXTREMES.get(tokens[figure].said), _measured(tokens, figure, known)
    if said is None or not of:
        return None
    used = {figure, figure if which is None else which, *of}
    named = _asked_for(tokens, which, figure, used, known)
    column = tokens[of[-1]]
    told = "sum" if tokens[figure].kind == "most" else "extreme"
    in_doubt = "" if ADDS_UP.fullmatch(column.text) else told
    if named is None:
        return Ask(said, column.column, without(tokens, used)) if _is_whole(tokens, which) else None
    one, left = tokens[named], without(tokens, {*used, named})
    if one.kind == "column" and one.said:  # of a month nobody asks for its highest row
        if column.column not in known.amounts:
            return None
        rank = tokens[figure].said
        return Ask("sum", column.column, left, each=one.column, period=one.said, ranked=rank, in_doubt=in_doubt)
    return Ask(said, column.column, left, *called(one), in_doubt=in_doubt)


def with_most(tokens: list[Token], which: int, figure: int, known: Vocabulary) -> Ask | None:
    """Which value of a column most rows have: "which region has the most orders", "哪个城市的订单最多"."""
    is_wide = tokens[figure].wide
    if tokens[figure].kind != "most" and tokens[figure].text not in _MOST_ROWS:
        return None
    counted = figure - 1 if is_wide else after_values(tokens, figure)
    if not 0 <= counted < len(tokens) or counted == which or not is_countable(tokens[counted], known):
        return None
    used = {which, figure, counted}
    if tokens[which].whole:
        people = {*known.called(SOMEBODY, "text"), *known.called(_OTHER_PEOPLE, "text")}
        each, period = (people.pop() if len(people) == 1 else None), ""
    else:
        ends = tokens[which].wide and which + 1 == len(tokens)
        group = which - 1 if ends else after_values(tokens, which)
        if group in used or not 0 <= group < len(tokens) or not is_group(tokens[group], known):
            return None
        used.add(group)
        each, period = tokens[group].column, tokens[group].said
    thing, subject, of = called(tokens[counted])
    if each is None or each == thing or ADDS_UP.fullmatch(tokens[counted].text) or _COSTS.search(subject):
        return None  # "the most expenses" may be those that add up to the most
    left = without(tokens, used)
    return Ask("count", None, left, thing, subject, of, each, period=period, ranked=tokens[figure].said)


def sold_most(tokens: list[Token], which: list[int], at: int, known: Vocabulary) -> Ask | None:
    """Which value of a column was sold the most, by all that says how much was: pieces, and what was paid for them."""
    there = known.called(_SOLD, "number")
    of_sales = known.called(_OF_SALES) or any(map(_OF_SALES.search, known.subjects))
    of_others = known.called(_NO_SALES) or any(map(_NO_SALES.search, known.subjects))
    if not there or not of_sales or of_others or not set(there) <= set(known.amounts):
        return None
    group = after_values(tokens, which[0] if which else at)
    if group >= len(tokens) or not is_group(tokens[group], known):
        return None
    one = tokens[group]
    if one.column in known.called(_BUYERS):
        return None  # they bought
    left = without(tokens, {at, group, *which})
    return Ask("sum", there[0], left, each=one.column, period=one.said, ranked=tokens[at].said, also=tuple(there[1:]))


def listed(tokens: list[Token], at: int, known: Vocabulary) -> Ask | None:
    """Which values a column has in rows under a condition: "list all customers from Kiel", "which orders are open?"."""
    if any(one.kind in {"count", "figure", "most", "each", "share"} for one in tokens):
        return None
    if tokens[at].whole:
        left = without(tokens, {at})
        return Ask("list", None, left, of="people") if left and tokens[at].kind == "which" else None
    named = after_values(tokens, at)
    if named >= len(tokens) or not is_countable(tokens[named], known) or is_said_of(tokens, named, known):
        return None
    left = without(tokens, {at, named})
    return Ask("list", None, left, *called(tokens[named])) if left or tokens[at].kind == "list" else None


def _is_whole(tokens: list[Token], which: int | None) -> bool:
    return which is not None and tokens[which].whole


def _measured(tokens: list[Token], figure: int, known: Vocabulary) -> tuple[int, ...]:
    """The places of the column by which rows are compared, and of the word before it: "the largest by amount"."""
    beside = column_beside(tokens, figure, known)
    by = [
        at
        for at, (one, after) in enumerate(pairwise(tokens))
        if (one.kind, one.text, after.kind) == ("each", "by", "column")
    ]
    if len(by) == 1 and (beside is None or not has_extremes(tokens[beside], known)):
        return (by[0], by[0] + 1)
    return () if beside is None else (beside,)


def _asked_for(
    tokens: list[Token], which: int | None, figure: int, used: Collection[int], known: Vocabulary
) -> int | None:
    """Where the word for what is asked for stands."""

    def names_a_row(at: int) -> bool:
        return 0 <= at < len(tokens) and at not in used and tokens[at].kind in NAMES_A_ROW

    if which is None and tokens[figure].owned:
        return figure - 1 if names_a_row(figure - 1) else None
    if not _is_whole(tokens, which):
        after = after_values(tokens, figure if which is None else which)
        if names_a_row(after):
            return after
        if which is None or not tokens[which].wide or which + 1 < len(tokens):
            return None
        if names_a_row(which - 1):  # "金额最高的订单是哪一个"
            return which - 1
    there = [
        at
        for at, one in enumerate(tokens)
        if at not in used and (one.kind in {"thing", "subject"} or means_rows(tokens, at, known))
    ]
    return there[0] if len(there) == 1 else None


def ranked(tokens: list[Token], which: list[int], figures: list[int], known: Vocabulary) -> Ask | None:
    """Which values of a column have the highest or lowest sums or averages: "top 3 products by total units"."""
    extremes = [at for at in figures if tokens[at].said in EXTREMES]
    sums = [at for at in figures if tokens[at].said in {"sum", "average"}]
    if len(extremes) != 1 or len(sums) != 1:
        return None
    (high,), (of,) = extremes, sums
    column = of + 1
    if column >= len(tokens) or tokens[column].kind != "column":
        return None
    used = {high, of, column, *which}
    by = of - 1
    if tokens[high].wide:  # "总数量最高的产品"
        named = _only_group(tokens, used, known) if high == column + 1 else None
    elif tokens[high].owned:
        named = high - 1 if of == high + 1 else None
    elif which:
        named = after_values(tokens, which[0]) if of == high + 1 and which[0] < high else None
    else:
        is_by = high < by and (tokens[by].kind, tokens[by].text) == ("each", "by")
        named = after_values(tokens, high) if is_by else None
    if named is None or not 0 <= named < len(tokens) or named in used or not is_group(tokens[named], known):
        return None
    if high == column + 1 and of and tokens[by].kind == "each":
        used.add(by)  # "按总金额排名前三的产品"
    left = without(tokens, {*used, named} | ({by} if tokens[by].kind == "each" else set()))
    asks = FIGURES[tokens[of].said]
    group = tokens[named]
    several = group.raw.isascii() and bool(group.raw) and forms_of(group.raw) != {group.raw}
    rank = tokens[high].said
    return Ask(asks, tokens[column].column, left, each=group.column, period=group.said, ranked=rank, several=several)


def _only_group(tokens: list[Token], used: Collection[int], known: Vocabulary) -> int | None:
    """The only column besides that could have values with figures."""
    there = [at for at, one in enumerate(tokens) if at not in used and is_group(one, known)]
    there = [at for at in there if not begins_condition(tokens, at)]
    return there[0] if len(there) == 1 else None
