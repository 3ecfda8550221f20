"""A mark lies on the whole of a line whose dot leaders were left out, and on the figure in which its words stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymupdf
import pytest

from core.rag.chunking import chunks_of
from core.rag.document import Block, Rectangle
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import PARSER_REGISTRY, PDF_READERS
from core.rag.places import proof_on_page

ENTRIES = ("Securing and protecting the records", "Roles and duties", "What the auditor asks of a table")
CAPTION = "Figure 3-1 How the requests of a client are answered"
IN_FIGURE = ("Gateway of the house", "Ledger of requests")


def printed(path: Path) -> Path:
    """A page with a table of contents, and one with a drawing that has words in it and a caption below."""
    document: Any = pymupdf.open()
    page = document.new_page()
    for at, entry in enumerate(f"Chapter {number}. {entry}" for number, entry in enumerate(ENTRIES, 1)):
        x, y = 72.0, 120.0 + 16.0 * at
        page.insert_text((x, y), entry, fontsize=11)
        dots = x + pymupdf.get_text_length(f"{entry} ", fontsize=11)
        count = int((500 - dots) / pymupdf.get_text_length(". ", fontsize=11))
        page.insert_text((dots, y), f"{'. ' * count}{at + 1}", fontsize=11)
    page = document.new_page()
    for at, words in enumerate(IN_FIGURE):
        top = 120.0 + 90.0 * at
        page.draw_oval(pymupdf.Rect(120, top, 420, top + 60))
        page.draw_line((270, top + 60), (300, top + 90))
        page.insert_text((180, top + 34), words, fontsize=11)
    page.insert_text((120, 330), CAPTION, fontsize=10)
    page.insert_text((72, 500), "Nothing else is said of it on this page of the book.", fontsize=11)
    document.save(path)
    return path


def read(path: Path, reader: str) -> list[Block]:
    found = PARSER_REGISTRY[PDF_READERS[reader][0]]().parse(path, path.name, ParseOptions())
    return [one for one in found if isinstance(one, Block)]


def words_under(path: Path, page: int, marks: tuple[Rectangle, ...]) -> str:
    """The words of a page that lie in marks with all of their width, as PyMuPDF alone has them."""
    opened: Any = pymupdf.open(path)
    with opened as document:
        return " ".join(
            word
            for x0, y0, x1, y1, word, *_ in document[page - 1].get_text("words")
            if any(a - 1 <= x0 and x1 <= c + 1 and b <= (y0 + y1) / 2 <= d for a, b, c, d in marks)
        )


def marks(blocks: list[Block], page: int, said: str) -> tuple[Rectangle, ...]:
    here = [one for one in blocks if one.page == page]
    passage = next(one for one in chunks_of(iter(here)) if said in one.text)
    return proof_on_page([said], passage.text, here)


@pytest.mark.parametrize("reader", PDF_READERS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_of_a_table_of_contents_is_marked_with_all_of_its_line(
    entry: str, reader: str, tmp_path: Path
) -> None:
    path = printed(tmp_path / "a.pdf")
    assert entry in words_under(path, 1, marks(read(path, reader), 1, entry))


def test_an_entry_that_is_a_block_of_its_own_is_marked_with_all_of_its_line() -> None:
    block = Block("heading", "Chapter 2. Roles and duties 5", 1, ((0, (72.0, 100.0, 500.0, 114.0)),), 1)
    assert proof_on_page(["Roles and duties"], block.text, [block]) == ((72.0, 100.0, 500.0, 114.0),)


@pytest.mark.parametrize("reader", PDF_READERS)
@pytest.mark.parametrize("words", IN_FIGURE)
def test_words_that_stand_in_a_figure_are_marked_there_and_not_on_its_caption(
    words: str, reader: str, tmp_path: Path
) -> None:
    path = printed(tmp_path / "a.pdf")
    under = words_under(path, 2, marks(read(path, reader), 2, words))
    assert words in under
    assert "Figure 3-1" not in under


@pytest.mark.parametrize("reader", PDF_READERS)
def test_words_of_a_caption_are_marked_on_the_caption_and_not_on_its_figure(reader: str, tmp_path: Path) -> None:
    path = printed(tmp_path / "a.pdf")
    under = words_under(path, 2, marks(read(path, reader), 2, CAPTION))
    assert under == CAPTION


def test_a_passage_of_the_words_of_a_figure_lies_on_the_figure_too_where_they_fill_several() -> None:
    inside = ". ".join(f"Step {at} of the plan is taken by the clerk" for at in range(80))
    places = ((0, (50.0, 50.0, 400.0, 300.0)), (1, (50.0, 310.0, 300.0, 322.0)))
    block = Block("figure", f"[Figure] Figure 2 The plan\n[Words in the figure] {inside}", 1, places, source="place")
    chunks = list(chunks_of([block]))
    assert len(chunks) > 1
    assert all(places[0][1] in chunk.rectangles for chunk in chunks)
