"""Scans and pictures: what can only be seen is read too, in its place, whichever way up."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from core.errors import BrokenDocumentError, MissingExtraError
from core.rag.document import Rectangle
from core.rag.parsers import ocr, picture, process
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import parser_for, renderer_of
from core.rag.parsers.ocr import Recognised, Sheet, block, is_scan, lines_of, turned_back, words_of
from core.rag.parsers.pdf_page import Line, Pixels, RawPage
from core.rag.parsers.process import Limits, Parsed

Read = Callable[..., Parsed]
WORDS = "Invoice number 4711 of the harbour office"
CHINESE = "合同编号二零二四零七一五"


def paper(text: str = WORDS, chinese: str = CHINESE, dpi: int = 150) -> Any:
    """A sheet with two lines on it, as a picture; and the places of the lines, in points."""
    import pymupdf

    page = pymupdf.open().new_page(width=420, height=300)
    page.insert_text((50, 80), text, fontsize=14)
    page.insert_text((50, 160), chinese, fontsize=16, fontname="china-s")
    drawn = page.get_pixmap(dpi=dpi, alpha=False)
    return Image.frombytes("RGB", (drawn.width, drawn.height), drawn.samples)


@pytest.fixture
def scan(tmp_path: Path) -> Callable[..., Path]:
    """A PDF whose page is a picture, turned by quarters, perhaps with a stamp of real letters."""

    def scan(quarters: int = 0, rotation: int = 0, stamp: str = "") -> Path:
        import pymupdf

        image = paper().rotate(90 * quarters, expand=True)
        data = io.BytesIO()
        image.save(data, "PNG")
        document = pymupdf.open()
        page = document.new_page(width=image.width * 72 / 150, height=image.height * 72 / 150)
        page.insert_image(page.rect, stream=data.getvalue())
        if stamp:
            page.insert_text((300, 280), stamp, fontsize=8)
        page.set_rotation(rotation)
        path = tmp_path / "scan.pdf"
        document.save(path)
        return path

    return scan


def letters(parsed: Parsed) -> str:
    return "".join(block.text for block in parsed.blocks).replace(" ", "")


def test_a_scanned_page_is_read_in_two_languages_with_places(scan: Callable[..., Path]) -> None:
    parsed = process.parse(scan(stamp="Seen"), "scan.pdf", "pdf", Limits())
    assert parsed.scanned == [1]
    assert WORDS.replace(" ", "") in letters(parsed)
    assert CHINESE in letters(parsed)
    assert "Seen" in letters(parsed)
    (line,) = [block for block in parsed.blocks if "4711" in block.text]
    x0, y0, x1, y1 = line.rectangle or (0, 0, 0, 0)
    assert abs(x0 - 50) < 5
    assert 60 < y0 < 72
    assert 80 < y1 < 90
    assert 270 < x1 < 360
    assert parsed.shapes[0].text_box is not None
    assert [(one.source, one.text) for one in parsed.blocks if one.kind == "figure"] == [("page", "")]  # it can be seen


@pytest.mark.parametrize(("quarters", "rotation"), [(2, 0), (0, 270)])
def test_a_sheet_that_lies_the_wrong_way_is_read(
    scan: Callable[..., Path], read: Read, quarters: int, rotation: int
) -> None:
    text = letters(read(scan(quarters, rotation)))
    assert text.index("4711") < text.index("二零二四")


def test_faint_print_and_small_print_are_read_beside_other_lines(tmp_path: Path, read: Read) -> None:
    import pymupdf

    page = pymupdf.open().new_page(width=420, height=420)
    page.insert_text((50, 80), WORDS, fontsize=14)
    page.insert_text((50, 200), "Payment within thirty days", fontsize=14, color=(0.92, 0.92, 0.92))
    page.insert_text((50, 390), "Registered at the court of the harbour town", fontsize=4)
    page.get_pixmap(dpi=150, alpha=False).save(tmp_path / "sheet.png")
    text = letters(read(tmp_path / "sheet.png"))
    for line in (WORDS, "Payment within thirty days", "court of the harbour town"):
        assert line.replace(" ", "") in text


def test_a_scan_is_read_without_pymupdf_too(scan: Callable[..., Path]) -> None:
    parsed = process.parse(scan(), "scan.pdf", "pdfium", Limits())
    assert parsed.scanned == [1]
    assert CHINESE in letters(parsed)


def test_words_of_a_scan_with_margins_are_told_once(tmp_path: Path, read: Read) -> None:
    import pymupdf

    data = io.BytesIO()
    paper().save(data, "PNG")
    document = pymupdf.open()
    page = document.new_page(width=500, height=400)
    page.insert_image((40, 50, 460, 350), stream=data.getvalue())
    document.save(tmp_path / "scan.pdf")
    parsed = read(tmp_path / "scan.pdf")
    assert parsed.scanned == [1]
    assert letters(parsed).count("4711") == 1


def test_a_page_with_text_is_not_recognised(make_pdf: Callable[..., Path], read: Read) -> None:
    assert read(make_pdf("A page of text.", "")).scanned == []


def raw(letters: int, share: float) -> RawPage:
    line = Line("x" * letters, (0, 0, 9, 9), 9, bold=False)
    return RawPage(99, 99, [[line]], [], words=list, image_share=lambda: share, pixels=lambda _: Pixels(1, 1, b"   "))


@pytest.mark.parametrize(
    ("letters", "share", "expected"),
    [(0, 1.0, True), (4, 0.1, True), (30, 1.0, True), (30, 0.2, False), (0, 0.0, False), (400, 1.0, False)],
)
def test_a_page_of_few_words_is_a_scan_if_a_picture_fills_it(letters: int, share: float, expected: bool) -> None:
    assert is_scan(raw(letters, share)) is expected


def test_who_wants_no_recognition_gets_none(scan: Callable[..., Path]) -> None:
    parsed = process.parse(scan(), "scan.pdf", "pdf", Limits(), ParseOptions(pictures=False))
    assert ([one.text for one in parsed.blocks], parsed.scanned) == ([""], [])  # the page is known to be a picture


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF"])
def test_a_picture_of_any_kind_is_accepted(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "photo"
    Image.new("RGB", (40, 30), "white").save(path, kind)
    assert parser_for("photo", path.read_bytes()) == ("picture", f"image/{kind.lower()}")
    assert picture.picture(path, 1, 1.0, [(10, 10, 50, 50)]).startswith(b"\x89PNG")


def test_of_a_picture_of_many_pages_those_are_read_that_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "scan.tiff"
    pages = [Image.new("RGB", (400, 300), "white") for _ in range(3)]
    pages[0].save(path, save_all=True, append_images=pages[1:])
    parsed = process.parse(path, "scan.tiff", "picture", Limits(), ParseOptions(first_page=3))
    assert ([shape.page for shape in parsed.shapes], parsed.scanned) == ([3], [3])


def test_the_words_of_a_photo_are_read_as_it_is_shown(tmp_path: Path) -> None:
    """Cameras store the picture as they were held, and say how to turn it."""
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90° with the clock
    path = tmp_path / "photo.jpg"
    paper().rotate(90, expand=True).save(path, "JPEG", exif=exif, quality=92)
    parsed = process.parse(path, "photo.jpg", "picture", Limits())
    assert WORDS.replace(" ", "") in letters(parsed)
    shape = parsed.shapes[0]
    assert (shape.width, round(shape.height)) == (842, 601)
    marked: Any = Image.open(
        io.BytesIO(process.picture(path, renderer_of("image/jpeg"), 1, 1.0, [shape.text_box or (0, 0, 1, 1)]))
    )
    assert marked.size == (842, 601)
    assert any(red > 200 and blue < 120 for _, (red, _, blue) in marked.getcolors(1 << 24) or ())
    assert not marked.getexif()


def png_of(width: int, height: int) -> bytes:
    """A picture that says that it is large, and holds next to nothing."""

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    data = zlib.compress(b"\0" * 10_000)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", data) + part(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "key"),
    [
        pytest.param(png_of(65_000, 65_000), "document_too_large", id="65,000 × 65,000"),
        pytest.param(png_of(400, 400)[:60], "document_broken", id="cut off"),
        pytest.param(b"\x89PNG\r\n\x1a\nnothing", "document_broken", id="no picture"),
        pytest.param(b"\xff\xd8\xff\xe0" + b"\0" * 200, "document_broken", id="no JPEG"),
        pytest.param(b"II*\x00" + b"\xff" * 100, "document_broken", id="no TIFF"),
    ],
)
def test_a_bad_picture_costs_one_sentence(tmp_path: Path, data: bytes, key: str) -> None:
    path = tmp_path / "bad.png"
    path.write_bytes(data)
    with pytest.raises(BrokenDocumentError) as caught:
        process.parse(path, "bad.png", "picture", Limits())
    assert caught.value.words_key == key


def test_a_missing_extra_names_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
    path = tmp_path / "a.png"
    Image.new("RGB", (40, 30), "white").save(path)
    monkeypatch.setattr(ocr, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(MissingExtraError, match=r"\.\[ocr\]"):
        read(path)


def test_a_missing_extra_names_itself_from_the_worker_too() -> None:
    from core.rag.parsers.worker import error_as_dict

    sent = error_as_dict(MissingExtraError("Reading words in pictures", "rapidocr", "ocr"))
    with pytest.raises(MissingExtraError) as caught:
        raise process.raised(sent)
    assert '".[ocr]"' in str(caught.value)


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_place_in_a_turned_picture_is_found_in_the_picture_as_it_was(turns: int) -> None:
    import numpy

    image = numpy.zeros((30, 50))
    image[4:9, 7:20] = 1
    down, across = numpy.nonzero(numpy.rot90(image, turns))
    box = (across.min(), down.min(), across.max() + 1, down.max() + 1)
    assert turned_back(box, turns, 50, 30) == (7, 4, 20, 9)


def test_lines_beside_and_below_each_other_are_a_paragraph() -> None:
    boxes: list[tuple[str, Rectangle]] = [
        ("First line", (10, 10, 100, 20)),
        ("second line", (10, 23, 100, 33)),
        ("far below", (10, 90, 100, 100)),
    ]
    sheet = Sheet([Recognised(text, box) for text, box in boxes], 0, 1.0)
    runs = lines_of(Pixels(200, 200, b""), 1.0, lambda *_: sheet)
    assert [[line.text for line in run] for run in runs] == [["First line", "second line"], ["far below"]]


def test_lines_alone_in_their_row_in_larger_letters_or_capitals_are_headings() -> None:
    boxes: list[tuple[str, Rectangle]] = [
        ("A large title", (10, 10, 190, 30)),
        ("CHIEF COMPLAINT", (10, 40, 100, 50)),
        ("The patient has had", (10, 53, 150, 63)),
        ("a headache since Monday.", (10, 66, 150, 76)),
        ("NORMAL", (10, 79, 60, 89)),
        ("120/80", (80, 79, 120, 89)),
        ("SOME MORE WORDS.", (10, 92, 150, 102)),
    ]
    sheet = Sheet([Recognised(text, box) for text, box in boxes], 0, 1.0)
    blocks = [block(run, 1) for run in lines_of(Pixels(200, 200, b""), 1.0, lambda *_: sheet)]
    assert [(one.kind, one.text) for one in blocks] == [
        ("heading", "A large title"),
        ("heading", "CHIEF COMPLAINT"),
        ("paragraph", "The patient has had a headache since Monday. NORMAL 120/80 SOME MORE WORDS."),
    ]


def test_where_most_lines_are_in_capitals_none_is_a_heading() -> None:
    boxes: list[tuple[str, Rectangle]] = [("SHOUTING WORDS", (10, 20 * at, 100, 20 * at + 10)) for at in range(6)]
    sheet = Sheet([Recognised(text, box) for text, box in boxes], 0, 1.0)
    runs = lines_of(Pixels(200, 200, b""), 1.0, lambda *_: sheet)
    assert {block(run, 1).kind for run in runs} == {"paragraph"}


PRICES = [("Ship", "Tons", "Rope"), ("Gull", "120", "14"), ("Heron", "95", "9"), ("Tern", "40", "22")]


def sheet_of(rows: list[tuple[str, ...]], *, ruled: bool, zoom: float = 2.0) -> tuple[Pixels, Sheet]:
    """A picture of a table, and what is recognised in it: a title, and each cell in its own box, in pixels."""
    drawn = Image.new("RGB", (800, 600), "white")
    pen = ImageDraw.Draw(drawn)
    lines = [Recognised("Prices of the harbour", (80.0, 40.0, 360.0, 64.0))]
    for at, row in enumerate(rows):
        for column, cell in enumerate(row):
            x, y = 100 + 200 * column, 120 + 60 * at
            lines.append(Recognised(cell, (x, y, x + 16.0 * len(cell), y + 24)))
    if ruled:
        for y in range(105, 106 + 60 * len(rows), 60):
            pen.line([(80, y), (680, y)], fill="black", width=3)
        for x in range(80, 681, 200):
            pen.line([(x, 105), (x, 105 + 60 * len(rows))], fill="black", width=3)
    return Pixels(800, 600, drawn.tobytes()), Sheet(lines, 0, 0.99)


@pytest.mark.parametrize("ruled", [True, False])
def test_rows_and_columns_of_a_scan_are_a_table_by_their_rules_or_by_their_edges(ruled: bool) -> None:
    picture, sheet = sheet_of(PRICES, ruled=ruled)
    title, table = lines_of(picture, 2.0, lambda *_: sheet, page=3)
    assert title[0].text == "Prices of the harbour"
    found = block(table, 3)
    assert (found.kind, found.page, found.cells) == ("table", 3, tuple(PRICES))
    assert len(found.columns) == 3
    x0, y0, x1, y1 = found.rectangle or (0, 0, 0, 0)
    assert (x0 < 51, y0 < 61, x1 > 260, y1 > 150) == (True,) * 4


def test_two_columns_of_prose_in_a_scan_are_no_table() -> None:
    rows = [("The heron stands in the pond", "and waits for what comes"), ("until the evening", "when it flies")] * 3
    picture, sheet = sheet_of(rows, ruled=False)
    assert not any(line.table for run in lines_of(picture, 2.0, lambda *_: sheet, page=1) for line in run)


def test_letters_of_ten_pixels_are_read_in_a_figure_as_small_as_a_stamp() -> None:
    image = paper("Rainfall in May: 83 mm", "五月降雨量八十三毫米", dpi=51)
    found = words_of(Pixels(image.width, image.height, image.tobytes()))
    assert [one.replace(" ", "") for one in found] == ["RainfallinMay:83mm", "五月降雨量八十三毫米"]
