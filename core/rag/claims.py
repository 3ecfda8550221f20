"""Which sentences of an answer its passages bear out: by the words that they share, and by likeness of meaning.

The score of a sentence is the share of its words that stand close together in a passage; where the words are others,
the mean of that share and of the cosine to the nearest sentence. A figure that stands nowhere speaks against it, for
that is what models invent most. The marks were set on sentences of both kinds about the samples (see the tests).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.rag.markup import Markup
from core.rag.sentences import ideographs, sentence_spans
from core.rag.support import DENIAL, ORDINAL, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.rag.document import Passage
    from core.rag.embedding.base import Floats

Verdict: TypeAlias = Literal["supported", "weak", "unsupported"]
Embed: TypeAlias = "Callable[[Sequence[str]], Floats]"

_WINDOW = 5  # sentences of a passage that are taken together
_BESIDE = 2  # of them, in which a figure and what it is said of stand
_PLACED = 0.45  # of a sentence's words that stand beside its figure
_SECOND_ADDS = 0.2  # of the words, before a second passage counts too
_CLEAR = 0.6  # share of words that needs no vectors
# From where on a sentence is supported, and weak: by words and meaning, by meaning alone, by words alone.
_BOTH = (0.55, 0.45)
_ACROSS = (0.5, 0.0)  # cosines across scripts say less, and never that there is nothing
_WORDS = (0.6, 0.4)
_FEWEST = 3
_MOST_COMPARED = 80  # sentences of passages that vectors are made of
# A run of spaces is tried once, from its start: models that loop write many.
_MARK = re.compile(r"(?<![ \t])[ \t]*+(?:\[\d{1,3}\])+")
_NO_CLAIM = re.compile(r"[:：?？]\W*\Z")
_ENDING = 40  # letters in which the sign that ends a sentence is looked for
_BULLET = re.compile(r"\s*(?:[-*+>]\s+|\d{1,3}[.)、]\s*)*")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a text that claims something.

    Args:
        end: Where it ends in the text, marks that follow it included; counted in characters.
        verdict: What the passages say to it.
        numbers: The passages that bear it out best, from 1; empty for an unsupported one.
    """

    end: int
    verdict: Verdict
    numbers: tuple[int, ...] = ()


def claims_of(
    text: str, passages: Sequence[Passage], *, asked: str = "", told: Sequence[str] = (), embed: Embed | None = None
) -> list[Claim]:
    """The sentences of an answer, each with what the passages say to it.

    Left out is what claims nothing about them: code, headings, tables, questions, short phrases, sentences that say
    that something is not in the documents, that only repeat the question, or that the result of a tool bears out.

    Args:
        text: Markdown, with its marks.
        passages: As they are numbered in it.
        asked: The question: that its words come back in the answer says nothing.
        told: What else the answer was made from: results of tools.
        embed: Texts to vectors of unit length; without it words alone decide.
    """
    if not passages:
        return []
    checker = _Checker(passages, asked, told)
    weighed = [one for sentence, end in sentences_of(text) if (one := checker.weighed(sentence, end)) is not None]
    cosines: dict[int, tuple[float, int]] = {}
    if embed is not None:
        wanted = [one for one in weighed if one.is_open]
        near = checker.nearest([one.sentence for one in wanted], embed)
        cosines = dict(zip((one.end for one in wanted), near, strict=True))
    return [claim for one in weighed if (claim := _claim(one, cosines.get(one.end))) is not None]


def sentences_of(text: str) -> list[tuple[str, int]]:
    """The sentences of the prose in a Markdown text, without marks, each with where it ends."""
    found: list[tuple[str, int]] = []
    markup, start, plain = Markup(), 0, list[str]()
    for at, letter in enumerate(f"{text}\n"):
        if letter != "\n":
            plain.append(" " if markup.is_literal(letter) else letter)
            continue
        if plain and markup.is_prose():
            found += _in_line(text[start:at], "".join(plain), start)
        markup.is_literal(letter)
        start, plain = at + 1, []
    return found


def _in_line(line: str, plain: str, start: int) -> list[tuple[str, int]]:
    """Marks follow a full stop without a space between: they are blanked out before sentences are told apart."""
    begins = _BULLET.match(plain)
    skip = begins.end() if begins else 0
    plain = " " * skip + plain[skip:]
    plain = _MARK.sub(lambda mark: " " * len(mark[0]), plain)
    cuts = [0, *(end for _, end in sentence_spans(plain))]
    spans = [(a, b) for a, b in pairwise(cuts) if plain[a:b].strip()]
    return [(plain[a:b].strip(), start + a + len(line[a:b].rstrip())) for a, b in spans]


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A sentence as its words weigh.

    Args:
        share: Of its words that stand together in the passages `numbers`.
        is_across: It is written in another script than the passages.
        invents: It has a figure that stands nowhere.
        misplaces: It has a figure that stands beside other things than those that it is said of.
    """

    sentence: str
    end: int
    share: float
    numbers: tuple[int, ...]
    is_across: bool
    invents: bool
    misplaces: bool

    @property
    def is_open(self) -> bool:
        """Whether its words alone do not decide."""
        return not self.invents and not self.misplaces and (self.is_across or self.share < _CLEAR)


class _Checker:
    def __init__(self, passages: Sequence[Passage], asked: str, told: Sequence[str]) -> None:
        self._sentences: list[tuple[int, str]] = []
        self._windows: list[list[set[str]]] = []
        self._pairs: list[set[str]] = []
        self._asked, self._told = words_of(asked), words_of("\n".join(told))
        self._known = self._asked | self._told
        for number, passage in enumerate(passages, 1):
            inside = [passage.text[a:b].strip() for a, b in sentence_spans(passage.text)]
            sets = [words_of(sentence) for sentence in inside]
            about = words_of(f"{passage.heading}\n{passage.document}\npage {passage.page or ''}")
            self._sentences += [(number, sentence) for sentence in inside if sentence]
            starts = range(max(1, len(sets) - _WINDOW + 1))
            self._windows.append([about.union(*sets[at : at + _WINDOW]) for at in starts])
            together = len(sets) if " | " in passage.text else _BESIDE  # a table is read across its rows
            self._pairs += [about.union(*sets[at : at + together]) for at in range(len(sets))]
            self._known = self._known.union(about, *sets)
        self._is_wide = _is_wide("".join(passage.text for passage in passages))

    def weighed(self, sentence: str, end: int) -> _Weighed | None:
        """What the words of a sentence say; `None` where it claims nothing that the passages could bear out."""
        if DENIAL.search(sentence) or _NO_CLAIM.search(sentence[-_ENDING:]):
            return None
        said = words_of(ORDINAL.sub("", sentence, count=1))
        new = said - self._asked
        if len(said) < _FEWEST or not new or len(said & self._told) >= _CLEAR * len(said):
            return None
        share, numbers = max((self._share(words) for words in (said, new) if len(words) > 1), key=itemgetter(0))
        figures = {word for word in new if _is_figure(word)}
        is_across = _is_wide(sentence) != self._is_wide
        misplaces = not is_across and any(self._beside(figure, said) < _PLACED for figure in figures - self._told)
        return _Weighed(sentence, end, share, numbers, is_across, bool(figures - self._known), misplaces)

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
            if added >= 2 and added >= _SECOND_ADDS * len(said):
                return len(first | best[order[1]]) / len(said), (*numbers, order[1] + 1)
        return len(first) / len(said), numbers


def _claim(one: _Weighed, near: tuple[float, int] | None) -> Claim | None:
    if one.invents:
        return Claim(one.end, "unsupported")
    if one.misplaces:
        return Claim(one.end, "weak", one.numbers)
    if near is None:
        if one.is_across:  # words say nothing across scripts
            return None
        score, (supported, weak) = one.share, _WORDS
    elif one.is_across:
        score, (supported, weak) = near[0], _ACROSS
    else:
        score, (supported, weak) = (one.share + near[0]) / 2, _BOTH
    if not one.is_open or score >= supported:
        verdict: Verdict = "supported"
    else:
        verdict = "weak" if score >= weak else "unsupported"
    if verdict == "unsupported":
        return Claim(one.end, verdict)
    return Claim(one.end, verdict, one.numbers if near is None or one.share >= _CLEAR else (near[1],))


def _is_figure(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _is_wide(text: str) -> bool:
    return 2 * ideographs(text) > len(text)
