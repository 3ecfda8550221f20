"""Words by which a passage limits what it says: exceptions, conditions, and cases with a figure of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_CLAUSES = 4
_LIMITS: Final = re.compile(
    r"\b(?:except(?:ing|ions?)?\b(?: for| that| if| where| when| in| to)?|with the exceptions? of|unless\b"
    r"|provided that|providing that|on (?:the )?condition that|(?<!not )only (?:if|when|where|after|once|for|to|with)\b"
    r"|excluding\b|excludes?\b|excluded\b|other than\b|apart from\b|aside from\b|save for\b"
    r"|subject to\b|as long as\b|so long as\b"
    r"|in the absence of\b|barring\b|but (?:not(?! only)|only|no|never)\b|(?:does|do|shall|will) not apply"
    r"|not applicable|(?:is|are) not (?:covered|insured|included|refundable|refunded|eligible|valid|allowed|permitted)"
    r"|(?:does|do) not (?:cover|include|pay|insure|refund|qualify)|limited to\b|restricted to\b|at the latest\b"
    r"|deductible)",
    re.IGNORECASE,
)
_HAN_LIMITS: Final = re.compile(
    r"除非|除外|除(?:了)?(?=[^，。；！？]{1,20}(?:以外|之外|外))|不包括|不包含|不含|不适用|例外|仅限|仅适用|限于"
    r"|(?:只有|仅)(?=[^，。；！？]{1,30}，?(?:才|方可|方能))|的前提|为前提|为条件|为限"
    r"|(?:但是|但|不过|然而)，?(?=[^，。；！？]{0,14}(?:不(?!仅|但|只|过|久|同|断|少)|除|须|必须|仅|只|免))"
    r"|免赔|不予|不(?:承保|赔付|赔偿|退还|享受|计入|负责)|否则|最迟"
)
_AS_WELL = re.compile(r"\b(?:also|as well|too|in addition)\b|[还也又亦均都]", re.IGNORECASE)
_INCLUSIVE = re.compile(r"other than|apart from|aside from|除", re.IGNORECASE)
_STOPS = re.compile(r"[,;:.!?)](?=\s|$)|\s[–—-]+\s")
_HAN_STOPS = re.compile(r"[，；。！？）]")
_FEWEST, _FEWEST_HAN = 6, 2  # characters of a clause, before a comma ends it
_AFTER = 200  # characters in which it is looked for whether something is added


class Clause(NamedTuple):
    """A part of a sentence that limits it.

    Args:
        cue: The words that say so.
        text: These and what follows, up to where the sentence goes on.
    """

    cue: str
    text: str


def limits_in(sentence: str) -> Iterator[Clause]:
    """The exceptions and conditions of a sentence, at most four."""
    wide = _is_wide(sentence)
    pattern, stops, fewest = (_HAN_LIMITS, _HAN_STOPS, _FEWEST_HAN) if wide else (_LIMITS, _STOPS, _FEWEST)
    found, passed = 0, 0
    for cue in pattern.finditer(sentence):
        if cue.start() < passed:
            continue
        end = stops.search(sentence, max(cue.end(), cue.start() + fewest))
        passed = end.start() if end else len(sentence)
        if _INCLUSIVE.match(cue[0]) and _AS_WELL.search(sentence, cue.end(), cue.end() + _AFTER):
            continue  # 除了甲，还有乙: it adds, and takes nothing away
        begin = _clause_start(sentence, cue.start()) if wide else cue.start()
        yield Clause(cue[0], sentence[begin:passed])
        found += 1
        if found == _MOST_CLAUSES:
            return


def _clause_start(sentence: str, at: int) -> int:
    """Where the clause begins: in Chinese, what is excepted may stand before the word that excepts it."""
    return max((sentence.rfind(stop, 0, at) for stop in "，；。！？（"), default=-1) + 1


_NEAR: Final = re.compile(
    r"\W*(?:\d[\d.]*\s+)?(?:this|these|it|they|that|those|however|but|exceptions?|such|otherwise|nor|neither|in these|"
    r"in this|in such|in that|all of this|the above)\b",
    re.IGNORECASE,
)
_HAN_NEAR: Final = re.compile(r"\W*(?:\d[\d.]*\s*)?(?:这|该|上述|以上|此|其|但|不过|然而|例外|否则|除|前述|前款)")


def points_back(sentence: str) -> bool:
    """Whether a sentence begins with a word that points to the one before it."""
    return bool((_HAN_NEAR if _is_wide(sentence) else _NEAR).match(sentence))


_CASE: Final = re.compile(
    r"\b(?:for(?! (?:each|every|all|any|example|instance)\b)|if|when|where|after|in (?:the )?(?:case|event) of"
    r"|in cases?|during|above|below|over|under)\s",
    re.IGNORECASE,
)
_HAN_CASE: Final = re.compile(r"造成的|引起的|导致的|如果|若|如遇|[^，。]{1,16}[时的者]，|情况下|情形|破碎|超过|满")
_PRESENT: Final = re.compile(
    r"\b(?:is|are|amounts? to|applies|apply|must|may|will|shall|can|cannot|costs?|rises?|falls?|pays?|takes?|lasts?"
    r"|has|have|gets?|receives?)\b",
    re.IGNORECASE,
)


def is_case(sentence: str) -> bool:
    """Whether a sentence speaks of one case among others."""
    return bool((_HAN_CASE if _is_wide(sentence) else _CASE).search(sentence))


def is_rule(sentence: str) -> bool:
    """Whether a sentence may say what holds, rather than what once was; in Chinese every one may."""
    return _is_wide(sentence) or bool(_PRESENT.search(sentence))


_NONE: Final = re.compile(
    r"\b(?:no|without(?: any| a)?|free of|exempt from(?: the)?)\s+((?:[a-z]+\s+){0,1}[a-z]+)", re.IGNORECASE
)
_HAN_NONE: Final = re.compile(r"(?:没有|无需|无须|不需|不必|不收|免收|免除|免交|免付|无)([\u4e00-\u9fff]{2,6})")


def denied_things(sentence: str) -> list[str]:
    """What a sentence says there is none of."""
    pattern = _HAN_NONE if _is_wide(sentence) else _NONE
    return [found[1] for found in pattern.finditer(sentence)][:_MOST_CLAUSES]


def _is_wide(text: str) -> bool:
    return 3 * ideographs(text) > len(text)
