"""Word documents: order, headings, tables, and archives that are made to hurt."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from core.errors import BrokenDocumentError
from core.rag.document import Block
from core.rag.parsers.word import WordParser


def blocks(path: Path) -> list[Block]:
    return [one for one in WordParser().parse(path, path.name) if isinstance(one, Block)]


def test_paragraphs_headings_and_tables_come_in_order(tmp_path: Path) -> None:
    import docx

    document = docx.Document()
    document.add_heading("The title", 0)
    document.add_paragraph("Before the table.")
    document.add_heading("Part one", 2)
    table = document.add_table(2, 2)
    for at, text in enumerate(["k", "v", "a", "一"]):
        table.cell(at // 2, at % 2).text = text
    document.add_paragraph("After the table.\twith a tab")
    path = tmp_path / "made.docx"
    document.save(str(path))
    assert [(block.kind, block.level, block.text) for block in blocks(path)] == [
        ("heading", 1, "The title"),
        ("paragraph", 0, "Before the table."),
        ("heading", 2, "Part one"),
        ("table", 0, "k | v\na | 一"),
        ("paragraph", 0, "After the table.\twith a tab"),
    ]


def test_text_in_a_content_control_is_read_and_deleted_text_is_not(tmp_path: Path) -> None:
    import docx
    from docx.oxml import parse_xml

    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    document = docx.Document()
    document.add_paragraph("First.")
    body = document.element.body
    body.insert(
        1,
        parse_xml(
            f"<w:sdt {namespace}><w:sdtContent><w:p><w:r><w:t>In a form.</w:t></w:r>"
            "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
            "<w:moveFrom><w:r><w:t>Now elsewhere.</w:t></w:r></w:moveFrom></w:p></w:sdtContent></w:sdt>"
        ),
    )
    body.insert(
        2,
        parse_xml(
            f"<w:tbl {namespace}><w:tr><w:tc><w:p><w:r><w:t>Name</w:t></w:r></w:p></w:tc><w:sdt><w:sdtContent><w:tc>"
            "<w:p><w:r><w:t>Ann</w:t></w:r></w:p></w:tc></w:sdtContent></w:sdt></w:tr></w:tbl>"
        ),
    )
    path = tmp_path / "form.docx"
    document.save(str(path))
    assert [block.text for block in blocks(path)] == ["First.", "In a form.", "Name | Ann"]


def test_another_archive_with_the_name_of_a_word_document_says_so(tmp_path: Path) -> None:
    path = tmp_path / "no.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(BrokenDocumentError) as caught:
        blocks(path)
    assert caught.value.words_key == "document_not_what_it_says"


def test_a_truncated_archive_is_broken(tmp_path: Path) -> None:
    import docx

    path = tmp_path / "cut.docx"
    docx.Document().save(str(path))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(BrokenDocumentError):
        blocks(path)


@pytest.mark.parametrize("kind", ["bytes", "ratio", "entries"])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bomb.docx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        if kind == "bytes":
            archive.writestr("word/document.xml", b" " * 120_000_000)
        elif kind == "ratio":
            archive.writestr("word/media/picture.bmp", b" " * 30_000_000)
        else:
            for number in range(2_100):
                archive.writestr(f"word/{number}.xml", b"")
    with pytest.raises(BrokenDocumentError) as caught:
        blocks(path)
    assert caught.value.words_key == "document_too_large"


def test_a_file_that_names_other_files_reads_none_of_them(tmp_path: Path) -> None:
    """An XML entity may point at a file of the machine; it must stay empty."""
    import docx

    secret = tmp_path / "secret.txt"
    secret.write_text("canary-7431")
    path, evil = tmp_path / "plain.docx", tmp_path / "evil.docx"
    document = docx.Document()
    document.add_paragraph("MARKER")
    document.save(str(path))
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(evil, "w") as target:
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename == "word/document.xml":
                head, _, rest = data.decode().partition("?>")
                text = rest.replace("MARKER", "before &x; after")
                data = f'{head}?><!DOCTYPE d [<!ENTITY x SYSTEM "{secret.as_uri()}">]>{text}'.encode()
            target.writestr(entry, data)
    assert "canary" not in "".join(block.text for block in blocks(evil))
