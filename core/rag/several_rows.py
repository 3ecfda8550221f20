"""Questions whose answer takes several rows of a table, and whether one row answers such a question after all.

`count_questions` and `row_questions` may suspect too many questions, as each is then read to its last word. Here words
alone decide, so only those count that hardly ever ask for one cell: not "number", as of a telephone, nor "是多少".
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from core.rag.claims.figures import figures_of
from core.rag.document import numbered_as
from core.rag.parsers.base import is_ideograph
from core.rag.row_follow_ups import goes_on, gone_on
from core.rag.top_questions import for_one

if TYPE_CHECKING:
    from collections.abc import Sequence

_ASKS: Final = re.compile(
    r"\bhow many\b|\b(?:the|total|what) number of\b|\bcount\b|\bsums?\b|\btotals?\b|\badds? up\b|\baltogether\b"
    r"|\b(?:average|averages|median)\b|\bthe mean\b|\b(?:percent|percentage|share|proportion|fraction) of\b"
    r"|\b(?:highest|lowest|largest|biggest|greatest|smallest|maximum|minimum|fewest|oldest|youngest|newest|cheapest"
    r"|longest|shortest|latest|earliest|heaviest|lightest)\b|\bthe (?:best|worst|top)\b|(?<!\bat )\b(?:most|least)\b"
    r"|\b(?:for|in|of|by) (?:each|every)\b|\bper (?!(?:unit|piece|item|hour|night|kg|kilo|m²|m2|person|cent)\b)\w"
    r"|\bby (?:region|product|month|year|quarter|week|day|category|customer|class|department|team|country|city|store"
    r"|type|status)(?=\W*\Z| (?:in|for|of|and|from)\b)|\bbreak ?downs?\b|\bbroken down\b"
    r"|\bwie ?viele?\b(?! kostet)"
    r"|\b(?:anzahl|summe|durchschnitt\w*|mittelwert|gesamt(?:betrag|summe|umsatz|menge|zahl|kosten))\b"
    r"|\b(?:höchst|größt|niedrigst|kleinst|geringst|teuerst|billigst|ältest|jüngst|längst|kürzest)e[rsnm]?\b"
    r"|\b(?:die|den) (?:meisten|wenigsten)\b|\b(?:anteil|prozentsatz) (?:der|des|an)\b"
    r"|\b(?:je|pro|nach) (?:monat|quartal|jahr|region|produkt|kategorie|kunde|land|status)\b"
    r"|[有共了]多少(?!钱)|(?:多少|几)[个名位条笔份件张家人单次种项](?!月)|一共|共计|共有|合计|之和|求和|加起来|汇总|平均|均值|中位"
    r"|总(?:共|计|数|和|额|量|价|分|金额|收入|营收|销[售量]|成[本绩]|利润)|比例|占比|百分比|百分之几|排名|排行"
    r"|最[大小高低多少早晚贵便好差老年长短新重轻]|每一?[个种位名家人月年天周季班类项]|各[个种类地区部班月年产门店]|按.{1,8}(?:统计|分组|分类|计算)",
    re.IGNORECASE,
)
_SUMS: Final = re.compile(
    r"(?:grand |sub)?(?:totals?|sum|average|mean|median|count)\b|合计|总[计和]|小计|平均", re.IGNORECASE
)
_CELL: Final = " | "
_LONGEST: Final = 2_000  # letters of a question that are looked at
_SHORT: Final = 4  # digits of a number that names no row: it may count rows, or be one of the list


def asks_of_several_rows(question: str, earlier: Sequence[str] = ()) -> bool:
    """Whether it asks for a count, sum, average, share or extreme, the first few, or a figure for each value.

    Args:
        earlier: The questions before it, oldest first: "and in the West?" asks what the one before it asked.
    """
    if goes_on(question):
        question = f"{question} {gone_on(question, earlier)[0]}"
    question = question[:_LONGEST]
    return bool(_ASKS.search(question)) or for_one(question)[1] > 1


def rows_of(text: str, document: str) -> list[str]:
    """The lines of a passage that is rows of a table, the first of which may be its head; none of what is prose.

    Args:
        document: Its name: a line with cells is a row in a workbook, elsewhere only with another one.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    rows = [line for line in lines if _CELL in line]
    least = 1 if numbered_as(document) == "sheet" else 2
    return rows if len(rows) >= least and 2 * len(rows) >= len(lines) else []


def is_told_by_a_row(question: str, said: str, tables: Sequence[Sequence[str]]) -> bool:
    """Whether one row has all figures that are said, and is one that the question names or that sums up others.

    Args:
        tables: The rows of each passage; the first is its head.
    """
    rows = dict.fromkeys(row for _, *rest in tables for row in rest)
    cells = {row: [cell.strip() for cell in row.split(_CELL)] for row in rows}
    names = Counter(_name_in(one) for one in cells.values())
    whole = question[:_LONGEST].casefold()
    asked = {cell for one in cells.values() for cell in one if _names(cell) and _stands_in(cell, whole)}
    figures = figures_of(said)
    for row, own in cells.items():
        name = _name_in(own)
        is_named = name in asked and names[name] == 1
        sums_up = any(_SUMS.match(cell) for cell in own[:2])
        if (is_named or sums_up) and asked <= set(own):
            there = figures_of(row)
            if all(any(one.equals(other) for other in there) for one in figures):
                return True
    return False


def _name_in(cells: Sequence[str]) -> str:
    """What a row is called: its first cell that is no number of a list."""
    return next(filter(_names, cells), "")


def _names(cell: str) -> bool:
    return len(cell) > 1 and not (len(cell) < _SHORT and cell.isdecimal())


def _stands_in(cell: str, whole: str) -> bool:
    """Whether a text without capitals has the words of a cell; Chinese words have no ends that could be seen."""
    own = cell.casefold()
    if own not in whole:
        return False
    return any(map(is_ideograph, own)) or bool(re.search(rf"(?<![^\W_]){re.escape(own)}(?![^\W_])", whole))
