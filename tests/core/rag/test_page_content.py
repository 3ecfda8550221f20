"""What stands on a page, of every kind of document, read in the worker once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from core.errors import NotFoundError
from core.rag.document import Document, Passage
from core.rag.library import Library
from core.rag.page_content import Contents, PageContent
from core.rag.parsers import process
from core.rag.parsers.base import Found, ParseOptions
from core.rag.parsers.process import Limits
from core.rag.places import Places, units_of

NUMBERS = {"sheet", "lines"}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def workbook(path: Path, rows: int) -> Path:
    with xlsxwriter.Workbook(str(path)) as book:
        prices, notes = book.add_worksheet("Prices"), book.add_worksheet("Notes")
        prices.write_row(0, 0, ["Item", "Price"])
        for number in range(rows):
            prices.write_row(number + 1, 0, [f"Lamp {number}", 100 + number])
        notes.write_row(4, 2, ["Far away", "from the corner"])
        notes.merge_range(5, 2, 6, 2, "Both")
        notes.write(5, 3, "first")
        notes.write(6, 3, "second")
    return path


def slides(path: Path) -> Path:
    from pptx import Presentation
    from pptx.util import Pt

    deck: Any = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    box = slide.shapes.add_textbox(Pt(100), Pt(50), Pt(300), Pt(60))
    box.text_frame.text = "Our garden\nThe heron stands in the pond."
    slide.notes_slide.notes_text_frame.text = "Say good morning."
    deck.save(path)
    return path


def shown(library: Library, passage: Passage) -> PageContent:
    return library.pages.content(passage.document_id, passage.page, passage=passage)


def share(content: PageContent, passage: Passage) -> float:
    places = Places(units_of(content.blocks, numbered=content.kind in NUMBERS))
    return places.share(passage.text, places.find(passage.text))


def test_a_text_is_its_lines_with_their_numbers(library: Library, tmp_path: Path) -> None:
    text = "# Title\n\nOne line\n    indented\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    document = library.add(write(tmp_path / "notes.md", text))
    content = library.pages.content(document.id)
    assert (content.kind, content.parts) == ("lines", 1)
    rows = [row for block in content.blocks for row in block.cells]
    assert rows[:4] == [("1", "# Title"), ("2", ""), ("3", "One line"), ("4", "    indented")]
    assert all(share(content, passage) == 1.0 for passage in library.pages.chunks(document.id))


def test_a_long_text_is_shown_where_the_passage_stands(library: Library, tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {number} speaks of lamp {number}." for number in range(2_000))
    document = library.add(write(tmp_path / "long.txt", text))
    for passage in library.pages.chunks(document.id, 40, 5):
        content = shown(library, passage)
        assert share(content, passage) == 1.0
        assert content.parts > 10
        assert sum(len(block.cells) for block in content.blocks) <= 200
    first, second = (library.pages.content(document.id, part=part).blocks[0].cells[0] for part in (1, 2))
    assert (first[0], second[0]) == ("1", "101")


def test_a_line_without_end_is_cut_and_counted_once(library: Library, tmp_path: Path) -> None:
    document = library.add(write(tmp_path / "minified.js", "var a = 1;" * 1_000 + "\nlast"))
    rows = [row for block in library.pages.content(document.id).blocks for row in block.cells]
    assert [number for number, _ in rows if number] == ["1", "2"]
    assert max(len(line) for _, line in rows) <= 2_000


def test_a_sheet_has_its_letters_and_its_own_row_numbers(library: Library, tmp_path: Path) -> None:
    document = library.add(workbook(tmp_path / "prices.xlsx", 3))
    prices, notes = (library.pages.content(document.id, page) for page in (1, 2))
    assert (prices.kind, prices.title, notes.title) == ("sheet", "Prices", "Notes")
    assert prices.blocks[0].cells[:2] == (("", "A", "B"), ("1", "Item", "Price"))
    letters, *rows = notes.blocks[0].cells
    assert letters == ("", "C", "D")
    assert rows == [("5", "Far away", "from the corner"), ("6", "Both", "first"), ("7", "Both", "second")]


def test_a_large_sheet_is_shown_around_the_cited_rows(library: Library, tmp_path: Path) -> None:
    library.add(workbook(tmp_path / "prices.xlsx", 1_000))
    passage = next(one for one in library.find("Lamp 777") if "Lamp 777 " in one.text)
    content = shown(library, passage)
    numbers = [int(row[0]) for block in content.blocks for row in block.cells[1:]]
    assert share(content, passage) > 0.9
    assert 779 in numbers
    assert len(numbers) <= 300
    assert 1 < content.part <= content.last <= content.parts == 11
    assert content.page == 1


def test_rows_of_a_csv_keep_their_lines(library: Library, tmp_path: Path) -> None:
    document = library.add(write(tmp_path / "rows.csv", "a;b\n\n1;2\n"))
    (block,) = library.pages.content(document.id).blocks
    assert block.cells == (("", "A", "B"), ("1", "a", "b"), ("3", "1", "2"))


def test_a_slide_is_its_boxes_in_points(library: Library, tmp_path: Path) -> None:
    document = library.add(slides(tmp_path / "garden.pptx"))
    content = library.pages.content(document.id, 1)
    assert content.kind == "slide"
    assert content.shape
    assert (content.shape.width, content.shape.height) == (720.0, 540.0)
    title, text, notes = content.blocks
    assert (title.text, text.text, notes.text) == ("Our garden", "The heron stands in the pond.", "Say good morning.")
    assert title.rectangle == text.rectangle == (100.0, 50.0, 400.0, 110.0)
    assert notes.rectangle is None


@pytest.mark.parametrize("name", ["page.html", "data.json"])
def test_other_texts_are_the_blocks_that_were_read(library: Library, tmp_path: Path, name: str) -> None:
    texts = {
        "page.html": "<h1>Lamps</h1>" + "".join(f"<p>Lamp {n} is lit.</p>" for n in range(300)),
        "data.json": '{"lamps": [' + ",".join(f'{{"name": "Lamp {n}", "watts": {n}}}' for n in range(300)) + "]}",
    }
    document = library.add(write(tmp_path / name, texts[name]))
    for passage in library.pages.chunks(document.id):
        content = shown(library, passage)
        assert content.kind == "text"
        assert share(content, passage) > 0.9


def test_a_file_is_opened_once_however_often_it_is_looked_at(library: Library, tmp_path: Path) -> None:
    document = library.add(write(tmp_path / "notes.txt", "One line"))
    before = library.pages.content(document.id)
    next(tmp_path.rglob(f"originals/{document.id}")).unlink()
    assert library.pages.content(document.id) == before


def test_what_is_kept_of_a_pdf_is_kept_while_it_is_read(
    library: Library, tmp_path: Path, make_pdf: Callable[..., Path]
) -> None:
    document = library.add(make_pdf("First page", "Second page"))
    next(tmp_path.rglob(f"originals/{document.id}")).unlink()
    assert [block.text for block in library.pages.content(document.id, 2).blocks] == ["Second page"]


def test_a_pdf_that_is_still_being_read_is_not_read_a_second_time(
    tmp_path: Path, make_pdf: Callable[..., Path]
) -> None:
    contents = Contents(tmp_path / "pictures")
    document = Document("a" * 64, "made.pdf", "application/pdf", 1, 0, status="reading")
    with pytest.raises(NotFoundError):
        contents.get(document, make_pdf("First page"), 1)
    read = contents.get(replace(document, status="ready"), tmp_path / "made.pdf", 1)
    assert [block.text for block in read.blocks] == ["First page"]


def test_however_many_look_at_once_a_file_is_read_again_once_and_within_the_limits(
    tmp_path: Path, make_pdf: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, read, second = Limits(seconds=7), list[Limits](), threading.Event()

    def counted(path: Path, name: str, parser: str, given: Limits, options: ParseOptions) -> Iterator[Found]:
        read.append(given)
        if len(read) > 1:
            second.set()
        second.wait(0.3)  # for those who do not wait
        yield from process.stream(path, name, parser, given, options)

    monkeypatch.setattr("core.rag.page_content.stream", counted)
    path = make_pdf("First page")
    contents = Contents(tmp_path / "pictures", limits=limits)
    document = Document("a" * 64, "made.pdf", "application/pdf", 1, 1, status="ready")
    with ThreadPoolExecutor(5) as threads:
        seen = list(threads.map(lambda _: contents.get(document, path, 1).blocks[0].text, range(5)))
    assert seen == ["First page"] * 5
    assert read == [limits]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]" * 40])
def test_what_is_damaged_or_gone_is_made_again(library: Library, tmp_path: Path, damage: bytes) -> None:
    document = library.add(write(tmp_path / "notes.txt", "One line"))
    before = library.pages.content(document.id)
    kept = next(tmp_path.rglob("content-*.json"))
    kept.write_bytes(damage)
    assert library.pages.content(document.id) == before
    library.remove(document.id)
    assert not list(tmp_path.rglob("content-*.json"))


def test_there_is_no_page_beyond_the_last(library: Library, make_pdf: Callable[..., Path]) -> None:
    document = library.add(make_pdf("First page"))
    with pytest.raises(NotFoundError):
        library.pages.content(document.id, 2)
    with pytest.raises(NotFoundError):
        library.pages.content("0" * 64, 1)


def test_all_chunks_of_a_document_come_in_order(library: Library, make_pdf: Callable[..., Path]) -> None:
    document = library.add(make_pdf("First page", "Second page", "Third page"))
    other = library.add(make_pdf("Another", name="other.pdf"))
    chunks = library.pages.chunks(document.id)
    assert [(one.page, one.text) for one in chunks] == [(1, "First page"), (2, "Second page"), (3, "Third page")]
    assert library.pages.chunks(document.id, 1, 1) == chunks[1:2]
    assert library.pages.chunks(document.id, 3) == []
    assert library.pages.position(document.id, page=3) == 2
    assert library.pages.position(document.id, chunk_id=chunks[1].chunk_id) == 1
    assert library.pages.chunk(document.id, chunks[2].chunk_id) == chunks[2]
    with pytest.raises(NotFoundError):
        library.pages.chunk(other.id, chunks[2].chunk_id)


def test_a_page_whose_file_is_on_another_machine_is_one_that_cannot_be_shown(library: Library, tmp_path: Path) -> None:
    document = library.add(write(tmp_path / "pond.md", "The heron stands in the pond."))
    for kept in (f"originals/{document.id}", f"pictures/{document.id}/content-*.json"):
        for path in tmp_path.rglob(kept):
            path.unlink()
    with pytest.raises(NotFoundError, match=r"pond\.md is not on this machine"):
        library.pages.content(document.id, None)
