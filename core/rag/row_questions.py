"""Questions about rows under conditions, read against one table: counts, sums and extremes of a column, and which row.

As in `count_questions`, who computes for somebody must not compute something else. So every word of a question has to
be known: as a column or a value of the table, as a comparison, or as a word that says nothing. Where one is not, or may
be two things, the question is no such question, and a model answers it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.rag.question_tokens import LONGEST, NAMES_A_ROW, YEARS, tokens_of
from core.rag.row_conditions import are_of_full_years, conditions_of
from core.rag.row_flags import with_flags
from core.rag.row_times import is_done_in_time, lasts, may_be_either, may_begin
from core.rag.tables.subjects import PERIOD, forms_of, without_key
from core.rag.top_questions import for_one

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.rag.question_tokens import Vocabulary
    from core.rag.question_words import Token
    from core.rag.row_conditions import Condition

Asked: TypeAlias = Literal[
    "count", "share", "sum", "average", "median", "highest", "lowest", "row_highest", "row_lowest"
]

_MAY: Final = re.compile(
    r"\b(?:how many|number|count|sum|total|average|mean|median|highest|largest|biggest|greatest|maximum|max|most"
    r"|lowest|smallest|minimum|min|least|fewest|latest|earliest|top)\b|add up|% of"
    r"|\b(?:by|per|each) (?:month|quarter|year)\b|[按每各]个?[月季年]"
    r"|\b(?:percent|percentage)\b|\b(?:share|proportion) of\b"
    r"|\b(?:wie ?viele?|anzahl|summe|gesamt\w*|durchschnitt\w*|mittelwert|meisten|wenigsten|prozentsatz|anteil"
    r"|(?:höchst|größt|niedrigst|kleinst|geringst|maximal|minimal|spätest|neuest|frühest)e[rsnm]?"
    r"|(?:je|pro|nach) (?:monat|quartal|jahr)e?n?)\b"
    r"|多少|几|数量|总|合计|之和|求和|加起来|汇总|平均|均值|前[2-9两二三四五六七八九十1]|最[大小高低多少早晚]|中位|比例|占比|百分比|百分之",
    re.IGNORECASE,
)
_FIGURES: Final[dict[str, Asked]] = {
    "sum": "sum", "average": "average", "median": "median", "highest": "highest", "lowest": "lowest",
}  # fmt: skip
_EXTREMES: Final[dict[str, Asked]] = {"highest": "row_highest", "lowest": "row_lowest"}
_BY: Final = frozenset({"per", "each", "of each"})  # after which a number, or one average over all, may be meant
_VAGUE: Final = frozenset({"largest", "biggest", "greatest", "smallest"})  # "the largest sales by region" may be sums
_COUNTED_ONE_BY_ONE: Final = re.compile(
    r"\b(?:customer|client|buyer|user|member|person|people|employee|worker|staff|student|pupil|patient|guest|visitor"
    r"|household|head|capita|author|player|driver|order|invoice|bill|ticket|sale|purchase|transaction|trip|visit|unit"
    r"|item|piece|hour|day|date|week|month|quarter|year|period)s?\b"
    r"|\b(?:kund|käufer|nutzer|mitglied|person|mitarbeiter|student|schüler|patient|gast|gäst|besucher|bestellung|auftrag"
    r"|aufträg|rechnung|verkauf|verkäuf|stück|stunde|tag|woche|monat|quartal|jahr)(?:e?[nrs]?|innen)\b"
    r"|客户|顾客|用户|会员|员工|职工|人员|人$|学生|患者|病人|司机|订单|发票|账单|工单|小时|天|日|周|月|季度|年"
)
_ADDS_UP: Final = re.compile(
    r"(?:(?:net|gross|total) )?(?:revenues?|sales|turnover|income|earnings|profits?|expenses|spending|umsatz|umsätze"
    r"|einnahmen|ausgaben|erlöse?|gewinn)|(?:销售|营业)?收入|销售额|营业额|营收|支出|利润"
)
_WHO: Final = frozenset({"who", "wer", "谁"})
_COMPARED: Final = frozenset({"is", "not", "compare", "value", "number", "date", "quoted", "contains", "between"})
_OF_SEVERAL: Final = re.compile(r"\bwelche\b.*\b(?:haben|hatten|sind|waren)\b|\bdie \w+en mit de[mnr]\b", re.IGNORECASE)
_NAME_IT: Final = re.compile(
    r"\W*(?:please |(?:can|could) you )*(?:what(?:'s|’s| is| was)|show|give|find|tell|the"
    r"|was (?:ist|war)|zeige?|nenne|d(?:ie|er|as))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """What is asked of the rows of a table.

    Args:
        column: Of which column; `None` for a count.
        thing: The number of the column that the word for what is counted names; `None` where it means rows.
        subject: The word that means rows because the table is called so, else "".
        conditions: All of them hold.
        each: The number of the column for each of whose values it is asked; `None` where it is asked once.
        bare: Whether no word says what is counted: "how many per region", "how many were returned".
        flagged: Whether a column of yes and no sets a condition by its name.
        period: "month", "quarter" or "year" where it is asked for each of these, and `each` is a column of dates.
        who: Whether somebody is asked for, whom no word names.
        ranked: Whether values of `each` with the "highest" or the "lowest" figures are asked for; "" where all are.
        many: How many rows are asked for: "the three largest orders".
    """

    asks: Asked
    column: int | None
    conditions: tuple[Condition, ...]
    thing: int | None = None
    subject: str = ""
    each: int | None = None
    bare: bool = False
    many: int = 1
    flagged: bool = False
    period: str = ""
    ranked: str = ""
    who: bool = False


def may_ask_rows(question: str) -> bool:
    """Whether it is worth looking up columns and values for `row_question`: most questions ask for something else."""
    return len(question) <= LONGEST and bool(_MAY.search(question))


def row_question(question: str, known: Vocabulary, besides: tuple[Condition, ...] = ()) -> RowQuestion | None:
    """What a question asks of the rows of a table; `None` where that is not clear to the last word.

    Args:
        known: What the table is called, and what it holds.
        besides: Conditions that hold as well, of a question before it.
    """
    question, many = for_one(question)
    tokens = tokens_of(question, known)
    tokens = None if tokens is None else with_flags(tokens, known)
    tokens = None if tokens is None else _with_periods(tokens, known)
    if tokens is None:
        return None
    in_doubt = may_begin(tokens) or may_be_either(tokens) or is_done_in_time(tokens, known)
    asked = None if in_doubt else _asked(question, _kept(tokens), known)
    if asked is None:
        return None
    asks, column, each = asked.asks, asked.column, asked.each
    if asked.thing in known.flags:
        return None  # "how many returned are open?" counts no yes and no
    if asked.ranked and many == 1 and (asked.several or _OF_SEVERAL.search(question)):
        return None  # "which products have the highest total": how many of them
    if not asked.ranked and not _fits(asks, "" if column is None else known.kinds[column], many):
        return None
    if any(one.dated for one in tokens) and (column is None or known.kinds[column] != "date"):
        return None  # "the latest price" is that of the latest day, not the highest
    own = conditions_of(asked.left, known)
    conditions = None if own is None else (*besides, *own)
    if conditions is None or not _are_clear(asked, conditions, known):
        return None
    return RowQuestion(
        asks, column, conditions, asked.thing, asked.subject, each, asked.bare, many,
        any(one.kind == "flag" for one in tokens), asked.period, asked.ranked,
        any(one.kind == "which" and one.text in _WHO for one in tokens),
    )  # fmt: skip


def _with_periods(tokens: Sequence[Token], known: Vocabulary) -> list[Token] | None:
    """The tokens with the column of dates in place of a month, a quarter or a year for each of which is asked.

    `None` where there is no such column, or several, and where what was done, "returned per month", has its own dates.
    """
    found: list[Token] = []
    days = [at for at, kind in enumerate(known.kinds) if kind == "date"]
    for one in tokens:
        before = next((it for it in reversed(found) if it.kind != "filler"), None)
        if one.kind == "period" and before is not None and before.kind == "each":
            of = [it.kind for it in found if it.kind != "filler"][-2:-1]
            if len(days) != 1 or of == ["flag"] or lasts(days[0], known):
                return None
            found.append(replace(one, kind="column", column=days[0]))
        elif one.kind == "number" and one.raw.isdecimal() and one.number in YEARS and before and _is_period(before):
            found.append(replace(one, said="year"))  # "by quarter 2024"
        else:
            found.append(one)
    return found


def _is_period(token: Token) -> bool:
    return token.kind == "column" and bool(token.said)


def _are_clear(asked: _Ask, conditions: Sequence[Condition], known: Vocabulary) -> bool:
    """Whether these conditions can be meant in one way alone."""
    if not conditions and not asked.asks.startswith("row") and asked.each is None:
        return False  # without a condition it is another kind of question
    if asked.asks == "share" and len(conditions) != 1:
        return False  # "the share of closed orders that are from Rome" is one of closed orders alone
    columns = {one.column for one in conditions}
    if len(columns) < len(conditions):
        return False  # two conditions on one column may be meant as either of them
    if asked.each is not None and asked.each in {asked.thing, asked.column, *(() if asked.period else columns)}:
        return False
    return not any(known.kinds[one.column] == "date" and not are_of_full_years(one) for one in conditions)


def _fits(asks: Asked, kind: str, many: int) -> bool:
    """Whether a column of this kind, "" for none, can be asked so, for so many rows."""
    if many > 1:
        return kind == "number" and asks.startswith("row")
    return kind in {"", "number"} or (kind == "date" and asks.startswith("row"))


# ---- what is asked


def _kept(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without words that say nothing; "is" stays between a column and what it is compared with."""
    bare = [one for one in tokens if one.kind != "filler"]
    kept: list[Token] = []
    for at, one in enumerate(bare):
        before, after = (bare[at - 1].kind if at else ""), (bare[at + 1].kind if at + 1 < len(bare) else "")
        if one.kind == "is" and not (before == "column" and after in {"value", "number", "date", "quoted", "compare"}):
            continue
        kept.append(one)
    return kept


@dataclass(frozen=True, slots=True)
class _Ask:
    """What is asked, and the tokens that are left for conditions; the other arguments are those of `RowQuestion`."""

    asks: Asked
    column: int | None
    left: list[Token]
    thing: int | None = None
    subject: str = ""
    each: int | None = None
    bare: bool = False
    period: str = ""
    ranked: str = ""
    several: bool = False


def _asked(question: str, tokens: list[Token], known: Vocabulary) -> _Ask | None:
    """What is asked, of which column and for which thing."""
    which = [at for at, one in enumerate(tokens) if one.kind == "which"]
    figures = [at for at, one in enumerate(tokens) if one.kind in {"figure", "most"}]
    each = [at for at, one in enumerate(tokens) if one.kind == "each"]
    if len(figures) == 2 and len(which) <= 1:
        return _ranked(tokens, which, figures, known)
    if len(which) > 1 or len(figures) > 1:
        return None
    if shares := [at for at, one in enumerate(tokens) if one.kind == "share"]:
        return _share(_without_loose(tokens), shares[0], known) if len(shares) == 1 else None
    if not figures:
        return None if which else _by_values(tokens, each, known) if each else _count(tokens)
    figure = tokens[figures[0]]
    if which:
        return _which(tokens, which[0], figures[0], known)
    if each and (found := _figure_by_values(tokens, each, figures[0], known)) is not None:
        return found
    if figure.owned or each:  # "is the order with the highest amount open?" asks for no row
        return _which(tokens, None, figures[0], known) if _NAME_IT.match(question) else None
    return None if figure.kind == "most" else _figure(_without_loose(tokens), figures[0], known)


def _share(tokens: list[Token], at: int, known: Vocabulary) -> _Ask | None:
    """Which part of the rows fulfils a condition; what they are called stands behind, in Chinese anywhere."""
    left = _without(tokens, {at})
    places = range(len(left)) if tokens[at].wide else [_after_values(tokens, at) - 1]
    things = [
        place
        for place in places
        if place < len(left) and (left[place].kind in {"thing", "subject"} or _means_rows(left, place, known))
    ]
    if not things and (_begins_with_flag(tokens, at + 1) or (tokens[at].wide and _ends_with_flag(tokens, at))):
        return _Ask("share", None, left, bare=True)
    if len(things) != 1:
        return None
    thing = left[things[0]]
    return _Ask("share", None, _without(left, things), thing.column, thing.text if thing.kind == "subject" else "")


def _ends_with_flag(tokens: Sequence[Token], at: int) -> bool:
    return bool(at) and tokens[at - 1].kind == "flag"


def _without_loose(tokens: list[Token]) -> list[Token]:
    """Without a "how many" at the end, which in Chinese says nothing after a figure."""
    return list(tokens[:-1]) if tokens and tokens[-1].loose else list(tokens)


def _without(tokens: list[Token], used: Collection[int]) -> list[Token]:
    return [one for number, one in enumerate(tokens) if number not in used]


def _figure(tokens: list[Token], at: int, known: Vocabulary) -> _Ask | None:
    if any(one.kind in {"count", "which", "thing"} for one in tokens):
        return None
    place = _column_beside(tokens, at, known)
    if place is None:
        return None
    asks, column = _FIGURES[tokens[at].said], tokens[place].column
    left = _without(tokens, {at, place})
    things = [number for number in range(len(left)) if _means_rows(left, number, known)]
    if len(things) == 1:
        return _Ask(asks, column, _without(left, things), left[things[0]].column)
    # A title that follows a value may be what rows are called, "open orders", or where they stand, "open in June".
    called = [one.text for before, one in pairwise(left) if before.kind == "value" and one.kind == "subject"]
    return _Ask(asks, column, left, subject=called[0] if called else "")


def _means_rows(tokens: list[Token], at: int, known: Vocabulary) -> bool:
    """Whether a column stands for the rows, "closed tickets": the table is called so, or it is the first one.

    It holds texts, and none of them, nor a number, a date or anything in quotation marks, is said of it.
    """
    one = tokens[at]
    if one.kind != "column" or one.column is None or known.kinds[one.column] != "text":
        return False
    if one.column and one.text not in known.subjects:
        return False

    def is_other(value: Token) -> bool:
        return value.kind == "value" and one.column not in known.holds(value.text)

    before, after = tokens[max(at - 1, 0) : at], tokens[at + 1 : at + 3]
    if before and before[0].kind == "value" and not is_other(before[0]):
        return False
    if not after or after[0].kind not in _COMPARED or _denies_flag(tokens, at + 1):
        return True
    said = after[-1] if after[0].kind == "is" else after[0]
    if said.kind in {"between", "compare", "date"} or said.said == "year":
        return True  # no text is: "tickets since March 2026"
    return said.kind != "is" and is_other(said)


def _column_beside(tokens: list[Token], at: int, known: Vocabulary) -> int | None:
    """The column of a figure: the one right behind it, or in Chinese right before it."""
    after = at + 1 if at + 1 < len(tokens) and tokens[at + 1].kind == "column" else None
    before = at - 1 if at and tokens[at - 1].kind == "column" else None
    if not tokens[at].wide:
        return after
    if before is not None and after is not None:
        fitting = [one for one in (before, after) if _has_extremes(tokens[one], known)]
        return fitting[0] if len(fitting) == 1 else None
    return before if after is None else after


def _has_extremes(token: Token, known: Vocabulary) -> bool:
    return token.column is not None and known.kinds[token.column] != "text"


def _which(tokens: list[Token], which: int | None, figure: int, known: Vocabulary) -> _Ask | None:
    """Which row has the highest or lowest value; what is asked for means rows, or is a column that names each."""
    if any(one.kind == "count" for one in tokens):
        return None
    said, of = _EXTREMES.get(tokens[figure].said), _measured(tokens, figure, known)
    if said is None or not of:
        return None
    used = {figure, figure if which is None else which, *of}
    named = _asked_for(tokens, which, figure, used, known)
    if named is None:
        return _Ask(said, tokens[of[-1]].column, _without(tokens, used)) if _is_whole(tokens, which) else None
    one, left = tokens[named], _without(tokens, {*used, named})
    return _Ask(said, tokens[of[-1]].column, left, one.column, one.text if one.kind == "subject" else "")


def _is_whole(tokens: list[Token], which: int | None) -> bool:
    return which is not None and tokens[which].whole


def _measured(tokens: list[Token], figure: int, known: Vocabulary) -> tuple[int, ...]:
    """The places of the column by which rows are compared, and of the word before it: "the largest by amount"."""
    beside = _column_beside(tokens, figure, known)
    by = [
        at
        for at, (one, after) in enumerate(pairwise(tokens))
        if (one.kind, one.text, after.kind) == ("each", "by", "column")
    ]
    if len(by) == 1 and (beside is None or not _has_extremes(tokens[beside], known)):
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
        after = _after_values(tokens, figure if which is None else which)
        if names_a_row(after):
            return after
        if which is None or not tokens[which].wide or which + 1 < len(tokens):
            return None
        if names_a_row(which - 1):  # "金额最高的订单是哪一个"
            return which - 1
    there = [
        at
        for at, one in enumerate(tokens)
        if at not in used and (one.kind in {"thing", "subject"} or _means_rows(tokens, at, known))
    ]
    return there[0] if len(there) == 1 else None


def _after_values(tokens: list[Token], at: int) -> int:
    """Behind a token and the values that follow it: "which open order"."""
    after = at + 1
    while after < len(tokens) and (tokens[after].kind in {"value", "flag"} or _denies_flag(tokens, after)):
        after += 1
    return after


def _denies_flag(tokens: Sequence[Token], at: int) -> bool:
    """Whether a "not" stands here before what a column of yes and no says: "not returned"."""
    return [one.kind for one in tokens[at : at + 2]] == ["not", "flag"]


def _begins_with_flag(tokens: Sequence[Token], at: int) -> bool:
    return at < len(tokens) and (tokens[at].kind == "flag" or _denies_flag(tokens, at))


def _by_values(tokens: list[Token], each: list[int], known: Vocabulary) -> _Ask | None:
    """How many for each value of a column: "orders per region", "各地区有多少订单"."""
    at = each[0]
    if len(each) > 1 or at + 1 >= len(tokens) or tokens[at + 1].kind != "column":
        return None
    left, column, period = _without(tokens, {at, at + 1}), tokens[at + 1].column, tokens[at + 1].said
    counts = [one for one in left if one.kind == "count"]
    if len(left) == len(counts) == 1:
        return _Ask("count", None, [], each=column, bare=not counts[0].unit, period=period)
    summed = [place for place, one in enumerate(left) if _adds_up_in_time(one, known)]
    if period and not counts and len(summed) == 1:
        return _Ask("sum", left[summed[0]].column, _without(left, summed), each=column, period=period)
    found = _count(left)
    return None if found is None else replace(found, each=column, period=period)


def _adds_up_in_time(token: Token, known: Vocabulary) -> bool:
    """Whether "revenue by quarter" means a sum: nobody means another figure of it."""
    is_number = token.kind == "column" and token.column is not None and known.kinds[token.column] == "number"
    return is_number and _ADDS_UP.fullmatch(token.text) is not None


def _ranked(tokens: list[Token], which: list[int], figures: list[int], known: Vocabulary) -> _Ask | None:
    """Which values of a column have the highest or lowest sums or averages: "top 3 products by total units"."""
    extremes = [at for at in figures if tokens[at].said in _EXTREMES]
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
        named = _after_values(tokens, which[0]) if of == high + 1 and which[0] < high else None
    else:
        is_by = high < by and (tokens[by].kind, tokens[by].text) == ("each", "by")
        named = _after_values(tokens, high) if is_by else None
    if named is None or not 0 <= named < len(tokens) or named in used or not _is_group(tokens[named], known):
        return None
    if high == column + 1 and of and tokens[by].kind == "each":
        used.add(by)  # "按总金额排名前三的产品"
    left = _without(tokens, {*used, named} | ({by} if tokens[by].kind == "each" else set()))
    asks = _FIGURES[tokens[of].said]
    group = tokens[named]
    several = group.raw.isascii() and forms_of(group.raw) != {group.raw}
    return _Ask(asks, tokens[column].column, left, each=group.column, ranked=tokens[high].said, several=several)


def _only_group(tokens: list[Token], used: Collection[int], known: Vocabulary) -> int | None:
    """The only column besides that could have values with figures."""
    there = [at for at, one in enumerate(tokens) if at not in used and _is_group(one, known)]
    there = [at for at in there if not _begins_condition(tokens, at)]
    return there[0] if len(there) == 1 else None


def _is_group(token: Token, known: Vocabulary) -> bool:
    return token.kind == "column" and token.column is not None and known.kinds[token.column] == "text"


def _figure_by_values(tokens: list[Token], each: list[int], at: int, known: Vocabulary) -> _Ask | None:
    """A figure for each value of a column: "average amount per status", "各地区的总金额"."""
    by, figure = each[0], tokens[at]
    if len(each) > 1 or by + 1 >= len(tokens) or tokens[by + 1].kind != "column" or by == at + 1:
        return None  # "平均每个客户的金额" is one number
    if figure.kind != "figure" or figure.owned or not _is_for_each(tokens[by], tokens[by + 1], figure, known):
        return None
    left = _without_loose(_without(tokens, {by, by + 1}))
    found = _figure(left, at - 2 * (by < at), known)
    if found is None or found.column is None or known.kinds[found.column] != "number":
        return None  # "the largest ticket by amount" is a row
    called = [one.text for one in found.left if one.kind == "subject" and _has_key(one.text, known)]
    subject = found.subject or (called[0] if called else "")
    return replace(found, each=tokens[by + 1].column, subject=subject, period=tokens[by + 1].said)


def _has_key(subject: str, known: Vocabulary) -> bool:
    """Whether a column tells what rows are called from one another: "Order ID" those that are called orders."""
    return not forms_of(subject).isdisjoint(form for name in known.columns for form in forms_of(without_key(name)))


def _is_for_each(by: Token, column: Token, figure: Token, known: Vocabulary) -> bool:
    """Whether a figure is sure to be meant for each value of a column, and not once, or in relation to a number."""
    if figure.text in _VAGUE and by.text == "by":
        return False
    if by.text not in _BY and not by.text.startswith("每"):
        return True
    if column.column is not None and known.kinds[column.column] == "number" and not PERIOD.fullmatch(column.text):
        return False  # "cost per hour"
    # "The average amount per customer", "每个客户平均" may be what all customers pay, by their number.
    return figure.said not in {"average", "median"} or not _COUNTED_ONE_BY_ONE.search(column.text)


def _count(tokens: list[Token]) -> _Ask | None:
    """What is counted: rows, what the table is called, or a column; in Chinese also before it."""
    counts = [at for at, one in enumerate(tokens) if one.kind == "count"]
    if len(counts) != 1:
        return None
    at = counts[0]
    if tokens[at].unit:  # "多少行": the word for what is counted stands in the question word
        return _Ask("count", None, _without(tokens, {at}))
    for place in _beside(tokens, at):
        named = tokens[place]
        if named.kind in NAMES_A_ROW:
            left = _without(tokens, {at, place})
            thing = named.column if named.kind == "column" else None
            return _Ask("count", None, left, thing, named.text if named.kind == "subject" else "")
    left = _without(tokens, {at})
    if any(one.kind in NAMES_A_ROW for one in left):
        return None
    is_bare = _begins_with_flag(tokens, at + 1) or (tokens[at].wide and _ends_with_flag(tokens, at))
    return _Ask("count", None, left, bare=True) if is_bare else None


def _beside(tokens: list[Token], at: int) -> list[int]:
    """Where the word for what is counted may stand; in English a value may come before it: "open orders"."""
    if tokens[at].wide:
        places = (at + 1, at - 1, len(tokens) - 1)
        return [place for place in places if 0 <= place < len(tokens) and not _begins_condition(tokens, place)]
    after = _after_values(tokens, at)
    return [after] if after < len(tokens) else []


def _begins_condition(tokens: list[Token], place: int) -> bool:
    """Whether a column is one that something is said of: it is compared right after."""
    after = tokens[place + 1].kind if place + 1 < len(tokens) else ""
    return tokens[place].kind == "column" and after in _COMPARED and not _denies_flag(tokens, place + 1)
