"""Figures: found by their pictures and captions in every format, and cut out to be seen."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.rag.document import Block, Figure, PageShape
from core.rag.figure_labels import caption_in, figure_text, label_of, labels_in, words_in
from core.rag.library import Library
from core.rag.parsers import process
from core.rag.parsers.catalog import PARSER_REGISTRY, PDF_READERS, parser_for, renderer_of
from tests.tries import tries


@pytest.fixture(scope="module")
def chart() -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (400, 200), "white")
    ImageDraw.Draw(image).line([(20, 180), (140, 60), (380, 20)], fill="red", width=6)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Figure 3: Growth", "figure 3"),
        ("Fig. 2-1 The way of a question", "figure 2-1"),
        ("Abbildung 0.1: Beispiele", "figure 0.1"),
        ("Table 4. Prices", "table 4"),
        ("图2 系统架构", "figure 2"),
        ("图二：系统", "figure 2"),
        ("表 3", "table 3"),
        ("Figure 3 shows that prices grew", ""),
        ("如图2所示", ""),
        ("图2所示的系统", ""),
        ("Figures are drawn by hand", ""),
    ],
)
def test_a_caption_names_its_figure_and_a_sentence_about_one_is_none(text: str, label: str) -> None:
    assert label_of(text) == label


@pytest.mark.parametrize(
    ("question", "labels"),
    [
        ("What does figure 3 show?", ["figure 3"]),
        ("图2说明什么", ["figure 2"]),
        ("第二张图里有什么", ["figure 2"]),
        ("Compare Fig. 2-1 with table 4", ["figure 2-1", "table 4"]),
        ("How do I configure 3 ships?", []),
    ],
)
def test_a_question_names_figures(question: str, labels: list[str]) -> None:
    assert labels_in(question) == labels


@settings(max_examples=tries(100))
@given(st.text(max_size=200), st.text(max_size=200))
def test_caption_and_words_are_told_apart_again(caption: str, words: str) -> None:
    caption, words = " ".join(caption.split()), words.strip().replace("\n", " ")
    told = figure_text(caption, words)
    assert (caption_in(told), words_in(told)) == (caption, words.strip())


def found(path: Path, parser: str = "") -> list[Block]:
    parser = parser or parser_for(path.name, path.read_bytes()[:65536])[0]
    every = PARSER_REGISTRY[parser]().parse(path, path.name, process.ParseOptions(pictures=False))
    return [one for one in every if isinstance(one, Block)]


@pytest.mark.parametrize("reader", PDF_READERS)
def test_a_picture_in_a_pdf_is_a_figure_with_its_caption_and_a_logo_on_every_page_is_none(
    tmp_path: Path, chart: bytes, reader: str
) -> None:
    import pymupdf

    document = pymupdf.open()
    for number in range(1, 5):
        page = document.new_page(width=400, height=500)
        page.insert_textbox((40, 120, 360, 220), f"Words of leaf {number} about harbours. " * 9, fontsize=10)
        page.insert_image((300, 20, 390, 80), stream=chart)
        if number == 2:
            page.insert_image((60, 250, 340, 390), stream=chart)
            page.insert_text((60, 410), "Figure 1. Ships by year", fontsize=10)
    path = tmp_path / "paper.pdf"
    document.save(path)
    blocks = found(path, PDF_READERS[reader][0])
    (figure,) = [one for one in blocks if one.kind == "figure"]
    assert (figure.page, figure.source, figure.text) == (2, "place", "[Figure] Figure 1. Ships by year")
    assert figure.lines[0][1] == pytest.approx((60, 250, 340, 390), abs=1)
    assert all("Words of leaf" in one.text for one in blocks if one is not figure)


def word(path: Path, chart: bytes) -> None:
    from docx import Document

    document = Document()
    document.add_paragraph("Ships bring rope.")
    document.add_picture(io.BytesIO(chart))
    document.add_paragraph("Figure 7: Rope by year")
    document.save(str(path))


def slides(path: Path, chart: bytes) -> None:
    from pptx import Presentation

    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    slide.shapes.title.text = "Ships bring rope."  # type: ignore[union-attr]
    shapes: Any = slide.shapes
    picture = shapes.add_picture(io.BytesIO(chart), 914_400, 1_828_800)
    picture._element.nvPicPr.cNvPr.set("descr", "Figure 7: Rope by year")
    presentation.save(str(path))


def web_page(path: Path, chart: bytes) -> None:
    address = f"data:image/png;base64,{b64encode(chart).decode()}"
    path.write_text(
        f"<html><body><p>Ships bring rope.</p><figure><img src='{address}'>"
        "<figcaption>Figure 7: Rope by year</figcaption></figure></body></html>"
    )


@pytest.mark.parametrize(
    ("name", "make", "page"), [("a.docx", word, None), ("a.pptx", slides, 1), ("a.html", web_page, None)]
)
def test_a_picture_in_another_file_is_a_figure_that_can_be_shown(
    tmp_path: Path, chart: bytes, name: str, make: Callable[[Path, bytes], None], page: int | None
) -> None:
    from PIL import Image

    make(tmp_path / name, chart)
    with Library.open(tmp_path / "library") as library:
        document = library.add(tmp_path / name)
        (figure,) = library.figures.named("What does figure 7 show?", [document.id])
        assert (figure.page, figure.caption) == (page, "Figure 7: Rope by year")
        (passage,) = library.figures.passages([figure])
        assert passage.text.startswith("[Figure] Figure 7: Rope by year")
        with Image.open(library.figures.picture(figure, 20_000)) as shown:
            assert shown.size == (200, 100)
        library.remove(document.id)
        assert library.figures.of([document.id]) == []


def test_a_cut_out_is_the_place_on_the_page_and_no_larger_than_asked(tmp_path: Path) -> None:
    import pymupdf
    from PIL import Image

    document = pymupdf.open()
    page = document.new_page(width=400, height=500)
    page.draw_rect((100, 200, 300, 300), fill=(1, 0, 0), color=(1, 0, 0))
    path = tmp_path / "red.pdf"
    document.save(path)
    figure = Figure("", "red.pdf", 1, 1, "", "", (104.0, 204.0, 296.0, 296.0), "place")
    cut = process.figure(path, renderer_of("application/pdf"), figure, PageShape(1, 400, 500), 30_000)
    with Image.open(io.BytesIO(cut)) as image:
        assert image.width * image.height <= 30_000
        assert image.width / image.height == pytest.approx(2.0, rel=0.05)
        red, green, blue = image.convert("RGB").resize((1, 1)).tobytes()
    assert (red > 240, green < 20, blue < 20) == (True, True, True)
