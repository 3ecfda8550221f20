"""Conditions: what holds if something is so, and if it is not, held against what another sentence says of the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from core.rag.attribution import words_of
from core.rag.claims.lists import listed
from core.rag.claims.wording import HAN_DENIAL, opposites_in
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Iterator

_Link = Literal["if", "unless", "only", "even"]

_LINKS: Final[tuple[_Link, ...]] = ("even", "only", "unless", "if")
_MOST = 600  # characters of a sentence that are looked at
_SAME_WORDS = 0.5  # of the fewer words of two conditions, or of what depends on them
_CUE: Final = re.compile(
    r"(?P<even>\beven (?:if|when|where)\b|\b(?:regardless of )?whether or not\b|\bregardless of whether\b)"
    r"|(?P<only>\bonly (?:if|when|where|after|once)\b)"
    r"|(?P<unless>\bunless\b|\bexcept (?:if|when|where|in case)\b)"
    r"|(?P<if>\bif\b|\bwhen\b|\bprovided(?: that)?\b|\bas long as\b|\bso long as\b|\bin case\b|\bon condition that\b)",
    re.IGNORECASE,
)
_HAN_CUE: Final = re.compile(
    r"(?P<even>即使|即便|哪怕|无论是否|不论是否|不管是否)|(?P<only>只有|仅在|仅当|只在|唯有|仅限)|(?P<unless>除非)"
    r"|(?P<if>如果|假如|倘若|要是|若(?!干)|如(?!下|何|此)|凡是?|当(?!时|天|日|年|月|地|事))"
)
_HAN_WHEN: Final = re.compile(r"(?:\A|[，；,;])(?P<clause>[^，；。,;]{3,30}?)(?:时|的|的话|的情况下)[，,]")
_STOP = re.compile(r"[,;:.!?](?=\s|$)")
_HAN_STOP = re.compile(r"[，；。！？,;!?]|时(?=才|方|[，。,])|的情况下|的话|才|方可")
_DENIAL = re.compile(
    r"\b(?:not|no|never|cannot|nobody|none|neither|nothing)\b(?! (?:only|just|later|more|less|fewer|longer))|n['’]t\b",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\bonly\b|[仅只](?=[有在能可])", re.IGNORECASE)


class Proviso(NamedTuple):
    """What a sentence says of a case.

    Args:
        link: What kind of condition it is.
        words: The words that say so.
        case: The content words of the condition.
        matter: Those of what depends on it.
        then: 1 if that holds where the condition is so, -1 if it does not, 0 if nothing is said.
        otherwise: The same, where it is not so.
        text: The condition as it stands there.
    """

    link: _Link
    words: str
    case: frozenset[str]
    matter: frozenset[str]
    then: int
    otherwise: int
    text: str


def _provisos(sentence: str) -> Iterator[Proviso]:
    """The conditions of a sentence."""
    wide = 3 * ideographs(sentence) > len(sentence)
    cue_of, stop = (_HAN_CUE, _HAN_STOP) if wide else (_CUE, _STOP)
    for cue in cue_of.finditer(sentence):
        end = stop.search(sentence, cue.end())
        clause = sentence[cue.end() : end.start() if end else len(sentence)]
        before, after = sentence[: cue.start()].strip(" ,，;；"), sentence[end.end() if end else len(sentence) :]
        matter = before if _says(before) else after
        link: _Link = next(name for name in _LINKS if cue[name])
        if link == "if" and _ONLY.search(matter):
            link = "only"
        yield _made(link, sentence[cue.start() : end.start() if end else len(sentence)], clause, matter)
    if wide and not _HAN_CUE.search(sentence) and (found := _HAN_WHEN.search(sentence)):
        yield _made("if", found[0].strip("，；,;"), found["clause"], sentence[found.end() :])


def _says(text: str) -> bool:
    return len(words_of(text)) > 1 or _is_denied(text)


def _made(link: _Link, words: str, clause: str, matter: str) -> Proviso:
    holds = -1 if _is_denied(matter) else 1
    then, otherwise = {
        "if": (holds, 0),
        "unless": (-holds, holds),
        "only": (holds, -holds),
        "even": (holds, holds),
    }[link]
    if _is_denied(clause):
        then, otherwise = otherwise, then
    case = _DENIAL.sub(" ", HAN_DENIAL.sub(" ", clause))
    return Proviso(link, words.strip(), frozenset(words_of(case)), frozenset(words_of(matter)), then, otherwise, clause)


def _is_denied(text: str) -> bool:
    return len(_DENIAL.findall(text)) % 2 == 1 or bool(HAN_DENIAL.search(text))


# ---- with and without something

_BARE = listed(
    "a an the any prior previous further written advance additional express explicit separate special your our my his "
    "her its their such full due proper giving having receiving"
)
_WITHOUT = re.compile(r"\bwithout\b(?P<after>(?: [a-z'-]+){1,5})", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_WITH = re.compile(
    r"\b(?:with|upon|on|after|subject to|giv(?:es?|ing)|requires?|needs?|must|by)\b(?: [a-z'-]+){0,4}? \Z",
    re.IGNORECASE,
)
_NEEDED = re.compile(
    r"(?: \w+){0,3} (?:is|are|must be|has to be) (?:required|needed|necessary|given|obtained)", re.IGNORECASE
)
_NOT_NEEDED = re.compile(
    r"(?: \w+){0,3} (?:is|are) not (?:required|needed|necessary)|(?: \w+){0,3} need not", re.IGNORECASE
)
_NO = re.compile(r"\b(?:no|not|without|never)\b(?: [a-z'-]+){0,4}? \Z", re.IGNORECASE)
_HAN_WITHOUT = re.compile(
    r"(?:未经|不经|无需|无须|不需要?|不必|不用|没有|未)(?P<thing>(?:[一-鿿]{2})?[一-鿿]{2}?)(?=即可|便可|就可|就能|可|也|的情况下|[，,]|不|而|进)"
)
_HAN_PART = re.compile(r"[，；。,;]")
_HAN_WITH = "(?:必须|须|需要|需|应当|应|经|凭|在|有)(?:事先|提前|先|预先)?"


def _without(sentence: str) -> Iterator[tuple[str, str, bool]]:
    """What a sentence says can be lacking, as its words and as the thing, and whether it needs it after all."""
    for found in _WITHOUT.finditer(sentence):
        thing = next((word for word in found["after"].split() if word.casefold() not in _BARE), "")
        if thing:
            others = sentence[: found.start()] + sentence[found.end() :]
            yield f"without {thing}", thing, _is_denied(others)
    for found in _HAN_WITHOUT.finditer(sentence):
        yield found[0], found["thing"], bool(HAN_DENIAL.search(_around(sentence, found)))


def _around(sentence: str, found: re.Match[str]) -> str:
    """What stands around words up to one clause further on either side: what comes later is of something else."""
    before = _HAN_PART.split(sentence[: found.start()])[-2:]
    after = _HAN_PART.split(sentence[found.end() :])[:2]
    return "，".join([*before, *after])


def _with(sentence: str, thing: str) -> str:
    """The words by which a sentence asks for a thing; "" where it does not."""
    if ideographs(thing):
        core = thing.removeprefix("事先").removeprefix("提前")
        found = re.search(rf"(?<![未不无]){_HAN_WITH}{re.escape(core)}", sentence)
        return found[0] if found else ""
    stem = words_of(thing)
    for word in _WORD.finditer(sentence):
        if words_of(word[0]) != stem or not stem:
            continue
        before, after = sentence[max(0, word.start() - 60) : word.start()], sentence[word.end() :][:60]
        if _NO.search(before) or _NOT_NEEDED.match(after):
            continue
        if (asked := _WITH.search(before)) is not None:
            return f"{asked[0]}{word[0]}"
        if (needed := _NEEDED.match(after)) is not None:
            return f"{word[0]}{needed[0]}"
    return ""


def compared(mine: str, theirs: str) -> tuple[str, str] | bool:
    """The condition of a sentence, and that of another one which says otherwise of the same.

    Returns:
        The words of both; True where they agree in other words, and False where they have no condition in common.
    """
    mine, theirs = mine[:_MOST], theirs[:_MOST]
    agrees = False
    others = list(_provisos(theirs))
    for one in _provisos(mine):
        for other in others:
            if not (_is_same(one.case, other.case) and _is_same(one.matter, other.matter)):
                continue
            if opposites_in(one.text, other.text):
                continue
            if one.then * other.then < 0 or one.otherwise * other.otherwise < 0:
                return one.words, other.words
            agrees = agrees or one.link != other.link  # a denial may make up for that
    return _lacking(mine, theirs) or agrees


def _lacking(mine: str, theirs: str) -> tuple[str, str] | bool:
    own, other = list(_without(mine)), list(_without(theirs))
    agrees = False
    for words, thing, needs in own:
        same = next((one for one in other if words_of(one[1]) == words_of(thing)), None)
        if same is not None:
            if same[2] != needs:
                return words, same[0]
            agrees = True
        elif asked := _with(theirs, thing):
            if not needs:
                return words, asked
            agrees = True
    for words, thing, needs in other:
        if not any(words_of(one[1]) == words_of(thing) for one in own) and (asked := _with(mine, thing)):
            if not needs:
                return asked, words
            agrees = True
    return agrees


def _is_same(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared > 0 and shared >= _SAME_WORDS * min(len(one), len(other)) and 2 * shared >= max(len(one), len(other))
