"""Figures and dates of a text in English or Chinese, equal however they are written."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from core.rag.claims.lists import in_order, listed
from core.rag.claims.romans import PARTS, parts_of
from core.rag.numerals import HAN_NUMERALS, LONGEST, number_of_han

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FigureKind: TypeAlias = Literal["amount", "date"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, or a part of a date, as one text has it.

    Args:
        words: As it stands there.
        number: What is written, magnitudes included: "1.2 million" is 1,200,000.
        unit: What it measures, such as `%`, `$`, `s` or `month`; `roman` for the numeral of a chapter; `version` for
            a number in parts, as of versions and sections; "" where nothing known follows.
        value: In the unit: an hour is 3,600 `s`, a year 12 `months`.
        exact: How far a true value may be away, so that it is still rounded to this one.
        start: Where it begins in the text.
        bound: What the words before it make of it: the most ("within 14 days") or the least ("at least 14 days").
    """

    words: str
    number: float
    unit: str
    value: float
    exact: float
    start: int
    bound: Literal["", "most", "least"] = ""

    @property
    def kind(self) -> FigureKind:
        """A month, a weekday, a time of day or a year is (part of) a date; years have no comma in them."""
        is_year = self.unit == "" and self.number.is_integer() and _FIRST_YEAR <= self.number < _LAST_YEAR
        is_year = is_year and not _GROUPED.match(self.words)
        return "date" if self.unit in OF_DATES or is_year else "amount"

    def equals(self, other: Figure) -> bool:
        """Whether another figure may be meant by this one: it has the same value, or is rounded to it.

        A unit that only one of them tells decides nothing: "300 dollars" may be the 300 of a table.
        """
        if VERSION in {self.unit, other.unit}:
            return {self.unit, other.unit} <= {VERSION, ""} and _digits(self.words) == _digits(other.words)
        if self.unit == other.unit:
            return abs(self.value - other.value) <= self.exact
        if "m" in {self.unit, other.unit} and self._in_millions() == other._in_millions():
            return True
        if self.unit and other.unit:
            return False
        if self.unit in OF_DATES or other.unit in OF_DATES:
            return self.number == other.number
        return abs(self.number - other.number) <= (self.exact if not self.unit else 0.5 * _unit_of_last(self.number))

    def _in_millions(self) -> float:
        """The number, where a letter m may stand for millions: "850m" is a length, or money whose sign is lost."""
        return self.number * (_MILLION if _LETTER.search(self.words) else 1.0)


_FIRST_YEAR, _LAST_YEAR = 1000, 2200
_LETTER = re.compile(r"\d\s?m\Z")
_GROUPED = re.compile(r"\d,\d{3}\b")
_MILLION = 1e6
ROMAN: Final = "roman"
VERSION: Final = "version"
OF_DATES = frozenset({"month", "weekday", "clock", "decade", "century"})


def _digits(words: str) -> str:
    """A number as it is written, without zeros that are a part of their own: version 2.0 is version 2."""
    return re.sub(r"(?:\.0+)+\Z", "", words)


def _unit_of_last(number: float) -> float:
    return 1e-9 if number.is_integer() else 0.1


_MONTHS = in_order("january february march april may june july august september october november december")
_DAYS = in_order("monday tuesday wednesday thursday friday saturday sunday")
_ONES = in_order(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = in_order("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS = in_order("third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")
_SCALES: Final[Mapping[str, float]] = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
    **dict.fromkeys(("millions", "millionen", "mio", "millones", "milioni"), 1e6),
    **dict.fromkeys(("billions", "milliarden", "mrd", "milliards", "miliardi"), 1e9),
}
_SHORT_SCALES: Final[Mapping[str, float]] = {"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9, "tn": 1e12}
_WORD_VALUES: Final[Mapping[str, float]] = {
    **{word: float(at) for at, word in enumerate(_ONES)},
    **{word: 20.0 + 10 * at for at, word in enumerate(_TENS)},
    **{word: 3.0 + at for at, word in enumerate(_ORDINALS)},
    "dozen": 12.0,
    **_SCALES,
}


def _units() -> dict[str, tuple[str, float]]:
    """Each way to write a unit, with the unit and how much of it that is."""
    table: dict[str, str] = {
        "% 1": "% 百分之 percent 个百分点",
        "$ 1": "$ us$ usd dollar dollars 美元 美金",
        "€ 1": "€ eur euro euros 欧元",
        "£ 1": "£ gbp pound pounds 英镑",
        "¥ 1": "¥ rmb cny yuan 元 块钱 人民币",
        "HK$ 1": "hk$ 港元 港币",
        "JPY 1": "yen 日元",
        "s 1": "s sec second seconds 秒 秒钟",
        "s 60": "min mins minute minutes 分钟",
        "s 3600": "h hr hrs hour hours 小时 个小时 钟头",
        "s 86400": "day days 天 自然日 个自然日 日历日 个日历日",
        "workday 1": "workday workdays 工作日 个工作日 营业日 个营业日",
        "s 604800": "week weeks 周 星期 个星期",
        "months 1": "month months 个月 个月份",
        "months 12": "year years yr yrs 年 岁 周岁 周年",
        "m 0.001": "mm millimetre millimetres millimeter millimeters 毫米",
        "m 0.01": "cm centimetre centimetres centimeter centimeters 厘米",
        "m 1": "m metre metres meter meters 米",
        "m 1000": "km kilometre kilometres kilometer kilometers 公里 千米",
        "m 1609.344": "mile miles 英里",
        "m 0.3048": "ft foot feet 英尺",
        "m 0.0254": "inch inches 英寸",
        "g 0.001": "mg milligram milligrams 毫克",
        "g 1": "g gram grams 克",
        "g 500": "斤",
        "g 1000": "kg kilogram kilograms kilo kilos 公斤 千克",
        "g 1000000": "tonne tonnes ton tons 吨",
        "byte 1000": "kb",
        "byte 1000000": "mb",
        "byte 1000000000": "gb",
        "byte 1000000000000": "tb",
    }
    return {
        word: (unit, float(factor))
        for key, words in table.items()
        for unit, factor in [key.split()]
        for word in words.split()
    }


_UNITS: Final = _units()
_CURRENCIES = frozenset({"$", "€", "£", "¥", "HK$"})
_HAN_UNIT = "|".join(sorted((word for word in _UNITS if not word.isascii() and word != "€"), key=len, reverse=True))
_LATIN = r"\d{1,3}(?:,\d{3})++(?:\.\d++)?+|\d++(?:\.\d++)?+"
_DATE = re.compile(
    r"(?<![\d./-])(?:(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})|(?P<a>\d{1,2})[./](?P<b>\d{1,2})[./](?P<c>\d{4}))(?![\d/-])"
)
_YEARS = re.compile(r"(?<![\w.,/-])(?P<from>[12]\d{3})\s?[–—/-]\s?(?P<to>\d{2}|[12]\d{3})(?![\d/.-]\d|\d|年)")
# In these the zero counts: 2.10 comes after 2.9.
_NUMBERED = listed(
    "version versions ver v release releases build firmware kernel python java android ios macos windows ubuntu debian "
    "fedora linux php ruby perl django section sections clause clauses chapter figure fig table article paragraph rule"
)
_VERSION = re.compile(
    rf"(?:\b(?:{'|'.join(sorted(_NUMBERED, key=len, reverse=True))})\b\.?[\s:=]{{0,2}}"
    r"(?:(?:is|was|now|number|no\.?|ist|est|es)\s){0,2}|\bv|版本?[号是为:：\s]{0,3}|第\s?)"
    r"(?P<after>\d{1,4}(?:\.\d{1,4})++)(?!\d|\s?[%％万亿])"
    r"|(?<![\w.])(?P<parts>\d{1,4}(?:\.\d{1,4}){2,}+)(?![\w%])",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?<![\w.:])(?P<hour>\d{1,2})(?:[:.](?P<minute>[0-5]\d))?\s?(?P<half>[ap])\.?m\b"
    r"|(?<![\w.:])(?P<hour24>[01]?\d|2[0-4]):(?P<minute24>[0-5]\d)(?![\d:])"
    rf"|(?P<part>上午|早上|凌晨|中午|下午|晚上|傍晚)(?P<han>\d{{1,2}}|[{HAN_NUMERALS}]{{1,3}})[点點时時](?:(?P<hanminute>\d{{1,2}}|[{HAN_NUMERALS}]{{1,3}})分?|(?P<halfpast>半))?",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    rf"(?P<money>(?:US|HK)?\$|[€£¥]|\b(?:USD|EUR|GBP|RMB|CNY)\b|百分之)?\s?(?<![A-Za-z\d_.])(?P<digits>{_LATIN})"
    r"(?P<suffix>st|nd|rd|th)?(?:(?:\s(?=[十百千]?[万亿萬億]))?(?P<han>[十百千万亿萬億]++))?"
    r"(?P<gap>[\s-]?)(?P<word>[A-Za-z%％]*)",
)
_NUMERAL = "|".join(sorted(_WORD_VALUES, key=len, reverse=True))
_WORD_NUMBER = re.compile(  # "one hundred and five" is one, and "the fifth and sixth" are two
    rf"(?<![\w-])(?:{_NUMERAL})"
    rf"(?:(?:[ -]|(?<=hundred|housand|illions|million|billion|rillion)\sand\s)(?:{_NUMERAL})\b)*+(?!\w)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"\b(?P<month>{'|'.join(_MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
    rf"|\b(?P<day>{'|'.join(_DAYS)})s?\b|(?:星期|周|礼拜)(?P<hanweek>[一二三四五六日天])",
    re.IGNORECASE,
)
_HAN_NUMBER = re.compile(
    rf"(?<![{HAN_NUMERALS}])(?P<percent>百分之)?(?P<han>[{HAN_NUMERALS}]++(?:点[零〇一二三四五六七八九]++)?+)"
)
_AFTER_HAN = re.compile(rf"\s?(?P<unit>{_HAN_UNIT}|月|日|号|世纪|年代)")
_MEASURE = frozenset("个人名位次项条家所座台辆本册份页种只头户件层届岁套篇章场间架艘倍成级门")
_DECADE = re.compile(r"['’]s\b")
_CENTURY = re.compile(r"\s?-?century\b", re.IGNORECASE)
_IDIOMS = re.compile(r"[一二三四五六七八九十百千万]{1,2}(?:些|般|样|直|起|切|定|旦|致|律|共|时|方面|面|步|边|概)")
MOST_TEXT = 60_000  # characters of one text that are looked through; passages have some thousands
_BOUND = re.compile(
    r"(?:\b(?:within|by|at most|up to|no later than|(?:no|not) more than|(?:fewer|less) than|not exceed(?:ing)?)"
    r"|最多|至多|不[得能可会应]?超过|(?P<least>\bat least|至少))"
    r"[\s$€£¥]*\Z",
    re.IGNORECASE,
)
_BEFORE = 16  # letters in which these words stand
_WORD = re.compile(r"\s?([A-Za-z%]{1,12})")
_SHARES: Final[Mapping[str, tuple[float, ...]]] = {
    "half": (50,),
    "a third": (33, 33.3),
    "one third": (33, 33.3),
    "two thirds": (66, 66.7, 67),
    "a quarter": (25,),
    "one quarter": (25,),
    "three quarters": (75,),
    "a fifth": (20,),
    "one fifth": (20,),
    "a tenth": (10,),
    "one tenth": (10,),
    "一半": (50,),
}
_ONE = re.compile(
    r"\b(?P<half>half\s)?(?P<one>an?|one)\s(?P<word>(?!third|quarter|fifth|tenth)[a-z]{3,12})\b"
    r"|(?P<han>[半一])个?(?P<unit>小时|钟头|星期|[年天周])|(?P<share>一半"
    r"|\b(?:half|(?:an?|one)[\s-](?:third|quarter|fifth|tenth)|two[\s-]thirds|three[\s-]quarters)\b)",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:for|within|after|of|lasts?|lasted|takes?|took|over|under|about|than|nearly|almost|only|just)\s\Z",
    re.IGNORECASE,
)
_SORT_OF_DAYS: Final = re.compile(
    r"[\s-]*(?:(?P<working>working|business)|calendar|consecutive)[\s-]days?\b", re.IGNORECASE
)
_TERM = re.compile(r"[之以]?内")
_CENT = re.compile(r"\s?cent\b", re.IGNORECASE)


def figures_of(text: str, *, loosely: bool = False) -> list[Figure]:
    """The figures and the parts of dates in a text, in their order.

    Args:
        text: In any letters.
        loosely: Whether one of a unit ("one year"), and parts ("half a million"), are such too: in a passage they bear
            out "12 months", and of a sentence they are mostly no claim.
    """
    plain = unicodedata.normalize("NFKC", text[:MOST_TEXT])
    taken = bytearray(len(plain))
    found: list[Figure] = []
    for pattern, read in _READERS:
        for match in pattern.finditer(plain):
            start, end = match.span()
            if end - start > 3 * LONGEST or (start < end and (taken[start] or taken[end - 1])):
                continue
            made = list(read(match, plain))
            if made:
                last = max(one.start + len(one.words) for one in made)
                taken[start:last] = b"\1" * (last - start)
                found += made
    if loosely:
        found += [one for match in _ONE.finditer(plain) for one in _ones(match, plain)]
    return sorted((_bounded(one, plain) for one in found), key=lambda one: one.start)


def _bounded(one: Figure, text: str) -> Figure:
    before = _BOUND.search(text[max(0, one.start - _BEFORE) : one.start])
    return replace(one, bound="least" if before["least"] else "most") if before else one


def _made(match: re.Match[str], words: str, number: float, unit: str = "", value: float | None = None) -> Figure:
    return Figure(words, number, unit, number if value is None else value, 1e-6, match.start())


def _parts(match: re.Match[str], _: str) -> Iterator[Figure]:
    for one in parts_of(match):
        yield Figure(one.words, float(one.number), ROMAN, float(one.number), 1e-6, one.start)


def _dates(match: re.Match[str], _: str) -> Iterator[Figure]:
    if match["y"]:
        year, month, day = match["y"], int(match["m"]), match["d"]
        if 1 <= month <= 12:
            yield _made(match, match[0], month, "month")
        yield _made(match, match[0], float(year))
        yield _made(match, match[0], float(day))
        return
    for part in "abc":  # which of the first two is the month nobody knows
        yield _made(match, match[0], float(match[part]))


def _versions(match: re.Match[str], text: str) -> Iterator[Figure]:
    group = "after" if match["after"] else "parts"
    words, (start, end) = match[group], match.span(group)
    after = _next_word(text, end)
    if after not in _UNITS and after not in _SCALES and after != "per":  # "release 2.5 tons"
        yield Figure(words, float(".".join(words.split(".")[:2])), VERSION, 0.0, 1e-6, start)


def _years(match: re.Match[str], _: str) -> Iterator[Figure]:
    last = match["to"] if len(match["to"]) == 4 else match["from"][:2] + match["to"]
    if float(last) < float(match["from"]):
        return
    yield _made(match, match[0], float(match["from"]))
    yield _made(match, match[0], float(last))


def _clocks(match: re.Match[str], _: str) -> Iterator[Figure]:
    if match["part"]:
        hour = _small(match["han"])
        minute = 30.0 if match["halfpast"] else _small(match["hanminute"] or "0")
        is_late = match["part"] in {"下午", "晚上", "傍晚"} and hour < 12
    else:
        hour, minute = float(match["hour"] or match["hour24"]), float(match["minute"] or match["minute24"] or 0)
        is_late = (match["half"] or "").lower() == "p" and hour < 12
        hour = 0.0 if (match["half"] or "").lower() == "a" and hour == 12 else hour
    yield _made(match, match[0], hour, "clock", 60 * (hour + 12 * is_late) + minute)


def _small(numeral: str) -> float:
    return float(numeral) if numeral.isdecimal() else number_of_han(numeral) or 0.0


def _numbers(match: re.Match[str], text: str) -> Iterator[Figure]:
    digits, word, end = match["digits"].replace(",", ""), match["word"], match.end("digits")
    start = match.start() + len(match[0]) - len(match[0].lstrip())
    if len(digits) > LONGEST:
        return
    number = float(digits)
    is_decade = digits.endswith("0") and (number >= _FIRST_YEAR or 20 <= number < 100)  # the 80s
    if is_decade and (decade := _DECADE.match(text, end)):  # the 2000's
        yield Figure(text[start : decade.end()], number, "decade", number, 1e-6, start)
    elif word == "s" and not match["gap"] and digits.endswith("0"):
        yield Figure(text[start : end + 1], number, "decade" if is_decade else "", number, 1e-6, start)
    elif match["suffix"] and (century := _CENTURY.match(text, match.end("suffix"))):
        yield Figure(text[start : century.end()], number, "century", number, 1e-6, start)
    elif match["gap"] or match["suffix"] or match["han"] or not word or _is_unit(word):  # "4K" and "3D" are words
        yield from _measured(match, text, number, start)


def _measured(match: re.Match[str], text: str, number: float, start: int) -> Iterator[Figure]:
    """A number with its magnitude and its unit."""
    factor, unit, end = 1.0, "", match.end("suffix" if match["suffix"] else "digits")
    word = match["word"].lower()
    decimals = len(match["digits"].partition(".")[2])
    if match["han"]:
        factor, end = number_of_han(f"一{match['han']}") or 1.0, match.end("han")
    elif not match["suffix"] and (scale := _scale(word, match)):
        factor, end = scale, match.end("word")
        word = _next_word(text, end)
        if word in _UNITS:
            end += text[end:].lower().index(word) + len(word)
            unit = _UNITS[word][0]
    elif not match["suffix"] and (word in _UNITS or word == "per"):
        unit, end = _latin_unit(word, text, match)
    number *= factor
    if days := _SORT_OF_DAYS.match(text, end):
        yield _days(days, text[start : days.end()], number, start)
        return
    if han := _AFTER_HAN.match(text, end):
        yield from _with_han_unit(text[start : han.end()], number, _of_term(han, text, start), start, decimals)
        return
    unit = _UNITS[match["money"].lower()][0] if match["money"] else unit
    size = _UNITS.get(word, ("", 1.0))[1] if unit and unit not in _CURRENCIES else 1.0
    exact = 0.5 * 10.0**-decimals * factor * size if decimals or factor >= _MILLION else 1e-6 * max(1.0, size)
    yield Figure(text[start:end], number, unit, number * size, exact, start)


def _days(sort: re.Match[str], words: str, number: float, start: int) -> Figure:
    """Days of a sort: a working day is no other one, a calendar day is any."""
    unit, size = _UNITS["workdays" if sort["working"] else "days"]
    return Figure(words, number, unit, number * size, 1e-6 * size, start)


def _of_term(unit: re.Match[str], text: str, start: int) -> str:
    """The unit; 14日内 is a term of 14 days, and 3月14日 is a date."""
    is_term = unit["unit"] == "日" and text[start - 1 : start] != "月" and _TERM.match(text, unit.end())
    return "天" if is_term else unit["unit"]


def _scale(word: str, match: re.Match[str]) -> float:
    """The magnitude that a word is; letters are one beside money, or glued to the figure; 0 for none."""
    if word in _SCALES:
        return _SCALES[word]
    is_one = match["money"] or (not match["gap"] and word != "m")
    return _SHORT_SCALES.get(word, 0.0) if is_one else 0.0


def _is_unit(word: str) -> bool:
    lower = word.lower()
    return lower in _UNITS or lower in _SCALES or lower in _SHORT_SCALES


def _next_word(text: str, at: int) -> str:
    found = _WORD.match(text, at)
    return found[1].lower() if found else ""


def _latin_unit(word: str, text: str, match: re.Match[str]) -> tuple[str, int]:
    if word == "per":
        cent = _CENT.match(text, match.end("word"))
        return ("%", cent.end()) if cent else ("", match.end("digits"))
    if word in {"h", "s", "g"} and match["gap"]:
        return "", match.end("digits")  # a letter by itself says little
    return _UNITS[word][0], match.end("word")


def _with_han_unit(words: str, number: float, unit: str, start: int, decimals: int = 0) -> Iterator[Figure]:
    """A figure with a Chinese unit; years, months and days of the calendar are parts of a date."""
    exact = 0.5 * 10.0**-decimals * (1.0 if number < 1e4 or not decimals else 1e4) if decimals else 1e-6
    if unit == "月" and 1 <= number <= 12:
        yield Figure(words, number, "month", number, 1e-6, start)
    elif unit == "世纪":
        yield Figure(words, number, "century", number, 1e-6, start)
    elif unit == "年代":
        yield Figure(words, number, "decade", number, 1e-6, start)
    elif unit in {"月", "日", "号"} or (unit == "年" and number >= _FIRST_YEAR):
        yield Figure(words, number, "", number, 1e-6, start)
    else:
        named, size = _UNITS[unit]
        yield Figure(words, number, named, number * size, exact * size, start)


def _in_words(match: re.Match[str], text: str) -> Iterator[Figure]:
    words = re.split(r"[ -]|\sand\s", match[0].lower())
    if len(words) > LONGEST:
        return
    total = current = 0.0
    for word in words:
        value = _WORD_VALUES.get(word, 0.0)
        if word in {"hundred", "dozen"}:
            current = (current or 1.0) * value
        elif word in _SCALES:
            total, current = total + (current or 1.0) * value, 0.0
        else:
            current += value
    number = total + current
    if number < 2 or (len(words) == 1 and words[0] in _SCALES):  # "one of them" is no figure, nor is "half a million"
        return
    if days := _SORT_OF_DAYS.match(text, match.end()):
        yield _days(days, text[match.start() : days.end()], number, match.start())
        return
    after = _next_word(text, match.end())
    unit, size = _UNITS.get(after, ("", 1.0)) if len(after) > 2 else ("", 1.0)
    if words[-1] in _ORDINALS:
        unit, size = "", 1.0
        if century := _CENTURY.match(text, match.end()):
            yield Figure(text[match.start() : century.end()], number, "century", number, 1e-6, match.start())
            return
    yield Figure(match[0], number, unit, number * size, 1e-6 * size, match.start())


def _ones(match: re.Match[str], text: str) -> Iterator[Figure]:
    """One of a unit, half of one, and shares of a whole."""
    if share := match["share"]:
        for value in _SHARES[" ".join(share.lower().replace("-", " ").split())]:
            yield Figure(match[0], value / 100, "%", value, 1e-6, match.start())
        return
    word, part = (match["word"] or match["unit"]).lower(), 0.5 if match["half"] or match["han"] == "半" else 1.0
    if word in _SCALES or word == "dozen":
        yield _made(match, match[0], part * _WORD_VALUES[word])
    elif word in _UNITS and len(word) != 2:
        is_one = part < 1 or match["han"] or match["one"].lower() == "one"
        if is_one or _LASTING.search(text[max(0, match.start() - _BEFORE) : match.start()]):
            unit, size = _UNITS[word]
            yield _made(match, match[0], part, unit, part * size)


def _named(match: re.Match[str], text: str) -> Iterator[Figure]:
    if match["month"]:
        name = match["month"]
        if name.lower() in {"may", "march"} and not name[0].isupper():
            return
        if name.lower() in {"may", "mar", "jan", "dec"} and not _is_dated(text, match):
            return
        yield _made(match, match[0], 1.0 + [one[:3] for one in _MONTHS].index(name[:3].lower()), "month")
    elif match["day"]:
        yield _made(match, match[0], 1.0 + _DAYS.index(match["day"].lower()), "weekday")
    else:
        yield _made(match, match[0], 1.0 + "一二三四五六日".index(match["hanweek"].replace("天", "日")), "weekday")


def _is_dated(text: str, match: re.Match[str]) -> bool:
    """Whether a month whose name is a word, or short, has a day, a year or "in" beside it."""
    before, after = text[max(0, match.start() - 9) : match.start()], text[match.end() : match.end() + 6]
    if re.match(r"\s[A-Z]", after):  # Jan Hus
        return False
    return bool(
        re.search(r"(?:\d(?:st|nd|rd|th)?|\b(?:in|of|since|until|by|early|late|mid|from|to|last))[\s-]*\Z", before)
    ) or bool(re.match(r"[\s,.-]*\d", after))


def _han_numbers(match: re.Match[str], text: str) -> Iterator[Figure]:
    numeral, end = match["han"], match.end()
    number = number_of_han(numeral)
    if number is None or (not match["percent"] and _IDIOMS.match(text, match.start())):
        return
    if match["percent"]:
        yield Figure(match[0], number, "%", number, 1e-6, match.start())
        return
    if unit := _AFTER_HAN.match(text, end):
        if number > 1 or unit["unit"] in {"月", "日", "号", "世纪"}:
            yield from _with_han_unit(match[0] + unit[0], number, _of_term(unit, text, match.start()), match.start())
        return
    is_ordinal = text[match.start() - 1 : match.start()] == "第"
    if number > 1 and (is_ordinal or text[end : end + 1] in _MEASURE or (len(numeral) > 1 and number >= 20)):
        yield _made(match, match[0], number)


_READERS = (
    (PARTS, _parts),
    (_DATE, _dates),
    (_VERSION, _versions),
    (_YEARS, _years),
    (_CLOCK, _clocks),
    (_NUMBER, _numbers),
    (_NAMED, _named),
    (_WORD_NUMBER, _in_words),
    (_HAN_NUMBER, _han_numbers),
)
