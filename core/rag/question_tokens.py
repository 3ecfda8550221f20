"""The words of a question as tokens, in English and Chinese: columns and values of a table, comparisons, figures."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from core.rag.count_questions import plain_name
from core.rag.tables.values import iso_date, read_number, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

YEARS: Final = range(1900, 2100)
LONGEST: Final = 240  # letters of a question that is looked at
AND: Final = "&"
NAMES_A_ROW: Final = frozenset({"thing", "subject", "column"})


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a question.

    Args:
        text: As names are compared, in lower case.
        raw: As it was written.
        said: Which figure, or which comparison; of a number "year" where it may be one, "in 2024".
        column: The number of the column.
        number: Its number.
        unit: The unit of a number; of "how many" the word for rows in it.
        date: In ISO 8601: a day, a month or a year.
        wide: Whether it is a Chinese word, before which a column may stand.
        loose: Whether it may say nothing, as "多少" at the end.
        whole: Whether a word for a row is in it already: "who", "哪一行".
        dated: Whether it is said of dates alone: "latest".
        owned: Whether something before it has it: "the order with the highest".
    """

    kind: str
    text: str
    raw: str = ""
    said: str = ""
    column: int | None = None
    number: int | float | None = None
    unit: str = ""
    date: str = ""
    wide: bool = False
    loose: bool = False
    whole: bool = False
    dated: bool = False
    owned: bool = False


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a table is called, and what it holds.

    Args:
        columns: The names of columns as in questions, each with the numbers of those called so.
        kinds: "number", "date" or "text" of each column.
        units: The unit of each, or "".
        values: The texts that stand in columns of texts, as names are compared, each with its columns and there with
            its spellings.
        subjects: What a row or the table is called.
    """

    columns: Mapping[str, tuple[int, ...]]
    kinds: Sequence[str]
    units: Sequence[str]
    values: Mapping[str, Mapping[int, tuple[str, ...]]] = field(
        default_factory=dict[str, "Mapping[int, tuple[str, ...]]"]
    )
    subjects: frozenset[str] = frozenset()

    def holds(self, value: str) -> tuple[int, ...]:
        """The columns in which a value stands."""
        return tuple(self.values.get(value, ()))

    def spelled(self, value: str, column: int) -> tuple[str, ...]:
        """The spellings of a value in a column."""
        return self.values.get(value, {}).get(column, ())


# ---- words that are known everywhere: kind, what it says, then the words


_ENGLISH: Final = """
count|how many, how many of the, number of, the number of, total number of, the total number of, count of, count, \
count the, count all
share|percentage of, percent of, share of, proportion of, % of, which percentage of, which share of, which proportion of
figure sum|sum of, total of, sum, total, add up, sum up, total up
figure average|average of, average, mean, mean of, average value of
figure median|median of, median
figure highest|highest, largest, biggest, maximum, max, greatest, highest value of, maximum of
figure lowest|lowest, smallest, minimum, min, lowest value of, minimum of
dated highest|latest
dated lowest|earliest
most highest|the most, most
most lowest|the least, the fewest, least, fewest
which|which, in which, on which, for which, which one of the
who|who
thing|row, rows, record, records, entry, entries, line, lines
compare >|more than, greater than, larger than, higher than, bigger than, over, above, exceeds, exceed, exceeding, >, \
later than, after, is more than
compare <|less than, fewer than, smaller than, lower than, under, below, <, before, earlier than
compare >=|at least, >=, ≥, no less than, not less than, since, on or after, greater than or equal to
compare <=|at most, <=, ≤, no more than, not more than, up to, on or before, less than or equal to
or_more >=|or more, and more, or higher, or above
or_more <=|or less, or fewer, or lower, or below
not|is not, isn't, are not, aren't, was not, !=, ≠, <>, not equal to, is not equal to, other than, is other than
is|is, are, was, were, =, ==, equals, equal to, is equal to, is set to
between|between
to|to
each|per, by, for each, for each of the, for every, in each, in every, of each, each, grouped by, by each, split by, \
broken down by
contains|contains, contain, containing, that contains, includes
and|and, and also, and whose, ",", as well as
filler|the, a, an, of, in, on, for, from, with, where, whose, that, which have, which has, having, have, has, had, \
there, what, what's, what is, what are, do, does, did, \
all, my, our, this, these, please, tell me, tell me the, give me, \
calculate, compute, find, value, values, column, table, sheet, file, spreadsheet, 's, at, by value, their, its, it, \
show, how much, how high is, how large is, you, can you, could you, me, show me, within, among, data, altogether, \
in total, in all, were there, recorded, listed, and the
owned highest|with the highest, with the largest, with the biggest, with the greatest, with the most, with the maximum
owned lowest|with the lowest, with the smallest, with the least, with the fewest, with the minimum
"""
_CHINESE: Final = """
count_rows|多少行, 多少条, 几行, 几条, 多少条记录, 几条记录, 多少行数据, 几行数据, 多少条数据, 多少笔记录
count|有多少个, 多少个, 有多少, 多少, 几个, 有几个, 多少笔, 多少张, 多少份, 多少位, \
多少名, 多少项, 多少家, 几笔, 几张, 几份, 几位, \
几名, 几项, 几家, 的数量, 数量
share|比例, 占比, 百分比, 所占比例, 所占百分比, 占多少百分比, 占百分之几, 占百分之多少, 占多大比例
figure sum|总和, 合计, 总计, 之和, 求和, 加起来, 汇总, 总, 总额
figure average|平均值, 平均数, 均值, 平均
figure median|中位数
figure highest|最大值, 最高值, 最大, 最高, 最多
figure lowest|最小值, 最低值, 最小, 最低, 最少
dated highest|最晚
dated lowest|最早
which_row|哪一行, 哪行, 哪一条, 哪条, 哪条记录, 哪一条记录
which|哪个, 哪一个, 哪位, 哪一位, 哪家, 哪一家, 哪项, 哪一项, 哪笔, 哪一笔, 哪张, 哪一张, 哪份, 哪一份, 哪名, 哪一名, \
哪件, 哪一件, 哪
who|谁
thing|行, 条, 记录, 条记录, 数据行, 行数据
compare >|大于, 超过, 高于, 多于, 晚于
compare <|小于, 低于, 少于, 不到, 早于
compare >=|大于等于, 大于或等于, 不低于, 不少于, 不小于, 至少, 不早于
compare <=|小于等于, 小于或等于, 不超过, 不高于, 不大于, 不多于, 至多, 不晚于
or_more >=|以上, 及以上, 或以上
or_more <=|以下, 及以下, 或以下
or_more >|之后
or_more <|之前
not|不是, 不为, 不等于, 并非
is|是, 为, 等于, 属于
to|到, 至
between|之间
each|每, 每个, 每一个, 每种, 每一种, 每类, 每一类, 每位, 每一位, 每家, 每一家, 各, 各个, 各种, 各类, 按, 按照, 按各
contains|包含, 含有, 包括
and|且, 并且, 而且, 同时, 以及, ，, 、, 和, 与
filler|的, 了, 呢, 吗, 啊, 请问, 请, 一共, 总共, 共, 共有, 有, 里, 里面, 中, 内, 表, 表中, 表里, 表格, 表格中, \
工作表, 文件, 其中, 那些, 所有, 全部, 在, \
这个, 该, 列, 值, 计算, 统计, 帮我, 告诉我, 那, 那一行, 一列, 是多少, 元的, 各有, 各自, 各自有, 分别, 分别有
"""


@lru_cache(maxsize=1)
def _lexicon() -> dict[str, Token]:
    found: dict[str, Token] = {}
    for wide, text in ((False, _ENGLISH), (True, _CHINESE)):
        for line in text.strip().splitlines():
            head, _, words = line.partition("|")
            kind, _, said = head.partition(" ")
            for word in _split(words):
                found[word] = _known(kind, word, said, wide=wide)
    return found


def _split(words: str) -> list[str]:
    """The words of a line; a comma in quotation marks is one of them."""
    return [one.strip().replace("\0", ",") for one in words.replace('","', "\0").split(",")]


def _known(kind: str, word: str, said: str, *, wide: bool) -> Token:
    match kind:
        case "count_rows":
            return Token("count", word, said=said, unit="row", wide=wide)
        case "which_row" | "who":
            return Token("which", word, wide=wide, whole=True)
        case "dated":
            return Token("figure", word, said=said, wide=wide, dated=True)
        case "owned":
            return Token("figure", word, said=said, wide=wide, owned=True)
        case "count":
            return Token("count", word, wide=wide, loose=word in {"多少", "有多少"})
        case _:
            return Token(kind, word, said=said, wide=wide)


@lru_cache(maxsize=1)
def _longest() -> int:
    return max(map(len, _lexicon()))


# ---- numbers and dates

_MONTHS: Final = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_ENDS: Final = r"(?![^\W\u2e80-\U0010ffff])"  # no letter or figure follows, but for those of Chinese
_DATE: Final = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?![\d-])|\d{4}/\d{1,2}/\d{1,2}(?![\d/])|\d{4}\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?日"
    r"|\d{1,2}\.\d{1,2}\.\d{4}(?![\d.])"
    rf"|(?:{_MONTHS})\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}{_ENDS}"
    rf"|\d{{1,2}}-(?:{_MONTHS})-(?:\d{{4}}|\d\d)(?!-){_ENDS}"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)? (?:{_MONTHS})\.?,? \d{{4}}{_ENDS}"
)
_MONTH: Final = re.compile(
    rf"(?P<name>{_MONTHS}),? (?P<year>\d{{4}}){_ENDS}|(?P<iso>\d{{4}}-(?:0[1-9]|1[0-2]))(?![\d-])"
    r"|(?P<y>\d{4})\s?年\s?(?P<m>1[0-2]|0?[1-9])\s?月(?:份)?(?!\s?\d)"
)
_IN: Final = re.compile(r"(?<![^\W_])(?:in|during) $")
_YEAR: Final = re.compile(r"(?P<year>(?:19|20)\d\d)\s?年")
_NUMBER: Final = re.compile(
    r"(?P<before>[$€£¥￥]\s?)?(?P<digits>-?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?))"
    r"(?P<scale>\s?(?:thousand|million|billion)\b|\s?(?:百万|千万|万亿|[万亿千百]))?"
    r"(?P<after>\s?(?:%|€|\$|£|元|欧元|美元)|\s(?:eur|usd|gbp|euros?|dollars?)\b)?"
)
_SCALES: Final = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_THOUSANDS_OR_NOT: Final = re.compile(r"\d{1,3}\.\d{3}")  # one and a half thousand, or one point five
_QUOTED: Final = re.compile(r"[\"“‘「『']([^\"”’」』']{1,80})[\"”’」』']")
_UNITS: Final = {"dollar": "$", "dollars": "$", "euro": "€", "euros": "€"}


def _number_at(text: str, at: int) -> tuple[int, Token] | None:
    match = _NUMBER.match(text, at)
    if match is None or (at and (text[at - 1].isdecimal() or text[at - 1] in ".,")):
        return None
    end = match.end()
    if end < len(text) and (text[end].isdecimal() or _is_letter(text[end]) or re.match(r"[.,%/]\d", text[end:])):
        return None
    digits, scale = match["digits"], (match["scale"] or "").strip()
    if _THOUSANDS_OR_NOT.fullmatch(digits.lstrip("-")):
        return None
    times = _SCALES.get(scale)
    value = read_number(digits if times else digits + scale, "point")
    if value is None:
        return None
    said = (match["before"] or match["after"] or "").strip()
    unit = _UNITS.get(said) or (unit_of(f"1 {said}") if said else "")
    is_year = match[0].isdecimal() and value in YEARS and _IN.search(text, 0, at) is not None
    return end, Token("number", match[0], digits, "year" if is_year else "", number=value * (times or 1), unit=unit)


def _is_sure(said: str) -> bool:
    """Whether a date says itself which of its numbers is the day."""
    return bool(_DATE.fullmatch(said))


def _date_at(text: str, at: int) -> tuple[int, Token] | None:
    if at and text[at - 1].isdecimal():
        return None
    if (match := _DATE.match(text, at)) and (found := iso_date(re.sub(r"\s*([年月])\s*", r"\1", match[0]))):
        return match.end(), Token("date", match[0], match[0], date=found)
    if match := _MONTH.match(text, at):
        if match["iso"]:
            return match.end(), Token("date", match[0], match[0], date=match["iso"])
        first = iso_date(f"1 {match['name']} {match['year']}") if match["name"] else ""
        return match.end(), Token("date", match[0], match[0], date=first[:7] or f"{match['y']}-{int(match['m']):02}")
    if match := _YEAR.match(text, at):
        return match.end(), Token("date", match[0], match[0], date=match["year"])
    return None


# ---- the question


def tokens_of(question: str, known: Vocabulary) -> list[Token] | None:
    """The tokens of a question; `None` where a word of it is not known, or may be two things."""
    if len(question) > LONGEST:
        return None
    text = " ".join(question.casefold().replace("’", "'").replace("：", " ").split()).strip(" ?？!.。！")
    names = _names_in(text, known)
    found: list[Token] = []
    at = 0
    while at < len(text):
        if text[at] in ' "“”「」':
            quoted = _QUOTED.match(text, at)
            if quoted is None or text[at] == " ":
                at += 1
                continue
            said = quoted[1].strip()
            value = plain_name(said) in known.values
            day = "" if value else iso_date(said) if _is_sure(said) else ""
            kind = "value" if value else "date" if day else "quoted"
            found.append(Token(kind, plain_name(said), said, date=day))
            at = quoted.end()
            continue
        step = _next(text, at, names, found[-1] if found else None, known)
        if step is None:
            return None
        at, token = step
        found.append(token)
    return found


def _next(
    text: str, at: int, names: Sequence[str], before: Token | None, known: Vocabulary
) -> tuple[int, Token] | None:
    """The longest thing that begins here; `None` where there is none, or two are as long."""
    word = _word_at(text, at)
    name = next((one for one in names if _stands(text, at, one)), "")
    figure = _date_at(text, at) or _number_at(text, at)
    longest = max(len(word), len(name), figure[0] - at if figure else 0)
    if not longest:
        return None
    if name and len(name) == longest:
        token = _named(name, text[at : at + longest], before, known)
        if token is None:
            return None
        if len(word) < longest or _is_compared(before):
            return at + longest, token
        if not word or token.kind == "column":
            return None  # "total" is a figure, and a column
    if word and len(word) == longest:
        return at + longest, _lexicon()[word]
    return figure if figure is not None and figure[0] - at == longest else None


def _is_compared(before: Token | None) -> bool:
    return before is not None and before.kind in {"column", "is", "not"}


def _named(name: str, raw: str, before: Token | None, known: Vocabulary) -> Token | None:
    """What a name of the table means here; `None` where it may mean several things."""
    columns, held = known.columns.get(name, ()), known.holds(name)
    if len(columns) > 1:
        return None
    if held and (_is_compared(before) or not columns):
        if name in known.subjects and not _is_compared(before):
            return None
        return Token("value", name, raw)
    if columns:
        return None if held else Token("column", name, raw, column=columns[0])
    return Token("subject", name, raw)


def _names_in(text: str, known: Vocabulary) -> list[str]:
    """The names of the table that stand in the question, the longest first."""
    bare = text.replace("_", " ").replace("-", " ")
    every: Iterable[str] = {*known.columns, *known.subjects, *known.values}
    return sorted((one for one in every if one and (one in text or one in bare)), key=len, reverse=True)


def _stands(text: str, at: int, name: str) -> bool:
    """Whether a name begins at a place, and ends where a word does."""
    end = at + len(name)
    if re.sub(r"[_\-]", " ", text[at:end]) != name and text[at:end] != name:
        return False
    return _is_bounded(text, at, end)


def _is_bounded(text: str, at: int, end: int) -> bool:
    begins = not at or not (_is_letter(text[at]) and _is_letter(text[at - 1]))
    ends = end >= len(text) or not (_is_letter(text[end - 1]) and _is_letter(text[end]))
    return begins and ends


def _is_letter(letter: str) -> bool:
    """Whether it is a letter or a figure of a script whose words are parted by spaces."""
    return letter < "\u2e80" and letter.isalnum()


def _word_at(text: str, at: int) -> str:
    """The longest known word that begins at a place."""
    words = _lexicon()
    for size in range(min(_longest(), len(text) - at), 0, -1):
        word = text[at : at + size]
        if word in words and _is_bounded(text, at, at + size):
            return word
    return ""
