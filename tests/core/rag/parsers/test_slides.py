"""Slides: what stands on them, in order, with its slide and place."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from core.errors import BrokenDocumentError
from core.rag.parsers.process import Parsed

Read = Callable[..., Parsed]
BLANK, TITLE_AND_BODY = 6, 1


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Any], Path]:
    def save(deck: Any) -> Path:
        path = tmp_path / "deck.pptx"
        deck.save(path)
        return path

    return save


def box(slide: Any, text: str, left: float = 1, top: float = 1) -> Any:
    made = slide.shapes.add_textbox(Inches(left), Inches(top), Inches(2), Inches(1))
    made.text_frame.text = text
    return made


def test_a_slide_is_a_page_with_title_text_and_notes(read: Read, saved: Callable[[Any], Path]) -> None:
    deck: Any = Presentation()
    for number in (1, 2):
        slide = deck.slides.add_slide(deck.slide_layouts[TITLE_AND_BODY])
        slide.placeholders[1].text = f"First point\nSecond point of {number}"
        slide.shapes.title.text = f"Title {number}"
        slide.notes_slide.notes_text_frame.text = f"Say hello {number} times."
    parsed = read(saved(deck))
    assert parsed.about.pages == 2
    assert [shape.page for shape in parsed.shapes] == [1, 2]
    assert (parsed.shapes[0].width, parsed.shapes[0].height) == (720, 540)
    assert [(block.kind, block.text, block.page) for block in parsed.blocks] == [
        ("heading", "Title 1", 1),
        ("paragraph", "First point\nSecond point of 1", 1),
        ("paragraph", "Say hello 1 times.", 1),
        ("heading", "Title 2", 2),
        ("paragraph", "First point\nSecond point of 2", 2),
        ("paragraph", "Say hello 2 times.", 2),
    ]
    assert parsed.blocks[2].rectangle is None
    assert parsed.shapes[0].text_box is not None


def test_boxes_have_their_place_even_inside_groups(read: Read, saved: Callable[[Any], Path]) -> None:
    deck: Any = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[BLANK])
    box(slide, "Heading of it")
    inner = box(slide, "Grouped words", left=2, top=3)
    group = slide.shapes.add_group_shape([inner])
    group.left, group.top, group.width, group.height = Inches(4), Inches(5), Inches(4), Inches(2)  # moved, twice as big
    heading, grouped = read(saved(deck)).blocks
    assert (heading.kind, heading.text, heading.rectangle) == ("heading", "Heading of it", (72, 72, 216, 144))
    assert (grouped.text, grouped.rectangle) == ("Grouped words", (288, 360, 576, 504))


def test_tables_and_charts_become_tables(read: Read, saved: Callable[[Any], Path]) -> None:
    deck: Any = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[BLANK])
    frame = slide.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1))
    for row, texts in enumerate((("Stadt", "Einwohner"), ("北京", "2189万"))):
        for column, text in enumerate(texts):
            frame.table.cell(row, column).text = text
    data: Any = CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("Sales", (19.2, None))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(3), Inches(4), Inches(3), data)
    tables = [block for block in read(saved(deck)).blocks if block.kind == "table"]
    assert tables[0].cells == (("Stadt", "Einwohner"), ("北京", "2189万"))
    assert tables[0].rectangle == (72, 72, 360, 144)
    assert tables[1].cells == (("", "Sales"), ("East", "19.2"), ("West", ""))


def test_no_slide_counts_under_the_title_of_the_one_before(read: Read, saved: Callable[[Any], Path]) -> None:
    deck: Any = Presentation()
    slides = [deck.slides.add_slide(deck.slide_layouts[BLANK]) for _ in range(3)]
    box(slides[0], "Short line\nand more")
    box(slides[1], "A sentence that is too long to be a title. " * 5)
    blocks = read(saved(deck)).blocks
    assert [(block.kind, block.text[:10], block.page) for block in blocks] == [
        ("heading", "Short line", 1),
        ("paragraph", "and more", 1),
        ("heading", "2", 2),
        ("paragraph", "A sentence", 2),
    ]


def test_words_in_newer_shapes_and_diagrams_are_read(read: Read, saved: Callable[[Any], Path]) -> None:
    deck: Any = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[BLANK])
    box(slide, "Title")
    made = box(slide, "wrapped words").element
    etree: Any = import_module("lxml.etree")
    mc = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    wrapper = etree.SubElement(made.getparent(), f"{{{mc}}}AlternateContent")
    choice = etree.SubElement(wrapper, f"{{{mc}}}Choice")
    choice.append(made)
    assert [block.text for block in read(saved(deck)).blocks] == ["Title", "wrapped words"]


def test_an_archive_without_slides_is_none(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "a.pptx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ppt/none.txt", "nothing")
    with pytest.raises(BrokenDocumentError) as caught:
        read(path)
    assert caught.value.words_key == "document_not_what_it_says"


def test_half_a_file_with_slides_is_damaged(read: Read, saved: Callable[[Any], Path]) -> None:
    path = saved(Presentation())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BrokenDocumentError) as caught:
        read(path)
    assert caught.value.words_key == "document_broken"


def test_an_entity_that_unfolds_without_end_is_not_unfolded(read: Read, tmp_path: Path) -> None:
    deck: Any = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[BLANK])
    box(slide, "A title")
    box(slide, "laughter")
    whole = io.BytesIO()
    deck.save(whole)
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "ha"><!ENTITY f SYSTEM "file:///etc/passwd">{entities}]>'.encode()
    path = tmp_path / "bomb.pptx"
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(path, "w") as target:
        for entry in source.namelist():
            data = source.read(entry)
            if entry == "ppt/slides/slide1.xml":
                head, rest = data.split(b"?>", 1)
                data = head + b"?>" + bomb + rest.replace(b"laughter", b"&l11;&f;end")
            target.writestr(entry, data)
    try:
        text = "".join(block.text for block in read(path).blocks)
    except BrokenDocumentError:
        return
    assert len(text) < 100
    assert "root" not in text
