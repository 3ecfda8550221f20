"""Where a time in a question may not be that of its rows: which words and which columns of dates leave a doubt."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.question_tokens import Vocabulary
    from core.rag.question_words import Token

_LASTS: Final = re.compile(
    r"\b(?:hir(?:ed?|ing)|birth\w*|dob|born|start(?:s|ed|ing)?|beg[iau]n\w*|join(?:s|ed|ing)?|ends?|ended|expir\w*|valid\w*|until"
    r"|left|leaving|retire\w*|died|death|since|enroll?(?:ed|ment)?|founded|established|built|updated|modified)\b"
    r"|geburt|geboren|eintritt|austritt|einstellung|beginn|\bende\b|enddatum|gültig|ablauf|gegründet|gründung|geändert"
    r"|入职|离职|出生|生日|到期|有效|开始|结束|成立|更新|截止|毕业|入学"
)
_SET: Final = frozenset({"number", "date"})
_DONE: Final = frozenset({"is", "not", "thing", "subject", "column"})
_TIMES: Final = frozenset({"month", "quarter", "year"})
_BEGIN: Final = frozenset({"from", "von", "vom", "ab"})
_OF: Final = frozenset({"of", "in", "from", "for", "at", "on", "von", "vom", "aus", "im", "für", "bei"})
_EITHER: Final = frozenset({"和", "与", "、", "以及"})
_IN_BETWEEN: Final = frozenset({"filler", "compare", "between", "each"})
_BECAME: Final = frozenset({"was", "were", "has been", "have been"})
_WAS: Final = frozenset({"wurde", "wurden", "war", "waren"})


def lasts(column: int, known: Vocabulary) -> bool:
    """Whether dates are those at which something begins or ends that lasts: nobody was employed on one day alone."""
    return any(column in at and _LASTS.search(name) for name, at in known.columns.items())


def may_begin(tokens: Sequence[Token]) -> bool:
    """Whether what follows "from" may be where something begins: "units from 3", "by month from March 2024"."""
    each = any(one.kind == "each" for one in tokens)
    for at, one in enumerate(tokens[:-1]):
        then = tokens[at + 1]
        if one.kind != "filler" or one.text not in _BEGIN or then.kind not in _SET:
            continue
        if "to" in {it.kind for it in tokens[at + 2 : at + 3]}:
            continue
        if each or (at and tokens[at - 1].kind == "column" and then.kind == "number"):
            return True
    return False


def is_done_in_time(tokens: Sequence[Token], known: Vocabulary) -> bool:
    """Whether a time may be that at which a state was reached: "were paid in 2024", of orders of that year or before.

    The state follows the verb or the word for rows at once, as no place does: "were in the East in 2024".
    """
    times = [at for at, one in enumerate(tokens) if one.kind == "date" or one.said in _TIMES]
    named = [one.kind == "column" and not one.said for one in tokens]
    if any(_is_done_then(one, later) for one, later in pairwise(tokens)):
        return True
    for at, one in enumerate(tokens):
        if one.kind not in {"value", "flag"} or not at or one.raw[:1] >= "\u2e80":
            continue
        before = tokens[at - 1]
        is_said_of = before.kind == "column" and before.column in known.holds(one.text)
        if is_said_of or before.kind not in _DONE:
            continue
        later = [time for time in times if time > at]
        places = {"value"} if one.kind == "flag" or before.text in _BECAME else set[str]()
        if later and all(it.kind in {*_IN_BETWEEN, *places} for it in tokens[at + 1 : later[0]]):
            return True
    was = next((at for at, one in enumerate(tokens) if one.kind == "is" and one.text in _WAS), None)
    ends = bool(tokens) and tokens[-1].kind == "value"
    return was is not None and ends and any(was < at for at in times) and not any(named[was:])


def _is_done_then(time: Token, done: Token) -> bool:
    """Whether it is "2024年退货的": in Chinese a time stands before what was done."""
    return time.kind == "date" and done.kind == "flag" and done.text[:1] >= "\u2e80"


def may_be_either(tokens: Sequence[Token]) -> bool:
    """Whether two values may be those of which either is meant: "from Bob and Tom", of whom one buys and one sells."""
    for at, (one, both, other) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        if (one.kind, both.kind, other.kind) != ("value", "and", "value"):
            continue
        before = [it.text for it in tokens[max(at - 2, 0) : at] if it.kind == "filler"]
        if both.text in _EITHER or not _OF.isdisjoint(before):
            return True
    return False
