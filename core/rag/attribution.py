"""Attribution: the sentences of a text, their words, and which passages support a sentence.

`Support` finds the passages to cite, and prefers none to a wrong one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from core.rag.numerals import number_of_han
from core.rag.prose import Markup, ideographs, sentence_spans
from core.rag.search.terms import EMPTY_CHARACTERS, distinct_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.document import Passage

_SHARE = 0.6  # of a sentence's words must be in the passage
_SHARE_CHINESE = 0.5  # pairs of characters also span two words, so fewer of them come back
_NEARLY_ALL = 0.75  # of them, or a figure among them, and one word fewer is enough
_FEWEST = 3
_FEWEST_CHINESE = 4
SECOND_ADDS = 0.2  # of the words, before a second passage is named too
_SHORT = 40  # letters, up to which an answer may say no more than what was asked for
_BARE = re.compile(r"[\s,，*_`“”\"']+|(?<![.。!！])[.。!！]++\Z")
DENIAL = re.compile(
    r"\b(?:not|no|n't|cannot|can't|doesn't|don't|didn't|isn't)\b.{0,40}"
    r"\b(?:mention|contain|say|state|provide|specif|include|find|found|information|know|sure|answer)"
    r"|没有(?:提|说|给|包含|找到|相关)|未(?:提|说明|找到|包含)|无法|不(?:知道|清楚|确定)|沒有(?:提|說|給|包含|找到|相關)|無法",
    re.IGNORECASE,
)
_HUNDREDTHS = re.compile(r"百分之\s*(\d+(?:\.\d+)?|[零〇一二两三四五六七八九十百点]+)")
_DIGIT = re.compile(r"\d")
_PERCENT = re.compile(r"(?<=\d)\s*+(?:%|per\s?cent\b)", re.IGNORECASE)
_CURRENCIES = {"€": "euro", "$": "dollar", "£": "pound", "¥": "yuan"}
_MONEY = re.compile(r"([€$£¥])\s*+(\d(?:[\d.,]*\d)?)")
_PRICE = re.compile(r"\$(?=\d)")
_MONEY_AFTER = re.compile(r"(?<=\d)\s*+[€$£¥]")
_GLUED = re.compile(r"(?<![^\W_])(?<!\d[.,])(\d++(?:[.,]\d++)*+)([^\W\d_]++)")
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
SILENT = re.compile(r"[\s!-/:-@\[-`{-~。！？；，：、]*+")  # signs without a word
ORDINAL = re.compile(r"\A\s*(?:[-*+>]\s+|\d{1,3}(?:\.(?!\d)|[)、])\s*)+")


_SOURCE = r"(?:passages?|facts?|information|texts?|documents?|files?|context|policy|\w+\.[a-z]{3,4})"
LEAD = re.compile(  # says where it stands, and nothing of what stands there
    rf"\A\s*(?:according to|based on|as (?:stated|mentioned|said) in)\s[^,.;\n]{{0,60}}\b{_SOURCE}\b[^,.;\n]{{0,30}},\s"
    r"|\A\s*(?:根据|依据|按照)[^，。；\n]{0,20}(?:资料|文档|文件|段落|文字|内容|信息|文本)[^，。；\n]{0,8}，",
    re.IGNORECASE,
)


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
        # What a program counted is no piece of a document, and says nothing but that.
        self._computed = [at for at, one in enumerate(passages) if one.document_id and not one.chunk_id]
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
            or SILENT.fullmatch(sentence)
            or DENIAL.search(sentence)
            or sentence.rstrip().endswith((":", "：", "?", "？"))
        ):
            return []
        sentence = LEAD.sub("", ORDINAL.sub("", sentence, count=1), count=1)
        said = words_of(sentence)
        is_chinese = ideographs(sentence) * 2 > len(sentence)
        share, fewest = (_SHARE_CHINESE, _FEWEST_CHINESE) if is_chinese else (_SHARE, _FEWEST)
        if len(said) < fewest - 1:
            return self._of_question(sentence, share) or self._of_figures(said)
        figures = {word for word in said if is_figure(word)}
        shared = [said & words for words in self._words]
        order = sorted(range(len(shared)), key=lambda at: (-len(shared[at]), at))
        named = self._named(shared, order, len(said), share)
        borne = set[str]().union(*(shared[at] for at in named))
        # A wrong figure is what models invent most: one that no named passage has speaks against it.
        enough = fewest - 1 if figures or len(borne) >= _NEARLY_ALL * len(said) else fewest
        if len(borne) >= enough and figures <= borne:
            return [at + 1 for at in named]
        return (self._of_question(sentence, share) if len(said) < fewest else []) or self._of_figures(said)

    def _of_figures(self, said: set[str]) -> list[int]:
        """What a program counted, where the sentence says its figures, and else the words of the question alone."""
        figures = {word for word in said if is_figure(word)}
        for at in self._computed:
            if figures and figures < said and figures <= self._words[at] and said <= self._words[at] | self._asked:
                return [at + 1]
        return []

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
        adds_much = added >= 2 and added >= SECOND_ADDS * said
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
    if found[1][0].isdigit():
        return f" {found[1]} percent "
    number = number_of_han(found[1])
    return found[0] if number is None else f" {number:.10g} percent "


# A run of spaces is tried once, from its start: models that loop write many.
_MARK = re.compile(r"(?<![ \t])[ \t]*+(?:\[\d{1,3}\])+")
_BULLET = re.compile(r"\s*(?:[-*+>]\s+|\d{1,3}(?:\.(?!\d)|[)、])\s*)*")


def sentences_of(text: str) -> list[tuple[str, int]]:
    """The sentences of the prose in a Markdown text, without marks, each with its end in the text."""
    return [(sentence, end) for sentence, _, end in placed_sentences(text)]


def placed_sentences(text: str) -> list[tuple[str, int, int]]:
    """As `sentences_of`, each with its start and its end in the text, marks that follow it included."""
    found: list[tuple[str, int, int]] = []
    markup, start = Markup(), 0
    ordinary: dict[str, list[tuple[str, int, int]]] = {}  # a line that is written again is looked at once
    for line in text.split("\n"):
        inside = ordinary.get(line)
        if markup.is_ordinary(line):
            if inside is None:
                inside = ordinary[line] = _in_line(line, line)
            found += [(sentence, start + begin, start + end) for sentence, begin, end in inside]
        else:
            plain = _with_prices(line, markup.without_literals(line))
            if plain and not plain.isspace() and markup.is_prose():
                found += [(sentence, start + begin, start + end) for sentence, begin, end in _in_line(line, plain)]
            markup.is_literal("\n")
        start += len(line) + 1
    return found


def _with_prices(line: str, plain: str) -> str:
    """A line without its formulas, with the dollar signs of its prices: they begin none."""
    prices = {sign.start() for sign in _PRICE.finditer(line) if plain[sign.end()] == line[sign.end()]}
    return "".join("$" if at in prices else letter for at, letter in enumerate(plain)) if prices else plain


def _in_line(line: str, plain: str) -> list[tuple[str, int, int]]:
    """The sentences of a line; marks are blanked out first, as no space separates them from the full stop."""
    begins = _BULLET.match(plain)
    skip = begins.end() if begins else 0
    if skip:
        plain = " " * skip + plain[skip:]
    if "[" in plain:
        plain = _MARK.sub(lambda mark: " " * len(mark[0]), plain)
    return [
        (sentence, b - len(plain[a:b].lstrip()), a + len(line[a:b].rstrip()))
        for a, b in sentence_spans(plain)
        if (sentence := plain[a:b].strip())
    ]


def is_figure(word: str) -> bool:
    """Whether a word has a digit in it."""
    return any(letter.isdigit() for letter in word)
