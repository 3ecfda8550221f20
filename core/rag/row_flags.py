"""Columns of yes and no that are called as what they tell, "returned": which words of a question mean their yes.

"How many orders were returned?", "the total amount of returned orders", "没有退货的订单有多少？".
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from core.rag.count_questions import plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.rag.question_tokens import Vocabulary
    from core.rag.question_words import Token

_PAIRS: Final = (
    ("yes", "no"), ("y", "n"), ("true", "false"), ("ja", "nein"), ("j", "n"), ("wahr", "falsch"), ("是", "否"),
    ("1", "0"), ("1.0", "0.0"),
)  # fmt: skip
_BEFORE: Final = re.compile(r"^(?:is|was|were|has been|has|ist|wurde|war|是否已经?|是否|已经|已)\s*(?=.)")
_AFTER: Final = re.compile(r" ?\((?:yes|y|ja|j|是) ?[/|] ?(?:no|n|nein|否)\)$|(?<=.)与否$")
_COMPARED: Final = frozenset({"value", "number", "date", "quoted", "compare", "contains", "between"})
_OTHERWISE: Final = frozenset({"each", "figure", "most", "which"})  # a column that follows is not what is told of rows
_ROWS: Final = frozenset({"thing", "subject", "column"})
_HAN: Final = "\u3400"
_LATIN, _LATIN_ENDS = r"(?<![^\W\u2e80-\U0010ffff])", r"(?![^\W\u2e80-\U0010ffff])"  # no such letter is beside it


def flag_names(name: str) -> frozenset[str]:
    """What is said of a row where a column of yes and no is called so: "is returned" tells whether it is returned.

    Args:
        name: As names are compared, in lower case.
    """
    bare = _AFTER.sub("", name.rstrip(" ?？"))
    short = _BEFORE.sub("", bare)
    names = {bare if bare == short or bare[0] < _HAN else short, short}
    if short and short[0] >= _HAN:
        names |= {f"已{short}", f"已经{short}"}
    return frozenset(names - {""})


def yes_and_no(values: Iterable[object]) -> tuple[tuple[str | int | float, ...], tuple[str | int | float, ...]] | None:
    """The spellings of yes and of no among all values of a column; `None` where it holds anything else."""
    there = [one for one in values if isinstance(one, str | int | float)]
    said = {str(one).strip().casefold() for one in there}
    for yes, no in _PAIRS:
        if said and said <= {yes, no}:
            return tuple(_those(there, yes)), tuple(_those(there, no))
    return None


def _those(values: Iterable[str | float], said: str) -> list[str | int | float]:
    return [one for one in values if str(one).strip().casefold() == said]


def says_flag(column: str, samples: Iterable[str], question: str) -> bool:
    """Whether a question has in it what a column says that holds yes or no, perhaps besides other words.

    Args:
        column: Its name.
        samples: Some of its values.
    """
    if not any(one.strip().casefold() in pair for one in samples for pair in _PAIRS):
        return False
    text = plain_name(question)
    return any(re.search(rf"{_LATIN}{re.escape(name)}s?{_LATIN_ENDS}", text) for name in flag_names(plain_name(column)))


def with_flags(tokens: Sequence[Token], known: Vocabulary) -> list[Token] | None:
    """The tokens of a question, those of them as flags that mean the yes of a column.

    `None` where one may mean that, or a value of another column: where a state may be "returned", too.
    """
    if not known.flags:
        return list(tokens)
    said = [at for at, one in enumerate(tokens) if one.kind != "filler"]
    found = list(tokens)
    for place, at in enumerate(said):
        one = tokens[at]
        if one.kind == "value" and one.text in known.flag_names:
            before = [tokens[at] for at in said[:place] if tokens[at].kind not in {"is", "not"}]
            if not before or before[-1].column not in known.holds(one.text):
                return None
        if one.kind != "column" or one.column not in known.flags or one.text not in known.flag_names:
            continue
        kind = tokens[said[place - 1]].kind if place else ""
        after = [tokens[next_] for next_ in said[place + 1 : place + 3]]
        if _is_compared(one, after, known):
            continue
        if kind in _OTHERWISE and not (kind == "which" and after and after[0].kind in _ROWS):
            continue
        found[at] = replace(one, kind="flag")
    return found


def _is_compared(column: Token, after: Sequence[Token], known: Vocabulary) -> bool:
    """Whether something is said of the column itself: "returned is yes", and not "returned in the East"."""
    first = next((one for one in after[:1] if one.kind not in {"is", "not"}), None) or next(iter(after[1:]), None)
    if first is None or (first is not after[0] and first.kind not in _COMPARED):
        return False
    is_other = first is after[0] and first.kind == "value" and column.column not in known.holds(first.text)
    return first.kind in _COMPARED and not is_other
