"""The fields of a PDF form as lines, "label: value", each with its place; what is not ticked is told as such."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.rag.document import Block, union
from core.rag.parsers.base import clean, is_ideograph
from core.rag.parsers.pdf_page import Line
from core.rag.prose import ideographs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.languages import Lang
    from core.rag.document import Rectangle
    from core.rag.parsers.pdf_page import Field, Runs, Word

# Names that programs give: with places in a tree, with numbers, or without a single word.
_INTERNAL = re.compile(
    r"\[\d+\]|^[a-z]{0,3}[_.\-]?\d+(?:[_.\-]\d+)*$|^(?:text|check\s?box|field|button|group|undefined|untitled|topmost"
    r"|combo|list|radio|date|form|input|tf|cb|rb|fill)[\s_.\-]*\d*(?:[_.\-]\d+)*$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{3,}|[\u3400-\u9fff]{2,}")
_PARTS = re.compile(r"(?<=[a-zà-þ])(?=[A-ZÀ-Þ])|[_\-.]+")
_SAME_ROW = 0.4  # of the lower height: words that share so much with a field stand beside it
_GAP = 18.0  # points between words of one label
_AWAY, _FAR = 80.0, 240.0  # points between a label and its field: where there may be one above it, and at most
_ABOVE = 16.0  # points
_TIE = 2.0  # points by which the words after a box may be further away than those before it
_LONGEST: Final = 160  # letters of a label
_MOST_OPTIONS: Final = 12
_TICKS: Final = ("4", "8", "H", "l", "n", "u")  # what the ticks of Zapf Dingbats, by which boxes are drawn, may read as
_SAID: Final[Mapping[Lang, Mapping[str, str]]] = {
    "en": {
        "line": "{label}: {value}",
        "on": "checked",
        "off": "not checked",
        "chosen": "selected",
        "left": "not selected",
        "empty": "(empty)",
        "signed": "signed",
        "unsigned": "not signed",
        "options": "{value} (options: {options})",
        "between": ", ",
    },
    "zh": {
        "line": "{label}：{value}",
        "on": "已勾选",
        "off": "未勾选",
        "chosen": "已选择",
        "left": "未选择",
        "empty": "（空）",
        "signed": "已签名",
        "unsigned": "未签名",
        "options": "{value}（选项：{options}）",
        "between": "、",
    },
}


def with_fields(runs: Runs, fields: Sequence[Field], words: Sequence[Word], number: int) -> Runs:
    """The runs of lines of a page, without the values drawn within fields, and with a line for all fields at the end.

    Args:
        runs: Places as displayed.
        fields: In the order of the file.
        words: Of the page.
        number: The page's, from 1.
    """
    if not fields:
        return runs
    places = [one.place for one in fields]
    drawn = [(one.place, _drawn(one)) for one in fields]
    kept = [left for run in runs if (left := [line for line in run if line.table or not _is_value(line, drawn)])]
    # A field of the whole page, as for a signature, holds the labels of the others.
    apart = [place for place in places if not any(one != place and _within(one, [place]) for one in places)]
    outside = [word for word in words if not _within(word[:4], apart)]
    rows = sorted(fields, key=lambda one: (round(one.place[1] / 6), one.place[0]))
    lang: Lang = "zh" if _is_chinese(outside) else "en"
    lines: list[tuple[int, Rectangle]] = []
    text = ""
    for one in rows:
        text += "\n" if text else ""
        lines.append((len(text), one.place))
        text += value_told(one, label_of(one, outside, places), lang)
    around = union(tuple(places)) or (0.0, 0.0, 0.0, 0.0)
    block = Block("paragraph", text, number, tuple(lines))
    return [*kept, [Line("", around, 0.0, bold=False, table=block)]]


def label_of(field: Field, words: Sequence[Word], places: Sequence[Rectangle]) -> str:
    """What a field is called: as the file tells people, by the words beside it, or by its name."""
    told = _tidy(field.told)
    if told and not is_internal(told):
        return told
    (right, to_right), (left, to_left) = (_beside(field, words, places, after=after) for after in (True, False))
    if field.kind in {"check", "radio"}:
        beside = right if right and (not left or to_right <= to_left + _TIE) else left
    else:
        above = _above(field, words) if not left or to_left > _AWAY else ""
        beside = above or left
    if beside:
        return beside
    name = _tidy(field.name)
    return name_told(name)


def is_internal(name: str) -> bool:
    """Whether a name is one that a program gave, and tells people nothing."""
    return bool(_INTERNAL.search(name)) or not _WORD.search(name)


def name_told(name: str) -> str:
    """The name of a field in words, without its place in the tree of the form."""
    last = next((part for part in reversed(re.split(r"[.]", name)) if part), name)
    last = re.sub(r"\[\d+\]", "", last)
    return " ".join(_PARTS.sub(" ", last).split()) or name or "-"


def value_told(field: Field, label: str, lang: Lang) -> str:
    """The line of a field: what it is called, and what was filled in."""
    said = _SAID[lang]
    match field.kind:
        case "check":
            value = said["on" if field.on else "off"]
        case "radio":
            value = said["chosen" if field.on else "left"]
        case "signature":
            value = said["signed" if field.on else "unsigned"]
        case "choice":
            options = said["between"].join(field.options[:_MOST_OPTIONS])
            value = said["options"].format(value=_tidy(field.value) or said["empty"], options=options)
            value = value if options else _tidy(field.value) or said["empty"]
        case "text":
            value = _tidy(field.value) or said["empty"]
    return said["line"].format(label=label.rstrip(" :："), value=value)


def _tidy(text: str) -> str:
    return " ".join(clean(text).split())


def _within(box: Line | Sequence[float], places: Sequence[Rectangle]) -> bool:
    x0, y0, x1, y1 = box.rectangle if isinstance(box, Line) else box
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    return any(left <= x <= right and top <= y <= bottom for left, top, right, bottom in places)


def _drawn(field: Field) -> Sequence[str]:
    """What may be drawn in a field, without blanks."""
    return _TICKS if field.kind in {"check", "radio"} else [_squeezed(one) for one in (field.value, *field.options)]


def _is_value(line: Line, drawn: Sequence[tuple[Rectangle, Sequence[str]]]) -> bool:
    """Whether a line is what a field says: its value, an option or a mark. Other words within it were printed there."""
    here = [texts for place, texts in drawn if _within(line, [place])]
    text = _squeezed(line.text) if here else ""
    return bool(here) and (not any(map(str.isalnum, text)) or any(text in one for texts in here for one in texts))


def _squeezed(text: str) -> str:
    return "".join(clean(text).split())


def _beside(field: Field, words: Sequence[Word], places: Sequence[Rectangle], *, after: bool) -> tuple[str, float]:
    """The words on the row of a field, up to the next gap or the next field, and how far away they begin.

    Args:
        after: Whether those after it are meant, or those before it.
    """
    x0, top, x1, bottom = field.place
    row = [word for word in words if _shared(word[1], word[3], top, bottom)]
    ends = [place for place in places if place != field.place and _shared(place[1], place[3], top, bottom)]
    found: list[str] = []
    away = _FAR
    edge, gap = (x1, _AWAY / 2) if after else (x0, _FAR)
    for word in sorted(row, key=lambda one: one[0], reverse=not after):
        far = word[0] - edge if after else edge - word[2]
        if far < -4:
            continue
        between = (edge, word[0]) if after else (word[2], edge)
        if far > gap or any(between[0] - 2 <= (place[0] + place[2]) / 2 <= between[1] + 2 for place in ends):
            break
        away = far if not found else away
        found.append(word[4])
        edge, gap = (word[2] if after else word[0]), _GAP
    return _sentence(found if after else found[::-1]), away


def _above(field: Field, words: Sequence[Word]) -> str:
    """The words of the row just above a field, those that begin over it."""
    x0, top, x1, _ = field.place
    near = [one for one in words if 0 <= top - one[3] + 3 <= _ABOVE and one[2] > x0 - 2 and one[0] < x1]
    if not near:
        return ""
    bottom = max(one[3] for one in near)
    row = sorted((one for one in near if bottom - one[3] < 3), key=lambda one: one[0])
    found, edge = list[str](), row[0][0]
    for word in row:
        if word[0] - edge > _GAP:
            break
        found.append(word[4])
        edge = word[2]
    return _sentence(found)


def _sentence(words: Sequence[str]) -> str:
    text = ""
    for word in filter(None, (clean(one).strip() for one in words)):
        text += word if not text or (is_ideograph(text[-1]) and is_ideograph(word[0])) else f" {word}"
    text = text.strip(" :：._…·").strip()
    return text[:_LONGEST] if _WORD.search(text) or ideographs(text) or any(map(str.isalnum, text)) else ""


def _shared(top: float, bottom: float, above: float, below: float) -> bool:
    return min(bottom, below) - max(top, above) > _SAME_ROW * min(bottom - top, below - above)


def _is_chinese(words: Sequence[Word]) -> bool:
    text = "".join(word[4] for word in words)
    return ideographs(text) * 3 > len(text)
