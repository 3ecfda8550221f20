"""What a question asks of rows, as far as it is read, and the places of its words: what they stand beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.rag.question_tokens import Vocabulary
    from core.rag.question_words import Token

Asked: TypeAlias = Literal[
    "count", "share", "sum", "average", "median", "highest", "lowest", "row_highest", "row_lowest", "list"
]
COMPARED: Final = frozenset({"is", "not", "compare", "value", "number", "date", "quoted", "contains", "between"})
FIGURES: Final[dict[str, Asked]] = {
    "sum": "sum", "average": "average", "median": "median", "highest": "highest", "lowest": "lowest",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked, and the tokens that are left for conditions; the other arguments are those of `RowQuestion`."""

    asks: Asked
    column: int | None
    left: list[Token]
    thing: int | None = None
    subject: str = ""
    of: str = ""
    each: int | None = None
    bare: bool = False
    period: str = ""
    ranked: str = ""
    several: bool = False
    also: tuple[int, ...] = ()
    in_doubt: str = ""


def without(tokens: list[Token], used: Collection[int]) -> list[Token]:
    """Without the tokens at these places."""
    return [one for number, one in enumerate(tokens) if number not in used]


def without_loose(tokens: list[Token]) -> list[Token]:
    """Without a "how many" at the end, which in Chinese says nothing after a figure."""
    return list(tokens[:-1]) if tokens and tokens[-1].loose else list(tokens)


def means_rows(tokens: list[Token], at: int, known: Vocabulary) -> bool:
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
    if not after or after[0].kind not in COMPARED or denies_flag(tokens, at + 1):
        return True
    said = after[-1] if after[0].kind == "is" else after[0]
    if said.kind in {"between", "compare", "date"} or said.said == "year":
        return True  # no text is: "tickets since March 2026"
    return said.kind != "is" and is_other(said)


def column_beside(tokens: list[Token], at: int, known: Vocabulary) -> int | None:
    """The column of a figure: the one right behind it, or in Chinese right before it."""
    after = at + 1 if at + 1 < len(tokens) and tokens[at + 1].kind == "column" else None
    before = at - 1 if at and tokens[at - 1].kind == "column" else None
    if not tokens[at].wide:
        return after
    if before is not None and after is not None:
        fitting = [one for one in (before, after) if has_extremes(tokens[one], known)]
        return fitting[0] if len(fitting) == 1 else None
    return before if after is None else after


def has_extremes(token: Token, known: Vocabulary) -> bool:
    """Whether a column has a highest value: it holds numbers or dates."""
    return token.column is not None and known.kinds[token.column] != "text"


def after_values(tokens: list[Token], at: int) -> int:
    """Behind a token and the values that follow it: "which open order"."""
    after = at + 1
    while after < len(tokens) and (tokens[after].kind in {"value", "flag"} or denies_flag(tokens, after)):
        after += 1
    return after


def denies_flag(tokens: Sequence[Token], at: int) -> bool:
    """Whether a "not" stands here before what a column of yes and no says: "not returned"."""
    return [one.kind for one in tokens[at : at + 2]] == ["not", "flag"]


def begins_with_flag(tokens: Sequence[Token], at: int) -> bool:
    """Whether "returned" or "not returned" begins here."""
    return at < len(tokens) and (tokens[at].kind == "flag" or denies_flag(tokens, at))


def begins_condition(tokens: list[Token], place: int) -> bool:
    """Whether a column is one that something is said of: it is compared right after."""
    after = tokens[place + 1].kind if place + 1 < len(tokens) else ""
    return tokens[place].kind == "column" and after in COMPARED and not denies_flag(tokens, place + 1)


def is_said_of(tokens: list[Token], named: int, known: Vocabulary) -> bool:
    """Whether a column is compared with what follows, and is not what is asked for: "vendor is Rail"."""
    after = [one for one in tokens[named + 1 : named + 3] if one.kind != "is"][:1]
    if not after or after[0].kind not in COMPARED or denies_flag(tokens, named + 1):
        return False
    if after[0].kind in {"date", "compare", "between"} or after[0].said == "year":
        return False
    return after[0].kind != "value" or tokens[named].column in known.holds(after[0].text)


def is_group(token: Token, known: Vocabulary) -> bool:
    """Whether a column has values, or periods of time, each of which may have many rows."""
    if token.kind != "column" or token.column is None:
        return False
    return known.kinds[token.column] == "text" or bool(token.said)


def is_countable(token: Token, known: Vocabulary) -> bool:
    """Whether a word means rows, or a column that names what may be counted, and no amounts and no days."""
    if token.kind != "column":
        return token.kind in {"thing", "subject"}
    at = token.column
    return at is not None and known.kinds[at] != "date" and at not in known.amounts and at not in known.flags


def called(token: Token) -> tuple[int | None, str, str]:
    """What rows are called by a word: `thing`, `subject` and `of`, as of `RowQuestion`."""
    subject = token.text if token.kind == "subject" else ""
    return token.column, subject, token.said if token.kind == "thing" else ""


def ends_with_flag(tokens: Sequence[Token], at: int) -> bool:
    """Whether it ends before this place."""
    return bool(at) and tokens[at - 1].kind == "flag"
