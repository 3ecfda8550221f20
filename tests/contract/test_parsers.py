"""Every parser of the catalog keeps the same promises."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import DocumentError
from core.rag.document import About, Block, PageShape
from core.rag.parsers.base import Found
from core.rag.parsers.catalog import PARSER_REGISTRY, PARSERS, PICTURES, parser_for
from tests.core.rag.parsers.old_office import heading, outlook, plain, rich_text, slides97, word97
from tests.tries import tries

SENTENCE = "The lamp stands beside the green door. 台灯在绿色的门旁边。"


def a_pdf(path: Path) -> None:
    import pymupdf

    document = pymupdf.open()
    document.new_page().insert_text((50, 50), SENTENCE, fontname="china-s")
    document.save(path)


def a_word_document(path: Path) -> None:
    import docx

    document = docx.Document()
    document.add_paragraph(SENTENCE)
    document.save(str(path))


def some_slides(path: Path) -> None:
    from pptx import Presentation

    deck: Any = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    slide.shapes.add_textbox(914400, 914400, 3657600, 914400).text_frame.text = SENTENCE
    deck.save(path)


def a_workbook(path: Path) -> None:
    import xlsxwriter

    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet("Lamps").write_row(0, 0, [SENTENCE])


def a_book(path: Path) -> None:
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml" '
        'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml", '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>'
        )
        archive.writestr("a.opf", opf)
        archive.writestr("a.xhtml", f"<html><body><p>{SENTENCE}</p></body></html>")


def an_open_document(path: Path) -> None:
    spaces = " ".join(f'xmlns:{one}="urn:oasis:names:tc:opendocument:xmlns:{one}:1.0"' for one in ("office", "text"))
    body = f"<office:body><office:text><text:p>{SENTENCE}</text:p></office:text></office:body>"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr("content.xml", f"<office:document-content {spaces}>{body}</office:document-content>")


def an_archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("lamps/door.txt", SENTENCE)


def a_letter(path: Path) -> None:
    letter = EmailMessage()
    letter["Subject"] = "Lamps"
    letter.set_content(SENTENCE)
    letter.add_attachment("Name,Price\nlamp,12\n", subtype="csv", filename="prices.csv")
    path.write_bytes(bytes(letter))


def as_bytes(make: Callable[[], bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(make())

    return write


def text(template: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(template.format(SENTENCE), encoding="utf-8")

    return write


# A parser without a sample here fails the tests below.
SAMPLES: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "pdf": ("a.pdf", "application/pdf", a_pdf),
    "word": ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", a_word_document),
    "web_page": ("a.html", "text/html", text("<!doctype html><p>{}</p>")),
    "sheet": ("a.csv", "text/csv", text("header\n{}\n")),
    "transcript": ("a.vtt", "text/vtt", text("WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n")),
    "plain": ("a.txt", "text/plain", text("{}")),
    "pdfium": ("a.pdf", "application/pdf", a_pdf),
    "slides": (
        "a.pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        some_slides,
    ),
    "workbook": ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", a_workbook),
    "book": ("a.epub", "application/epub+zip", a_book),
    "word97": ("a.doc", "application/msword", as_bytes(lambda: word97([heading("Lamps", 1), plain(SENTENCE)]))),
    "slides97": ("a.ppt", "application/vnd.ms-powerpoint", as_bytes(lambda: slides97([("Lamps", SENTENCE, "")]))),
    "outlook": ("a.msg", "application/vnd.ms-outlook", as_bytes(lambda: outlook("Lamps", SENTENCE, "Ann"))),
    "open_document": ("a.odt", "application/vnd.oasis.opendocument.text", an_open_document),
    "rich_text": (
        "a.rtf",
        "application/rtf",
        as_bytes(lambda: rich_text(SENTENCE)),
    ),
    "mail": ("a.eml", "message/rfc822", a_letter),
    "archive": ("a.zip", "application/zip", an_archive),
    "data_text": ("a.json", "application/json", text('{{"lamp": "{}"}}')),
}


# Reading words in a picture takes seconds, and never letter by letter the same: that parser has tests of its own.
@pytest.fixture(params=[name for name in PARSERS if name != "picture"])
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    name, _, write = SAMPLES[request.param]
    path = tmp_path / name
    write(path)
    return request.param, path


def parsed(parser: str, path: Path) -> list[Found]:
    return list(PARSER_REGISTRY[parser]().parse(path, path.name))


def test_it_is_chosen_for_its_own_kind(sample: tuple[str, Path]) -> None:
    parser, path = sample
    chosen = "pdf" if parser == "pdfium" else parser  # a setting puts the one in the other's place
    assert parser_for(path.name, path.read_bytes()) == (chosen, SAMPLES[parser][1])


def test_it_does_not_take_an_empty_file_or_a_picture(sample: tuple[str, Path]) -> None:
    parser = PARSER_REGISTRY[sample[0]]()
    for head in (b"", b"\x89PNG\r\n\x1a\n" + b"\0" * 200):
        assert parser.accepts(sample[1].name, head) == ""


def test_it_tells_of_the_document_first_and_then_gives_its_words(sample: tuple[str, Path]) -> None:
    found = parsed(*sample)
    assert isinstance(found[0], About)
    assert not any(isinstance(one, About) for one in found[1:])
    words = "".join(" ".join(one.text for one in found if isinstance(one, Block)).split())
    assert "".join(SENTENCE.split()) in words


def test_pages_have_shapes_and_blocks_stand_on_them(sample: tuple[str, Path]) -> None:
    found = parsed(*sample)
    about = found[0]
    assert isinstance(about, About)
    shapes = [one for one in found if isinstance(one, PageShape)]
    assert len(shapes) == (0 if sample[0] == "workbook" else about.pages or 0)  # a sheet has no edges
    for block in (one for one in found if isinstance(one, Block)):
        assert (block.page is None) == (about.pages is None)
        assert [start for start, _ in block.lines] == sorted(start for start, _ in block.lines)
        assert bool(block.cells) == (block.kind == "table")
        assert bool(block.level) == (block.kind == "heading")
        if block.rectangle:
            x0, y0, x1, y1 = block.rectangle
            assert 0 <= x0 < x1 <= shapes[0].width
            assert 0 <= y0 < y1 <= shapes[0].height


def test_nothing_is_kept_between_documents(sample: tuple[str, Path]) -> None:
    parser = PARSER_REGISTRY[sample[0]]()
    assert list(parser.parse(sample[1], sample[1].name)) == list(parser.parse(sample[1], sample[1].name))


@settings(max_examples=tries(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_and_nothing_else(sample: tuple[str, Path], data: st.DataObject) -> None:
    parser, path = sample
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    how = data.draw(st.sampled_from(["cut", "flip", "insert"]))
    pieces = {
        "cut": whole[:at],
        "flip": whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :],
        "insert": whole[:at] + b"\0\xff<>" * 5 + whole[at:],
    }
    damaged = path.with_name(f"damaged-{path.name}")
    damaged.write_bytes(pieces[how])
    with contextlib.suppress(DocumentError):
        parsed(parser, damaged)


def test_what_draws_pages_knows_media_types_of_the_catalog() -> None:
    documents = {name for name in PICTURES if not name.startswith("image/")}
    assert documents <= {media_type for _, media_type, _ in SAMPLES.values()}
