"""Questions that go on from the one before, "and in the West?", and the whole question that such a one stands for.

One condition of the question before is exchanged where it has exactly one on the same column; where it has none, it
gets one more if that is sure to be meant. The whole question is then read as any other: it has to say the same as the
one before, but for that condition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from core.rag.german_words import is_german
from core.rag.parsers.base import is_ideograph
from core.rag.question_tokens import tokens_of
from core.rag.row_conditions import conditions_of
from core.rag.row_flags import with_flags
from core.rag.row_questions import row_question
from core.rag.top_questions import for_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.question_tokens import Vocabulary
    from core.rag.question_words import Token
    from core.rag.row_conditions import Condition
    from core.rag.row_questions import RowQuestion

_LONGEST: Final = 80  # letters of such a question
_MOST: Final = 4  # of them in a row
_ENGLISH: Final = re.compile(
    r"\W*(?:(?:(?:ok(?:ay)?|and|but|so|now|then)\b[\s,]*)+(?:(?:what|how) about\b|(?:the )?same for\b)?"
    r"|(?:what|how) about\b|(?:the )?same for\b|(?=(?:in|for|from|on|at|with)\b[^?]{1,30}\?\W*$))\s*"
    r"(?P<count>how many\b(?: (?:are|were)\b)?(?: there\b)?)?(?P<rest>.*?)(?: ones?)?\W*",
    re.IGNORECASE | re.DOTALL,
)
_HOW_IT_IS: Final = r"(?:was ist mit|wie (?:ist|sieht|steht) es(?: aus)? (?:mit|bei))\b"
_GERMAN: Final = re.compile(
    rf"\W*(?:(?:(?:und|aber|ok(?:ay)?)\b[\s,]*)+(?:{_HOW_IT_IS})?|{_HOW_IT_IS}"
    r"|(?=(?:in|im|für|aus|bei|am|mit)\b[^?]{1,30}\?\W*$))\s*"
    r"(?P<count>wie ?viele\b(?: (?:sind|waren)\b)?(?: es\b)?)?(?P<rest>.*?)\W*",
    re.IGNORECASE | re.DOTALL,
)
_CHINESE: Final = re.compile(
    r"\W*(?:(?:那么?|还有|以及|而|至于)[，,\s]*(?P<rest>.+?)|(?P<alone>[^？?]+?))(?:的)?(?:呢|怎么样|如何)\W*"
    r"|\W*(?:那么?|还有)[，,\s]*(?P<of>[^？?]+?)(?P<count>有?(?:多少|几)[个位名条笔份张家项]?)(?:呢)?\W*",
    re.DOTALL,
)
_OWN: Final = re.compile(
    r"\b(?:what|who|why|when|where|which|whose|how|is|are|does|do|did|can|could|will|would|was|were|has|have"
    r"|wer|warum|wann|wo|welche[rsnm]?|wie|ist|sind|hat|haben|kann|wird|war|waren)\b|什么|谁|为什么|怎|哪|多少|几|吗",
    re.IGNORECASE,
)
_BACK: Final = re.compile(
    r"\b(?:these|those|them|they|their|theirs|its|such|the same|of which|the others?|the rest)\b"
    r"|(?<!are )(?<!is )(?<!was )(?<!were )\bthere\b(?! (?:is|are|was|were)\b)"
    r"|\b(?:davon|darunter|dort|deren|diese[rnms]?|solche[rnms]?|ihre?[rnms]?|dieselbe\w*|übrige\w*)\b"
    r"|其中|它们|他们|她们|那些|这些|那里|这里的|该地区|其余|剩下",
    re.IGNORECASE,
)
_AND: Final = re.compile(r"\W*(?:and|but|also|und|aber|那么?|还有|而且)(?:\b|(?<=[\u4e00-\u9fff]))", re.IGNORECASE)
_SAID: Final = frozenset({"value", "number", "date", "quoted"})


@dataclass(frozen=True, slots=True)
class Fragment:
    """What a question that goes on puts in the place of something.

    Args:
        said: "in the West" of "and in the West?".
        counts: Whether it asks how many.
    """

    said: str
    counts: bool = False


def fragment_of(question: str) -> Fragment | None:
    """What a question that goes on puts in the place of something; `None` for any other question."""
    if len(question) > _LONGEST:
        return None
    for pattern in (_ENGLISH, _GERMAN, _CHINESE):
        if (found := pattern.fullmatch(question)) is None:
            continue
        parts = found.groupdict()
        rest = (parts.get("rest") or parts.get("alone") or parts.get("of") or "").strip()
        if rest and not _OWN.search(rest):
            return Fragment(rest, bool(parts.get("count")))
    return None


def goes_on(question: str) -> bool:
    """Whether a question asks what the one before asked, of something else: "and in the West?", "那西部呢？"."""
    return fragment_of(question) is not None


def refers_back(question: str) -> bool:
    """Whether a question may be about what was spoken of before alone: "how many of these orders are open?"."""
    return bool(_BACK.search(question) or _AND.match(question))


def gone_on(question: str, earlier: Sequence[str]) -> tuple[str, list[Fragment]]:
    """The last question that does not go on, and what those after it put in the place of something, oldest first.

    Args:
        earlier: The questions before, oldest first.

    Returns:
        "" where there are too many of them, or none came before.
    """
    fragments: list[Fragment] = []
    before = list(earlier)
    while fragment := fragment_of(question):
        fragments.insert(0, fragment)
        if not before or len(fragments) > _MOST:
            return "", []
        question = before.pop()
    return question, fragments


def exchanged(before: str, fragment: Fragment, known: Vocabulary) -> str:
    """The question before with one of its conditions exchanged, or with one more; "" where that is not clear."""
    tokens = tokens_of(fragment.said, known, german=is_german(before))
    kept = [one for one in tokens or [] if one.kind != "filler"]
    flagged = with_flags(kept, known)
    conditions = None if flagged is None else conditions_of(flagged, known)
    if conditions is None or len(conditions) != 1:
        return ""
    (new,) = conditions
    former = row_question(before, known, of_all=True)
    if former is None or (fragment.counts and former.asks != "count") or new.operator == "<>":
        return ""  # "not in the East", and in the West: in the West, or not in the West
    old = [one for one in former.conditions if one.column == new.column]
    if not old:
        return _with_one_more(before, fragment, new, former, known)
    said = [one for one in kept if one.kind in _SAID]
    if len(old) != 1 or old[0].operator != new.operator or len(said) != 1:
        return ""
    wanted = replace(former, conditions=tuple(new if one is old[0] else one for one in former.conditions))
    text = " ".join(before.split())
    there = tokens_of(for_one(before)[0], known) or []
    found = {
        told
        for one in there
        if one.kind in _SAID and (told := _in_place(text, _written(one), _written(said[0])))
        if row_question(told, known) == wanted
    }
    return found.pop() if len(found) == 1 else ""


def _with_one_more(before: str, fragment: Fragment, new: Condition, former: RowQuestion, known: Vocabulary) -> str:
    """The question before under one more condition: "how many were returned?", "and in the South?".

    Only where it asked of all, or of what a column of yes and no or of numbers says: "how many are from the East?",
    "and for lamps?" may ask for all lamps, or for those from the East.
    """
    if any(known.kinds[one.column] != "number" and one.column not in known.flags for one in former.conditions):
        return ""
    text = " ".join(before.split()).rstrip(" ?？.。!！")
    is_chinese = any(map(is_ideograph, text))
    told = f"{fragment.said}{text}？" if is_chinese else f"{text} {fragment.said}?"
    read = row_question(told, known)
    wanted = {*former.conditions, new}
    is_same = read is not None and replace(read, conditions=()) == replace(former, conditions=())
    return told if read is not None and is_same and {*read.conditions} == wanted else ""


def _written(token: Token) -> str:
    return token.text if token.kind == "number" else token.raw


def _in_place(text: str, old: str, new: str) -> str:
    """The text with something in the place of what stands in it once; "" where it stands there several times."""
    if not old or not new:
        return ""
    begins = r"(?<![^\W\u2e80-\U0010ffff])" if old[0] < "\u2e80" else ""
    ends = r"(?![^\W\u2e80-\U0010ffff])" if old[-1] < "\u2e80" else ""
    told, times = re.subn(begins + re.escape(old) + ends, lambda _: new, text, flags=re.IGNORECASE)
    return told if times == 1 else ""
