"""Rich text: words in any encoding, headings, tables, and what is made to harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import BrokenDocumentError
from core.rag.document import Block
from core.rag.parsers.catalog import parser_for
from core.rag.parsers.rich_text import RichTextParser
from tests.core.rag.parsers.old_office import rich_text


def blocks_of(tmp_path: Path, data: bytes) -> list[tuple[str, int, str]]:
    path = tmp_path / "a.rtf"
    path.write_bytes(data)
    found = RichTextParser().parse(path, path.name)
    return [(one.kind, one.level, one.text) for one in found if isinstance(one, Block)]


def test_rich_text_that_is_called_a_word_document_is_read() -> None:
    assert parser_for("a.doc", rich_text("words"))[0] == "rich_text"


@pytest.mark.parametrize(
    ("around", "level"),
    [(r"{{\stylesheet{{\s7\b heading 2;}}}}\pard\s7 {}\par words", 2), (r"\pard\outlinelevel0 {}\par words", 1)],
)
def test_headings_are_told_by_their_style_or_their_level(tmp_path: Path, around: str, level: int) -> None:
    assert blocks_of(tmp_path, rich_text("The lamp 灯", around)) == [
        ("heading", level, "The lamp 灯"),
        ("paragraph", 0, "words"),
    ]


def test_a_cell_of_two_paragraphs_is_one_cell(tmp_path: Path) -> None:
    data = rb"{\rtf1 before\par\pard\intbl one\par\pard\intbl two\cell three | four\cell\row\pard after}"
    assert blocks_of(tmp_path, data) == [
        ("paragraph", 0, "before"),
        ("table", 0, "one two | three | four"),
        ("paragraph", 0, "after"),
    ]


def test_letters_of_old_encodings_are_read_escaped_or_bare(tmp_path: Path) -> None:
    escaped = "".join(f"\\'{byte:02x}" for byte in "台灯".encode("gbk")).encode()
    table = rb"{\fonttbl{\f0\fcharset134 SimSun;}}"
    for words in (escaped, "台灯".encode("gbk")):
        assert blocks_of(tmp_path, rb"{\rtf1\ansi\ansicpg936" + table + rb"\f0 " + words + b"}") == [
            ("paragraph", 0, "台灯")
        ]


def test_the_bytes_of_a_picture_are_no_words(tmp_path: Path) -> None:
    data = rb"{\rtf1 before {\pict\bin12 }\cell\row}}} after}"
    assert blocks_of(tmp_path, data) == [("paragraph", 0, "before  after")]


def test_a_backslash_before_the_name_of_a_sign_is_a_backslash(tmp_path: Path) -> None:
    assert blocks_of(tmp_path, rb"{\rtf1 C:\\row\\cell}") == [("paragraph", 0, r"C:\row\cell")]


@pytest.mark.parametrize("data", [b"{\\rtf1 \\uc words}", b"{\\rtf1 \\u99999999 x}", b"{\\rtf1\\ansicpg x \\'ff}"])
def test_wrong_numbers_are_damage_or_nothing(tmp_path: Path, data: bytes) -> None:
    try:
        blocks = blocks_of(tmp_path, data)
    except BrokenDocumentError:
        return
    assert all(kind == "paragraph" for kind, _, _ in blocks)


@pytest.mark.parametrize(
    "piece",
    [b'{\\field{\\*\\fldinst{HYPERLINK "x"}}{\\fldrslt y}}', b"{", b"{\\s1 ", b"\\intbl ", b"\\'e4", b"\\bin1 "],
)
def test_a_line_of_the_same_again_and_again_is_read_in_seconds(tmp_path: Path, piece: bytes) -> None:
    path = tmp_path / "a.rtf"
    path.write_bytes(b"{\\rtf1{\\stylesheet " + piece * 100 + b"}" + piece * 20_000 + b"}")
    assert list(RichTextParser().parse(path, path.name))
