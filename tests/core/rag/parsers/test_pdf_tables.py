"""Tables on pages: found by their lines, read row by row, and nothing else is taken for one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.rag.document import Block, Rectangle
from core.rag.parsers.pdf_tables import ruled_tables
from core.rag.parsers.process import Parsed

Read = Callable[..., Parsed]
ROWS = (("City", "People", "Since"), ("Ulm", "130 000", "854"), ("Bonn am Rhein", "330 000", "11 BC"))
LEFT, TOP, WIDE, HIGH = 60.0, 150.0, 120.0, 24.0


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """A page that a function draws on."""

    def made(draw: Callable[[Any], None], rotation: int = 0) -> Path:
        import pymupdf

        document = pymupdf.open()
        page = document.new_page(width=500, height=700)
        draw(page)
        page.set_rotation(rotation)
        path = tmp_path / "table.pdf"
        document.save(path)
        return path

    return made


def lattice(page: Any, rows: int, columns: int, thick: float = 0.5, skip: Sequence[tuple[str, int, int]] = ()) -> None:
    """Lines around every field, but those named: ("v", row, column) is to the left of a field, "h" above it."""
    for row in range(rows + 1):
        for column in range(columns + 1):
            x, y = LEFT + column * WIDE, TOP + row * HIGH
            if column < columns and ("h", row, column) not in skip:
                page.draw_line((x, y), (x + WIDE, y), width=thick)
            if row < rows and ("v", row, column) not in skip:
                page.draw_line((x, y), (x, y + HIGH), width=thick)


def words(page: Any, rows: Sequence[Sequence[str]]) -> None:
    for row, texts in enumerate(rows):
        for column, text in enumerate(texts):
            page.insert_text((LEFT + 4 + column * WIDE, TOP + 16 + row * HIGH), text, fontsize=10)


def tables(parsed: Parsed) -> list[Block]:
    return [block for block in parsed.blocks if block.kind == "table"]


def overlap(one: Rectangle, other: Rectangle) -> float:
    def area(x0: float, y0: float, x1: float, y1: float) -> float:
        return max(0.0, x1 - x0) * max(0.0, y1 - y0)

    both = area(max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3]))
    return both / (area(*one) + area(*other) - both)


@pytest.mark.parametrize("thick", [0, 0.3, 2])
def test_a_ruled_table_is_read_row_by_row_in_its_place(read_pdf: Read, made: Callable[..., Path], thick: float) -> None:
    def draw(page: Any) -> None:
        page.insert_text((60, 100), "Words before the table.", fontsize=10)
        lattice(page, 3, 3, thick)
        words(page, ROWS)
        page.insert_text((60, 260), "Words after it.", fontsize=10)

    before, table, after = read_pdf(made(draw)).blocks
    assert (before.text, after.text) == ("Words before the table.", "Words after it.")
    assert table.cells == ROWS
    assert table.text == "City | People | Since\nUlm | 130 000 | 854\nBonn am Rhein | 330 000 | 11 BC"
    assert overlap(table.rectangle or (0, 0, 0, 0), (LEFT, TOP, LEFT + 3 * WIDE, TOP + 3 * HIGH)) > 0.97
    start = table.text.index("Bonn")
    assert overlap(table.rectangles_of(start, start + 4)[0], (60, 198, 420, 222)) > 0.9


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_tables_are_found_on_turned_pages(read_pdf: Read, made: Callable[..., Path], rotation: int) -> None:
    """What is displayed lies on its side; the words of each field are together all the same."""

    def draw(page: Any) -> None:
        lattice(page, 3, 3)
        words(page, ROWS)

    (table,) = tables(read_pdf(made(draw, rotation)))
    assert sorted(cell for row in table.cells for cell in row) == sorted(cell for row in ROWS for cell in row)


def test_fields_drawn_as_rectangles_make_a_table(read_pdf: Read, made: Callable[..., Path]) -> None:
    def draw(page: Any) -> None:
        for row in range(3):
            for column in range(3):
                x, y = LEFT + column * WIDE, TOP + row * HIGH
                page.draw_rect((x, y, x + WIDE, y + HIGH), color=None, fill=(0.9, 0.9, 0.9 - 0.1 * row))
        words(page, ROWS)

    assert tables(read_pdf(made(draw)))[0].cells == ROWS


def test_fields_without_a_border_between_them_are_one(read_pdf: Read, made: Callable[..., Path]) -> None:
    def draw(page: Any) -> None:
        lattice(page, 3, 3, skip=[("v", 0, 2), ("h", 2, 0)])
        words(page, [("k", "wide title", ""), ("tall", "1", "2"), ("", "3", "4")])

    assert tables(read_pdf(made(draw)))[0].cells == (("k", "wide title", ""), ("tall", "1", "2"), ("", "3", "4"))


def test_words_that_cannot_be_seen_leave_their_field_empty() -> None:
    drawn: list[Rectangle] = [(0, 10 * n, 90, 10 * n) for n in range(3)]
    drawn += [(45 * n, 0, 45 * n, 20) for n in range(3)]
    seen = [(2.0, 2.0, 9.0, 8.0, "a"), (50.0, 2.0, 60.0, 8.0, "\u200b"), (52.0, 2.0, 60.0, 8.0, "b")]
    seen += [(2.0, 12.0, 9.0, 18.0, "春"), (10.0, 12.0, 19.0, 18.0, "眠"), (50.0, 12.0, 60.0, 18.0, "c")]
    ((place, block),) = ruled_tables(drawn, lambda: seen, 1)
    assert block.cells == (("a", "b"), ("春眠", "c"))
    assert place == (0, 0, 90, 20)


def test_two_tables_on_a_page_stay_two(read_pdf: Read, made: Callable[..., Path]) -> None:
    def draw(page: Any) -> None:
        lattice(page, 2, 2)
        words(page, [("a", "b"), ("c", "d")])
        for at in range(3):
            page.draw_line((60, 400 + 20 * at), (260, 400 + 20 * at))
            page.draw_line((60 + 100 * at, 400), (60 + 100 * at, 440))
        for x, y, text in ((70, 415, "e"), (170, 415, "f"), (70, 435, "g"), (170, 435, "h")):
            page.insert_text((x, y), text, fontsize=10)

    assert [table.text for table in tables(read_pdf(made(draw)))] == ["a | b\nc | d", "e | f\ng | h"]


def test_frames_underlines_and_drawings_are_no_tables(read_pdf: Read, made: Callable[..., Path]) -> None:
    def draw(page: Any) -> None:
        page.draw_rect((50, 50, 450, 650))
        page.draw_line((50, 90), (450, 90))
        page.insert_text((60, 80), "A page in a frame", fontsize=12)
        dice = random.Random(4)
        for _ in range(40):
            x, y = dice.uniform(100, 400), dice.uniform(300, 500)
            page.draw_line((x, y), (x + dice.uniform(-90, 90), y + dice.uniform(-90, 90)))
            page.draw_line((x, y), (x + 60, y))
            page.draw_line((x, y), (x, y + 60))
        page.insert_text((200, 400), "label", fontsize=8)

    assert tables(read_pdf(made(draw))) == []


def test_an_underlined_word_does_not_part_its_sentence(read_pdf: Read, made: Callable[..., Path]) -> None:
    import pymupdf

    def draw(page: Any) -> None:
        writing = [("A sentence with an ", False), ("underlined", True), (" word in it,", False)]
        x = 60.0
        for text, under in writing:
            page.insert_text((x, 100), text, fontsize=11)
            wide = pymupdf.get_text_length(text, fontsize=11)
            if under:
                page.draw_line((x, 102), (x + wide, 102))
            x += wide
        page.insert_text((60, 114), "and a second line.", fontsize=11)

    assert [block.text for block in read_pdf(made(draw)).blocks] == [
        "A sentence with an underlined word in it, and a second line."
    ]


def test_a_map_of_many_lines_is_no_table_and_costs_little(read_pdf: Read, made: Callable[..., Path]) -> None:
    def draw(page: Any) -> None:
        shape = page.new_shape()
        for at in range(1500):
            shape.draw_line((50 + at % 400, 50), (50 + at % 400, 650))
            shape.draw_line((50, 50 + at * 0.4), (450, 50 + at * 0.4))
            shape.finish(width=0.1)
        shape.commit()
        page.insert_text((60, 40), "A map", fontsize=11)

    assert [block.text for block in read_pdf(made(draw)).blocks] == ["A map"]


TOWNS = (
    ("Country", "People", "Capital"),
    ("Austria", "8.9", "Vienna"),
    ("Czech Republic", "10.7", "Prague"),
    ("Finland", "5.5", "Helsinki"),
)
ACROSS = (60, 200, 320)


@pytest.fixture
def page(tmp_path: Path, read_pdf: Read) -> Callable[[Callable[[Any], None]], list[Block]]:
    def page(draw: Callable[[Any], None]) -> list[Block]:
        import pymupdf

        document = pymupdf.open()
        draw(document.new_page(width=500, height=500))
        document.save(tmp_path / "a.pdf")
        return read_pdf(tmp_path / "a.pdf").blocks

    return page


def words_on(page: Any) -> None:
    page.insert_text((60, 80), "A sentence before the table, as long as sentences are.", fontsize=10)
    for row, texts in enumerate(TOWNS):
        for x, text in zip(ACROSS, texts, strict=True):
            page.insert_text((x, 120 + 16 * row), text, fontsize=10)
    page.insert_text((60, 220), "A sentence after it, which is no part of it.", fontsize=10)


def rules(page: Any) -> None:
    for y in (106, 124, 174):
        page.draw_line((60, y), (380, y), width=0.6)


def test_rows_between_rules_are_a_table(page: Callable[..., list[Block]]) -> None:
    def draw(paper: Any) -> None:
        words_on(paper)
        rules(paper)

    before, table, after = page(draw)
    assert (before.kind, table.kind, after.kind) == ("paragraph", "table", "paragraph")
    assert table.cells == TOWNS
    assert table.rectangle
    assert table.rectangle[0] == pytest.approx(60, abs=2)
    assert table.rectangle[1] == pytest.approx(110, abs=4)
    assert table.rectangle[3] == pytest.approx(171, abs=4)
    start = table.text.index("Prague")
    assert table.rectangles_of(start, start + 6)[0][1] == pytest.approx(142, abs=4)


def test_words_with_gaps_alone_are_no_table(page: Callable[..., list[Block]]) -> None:
    found = page(words_on)
    assert [block.kind for block in found if block.kind == "table"] == []
    assert "Helsinki" in " ".join(block.text for block in found)


def test_columns_of_prose_between_rules_are_no_table(page: Callable[..., list[Block]]) -> None:
    def draw(paper: Any) -> None:
        for line in range(6):
            paper.insert_text((60, 120 + 14 * line), "several words_on of prose in a line", fontsize=9)
            paper.insert_text((260, 120 + 14 * line), "and several more in the other one", fontsize=9)
        for y in (100, 210):
            paper.draw_line((50, y), (450, y))

    assert "table" not in {block.kind for block in page(draw)}


def test_a_row_with_blank_fields_keeps_its_columns(page: Callable[..., list[Block]]) -> None:
    def draw(paper: Any) -> None:
        rules(paper)
        for row, texts in enumerate((("a1", "b1", "c1"), ("a2", "", "c2"), ("", "b3", "c3"))):
            for x, text in zip(ACROSS, texts, strict=True):
                if text:
                    paper.insert_text((x, 120 + 16 * row), text, fontsize=10)

    (table,) = [block for block in page(draw) if block.kind == "table"]
    assert table.cells == (("a1", "b1", "c1"), ("a2", "", "c2"), ("", "b3", "c3"))
