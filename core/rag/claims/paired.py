"""What a sentence says otherwise than one of a passage that is about the same."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from core.rag.attribution import words_of
from core.rag.claims.figures import ROMAN, VERSION, Figure
from core.rag.claims.names import SURNAMES, KnownNames, Name, is_person
from core.rag.claims.provisos import compared
from core.rag.claims.said import Reason, Said
from core.rag.claims.wording import denied, extents, is_conditional, opposites_in, turned_round
from core.rag.search.terms import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SAME = 0.72  # are there, where a word more or less turns it round
_SAME_HAN = 0.6  # as pairs of characters also span two words
_ABOUT = re.compile(
    r"(?:\b(?:about|around|approximately|nearly|almost|roughly|some|over|above|exceed\w*|more than|at least|up to"
    r"|fewer than|less than|under|below|close to|just|within|by)"
    r"|约|近|超过|不到|至少|多达|将近|大约|不足|几乎)[\s$€£¥]*\Z",
    re.IGNORECASE,
)
_OR_SO = re.compile(r"\s?(?:左右|多|余|以上|以下|上下|\+|or so|or more|or less)")
_LEAST = re.compile(r"\b(?:over|above|more than|at least|exceed\w*)[\s$€£¥]*\Z", re.IGNORECASE)
_OR_MORE = re.compile(r"\s?(?:\+|or more)")
_PASSED = 1.5  # times as much, and no longer said so
_LOOSE = 0.15
_ROUNDED = 0.06  # between a length in feet and the same in metres
_BRACKET = re.compile(r"[\s\w-]{0,20}[(（]\s?(?:about|approximately|approx\.|around|or|c\.|ca\.|~|约)?\s?")
_SHORT = 200  # letters of a sentence whose subject alone may be another one
_OF_ONE = re.compile(r"\s(?:is|was|has|will|became|ist|war|hat|wird|wurde|est|était|a|es|era|fue|è)\s")
_OF_DAYS = {"s", "workday"}
_WORDY = 5  # letters of a clause that says something of its figures
_ENDS = frozenset(",;:.!?，；：。！？")


class Alike(NamedTuple):
    """The sentences of passages that are about the same as another one.

    Args:
        said: The most alike first.
        around: These, and those before and after them.
        share: Of the other one's words, by their weight, that are in the first.
        beside: The same of its words that turn nothing round, as a fall does a rise.
    """

    said: list[Said]
    around: list[Said]
    share: float
    beside: float


def otherwise(claim: Said, near: Said, alike: Alike, figures: Sequence[Reason]) -> list[Reason]:
    """What a sentence of a passage says otherwise: these figures of the claim or, without them, what else differs."""
    found = list(figures) or _other_sign(claim, near) or _exchanged(claim, near) or _one_other_name(claim, near)
    found = found or _condition(claim, near) or _role(claim, near)
    same = _SAME_HAN if claim.is_wide else _SAME
    if not found and alike.share >= same:
        found = _other_name(claim, near, alike.around) or _wording(claim, near)
    if not found and alike.beside >= same:
        found = _opposite(claim, near)
    return found


def other_figure(claim: Said, near: Said, around: list[Said]) -> list[Reason]:
    """A figure that the passages have elsewhere, where this sentence of theirs has another one."""
    there = [figure for one in around for figure in one.told]
    same = _in_same_place(claim, near, claim.figures, near.figures)
    found = [
        Reason(one.kind, one.words, rival.words, near.number)
        for one, rival in same
        if not any(is_near(one, other, claim.plain) for other in near.figures)
    ]
    if found:
        return found
    rivals = [one for one in near.figures if not any(mine.equals(one) for mine in claim.figures)]
    for one in claim.figures:
        if any(one.equals(other) or is_near(one, other, claim.plain) for other in there):
            continue
        rival = next((other for other in rivals if is_same_kind(one, other)), None)
        if rival is not None:
            found.append(Reason(one.kind, one.words, rival.words, near.number))
    return found


def _other_sign(claim: Said, near: Said) -> list[Reason]:
    """A figure below zero where this sentence of theirs has the same one, between the same words, above it."""
    there = {(_around_signed(near.plain, one), one.number): one for one in near.figures}
    for one in claim.figures:
        other = there.get((_around_signed(claim.plain, one), one.number))
        mine, theirs = _sign(claim.plain, one), _sign(near.plain, other) if other is not None else ""
        if other is not None and mine != theirs:
            return [Reason("amount", mine + one.words, theirs + other.words, near.number)]
    return []


def _sign(text: str, one: Figure) -> str:
    """The minus that stands at a figure after a word; a hyphen between two words or figures is none."""
    found = _MINUS.search(text[max(0, one.start - 24) : one.start])
    return found[1] if found else ""


def _around_signed(text: str, one: Figure) -> tuple[str, str]:
    signed = replace(one, start=one.start - len(_sign(text, one)))
    before, _ = _between(text, signed)
    return before, _between(text, one)[1]


def _exchanged(claim: Said, near: Said) -> list[Reason]:
    """The same figures in other places, where all else is word for word the same."""
    (mine, between), (theirs, _) = _without(claim.plain, claim.figures), _without(near.plain, near.figures)
    if mine != theirs or not all(re.search(r"\w", _AND.sub("", one)) for one in between[1:-1]):
        return []
    moved = [(one, other) for one, other in zip(claim.figures, near.figures, strict=True) if not one.equals(other)]
    if len(moved) < 2 or not all(any(one.equals(other) for _, other in moved) for one, _ in moved):
        return []
    return [Reason(one.kind, one.words, other.words, near.number) for one, other in moved[:1]]


def _one_other_name(claim: Said, near: Said) -> list[Reason]:
    """A name within a sentence that is, but for this name, word for word one of theirs."""
    there = {(_without(near.plain, [one])[0], one.begins): one for one in near.names}
    for name in claim.names:
        other = there.get((_without(claim.plain, [name])[0], name.begins))
        if other is None or near.known.has(name) or (name.begins and not _is_subject(claim.plain, name, other)):
            continue
        return [Reason("name", name.words, other.words, near.number)]
    return []


def predicate(said: Said) -> str:
    """What a short sentence says of one thing, from its verb on; "" where it says no more than a word."""
    verb = _OF_ONE.search(said.plain) if len(said.plain) <= _SHORT else None
    told = said.plain[verb.start() :].casefold().strip(" .。") if verb else ""
    return told if len(words_of(told)) > 1 else ""


def _is_subject(text: str, name: Name, other: Name) -> bool:
    """Whether a sentence says more than a word of what it begins with, and of one thing: "Paris is the capital"."""
    said = _OF_ONE.match(text, name.start + len(name.words))
    return said is not None and len(words_of(text[said.end() :])) > 1 and not STOP_WORDS & {*name.parts, *other.parts}


class Rows:
    """Clauses of passages that are word for word the same but for their figures, as rows of a list are.

    Such rows are alike in all that is compared, so that a sentence may have its figure of the row beside its own.
    """

    def __init__(self, said: Iterable[Said]) -> None:
        self._forms = [(_without(one.plain, one.figures)[0], one) for one in said if len(one.figures) > 1]

    def instead(self, claim: Said) -> list[Reason]:
        """What the row that begins with the same figure has, where no sentence has all figures of the claim."""
        form = _without(claim.plain, claim.figures)[0]
        if len(claim.figures) < 2 or sum(map(str.isalpha, form)) < _WORDY:
            return []
        found: list[Reason] = []
        for other, said in self._forms:
            if all(any(mine.equals(one) for one in said.figures) for mine in claim.figures):
                return []
            at = other.find(form)
            if at < 0:
                continue
            before, after = other[:at].rstrip(), other[at + len(form) :].lstrip()
            if (before and before[-1] not in _ENDS) or (after and after[0] not in _ENDS):
                continue  # it goes on, and may say what else holds
            theirs = said.figures[other.count("\0", 0, at) :]
            moved = [(one, its) for one, its in zip(claim.figures, theirs, strict=False) if not one.equals(its)]
            if moved and moved[0][0] is not claim.figures[0]:
                mine, its = moved[0]
                found.append(Reason(mine.kind, mine.words, its.words, said.number))
        return found[:1]


def _without(text: str, left_out: Sequence[Figure | Name]) -> tuple[str, list[str]]:
    """A text with a mark in the place of each of some of its words, and what stands before, between and after them."""
    at, between = 0, list[str]()
    for one in left_out:
        between.append(text[at : one.start])
        at = one.start + len(one.words)
    between.append(text[at:])
    return "\0".join(between).casefold().strip(" .。"), between


def _other_name(claim: Said, near: Said, around: list[Said]) -> list[Reason]:
    """A name where this sentence of theirs has another one: between the same words, or of the same family."""
    beside = KnownNames(one.plain for one in around)
    others = [one for one in near.names if not one.is_noun and not claim.known.has(one)]
    names = [one for one in claim.names if not one.is_noun]
    same = _in_same_place(claim, near, names, others)
    if found := [Reason("name", one.words, rival.words, near.number) for one, rival in same if not near.known.has(one)]:
        return found
    for name in names:
        rival = next((one for one in others if set(name.parts) & set(one.parts)), None)
        if rival is not None and not beside.has(name):
            found.append(Reason("name", name.words, rival.words, near.number))
    return found or _other_person(claim, near)


def is_near(one: Figure, other: Figure, text: str) -> bool:
    """Whether a figure that is said to be about so much, rounded, or passed, means another one."""
    if one.equals(other):
        return True
    if VERSION in {one.unit, other.unit}:
        return False
    if one.bound and one.bound == other.bound:  # a term of 15 days is not about one of 14
        return False
    if one.kind == "date" or other.kind == "date" or (one.unit and other.unit and one.unit != other.unit):
        return False
    before, after = text[max(0, one.start - 14) : one.start], text[one.start + len(one.words) :][:8]
    mine, theirs = (one.value, other.value) if one.unit == other.unit else (one.number, other.number)
    if (_ABOUT.search(before) or _OR_SO.match(after)) and abs(mine - theirs) <= _LOOSE * max(abs(mine), abs(theirs)):
        return True
    is_passed = one.unit == other.unit and not other.bound and (_LEAST.search(before) or _OR_MORE.match(after))
    return bool(is_passed) and mine <= theirs <= _PASSED * mine


def is_conversion(first: Figure, second: Figure, text: str) -> bool:
    """Whether the second figure is the first one in another unit, in brackets: "50 feet (15 m)"."""
    between = text[first.start + len(first.words) : second.start]
    return bool(_BRACKET.fullmatch(between)) and abs(first.value - second.value) <= _ROUNDED * first.value


def is_same_kind(one: Figure, other: Figure) -> bool:
    """Whether one figure may stand in the place of the other."""
    if ROMAN in {one.unit, other.unit}:  # the number of a chapter is none of loaves
        return one.unit == other.unit
    return one.kind == other.kind and (
        one.unit == other.unit
        or {one.unit, other.unit} == _OF_DAYS
        or ("" in {one.unit, other.unit} and one.kind == "amount")
    )


_AND = re.compile(r"\b(?:and|or|to|und|oder|et|ou|y|o|e)\b|[和与或及到至]", re.IGNORECASE)
_MINUS = re.compile(r"(?:[^\W\d_]\s|[为是到至达约于])([-\u2212])\Z")  # in Chinese no blank; "长征-5号" has a hyphen
_BEFORE = re.compile(r"(?:[^\W\d_\u4e00-\u9fff]+|[\u4e00-\u9fff]{1,2}|\A|[^\w\s])\s?\Z")
_AFTER = re.compile(r"\s?(?:[^\W\d_\u4e00-\u9fff]+|[\u4e00-\u9fff]{1,2}|\Z|[^\w\s])")

_Place = TypeVar("_Place", Figure, Name)


def _in_same_place(
    claim: Said, near: Said, mine: Sequence[_Place], theirs: Sequence[_Place]
) -> Iterator[tuple[_Place, _Place]]:
    """What stands between the same words, once in each."""
    there = {_between(near.plain, one): one for one in reversed(theirs)}
    for one in mine:
        other = there.get(_between(claim.plain, one))
        if other is not None and all(_between(claim.plain, one)):
            yield one, other


def _between(text: str, one: Figure | Name) -> tuple[str, str]:
    """The word before and the word after."""
    before = _BEFORE.search(text[max(0, one.start - 24) : one.start])
    after = _AFTER.match(text, one.start + len(one.words))
    return before[0].strip().casefold() if before else "", after[0].strip().casefold() if after else ""


def _other_person(claim: Said, near: Said) -> list[Reason]:
    """A person in Chinese, where nothing else differs: such names have no sign of their own."""
    mine, theirs = claim.plain.strip("。. "), near.plain.strip("。. ")
    start = _same_letters(mine, theirs)
    end = _same_letters(mine[start:][::-1], theirs[start:][::-1])
    if start and mine[start - 1] in SURNAMES:
        start -= 1  # the same surname
    name, other = mine[start : len(mine) - end], theirs[start : len(theirs) - end]
    return [Reason("name", name, other, near.number)] if is_person(name) and is_person(other) else []


def _same_letters(one: str, other: str) -> int:
    """With how many equal letters two texts begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _condition(claim: Said, near: Said) -> list[Reason]:
    """A condition that the sentence turns round, or what depends on it."""
    of_case = compared(claim.plain, near.plain)
    if not isinstance(of_case, tuple):
        return []
    return _denial(claim, near) or [Reason("condition", *of_case, near.number)]


def _denial(claim: Said, near: Said) -> list[Reason]:
    mine, theirs = claim.plain, near.plain
    both = denied(mine, theirs) if is_conditional(mine) == is_conditional(theirs) else None
    return [Reason("denial", *both, near.number)] if both else []


def _role(claim: Said, near: Said) -> list[Reason]:
    turned = turned_round(claim.plain, near.plain)
    return [Reason("role", *turned, near.number)] if turned else []


def _wording(claim: Said, near: Said) -> list[Reason]:
    """What turns the sentence round: a denial, an opposite, "all" for "some"."""
    mine, theirs = claim.plain, near.plain
    if compared(mine, theirs) is False and (found := _denial(claim, near)):
        return found
    if found := _opposite(claim, near):
        return found
    if both := extents(mine, theirs):
        return [Reason("extent", *both, near.number)]
    return []


def _opposite(claim: Said, near: Said) -> list[Reason]:
    both = opposites_in(claim.plain, near.plain)
    return [Reason("opposite", *both, near.number)] if both else []
