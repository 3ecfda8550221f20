"""Tables with rules above and below only, as books print them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.rag.document import Block
from core.rag.parsers.process import Parsed

Read = Callable[..., Parsed]
ROWS = (
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


def words(page: Any) -> None:
    page.insert_text((60, 80), "A sentence before the table, as long as sentences are.", fontsize=10)
    for row, texts in enumerate(ROWS):
        for x, text in zip(ACROSS, texts, strict=True):
            page.insert_text((x, 120 + 16 * row), text, fontsize=10)
    page.insert_text((60, 220), "A sentence after it, which is no part of it.", fontsize=10)


def rules(page: Any) -> None:
    for y in (106, 124, 174):
        page.draw_line((60, y), (380, y), width=0.6)


def test_rows_between_rules_are_a_table(page: Callable[..., list[Block]]) -> None:
    def draw(paper: Any) -> None:
        words(paper)
        rules(paper)

    before, table, after = page(draw)
    assert (before.kind, table.kind, after.kind) == ("paragraph", "table", "paragraph")
    assert table.cells == ROWS
    assert table.rectangle
    assert table.rectangle[0] == pytest.approx(60, abs=2)
    assert table.rectangle[1] == pytest.approx(110, abs=4)
    assert table.rectangle[3] == pytest.approx(171, abs=4)
    start = table.text.index("Prague")
    assert table.rectangles_of(start, start + 6)[0][1] == pytest.approx(142, abs=4)


def test_words_with_gaps_alone_are_no_table(page: Callable[..., list[Block]]) -> None:
    found = page(words)
    assert [block.kind for block in found if block.kind == "table"] == []
    assert "Helsinki" in " ".join(block.text for block in found)


def test_columns_of_prose_between_rules_are_no_table(page: Callable[..., list[Block]]) -> None:
    def draw(paper: Any) -> None:
        for line in range(6):
            paper.insert_text((60, 120 + 14 * line), "several words of prose in a line", fontsize=9)
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
