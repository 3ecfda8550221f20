"""Reading and cutting documents, against what Qwen-Agent made of them: the same words in the same order."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import BrokenDocumentError, UnsupportedFormatError
from core.rag.chunking import chunks_of
from core.rag.citations import numbered
from core.rag.document import Block, Passage
from core.rag.library import Library
from core.rag.parsers.catalog import HEAD, PARSER_REGISTRY, PARSERS, parser_for
from tests.golden.claimed import Record, name, of

KINDS = {"txt": {"plain", "data_text"}, "tsv": {"sheet"}, "docx": {"word"}, "pdf": {"pdf"}}


def a_word_document(path: Path) -> None:
    import docx

    document: Any = docx.Document()
    document.add_heading("Head 标题", 1)
    document.add_paragraph("Body text.")
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ("k", "v", "1", "2"), strict=True):
        cell.text = text
    document.add_paragraph("After table.")
    document.save(path)


def a_pdf(path: Path) -> None:
    import pymupdf

    document: Any = pymupdf.open()
    first = document.new_page()
    first.insert_text((72, 72), "Page one heading")
    first.insert_text((72, 120), ["First line of text", "second line of text"])
    document.new_page().insert_text((72, 72), "Page two here")
    document.save(path)


def slides(path: Path) -> None:
    import pptx

    deck: Any = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Slide 一"
    slide.placeholders[1].text = "bullet a\nbullet b"
    deck.save(path)


def a_workbook(path: Path) -> None:
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    rows = '<row r="1">{}{}</row><row r="2">{}{}</row><row r="3">{}</row>'.format(
        *(f'<c r="{at}" t="inlineStr"><is><t>{text}</t></is></c>' for at, text in (("A1", "x"), ("B1", "名"))),
        '<c r="A2"><v>1</v></c>',
        '<c r="B2" t="inlineStr"><is><t>甲</t></is></c>',
        '<c r="A3"><v>2</v></c>',
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as file:
        for part, text in parts.items():
            file.writestr(part, head + text)


BUILT: dict[str, Callable[[Path], object]] = {
    "i.docx": a_word_document,
    "k.pdf": a_pdf,
    "j.pptx": slides,
    "h.xlsx": a_workbook,
    "gbk.txt": lambda path: (
        path.write_bytes("这是一个GBK编码的文件，内容足够长以便检测。今天天气很好。".encode("gbk")) and None
    ),
}
PEER_LOST = {
    "b.html": "T 标题 Para 1 Div bold",  # the peer glues title, paragraph and division together
    "f.py": 'def f return "<p>"',  # the peer takes a program that mentions <p> for a web page
    "i.docx": "Head 标题 Body text k v 1 2 After table",  # the peer puts all tables after all paragraphs
}


@pytest.fixture
def file(record: Record, tmp_path: Path) -> Path:
    """The recorded file, or one of the same content."""
    path = tmp_path / record["input"]["file"]
    if "utf8" in record["input"]:
        path.write_text(record["input"]["utf8"], encoding="utf-8", newline="")
    else:
        BUILT[path.name](path)
    return path


def parser_of(path: Path) -> str:
    return parser_for(path.name, path.read_bytes()[:HEAD])[0]


def blocks_of(path: Path) -> list[Block]:
    found = PARSER_REGISTRY[parser_of(path)]().parse(path, path.name)
    return [each for each in found if isinstance(each, Block)]


def said(text: str) -> list[str]:
    """The words of a text; what draws tables and names sheets says nothing."""
    return re.findall(r"\w+|[<>]", re.sub(r"(?:### Sheet: )?Sheet1", "", text).replace("_", " "))


def of_pages(pages: list[dict[str, Any]]) -> str:
    return "\n".join(each.get("text") or each.get("table") or "" for page in pages for each in page["content"])


@pytest.mark.parametrize("record", of("get_file_type"), ids=name)
def test_a_file_is_taken_for_what_it_is(record: Record, file: Path) -> None:
    if file.name == "empty.txt":  # better: a reader is told that there is nothing in it
        with pytest.raises(BrokenDocumentError, match="empty"):
            parser_of(file)
    elif record["output"] in KINDS:
        assert parser_of(file) in KINDS[record["output"]]
    else:
        read_or_told(record, file)


@pytest.mark.parametrize("record", of("simple_doc_parser(plain)", "simple_doc_parser(structured)"), ids=name)
def test_a_document_says_the_same_words_in_the_same_order(record: Record, file: Path) -> None:
    read_or_told(record, file)


def is_read(path: Path) -> bool:
    """Whether some parser takes the file."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    return any(PARSER_REGISTRY[each]().accepts(path.name, head) for each in PARSERS)


def read_or_told(record: Record, file: Path) -> None:
    """The words are those of the recording; a format that is not read yet is refused with those that are."""
    if file.name == "empty.txt":
        with pytest.raises(BrokenDocumentError, match="empty"):
            blocks_of(file)
        return
    if file.suffix in {".xlsx", ".pptx"} and not is_read(file):
        with pytest.raises(UnsupportedFormatError, match="PDF"):
            blocks_of(file)
        return
    blocks = blocks_of(file)
    ours = said("\n".join(block.text for block in blocks))
    peer = record["output"] if isinstance(record["output"], str) else of_pages(record["output"])
    expected = said(PEER_LOST.get(file.name, peer)) if record["fn"] != "get_file_type" else ours
    assert [word for word in ours if word not in expected] == []
    missing = [word for word in expected if word not in ours]
    # The title of a web page is the document's title, the language of a listing is no word of its text.
    assert missing in ([], ["T", "标题"], ["py"])
    assert [word for word in expected if word in ours] == ours
    if file.suffix == ".pdf":
        assert [block.page for block in blocks] == sorted(block.page or 0 for block in blocks)
        assert blocks[-1].page == 2


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    (record,) = of("simple_doc_parser(cache)")
    assert record["output"][1] == "VERSION ONE"  # the peer knows a file by its path alone, for ever
    path = tmp_path / "a.txt"
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as library:
        for words in ("VERSION ONE", "VERSION TWO"):
            path.write_text(words)
            library.add(path)
            assert library.find(words.split()[1])[0].text == words


@pytest.mark.parametrize("record", of("split_doc_to_chunk"), ids=name)
def test_a_document_is_cut_into_chunks_without_a_loss(record: Record) -> None:
    paragraphs = [each["text"] for page in record["input"]["doc"] for each in page["content"]]
    blocks = [Block("paragraph", text, page=1) for text in paragraphs]
    chunks = list(chunks_of(blocks, record["input"]["parser_page_size"], overlap=0))
    whole = "".join(re.sub(r"\s", "", chunk.text) for chunk in chunks)
    # Better: the peer loses the marks between sentences and puts line breaks into words.
    assert whole == re.sub(r"\s", "", "".join(paragraphs))
    assert len(chunks) > 1
    assert all(chunk.page == 1 for chunk in chunks)


@pytest.mark.parametrize("record", of("format_knowledge"), ids=name)
def test_passages_are_put_before_a_model_with_their_source(record: Record) -> None:
    (given,) = record["output"]
    source = re.sub(r"\[文件\]\((.*)\)", r"\1", given["source"])
    told = numbered([Passage(given["content"], 1.0, source, "d", 2, (), "", 1)], "zh")
    # Better: numbered, so that an answer can point to it, with its page, and marked as data.
    assert f"[1] ({source}, 第 2 页)\n{given['content']}" in told


@pytest.mark.parametrize(
    "record",
    of(
        "clean_paragraph",
        "str_processing.rm_cid",
        "str_processing.rm_continuous_placeholders",
        "str_processing.rm_hexadecimal",
        "str_processing.rm_newlines",
    ),
    ids=name,
)
def test_a_text_file_keeps_what_is_written_in_it(record: Record, tmp_path: Path) -> None:
    """The peer deletes what looks like the leavings of its PDF reader from every document: hashes, `(cid:12)`, hyphens.

    Our PDF reader leaves none, so nothing is deleted; paragraphs are parted at blank lines.
    """
    path = tmp_path / "a.txt"
    path.write_text(record["input"], encoding="utf-8", newline="")
    blocks = blocks_of(path)
    if record["fn"].endswith("rm_continuous_placeholders"):
        assert "\n\n".join(block.text for block in blocks) == record["output"]
    else:
        assert re.sub(r"\s", "", "".join(block.text for block in blocks)) == re.sub(r"\s", "", record["input"])
