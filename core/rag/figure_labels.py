"""Figures by their names ("Figure 3", "图 2") in captions and questions, and what is told of a figure in passages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.rag.numerals import number_of_han
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.languages import Lang

_TABLES: Final = "table|tables|tab|tabelle|tabellen|tableau|tabla|表格|表"
_FIGURES: Final = (
    "figure|figures|fig|figs|chart|diagram|graph|illustration|exhibit|plate|scheme|image|picture|photo"
    "|abbildung|abbildungen|abb|bild|figura|插图|示意图|附图|图表|图|圖"
)
_KIND = rf"(?P<table>{_TABLES})|(?P<figure>{_FIGURES})"
_NUMBER = r"(?P<number>[a-z]?\d{1,3}(?:[.\-–]\d{1,3}){0,3}[a-z]?(?![\w])|[零一二两三四五六七八九十百]{1,5})"
_HAN_NUMBER = r"(?P<number>[a-zA-Z]?\d{1,3}(?:[.\-–]\d{1,3}){0,3}|[零一二两三四五六七八九十百]{1,5})"
_LATIN_NAME = re.compile(rf"(?<![^\W\d_])(?:{_KIND})\.?\s{{0,3}}(?:no\.?\s{{0,2}})?{_NUMBER}", re.IGNORECASE)
_HAN_NAME = re.compile(
    r"第?\s{0,2}(?:(?P<table>表格|表)|(?P<figure>插图|示意图|附图|图表|图|圖))\s{0,3}" + _HAN_NUMBER, re.IGNORECASE
)
_BEFORE_HAN = re.compile(
    r"第\s{0,2}" + _HAN_NUMBER + r"\s{0,2}(?:张|幅|个)\s{0,2}(?:(?P<table>表格|表)|(?P<figure>插图|图表|图片|图|圖))"
)
# What comes after the name of a figure in its caption; in a sentence about it a word in small letters does.
_AFTER_NAME = re.compile(r"\s{0,4}(?:[.:：。|–—-]|\s{1,4}[A-ZÀ-Þ0-9\"“(\[]|[\s\u3000]{0,4}[\u3400-\u9fff]|\s{0,4}$)")
_SAYS_MORE = re.compile(r"\s{0,4}(?:所示|显示|表明|给出|中的?|是|为|展示|说明|可以|可知)")
_LONGEST: Final = 400  # letters of a text in which a name is looked for
_MOST: Final = 8
_MARKS: Final[Mapping[Lang, tuple[str, str]]] = {
    "en": ("[Figure]", "[Words in the figure]"),
    "zh": ("[图]", "[图中文字]"),
}


def label_of(caption: str) -> str:
    """What a caption calls its figure: "figure 3", "table 2-1"; "" for a text that is no caption.

    A sentence that speaks of a figure is none: "Figure 3 shows …".
    """
    text = caption[:_LONGEST].lstrip()
    found = _LATIN_NAME.match(text) or _HAN_NAME.match(text)
    if found is None:
        return ""
    rest = text[found.end() :]
    return _named(found) if _AFTER_NAME.match(rest) and not _SAYS_MORE.match(rest) else ""


def labels_in(question: str) -> list[str]:
    """The figures that a question names, each once: "figure 3" for "What does Fig. 3 show?" and for 图3."""
    text = question if len(question) <= 2 * _LONGEST else f"{question[:_LONGEST]} {question[-_LONGEST:]}"
    patterns = (_LATIN_NAME, _HAN_NAME, _BEFORE_HAN)
    found = [(one.start(), _named(one)) for pattern in patterns for one in pattern.finditer(text)]
    return list(dict.fromkeys(name for _, name in sorted(found) if name))[:_MOST]


def figure_text(caption: str, words: str = "") -> str:
    """What stands for a figure in passages: its caption, and the words inside of it, both marked; "" without any."""
    caption, words = " ".join(caption.split()), words.strip()
    if not caption and not words:
        return ""
    read = "".join((caption or words).split())
    figure, inside = _MARKS["zh" if ideographs(read) * 3 > len(read) else "en"]
    first = f"{figure} {caption}".rstrip()
    return f"{first}\n{inside} {words}" if words else first


def is_figure(text: str) -> bool:
    """Whether a passage begins with what `figure_text` wrote."""
    return text.startswith(tuple(figure for figure, _ in _MARKS.values()))


def without_signs(text: str) -> str:
    """The text without the signs that `figure_text` put before a caption and before the words of a figure."""
    for sign in (sign for signs in _MARKS.values() for sign in signs) if "[" in text else ():
        text = text.replace(sign, " ")
    return text


def caption_in(text: str) -> str:
    """The caption in what `figure_text` wrote."""
    first = text.partition("\n")[0]
    mark = next((figure for figure, _ in _MARKS.values() if first.startswith(figure)), "")
    return first[len(mark) :].strip() if mark else ""


def words_in(text: str) -> str:
    """The words inside of the figure in what `figure_text` wrote."""
    rest = text.partition("\n")[2] if is_figure(text) else ""
    mark = next((inside for _, inside in _MARKS.values() if rest.startswith(inside)), "")
    return rest[len(mark) :].strip()


def _named(found: re.Match[str]) -> str:
    number = found["number"]
    counted = number_of_han(number)
    plain = f"{counted:g}" if counted is not None else number.replace("–", "-").casefold()
    return f"{'table' if found['table'] else 'figure'} {plain}"
