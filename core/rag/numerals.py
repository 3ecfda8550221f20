"""Chinese and Roman numerals as numbers."""

from __future__ import annotations

import re
from itertools import pairwise

HAN_NUMERALS = "零〇一二三四五六七八九十百千万亿两兩萬億"
LONGEST = 40  # characters of a numeral; longer ones are none

_DIGITS = {letter: at for at, letter in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}
_SCALES = {"十": 10.0, "百": 1e2, "千": 1e3, "万": 1e4, "萬": 1e4, "亿": 1e8, "億": 1e8}

_ROMAN = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMANS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000, "": 0}


def number_of_roman(numeral: str) -> int | None:
    """A Roman numeral in capitals, up to 3,999: XXXVII is 37; `None` where it is none, or not written as usual."""
    if not numeral or not _ROMAN.fullmatch(numeral):
        return None
    values = [_ROMANS[letter] for letter in (*numeral, "")]
    return sum(-one if one < other else one for one, other in pairwise(values))


def number_of_han(numeral: str) -> float | None:
    """A Chinese numeral: 一百二十 is 120, 二〇二四 is 2024, 三点五 is 3.5; `None` where it is none."""
    whole, point, rest = numeral.partition("点")
    if not whole or (point and not rest) or len(numeral) > LONGEST:
        return None
    if not all(letter in _DIGITS or letter in _SCALES for letter in whole) or not all(map(_DIGITS.__contains__, rest)):
        return None
    value = _scaled(whole) if any(letter in _SCALES for letter in whole) else float(_in_digits(whole))
    return value + (float(f"0.{_in_digits(rest)}") if rest else 0.0)


def _in_digits(numeral: str) -> str:
    return "".join(str(_DIGITS[letter]) for letter in numeral)


def _scaled(numeral: str) -> float:
    """A numeral with magnitudes in it, read from the left: 三百万 is 3 × 100 × 10,000."""
    total = section = digit = 0.0
    last = 1.0
    for letter in numeral:
        if letter in _DIGITS:
            digit = float(_DIGITS[letter])
            last = 1.0 if letter in "零〇" else last
            continue
        scale = _SCALES[letter]
        if scale >= 1e4:
            total = (
                (total + section + digit or 1.0) * scale if scale >= 1e8 else total + (section + digit or 1.0) * scale
            )
            section = digit = 0.0
        else:
            section, digit = section + (digit or 1.0) * scale, 0.0
        last = scale
    # 三万五 is 35,000, and 三万零五 is 30,005.
    return total + section + digit * (last / 10 if digit and last >= 10 * 10 else 1.0)
