"""Rules that speak against a sentence: what it names, counts, dates, denies or turns round, and no passage does."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import TYPE_CHECKING

from core.rag.claims.asked import Places
from core.rag.claims.bound import Tallies
from core.rag.claims.dated import other_year
from core.rag.claims.figures import MOST_TEXT, OF_DATES, ROMAN, Figure, figures_of
from core.rag.claims.makers import MOST_SENTENCES, Clause, clauses_of, misattributed
from core.rag.claims.names import KnownNames, Name
from core.rag.claims.paired import Alike, Rows, is_conversion, is_near, is_same_kind, other_figure, otherwise, predicate
from core.rag.claims.reckoned import Times, dates_of, times_of
from core.rag.claims.romans import Part, parts_in
from core.rag.claims.said import Reason, Said
from core.rag.claims.wording import turns
from core.rag.prose import sentence_spans

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import date

    from core.rag.document import Passage

_ALIKE = 0.6  # of a sentence's words, by their weight, are in the sentence of a passage that is about the same
_TIED = 0.06  # and those are as much alike
_MOST_TIED = 4
_LONGEST = 4_000  # characters of a sentence
_MOST_SENTENCES = 10_000  # of all passages that are compared; figures and names are looked for in all
_MOST_REASONS = 4
_COUNTED = 4  # things that who writes counts at a glance
_COUNTING = re.compile("[A-Za-z]+|[1-4](?:st|nd|rd|th)")
_NAME_BEFORE = re.compile(r"([A-Z][A-Za-z]*)-\Z")
_LONGEST_NAME = 24
_OF_SECTION = re.compile(r"\d{1,3}(?:\.\d{1,3})+\s")


def _is_counted(one: Figure) -> bool:
    """Whether who writes may have counted it: no passage need say that "the two countries" are two."""
    is_small = one.number <= _COUNTED and _COUNTING.fullmatch(one.words) is not None
    return one.kind == "amount" and not one.unit and is_small


def _is_of_decade(year: float, decade: float) -> bool:
    """Whether a year is in "the 1980s", "the 80s" or, of a century, "the 1900s"."""
    if decade < 100:
        return year % 100 // 10 == decade // 10
    size = 10 if decade % 100 else 100
    return year // size == decade // size


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
    def _of_others(self) -> dict[str, list[int]]:
        """By what they say of their subject, word for word, where sentences stand."""
        found: dict[str, list[int]] = {}
        for at, said in enumerate(self._said):
            if told := predicate(said):
                found.setdefault(told, []).append(at)
        return found

    @cached_property
    def _known(self) -> KnownNames:
        return KnownNames(self._texts)

    @cached_property
    def _figures(self) -> dict[float, list[Figure]]:
        """All figures of the passages, by their number."""
        found: dict[float, list[Figure]] = {}
        for text in dict.fromkeys(self._texts):
            for one in figures_of(text, loosely=True):
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
        return clauses_of((one.plain, one.number) for one in self._said)

    @cached_property
    def _tallies(self) -> Tallies:
        return Tallies(work.text for work in self._works)

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self._said[:MOST_SENTENCES])

    @cached_property
    def _places(self) -> Places:
        return Places((one.plain, one.number) for one in self._said[:MOST_SENTENCES])

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
            found = self._of_another(claim) or self._rows.instead(claim)
            found = found or self._instead(claim, self._alike(claim)) or self._misattributed(claim)
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
            if self._has(one, claim.plain) or self._is_converted(one, claim):
                continue
            rival = self._rival(one, claim)
            if (_is_counted(one) and not rival[0]) or self._is_of_name(one, claim.plain):
                continue
            found.append(Reason(one.kind, one.words, *rival))
        return found

    def _has(self, one: Figure, text: str) -> bool:
        if any(one.equals(other) for other in self._figures.get(one.number, ())):
            return True
        if any(is_near(one, other, text) for other in self._all_figures) or self._is_derived(one):
            return True
        return any(times.have(one, text) for times in self._times)

    def _is_converted(self, one: Figure, claim: Said) -> bool:
        """Whether it tells another figure beside it in another unit: "50 feet (15 m)"."""
        for other in claim.figures:
            if other.start == one.start or not one.unit or one.unit != other.unit:
                continue
            first, second = (one, other) if one.start < other.start else (other, one)
            if is_conversion(first, second, claim.plain) and self._has(other, claim.plain):
                return True
        return False

    def _is_derived(self, one: Figure) -> bool:
        """Whether it may be worked out from years that are there."""
        years = [other.number for other in self._all_figures if other.kind == "date" and other.unit in {"", "decade"}]
        years = years[:200]
        if one.unit in {"months", ""} and 2 <= one.number <= 150:
            return any(abs(a - b) in {one.number, one.number + 1} for a in years for b in years if a != b)
        if one.unit == "century":
            return any((year - 1) // 100 + 1 == one.number for year in years)
        if one.unit != "decade":
            return False
        ages = [other.number for other in self._all_figures] + [abs(a - b) for a in years for b in years]
        is_age = one.number < 100 and any(one.number <= age < one.number + 10 for age in ages)  # "in his 30s"
        return is_age or any(_is_of_decade(year, one.number) for year in years)

    def _is_of_name(self, one: Figure, text: str) -> bool:
        """Whether it is a part of a name, as in "Apollo-13", which no passage has with another number."""
        name = _NAME_BEFORE.search(text[max(0, one.start - _LONGEST_NAME) : one.start])
        return name is not None and not any(re.search(rf"\b{name[1]}-?\d", text) for text in self._texts)

    def _rival(self, one: Figure, claim: Said) -> tuple[str, int]:
        """What a sentence of a passage that is alike has in its place."""
        for near in self._alike(claim).said:
            others = [
                other
                for other in near.figures
                if is_same_kind(one, other)
                and not any(mine.equals(other) for mine in claim.figures)
                and not (_OF_SECTION.match(near.plain) and near.plain.startswith(other.words))
            ]
            if others:
                return min(others, key=lambda other: other.unit != one.unit).words, near.number
        return "", 0

    def _missing_names(self, claim: Said) -> list[Reason]:
        found: list[Reason] = []
        for name in claim.names:
            if name.begins or name.is_noun or self._known.allows(name) or claim.known.spells_out(name):
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
        if total and max(shares.values(), default=0.0) < _ALIKE * total:
            shares |= dict.fromkeys(self._of_others.get(predicate(claim), ()), _ALIKE * total)
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
            others = other_figure(claim, near, alike.around)
            others = [one for one in others if not self._is_of_date(one, claim, near)]
            others = others or other_year(claim, near, alike.around)
            found = otherwise(claim, near, alike, others)
            if not found:
                return []
        return found
