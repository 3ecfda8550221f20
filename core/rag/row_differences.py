"""How much one figure is above another one: "how many more orders are in the East than in the West?".

Both figures are told, and what is between them. The second is asked for as the first is, under a condition that is
exchanged, or it is another figure of the same column: "the difference between the highest and the lowest salary".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.rag.question_tokens import LONGEST
from core.rag.row_follow_ups import Fragment, exchanged
from core.rag.row_questions import row_question

if TYPE_CHECKING:
    from core.rag.question_tokens import Vocabulary
    from core.rag.row_questions import RowQuestion

_BEST: Final = (
    r"(?:highest|largest|biggest|greatest|maximum|max|lowest|smallest|minimum|min|(?:höchst|größt|niedrigst|kleinst"
    r"|geringst)en)"
)
_THE: Final = r"(?:the |dem |der |den )?"
_DIFFERENCE: Final = (
    r"\W*(?:(?:what(?:'s|’s| is| was)|was ist|wie (?:groß|hoch) ist|calculate|find) )?"
    r"(?:the |die |der )?(?:difference|differenz|unterschied)"
)
_EXTREMES: Final = re.compile(
    rf"{_DIFFERENCE} (?:between|zwischen) {_THE}(?P<one>{_BEST}) (?:and|und) {_THE}(?P<other>{_BEST}) (?P<of>.+)",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(
    rf"{_DIFFERENCE} (?:between|zwischen) (?P<first>.+) (?:and|und) (?P<second>.+)", re.IGNORECASE
)
_MORE: Final = re.compile(
    r"\W*(?:how many (?P<more>more|fewer|less)|wie ?viele? (?P<mehr>mehr|weniger)) (?P<first>.+) (?:than|als)"
    r" (?P<second>.+)",
    re.IGNORECASE,
)
_HIGHER: Final = re.compile(
    r"\W*how much (?P<more>higher|larger|lower|smaller) (?:is|was) (?P<first>.+) than (?P<second>.+)", re.IGNORECASE
)
_CHINESE: Final = re.compile(r"(?P<first>[^比]+)比(?P<second>.+?)(?P<more>[多少])多少[个条笔张份]?(?P<of>[^多少]+)")
_LESS: Final = frozenset({"fewer", "less", "weniger", "lower", "smaller", "少"})
_FULL: Final = re.compile(r"(?:the|dem|der) \w", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Difference:
    """Two figures, and which of them is taken from the other.

    Args:
        way: "first" where the second is taken from the first, "second" where the first is from the second, "apart" for
            the greater one less the lesser.
    """

    first: RowQuestion
    second: RowQuestion
    way: str


def row_difference(question: str, known: Vocabulary) -> Difference | None:
    """The two figures of a question for their difference; `None` where it is no such question, or is not clear."""
    text = " ".join(question.split()).strip(" ?？.。!！")
    if len(text) > LONGEST:
        return None
    if found := _EXTREMES.fullmatch(text):
        first, second = (f"what is the {found[name]} {found['of']}" for name in ("one", "other"))
        return _of_both(first, second, "apart", known)
    for pattern, begins in ((_BETWEEN, "what is"), (_MORE, "how many"), (_HIGHER, "what is"), (_CHINESE, "")):
        if found := pattern.fullmatch(text):
            of = found.groupdict()
            first = f"{'wie viele' if of.get('mehr') else begins} {of['first']}"
            if pattern is _CHINESE:
                first = f"{of['first']}有多少{of['of']}"
            second = exchanged(first, Fragment(of["second"]), known)
            if pattern is _BETWEEN:
                return _of_both(first, second or _by_itself(of["second"]), "apart", known)
            return _of_both(first, second, _way(of["more"] or of["mehr"]), known)
    return None


def _by_itself(said: str) -> str:
    """The second figure where it is named in full: "the total in the East and the total in the West"."""
    return f"what is {said}" if _FULL.match(said) else ""


def _way(said: str) -> str:
    return "second" if said.casefold() in _LESS else "first"


def _of_both(first: str, second: str, way: str, known: Vocabulary) -> Difference | None:
    """Both as they would be asked alone: figures of one kind, or of one column."""
    one, other = (row_question(text, known, of_all=True) if text else None for text in (first, second))
    if one is None or other is None or one == other or not (_is_figure(one) and _is_figure(other)):
        return None
    if one.column != other.column or {one.asks == "count", other.asks == "count"} == {True, False}:
        return None
    return Difference(one, other, way)


def _is_figure(asked: RowQuestion) -> bool:
    return asked.each is None and asked.many == 1 and asked.asks in {
        "count", "sum", "average", "median", "highest", "lowest",
    }  # fmt: skip
