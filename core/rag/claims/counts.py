"""Sentences that tell what a program counted, in words of their own: borne out by it, or said of something else.

A sentence is borne out where nothing is left of it but the figure, words of the program's sentence and words that
change nothing, such as "there are" and "in all": another word may be a condition. A value of the same column that the
program did not count for speaks against it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from core.rag.claims.figures import Figure, figures_of
from core.rag.claims.lists import listed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from core.rag.document import Passage

_WHERE: Final = re.compile(
    r"(?:\b(?:rows?|totals) fulfil|行满足) (?P<held>[^,，]+?)(?:, which is\b|，占|[.。]\Z)"
    r"|(?:, those with |，条件：)(?P<those>[^;；]+?)[)）]"
)
_AND: Final = re.compile(r" and | 且 ")
_EQUALS: Final = re.compile(r"(?P<column>[^=≠<>≤≥∋]+?) = (?P<value>[^=≠<>≤≥∋]+)")
_FIGURE: Final = re.compile(
    r": the (?P<figure>sum|average|median) of (?P<column>.+?) is |：(?P<han>.+?) 的(?P<zh>总和|平均值|中位数)是 "
)
_FIGURES: Final = {
    "sum": listed("sum total totals overall altogether together amount amounts insgesamt summe"),
    "average": listed("average"),
    "median": listed("median"),
    "总和": ("总", "合计", "共"),
    "平均值": ("平均",),
    "中位数": ("中位",),
}
_HOLDS: Final = listed("condition conditions criteria criterion requirement requirements bedingung bedingungen")
_HOLDS_HAN: Final = re.compile("条件|要求|符合|满足")
_SAYS_NOTHING: Final = _HOLDS | listed(
    """
    a an the this these that which who where of in from for with to and as by there it they is are was were be been has
    have had having total altogether all count counts counted number row rows record records entry entries item items
    table sheet data dataset file document list listed provided given specified based on according information result
    results found find shows show contains contain includes include come comes came coming placed located belong belongs
    meet meets met meeting match matches matching matched satisfy satisfies satisfying fulfil fulfils fulfill fulfills
    fulfilling fulfilled so such region out your question answer amounts equal equals
    der die das den dem des in im aus von mit und es gibt sind ist war waren wurden insgesamt laut tabelle daten
    erfüllen erfüllt zeilen einträge
    """
)
_SAYS_NOTHING_HAN: Final = re.compile(
    "根据|按照|依据|提供|给出|数据集|数据|表格|工作表|表中|资料|文档|文件|信息|符合|满足|条件|要求|一共|总共|共计|共有|来自|属于|总数|数量"
    "|记录|结果|显示|统计|得出|地区|[的共有是为在中里这该些行条个笔位名项张家了]"
)
_WORD: Final = re.compile(r"[^\W\d_\u3400-\u9fff]+(?:['’-][^\W\d_\u3400-\u9fff]+)*")
_HAN: Final = re.compile(r"[\u3400-\u9fff]+")
_THING: Final = re.compile(
    r"\b(?:how many|number of|wie viele) (?P<latin>[^\W\d_]+)"
    r"|(?:多少|几)[个条笔位名项张家种]?(?P<han>[\u4e00-\u9fff]{1,4}?)(?=[呢吗？?]|\Z)",
    re.IGNORECASE,
)
_OF_WHOLE: Final = re.compile(r"\b(?:of|von)(?: the| all| den| a total of)?\s\Z")
_WHOLE_HAN: Final = re.compile(r"\s?[\u4e00-\u9fff]{0,4}中")
_YES: Final = listed("yes ja true 是")
_NO: Final = listed("no nein false 否")
_MONEY: Final = frozenset({"$", "€", "£", "¥"})
_LONGEST: Final = 1_000  # letters of a sentence, a question or what a program said


class _Condition(NamedTuple):
    column: str
    value: str


@dataclass(frozen=True)
class _Counted:
    """What a program counted.

    Args:
        number: Of the passage.
        others: All figures of its sentence.
        conditions: Those that ask for one value of a column.
        is_plain: Whether these are all.
        needs: One word of each of these says what was worked out: that it is a sum, and of what.
        words: All that the sentence says.
        han: Likewise, in Chinese.
    """

    number: int
    figure: Figure
    others: tuple[Figure, ...]
    conditions: tuple[_Condition, ...]
    is_plain: bool
    needs: tuple[Collection[str], ...]
    words: frozenset[str]
    han: tuple[str, ...]


class Counts:
    """What programs counted for an answer.

    Args:
        passages: As they are numbered, from 1.
        asked: The question; what it counts may be named.
    """

    def __init__(self, passages: Sequence[Passage], asked: str) -> None:
        self._counted = [one for at, each in enumerate(passages, 1) if (one := _counted(at, each)) is not None]
        self._rows = [_rows(one.text) for one in passages if not one.computed] if self._counted else []
        thing = _THING.search(asked[:_LONGEST])
        self._thing = (thing["latin"] or thing["han"]).casefold() if thing else ""

    def bears_out(self, sentence: str, cited: Collection[int]) -> int:
        """The number of the passage that bears a sentence out to its last word; 0 for none.

        Args:
            cited: The numbers of its marks.
        """
        if not self._counted or len(sentence) > _LONGEST:
            return 0
        figures = figures_of(sentence)
        for one in self._counted:
            if (not cited or one.number in cited) and self._says_it(sentence, figures, one):
                return one.number
        return 0

    def is_of_another(self, sentence: str) -> bool:
        """Whether a sentence gives what was counted for one value of a column to another one, "East" for "West"."""
        if not self._counted or len(sentence) > _LONGEST:
            return False
        figures, folded = figures_of(sentence), sentence.casefold()
        told = [one for one in self._counted if any(_is(each, one.figure) for each in figures)]
        mine = {condition for one in told for condition in one.conditions}
        for condition in mine:
            if _stands_in(condition.value, folded):
                continue
            for value, others in self._beside(condition):
                if _stands_in(value, folded) and _Condition(condition.column, value) not in mine:
                    return not any(_is(each, other) for each in figures for other in others)
        return False

    def _says_it(self, sentence: str, figures: Sequence[Figure], one: _Counted) -> bool:
        if not any(_is(each, one.figure) for each in figures):
            return False
        folded = rest = sentence.casefold()
        for each in figures:
            if not _is(each, one.figure) and not _is_whole(each, sentence, one):
                return False
            rest = rest.replace(each.words.casefold(), " ")
        words = _WORD.findall(rest)
        if not all(any(word in words or (not word.isascii() and word in rest) for word in some) for some in one.needs):
            return False
        if not (_HOLDS.intersection(words) or _HOLDS_HAN.search(rest)) and not _names_all(one, folded):
            return False
        allowed = _SAYS_NOTHING.union({self._thing}, one.words, *one.needs)
        for run in _HAN.findall(rest):
            left = run
            for name in sorted({self._thing, *one.han}.union(*one.needs) - {""}, key=len, reverse=True):
                left = left.replace(name, " ")
            if _SAYS_NOTHING_HAN.sub("", left).strip():
                return False
        return all(word in allowed or word.removesuffix("s") in allowed or f"{word}s" in allowed for word in words)

    def _beside(self, condition: _Condition) -> Iterator[tuple[str, list[Figure]]]:
        """The other values of a column, each with figures that are given for it."""
        for head, *rows in filter(None, self._rows):
            if condition.column not in head:
                continue
            at = head.index(condition.column)
            for value in dict.fromkeys(
                row[at] for row in rows if at < len(row) and row[at] and row[at] != condition.value
            ):
                own = [row for row in rows if at < len(row) and row[at] == value]
                yield value, [figure for row in own for figure in figures_of(" | ".join(row))]
        for one in self._counted:
            for other in one.conditions:
                if other.column == condition.column and other.value != condition.value:
                    yield other.value, [one.figure]


def _counted(number: int, passage: Passage) -> _Counted | None:
    """What a passage tells as one figure under conditions; `None` for any other passage."""
    text = passage.text[:_LONGEST]
    where = _WHERE.search(text) if passage.computed else None
    told = figures_of(passage.computed) if where else []
    if where is None or len(told) != 1:
        return None
    parts = [_EQUALS.fullmatch(part.strip()) for part in _AND.split((where["held"] or where["those"]).casefold())]
    conditions = tuple(_Condition(part["column"].strip(), part["value"].strip()) for part in parts if part)
    needs: list[Collection[str]] = []
    if figure := _FIGURE.search(text):
        needs.append(_FIGURES[figure["figure"] or figure["zh"]])
        column = (figure["column"] or figure["han"]).casefold()
        needs += [(word,) for word in [*_WORD.findall(column), *_HAN.findall(column)]]
    said = f"{text} {passage.heading}".casefold()
    return _Counted(
        number,
        told[0],
        tuple(figures_of(text)),
        conditions,
        all(parts),
        tuple(needs),
        frozenset(_WORD.findall(said)),
        tuple(_HAN.findall(said)),
    )


def _rows(text: str) -> list[list[str]]:
    lines = [line for line in text.casefold().splitlines() if " | " in line]
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def _names_all(one: _Counted, folded: str) -> bool:
    """Whether a sentence names what each condition asks for: the value, or the column that says yes."""
    return one.is_plain and all(
        condition.value not in _NO
        and _stands_in(condition.column if condition.value in _YES else condition.value, folded)
        for condition in one.conditions
    )


def _is(said: Figure, counted: Figure) -> bool:
    """Whether a figure is the one that was counted; "72 %" is not 72."""
    return (
        said.equals(counted) and not said.bound and said.unit in {counted.unit, *(_MONEY if not counted.unit else ())}
    )


def _is_whole(said: Figure, sentence: str, one: _Counted) -> bool:
    """Whether a figure is told as the whole that was counted in, "72 of 300", or stands in a condition."""
    if not any(_is(said, other) for other in one.others):
        return False
    before, after = sentence[: said.start], sentence[said.start + len(said.words) :]
    return bool(_OF_WHOLE.search(before[-20:]) or _WHOLE_HAN.match(after))


def _stands_in(name: str, folded: str) -> bool:
    if not name or name not in folded:
        return False
    return bool(_HAN.search(name)) or bool(re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", folded))
