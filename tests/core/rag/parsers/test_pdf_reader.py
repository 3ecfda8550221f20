"""The setting `pdf_reader`: a library reads and draws PDF without PyMuPDF being as much as loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from bench.typeset import Sheet
from core.errors import SettingsError
from core.rag.config import RAGConfig
from core.rag.document import Block
from core.rag.library import Library
from core.rag.parsers.pdf_pdfium import PdfiumParser

ROOT = Path(__file__).parents[4]


def test_a_library_reads_and_draws_with_the_reader_it_is_told(make_pdf: Callable[..., Path], tmp_path: Path) -> None:
    with Library.open(tmp_path / "library", {"pdf_reader": "pypdfium2"}) as library:
        document = library.add(make_pdf("The lamp is green.", "Another page."))
        (passage, *_) = library.find("What colour is the lamp?")
        assert (document.pages, passage.page, passage.text) == (2, 1, "The lamp is green.")
        assert library.page_picture(passage).startswith(b"\x89PNG")


def test_an_unknown_reader_is_told_at_once() -> None:
    with pytest.raises(SettingsError, match="pdf_reader"):
        RAGConfig.of({"pdf_reader": "acrobat"})


def test_pymupdf_is_not_loaded_by_who_cannot_take_its_licence(make_pdf: Callable[..., Path], tmp_path: Path) -> None:
    path = make_pdf("The lamp is green.")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\n"
        "sys.modules['pymupdf'] = None\n"
        "from core.rag.parsers.catalog import PARSER_REGISTRY, renderer_of, parser_for\n"
        "from core.rag.parsers.pdf_pdfium import picture\n"
        f"path = Path({str(path)!r})\n"
        "parser, _ = parser_for('a.pdf', path.read_bytes(), 'pypdfium2')\n"
        "found = list(PARSER_REGISTRY[parser]().parse(path, 'a.pdf'))\n"
        "print(parser, found[-1].text, len(picture(path, 1, 1.0)) > 99)\n"
    )
    done = subprocess.run(
        [sys.executable, script], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "pdfium The lamp is green. True"


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
@pytest.mark.parametrize("drawn", [0, 90, 180, 270])
def test_lines_stay_in_order_whichever_way_they_lie(tmp_path: Path, drawn: int, turned: int) -> None:
    """Each line is drawn in two parts, on a page that a viewer turns as well."""
    sheet = Sheet(turned=drawn)
    document: Any = pymupdf.open()
    page = document.new_page(width=sheet.width, height=sheet.height)
    for number in range(1, 5):
        x = 80.0
        for text in (f"Line {number} begins here ", f"and number {number} ends."):
            page.insert_text(sheet.raw(x, 80 + 14 * number), text, fontsize=11, rotate=drawn)
            x += pymupdf.get_text_length(text, fontsize=11)
    page.set_rotation(turned)
    document.save(tmp_path / "lying.pdf")

    found = [one for one in PdfiumParser().parse(tmp_path / "lying.pdf", "lying.pdf") if isinstance(one, Block)]
    said = [f"Line {number} begins here and number {number} ends." for number in range(1, 5)]
    assert [one.text for one in found] == [" ".join(said)]
    (block,) = found
    upright = (turned - drawn) % 360 == 0
    assert len(block.lines) == len(said)
    assert not upright or block.lines[0][1][1] < block.lines[-1][1][1]
