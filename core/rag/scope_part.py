"""The part of documents that a question names: pages, chapters by number, ordinal or heading; and what stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.rag.document import numbered_as
from core.rag.numerals import number_of_han

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.rag.document import Passage

Unit: TypeAlias = Literal["page", "slide", "sheet", "chapter"]


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
        wanted = set(tops[part.first : part.last + 1 or None])
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
    **dict.fromkeys(("last", "final", "closing"), -1),
    "penultimate": -2,
    "next": 2,
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


# ---- the part that is named

_UNITS: Final = r"pages?|slides?|sheets?|worksheets?|tabs?|pp?\."
_HEADED: Final = "chapter|section|part|article|clause|appendix|annex|unit|lesson"
_NTH: Final = (
    r"(?:second|third)[- ](?:to[- ])?last|next[- ]to[- ]last|penultimate"
    rf"|{_ORDINAL}|last|final|closing|\d{{1,3}}(?:st|nd|rd|th)\b"
)
_THEN: Final = r"\s*(?:,\s*(?:and|or)\b|vs\.|(?:and|or|with|to|until|through|versus|vs)\b|[-–—,&])\s*"
_NTHS: Final = rf"(?P<nths>(?:{_NTH})(?:{_THEN}(?:the\s+)?(?:{_NTH}))*)(?:\s+(?P<few>{_COUNT}|\d{{1,4}}))?\s+"
_SEVERAL: Final = rf"{_N}(?!\.?\d)|(?:{_COUNT})\b|[ivx]{{2,4}}\b"  # no "I", which is rather who asks
_PAGES = re.compile(
    rf"\b(?P<head>{_UNITS})\s*(?:no\.?\s*)?(?P<at>\d{{1,4}}|(?:{_COUNT})\b)|\b{_NTHS}(?P<noun>{_UNITS})(?!\w)",
    re.IGNORECASE,
)
_CHAPTERS = re.compile(
    rf"\b(?:{_HEADED})\s+(?P<at>{_N}|(?:{_COUNT})\b|[ivx]{{2,4}}\b|[vx]\b|(?-i:[A-H])\b"
    r"|i\b(?=\s*(?:$|[^\w\s'’]|(?:of|in|from|and|to|with|for|about|covers?|says?|contains?|means?)\b)))"
    rf"|\b(?:{_HEADED})s\s+(?P<several>(?:{_SEVERAL})(?<!\bone)|one\b(?=\s*(?:and|to|or|through|[-–—,&])))"
    r"|\b(?:(?:appendix|annex)\s+(?P<small>[b-h])\b|sections\s+(?P<letter>(?-i:[A-H]))\b)"
    rf"|(?<!\bto the )(?<!\bfor the )\b{_NTHS}(?:{_HEADED})s?\b",
    re.IGNORECASE,
)
_IS_PLURAL = re.compile(rf"(?:(?:{_HEADED})s|pages|slides|sheets|worksheets|tabs|pp\.)(?!\w)", re.IGNORECASE)
_AMOUNT: Final = (
    rf"\s*(?:%|[字个句词条种]|[-\s]?(?:\w+[-\s])?(?:{_UNITS}|percent|words?|bullets?|points?|sentences?|lines?"
    r"|paragraphs?|languages?|examples?|questions?|minutes?|characters?|ideas?|facts?|takeaways?|items?|steps?)(?!\w))"
)
_FURTHER = re.compile(
    rf"(?P<link>{_THEN})(?:(?:the\s+)?(?P<nth>{_NTH})(?:\s+(?P<noun>(?:{_HEADED})s?|{_UNITS})(?!\w)|\s+one\b|(?=\W*$))"
    rf"|(?:(?P<head>(?:{_HEADED})s?|{_UNITS})\s*)?(?P<at>{_SEVERAL}|[vx]\b|(?-i:[A-H])\b)(?!{_AMOUNT}))",
    re.IGNORECASE,
)
"""After the number of a chapter, that of another; how many words or points are wished is none."""
_NO_NOUN = re.compile(
    rf"\s*(?:$|[^\w\s%–-]|[\u3400-\u9fff]|(?:and|or|to|through|[-–—&])\s*(?:{_SEVERAL})"
    r"|(?:please|of|in|into|for|from|about|to me|briefly|say|says|and (?!\d))\b)",
    re.IGNORECASE,
)
"""What follows the number of a further chapter where it stands alone: "chapter 5, 6 and 9", not "chapter 5, 6 tips"."""
_IS_PAGE = re.compile(rf"(?:{_UNITS})(?!\w)|[页頁张]|个工作表|个表", re.IGNORECASE)
_IS_THROUGH = re.compile(r"\W*(?:to|until|through|[-–—～~到至])\W*", re.IGNORECASE)

_PAGE_ZH: Final = "页|頁|张幻灯片|张工作表|张表(?!格)|个工作表|个表(?!格)|张(?![表照图])"
_HEADED_ZH: Final = "章|节|節|条|部分|篇|单元|课"
_UNIT_ZH: Final = rf"(?:{_PAGE_ZH}|{_HEADED_ZH})"
_THEN_ZH: Final = r"\s*(?:以及|[和与跟及、到至]|[,，](?!\s*第)|[-–—～~])\s*"
_ONE_ZH = re.compile(rf"(?P<link>{_THEN_ZH})?(?P<end>倒数)?第?\s*(?P<at>{_HAN_N})\s*(?P<unit>{_UNIT_ZH})?")
_IS_DIGITS = re.compile("[一二三四五六七八九]{2,}")  # "第二三页" are two
_RUN_ZH = re.compile(
    rf"(?:倒数)?第\s*(?:{_HAN_N})\s*{_UNIT_ZH}?(?:{_THEN_ZH}(?:倒数)?第?\s*(?:{_HAN_N})\s*{_UNIT_ZH}?)*"
    rf"|(?P<side>最后|最末|[前头末后])(?P<few>{_HAN_N})(?P<of>{_PAGE_ZH}|章|[节節](?!课)|部分|单元|[条篇](?<=最后一[条篇]))"
    rf"|(?:最后|最末|末)(?P<last>页|頁|章|节)"
    r"|附录\s*(?P<letter>[A-Ha-h])|(?P<dotted>[A-Ha-h]|(?<![\d.])\d{1,4}(?:\.\d{1,3})+)\s*节"
)
_NAMED_SHEET = re.compile(
    r"\b(?:sheet|tab|worksheet) [\"“'‘]([^\"”'’]{1,40})[\"”'’]|工作表[“\"]([^”\"]{1,40})[”\"]", re.IGNORECASE
)
_NAMED = re.compile(
    r"\b(introduction|conclusions?|preface|foreword|discussion|methods?|methodology|results?|appendix|appendices|epilogue"
    r"|prologue|bibliography|references)\b(?: (?:section|chapter|part))?(?!\s+of\b)"
    r"|(引言|绪论|前言|序言|结论|结语|附录|后记|(?:方法|结果|讨论)(?=部分|一?[节章]))",
    re.IGNORECASE,
)

_OF_NUMBERS: Final = (
    "act|scene|lecture|week|day|item|table|figure|fig\\.|note|footnote|paragraph|para|recital|question|exercise|problem|row"
    "|column|schedule|verse|stanza|canto|volume|book|step|rule|module|session|entry|topic|point|theorem|line|month|season"
    "|episode|psalm|letter|attachment|exhibit|amendment|block|box|cell|example|listing|equation|form|station|field"
)
_OF_ORDINALS: Final = (
    rf"{_OF_NUMBERS}|bullet|visit|email|message|recipe|task|clip|poem|song|story|essay|half|third|quarter|subsection|tab"
    "|chorus|refrain|sentence|heading|meeting|draft|review|panel|picture|photo|stage|phase|round|game"
)
_PIECE_ZH: Final = "讲|回|卷|幕|场|段|封|列|行|项|题|步|周|天|次|首|则|点|款|小节|个sheet|栏|组|季|集|期|问|句|格|轮|稿"
_BY_NAME = re.compile(
    rf"\b((?:{_OF_NUMBERS})s?\s+(?:no\.?\s*)?(?:{_N}[a-z]?|(?:{_COUNT})|[ivx]{{1,5}}|(?-i:[A-H]))(?![\w%]))"
    rf"|\b((?:{_NTH})\s+(?:{_OF_ORDINALS})s?)(?!\w)"
    r"|\b(?:section|chapter|part|sheet|tab|heading)\b[^\"“”]{0,12}[\"“'‘]([^\"“”'’]{1,60})[\"”'’]"
    r"|[\"“'‘]([^\"“”'’]{1,60})[\"”'’] (?:section|chapter|part|sheet|tab|heading)\b"
    r"|\b(?:section|chapter|part|sheet|tab) (?:on|about|called|named|titled|headed|entitled) ([^,.;:?!]{2,40})"
    r"|\bthe ((?:\w{1,30}[- ]){1,3})(?:section|chapter|sheet|tab|subsection)\b(?! of the law)"
    r"|\b(abstract|prologue|epilogue|preface|foreword|introduction|intro|conclusion|appendix|appendices|bibliography"
    r"|acknowledg\w+|dedication|cover|postscript|title page|table of contents|executive summary|opening|ending|heading"
    r"|annex|discussion|methods?|results)\b"
    rf"|(第\s*(?:{_HAN_N})\s*(?:{_PIECE_ZH}))"
    rf"|((?:附件|附表|附注|表|图|注|卷|步骤|例|题|模块|练习)\s*(?:{_HAN_N}))(?![年月日号份个张页])"
    r"|[“\"「]([^”\"」]{1,30})[”\"」](?:那|这|的)?(?:一|个|张)?(?:小?节|章|段|部分|工作表|sheet)"
    r"|((?<![\d.])\d{1,3}(?:\.\d{1,3})+)\s?(?:那一)?(?:条|小?节|款)|(?-i:([A-Z])列)"
    r"|(最后一?(?:[段封讲回首题项步卷句则次集幕场天周])|开头|结尾|开场白|卷首|卷末|末尾|摘要|序言|前言|引言|绪论|正文"
    r"|尾声|楔子|附则|总则|目录|致谢|封面|封底|说明页|结论)",
    re.IGNORECASE,
)
_SIMPLE: Final = str.maketrans(
    "這個們條檔頁總結較對還沒過來開關點說讓幫麼請問嗎裡裏頭張該給話題寫讀語譯錄資訊圖節與從後會時間發現處"
    "為單據費價錢銀險證計數報導論區別變動經驗應當聯繫誰幾種類項號參獻術業務標準認識記員學習師課講義書復複"
    "製簡傳檢輕歷賠償範圍藥無",
    "这个们条档页总结较对还没过来开关点说让帮么请问吗里里头张该给话题写读语译录资讯图节与从后会时间发现处"
    "为单据费价钱银险证计数报导论区别变动经验应当联系谁几种类项号参献术业务标准认识记员学习师课讲义书复复"
    "制简传检轻历赔偿范围药无",
)


def simplified(text: str) -> str:
    """The text with traditional characters that are frequent in questions as simplified ones; none is added or lost."""
    return text.translate(_SIMPLE)


def other_part_in(text: str) -> Part | None:
    """What may be a part that is named by a word of its own, such as a lecture, a table or a section on something."""
    found = _BY_NAME.search(text)
    return Part("chapter", words=next(filter(None, found.groups())).strip()) if found else None


APART: Final = Part("chapter")
"""Several that no range tells without much else: all is read, so that none is left out."""


def part_in(text: str) -> Part | None:
    """The part that a question names by its number, or a sheet by its name; `APART` where no range tells them."""
    if found := _NAMED_SHEET.search(text):
        return Part("chapter", words=found[1] or found[2])
    text = simplified(text)
    for of_pages in (True, False):
        if part := _english(text, of_pages=of_pages) or _chinese(text, of_pages=of_pages):
            return part
    return None


def heading_in(text: str) -> Part | None:
    """The part that is named by the words of its heading, such as the introduction."""
    found = _NAMED.search(text)
    return Part("chapter", words=found[1] or found[2]) if found else None


def _joined(unit: Unit, named: Sequence[int]) -> Part | None:
    """What is named as one range; `APART` where too much stands between; nothing where something is no number."""
    first, last = min(named), max(named)
    if 0 in named:
        return None
    return APART if first < 0 < last or last - first >= 2 * len(named) > 2 else Part(unit, first, last)


def _further(named: Sequence[int], at: int, link: str) -> list[int]:
    """What is named so far, and what is named after the link: "2 to 5" are four."""
    is_range = at > named[-1] > 0 and _IS_THROUGH.fullmatch(link) is not None
    return [*named, *(range(named[-1] + 1, at + 1) if is_range else [at])]


def _english(text: str, *, of_pages: bool) -> Part | None:
    found = (_PAGES if of_pages else _CHAPTERS).search(text)
    if not found:
        return None
    told = found.groupdict()
    unit = _unit(told.get("head") or told["noun"]) if of_pages else "chapter"
    is_sure = bool(told["nths"] or _IS_PLURAL.match(text, found.start()))
    named = _nths(told["nths"]) if told["nths"] else [_number(_one_of(told, "at", "several", "small", "letter"))]
    if told["few"]:
        few = _number(told["few"])
        first = -few if named[-1] < 0 else named[-1]
        return _joined(unit, [*named[:-1], *range(first, first + few)])
    end = found.end()
    while further := _FURTHER.match(text, end):
        at = _nths(further["nth"])[0] if further["nth"] else _number(further["at"])
        kind = further["head"] or further["noun"]
        if kind and (_IS_PAGE.match(kind) is not None) != of_pages:
            return _joined(unit, named) if further["link"].strip() == "," else APART
        if not (is_sure or kind or further["nth"]) and not (at > named[-1] and _NO_NOUN.match(text, further.end())):
            break
        end, named = further.end(), _further(named, at, further["link"])
    return _joined(unit, named)


def _nths(words: str) -> list[int]:
    """The numbers that ordinals in words stand for."""
    named: list[int] = []
    end = 0
    for found in re.finditer(_NTH, words, re.IGNORECASE):
        word = found[0].casefold()
        last, first = word.endswith("last") and word != "last", re.split(r"\W", word)[0]
        at = -_NUMBERS.get(first, 1) if last else _number(re.sub(r"(?<=\d)\D+$", "", word))
        named = _further(named, at, words[end : found.start()].replace("the ", "")) if named else [at]
        end = found.end()
    return named


def _chinese(text: str, *, of_pages: bool) -> Part | None:
    for found in _RUN_ZH.finditer(text):
        part = _ends(found) if found["side"] or found["last"] else _run(found)
        if part and (part == APART or (part.unit != "chapter") == of_pages):
            return part
    return None


def _ends(found: re.Match[str]) -> Part | None:
    """The first or last few of them."""
    few, unit = _number(found["few"] or "一"), _unit(found["of"] or found["last"])
    if found["side"] in {"前", "头"}:
        return None if few == 1 and unit == "chapter" else Part(unit, 1, few)  # the one before is none of the first
    return Part(unit, -few, -1) if few else None


def _run(found: re.Match[str]) -> Part | None:
    """Those that are named one after the other; what has no unit shares that of the next."""
    if single := found["letter"] or found["dotted"]:
        return _joined("chapter", [_number(single)])
    each = list(_ONE_ZH.finditer(found[0]))
    while each and not each[-1]["unit"]:
        each.pop()
    units: set[Unit] = {_unit(one["unit"]) for one in each if one["unit"]}
    named: list[int] = []
    for one in each:
        for word in one["at"] if _IS_DIGITS.fullmatch(one["at"]) else [one["at"]]:
            at = -_number(word) if one["end"] else _number(word)
            named = _further(named, at, one["link"] or "") if named else [at]
    if len(units) > 1:
        return APART
    return _joined(units.pop(), named) if units else None


def _one_of(told: Mapping[str, str | None], *names: str) -> str:
    return next(filter(None, map(told.get, names)), "")


def _unit(word: str) -> Unit:
    word = word.casefold()
    if word.startswith("slide") or "幻灯片" in word:
        return "slide"
    if word.startswith(("sheet", "worksheet", "tab")) or "表" in word:
        return "sheet"
    return "page" if _IS_PAGE.match(word) else "chapter"
