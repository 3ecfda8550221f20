"""Books: chapters in the book's order, whatever the archive's."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.parsers.process import Parsed

Read = Callable[..., Parsed]

CONTAINER = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
PACKAGE = """<?xml version="1.0"?><package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>
<dc:title>A &amp; B</dc:title></metadata><manifest>
<item id="two" href="text/chapter%202.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
<item id="font" href="font.otf" media-type="font/otf"/>
</manifest><spine><itemref idref="one"/><itemref idref="two"/></spine></package>"""
ONE = """<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/>
<script src="x"/></head><body><h1>第一章</h1><p>春眠不觉晓</p><hr/><p>Second<a id="x"/> paragraph</p></body></html>"""
TWO = "<html><body><h2>Chapter 2</h2><table><tr><td>k</td><td>v</td></tr></table></body></html>"
PARTS = {
    "OPS/text/chapter 2.xhtml": TWO,
    "OPS/text/one.xhtml": ONE,
    "OPS/book.opf": PACKAGE,
    "META-INF/container.xml": CONTAINER,
}


def book(folder: Path, parts: Mapping[str, str] = PARTS, name: str = "made.epub") -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        for part, text in parts.items():
            archive.writestr(part, text)
    return path


def test_chapters_are_read_in_the_order_of_the_book(read: Read, tmp_path: Path) -> None:
    parsed = read(book(tmp_path, name="a.bin"))
    assert parsed.about.title == "A & B"
    assert not parsed.about.damaged
    assert [(block.kind, block.text) for block in parsed.blocks] == [
        ("heading", "第一章"),
        ("paragraph", "春眠不觉晓"),
        ("paragraph", "Second paragraph"),
        ("heading", "Chapter 2"),
        ("table", "k | v"),
    ]


def test_a_missing_chapter_costs_that_chapter(read: Read, tmp_path: Path) -> None:
    parsed = read(book(tmp_path, {part: text for part, text in PARTS.items() if "one" not in part}))
    assert parsed.about.damaged
    assert parsed.blocks[0].text == "Chapter 2"


@pytest.mark.parametrize(("part", "locked"), [("OPS/text/one.xhtml", True), ("OPS/font.otf", False)])
def test_a_book_with_encrypted_chapters_says_so(read: Read, tmp_path: Path, part: str, locked: bool) -> None:
    what = f'<encryption><EncryptedData><CipherReference URI="{part}"/></EncryptedData></encryption>'
    path = book(tmp_path, {**PARTS, "META-INF/encryption.xml": what})
    if locked:
        with pytest.raises(LockedDocumentError) as caught:
            read(path)
        assert (caught.value.words_key, caught.value.details) == ("document_protected", {})  # no password would help
    else:
        assert read(path).blocks


def test_a_book_without_a_list_of_parts_is_none(read: Read, tmp_path: Path) -> None:
    with pytest.raises(BrokenDocumentError) as caught:
        read(book(tmp_path, {"a.txt": "x"}))
    assert caught.value.words_key == "document_not_what_it_says"


def test_parts_outside_the_archive_are_not_looked_for(read: Read, tmp_path: Path) -> None:
    outside = PACKAGE.replace("text/one.xhtml", "../../../../../../etc/hosts")
    parsed = read(book(tmp_path, {**PARTS, "OPS/book.opf": outside}))
    assert parsed.about.damaged
    assert "localhost" not in "".join(block.text for block in parsed.blocks)


def test_a_chapter_that_unpacks_without_end_is_refused(read: Read, tmp_path: Path) -> None:
    with pytest.raises(BrokenDocumentError) as caught:
        read(book(tmp_path, {**PARTS, "OPS/text/one.xhtml": " " * (101 * 1024 * 1024)}))
    assert caught.value.words_key == "document_too_large"


def test_an_entity_that_unfolds_without_end_is_not_unfolded(read: Read, tmp_path: Path) -> None:
    entities = '<!ENTITY a "ha">' + "".join(f'<!ENTITY {b} "{f"&{a};" * 50}">' for a, b in pairwise("abcdef"))
    bomb = f'<!DOCTYPE x [{entities}<!ENTITY file SYSTEM "file:///etc/passwd">]>'
    page = f"{bomb}<html><body><p>start &f; &file; end</p></body></html>"
    parsed = read(book(tmp_path, {**PARTS, "OPS/text/one.xhtml": page}))
    text = "".join(block.text for block in parsed.blocks)
    assert len(text) < 2_000 + len(entities)
    assert "root:" not in text
