"""What passages say right beside a sentence of an answer and it leaves out: exceptions, conditions, other cases."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import log
from typing import TYPE_CHECKING, NamedTuple

from core.rag.attribution import DENIAL, is_figure, placed_sentences, words_of
from core.rag.claims.conditions import denied_things, is_case, is_rule, limits_in, points_back
from core.rag.claims.figures import Figure, figures_of
from core.rag.prose import ideographs, sentence_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.rag.document import Passage

_MOST_TEXT = 120_000  # characters of passages that are looked through; of more nothing is said
_LONGEST_ANSWER = 20_000
_MOST_SENTENCES = 60  # of the answer
_LONGEST = 600  # characters of a sentence of a passage that is told: a longer one is no sentence
_SHORTEST = 12
_SHORTEST_HAN = 6
_FEWEST = 3  # words that a sentence shares with the one that it rests on
_ALIKE = 0.6  # of its words, by their weight
_AROUND = 2  # sentences before and after that one
_SAME = 2  # words that what is beside it shares with it
_TOLD = 0.4  # of the words of a condition, from where on the answer tells it
_MOST = 3
_BEFORE = 30  # characters before a figure that say what it is of


class LeftOut(NamedTuple):
    """A sentence of a passage that limits what an answer says, and that the answer does not mention.

    Args:
        passage: The number of the passage, from 1.
        start: Where the sentence begins in the passage's text.
        end: Where it ends there.
        sentence: Its words, on one line.
    """

    passage: int
    start: int
    end: int
    sentence: str


@dataclass(frozen=True)
class _Said:
    """A sentence of a passage, with its neighbours' places in the list of all."""

    passage: int
    start: int
    end: int
    text: str

    @cached_property
    def words(self) -> set[str]:
        return words_of(self.text)

    @cached_property
    def figures(self) -> list[Figure]:
        return [one for one in figures_of(self.text) if one.kind == "amount"]


def left_out(answer: str, passages: Sequence[Passage], asked: str = "") -> list[LeftOut]:
    """The sentences that stand beside what an answer says, limit it, and are not mentioned; at most three.

    Such a sentence excepts something or sets a condition, gives the same thing another figure in another case, or says
    that in some case there is none of it. Of sentences that are not in the passages' language nothing is said.

    Args:
        answer: Markdown, with its marks.
        passages: As they are numbered in it.
        asked: The question: one that names its case is answered by that case.
    """
    if not passages or sum(len(one.text) for one in passages) > _MOST_TEXT:
        return []
    answer = answer[:_LONGEST_ANSWER]
    beside = _Beside(passages, answer, asked)
    found: dict[str, LeftOut] = {}
    # A model that loops writes the same again and again: each sentence is looked at once.
    for sentence in islice(dict.fromkeys(said for said, *_ in placed_sentences(answer)), _MOST_SENTENCES):
        for one in beside.of(sentence):
            found.setdefault(one.text, LeftOut(one.passage, one.start, one.end, one.text))
        if len(found) >= _MOST:
            break
    return list(found.values())[:_MOST]


class _Beside:
    def __init__(self, passages: Sequence[Passage], answer: str, asked: str) -> None:
        self._said = [one for number, passage in enumerate(passages, 1) for one in _sentences(number, passage.text)]
        self._answer, self._answered = answer, words_of(answer)
        self._figures = [one for one in figures_of(answer) if one.kind == "amount"][:_MOST_SENTENCES]
        self._asked = words_of(asked)
        self._holding: dict[str, list[int]] = {}
        for at, one in enumerate(self._said):
            for word in one.words:
                self._holding.setdefault(word, []).append(at)

    def of(self, sentence: str) -> Iterator[_Said]:
        """What is left out beside a sentence of the answer."""
        if DENIAL.search(sentence):
            return
        claim = _Said(0, 0, len(sentence), sentence)
        at = self._home(claim)
        if at is None:
            return
        home = self._said[at]
        if self._limits(home, claim, home):
            yield home
        for step in (1, 2, -1, -2):
            if not 0 <= at + step < len(self._said):
                continue
            one = self._said[at + step]
            if one.passage == home.passage and self._is_left_out(one, claim, home, step):
                yield one

    def _home(self, claim: _Said) -> int | None:
        """The sentence of the passages that it rests on."""
        total, shares = 0.0, dict[int, float]()
        for word in claim.words:
            holding = self._holding.get(word, [])
            weight = log(1 + (len(self._said) + 1) / (len(holding) + 1))
            total += weight
            for at in holding:
                shares[at] = shares.get(at, 0.0) + weight
        best = max(shares, key=lambda at: (shares[at], -at), default=None)
        if best is None or shares[best] < _ALIKE * total or len(claim.words & self._said[best].words) < _FEWEST:
            return None
        return best

    def _is_left_out(self, one: _Said, claim: _Said, home: _Said, step: int) -> bool:
        same = one.words & claim.words & home.words
        topical = {word for word in same if not is_figure(word)}
        new = one.words - home.words
        if not new or self._is_told(new):
            return False
        is_about_it = (step > 0 and len(topical) >= _SAME) or (step == 1 and points_back(one.text))
        if is_about_it and self._limits(one, claim, home):
            return True
        return bool(topical) and self._is_other_case(one, claim, home, topical)

    def _limits(self, one: _Said, claim: _Said, home: _Said) -> bool:
        """Whether a sentence has a condition that the answer does not mention."""
        for clause in limits_in(one.text):
            words = words_of(clause.text) - words_of(clause.cue)
            if one is not home:
                words -= claim.words & home.words
            if words and not self._is_told(words) and clause.cue.casefold() not in claim.text.casefold():
                return True
        return False

    def _is_other_case(self, one: _Said, claim: _Said, home: _Said, topical: set[str]) -> bool:
        """Whether it gives the same thing another figure, or none, in another case than the one that is asked about."""
        if not (is_rule(one.text) and is_rule(home.text)) or not (is_case(one.text) or is_case(home.text)):
            return False
        if is_case(home.text) and self._asked & (home.words - one.words):
            return False
        if is_case(one.text) and any(topical & words_of(thing) for thing in denied_things(one.text)):
            return True
        mine = [(figure, _of(claim.text, figure)) for figure in claim.figures]
        theirs = [(figure, _of(one.text, figure)) for figure in one.figures if figure.unit]
        if any(figure.equals(told) for figure, _ in theirs for told in self._figures):
            return False
        return any(
            figure.unit in {"", other.unit} and before & after for figure, before in mine for other, after in theirs
        )

    def _is_told(self, words: set[str]) -> bool:
        return len(words & self._answered) >= _TOLD * len(words)


def _of(text: str, figure: Figure) -> set[str]:
    """The words close before a figure: what it is said of."""
    return words_of(text[max(0, figure.start - _BEFORE) : figure.start])


def _sentences(number: int, text: str) -> list[_Said]:
    """The sentences of a passage; one that goes on after a line end is one, and rows of tables are none."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        if spans and _goes_on(text, spans[-1], start):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    said: list[_Said] = []
    for start, end in spans:
        bare = text[start:end].strip()
        shortest = _SHORTEST_HAN if 3 * ideographs(bare) > len(bare) else _SHORTEST
        if shortest <= len(bare) <= _LONGEST and " | " not in bare:
            begin = start + len(text[start:end]) - len(text[start:end].lstrip())
            said.append(_Said(number, begin, begin + len(bare), _one_line(bare)))
    return said


def _goes_on(text: str, before: tuple[int, int], at: int) -> bool:
    """Whether a line end stands inside of a sentence: after a word, before a small letter or a Han one."""
    ended = text[slice(*before)].rstrip()[-1:]
    if "\n" not in text[before[0] : before[1]][-3:] or not (ended.isalnum() or ended in ",，、"):
        return False
    return text[at].islower() or (ended.isalpha() and text[at] in '“"(') or (ideographs(ended + text[at]) == 2)


def _one_line(text: str) -> str:
    """A text on one line; between Han characters a line end is no space."""
    pieces = [" ".join(line.split()) for line in text.split("\n")]
    joined = ""
    for piece in filter(None, pieces):
        glued = joined and ideographs(joined[-1] + piece[0]) == 2
        joined += piece if glued or not joined else f" {piece}"
    return joined
