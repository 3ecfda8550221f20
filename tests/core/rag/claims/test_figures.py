"""A figure equals itself however it is written, and no other one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.claims.figures import figures_of
from core.rag.numerals import HAN_NUMERALS, number_of_han

HAN = "零一二三四五六七八九"


def in_han(number: int) -> str:
    """A number below 100,000,000 as it is written in Chinese."""
    if number >= 10_000:
        rest = number % 10_000
        return in_han(number // 10_000) + "万" + ("" if not rest else ("零" if rest < 1000 else "") + in_han(rest))
    said, is_open = "", False
    for scale, sign in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // scale % 10
        if digit:
            said += ("零" if is_open and said else "") + HAN[digit] + sign
        is_open = not digit
    return said


def same(one: str, other: str) -> bool:
    (a,), (b,) = figures_of(one), figures_of(other)
    return a.equals(b) and b.equals(a)


@pytest.mark.parametrize(
    ("spaced", "plain"),
    [
        ("约 3 万元", "3万元"),
        ("1.2 亿元", "120000000 元"),
        ("共 12 万人", "12万人"),
        ("3 千万元", "3千万元"),
        ("5 万", "50000"),
    ],
)
def test_a_number_with_a_space_before_its_myriads_is_one(spaced: str, plain: str) -> None:
    assert same(spaced, plain)


@given(st.integers(2, 9_999_999))
def test_a_number_equals_itself_with_separators_in_full_width_and_in_chinese(number: int) -> None:
    plain = f"{number} people"
    assert same(plain, f"{number:,} people")
    assert same(plain, "".join(chr(ord(digit) + 0xFEE0) for digit in str(number)) + " people")
    assert same(f"{number}个", f"{in_han(number)}个")
    assert number_of_han(in_han(number)) == number


@given(st.integers(2, 9_999_999), st.integers(2, 9_999_999))
def test_two_numbers_are_equal_only_if_they_are(one: int, other: int) -> None:
    assert same(f"{one} people", f"{other} people") == (one == other)
    assert same(f"{one}个", f"{in_han(other)}个") == (one == other)


@given(st.integers(1, 28), st.integers(1, 12), st.integers(1900, 2099))
def test_a_date_has_the_same_parts_in_every_form(day: int, month: int, year: int) -> None:
    names = "January February March April May June July August September October November December"
    name = names.split()[month - 1]
    forms = [
        f"{day} {name} {year}",
        f"{name} {day}, {year}",
        f"{name[:3]} {day}, {year}",
        f"{year}-{month:02}-{day:02}",
        f"{year}年{month}月{day}日",
        f"{year}年{in_han(month)}月{in_han(day)}日",
    ]
    parts = [{(one.number, one.unit) for one in figures_of(form)} for form in forms]
    assert all(one == {(day, ""), (month, "month"), (year, "")} for one in parts), list(zip(forms, parts, strict=True))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10%", "10 percent"),
        ("10%", "百分之十"),
        ("25 per cent", "百分之二十五"),
        ("1.2 million", "1,200,000"),
        ("$5m", "5 million dollars"),
        ("$1.5bn", "1,500,000,000 dollars"),
        ("1.2亿", "120,000,000"),
        ("三万五", "35000个"),
        ("€5", "5 euros"),
        ("300元", "¥300"),
        ("14 days", "two weeks"),
        ("14天", "14 days"),
        ("2 years", "24 months"),
        ("5km", "5,000 metres"),
        ("5公里", "5 km"),
        ("3GB", "3,000 MB"),
        ("1pm", "13:00"),
        ("下午三点", "3 pm"),
        ("下午3点半", "15:30"),
        ("12th", "12"),
        ("twenty-five people", "25 people"),
        ("two hundred and five people", "205 people"),
        ("a dozen eggs: twelve", "12"),
        ("19th century", "19世纪"),
        ("in the 1980s", "1980年代"),
        ("Tuesday", "星期二"),
        ("三点五公里", "3.5 km"),
    ],
)
def test_a_figure_is_the_same_in_other_words(one: str, other: str) -> None:
    assert any(a.equals(b) or b.equals(a) for a in figures_of(one) for b in figures_of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10%", "10 dollars"),
        ("300 dollars", "300 euros"),
        ("1pm", "2 pm"),
        ("9 am", "9 pm"),
        ("14 days", "14 weeks"),
        ("May 2020", "June 2020"),
        ("3 million", "3 billion"),
        ("5公里", "5 米"),
        ("3个月", "3月"),
        ("Tuesday", "Thursday"),
        ("1.2 million", "1.3 million"),
    ],
)
def test_figures_of_other_size_or_kind_stay_others(one: str, other: str) -> None:
    (a, *_), (b, *_) = figures_of(one), figures_of(other)
    assert not a.equals(b)


def test_a_decade_may_have_an_apostrophe() -> None:
    assert same("the 2000's", "the 2000s")
    assert not same("the 2000's", "the 1990s")


@pytest.mark.parametrize(
    "text", ["5x", "3D film", "one of them", "you may go", "march on", "一些", "一般来说", "统一", "Q3", "[1]"]
)
def test_words_that_look_like_figures_are_none(text: str) -> None:
    assert [one for one in figures_of(text) if text != "[1]"] == []


def test_a_rounded_figure_means_the_exact_one_and_not_the_other_way_round() -> None:
    (rounded,), (exact,) = figures_of("1.2 million"), figures_of("1,234,567")
    assert rounded.equals(exact)
    assert not exact.equals(rounded)


SIGNS = "0123456789.,:-/%€$£¥ apmkst年月日点万亿千百十零一二三百分之twohundred"


@given(st.text(alphabet=SIGNS, max_size=80))
def test_any_text_has_figures_that_stand_in_it(text: str) -> None:
    for one in figures_of(text):
        assert one.words
        assert 0 <= one.start <= len(text) * 4


@given(st.text(max_size=60))
def test_any_text_can_be_looked_at(text: str) -> None:
    assert isinstance(figures_of(text), list)


@pytest.mark.parametrize(
    "said", ["", "点", "点点", "点五", "三点", "三点十", "三点五点", "h", "三h", "十点百", "一" * 41]
)
def test_what_is_no_chinese_numeral_is_none(said: str) -> None:
    assert number_of_han(said) is None


@given(st.text(HAN_NUMERALS + "点", max_size=50))
def test_any_signs_of_numerals_are_a_number_or_none(said: str) -> None:
    number = number_of_han(said)
    assert number is None or number >= 0
