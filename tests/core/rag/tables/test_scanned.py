"""A table that stands in a scan is asked like any other: its figures are summed, and marks stand on their cells."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from core.rag import page_content
from core.rag.document import Passage
from core.rag.library import Library
from core.rag.tables.store import places_of
from core.tools.builtin.ask_tables import AskTables

pytestmark = pytest.mark.anyio

ROWS = [
    ("Ship", "Cargo", "Tons", "Paid"),
    ("Heron", "Timber", "1,250", "310.50"),
    ("Gull", "Grain", "480", "95.25"),
    ("Heron", "Rope", "75", "42.00"),
    ("Tern", "Timber", "920", "201.75"),
    ("Total", "", "2,725", "649.50"),
]
WIDE, HIGH = 110, 28  # points of a cell


def scan(path: Path, rows: Sequence[tuple[str, ...]], *, ruled: bool) -> Path:
    """A PDF whose page is a picture of a table."""
    page: Any = pymupdf.open().new_page(width=520, height=100 + HIGH * len(rows))
    page.insert_text((50, 30), "Cargo of the harbour in May", fontsize=12)
    for at, row in enumerate(rows):
        for column, cell in enumerate(row):
            page.insert_text((58 + WIDE * column, 62 + HIGH * at), cell, fontsize=11)
    for at in range(len(rows) + 1) if ruled else ():
        page.draw_line((50, 44 + HIGH * at), (50 + 4 * WIDE, 44 + HIGH * at))
    for column in range(5) if ruled else ():
        page.draw_line((50 + WIDE * column, 44), (50 + WIDE * column, 44 + HIGH * len(rows)))
    drawn = page.get_pixmap(dpi=150, alpha=False)
    document: Any = pymupdf.open()
    document.new_page(width=page.rect.width, height=page.rect.height).insert_image(
        page.rect, stream=io.BytesIO(drawn.tobytes("png"))
    )
    document.save(path)
    return path


def place_of(cell: str, row: int) -> tuple[float, float, float, float]:
    """Where a cell is printed, in points: `row` counts from 0, with the header."""
    column = ROWS[row].index(cell)
    x, y = 58 + WIDE * column, 62 + HIGH * row
    return (x, y - 8, x + pymupdf.get_text_length(cell, fontsize=11), y)


def holds(outer: Sequence[float], inner: Sequence[float]) -> bool:
    return (
        outer[0] <= inner[0] + 2 and outer[1] <= inner[1] + 2 and outer[2] >= inner[2] - 2 and outer[3] >= inner[3] - 2
    )


async def computed(library: Library, document_id: str, query: str) -> tuple[str, list[Passage]]:
    tool = AskTables(library.tables.of([document_id]), lambda asked: library.tables.ask([document_id], asked))
    evidence: list[Passage] = []
    result = await tool.call({"query": query}, evidence=evidence)
    return result.text, evidence


@pytest.mark.parametrize("ruled", [True, False])
async def test_a_scanned_table_is_summed_and_each_mark_stands_on_the_cells_that_went_in(
    library: Library, tmp_path: Path, ruled: bool
) -> None:
    document = library.add(scan(tmp_path / "cargo.pdf", ROWS, ruled=ruled))
    assert (document.scanned, document.tables) == (1, 1)
    query = "SELECT Ship, sum(Tons) AS tons FROM cargo WHERE NOT _total GROUP BY Ship ORDER BY Ship"
    said, passages = await computed(library, document.id, query)
    assert "Ship: Heron | tons: 1325" in said
    gull, heron, tern = passages
    assert (gull.rows, heron.rows, tern.rows) == ("2", "1, 3", "4")
    for passage, cells in (
        (gull, [("Gull", 2), ("480", 2)]),
        (heron, [("Heron", 1), ("1,250", 1), ("Heron", 3), ("75", 3)]),
        (tern, [("Tern", 4), ("920", 4)]),
    ):
        wanted = [place_of(cell, row) for cell, row in cells]
        assert all(any(holds(mark, place) for mark in passage.rectangles) for place in wanted)
        others = [place_of(cell, row) for row, cells in enumerate(ROWS) for cell in cells[1:2] + cells[3:] if cell]
        assert not any(holds(mark, place) for mark in passage.rectangles for place in others), "only what was read"
        assert passage.page == 1
    _, (row,) = await computed(library, document.id, "SELECT * FROM cargo WHERE Ship = 'Gull'")
    assert any(holds(mark, place_of("95.25", 2)) for mark in row.rectangles)


async def test_a_scan_is_asked_when_what_was_kept_of_its_pages_is_gone(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kinds() -> list[str]:
        return [block.kind for block in library.pages.content(document.id, 1).blocks]

    monkeypatch.setattr(page_content, "_RECOGNISED", 0)
    document = library.add(scan(tmp_path / "cargo.pdf", ROWS[:5], ruled=True))
    before = kinds()
    shutil.rmtree(tmp_path / "library" / "pictures")
    assert kinds() == ["figure"], "a page of a longer scan is shown without waiting for its words"
    said, (passage, *_) = await computed(library, document.id, "SELECT Tons FROM cargo WHERE Ship = 'Tern'")
    assert "Tons: 920" in said
    assert any(holds(mark, place_of("920", 4)) for mark in passage.rectangles)
    assert kinds() == before, "and from now on with them"


def test_a_cell_that_reaches_over_an_empty_one_is_marked_to_its_end() -> None:
    kept = [0, 0, 90, 10, *(0, 90), *(30, 60), *(60, 90)]  # the first cell's words stand over all three
    assert places_of(kept, [0, 1]) == ((0, 0, 90, 10),)
    assert places_of(kept, [1, 2]) == ((30, 0, 90, 10),)
