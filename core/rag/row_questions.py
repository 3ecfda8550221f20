"""Questions about rows under conditions, read against one table: counts, sums and extremes of a column, and which row.

As in `count_questions`, who computes for somebody must not compute something else. So every word of a question has to
be known: as a column or a value of the table, as a comparison, or as a word that says nothing. Where one is not, or may
be two things, the question is no such question, and a model answers it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from core.rag.count_questions import plain_name
from core.rag.german_words import forms_in_german
from core.rag.question_figures import YEARS
from core.rag.question_tokens import LONGEST, tokens_of
from core.rag.row_asked import asked_of, kept_of
from core.rag.row_conditions import are_of_full_years, conditions_of
from core.rag.row_flags import with_flags
from core.rag.row_meant import with_meant
from core.rag.row_times import is_done_in_time, lasts, may_be_either, may_begin
from core.rag.tables.subjects import forms_of
from core.rag.top_questions import for_one

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.rag.question_tokens import Vocabulary
    from core.rag.question_words import Token
    from core.rag.row_conditions import Condition
    from core.rag.row_places import Ask, Asked

_MAY: Final = re.compile(
    r"\b(?:how many|number|count|sum|total|average|mean|median|highest|largest|biggest|greatest|maximum|max|most"
    r"|lowest|smallest|minimum|min|least|fewest|latest|earliest|top)\b|add up|% of"
    r"|\b(?:by|per|each) (?:month|quarter|year)\b|[按每各]个?[月季年]"
    r"|\b(?:percent|percentage)\b|\b(?:share|proportion) of\b"
    r"|\b(?:wie ?viele?|anzahl|summe|gesamt\w*|durchschnitt\w*|mittelwert|meisten|wenigsten|prozentsatz|anteil"
    r"|(?:höchst|größt|niedrigst|kleinst|geringst|maximal|minimal|spätest|neuest|frühest)e[rsnm]?"
    r"|(?:je|pro|nach) (?:monat|quartal|jahr)e?n?)\b"
    r"|\b(?:earns?|earned|verdien\w*|spen[dt]|sold|sells?|best[- ]selling|top[- ]selling)\b"
    r"|\b(?:oldest|youngest|cheapest|most expensive|difference|differenz|unterschied)\b"
    r"|\b(?:is|are|was|were) there an?y?\b|\bgibt es eine?n?\b|(?:[äa]ltest|jüngst|teuerst|billigst|günstigst)e"
    r"|多少|几|数量|有没有|是否有|最[贵便畅年]|卖得最|总|合计|之和|求和|加起来|汇总|平均|均值|前[2-9两二三四五六七八九十1]"
    r"|最[大小高低多少早晚]|中位|比例|占比|百分比|百分之",
    re.IGNORECASE,
)
_MAY_LIST: Final = re.compile(
    r"\W*(?:please )?(?:which|list|welche[rsnm]?|liste|nenne|who (?:works?|lives?|is|has)|wer (?:arbeitet|wohnt|ist))"
    r"\b.{0,100}"
    r"|.{0,100}\b(?:revenues?|sales|turnover|profits?|expenses|umsatz|umsätze|einnahmen|ausgaben|gewinn)\b.{0,60}"
    r"|\W*请?(?:列出|列举|哪些|谁).{0,60}|.{0,60}(?:销售额|收入|营业额|营收|支出|利润|哪些).{0,40}",
    re.IGNORECASE,
)
_SOMEBODY: Final = re.compile(
    r"\b(?:who|wer|people|persons?|employees|staff|personen|mitarbeiter)\b|谁|人|员工|学生", re.IGNORECASE
)
_WHO: Final = frozenset({"who", "wer", "谁"})
_OF_SEVERAL: Final = re.compile(r"\bwelche\b.*\b(?:haben|hatten|sind|waren)\b|\bdie \w+en mit de[mnr]\b", re.IGNORECASE)


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
        of: What rows have to be, where no name of the table says it: "people", "staff" or "sales"; else "".
        also: Further columns whose sums have to be the highest for the same value.
        in_doubt: Which figure of many rows is told, their "sum" or "extreme", where another may be meant; else "".
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
    of: str = ""
    also: tuple[int, ...] = ()
    in_doubt: str = ""


def may_ask_rows(question: str) -> bool:
    """Whether it is worth looking up columns and values for `row_question`: most questions ask for something else."""
    return len(question) <= LONGEST and bool(_MAY.search(question) or _MAY_LIST.fullmatch(question))


def may_be_of(question: str, names: Iterable[str]) -> bool:
    """Whether a question may be about a table, by the names of its columns and of itself alone, before it is queried.

    One that asks to count names none, "how many are open?"; one that asks which there are says of what.

    Args:
        names: In lower case.
    """
    if _MAY.search(question) or _SOMEBODY.search(question):
        return True
    text = plain_name(question)
    forms = {form for name in names for form in (*forms_of(name), *forms_in_german(name)) if form}
    return any(form.removesuffix("y") in text for form in forms)  # "cities"


def row_question(
    question: str, known: Vocabulary, besides: tuple[Condition, ...] = (), *, of_all: bool = False
) -> RowQuestion | None:
    """What a question asks of the rows of a table; `None` where that is not clear to the last word.

    Args:
        known: What the table is called, and what it holds.
        besides: Conditions that hold as well, of a question before it.
        of_all: Whether it may be a figure of all rows, which is another kind of question where it stands alone.
    """
    question, many = for_one(question)
    tokens = tokens_of(question, known)
    tokens = None if tokens is None else with_meant(tokens, known)
    tokens = None if tokens is None else with_flags(tokens, known)
    tokens = None if tokens is None else _with_periods(tokens, known)
    if tokens is None:
        return None
    in_doubt = may_begin(tokens) or may_be_either(tokens) or is_done_in_time(tokens, known)
    asked = None if in_doubt else asked_of(question, kept_of(tokens), known)
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
    if conditions is None or not _are_clear(asked, conditions, known, of_all=of_all):
        return None
    return RowQuestion(
        asks, column, conditions, asked.thing, asked.subject, each, asked.bare, many,
        any(one.kind == "flag" for one in tokens), asked.period, asked.ranked,
        any(one.kind == "which" and one.text in _WHO for one in tokens), asked.of, asked.also, asked.in_doubt,
    )  # fmt: skip


def _with_periods(tokens: Sequence[Token], known: Vocabulary) -> list[Token] | None:
    """The tokens with the column of dates in place of a month, a quarter or a year for each of which is asked.

    `None` where there is no such column, or several, and where what was done, "returned per month", has its own dates.
    """
    found: list[Token] = []
    days = [at for at, kind in enumerate(known.kinds) if kind == "date"]
    for one in tokens:
        before = next((it for it in reversed(found) if it.kind != "filler"), None)
        if one.kind == "period" and before is not None and before.kind in {"each", "which"}:
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


def _are_clear(asked: Ask, conditions: Sequence[Condition], known: Vocabulary, *, of_all: bool) -> bool:
    """Whether these conditions can be meant in one way alone."""
    is_of_rows = asked.asks.startswith("row") or asked.asks == "list" or asked.each is not None
    if not conditions and not is_of_rows and not of_all:
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
