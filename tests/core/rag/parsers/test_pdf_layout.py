"""The reading order of PDF pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.rag.parsers.pdf_layout import in_columns, top_down
from core.rag.parsers.pdf_page import Line, Runs
from core.rag.parsers.process import Parsed

LEFT = [f"left{n} words that fill the left column of it" for n in range(30)]
RIGHT = [f"right{n} words that fill the right column" for n in range(30)]
WIDE = "A line that goes across both of the columns, from one side of the page to the other, as titles do"


def by_columns(page: Any) -> None:
    page.insert_text((60, 100), LEFT, fontsize=10, lineheight=1.4)
    page.insert_text((310, 100), RIGHT, fontsize=10, lineheight=1.4)


def right_first(page: Any) -> None:
    page.insert_text((310, 100), RIGHT, fontsize=10, lineheight=1.4)
    page.insert_text((60, 100), LEFT, fontsize=10, lineheight=1.4)


def by_rows(page: Any) -> None:
    for at, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        page.insert_text((60, 100 + 14 * at), left, fontsize=10)
        page.insert_text((310, 100 + 14 * at), right, fontsize=10)


@pytest.mark.parametrize("draw", [by_columns, right_first, by_rows])
def test_the_left_column_is_read_before_the_right_one(
    tmp_path: Path, read_pdf: Callable[..., Parsed], draw: Callable[[Any], None]
) -> None:
    import pymupdf

    document = pymupdf.open()
    page = document.new_page(width=595, height=842)
    page.insert_text((60, 60), WIDE, fontsize=10)
    draw(page)
    page.insert_text((60, 640), WIDE, fontsize=10)
    document.save(tmp_path / "a.pdf")
    blocks = read_pdf(tmp_path / "a.pdf").blocks
    assert [block.text for block in blocks] == [WIDE, " ".join(LEFT), " ".join(RIGHT), WIDE]
    assert blocks[1].rectangle
    assert blocks[1].rectangle[2] < 310


def lines(text: str, count: int, x: float, wide: float) -> list[Line]:
    return [Line(f"{text} {n}", (x, 100 + 14 * n, x + wide, 110 + 14 * n), 10, bold=False) for n in range(count)]


def alternating(left: list[Line], right: list[Line]) -> list[list[Line]]:
    return [[one] for pair in zip(left, right, strict=True) for one in pair]


def test_the_fields_of_a_table_are_no_columns() -> None:
    left, right = lines("name", 20, 60, 40), lines("value", 20, 310, 30)
    right[3] = Line("a longer value that is rare", (310, 142, 500, 152), 10, bold=False)
    runs = alternating(left, right)
    assert in_columns(runs, 595) is runs


def test_arabic_and_hebrew_keep_their_right_column_first() -> None:
    runs = [lines("שלום עולם", 20, 310, 230), lines("שלום עולם", 20, 60, 230)]
    assert in_columns(runs, 595) is runs


def test_a_few_notes_between_columns_change_nothing() -> None:
    left, right = lines("left", 20, 60, 230), lines("right", 20, 310, 230)
    runs = [left[:10], right[:3], left[10:], right[3:]]
    assert in_columns(runs, 595) is runs


def run(text: str, x0: float, y0: float, x1: float, y1: float) -> list[Line]:
    return [Line(text, (x0, y0, x1, y1), 10.0, bold=False)]


def order(runs: Runs) -> str:
    return " ".join(one[0].text for one in top_down(runs))


LEFT_BOX, RIGHT_BOX, BOTH = (50.0, 290.0), (310.0, 550.0), (50.0, 550.0)


def block(text: str, column: tuple[float, float], top: float, high: float = 100.0) -> list[Line]:
    return run(text, column[0], top, column[1], top + high)


def test_a_head_that_is_drawn_last_comes_first() -> None:
    assert order([block("text", BOTH, 200), block("head", BOTH, 50)]) == "head text"


def test_a_table_that_is_drawn_after_the_text_below_it_goes_before_it() -> None:
    runs = [
        block("above", BOTH, 50),
        block("below", BOTH, 400),
        block("table", LEFT_BOX, 200),
        block("last", BOTH, 600),
    ]
    assert order(runs) == "above table below last"


def test_a_foot_that_is_drawn_first_comes_last_and_columns_stay() -> None:
    columns = [
        block(f"{side}{at}", place, 50 + 110 * at)
        for side, place in (("l", LEFT_BOX), ("r", RIGHT_BOX))
        for at in (0, 1)
    ]
    assert order([block("foot", BOTH, 780, 20), *columns]) == "l0 l1 r0 r1 foot"


def test_columns_that_are_drawn_one_after_the_other_stay_so() -> None:
    columns = [
        block(f"{side}{at}", place, 50 + 110 * at)
        for side, place in (("l", LEFT_BOX), ("r", RIGHT_BOX))
        for at in (0, 1)
    ]
    assert order(columns) == "l0 l1 r0 r1"


def test_a_head_over_both_columns_goes_before_both() -> None:
    runs = [block("l", LEFT_BOX, 200), block("r", RIGHT_BOX, 200), block("head", BOTH, 50)]
    assert order(runs) == "head l r"


def test_text_that_lies_on_its_side_stays_as_it_is_drawn() -> None:
    runs = [run(f"{at} lies", 100 + 20 * at, 700 - 300 * at, 112 + 20 * at, 900 - 300 * at) for at in range(3)]
    assert top_down(runs) == runs


def test_text_that_stands_on_its_head_stays_as_it_is_drawn() -> None:
    paragraphs = [
        [*block(f"{at} first", BOTH, 700 - 100 * at, 12), *block(f"{at} second", BOTH, 680 - 100 * at, 12)]
        for at in range(3)
    ]
    assert top_down(paragraphs) == paragraphs


def test_nothing_is_lost_on_a_page_of_thousands_of_pieces() -> None:
    runs = [run(str(at), 10, 800 - at / 10, 30, 801 - at / 10) for at in range(5_000)]
    assert top_down(runs) == runs
