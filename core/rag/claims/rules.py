"""Rules that speak against a sentence: what it names, counts, dates, denies or turns round, and no passage does."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from core.rag.attribution import words_of
from core.rag.claims.asked import Places
from core.rag.claims.bound import Tallies
from core.rag.claims.figures import MOST_TEXT, OF_DATES, ROMAN, Figure, figures_of
from core.rag.claims.makers import Clause, clauses_of, misattributed
from core.rag.claims.names import SURNAMES, KnownNames, Name, is_person, names_of
from core.rag.claims.provisos import compared
from core.rag.claims.reckoned import Times, dates_of, times_of
from core.rag.claims.romans import Part, parts_in
from core.rag.claims.wording import denied, extents, is_conditional, opposites_in, turned_round, turns
from core.rag.prose import ideographs, sentence_spans

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import date

    from core.rag.document import Passage

ReasonKind: TypeAlias = Literal["amount", "date", "name", "role", "denial", "opposite", "extent", "condition", "mark"]


class Reason(NamedTuple):
    """What speaks against a sentence.

    Args:
        kind: `amount`, `date` and `name`: no passage has it, or the passage has another one in its place. `role`: who
            does it and to whom is the other way round. `denial`: one of both denies what the other says. `opposite`:
            it says "rose" where the passage says "fell". `extent`: it says "all" where the passage says "some".
            `condition`: it says "if" where the passage says "unless", or "without" where it says "with". `mark`: a mark
            of it leads to no passage.
        words: The words of the sentence.
        rival: What the passage says instead; "" where nothing stands in the place.
        passage: The number of that passage, from 1; 0 where none is like the sentence.
    """

    kind: ReasonKind
    words: str
    rival: str = ""
    passage: int = 0


_ALIKE = 0.6  # of a sentence's words, by their weight, are in the sentence of a passage that is about the same
_SAME = 0.72  # are there, where a word more or less turns it round
_SAME_HAN = 0.6  # as pairs of characters also span two words
_TIED = 0.06  # and those are as much alike
_MOST_TIED = 4
_LONGEST = 4_000  # characters of a sentence
_MOST_NAMES = 40
_MOST_SENTENCES = 10_000  # of all passages that are compared; figures and names are looked for in all
_MOST_ATTRIBUTED = 1_000  # sentences in which it is looked for who does what
_MOST_REASONS = 4
_ABOUT = re.compile(
    r"(?:\b(?:about|around|approximately|nearly|almost|roughly|some|over|above|exceed\w*|more than|at least|up to"
    r"|fewer than|less than|under|below|close to|just|within|by)"
    r"|约|近|超过|不到|至少|多达|将近|大约|不足|几乎)[\s$€£¥]*\Z",
    re.IGNORECASE,
)
_OR_SO = re.compile(r"\s?(?:左右|多|余|以上|以下|上下|\+|or so|or more|or less)")
_OF_SECTION = re.compile(r"\d{1,3}(?:\.\d{1,3})+\s")
_LOOSE = 0.15
_OF_DAYS = {"s", "workday"}
_PAREN = re.compile(r"\[\d{1,3}\]")


@dataclass(frozen=True)
class Said:
    """A sentence, with what the rules look at; each is worked out when it is first needed."""

    text: str
    number: int = 0

    @cached_property
    def plain(self) -> str:
        """Without marks, in plain letters."""
        return unicodedata.normalize("NFKC", _PAREN.sub(" ", self.text))

    @cached_property
    def words(self) -> frozenset[str]:
        """Its content words."""
        return frozenset(words_of(self.text))

    @cached_property
    def is_wide(self) -> bool:
        """Whether it is in Chinese."""
        return 2 * ideographs(self.text) > len(self.text)

    @cached_property
    def figures(self) -> list[Figure]:
        """Its figures and dates."""
        return figures_of(self.plain)

    @cached_property
    def names(self) -> list[Name]:
        """Its names."""
        return names_of(self.plain)[:_MOST_NAMES]

    @cached_property
    def known(self) -> KnownNames:
        """The words in which names are looked for."""
        return KnownNames([self.plain])


@dataclass(frozen=True)
class _Work:
    """What stands above a passage, and its text: which chapters and articles they are of."""

    about: str
    text: str

    @cached_property
    def titles(self) -> list[Part]:
        """The parts with Roman numerals that stand above it, or begin a line in it."""
        begun = (one for one in parts_in(self.text) if not self.text[: one.begins].rpartition("\n")[2].strip(" \t#*_"))
        return [*parts_in(self.about), *begun]

    @cached_property
    def numbers(self) -> set[float]:
        """All numbers there that may be one of a part."""
        return {one.number for text in (self.about, self.text) for one in figures_of(text) if one.unit in {"", ROMAN}}


def passage_sentences(passages: Sequence[Passage]) -> list[list[str]]:
    """The sentences of each passage, as many as are compared in all; empty ones among them."""
    found: list[list[str]] = []
    left = _MOST_SENTENCES
    for one in passages:
        text = one.text[:MOST_TEXT]
        found.append([text[a:b].strip() for a, b in sentence_spans(text)[:left]])
        left -= len(found[-1])
    return found


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


class Rules:
    """Holds sentences against passages.

    Args:
        passages: Numbered from 1.
        also: What else may be said without a passage: the question, results of tools.
        sentences: Those of each passage, where they are known.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        also: Sequence[str] = (),
        sentences: Sequence[Sequence[str]] | None = None,
    ) -> None:
        abouts = [f"{one.heading}\n{one.document}\n{one.page or ''}" for one in passages]
        inside = sentences if sentences is not None else passage_sentences(passages)
        self._said = [Said(part, number) for number, each in enumerate(inside, 1) for part in each if part]
        self._documents = [one.document for one in passages]
        self._proofs = [one.text for one in passages]
        self._works = [
            _Work(unicodedata.normalize("NFKC", about), unicodedata.normalize("NFKC", text[:MOST_TEXT]))
            for about, text in zip(abouts, self._proofs, strict=True)
        ]
        self._texts = [*self._proofs, *abouts, *also]
        self._compared: dict[str, Alike] = {}

    @cached_property
    def _holding(self) -> dict[str, list[int]]:
        """Where each word stands."""
        found: dict[str, list[int]] = {}
        for at, said in enumerate(self._said):
            for word in said.words:
                found.setdefault(word, []).append(at)
        return found

    @cached_property
    def _known(self) -> KnownNames:
        return KnownNames(self._texts)

    @cached_property
    def _figures(self) -> dict[float, list[Figure]]:
        """All figures of the passages, by their number."""
        found: dict[float, list[Figure]] = {}
        for text in dict.fromkeys(self._texts):
            for one in figures_of(text):
                same = found.setdefault(one.number, [])
                if all((one.unit, one.value, one.bound) != (other.unit, other.value, other.bound) for other in same):
                    same.append(one)
        return found

    @cached_property
    def _all_figures(self) -> list[Figure]:
        return [one for same in self._figures.values() for one in same][:2000]

    @cached_property
    def _dates(self) -> dict[str, list[date]]:
        """The days that each document gives for itself."""
        texts: dict[str, list[str]] = {}
        for work, document in zip(self._works, self._documents, strict=True):
            texts.setdefault(document, []).extend((work.about, work.text))
        return {document: dates_of(each) for document, each in texts.items()}

    @cached_property
    def _times(self) -> list[Times]:
        """What words say of the days of each passage."""
        both = zip(self._works, self._documents, strict=True)
        return [times_of(work.text, days) for work, document in both if (days := self._dates[document])]

    def _is_of_date(self, reason: Reason, claim: Said, near: Said) -> bool:
        """Whether a sentence that is alike tells this year, or this day, by words."""
        days = self._dates[self._documents[near.number - 1]]
        if not days:
            return False
        meant, words = (one for one in claim.figures if one.words == reason.words), times_of(near.plain, days)
        return any(words.have(one, claim.plain) for one in meant)

    @cached_property
    def _clauses(self) -> list[Clause]:
        return clauses_of((one.plain, one.number) for one in self._said[:_MOST_ATTRIBUTED])

    @cached_property
    def _tallies(self) -> Tallies:
        return Tallies(work.text for work in self._works)

    @cached_property
    def _places(self) -> Places:
        return Places((one.plain, one.number) for one in self._said[:_MOST_ATTRIBUTED])

    def reasons(
        self, sentence: str, *, across: bool = False, alone: Collection[str] = (), cited: Collection[int] = ()
    ) -> tuple[Reason, ...]:
        """What speaks against a sentence, the first found first; nothing where no rule does.

        Args:
            across: The passages are in another script, so that figures alone can be compared, apart from their units.
            alone: Its words that only the question has; what passages have in their place speaks against it.
            cited: The numbers of the passages that its marks name; the chapter that it names is looked for in these.
        """
        claim = Said(sentence)
        # What is the proof is never unproved; and so long a text is no sentence.
        if len(sentence) > _LONGEST or any(sentence.strip() in text for text in self._proofs):
            return ()
        if across:
            missing = (one for one in claim.figures if one.number not in self._figures and one.unit not in OF_DATES)
            return tuple(Reason(one.kind, one.words) for one in missing)[:_MOST_REASONS]
        parts = self._other_parts(claim, cited)
        told = {one.words for one in parts}
        missing = [one for one in self._missing_figures(claim) if one.words not in told]
        found = [*parts, *missing, *self._missing_names(claim)]
        if not found:
            found = self._of_another(claim) or self._instead(claim, self._alike(claim)) or self._misattributed(claim)
        if not found and alone:
            found = [Reason("name", *one) for one in self._places.instead(claim.plain, set(alone))]
        return tuple(dict.fromkeys(found))[:_MOST_REASONS]

    def _other_parts(self, claim: Said, cited: Collection[int]) -> list[Reason]:
        """A chapter that the passages beside the marks, or those that are alike, do not have, and another one."""
        mine = list(parts_in(claim.plain))
        if not mine:
            return []
        near = self._alike(claim).said
        numbers = [one for one in cited if 0 < one <= len(self._works)] or list(
            dict.fromkeys(one.number for one in near)
        )
        held = {part for number in numbers for part in self._works[number - 1].numbers}
        there = [(part, number) for number in numbers for part in self._works[number - 1].titles]
        there += [(part, one.number) for one in near if one.number in numbers for part in parts_in(one.plain)]
        found: list[Reason] = []
        for one in mine:
            others = [Reason("amount", one.words, part.words, number) for part, number in there if part.of == one.of]
            found += others[:1] if one.number not in held else []
        return found

    # ---- what no passage has

    def _missing_figures(self, claim: Said) -> list[Reason]:
        found: list[Reason] = []
        for one in claim.figures:
            if self._has(one, claim.plain):
                continue
            rival = self._rival(one, claim)
            found.append(Reason(one.kind, one.words, *rival))
        return found

    def _has(self, one: Figure, text: str) -> bool:
        if any(one.equals(other) for other in self._figures.get(one.number, ())):
            return True
        if any(is_near(one, other, text) for other in self._all_figures) or self._is_derived(one):
            return True
        return any(times.have(one, text) for times in self._times)

    def _is_derived(self, one: Figure) -> bool:
        """Whether it may be worked out from years that are there."""
        years = [other.number for other in self._all_figures if other.kind == "date" and other.unit == ""][:200]
        if one.unit in {"months", ""} and 2 <= one.number <= 150:
            return any(abs(a - b) in {one.number, one.number + 1} for a in years for b in years if a != b)
        if one.unit == "century":
            return any((year - 1) // 100 + 1 == one.number for year in years)
        return one.unit == "decade" and any(year // 10 == one.number // 10 for year in years)

    def _rival(self, one: Figure, claim: Said) -> tuple[str, int]:
        """What a sentence of a passage that is alike has in its place."""
        for near in self._alike(claim).said:
            others = [
                other
                for other in near.figures
                if _is_same_kind(one, other)
                and not any(mine.equals(other) for mine in claim.figures)
                and not (_OF_SECTION.match(near.plain) and near.plain.startswith(other.words))
            ]
            if others:
                return min(others, key=lambda other: other.unit != one.unit).words, near.number
        return "", 0

    def _missing_names(self, claim: Said) -> list[Reason]:
        found: list[Reason] = []
        for name in claim.names:
            if name.begins or self._known.has(name) or claim.known.spells_out(name):
                continue
            found.append(Reason("name", name.words, *self._rival_name(name, claim)))
        return found

    def _rival_name(self, name: Name, claim: Said) -> tuple[str, int]:
        for near in self._alike(claim).said:
            for other in near.names:
                if not claim.known.has(other) and not set(other.parts) & set(name.parts):
                    return other.words, near.number
        return "", 0

    def _of_another(self, claim: Said) -> list[Reason]:
        """A figure that a table, or a count of a part, gives for something else."""
        return [Reason("amount", *found) for found in self._tallies.instead(claim.figures, claim.words, claim.plain)]

    def _misattributed(self, claim: Said) -> list[Reason]:
        return [Reason("name", *found) for found in misattributed(claim.plain, self._clauses)]

    # ---- what the passage has instead

    def _alike(self, claim: Said) -> Alike:
        """What passages say about the same, the most alike first."""
        if claim.text in self._compared:
            return self._compared[claim.text]
        total, shares = 0.0, dict[int, float]()
        aside, asides = 0.0, dict[int, float]()  # what turns the sentence round, where it has figures as well
        counts = any(one.kind == "amount" and one.unit != ROMAN for one in claim.figures)
        for word in claim.words:
            if turns(word) and not counts:  # it is what is compared
                continue
            holding = self._holding.get(word, [])
            weight = log(1 + (len(self._said) + 1) / (len(holding) + 1))
            total += weight
            for at in holding:
                shares[at] = shares.get(at, 0.0) + weight
            if turns(word):
                aside += weight
                for at in holding:
                    asides[at] = asides.get(at, 0.0) + weight
        best = max(shares.values(), default=0.0)
        near = [at for at, share in shares.items() if share >= max(best - _TIED * total, _ALIKE * total)]
        near.sort(key=lambda at: (-shares[at], at))
        around = sorted({at + step for at in near[:_MOST_TIED] for step in (-1, 0, 1)})
        found = self._compared[claim.text] = Alike(
            [self._said[at] for at in near[:_MOST_TIED]],
            [self._said[at] for at in around if 0 <= at < len(self._said)],
            best / total if total else 0.0,
            (shares[near[0]] - asides.get(near[0], 0.0)) / (total - aside) if near and total > aside else 0.0,
        )
        return found

    def _instead(self, claim: Said, alike: Alike) -> list[Reason]:
        """What the sentence that is alike says otherwise; nothing where an equal one does not."""
        found: list[Reason] = []
        for near in alike.said:
            others = _other_figure(claim, near, alike.around)
            others = [one for one in others if not self._is_of_date(one, claim, near)]
            found = others or _other_sign(claim, near) or _exchanged(claim, near) or _one_other_name(claim, near)
            found = found or _condition(claim, near) or _role(claim, near)
            same = _SAME_HAN if claim.is_wide else _SAME
            if not found and alike.share >= same:
                found = _other_name(claim, near, alike.around) or _wording(claim, near)
            if not found and alike.beside >= same:
                found = _opposite(claim, near)
            if not found:
                return []
        return found


def _other_figure(claim: Said, near: Said, around: list[Said]) -> list[Reason]:
    """A figure that the passages have elsewhere, where this sentence of theirs has another one."""
    there = [figure for one in around for figure in one.figures]
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
        rival = next((other for other in rivals if _is_same_kind(one, other)), None)
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
    there = {_without(near.plain, [one])[0]: one for one in near.names if not one.begins}
    for name in claim.names:
        other = there.get(_without(claim.plain, [name])[0])
        if other is not None and not name.begins and not near.known.has(name):
            return [Reason("name", name.words, other.words, near.number)]
    return []


def _without(text: str, left_out: Sequence[Figure | Name]) -> tuple[str, list[str]]:
    """A text with a mark in the place of each of some of its words, and what stands before, between and after them."""
    at, between = 0, list[str]()
    for one in left_out:
        between.append(text[at : one.start])
        at = one.start + len(one.words)
    between.append(text[at:])
    return "\0".join(between).casefold().strip(" .。"), between


def _other_name(claim: Said, near: Said, around: list[Said]) -> list[Reason]:
    """A name that the passages have elsewhere, where this sentence of theirs has another one."""
    beside = KnownNames(one.plain for one in around)
    others = [one for one in near.names if not claim.known.has(one)]
    same = _in_same_place(claim, near, claim.names, others)
    if found := [Reason("name", one.words, rival.words, near.number) for one, rival in same if not near.known.has(one)]:
        return found
    for name in claim.names:
        rival = next((one for one in others if name.begins or not one.begins), None)
        if rival is not None and not beside.has(name):
            found.append(Reason("name", name.words, rival.words, near.number))
    return found or _other_person(claim, near)


def is_near(one: Figure, other: Figure, text: str) -> bool:
    """Whether a figure that is said to be about so much, or rounded, means another one."""
    if one.equals(other):
        return True
    if one.bound and one.bound == other.bound:  # a term of 15 days is not about one of 14
        return False
    if one.kind == "date" or other.kind == "date" or (one.unit and other.unit and one.unit != other.unit):
        return False
    before, after = text[max(0, one.start - 14) : one.start], text[one.start + len(one.words) :][:8]
    if not _ABOUT.search(before) and not _OR_SO.match(after):
        return False
    mine, theirs = (one.value, other.value) if one.unit == other.unit else (one.number, other.number)
    return abs(mine - theirs) <= _LOOSE * max(abs(mine), abs(theirs))


def _is_same_kind(one: Figure, other: Figure) -> bool:
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
