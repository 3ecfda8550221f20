"""PDF: text with its place, headings, and every way in which a file can be bad."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.document import About, Block, PageShape, Rectangle
from core.rag.parsers.base import Found
from core.rag.parsers.catalog import PARSER_REGISTRY, PDF_READERS
from core.rag.parsers.pdf_page import Line, joined
from core.rag.parsers.pdf_structure import Headings, is_page_number
from tests.tries import tries

Make = Callable[..., Path]
AES_256 = 5  # PyMuPDF's PDF_ENCRYPT_AES_256


@pytest.fixture(params=PDF_READERS, autouse=True)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each promise is kept by either library."""
    name: str = request.param
    monkeypatch.setattr(sys.modules[__name__], "READER", name)
    return name


READER = "pymupdf"


def parsed(path: Path) -> list[Found]:
    return list(PARSER_REGISTRY[PDF_READERS[READER][0]]().parse(path, path.name))


def picture(path: Path, page: int, zoom: float, marks: tuple[Rectangle, ...] = ()) -> bytes:
    drawn: bytes = import_module(PDF_READERS[READER][1]).picture(path, page, zoom, marks)
    return drawn


def blocks(path: Path) -> list[Block]:
    return [one for one in parsed(path) if isinstance(one, Block)]


def test_every_page_has_its_size_and_its_text(make_pdf: Make) -> None:
    found = parsed(make_pdf("First page.", "", "Third page."))
    assert isinstance(found[0], About)
    assert found[0].pages == 3
    shapes = [one for one in found if isinstance(one, PageShape)]
    assert [(one.page, one.width, one.height, one.text_box is None) for one in shapes] == [
        (1, 400, 500, False),
        (2, 400, 500, True),
        (3, 400, 500, False),
    ]
    assert [(one.page, one.text) for one in found if isinstance(one, Block)] == [(1, "First page."), (3, "Third page.")]


def test_chinese_is_read(make_pdf: Make) -> None:
    (block,) = blocks(make_pdf("春眠不觉晓，\n处处闻啼鸟。", font="china-s"))
    assert block.text == "春眠不觉晓，处处闻啼鸟。"


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize("cropped", [False, True])
def test_words_stand_where_the_picture_shows_them(tmp_path: Path, rotation: int, cropped: bool) -> None:
    """The true place comes from the pixels: the box of everything that is not white."""
    import pymupdf
    from PIL import Image, ImageChops

    document = pymupdf.open()
    page = document.new_page(width=300, height=420)
    page.insert_text((80, 90), "HHHHHHHHHH", fontsize=24)
    if cropped:
        page.set_cropbox(pymupdf.Rect(30, 50, 280, 400))
    page.set_rotation(rotation)
    path = tmp_path / "turned.pdf"
    document.save(path)

    (block,) = blocks(path)
    (tmp_path / "page.png").write_bytes(picture(path, 1, 2.0))
    image = Image.open(tmp_path / "page.png").convert("L")
    ink = ImageChops.invert(image).getbbox()
    assert ink is not None
    true = [edge / 2 for edge in ink]
    assert block.rectangle is not None
    for edge, inked, slack in zip(block.rectangle, true, (-1, -1, 1, 1), strict=True):
        assert abs(edge - inked) < 14  # the box of a line is higher than its letters
        assert (edge - inked) * slack >= -1.5  # and holds them all


def test_headings_come_from_the_bookmarks(make_pdf: Make) -> None:
    path = make_pdf("Introduction", "Plain text here.", toc=[[1, "Introduction", 1]])
    assert [(block.kind, block.level) for block in blocks(path)] == [("heading", 1), ("paragraph", 0)]


def test_headings_come_from_the_size_of_the_letters(tmp_path: Path) -> None:
    import pymupdf

    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((50, 60), "The title", fontsize=24)
    page.insert_text((50, 88), "in two lines", fontsize=24)
    page.insert_text((50, 120), "A part", fontsize=16)
    for line in range(12):
        page.insert_text((50, 150 + 40 * line), f"Ordinary text number {line}, as there is most of.", fontsize=11)
    path = tmp_path / "sizes.pdf"
    document.save(path)
    found = blocks(path)
    assert [(one.text, one.level) for one in found if one.kind == "heading"] == [
        ("The title in two lines", 1),
        ("A part", 2),
    ]


def test_two_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    import pymupdf

    document = pymupdf.open()
    page = document.new_page()
    for column, left in (("left", 50), ("right", 320)):
        page.insert_text((left, 100), "\n".join(f"{column} line {n}" for n in range(5)), fontsize=11)
    path = tmp_path / "columns.pdf"
    document.save(path)
    text = " ".join(block.text for block in blocks(path))
    assert text.index("left line 4") < text.index("right line 0")


def test_lines_are_joined_as_they_are_read() -> None:
    assert joined(["an exam-", "ple of", "words"])[0] == "an example of words"
    assert joined(["中文", "文字"]) == ("中文文字", [0, 2])
    assert joined(["ends with A-", "B"])[0] == "ends with A- B"


def test_a_locked_file_says_so(make_pdf: Make) -> None:
    path = make_pdf("Secret", encryption=AES_256, user_pw="u", owner_pw="o")
    with pytest.raises(LockedDocumentError):
        parsed(path)


def test_a_file_locked_against_changes_only_is_read(make_pdf: Make) -> None:
    path = make_pdf("Readable", encryption=AES_256, owner_pw="o")
    assert [block.text for block in blocks(path)] == ["Readable"]


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_a_file_cut_off_early_is_broken(make_pdf: Make, share: float) -> None:
    path = make_pdf(*["Some text on a page."] * 5)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(BrokenDocumentError):
        parsed(path)


def test_rubbish_after_the_first_line_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "rubbish.pdf"
    path.write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 50)
    with pytest.raises(BrokenDocumentError):
        parsed(path)


def test_a_scan_has_pages_but_no_text(tmp_path: Path, picture_bytes: bytes) -> None:
    import pymupdf

    document = pymupdf.open()
    document.new_page().insert_image(pymupdf.Rect(0, 0, 300, 300), stream=picture_bytes)
    path = tmp_path / "scan.pdf"
    document.save(path)
    assert not "".join(one.text for one in blocks(path))


def test_marks_turn_the_paper_yellow_and_leave_the_rest(make_pdf: Make, tmp_path: Path) -> None:
    from PIL import Image

    path = tmp_path / "marked.png"
    path.write_bytes(picture(make_pdf("Some words."), 1, 1.0, ((40.0, 100.0, 140.0, 150.0),)))
    image = Image.open(path).convert("RGB")
    assert image.getpixel((300, 300)) == (255, 255, 255)
    red, green, blue = image.crop((90, 125, 91, 126)).tobytes()
    assert red > green > 180 > blue


def test_a_poster_is_drawn_no_larger_than_memory_allows(tmp_path: Path) -> None:
    import pymupdf
    from PIL import Image

    document = pymupdf.open()
    document.new_page(width=14_000, height=14_000)
    path = tmp_path / "poster.pdf"
    document.save(path)
    out = tmp_path / "poster.png"
    out.write_bytes(picture(path, 1, 6.0))
    with Image.open(out) as image:
        assert image.width * image.height <= 20_500_000


def book(path: Path, pages: int, *, body: str = "Page {n} tells of matter {n}.") -> Path:
    """A document with a running head, a page number, and a line of text on every page."""
    import pymupdf

    document = pymupdf.open()
    for n in range(1, pages + 1):
        page = document.new_page(width=400, height=500)
        page.insert_text((50, 30), f"The running head, chapter {n // 4}", fontsize=9)
        page.insert_text((50, 200), body.format(n=n), fontsize=12)
        page.insert_text((195, 485), f"- {n} -", fontsize=9)
    document.save(path, deflate=True)
    return path


@given(share=st.floats(0.0, 1.0))
@settings(max_examples=tries(60), deadline=None)
def test_a_file_cut_anywhere_is_refused_or_said_to_be_damaged_or_whole(
    share: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    path = book(folder / "whole.pdf", 6)
    data = path.read_bytes()
    whole = [block.text for block in blocks(path)]
    path.write_bytes(data[: round(len(data) * share)])
    try:
        found = parsed(path)
    except BrokenDocumentError:
        return
    about = [one for one in found if isinstance(one, About)][-1]
    assert about.damaged or [one.text for one in found if isinstance(one, Block)] == whole


def test_a_whole_file_is_not_said_to_be_damaged(tmp_path: Path) -> None:
    assert not any(one.damaged for one in parsed(book(tmp_path / "whole.pdf", 3)) if isinstance(one, About))


def _with_another_start(data: bytes) -> bytes:
    return re.sub(rb"startxref\s+\d+", b"startxref\n17", data)


def _with_other_places(data: bytes) -> bytes:
    at = data.rindex(b"xref", 0, data.rindex(b"startxref"))
    return data[:at] + re.sub(rb"\d{10}(?= 00000 n)", lambda one: b"%010d" % (int(one[0]) + 7), data[at:])


@pytest.mark.parametrize("harm", [_with_another_start, _with_other_places])
def test_a_file_that_only_lost_its_table_of_places_is_whole(tmp_path: Path, harm: Callable[[bytes], bytes]) -> None:
    path = book(tmp_path / "whole.pdf", 6)
    whole = [block.text for block in blocks(path)]
    path.write_bytes(harm(path.read_bytes()))
    found = parsed(path)
    assert [one.text for one in found if isinstance(one, Block)] == whole
    assert not any(one.damaged for one in found if isinstance(one, About))


@pytest.mark.parametrize("reader", ["pymupdf"], indirect=True)  # the other library mends without a word
def test_a_file_that_lost_its_table_and_a_page_is_damaged(tmp_path: Path) -> None:
    path = book(tmp_path / "whole.pdf", 6)
    data = bytearray(_with_another_start(path.read_bytes()))
    at = data.index(b"stream\n") + 10
    data[at : at + 30] = bytes(30)
    path.write_bytes(data)
    assert [one for one in parsed(path) if isinstance(one, About)][-1].damaged


@pytest.mark.parametrize("reader", ["pymupdf"], indirect=True)
def test_a_file_that_lost_all_but_a_picture_on_its_cover_is_no_scan(tmp_path: Path) -> None:
    import pymupdf

    grey = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 40, 40))
    grey.clear_with(90)
    with pymupdf.open() as document:
        document.new_page().insert_image(pymupdf.Rect(50, 50, 300, 300), pixmap=grey)
        for number in range(3):
            document.new_page().insert_text((72, 72), f"Words of page {number}.")
        data = bytearray(_with_another_start(document.tobytes(deflate=True)))
    for at in [one.end() for one in re.finditer(rb"/Length \d+/?[^>]*>>\nstream\n", data)]:
        data[at + 2 : at + 20] = bytes(18)
    path = tmp_path / "cut.pdf"
    path.write_bytes(data)
    with pytest.raises(BrokenDocumentError, match="damaged"):
        parsed(path)


@pytest.mark.parametrize("reader", ["pymupdf"], indirect=True)
def test_a_scan_that_had_to_be_repaired_is_no_broken_file_where_its_words_cannot_be_recognised(
    tmp_path: Path, picture_bytes: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pymupdf

    monkeypatch.setattr("core.rag.parsers.ocr.is_here", lambda: False)
    with pymupdf.open() as document:
        for _ in range(2):
            page = document.new_page()
            page.insert_image(page.rect, stream=picture_bytes, keep_proportion=False)
        data = _with_another_start(document.tobytes())
    path = tmp_path / "scan.pdf"
    path.write_bytes(data.replace(b"endobj\n", b"\n", 1))
    found = parsed(path)
    assert [one.damaged for one in found if isinstance(one, About)] == [False, True]
    assert not "".join(one.text for one in found if isinstance(one, Block))


def test_page_numbers_and_running_heads_are_no_text(tmp_path: Path) -> None:
    """The one exception to "no text is lost"; of every head the first stays, for a title may be one."""
    found = [block.text for block in blocks(book(tmp_path / "book.pdf", 8))]
    assert found == ["The running head, chapter 0", *(f"Page {n} tells of matter {n}." for n in range(1, 9))]


def test_figures_stay_wherever_they_may_mean_something(tmp_path: Path) -> None:
    import pymupdf

    document = pymupdf.open()
    for n in range(4):
        page = document.new_page(width=400, height=500)
        page.insert_text((50, 250), str(1000 + n), fontsize=12)  # not in a margin
        page.insert_text((50, 480), str(20 + n), fontsize=12)  # two of them: the last row of a table
        page.insert_text((250, 480), str(30 + n), fontsize=12)
        page.insert_text((50, 30), f"Only on page {'abcd'[n]}", fontsize=12)
    path = tmp_path / "figures.pdf"
    document.save(path)
    text = " ".join(block.text for block in blocks(path)).split()
    assert {*map(str, range(1000, 1004)), *map(str, range(20, 24)), *map(str, range(30, 34)), *"abcd"} <= {*text}


@pytest.mark.parametrize("number", ["7", "- 7 -", "Page 7", "7 / 12", "page 7 of 12", "xii", "第 7 页", "第7页 共12页"])
def test_a_page_number_is_known_in_any_dress(number: str) -> None:
    assert is_page_number(number)


@pytest.mark.parametrize("text", ["", "7.5 kg", "2019 and after", "Mix", "I", "12345", "$ 7 of 9 apples", "C. Civil"])
def test_what_is_more_than_a_page_number_is_none(text: str) -> None:
    assert not is_page_number(text)


def test_feet_with_page_numbers_are_no_text(tmp_path: Path) -> None:
    import pymupdf

    document = pymupdf.open()
    for n in range(1, 9):
        page = document.new_page(width=400, height=500)
        page.insert_text((50, 250), f"Page {n} tells of matter {n}.", fontsize=12)
        foot = f"{n}  The Book of All Matters" if n % 4 == 0 else f"Part {'ABC'[n % 4 - 1]} of the Book  {n}"
        page.insert_text((50, 490), foot, fontsize=8)
    path = tmp_path / "feet.pdf"
    document.save(path)
    assert [block.text for block in blocks(path)] == [f"Page {n} tells of matter {n}." for n in range(1, 9)]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("I. INTRODUCTION", 1),
        ("IV. RELATED WORK, AND MORE", 1),
        ("I. Introduction", 0),
        ("X. Y", 0),
        ("II. METHODS.", 0),
    ],
)
def test_roman_numbers_before_capitals_make_a_heading_in_plain_letters(text: str, level: int) -> None:
    headings = Headings([])
    headings.learn([Line("Words of an ordinary paragraph", (0, 0, 200, 10), 10.0, bold=False)] * 9)
    found = headings.parted([Line(text, (0, 0, 90, 10), 9.0, bold=False)], 1)
    assert [its for _, its in found] == [level]
