"""What a question asks of rows, of which column and for which thing, by the places of its words."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from core.rag.question_tokens import NAMES_A_ROW
from core.rag.row_places import (
    FIGURES,
    Ask,
    after_values,
    begins_condition,
    begins_with_flag,
    called,
    column_beside,
    ends_with_flag,
    is_said_of,
    means_rows,
    without,
    without_loose,
)
from core.rag.row_ranks import ADDS_UP, listed, ranked, sold_most, which_row, with_most
from core.rag.tables.subjects import PERIOD, forms_of, without_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.question_tokens import Vocabulary
    from core.rag.question_words import Token

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
_NAME_IT: Final = re.compile(
    r"\W*(?:please |(?:can|could) you )*(?:what(?:'s|’s| is| was)|show|give|find|tell|the"
    r"|was (?:ist|war)|zeige?|nenne|d(?:ie|er|as))\b",
    re.IGNORECASE,
)


def kept_of(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without words that say nothing; "is" stays between a column and what it is compared with."""
    bare = [one for one in tokens if one.kind != "filler"]
    kept: list[Token] = []
    for at, one in enumerate(bare):
        before, after = (bare[at - 1].kind if at else ""), (bare[at + 1].kind if at + 1 < len(bare) else "")
        if one.kind == "is" and not (before == "column" and after in {"value", "number", "date", "quoted", "compare"}):
            continue
        kept.append(one)
    return kept


def asked_of(question: str, tokens: list[Token], known: Vocabulary) -> Ask | None:
    """What is asked, of which column and for which thing."""
    which = [at for at, one in enumerate(tokens) if one.kind == "which"]
    figures = [at for at, one in enumerate(tokens) if one.kind in {"figure", "most"}]
    each = [at for at, one in enumerate(tokens) if one.kind == "each"]
    if len(figures) == 2 and len(which) <= 1:
        return ranked(tokens, which, figures, known)
    if len(which) > 1 or len(figures) > 1:
        return None
    if shares := [at for at, one in enumerate(tokens) if one.kind == "share"]:
        return _share(without_loose(tokens), shares[0], known) if len(shares) == 1 else None
    if sold := [at for at, one in enumerate(tokens) if one.kind == "sold"]:
        return sold_most(tokens, which, sold[0], known) if len(sold) == 1 and not figures and not each else None
    if tokens and tokens[0].kind == "list" and not figures:
        return listed(tokens, 0, known)
    if not figures:
        return _without_figures(tokens, which, each, known)
    figure = tokens[figures[0]]
    if which:
        found = with_most(tokens, which[0], figures[0], known)
        return which_row(tokens, which[0], figures[0], known) if found is None else found
    if each and (found := _figure_by_values(tokens, each, figures[0], known)) is not None:
        return found
    if figure.owned or each:  # "is the order with the highest amount open?" asks for no row
        return which_row(tokens, None, figures[0], known) if _NAME_IT.match(question) else None
    return None if figure.kind == "most" else _figure(without_loose(tokens), figures[0], known)


def _without_figures(tokens: list[Token], which: list[int], each: list[int], known: Vocabulary) -> Ask | None:
    """A count, a count for each value, a list, or what adds up without a word for it: "the revenue in the East"."""
    if which:
        return listed(tokens, which[0], known)
    if each:
        return _by_values(tokens, each, known)
    return _count(tokens) or _summed(without_loose(tokens), known)


def _summed(tokens: list[Token], known: Vocabulary) -> Ask | None:
    """The sum of a column that nobody means another figure of, under a condition: "北京的销售额是多少"."""
    summed = [at for at, one in enumerate(tokens) if _adds_up_in_time(one, known)]
    if len(summed) != 1 or any(one.kind == "count" for one in tokens) or is_said_of(tokens, summed[0], known):
        return None
    return Ask("sum", tokens[summed[0]].column, without(tokens, summed))


def _share(tokens: list[Token], at: int, known: Vocabulary) -> Ask | None:
    """Which part of the rows fulfils a condition; what they are called stands behind, in Chinese anywhere."""
    left = without(tokens, {at})
    places = range(len(left)) if tokens[at].wide else [after_values(tokens, at) - 1]
    things = [
        place
        for place in places
        if place < len(left) and (left[place].kind in {"thing", "subject"} or means_rows(left, place, known))
    ]
    if not things and (begins_with_flag(tokens, at + 1) or (tokens[at].wide and ends_with_flag(tokens, at))):
        return Ask("share", None, left, bare=True)
    if len(things) != 1:
        return None
    thing, subject, of = called(left[things[0]])
    return Ask("share", None, without(left, things), thing, subject, of)


def _figure(tokens: list[Token], at: int, known: Vocabulary) -> Ask | None:
    if any(one.kind in {"count", "which"} or (one.kind == "thing" and not one.said) for one in tokens):
        return None
    place = column_beside(tokens, at, known)
    if place is None:
        return None
    asks, column = FIGURES[tokens[at].said], tokens[place].column
    left = without(tokens, {at, place})
    things = [number for number in range(len(left)) if means_rows(left, number, known)]
    if len(things) == 1:
        return Ask(asks, column, without(left, things), left[things[0]].column)
    rows = [number for number, one in enumerate(left) if one.kind == "thing"]
    if rows:
        return Ask(asks, column, without(left, rows), of=left[rows[0]].said) if len(rows) == 1 else None
    # A title that follows a value may be what rows are called, "open orders", or where they stand, "open in June".
    called = [one.text for before, one in pairwise(left) if before.kind == "value" and one.kind == "subject"]
    return Ask(asks, column, left, subject=called[0] if called else "")


def _by_values(tokens: list[Token], each: list[int], known: Vocabulary) -> Ask | None:
    """How many for each value of a column: "orders per region", "各地区有多少订单"."""
    at = each[0]
    if len(each) > 1 or at + 1 >= len(tokens) or tokens[at + 1].kind != "column":
        return None
    left, column, period = without(tokens, {at, at + 1}), tokens[at + 1].column, tokens[at + 1].said
    counts = [one for one in left if one.kind == "count"]
    if len(left) == len(counts) == 1:
        return Ask("count", None, [], each=column, bare=not counts[0].unit, period=period)
    summed = [place for place, one in enumerate(left) if _adds_up_in_time(one, known)]
    if period and not counts and len(summed) == 1:
        return Ask("sum", left[summed[0]].column, without(left, summed), each=column, period=period)
    found = _count(left)
    return None if found is None else replace(found, each=column, period=period)


def _adds_up_in_time(token: Token, known: Vocabulary) -> bool:
    """Whether "revenue by quarter" means a sum: nobody means another figure of it."""
    is_number = token.kind == "column" and token.column is not None and known.kinds[token.column] == "number"
    return is_number and ADDS_UP.fullmatch(token.text) is not None


def _figure_by_values(tokens: list[Token], each: list[int], at: int, known: Vocabulary) -> Ask | None:
    """A figure for each value of a column: "average amount per status", "各地区的总金额"."""
    by, figure = each[0], tokens[at]
    if len(each) > 1 or by + 1 >= len(tokens) or tokens[by + 1].kind != "column" or by == at + 1:
        return None  # "平均每个客户的金额" is one number
    if figure.kind != "figure" or figure.owned or not _is_for_each(tokens[by], tokens[by + 1], figure, known):
        return None
    left = without_loose(without(tokens, {by, by + 1}))
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


def _count(tokens: list[Token]) -> Ask | None:
    """What is counted: rows, what the table is called, or a column; in Chinese also before it."""
    counts = [at for at, one in enumerate(tokens) if one.kind == "count"]
    if len(counts) != 1:
        return None
    at = counts[0]
    if tokens[at].unit:  # "多少行": the word for what is counted stands in the question word
        return Ask("count", None, without(tokens, {at}))
    for place in _beside(tokens, at):
        named = tokens[place]
        if named.kind in NAMES_A_ROW:
            thing, subject, of = called(named)
            return Ask("count", None, without(tokens, {at, place}), thing, subject, of)
    left = without(tokens, {at})
    if any(one.kind in NAMES_A_ROW for one in left):
        return None
    is_bare = begins_with_flag(tokens, at + 1) or (tokens[at].wide and ends_with_flag(tokens, at))
    return Ask("count", None, left, bare=True) if is_bare else None


def _beside(tokens: list[Token], at: int) -> list[int]:
    """Where the word for what is counted may stand; in English a value may come before it: "open orders"."""
    if tokens[at].wide:
        places = (at + 1, at - 1, len(tokens) - 1)
        return [place for place in places if 0 <= place < len(tokens) and not begins_condition(tokens, place)]
    after = after_values(tokens, at)
    return [after] if after < len(tokens) else []
