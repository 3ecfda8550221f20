"""Numbers and dates in cells: what people write in English, German and Chinese is read as what it means."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rag.tables.values import Notation, Reading, iso_date, number, read_number, readings

WHOLE = st.integers(-(10**12), 10**12)


@given(WHOLE, st.integers(0, 99), st.sampled_from([("point", ",", "."), ("comma", ".", ",")]))
def test_a_number_written_in_either_notation_is_read_as_itself(
    whole: int, cents: int, written: tuple[Notation, str, str]
) -> None:
    notation, between, point = written
    text = f"{abs(whole):,}".replace(",", between) + f"{point}{cents:02d}"
    expected = float(f"{abs(whole)}.{cents:02d}")
    for sign, form in ((1, "{}"), (-1, "-{}"), (-1, "({})"), (-1, "{}-"), (-1, "−{}"), (1, "+{}")):
        assert read_number(form.format(text), notation) == sign * expected
    for form in ("€ {}", "{} €", "${}", "{} USD", "￥{}", "{}元", "CHF {}"):
        assert read_number(form.format(text), notation) == expected


@given(WHOLE)
def test_what_a_parser_writes_for_a_number_is_that_number_whatever_the_texts_beside_it(whole: int) -> None:
    assert number(str(whole), "point") == number(str(whole), "comma") == whole
    assert number(f"{whole / 8:.15g}", "point") == float(f"{whole / 8:.15g}")


@given(st.text(max_size=60))
def test_any_text_is_read_without_an_error_and_stays_itself_where_it_is_no_number(text: str) -> None:
    for notation in ("point", "comma"):
        found = number(text, notation)
        assert found == text or isinstance(found, int | float)
    assert iso_date(text) == "" or date.fromisoformat(iso_date(text)[:10])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.5 %", 12.5),
        ("3.5万", 35_000),
        ("1.2亿", 120_000_000),
        ("三百二十", 320),
        ("１２３", 123),
        ("1e+20", 1e20),
        ("1,50,000", 150_000),
        (".5", 0.5),
        ("1'234.5", 1234.5),
        ("1 234", 1234),
    ],
)
def test_percent_and_chinese_and_other_ways_to_write_numbers_are_read(text: str, expected: float) -> None:
    assert read_number(text) == expected


@pytest.mark.parametrize(
    "text", ["007", "1.2.3", "1,23", "12-13", "A-12", "555 1234", "3 apples", "(5", "--5", "€5€", "", "1" * 60]
)
def test_codes_and_words_are_no_numbers(text: str) -> None:
    assert read_number(text) is None


@given(st.dates(date(1971, 1, 1), date(2069, 12, 31)))
def test_a_date_in_any_of_the_usual_forms_is_that_date(day: date) -> None:
    expected = day.isoformat()
    forms = ["{d}.{m}.{y}", "{d:02}.{m:02}.{y}", "{y}年{m}月{d}日", "{y}-{m:02}-{d:02}", "{y}/{m}/{d}", "{d}/{m}/{y}"]
    for form in forms:
        assert iso_date(form.format(d=day.day, m=day.month, y=day.year)) == expected
    assert iso_date(f"{day.month}/{day.day}/{day.year}", "month") == expected
    assert iso_date(f"{day:%B} {day.day}, {day.year}") == expected
    assert iso_date(f"{day.day} {day:%b} {day.year}") == expected


def test_a_column_tells_by_its_sure_cells_how_the_others_are_read() -> None:
    german, unsure = zip(*[("1.234,50", "1.234"), ("2,5", "5.678")], strict=True)
    rows = list(zip(german, unsure, strict=True))
    assert [(one.kind, one.notation) for one in readings(rows, 2)] == [("number", "comma"), ("number", "comma")]
    assert readings(rows, 2)[1].value("1.234") == 1234
    english = [("1,234.50", "1,234"), ("2.5", "5,678")]
    assert readings(english, 2)[1].value("1,234") == 1234


def test_days_above_twelve_tell_which_comes_first() -> None:
    assert readings([["3/4/2024"], ["25/4/2024"]], 1)[0] == Reading("date", "point", "day")
    assert readings([["3/4/2024"], ["4/25/2024"]], 1)[0] == Reading("date", "point", "month")


def test_what_says_that_there_is_no_value_is_none_and_hides_no_type() -> None:
    (reading,) = readings([["5"], ["n/a"], ["–"], ["无"], ["7"]], 1)
    assert reading.kind == "number"
    assert [reading.value(cell) for cell in ("5", "n/a", "–", "无", "")] == [5, None, None, None, None]


def test_units_are_told_and_several_are_all_told() -> None:
    assert readings([["$5"], ["$1,200"]], 1)[0].unit == "$"
    assert readings([["5 €"], ["$6"]], 1)[0].unit == "$/€"
    assert readings([["5 %"], ["6 %"]], 1)[0].unit == "%"
