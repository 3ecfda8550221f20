"""Two columns are read one after the other, however the file draws them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.rag.parsers.pdf_columns import in_columns
from core.rag.parsers.pdf_headings import Line
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
