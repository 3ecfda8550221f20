"""Two questions in one sentence, "how many orders are open and what is their total amount?": both are told, or neither.

The second one speaks of the rows of the first where it says so ("their", "of them", "there"). Where it does not, its
conditions are on the same columns: "how many orders are in the East and how many in the West?".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.rag.question_tokens import LONGEST, tokens_of
from core.rag.row_follow_ups import refers_back
from core.rag.row_questions import row_question

if TYPE_CHECKING:
    from core.rag.question_tokens import Vocabulary
    from core.rag.row_questions import RowQuestion

_JOINED: Final = re.compile(
    r"[\s,;]+(?:and|und)\s+(?:also\s+|auch\s+)?"
    r"(?=(?:what|how many|how much|which|their|was|wie|welche[rsnm]?|deren|ihre?)\b)"
    r"|[，,；;]\s*(?:以及|并且|而且|还有|和)?(?=[^，,；;]*(?:多少|几))|(?:以及|并且|和)(?=(?:它们|其|这些)[^，,；;]*(?:多少|几))",
    re.IGNORECASE,
)
_HOW_MANY: Final = re.compile(
    r"^\W*(how many|wie ?viele)\b((?: (?:of (?:them|these|those)|davon))?)(?=\W+(?:are|were|is|was|have|in|from|with"
    r"|sind|waren|wurden|haben|aus|im)\b)",
    re.IGNORECASE,
)
_WHICH_ROW: Final = re.compile(r"\W*(?:which|welche[rsnm]?)\b", re.IGNORECASE)
_WHICH: Final = re.compile(
    r"^\W*(which|welche[rsnm]?) (?:of (?:them|these|those)|davon|von (?:ihnen|diesen))\b", re.IGNORECASE
)
_PRONOUN: Final = re.compile(
    r"\b(?:of them|of (?:these|those)(?: (?!are\b|were\b|is\b|was\b|have\b|in\b|from\b)(?P<thing>\w+))?"
    r"|(?P<their>their|these|those|deren|ihre?[rnms]?)|(?<!are )(?<!is )(?<!was )(?<!were )there|dort|davon)\b"
    r"|(?:它们|他们|她们|这些)(?P<named>[^\W\d_]{0,4}?)的|其中?的?|那里的?",
    re.IGNORECASE,
)
_ROWS: Final = frozenset({"subject", "thing"})


def parted(question: str) -> tuple[str, str] | None:
    """The two questions of a sentence; `None` where it has one alone, or more."""
    places = list(_JOINED.finditer(question)) if len(question) <= LONGEST else []
    if len(places) != 1:
        return None
    first, second = question[: places[0].start()].strip(), question[places[0].end() :].strip()
    return (first, second) if first and second else None


def row_pair(question: str, known: Vocabulary) -> tuple[RowQuestion, RowQuestion] | None:
    """What both questions of a sentence ask of the rows of a table; `None` where either is not clear.

    Args:
        known: What the table is called, and what it holds.
    """
    parts = parted(question)
    first = None if parts is None or refers_back(parts[0]) else row_question(parts[0], known)
    if parts is None or first is None or not _is_of_some_rows(first):
        return None
    text, speaks_of_first = _by_itself(parts[1], _called(parts[0], first, known))
    if text is None or refers_back(text):
        return None
    second = row_question(text, known, first.conditions if speaks_of_first else ())
    if second is None or (_WHICH_ROW.match(text) and not second.asks.startswith("row")):
        return None
    own, theirs = ({one.column for one in of.conditions} for of in (first, second))
    return (first, second) if speaks_of_first or own == theirs else None


def _is_of_some_rows(first: RowQuestion) -> bool:
    """Whether it is clear of which rows it is: those that fulfil its conditions, and no few of them."""
    return bool(first.conditions) and first.many == 1 and first.each is None and not first.asks.startswith("row")


def _called(text: str, asked: RowQuestion, known: Vocabulary) -> str:
    """The word for rows in a question, "" where it has none."""
    tokens = tokens_of(text, known) or []
    things = [one for one in tokens if one.kind in _ROWS or (one.kind == "column" and one.column == asked.thing)]
    return things[0].raw or things[0].text if things else ""


def _by_itself(text: str, thing: str) -> tuple[str | None, bool]:
    """The second question as it would be asked alone, and whether it speaks of the rows of the first.

    Args:
        thing: The word for rows in the first.
    """
    begins = _HOW_MANY.match(text)
    if begins is not None:
        if not thing:
            return None, False
        text = f"{begins[1]} {thing}{text[begins.end() :]}"
    spoken = bool(begins and begins[2])
    if thing and (which := _WHICH.match(text)):
        text, spoken = f"{which[1]} {thing}{text[which.end() :]}", True
    left, times = _PRONOUN.subn(lambda found: "the " if found["their"] else found["thing"] or "", text)
    if any(one["thing"] or one["named"] for one in _PRONOUN.finditer(text)):
        named = {(one["thing"] or one["named"] or "").casefold() for one in _PRONOUN.finditer(text)} - {""}
        if named != {thing.casefold()}:
            return None, False  # "of these customers"
    return left, spoken or bool(times)
