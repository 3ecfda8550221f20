"""Attribution: which passages support a sentence, and which sentences of an answer are supported at all.

`Support` finds the passages to cite, and prefers none to a wrong one. `claims_of` judges every sentence of an answer.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, TypeAlias

from core.rag.prose import Markup, ideographs, sentence_spans
from core.rag.search.terms import EMPTY_CHARACTERS, distinct_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.rag.document import Passage
    from core.rag.embedding.base import Floats

_SHARE = 0.6  # of a sentence's words must be in the passage
_SHARE_CHINESE = 0.5  # pairs of characters also span two words, so fewer of them come back
_NEARLY_ALL = 0.75  # of them, or a figure among them, and one word fewer is enough
_FEWEST = 3
_FEWEST_CHINESE = 4
_SECOND_ADDS = 0.2  # of the words, before a second passage is named too
_SHORT = 40  # letters, up to which an answer may say no more than what was asked for
_BARE = re.compile(r"[\s,，*_`“”\"']+|(?<![.。!！])[.。!！]++\Z")
DENIAL = re.compile(
    r"\b(?:not|no|n't|cannot|can't|doesn't|don't|didn't|isn't)\b.{0,40}"
    r"\b(?:mention|contain|say|state|provide|specif|include|find|found|information|know|sure|answer)"
    r"|没有(?:提|说|给|包含|找到|相关)|未(?:提|说明|找到|包含)|无法|不(?:知道|清楚|确定)|沒有(?:提|說|給|包含|找到|相關)|無法",
    re.IGNORECASE,
)
_DIGITS = dict(zip("零〇一二两三四五六七八九", "001223456789", strict=True))
_HUNDREDTHS = re.compile(r"百分之\s*(\d+(?:\.\d+)?|[零〇一二两三四五六七八九十百点]+)")
_DIGIT = re.compile(r"\d")
_PERCENT = re.compile(r"(?<=\d)\s*+(?:%|per\s?cent\b)", re.IGNORECASE)
_CURRENCIES = {"€": "euro", "$": "dollar", "£": "pound", "¥": "yuan"}
_MONEY = re.compile(r"([€$£¥])\s*+(\d(?:[\d.,]*\d)?)")
_MONEY_AFTER = re.compile(r"(?<=\d)\s*+[€$£¥]")
_GLUED = re.compile(r"(?<![^\W_])(?<!\d[.,])(\d++(?:[.,]\d++)*+)([^\W\d_]++)")
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
_SILENT = re.compile(r"[\s!-/:-@\[-`{-~。！？；，：、]*+")  # signs without a word
ORDINAL = re.compile(r"\A\s*(?:[-*+>]\s+|\d{1,3}[.)、]\s*)+")


class Support:
    """Compares sentences with passages, numbered from 1.

    Args:
        passages: As they were put before the model.
        question: What is answered: "1,200 dollars" says no word of it, and yet it is said of it.
    """

    def __init__(self, passages: Sequence[Passage], question: str = "") -> None:
        self._texts = [f"{passage.heading}\n{passage.text}" for passage in passages]
        self._words = [words_of(text) for text in self._texts]
        self._asked = words_of(question)
        self._known: dict[str, tuple[int, ...]] = {}

    def numbers(self, sentence: str) -> list[int]:
        """The passages that support the sentence, the best first, at most two; none if in doubt.

        A model that loops writes the same again and again: each sentence is compared once.
        """
        found = self._known.get(sentence)
        if found is None:
            found = self._known[sentence] = tuple(self._compared(sentence))
        return list(found)

    def _compared(self, sentence: str) -> list[int]:
        if (
            not self._words
            or _SILENT.fullmatch(sentence)
            or DENIAL.search(sentence)
            or sentence.rstrip().endswith((":", "：", "?", "？"))
        ):
            return []
        said = words_of(ORDINAL.sub("", sentence, count=1))
        is_chinese = ideographs(sentence) * 2 > len(sentence)
        share, fewest = (_SHARE_CHINESE, _FEWEST_CHINESE) if is_chinese else (_SHARE, _FEWEST)
        if len(said) < fewest - 1:
            return self._of_question(sentence, share)
        figures = {word for word in said if _is_figure(word)}
        shared = [said & words for words in self._words]
        order = sorted(range(len(shared)), key=lambda at: (-len(shared[at]), at))
        named = self._named(shared, order, len(said), share)
        borne = set[str]().union(*(shared[at] for at in named))
        # A wrong figure is what models invent most: one that no named passage has speaks against it.
        enough = fewest - 1 if figures or len(borne) >= _NEARLY_ALL * len(said) else fewest
        if len(borne) >= enough and figures <= borne:
            return [at + 1 for at in named]
        return self._of_question(sentence, share) if len(said) < fewest else []

    def _of_question(self, sentence: str, share: float) -> list[int]:
        """The passage with these few words verbatim that is about the question; none if in doubt."""
        bare = _BARE.sub("", sentence).strip() if self._asked else ""
        if not 2 <= len(bare) <= _SHORT or not words_of(sentence):
            return []
        # 4 days are no part of 14 days.
        whole = re.compile(rf"(?<!\d){re.escape(bare)}(?!\d)", re.IGNORECASE)
        spoken = [len(self._asked & words) for words in self._words]
        fitting = [at for at, text in enumerate(self._texts) if whole.search(_BARE.sub("", text))]
        best = max(fitting, key=lambda at: spoken[at], default=-1)
        return [best + 1] if best >= 0 and spoken[best] >= max(2, share * len(self._asked)) else []

    @staticmethod
    def _named(shared: Sequence[set[str]], order: Sequence[int], said: int, share: float) -> list[int]:
        """The passage that shares most words, and a second if it adds many; none if they are too few."""
        best = shared[order[0]]
        second = order[1] if len(order) > 1 else order[0]
        added = len(shared[second] - best)
        adds_much = added >= 2 and added >= _SECOND_ADDS * said
        if len(best) >= share * said:
            return [order[0], second] if adds_much else [order[0]]
        # A sentence may be put together from two passages; then nearly all of it must stand in them.
        is_joined = adds_much and len(best) + added >= _NEARLY_ALL * said
        return [order[0], second] if is_joined else []


def words_of(text: str) -> set[str]:
    """The content words of a text: stems, figures, and pairs of Chinese characters without empty ones.

    Figures are compared apart from their units: "1pm" and "1 pm", "€5" and "5 euros", "10%" and "百分之十" are equal.
    """
    return {
        term
        for term in distinct_terms(with_units_apart(text))
        if (len(term) > 1 or term.isdigit()) and not EMPTY_CHARACTERS.intersection(term)
    }


def with_units_apart(text: str) -> str:
    """The text with figures and units as words of their own."""
    plain = unicodedata.normalize("NFKC", text)
    plain = _HUNDREDTHS.sub(_percent, plain)
    if not _DIGIT.search(plain):
        return plain
    plain = _PERCENT.sub(" percent ", plain)
    parts = _MONEY.split(plain)  # text, sign, number, text and so on
    parts[1::3], parts[2::3] = (
        [f" {number} " for number in parts[2::3]],
        [f"{_CURRENCIES[sign]} " for sign in parts[1::3]],
    )
    plain = _MONEY_AFTER.sub(lambda found: f" {_CURRENCIES[found[0].strip()]} ", "".join(parts))
    return _GLUED.sub(_apart, plain)


def _apart(found: re.Match[str]) -> str:
    return f"{found[1]} " + ("" if found[2].lower() in _ORDINALS else found[2])


def _percent(found: re.Match[str]) -> str:
    value = found[1] if found[1][0].isdigit() else _from_chinese(found[1])
    return f" {value} percent "


def _from_chinese(numeral: str) -> str:
    """A Chinese numeral up to 99, or digit by digit, with what follows 点 as decimals: 二十五 is 25, 三点五 is 3.5."""
    whole, point, rest = numeral.partition("点")
    if "百" in whole:
        return "100"
    tens, ten, ones = whole.partition("十")
    digits = "".join(_DIGITS[letter] for letter in whole if letter in _DIGITS)
    if ten:
        digits = f"{_DIGITS.get(tens, '1')}{_DIGITS.get(ones, '0')}"
    return digits + (f".{''.join(_DIGITS.get(letter, '') for letter in rest)}" if point else "")


Verdict: TypeAlias = Literal["supported", "weak", "unsupported"]
Embed: TypeAlias = "Callable[[Sequence[str]], Floats]"

_WINDOW = 5  # sentences of a passage that are taken together
_BESIDE = 2  # of them, in which a figure and what it is said of stand
_PLACED = 0.45  # of a sentence's words that stand beside its figure
_CLEAR = 0.6  # share of words that needs no vectors
# From where on a sentence is supported, and weak: by words and meaning, by meaning alone, by words alone.
_BOTH = (0.55, 0.45)
_ACROSS = (0.5, 0.0)  # cosines across scripts say less, and never that there is nothing
_WORDS = (0.6, 0.4)
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
        end: Its end in the text, including marks that follow it, in characters.
        verdict: Whether passages support it.
        numbers: The passages that support it best, from 1; empty for an unsupported one.
    """

    end: int
    verdict: Verdict
    numbers: tuple[int, ...] = ()


def claims_of(
    text: str, passages: Sequence[Passage], *, asked: str = "", told: Sequence[str] = (), embed: Embed | None = None
) -> list[Claim]:
    """The claims in an answer, each with whether the passages support it.

    The score of a sentence is the share of its words that stand close together in a passage; where the words differ,
    the mean of that share and of the cosine to the nearest sentence. A figure that is nowhere in the passages counts
    against it, as that is what models invent most. The thresholds were chosen on sentences of both kinds about the
    samples (see the tests).

    Left out are code, headings, tables, questions, short phrases, sentences that say that something is not in the
    documents, that only repeat the question, or that the result of a tool supports.

    Args:
        text: Markdown, with its marks.
        passages: As they are numbered in it.
        asked: The question; its words in the answer prove nothing.
        told: Results of tools that the answer was made from.
        embed: Texts to vectors of unit length; without it words alone decide.
    """
    if not passages:
        return []
    checker = _Checker(passages, asked, told)
    sentences = sentences_of(text)
    # A model that loops writes the same again and again: each sentence is weighed once.
    weighed = {sentence: checker.weighed(sentence) for sentence in dict.fromkeys(said for said, _ in sentences)}
    cosines: dict[str, tuple[float, int]] = {}
    if embed is not None:
        wanted = [sentence for sentence, one in weighed.items() if one is not None and one.is_open]
        cosines = dict(zip(wanted, checker.nearest(wanted, embed), strict=True))
    judged = {
        sentence: found
        for sentence, one in weighed.items()
        if one is not None and (found := _judged(one, cosines.get(sentence))) is not None
    }
    return [Claim(end, *judged[sentence]) for sentence, end in sentences if sentence in judged]


def sentences_of(text: str) -> list[tuple[str, int]]:
    """The sentences of the prose in a Markdown text, without marks, each with its end in the text."""
    found: list[tuple[str, int]] = []
    markup, start = Markup(), 0
    ordinary: dict[str, list[tuple[str, int]]] = {}  # a line that is written again is looked at once
    for line in text.split("\n"):
        inside = ordinary.get(line)
        if markup.is_ordinary(line):
            if inside is None:
                inside = ordinary[line] = _in_line(line, line)
            found += [(sentence, start + end) for sentence, end in inside]
        else:
            plain = markup.without_literals(line)
            if plain and not plain.isspace() and markup.is_prose():
                found += [(sentence, start + end) for sentence, end in _in_line(line, plain)]
            markup.is_literal("\n")
        start += len(line) + 1
    return found


def _in_line(line: str, plain: str) -> list[tuple[str, int]]:
    """The sentences of a line; marks are blanked out first, as no space separates them from the full stop."""
    begins = _BULLET.match(plain)
    skip = begins.end() if begins else 0
    if skip:
        plain = " " * skip + plain[skip:]
    if "[" in plain:
        plain = _MARK.sub(lambda mark: " " * len(mark[0]), plain)
    return [
        (sentence, a + len(line[a:b].rstrip())) for a, b in sentence_spans(plain) if (sentence := plain[a:b].strip())
    ]


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A sentence judged by its words.

    Args:
        share: Of its words that stand together in the passages `numbers`.
        is_across: Whether it is in another script than the passages.
        invents: Whether it has a figure that is in no passage.
        misplaces: Whether it has a figure that the passages give for something else.
    """

    share: float
    numbers: tuple[int, ...]
    is_across: bool
    invents: bool
    misplaces: bool

    @property
    def is_open(self) -> bool:
        """Whether vectors must decide."""
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

    def weighed(self, sentence: str) -> _Weighed | None:
        """The judgement by words; `None` if the sentence claims nothing that passages could support."""
        if _SILENT.fullmatch(sentence) or DENIAL.search(sentence) or _NO_CLAIM.search(sentence[-_ENDING:]):
            return None
        said = words_of(ORDINAL.sub("", sentence, count=1))
        new = said - self._asked
        if len(said) < _FEWEST or not new or len(said & self._told) >= _CLEAR * len(said):
            return None
        share, numbers = max((self._share(words) for words in (said, new) if len(words) > 1), key=itemgetter(0))
        figures = {word for word in new if _is_figure(word)}
        is_across = _is_wide(sentence) != self._is_wide
        misplaces = not is_across and any(self._beside(figure, said) < _PLACED for figure in figures - self._told)
        return _Weighed(share, numbers, is_across, bool(figures - self._known), misplaces)

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


def _judged(one: _Weighed, near: tuple[float, int] | None) -> tuple[Verdict, tuple[int, ...]] | None:
    """Verdict and passages of a sentence; `None` where nothing can be said of it."""
    if one.invents:
        return "unsupported", ()
    if one.misplaces:
        return "weak", one.numbers
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
        return verdict, ()
    return verdict, one.numbers if near is None or one.share >= _CLEAR else (near[1],)


def _is_figure(word: str) -> bool:
    return any(letter.isdigit() for letter in word)


def _is_wide(text: str) -> bool:
    return 2 * ideographs(text) > len(text)
