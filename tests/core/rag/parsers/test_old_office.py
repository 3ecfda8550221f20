"""Word 97 and PowerPoint 97: what files of our own making hold, and real ones of LibreOffice's."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.document import Block
from core.rag.parsers.catalog import HEAD, PARSER_REGISTRY, parser_for
from tests.core.rag.parsers.compound_file import compound
from tests.core.rag.parsers.old_office import heading, plain, row, slides97, word97
from tests.tries import tries

MADE_BY_LIBREOFFICE = Path(__file__).with_name("lamps.zip")
LAMPS = [
    ("heading", 1, "The lamp 台灯"),
    ("paragraph", 0, "The lamp stands beside the green door. 台灯在绿色的门旁边。"),
    ("heading", 2, "Prices"),
    ("table", 0, "Name | Price\nSmall | lamp | 12 €\n大灯 | 30 €"),
    ("paragraph", 0, "After the table."),
    ("paragraph", 0, "- first"),
    ("paragraph", 0, "- second"),
]


def blocks_of(tmp_path: Path, name: str, data: bytes) -> list[Block]:
    path = tmp_path / name
    path.write_bytes(data)
    parser, _ = parser_for(name, data[:HEAD])
    return [one for one in PARSER_REGISTRY[parser]().parse(path, name) if isinstance(one, Block)]


def told(blocks: list[Block]) -> list[tuple[Any, ...]]:
    return [(block.kind, block.level, block.text) for block in blocks]


@pytest.mark.parametrize("name", ["lamps.doc", "lamps.odt", "lamps.rtf"])
def test_one_text_says_the_same_in_each_format_that_a_program_saves_it_in(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(MADE_BY_LIBREOFFICE) as archive:
        blocks = told(blocks_of(tmp_path, name, archive.read(name)))
    assert blocks[: len(LAMPS)] == LAMPS
    assert blocks[-1] == ("paragraph", 0, "Line one\nline two — “quoted” 😀 é")


def test_numbers_in_strange_digits_are_taken_as_none(tmp_path: Path) -> None:
    with zipfile.ZipFile(MADE_BY_LIBREOFFICE) as archive:
        whole = tmp_path / "whole.odt"
        whole.write_bytes(archive.read("lamps.odt"))
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(tmp_path / "odd.odt", "w") as odd:
        for one in archive.infolist():
            text = archive.read(one)
            odd.writestr(one, text.replace(b'outline-level="2"', 'outline-level="²"'.encode()))
    blocks = told(blocks_of(tmp_path, "odd.odt", (tmp_path / "odd.odt").read_bytes()))
    assert ("heading", 1, "Prices") in blocks


def test_slides_that_a_program_saved_have_titles_texts_and_notes(tmp_path: Path) -> None:
    with zipfile.ZipFile(MADE_BY_LIBREOFFICE) as archive:
        blocks = blocks_of(tmp_path, "lamps.ppt", archive.read("lamps.ppt"))
    assert [(block.page, block.kind, block.text) for block in blocks[:5]] == [
        (1, "heading", "Slide 1 台灯"),
        (1, "paragraph", "first point\nsecond point 绿色"),
        (1, "paragraph", "A box 1: The lamp stands beside the green door. 台灯在绿色的门旁边。"),
        (1, "paragraph", "Say hello 1"),
        (2, "heading", "Slide 2 台灯"),
    ]
    assert [block.text for block in blocks if block.page == 3] == ["Table", "r0c0", "r0c1", "r1c0", "r1c1"]


def test_letters_of_one_byte_and_the_results_of_fields_are_read(tmp_path: Path) -> None:
    field = "see \x13 HYPERLINK \x13 nested \x14 x \x15 \x14the café\x15\x01 “there”"
    assert told(blocks_of(tmp_path, "a.doc", word97([heading("Menu", 3), plain(field)], narrow=True))) == [
        ("heading", 3, "Menu"),
        ("paragraph", 0, "see the café “there”"),
    ]


def test_rows_make_one_table_until_a_paragraph_comes(tmp_path: Path) -> None:
    document = word97([*row("a", "b"), *row("1", "2"), plain("between"), *row("x"), plain("")])
    blocks = blocks_of(tmp_path, "a.doc", document)
    assert [(block.kind, block.cells) for block in blocks] == [
        ("table", (("a", "b"), ("1", "2"))),
        ("paragraph", ()),
        ("table", (("x",),)),
    ]


def test_a_document_with_a_password_asks_for_it(tmp_path: Path) -> None:
    with pytest.raises(LockedDocumentError) as caught:
        blocks_of(tmp_path, "a.doc", word97([plain("secret")], flags=0x0100))
    assert caught.value.details["asks"] is True


def test_a_text_with_gaps_is_damaged_and_not_read_wrongly(tmp_path: Path) -> None:
    with pytest.raises(BrokenDocumentError, match="gaps"):
        blocks_of(tmp_path, "a.doc", word97([plain("words")], gap=3))


@pytest.mark.parametrize(("name", "what"), [("a.doc", "WordDocument"), ("a.ppt", "Current User")])
def test_a_container_of_something_else_says_what_is_missing(tmp_path: Path, name: str, what: str) -> None:
    with pytest.raises(BrokenDocumentError, match=what):
        blocks_of(tmp_path, name, compound({"Something": b"else"}))


def test_the_kind_of_a_container_without_a_name_is_told_by_what_it_holds() -> None:
    assert parser_for("", word97([plain("x")])[:HEAD])[0] == "word97"
    assert parser_for("letter.bin", slides97([("x", "y", "z")])[:HEAD])[0] == "slides97"


@settings(max_examples=tries(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1), max_size=8))
def test_every_word_of_a_document_comes_out_in_order(tmp_path: Path, texts: list[str]) -> None:
    document = word97([plain(text) for text in [*texts, "end"]])
    assert [block.text for block in blocks_of(tmp_path, "a.doc", document)] == [*texts, "end"]


@settings(max_examples=tries(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1), min_size=1, max_size=8))
def test_every_slide_has_its_own_words(tmp_path: Path, texts: list[str]) -> None:
    blocks = blocks_of(tmp_path, "a.ppt", slides97([("Title", text, "") for text in texts]))
    assert [(block.page, block.text) for block in blocks if block.kind == "paragraph"] == list(enumerate(texts, 1))
