"""Roman numerals of chapters, articles, volumes and the like, in English and Chinese."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from core.rag.numerals import number_of_roman

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SAME: Final[Mapping[str, str]] = {
    written: part
    for part, others in {
        "chapter": "chapters chap ch 章 回",
        "section": "sections sect sec 节 節",
        "article": "articles art 条 條 款",
        "part": "parts 部 部分",
        "title": "titles",
        "volume": "volumes vol vols 卷",
        "book": "books 册 冊 编 編",
        "act": "acts 幕",
        "scene": "scenes 场 場",
        "canto": "cantos",
        "appendix": "appendices 附录 附錄",
        "annex": "annexes 附件",
        "schedule": "schedules 附表",
        "letter": "letters",
    }.items()
    for written in (part, *others.split())
}
"""Each way to write what has the numeral, with its plain name."""

# One letter may be a letter, and of two, those with C, D or M are words of their own: CD, MC, MD.
_NUMERAL = r"(?:[IVXLCDM]{3,15}|[IVXL]{2})(?![A-Za-z\d])"
_ANY = r"[IVXLCDM]{1,15}(?![A-Za-z\d])"
_LIST = rf"{_ANY}(?:(?:\s?[,–—-]\s?|,?\s(?:and|or|to|through)\s|\s?[和与至到、及]\s?){_ANY})*+"
_LATIN = "|".join(sorted((one for one in _SAME if one.isascii()), key=len, reverse=True))
_HAN = "|".join(sorted((one for one in _SAME if not one.isascii()), key=len, reverse=True))
PARTS: Final = re.compile(
    rf"\b(?i:(?P<label>{_LATIN}))\b\.?\s(?P<latin>{_LIST})"
    rf"|第\s?(?P<between>{_LIST})\s?(?P<unit>{_HAN})"
    rf"|(?P<before>附录|附錄|附件|附表|卷)\s?(?P<after>{_LIST})"
)
_EACH: Final = re.compile(rf"(?<![A-Za-z]){_NUMERAL}")


class Part(NamedTuple):
    """A part of a work that has a Roman numeral.

    Args:
        of: What it is, such as `chapter`.
        words: The numeral as it stands.
        number: What it says.
        start: Where the numeral begins.
        begins: Where the words for it all begin.
    """

    of: str
    words: str
    number: int
    start: int
    begins: int


def parts_in(text: str) -> Iterator[Part]:
    """The parts that a text names by Roman numerals, in their order: "chapters XI and XII" are two."""
    for match in PARTS.finditer(text):
        yield from parts_of(match)


def parts_of(match: re.Match[str]) -> Iterator[Part]:
    """The parts in one match of `PARTS`."""
    group = "latin" if match["latin"] else "between" if match["between"] else "after"
    of = _SAME[(match["label"] or match["unit"] or match["before"]).lower()]
    for each in _EACH.finditer(match.string, match.start(group), match.end(group)):
        if (number := number_of_roman(each[0])) is not None:
            yield Part(of, each[0], number, each.start(), match.start())
