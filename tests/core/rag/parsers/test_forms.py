"""Forms: each field is a line, "label: value", with its place; what is not ticked is told as such."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.rag.document import Block
from core.rag.library import Library
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import PARSER_REGISTRY, PDF_READERS
from core.rag.parsers.pdf_forms import is_internal

Form = Callable[..., Path]
TEXT, CHECK, COMBO, RADIO = 7, 2, 3, 5  # PyMuPDF's numbers


@pytest.fixture
def form(tmp_path: Path) -> Form:
    """A PDF with printed words (x, y, text) and fields (kind, name, place, value, and further settings)."""

    def make(words: list[tuple[float, float, str]], fields: list[tuple[Any, ...]], *, turned: int = 0) -> Path:
        import pymupdf

        document = pymupdf.open()
        page = document.new_page(width=400, height=500)
        for x, y, text in words:
            page.insert_text((x, y), text, fontsize=10, fontname="china-s" if ord(text[0]) > 0x3000 else "helv")
        for kind, name, place, value, *more in fields:
            widget: Any = pymupdf.Widget()
            widget.field_type, widget.field_name = kind, name
            widget.rect, widget.field_value = pymupdf.Rect(place), value
            for setting, given in (more[0] if more else {}).items():
                setattr(widget, setting, given)
            page.add_widget(widget)
        page.set_rotation(turned)
        path = tmp_path / "form.pdf"
        document.save(path)
        return path

    return make


def fields_of(path: Path, reader: str) -> dict[str, tuple[float, ...]]:
    """The lines of fields with their places."""
    parser = PARSER_REGISTRY[PDF_READERS[reader][0]]()
    blocks = [one for one in parser.parse(path, path.name, ParseOptions(pictures=False)) if isinstance(one, Block)]
    last = blocks[-1]
    lines = last.text.split("\n")
    assert len(lines) == len(last.lines)
    return {text: place for text, (_, place) in zip(lines, last.lines, strict=True)}


WORDS = [
    (50, 100, "Family name:"),
    (70, 140, "Smoker"),
    (70, 170, "Married"),
    (50, 192, "Date of birth"),
    (50, 260, "Shirt colour"),
]
FIELDS = [
    (TEXT, "topmostSubform[0].Page1[0].f1_02[0]", (130, 88, 300, 106), "Weber"),
    (CHECK, "topmostSubform[0].Page1[0].c1_1[0]", (50, 130, 62, 142), True),
    (CHECK, "topmostSubform[0].Page1[0].c1_2[0]", (50, 160, 62, 172), False),
    (TEXT, "f3", (50, 196, 200, 212), "1990-04-01"),
    (TEXT, "f4", (50, 220, 200, 236), "", {"field_label": "Where you live now"}),
    (COMBO, "c5", (130, 250, 300, 266), "Blue", {"choice_values": ["Red", "Blue"]}),
    (TEXT, "remarks_of_officer", (50, 400, 300, 430), ""),
]
TOLD = [
    "Family name: Weber",
    "Smoker: checked",
    "Married: not checked",
    "Date of birth: 1990-04-01",
    "Where you live now: (empty)",
    "Shirt colour: Blue (options: Red, Blue)",
    "remarks of officer: (empty)",
]


@pytest.mark.parametrize("reader", PDF_READERS)
def test_each_field_is_told_with_its_label_its_value_and_its_place(form: Form, reader: str) -> None:
    found = fields_of(form(WORDS, FIELDS), reader)
    assert list(found) == TOLD
    assert found["Family name: Weber"] == pytest.approx((130, 88, 300, 106), abs=1)
    assert found["Married: not checked"] == pytest.approx((50, 160, 62, 172), abs=1)


@pytest.mark.parametrize("reader", PDF_READERS)
def test_places_are_those_of_the_page_as_it_is_shown(form: Form, reader: str) -> None:
    found = fields_of(form([(50, 100, "Family name:")], FIELDS[:1], turned=90), reader)
    assert found["Family name: Weber"] == pytest.approx((394, 130, 412, 300), abs=1)


def test_what_was_typed_is_told_once(form: Form) -> None:
    every = PARSER_REGISTRY["pdf"]().parse(form(WORDS, FIELDS), "form.pdf", ParseOptions(pictures=False))
    told = "\n".join(one.text for one in every if isinstance(one, Block))
    assert told.count("Weber") == told.count("1990-04-01") == 1


@pytest.mark.parametrize("reader", PDF_READERS)
def test_what_is_printed_within_a_field_stays_in_the_document(form: Form, reader: str) -> None:
    words = [(135, 100, "Enter one name only"), (50, 300, "This contract ends in May."), (50, 140, "Town:")]
    fields = [
        (TEXT, "f1", (130, 88, 300, 120), "Weber"),
        (TEXT, "f2", (130, 128, 300, 146), "Bonn"),
        (TEXT, "seal_of_office", (0, 0, 400, 500), ""),
    ]
    parser = PARSER_REGISTRY[PDF_READERS[reader][0]]()
    every = parser.parse(form(words, fields), "form.pdf", ParseOptions(pictures=False))
    told = "\n".join(one.text for one in every if isinstance(one, Block))
    assert "Enter one name only" in told
    assert "This contract ends in May." in told
    assert told.count("Bonn") == 1
    assert "Town: Bonn" in told


def test_a_chinese_form_is_told_in_chinese(form: Form) -> None:
    found = fields_of(
        form(
            [(50, 100, "姓名："), (70, 140, "已婚")],
            [(TEXT, "f1", (130, 88, 300, 106), "Li Wei"), (CHECK, "c1", (50, 130, 62, 142), False)],
        ),
        "pymupdf",
    )
    assert list(found) == ["姓名：Li Wei", "已婚：未勾选"]


def test_an_answer_finds_the_field_and_its_place_alone_is_the_evidence(form: Form, tmp_path: Path) -> None:
    with Library.open(tmp_path / "library") as library:
        document = library.add(form(WORDS, FIELDS))
        passage = library.find("Is he married?", documents=[document.id])[0]
        assert "Married: not checked" in passage.text
        (block,) = [one for one in library.pages.content(document.id, 1).blocks if "Married: not" in one.text]
        at = block.text.index("Married: not checked")
        (place,) = block.rectangles_of(at, at + len("Married: not checked"))
        assert place == pytest.approx((50, 160, 62, 172), abs=1)


@pytest.mark.parametrize(
    ("name", "internal"),
    [
        ("topmostSubform[0].Page1[0].f1_02[0]", True),
        ("Text12", True),
        ("Check Box 3", True),
        ("c1", True),
        ("undefined_2", True),
        ("Family name", False),
        ("remarks_of_officer", False),
        ("出生日期", False),
    ],
)
def test_names_that_tell_people_nothing_are_known(name: str, internal: bool) -> None:
    assert is_internal(name) is internal


SDT = "<w:sdt><w:sdtPr>{about}</w:sdtPr><w:sdtContent><w:r><w:t>{text}</w:t></w:r></w:sdtContent></w:sdt>"
OLDER = (
    "<w:r><w:fldChar w:fldCharType='begin'><w:ffData><w:name w:val='Check1'/>{about}</w:ffData></w:fldChar></w:r>"
    "<w:r><w:fldChar w:fldCharType='end'/></w:r>"
)
LIST = "<w:listItem w:displayText='Red' w:value='r'/><w:listItem w:displayText='Blue' w:value='b'/>"


@pytest.mark.parametrize(
    ("before", "field", "told"),
    [
        ("Name: ", SDT.format(about="<w:alias w:val='Name'/><w:text/>", text="Weber"), "Name: Weber"),
        ("Name: ", SDT.format(about="<w:text/><w:showingPlcHdr/>", text="Click here"), "Name: (empty)"),
        ("", SDT.format(about="<w:alias w:val='City'/><w:text/>", text="Bonn"), "City: Bonn"),
        (
            "Smoker ",
            SDT.format(about="<w14:checkbox><w14:checked w14:val='1'/></w14:checkbox>", text="x"),
            "Smoker ☒ (checked)",
        ),
        (
            "已婚",
            SDT.format(about="<w14:checkbox><w14:checked w14:val='0'/></w14:checkbox>", text="x"),
            "已婚☐（未勾选）",
        ),
        (
            "Shirt: ",
            SDT.format(about=f"<w:dropDownList>{LIST}</w:dropDownList>", text="Blue"),
            "Shirt: Blue (options: Red, Blue)",
        ),
        ("Married ", OLDER.format(about="<w:checkBox><w:default w:val='0'/></w:checkBox>"), "Married ☐ (not checked)"),
        ("Married ", OLDER.format(about="<w:checkBox><w:checked/></w:checkBox>"), "Married ☒ (checked)"),
        (
            "Size: ",
            OLDER.format(
                about="<w:ddList><w:result w:val='1'/><w:listEntry w:val='S'/><w:listEntry w:val='M'/></w:ddList>"
            ),
            "Size: M (options: S, M)",
        ),
    ],
)
def test_fields_of_word_documents_are_told_in_their_paragraph(
    tmp_path: Path, before: str, field: str, told: str
) -> None:
    from docx import Document
    from docx.oxml import parse_xml

    names = (
        "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main' "
        "xmlns:w14='http://schemas.microsoft.com/office/word/2010/wordml'"
    )
    document = Document()
    space = f"<w:r><w:t xml:space='preserve'>{before}</w:t></w:r>" if before else ""
    document.element.body.insert(0, parse_xml(f"<w:p {names}>{space}{field}</w:p>"))  # type: ignore[arg-type]
    path = tmp_path / "form.docx"
    document.save(str(path))
    texts = [one.text for one in PARSER_REGISTRY["word"]().parse(path, path.name) if isinstance(one, Block)]
    assert texts == [told]
