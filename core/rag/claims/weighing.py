"""Weighs the sentences of an answer: by their words and their meaning, and by what speaks against them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.rag.attribution import DENIAL, ORDINAL, SECOND_ADDS, SILENT, is_figure, placed_sentences, words_of
from core.rag.claims.asked import is_yes_or_no, of_question_alone
from core.rag.claims.counts import Counts
from core.rag.claims.courtesies import is_courtesy
from core.rag.claims.figures import MOST_TEXT
from core.rag.claims.names import names_of
from core.rag.claims.rules import Reason, Rules, passage_sentences
from core.rag.document import Passage
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.rag.embedding.base import Floats

    Embed: TypeAlias = Callable[[Sequence[str]], Floats]

Verdict: TypeAlias = Literal["supported", "weak", "unsupported"]
JudgedBy: TypeAlias = Literal["rules", "model"]

_FEWEST = 3  # words of a sentence that claims something
_WINDOW = 5  # sentences of a passage that are taken together
_BESIDE = 2  # of them, in which a figure and what it is said of stand
_PLACED = 0.45  # of a sentence's words that stand beside its figure
_CLEAR = 0.6  # share of words that needs no vectors
# From where on a sentence is supported, and weak: by words and meaning, by meaning alone, by words alone.
_BOTH = (0.55, 0.45)
_ACROSS = (0.5, 0.0)  # cosines across scripts say less, and never that there is nothing
_WORDS = (0.6, 0.4)
_MOST_COMPARED = 80  # sentences of passages that vectors are made of
_NO_CLAIM = re.compile(r"[:：?？]\W*\Z")
_MARK = re.compile(r"\[(\d{1,3})\]")
_ENDING = 40  # letters in which the sign that ends a sentence is looked for


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer that claims something, and what the passages say to it.

    Args:
        sentence: Its words, without marks.
        start: Where it begins in the answer, in characters.
        end: Where it ends there, marks that follow it included.
        verdict: `supported`: its words stand together in a passage, and no rule speaks against it (with a judge: it
            says that all of it is there). `weak`: few of its words do, its figure stands
            elsewhere, it says what only the question has, or a mark of it leads to no passage. `unsupported`:
            hardly any do, or a rule (or the judge) speaks against it.
        passages: The numbers of the passages that are most like it, from 1; none for what is unsupported.
        reasons: What the rules found against it.
        judge: Who decided: `rules`, or `model` for a judge that was given.
    """

    sentence: str
    start: int
    end: int
    verdict: Verdict
    passages: tuple[int, ...] = ()
    reasons: tuple[Reason, ...] = ()
    judge: JudgedBy = "rules"

    @property
    def reason(self) -> str:
        """The first reason in a few words; "" where no rule speaks against the sentence."""
        if not self.reasons:
            return ""
        kind, words, rival, passage = self.reasons[0]
        if kind == "mark":
            return f"mark: “{words}” leads to no passage"
        return f"{kind}: “{words}”" + (f"; passage {passage}: “{rival}”" if rival else "; in no passage")


def claims_of(  # noqa: PLR0913 - two things, and by name how
    text: str,
    passages: Sequence[Passage],
    *,
    asked: str = "",
    told: Sequence[str] = (),
    embed: Embed | None = None,
    by_rules: bool = True,
    score_from: tuple[float, float] = _WORDS,
) -> list[Claim]:
    """The claims in an answer, each with whether the passages support it.

    The score of a sentence is the share of its words that stand close together in a passage; where the words differ,
    the mean of that share and of the cosine to the nearest sentence. What a rule speaks against is unsupported, however
    much it resembles a passage. The thresholds were chosen on sentences of both kinds about the samples (see the
    tests).

    Left out are code, headings, tables, questions, short phrases, greetings and thanks, sentences that say that
    something is not in the documents, that only repeat the question, or that the result of a tool supports.

    Args:
        text: Markdown, with its marks.
        passages: As they are numbered in it.
        asked: The question; its words in the answer prove nothing.
        told: Results of tools that the answer was made from.
        embed: Texts to vectors of unit length; without it words alone decide.
        by_rules: Whether names, figures, roles and denials are compared; else, and with more than `MOST_TEXT`
            characters of passages, question and results, likeness alone decides.
        score_from: From where on a sentence is supported, and weak, where words alone decide.
    """
    if not passages:
        return []
    # Looked through in part, they would be said not to hold what they hold.
    by_rules = by_rules and sum(map(len, (asked, *told, *(one.text for one in passages)))) <= MOST_TEXT
    inside = passage_sentences(passages)
    checker = _Checker(passages, inside, asked, told)
    rules = Rules(passages, [asked, *told], inside) if by_rules else None
    sentences = placed_sentences(text)
    # A model that loops writes the same again and again: each sentence is weighed once.
    weighed = {said: one for said in dict.fromkeys(said for said, *_ in sentences) if (one := checker.weighed(said))}
    cited = {said: tuple(map(int, _MARK.findall(text[start:end]))) for said, start, end in reversed(sentences)}
    reasons = (
        {
            said: rules.reasons(said, across=one.is_across, alone=one.alone, cited=cited[said])
            for said, one in weighed.items()
        }
        if rules
        else {}
    )
    cosines: dict[str, tuple[float, int]] = {}
    if embed is not None:
        wanted = [said for said, one in weighed.items() if one.is_open and not reasons.get(said)]
        cosines = dict(zip(wanted, checker.nearest(wanted, embed), strict=True))
    counts = Counts(passages, asked)
    judged: dict[str, tuple[Verdict, tuple[int, ...], tuple[Reason, ...]]] = {}
    for said, one in weighed.items():
        if number := counts.bears_out(said, cited[said]):
            judged[said] = "supported", (number,), ()
        elif reasons.get(said):
            judged[said] = "unsupported", (), reasons[said]
        elif (found := _judged(one, cosines.get(said), score_from, by_rules=by_rules)) is not None:
            is_doubted = found[0] == "supported" and counts.is_of_another(said)
            judged[said] = ("weak" if is_doubted else found[0], found[1], ())
    return [Claim(said, start, end, *judged[said]) for said, start, end in sentences if said in judged]


def claims_without_passages(text: str, asked: str = "") -> list[Claim]:
    """The claims in an answer that rests on nothing: none is supported.

    Args:
        text: Markdown, with its marks.
        asked: The question.
    """
    nothing = [Passage("", 1.0, "", "", None)]
    checker = _Checker(nothing, passage_sentences(nothing), asked, ())
    sentences = placed_sentences(text)
    claiming = {said for said in dict.fromkeys(said for said, *_ in sentences) if checker.weighed(said)}
    return [Claim(said, start, end, "unsupported") for said, start, end in sentences if said in claiming]


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A sentence judged by its words.

    Args:
        share: Of its words that stand together in the passages `numbers`.
        is_across: Whether it is in another script than the passages.
        invents: Whether it has a figure that is in no passage.
        misplaces: Whether it has a figure that the passages give for something else.
        assumes: Whether it rests on a word that only the question has: one that was asked about, or a name.
        alone: The words that only the question has.
    """

    share: float
    numbers: tuple[int, ...]
    is_across: bool
    invents: bool
    misplaces: bool
    assumes: bool = False
    alone: frozenset[str] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether vectors must decide."""
        return not self.invents and not self.misplaces and (self.is_across or self.share < _CLEAR)


class _Checker:
    def __init__(
        self, passages: Sequence[Passage], sentences: Sequence[Sequence[str]], asked: str, told: Sequence[str]
    ) -> None:
        self._sentences: list[tuple[int, str]] = []
        self._windows: list[list[set[str]]] = []
        self._pairs: list[set[str]] = []
        self._asked, self._told = words_of(asked), words_of("\n".join(told))
        self._puts_forward = is_yes_or_no(asked)
        self._proved = set(self._told)
        for number, (passage, inside) in enumerate(zip(passages, sentences, strict=True), 1):
            sets = [words_of(sentence) for sentence in inside]
            about = words_of(f"{passage.heading}\n{passage.document}\npage {passage.page or ''}")
            self._sentences += [(number, sentence) for sentence in inside if sentence]
            starts = range(max(1, len(sets) - _WINDOW + 1))
            self._windows.append([about.union(*sets[at : at + _WINDOW]) for at in starts])
            together = len(sets) if " | " in passage.text else _BESIDE  # a table is read across its rows
            self._pairs += [about.union(*sets[at : at + together]) for at in range(len(sets))]
            self._proved = self._proved.union(about, words_of(passage.text))
        self._known = self._asked | self._proved
        self._is_wide = _is_wide("".join(passage.text for passage in passages))

    def weighed(self, sentence: str) -> _Weighed | None:
        """The judgement by words; `None` if the sentence claims nothing that passages could support."""
        if SILENT.fullmatch(sentence) or DENIAL.search(sentence) or _NO_CLAIM.search(sentence[-_ENDING:]):
            return None
        if is_courtesy(sentence):
            return None
        said = _said(sentence)
        new = said - self._asked
        if len(said) < _FEWEST or len(said & self._told) >= _CLEAR * len(said):
            return None
        is_across = _is_wide(sentence) != self._is_wide
        alone = set[str]() if is_across else of_question_alone(sentence, said, self._asked, self._proved)
        if not new and not (alone or self._puts_forward):
            return None
        weighed = (said,) if alone or not new else (said, new)
        share, numbers = max((self._share(words) for words in weighed if len(words) > 1), key=itemgetter(0))
        figures = {word for word in new if is_figure(word)}
        misplaces = not is_across and any(self._beside(figure, said) < _PLACED for figure in figures - self._told)
        assumes = bool(alone) and (self._puts_forward or self._is_named(sentence, alone))
        return _Weighed(share, numbers, is_across, bool(figures - self._known), misplaces, assumes, frozenset(alone))

    @staticmethod
    def _is_named(sentence: str, alone: set[str]) -> bool:
        """Whether a name, or a figure, is among these words."""
        named = {word for name in names_of(sentence) if not name.begins for word in words_of(name.words)}
        return bool(alone & named) or any(map(is_figure, alone))

    def _beside(self, figure: str, said: set[str]) -> float:
        """The largest share of a sentence's words that stand close to one of its figures."""
        return max((len(said & pair) / len(said) for pair in self._pairs if figure in pair), default=0.0)

    def nearest(self, sentences: Sequence[str], embed: Embed) -> list[tuple[float, int]]:
        """The cosine of each to the sentence of a passage that is most like it, and the number of that passage."""
        if not sentences:
            return []
        compared = self._sentences[:_MOST_COMPARED]
        vectors = embed([*sentences, *(text for _, text in compared)])
        cosines = vectors[: len(sentences)] @ vectors[len(sentences) :].T
        return [(float(row.max()), compared[int(row.argmax())][0]) for row in cosines]

    def _share(self, said: set[str]) -> tuple[float, tuple[int, ...]]:
        """The share of words that stand together in one passage, or in two, and which these are."""
        best = [max((said & window for window in windows), key=len) for windows in self._windows]
        order = sorted(range(len(best)), key=lambda at: (-len(best[at]), at))
        first, numbers = best[order[0]], (order[0] + 1,)
        if len(order) > 1:
            added = len(best[order[1]] - first)
            if added >= 2 and added >= SECOND_ADDS * len(said):
                return len(first | best[order[1]]) / len(said), (*numbers, order[1] + 1)
        return len(first) / len(said), numbers


def is_short(sentence: str) -> bool:
    """Whether a sentence has too few words to claim anything; such are not checked."""
    return len(_said(sentence)) < _FEWEST


def _said(sentence: str) -> set[str]:
    return words_of(ORDINAL.sub("", sentence, count=1))


def _judged(
    one: _Weighed, near: tuple[float, int] | None, by_words: tuple[float, float], *, by_rules: bool
) -> tuple[Verdict, tuple[int, ...]] | None:
    """Verdict and passages of a sentence; `None` where nothing can be said of it."""
    if one.invents and not by_rules:
        return "unsupported", ()
    if one.assumes and one.share >= by_words[1]:
        return "weak", one.numbers
    if one.misplaces and by_words == _WORDS:
        return "weak", one.numbers
    if near is None:
        if one.is_across:  # words say nothing across scripts
            return None
        score, (supported, weak) = one.share, by_words
    elif one.is_across:
        score, (supported, weak) = near[0], _ACROSS
    else:
        score, (supported, weak) = (one.share + near[0]) / 2, _BOTH
    if one.share >= _CLEAR or score >= supported:
        verdict: Verdict = "supported"
    else:
        verdict = "weak" if score >= weak else "unsupported"
    if verdict == "unsupported":
        return verdict, ()
    return verdict, one.numbers if near is None or one.share >= _CLEAR else (near[1],)


def _is_wide(text: str) -> bool:
    return 2 * ideographs(text) > len(text)
