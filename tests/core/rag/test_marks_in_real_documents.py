"""Each sentence of whole PDFs is marked where its words are, by the letters that PyMuPDF alone finds in the mark.

The samples that come with Parlour, in English and Chinese, and a page as Matplotlib writes it: letters that are
drawings (Type 3), of different and of equal width, a table of contents, words on their side.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from bench.marks_in_documents import measured
from core.rag.parsers.catalog import PDF_READERS

SAMPLES = Path(__file__).parents[3] / "assets" / "samples"
LINES = (
    "Till all is lit it is still ill here. WOMEN AND MEN WHO WORKED THERE WERE WARM. It is over.",
    "The deductible for water damage is 420 euros. Hail is not covered at all. Nobody reads so far.",
    "Illicit lilies fill hills. MAMMOTHS WANDER. That is all that is said of them in this book.",
)
ENTRIES = ("Chapter 1. Securing and protecting the records", "Chapter 2. Roles and duties", "Chapter 3. Audits")


def drawn(path: Path) -> Path:
    """A page of another program's."""
    page = Figure(figsize=(8.27, 11.69))
    for at, entry in enumerate(ENTRIES):
        page.text(0.1, 0.92 - 0.018 * at, f"{entry} {'. ' * (60 - len(entry))}{at + 1}", fontsize=10)
    for row, font in enumerate(("DejaVu Sans", "DejaVu Sans Mono", "DejaVu Serif")):
        for at, line in enumerate(LINES):
            page.text(0.1, 0.75 - 0.12 * row - 0.02 * at, line, fontsize=9, family=font)
    page.text(0.05, 0.3, "The words at the edge stand on their side.", fontsize=9, rotation=90)
    page.savefig(path, format="pdf")
    return path


@pytest.mark.parametrize("reader", PDF_READERS)
@pytest.mark.parametrize("name", ["policy.pdf", "保险单.pdf", "drawn.pdf"])
def test_each_sentence_and_each_passage_is_marked_where_its_words_are(name: str, reader: str, tmp_path: Path) -> None:
    path = drawn(tmp_path / name) if name == "drawn.pdf" else SAMPLES / name
    sentences, passages = measured(path, reader)
    assert sentences.wrong == passages.wrong == []
    assert sentences.right > 15
    assert passages.right >= 1
    assert sentences.none == 0
