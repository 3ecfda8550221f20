"""Reading a file in this very process, so that what goes wrong is seen."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.rag.document import About, Block, PageShape
from core.rag.parsers.base import Scanned
from core.rag.parsers.catalog import HEAD, PARSER_REGISTRY, PDF_READERS, parser_for
from core.rag.parsers.process import Parsed

WORD = "lamplight"


def _pdf() -> bytes:
    import pymupdf

    document = pymupdf.open()
    for _ in range(3):
        document.new_page().insert_text((50, 60), WORD)
    return bytes(document.tobytes())


def _docx() -> bytes:
    from docx import Document

    out = io.BytesIO()
    document = Document()
    document.add_paragraph(WORD)
    document.save(out)
    return out.getvalue()


def _pptx() -> bytes:
    from pptx import Presentation

    out = io.BytesIO()
    deck: Any = Presentation()
    deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = WORD
    deck.save(out)
    return out.getvalue()


def _xlsx() -> bytes:
    import xlsxwriter

    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        book.add_worksheet().write_row(0, 0, ["a", WORD])
    return out.getvalue()


def _ods() -> bytes:
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    cell = f'<table:table-cell office:value-type="string"><text:p>{WORD}</text:p></table:table-cell>'
    table = f'<table:table table:name="T"><table:table-row>{cell * 2}</table:table-row></table:table>'
    body = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", kind, zipfile.ZIP_STORED)
        archive.writestr("content.xml", f"<office:document-content {spaces}>{body}</office:document-content>")
        archive.writestr(
            "META-INF/manifest.xml",
            '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>',
        )
    return out.getvalue()


def _epub() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", '<rootfile full-path="a.opf"></rootfile>')
        item = '<item id="a" href="a.html" media-type="text/html"></item><itemref idref="a"></itemref>'
        archive.writestr("a.opf", f"<package>{item}</package>")
        archive.writestr("a.html", f"<html><body><p>{WORD}</p></body></html>")
    return out.getvalue()


def _png() -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (60, 40), "white").save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="session")
def files() -> dict[str, bytes]:
    """A good file of each kind, with `WORD` in it but for the picture."""
    return {
        "pdf": _pdf(),
        "docx": _docx(),
        "pptx": _pptx(),
        "xlsx": _xlsx(),
        "ods": _ods(),
        "epub": _epub(),
        "html": f"<html><body><p>{WORD}</p></body></html>".encode(),
        "csv": f"a,b\n{WORD},2\n".encode(),
        "json": f'{{"a": "{WORD}"}}'.encode(),
        "txt": WORD.encode(),
        "png": _png(),
    }


@pytest.fixture(params=PDF_READERS)
def read_pdf(request: pytest.FixtureRequest) -> Callable[[Path], Parsed]:
    """All that is in a PDF, by either library."""
    return lambda path: _parsed(PDF_READERS[request.param][0], path, path.name)


@pytest.fixture
def read() -> Callable[..., Parsed]:
    """All that the parser of a file gives, chosen as for a user."""

    def read(path: Path, name: str = "") -> Parsed:
        with path.open("rb") as file:
            parser, _ = parser_for(name or path.name, file.read(HEAD))
        return _parsed(parser, path, name or path.name)

    return read


def _parsed(parser: str, path: Path, name: str) -> Parsed:
    parsed = Parsed()
    for found in PARSER_REGISTRY[parser]().parse(path, name):
        match found:
            case About():
                parsed.about = found
            case PageShape():
                parsed.shapes.append(found)
            case Block():
                parsed.blocks.append(found)
            case Scanned():
                parsed.scanned.append(found.page)
    return parsed
