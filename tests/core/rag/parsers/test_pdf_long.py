"""Long documents: reading gives its first pages long before it comes to the last."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.rag.document import Block, PageShape
from core.rag.parsers import pdf_mupdf
from core.rag.parsers.pdf import PdfParser
from core.rag.parsers.process import Limits, Parsed, stream
from tests.texts.measuring import is_in_time

PAGES = 300
WORDS = "The quick brown fox jumps over the lazy dog while the river runs to the sea."


@pytest.fixture(scope="module")
def long_pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Left and right heads, a number on each page, chapters every 25 pages."""
    import pymupdf

    document = pymupdf.open()
    for number in range(1, PAGES + 1):
        page = document.new_page(width=595, height=842)
        page.insert_text(
            (60, 40), f"{number} A history of foxes" if number % 2 else f"Collected works {number}", fontsize=9
        )
        if number % 25 == 1:
            page.insert_text((60, 90), f"Chapter {number // 25 + 1}: on rivers", fontsize=18)
        page.insert_text((60, 120), [f"{number}.{line} {WORDS}" for line in range(45)], fontsize=10)
        page.insert_text((290, 820), str(number), fontsize=9)
    path = tmp_path_factory.mktemp("long") / "long.pdf"
    document.save(path, deflate=True)
    return path


def test_the_first_pages_come_before_the_last_are_read(long_pdf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[int] = []
    whole = pdf_mupdf.page_of

    def watched(document: Any, number: int) -> Any:
        pages.append(number)
        return whole(document, number)

    monkeypatch.setattr(pdf_mupdf, "page_of", watched)
    found = PdfParser().parse(long_pdf, "long.pdf")
    first = next(one for one in found if isinstance(one, Block))
    assert first.page == 1
    assert len(pages) <= PAGES // 7
    assert sum(isinstance(one, PageShape) for one in found) == PAGES - 1
    assert sorted(pages) == list(range(1, PAGES + 1))


def test_what_is_learnt_from_some_pages_holds_for_all(long_pdf: Path, read_pdf: Callable[..., Parsed]) -> None:
    blocks = read_pdf(long_pdf).blocks
    assert [(block.text, block.page, block.level) for block in blocks if block.kind == "heading"] == [
        (f"Chapter {number // 25 + 1}: on rivers", number, 1) for number in range(1, PAGES + 1, 25)
    ]
    text = "\n".join(block.text for block in blocks)
    assert text.count("A history of foxes") == 1
    assert text.count("Collected works") == 1
    assert all(f"{number}.44 The quick" in text for number in range(1, PAGES + 1))


def test_closing_the_stream_ends_its_reader(long_pdf: Path) -> None:
    found = stream(long_pdf, "long.pdf", "pdf", Limits())
    assert next(found)
    found.close()
    assert list(found) == []


def test_three_hundred_pages_cost_little(long_pdf: Path) -> None:
    """A second of processor time on an old machine; the bound is loose, for a test must not depend on the machine."""
    started = time.process_time()
    blocks = [one for one in PdfParser().parse(long_pdf, "long.pdf") if isinstance(one, Block)]
    assert len(blocks) >= PAGES
    assert is_in_time(time.process_time() - started, 6)
