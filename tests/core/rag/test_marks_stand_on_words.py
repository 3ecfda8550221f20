"""Rectangles stand on the words: seen in the picture of the page, whatever way round and however large it is."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from PIL import Image

from core.rag.citations import supporting_spans
from core.rag.library import Library
from core.rag.parsers.catalog import PDF_READERS
from core.rag.places import Places, rectangles, units_of

# Width and height as printed, and how the page is turned before it is shown.
PAGES = [
    (595.0, 842.0, 0), (842.0, 595.0, 0), (420.0, 595.0, 0), (595.0, 842.0, 90), (595.0, 842.0, 180),
    (595.0, 842.0, 270), (420.0, 595.0, 90), (842.0, 595.0, 180),
]  # fmt: skip
CITED = "The deductible for water damage in the cellar is four hundred and twenty euros."
BEFORE = "This policy covers the contents of one flat and of the shed behind it. "
AFTER = " Hail is not covered unless that was agreed in writing before the first of May. Nobody reads so far."
ZOOM = 2
DARK = [255] * 128 + [0] * 128


def mixed(path: Path) -> Path:
    """Each page says the same in two paragraphs; the cited sentence is red, what stands around it black."""
    document: Any = pymupdf.open()
    for width, height, turned in PAGES:
        page = document.new_page(width=width, height=height)
        font: Any = pymupdf.Font("helv")
        x, y = 60.0, 120.0
        for text, color in ((BEFORE, (0, 0, 0)), (CITED, (1, 0, 0)), (AFTER, (0, 0, 0))):
            writer = pymupdf.TextWriter(page.rect)
            for word in text.split():
                length = font.text_length(f"{word} ", 12)
                if x + length > width - 60:
                    x, y = 60.0, y + 15.0
                writer.append((x, y), f"{word} ", font=font, fontsize=12)
                x += length
            writer.write_text(page, color=color)
        page.insert_text((60, y + 80.0), "Another paragraph has nothing to do with it.", fontsize=12)
        page.set_rotation(turned)
    document.save(path)
    return path


@pytest.fixture(scope="module", params=PDF_READERS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("turned")
    with Library.open(folder / "library", {"pdf_reader": request.param}) as opened:
        opened.add(mixed(folder / "mixed.pdf"))
        yield opened


def share_inside(ink: Image.Image, places: list[tuple[float, float, float, float]], grow: float = 1.0) -> float:
    """How much of the ink of a mask lies inside rectangles, which are in points."""
    inside = Image.new("L", ink.size, 0)
    for x0, y0, x1, y1 in places:
        left, top = round((x0 - grow) * ZOOM), round((y0 - grow) * ZOOM)
        inside.paste(ink.crop((left, top, round((x1 + grow) * ZOOM), round((y1 + grow) * ZOOM))), (left, top))
    return sum(inside.histogram()[128:]) / max(1, sum(ink.histogram()[128:]))


def inks(library: Library, document_id: str, page: int) -> tuple[Image.Image, Image.Image]:
    """Masks of what is printed in red, and of what is printed at all."""
    picture = Image.open(io.BytesIO(library.page_image(document_id, page, ZOOM))).convert("RGB")
    red, green, _ = picture.split()
    dark = green.point(DARK)
    black = red.point(DARK)
    return Image.composite(Image.new("L", dark.size, 0), dark, black), dark


@pytest.mark.parametrize("page", range(1, len(PAGES) + 1))
def test_the_passage_and_its_cited_sentence_are_marked_where_they_are_printed(library: Library, page: int) -> None:
    (document,) = library.documents()
    passage = next(one for one in library.pages.chunks(document.id) if one.page == page and "deductible" in one.text)
    red, all_ink = inks(library, document.id, page)
    width, height = library.page_size(document.id, page)
    assert (round(width * ZOOM), round(height * ZOOM)) == red.size
    assert share_inside(all_ink, list(passage.rectangles)) > 0.6  # all but the other paragraph, if it is another chunk

    content = library.pages.content(document.id, page)
    units = units_of(content.blocks)
    places = Places(units)
    whole = places.find(passage.text)
    spans = [
        span
        for start, end in supporting_spans(
            "The deductible for water damage is 420, four hundred and twenty euros.", passage.text
        )
        for span in places.find(passage.text[start:end], whole)
    ]
    marked = rectangles(content.blocks, units, spans)
    assert share_inside(red, marked, grow=6.0) > 0.97
    assert all(0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height for x0, y0, x1, y1 in marked)
    others = [one for one in passage.rectangles if one not in marked]
    if not PAGES[page - 1][2] % 180:  # lines of a page that lies on its side are marked whole
        area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in marked)
        assert area < 0.6 * sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in passage.rectangles)
    assert others
