"""Text in all its forms: encodings, Markdown, HTML, CSV."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BrokenDocumentError
from core.rag.document import Block
from core.rag.parsers.base import Found
from core.rag.parsers.process import Limits, stream
from core.rag.parsers.spreadsheet import SheetParser
from core.rag.parsers.text import PlainParser, decode, markdown_blocks
from core.rag.parsers.web_page import WebPageParser

SIMPLIFIED = "春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。"
TRADITIONAL = "人工智慧是電腦科學的一個分支，研究如何讓機器學習與思考。臺灣的國語。"


def blocks(found: list[Found]) -> list[Block]:
    return [one for one in found if isinstance(one, Block)]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", SIMPLIFIED),
        ("utf-8-sig", TRADITIONAL),
        ("utf-16", SIMPLIFIED),
        ("utf-16-le", "Plain English text without a mark."),
        ("utf-32", TRADITIONAL),
        ("gbk", SIMPLIFIED),
        ("gb18030", SIMPLIFIED * 20),
        ("big5", TRADITIONAL),
        ("big5", TRADITIONAL * 30),
        ("cp1252", "Le café coûte très cher à l’hôtel, même l’été. Où est le garçon ? " * 3),
        ("cp1251", "Это обычный русский текст, который написан в старой кодировке Windows. " * 3),
        ("shift_jis", "これは日本語の文章です。昔の文字コードで書かれています。" * 5),
    ],
)
def test_text_is_read_whatever_its_encoding(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_a_few_bad_bytes_do_not_turn_a_text_into_another_encoding() -> None:
    assert "春眠" in decode((SIMPLIFIED * 20).encode() + b"\xff" + SIMPLIFIED.encode())


@given(st.binary(max_size=200))
def test_any_bytes_become_text_that_can_be_kept(data: bytes) -> None:
    decode(data).encode("utf-8")


@given(st.text(max_size=300))
def test_markdown_loses_no_word(text: str) -> None:
    from core.rag.parsers.base import clean

    text = clean(text)
    kept = "".join(block.text + "".join("".join(row) for row in block.cells) for block in markdown_blocks(text))
    for letter in text:
        if letter.isalnum():
            assert letter in kept


def test_markdown_has_headings_tables_and_listings() -> None:
    text = "# Title\n\nA paragraph\nof two lines.\n\nSub\n---\n"
    text += "| a | b |\n|---|---|\n| 1 | 2\\|3 |\n\n```py\nx = 1\n\ny = 2\n```\nEnd"
    found = list(markdown_blocks(text))
    assert [(block.kind, block.level) for block in found] == [
        ("heading", 1),
        ("paragraph", 0),
        ("heading", 2),
        ("table", 0),
        ("code", 0),
        ("paragraph", 0),
    ]
    assert found[3].cells == (("a", "b"), ("1", "2|3"))
    assert found[4].text == "x = 1\n\ny = 2"


def test_source_code_keeps_its_indents(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f():\n    return 1\n\n\nclass A:\n    x = 2\n")
    found = blocks(list(PlainParser().parse(path, "a.py")))
    assert [block.text for block in found] == ["def f():\n    return 1", "class A:\n    x = 2"]


def test_a_page_is_read_as_a_reader_sees_it(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        "<html><head><title>The  page</title><style>p{color:red}</style></head><body><script>evil()</script>"
        "<h1>Big <b>news</b></h1><p>One<br>two</p><div>Three <i>in</i>\nline</div><div>Four</div>"
        "<ul><li>Five</li><li>Six</li></ul><table><tr><th>k</th><th>v</th></tr><tr><td>a</td><td>1</td></tr></table>"
        "<pre>code\n  here</pre><!-- hidden --><noscript>no</noscript></body></html>"
    )
    found = list(WebPageParser().parse(path, "page.html"))
    assert getattr(found[0], "title", "") == "The page"
    assert [(block.kind, block.text) for block in blocks(found)] == [
        ("heading", "Big news"),
        ("paragraph", "One\ntwo"),
        ("paragraph", "Three in line"),
        ("paragraph", "Four"),
        ("paragraph", "Five"),
        ("paragraph", "Six"),
        ("table", "k | v\na | 1"),
        ("code", "code\n  here"),
    ]


def test_a_page_in_an_old_chinese_encoding_is_read(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(f'<meta charset="gb2312"><p>{SIMPLIFIED}</p>'.encode("gb2312"))
    assert [block.text for block in blocks(list(WebPageParser().parse(path, "page.html")))] == [SIMPLIFIED]


@pytest.mark.parametrize(("tags", "deep"), [("<div>", 20_000), ("<table><tr><td>", 2_000), ("<p><b>", 20_000)])
def test_a_page_nested_very_deep_is_read(tmp_path: Path, tags: str, deep: int) -> None:
    path = tmp_path / "deep.html"
    path.write_text(tags * deep + "deep word")
    found = stream(path, "deep.html", "web_page", Limits(seconds=10))
    assert "deep word" in " ".join(block.text for block in blocks(list(found)))


def test_a_page_nested_without_end_is_given_up_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "endless.html"
    path.write_text("<div>" * 400_000 + "deep word")
    with pytest.raises(BrokenDocumentError) as caught:
        list(stream(path, "endless.html", "web_page", Limits(seconds=0.5)))
    assert caught.value.words_key == "document_too_slow"


@pytest.mark.parametrize(("mark", "name"), [(",", "a.csv"), (";", "a.csv"), ("\t", "a.tsv")])
def test_rows_are_read_whatever_parts_their_cells(tmp_path: Path, mark: str, name: str) -> None:
    path = tmp_path / name
    path.write_text(f'city{mark}people\n"Paris{mark} France"{mark}2\n\nRome{mark}3\n')
    (found,) = blocks(list(SheetParser().parse(path, name)))
    assert found.cells == (("city", "people"), (" ".join(f"Paris{mark} France".split()), "2"), ("Rome", "3"))


def test_a_long_sheet_repeats_its_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,square\n" + "".join(f"{n},{n * n}\n" for n in range(1200)))
    found = blocks(list(SheetParser().parse(path, "a.csv")))
    assert len(found) == 3
    assert all(block.cells[0] == ("n", "square") for block in found)
    assert sum(len(block.cells) - 1 for block in found) == 1200


def test_a_page_that_opens_with_many_comments_is_judged_at_once() -> None:
    assert WebPageParser().accepts("a.txt", b"<!---->" * 9_000) == ""
    assert WebPageParser().accepts("a.txt", b"<!-- x -->" * 900 + b"<html>") == "text/html"


def test_a_heading_keeps_the_sign_of_its_name() -> None:
    assert [block.text for block in markdown_blocks("# About C#\n\n## Closed ##\n\n###")] == [
        "About C#",
        "Closed",
        "###",
    ]
