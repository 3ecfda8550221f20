"""What a question needs of documents: a passage, a part of them, the whole, or only which files there are.

Rules decide, from the words of the question, before anything is searched, and the model decides the rest: it has the
tool that reads all on offer, and where a question that counts or lists was answered from passages, it is told that they
are not all. A guess that goes too far costs time; one that does not go far enough finds passages, as any question does.
Why no vectors decide: docs/decisions.md.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.rag.document import numbered_as
from core.rag.numerals import number_of_han

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.document import Passage

Need: TypeAlias = Literal["passage", "part", "whole", "files"]
Unit: TypeAlias = Literal["page", "slide", "sheet", "chapter"]

_SEEN: Final = 400
"""Letters at either end of a question that are looked at: what is pasted between them says nothing of what is asked."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of documents that a question is about.

    Args:
        unit: What it is counted in; `chapter` for whatever has a heading.
        first, last: From 1; below 0 counted from the end; 0 where a heading is meant by its words.
        words: Those of the heading.
    """

    unit: Unit
    first: int = 0
    last: int = 0
    words: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a question needs.

    Args:
        part: Where it needs a part.
        plain: Whether it asks for a summary and nothing else, so that one that was made before answers it as well.
        lists: Whether it asks for each of something, or how many there are.
    """

    need: Need = "passage"
    part: Part | None = None
    plain: bool = False
    lists: bool = False


def scope_of(question: str) -> Scope:
    """What the question needs, by its words."""
    return understood(_looked_at(question))


@lru_cache(256)
def understood(text: str) -> Scope:
    """What a question needs; kept for a while, for one reply asks several times.

    Args:
        text: All of a short question, with single spaces, or both ends of a long one.
    """
    plain = _says("plain", text)
    if _says("topic", text):
        return Scope("whole", None, plain)
    if _says("files", text):
        return Scope("files")
    lists = not plain and _says("listing", text) and not _says("retells", text)
    whole = _is_whole(text)
    part = _part_in(text, asks_for_all=whole)
    if part and part != _APART:
        return Scope("part", part, plain, lists)
    if part or whole:
        return Scope("whole", None, plain, lists)
    return Scope(lists=lists and not _says("figure", text))


def exceeds_passages(question: str) -> bool:
    """Whether passages may be too little for it: it counts or lists something, or is about the whole."""
    scope = scope_of(question)
    return scope.lists or scope.need == "whole"


def is_of_topic(question: str) -> bool:
    """Whether it asks what the documents are about altogether: how they begin says that, too."""
    return _says("topic", _looked_at(question))


def _looked_at(question: str) -> str:
    return " ".join((question if len(question) <= 2 * _SEEN else f"{question[:_SEEN]} {question[-_SEEN:]}").split())


def passages_in(part: Part, passages: Sequence[Passage]) -> list[Passage]:
    """Those of the passages that stand in the part; none where there is no such part.

    Args:
        passages: All of the documents, in their order.
    """
    if part.unit == "chapter":
        return _under_heading(part, passages)
    ends: dict[str, int] = {}
    for one in passages:
        if one.page is not None:
            ends[one.document_id] = max(ends.get(one.document_id, 0), one.page)
    found: list[Passage] = []
    for one in passages:
        end = ends.get(one.document_id, 0)
        first, last = (at if at > 0 else end + 1 + at for at in (part.first, part.last))
        if one.page is not None and max(first, 1) <= one.page <= last and _is_counted(part.unit, one.document):
            found.append(one)
    return found


def _is_counted(unit: Unit, name: str) -> bool:
    """Whether pages of the document are called so; what is called a page may be a slide or a sheet all the same."""
    return unit == "page" or numbered_as(name) == unit


def _under_heading(part: Part, passages: Sequence[Passage]) -> list[Passage]:
    paths = {one.heading: one.heading.split(" > ") for one in passages if one.heading}
    if not part.words and part.first < 0:
        tops = list(dict.fromkeys(path[0] for path in paths.values()))
        wanted = set(tops[part.first :][:1])
        return [one for one in passages if one.heading and paths[one.heading][0] in wanted]
    fits = {heading for heading, path in paths.items() if any(_is_heading(level, part) for level in path)}
    return [one for one in passages if one.heading in fits]


def _is_heading(heading: str, part: Part) -> bool:
    if part.words:
        return part.words.casefold() in heading.casefold()
    if number := _NUMBER_OF.match(heading):
        return part.first <= _number(next(filter(None, number.groups()))) <= part.last
    return False


# ---- numbers in words

_COUNT: Final = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_ORDINAL: Final = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_ROMAN: Final = "i|ii|iii|iv|v|vi|vii|viii|ix|x|xi|xii"
_NUMBERS: Final[Mapping[str, int]] = {
    **{word: at for words in (_COUNT, _ORDINAL, _ROMAN) for at, word in enumerate(words.split("|"), 1)},
    **{letter: at for at, letter in enumerate("abcdefgh", 101)},  # of an appendix, which is no chapter
    **dict.fromkeys(("last", "final", "最后"), -1),
}
_N: Final = r"\d{1,4}(?:\.\d{1,3})*"
_HAN_N: Final = r"[一二三四五六七八九十百两]{1,5}|\d{1,4}"
_NUMBER_OF = re.compile(
    rf"\s*(?:(?:chapter|section|part|article|appendix|clause|§)\s*({_N}|[ivx]{{1,5}}\b|[a-h]\b)|第\s*({_HAN_N})\s*[章节条部篇]"
    rf"|附录\s*([A-Ha-h\d]{{1,2}})|({_N})[.、)\s])",
    re.IGNORECASE,
)


def _number(word: str) -> int:
    """The number that a word or figure stands for; of "2.4" the first; 0 for none."""
    word = word.strip().casefold()
    if word[:1].isdigit() and word[0].isascii():
        return int(word.split(".")[0])
    if word in _NUMBERS:
        return _NUMBERS[word]
    return int(number_of_han(word) or 0)


# ---- a part of the documents

_UNITS: Final = r"pages?|slides?|sheets?|worksheets?|tabs?"
_HEADED: Final = r"chapter|section|part|article|clause|appendix|annex|unit|lesson"
_BY_NUMBER = re.compile(
    rf"\b({_UNITS}|pp?\.)\s*(?:no\.?\s*)?(\d{{1,4}})(?:\s*(?:-|–|—|to|and|through|until)\s*(\d{{1,4}}))?"
    rf"|\b(?:the )?({_ORDINAL}|last|final)(?: ({_COUNT}|\d{{1,4}}))? ({_UNITS})\b",
    re.IGNORECASE,
)
_BY_NUMBER_ZH = re.compile(
    rf"第\s*({_HAN_N})\s*(?:页|张)?\s*(?:[-–—～~到至和]\s*第?\s*({_HAN_N})\s*)?(页|张幻灯片|张表|个工作表|张工作表|个表(?!格)|张)"
    rf"|(前|最后|末|后)({_HAN_N})(页|张幻灯片|张|个工作表)"
)
_SEVERAL = rf"{_N}(?!\.?\d)|(?:{_COUNT})\b|[ivx]{{2,4}}\b"  # no "I", which is rather who asks
_HEADED_BY_NUMBER = re.compile(
    rf"\b(?:{_HEADED})\s+({_N}|(?:{_COUNT})\b|[ivx]{{2,4}}\b|[vx]\b|(?-i:[A-H])\b"
    r"|i\b(?=\s*(?:$|[^\w\s'’]|(?:of|in|from|and|to|with|for|about|covers?|says?|contains?|means?)\b)))"
    rf"|\b(?:{_HEADED})s\s+({_SEVERAL})(?<!\bone)|\b(?:{_HEADED})s\s+(one)\b(?=\s*(?:and|to|or|through|[-–—,&]))"
    r"|\b(?:appendix|annex)\s+([b-h])\b|\bsections\s+((?-i:[A-H]))\b"
    rf"|(?<!\bto the )(?<!\bfor the )\b({_ORDINAL}|last|final) (?:{_HEADED})\b"
    rf"|第\s*({_HAN_N})\s*(?:章|节|条|部分|篇|单元|课)|附录\s*([A-Ha-h])|([A-Ha-h]|\d+(?:\.\d+)+)\s*节"
    rf"|(最后)一(?:章|节|条|部分|篇)",
    re.IGNORECASE,
)
_IS_PLURAL = re.compile(rf"(?:{_HEADED})s\b", re.IGNORECASE)
_AMOUNT: Final = (
    rf"\s*(?:%|[字个句词条种]|[-\s]?(?:\w+[-\s])?(?:{_UNITS}|percent|words?|bullets?|points?|sentences?|lines?"
    r"|paragraphs?|languages?|examples?|questions?|minutes?|characters?|ideas?|facts?|takeaways?|items?|steps?)\b)"
)
_FURTHER = re.compile(
    rf"\s*(?P<link>and|with|or|to|until|through|[-–—,&])\s*(?:and\s+)?(?P<head>(?:{_HEADED})s?\s+)?"
    rf"(?P<at>{_SEVERAL}|[vx]\b|(?-i:[A-H])\b)(?!{_AMOUNT})"
    rf"|\s*(?P<link_zh>和|与|跟|到|至|、|[-–—～~])\s*第\s*(?P<at_zh>{_HAN_N})\s*(?:章|节|条|部分|篇|单元|课)",
    re.IGNORECASE,
)
"""After the number of a chapter, that of another; how many words or points are wished is none."""
_NO_NOUN = re.compile(
    rf"\s*(?:$|[^\w\s%–-]|[\u3400-\u9fff]|(?:and|or|to|through|[-–—&])\s*(?:{_SEVERAL})"
    r"|(?:please|of|in|into|for|from|about|to me|briefly)\b)",
    re.IGNORECASE,
)
"""What follows the number of a further chapter where it stands alone: "chapter 5, 6 and 9", not "chapter 5, 6 tips"."""
_THROUGH: Final = frozenset({"to", "until", "through", "-", "–", "—", "到", "至", "～", "~"})
_NAMED_SHEET = re.compile(
    r"\b(?:sheet|tab|worksheet) [\"“'‘]([^\"”'’]{1,40})[\"”'’]|工作表[“\"]([^”\"]{1,40})[”\"]", re.IGNORECASE
)
_NAMED = re.compile(
    r"\b(introduction|conclusions?|preface|foreword|discussion|methods?|methodology|results?|appendix|appendices|epilogue"
    r"|prologue|bibliography|references)\b(?: (?:section|chapter|part))?(?!\s+of\b)"
    r"|(引言|绪论|前言|序言|结论|结语|附录|后记|(?:方法|结果|讨论)(?=部分|一?[节章]))",
    re.IGNORECASE,
)


_APART: Final = Part("chapter")
"""Several that no range tells without much else: all is read, so that none is left out."""


def _part_in(text: str, *, asks_for_all: bool) -> Part | None:
    """The part that is named in a question; one by the name of its heading only where all of that is asked for."""
    if found := _NAMED_SHEET.search(text):
        return Part("chapter", words=found[1] or found[2])
    if found := _BY_NUMBER.search(text):
        return _counted(found[1], found[2], found[3]) if found[1] else _ordinal(found[4], found[5], found[6])
    if found := _BY_NUMBER_ZH.search(text):
        if found[3]:
            first = _number(found[1])
            return Part(_unit(found[3]), first, _number(found[2]) if found[2] else first)
        few = _number(found[5])
        return Part(_unit(found[6]), *((1, few) if found[4] == "前" else (-few, -1)))
    if found := _HEADED_BY_NUMBER.search(text):
        return _chapters(text, found)
    if (asks_for_all or _says("all_of_it", text)) and (found := _NAMED.search(text)):
        return Part("chapter", words=found[1] or found[2])
    return None


def _chapters(text: str, found: re.Match[str]) -> Part | None:
    """The chapters that are named from there on, as one range; `_APART` where too much stands between them."""
    at = _number(next(filter(None, found.groups())))
    plural, named, end = _IS_PLURAL.match(text, found.start()), [at], found.end()
    while further := _FURTHER.match(text, end):
        end, at = further.end(), _number(further["at"] or further["at_zh"])
        sure = plural or further["head"] or further["at_zh"]
        if not sure and not (at > named[-1] and _NO_NOUN.match(text, end)):
            break
        through = (further["link"] or further["link_zh"]).casefold() in _THROUGH
        named += range(named[-1] + 1, at + 1) if through and at > named[-1] > 0 else [at]
    first, last = min(named), max(named)
    if len(named) > 1 and (first < 1 or last - first >= 2 * len(named)):
        return _APART
    return Part("chapter", first, last) if first else None


def _counted(unit: str, first: str, last: str | None) -> Part:
    return Part(_unit(unit), int(first), int(last or first))


def _ordinal(which: str, several: str | None, unit: str) -> Part:
    at, few = _number(which), _number(several) if several else 1
    if at == -1:
        return Part(_unit(unit), -few, -1)
    return Part(_unit(unit), at, at + few - 1)


def _unit(word: str) -> Unit:
    word = word.casefold()
    if word.startswith("slide") or "幻灯片" in word:
        return "slide"
    if word.startswith(("sheet", "worksheet", "tab")) or "表" in word:
        return "sheet"
    return "page"


# ---- the whole of the documents


def _is_whole(text: str) -> bool:
    narrow = _says("narrow", text) or _says("narrow_zh", text)
    if _says("strong", text) or _says("strong_zh", text):
        return not narrow
    if not narrow and _is_about_nothing_else(text):
        return True
    if narrow or _says("yes_or_no", text) or _says("yes_or_no_zh", text):
        return False
    return _says("weak", text) or _says("weak_zh", text)


_WORD = re.compile(r"[a-z][a-z'’]*|\d+", re.IGNORECASE)


def _is_about_nothing_else(text: str) -> bool:
    """Whether all words are general ones: then the documents themselves are asked about."""
    if _says("follows_up", text) or not _says("matters", text):
        return False
    left = _rule("general_zh").sub("", text)
    if any(sign >= "\u3400" and sign.isalpha() for sign in left):
        return False
    words = [word.casefold() for word in _WORD.findall(left)]
    return (bool(words) or left != text) and _general().issuperset(words)


# ---- the rules as they are written


_PARTS: Final = (
    *("norms", "owned", "held", "measures", "units", "places", "bound", "bound_zh", "plural"),
    *("row", "rows", "kind", "kinds", "rows_zh", "kinds_zh"),
    *("things", "asking", "sachen", "choses", "cosas"),
)
"""What stands in rules as `<name>`; one may stand in those before it."""


def make_ready() -> None:
    """Compile all rules, for which the first question would wait otherwise: a tenth of a second, or several."""
    for name in _lines().keys() - {"general", *_PARTS}:
        _rule(name)


def _says(name: str, text: str) -> bool:
    return _rule(name).search(text) is not None


@cache
def _rule(name: str) -> re.Pattern[str]:
    lines = "|".join(_lines()[name].split("\n"))
    for word in _PARTS:
        lines = lines.replace(f"<{word}>", f"(?:{'|'.join(_lines()[word].split(chr(10)))})")
    return re.compile(lines, re.IGNORECASE)


@cache
def _general() -> frozenset[str]:
    return frozenset(_lines()["general"].split())


@cache
def _lines() -> dict[str, str]:
    with Path(__file__).with_name("scope_rules.toml").open("rb") as file:
        lines = {name: lines.strip("\n") for name, lines in tomllib.load(file).items()}
    for one, several in (("row", "rows"), ("kind", "kinds")):
        words = lines[one].split()
        lines[one], lines[several] = "\n".join(words), "\n".join(map(_plural, words))
    return lines


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"
