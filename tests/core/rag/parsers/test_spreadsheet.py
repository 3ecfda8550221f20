"""Spreadsheets: sheets, tables on them, and values as the program shows them."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.document import Block
from core.rag.parsers import process
from core.rag.parsers.catalog import PARSER_REGISTRY, parser_for
from core.rag.parsers.process import Limits, Parsed
from tests.core.rag.parsers.binary_workbook import written

Read = Callable[..., Parsed]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """A workbook; each sheet is a list of rows, or a function that fills it."""

    def make(**sheets: Any) -> Path:
        path = tmp_path / "made.xlsx"
        with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"}) as book:
            for title, rows in sheets.items():
                sheet = book.add_worksheet(title)
                if callable(rows):
                    rows(sheet)
                    continue
                for at, row in enumerate(rows):
                    sheet.write_row(at, 0, row)
        return path

    return make


def tables(parsed: Parsed) -> list[Block]:
    return [block for block in parsed.blocks if block.kind == "table"]


def test_a_sheet_is_a_page_under_its_name(read: Read, make: Callable[..., Path]) -> None:
    parsed = read(make(Umsatz=[["Stadt", "Jahr"], ["Ulm", 2024]], 表二=[["甲"], ["乙"]], Empty=[]))
    assert parsed.about.pages == 3
    assert [(block.kind, block.text, block.page) for block in parsed.blocks] == [
        ("heading", "Umsatz", 1),
        ("table", "Stadt | Jahr\nUlm | 2024", 1),
        ("heading", "表二", 2),
        ("table", "甲\n乙", 2),
    ]


def test_values_read_as_the_program_shows_them(read: Read, make: Callable[..., Path]) -> None:
    row = [
        1.0,
        0.1 + 0.2,
        True,
        date(2024, 2, 29),
        datetime(2024, 2, 29, 13, 30),  # noqa: DTZ001 - sheets know no time zones
        "two\nlines",
        12345678901234,
    ]
    (found,) = tables(read(make(S=[list("abcdefg"), row])))
    assert found.cells[1] == (
        "1", "0.3", "TRUE", "2024-02-29", "2024-02-29 13:30:00", "two lines", "12345678901234",
    )  # fmt: skip


def test_blank_rows_and_columns_part_tables(read: Read, make: Callable[..., Path]) -> None:
    def fill(sheet: Any) -> None:
        sheet.write(0, 0, "Quarterly figures")
        for at, row in enumerate([["a", "b"], [1, 2], [3, 4]], 1):
            sheet.write_row(at, 0, row)
        for at, row in enumerate([["c", "d"], [5, 6]], 2):
            sheet.write_row(at, 4, row)
        for at, row in enumerate([["e"], ["f"]], 8):
            sheet.write_row(at, 1, row)

    parsed = read(make(S=fill))
    assert [block.text for block in parsed.blocks] == [
        "S",
        "Quarterly figures",
        "a | b\n1 | 2\n3 | 4",
        "c | d\n5 | 6",
        "e\nf",
    ]


def test_a_blank_column_within_a_table_parts_nothing(read: Read, make: Callable[..., Path]) -> None:
    (found,) = tables(read(make(S=[["name", "", "age"], ["Ann", "", 30]])))
    assert found.text == "name |  | age\nAnn |  | 30"


def test_rows_after_a_blank_one_keep_the_header(read: Read, make: Callable[..., Path]) -> None:
    found = tables(read(make(S=[["name", "age"], ["Ann", 30], ["", ""], ["Bob", 40]])))
    assert [block.cells for block in found] == [(("name", "age"), ("Ann", "30")), (("name", "age"), ("Bob", "40"))]


def test_what_is_written_once_for_several_rows_is_said_in_each(read: Read, make: Callable[..., Path]) -> None:
    def fill(sheet: Any) -> None:
        sheet.write_row(0, 0, ["region", "city"])
        sheet.merge_range(1, 0, 2, 0, "North")
        sheet.write(1, 1, "Oslo")
        sheet.write(2, 1, "Bergen")

    (found,) = tables(read(make(S=fill)))
    assert found.cells == (("region", "city"), ("North", "Oslo"), ("North", "Bergen"))


def test_a_long_sheet_repeats_its_headers_and_loses_no_row(read: Read, make: Callable[..., Path]) -> None:
    def fill(sheet: Any) -> None:
        sheet.write_row(0, 0, ["n", "square"])
        for n in range(1, 12_001):
            sheet.write_row(n, 0, [n, n * n])
        sheet.write_row(2, 5, ["other"])
        sheet.write_row(6_000, 5, ["far"])

    every = read(make(S=fill)).blocks
    found = [block for block in every if block.kind == "table"]
    squares = [block for block in found if block.cells[0] == ("n", "square")]
    assert [row[0] for block in squares for row in block.cells[1:]] == [str(n) for n in range(1, 12_001)]
    assert max(len(block.cells) for block in squares) == 501
    assert {"other", "far"} <= {block.text for block in every}


def test_the_content_decides_whatever_the_name_says(read: Read, make: Callable[..., Path]) -> None:
    path = make(S=[["a"], ["b"]])
    assert tables(read(path, "letter.docx"))[0].text == "a\nb"
    assert tables(read(path, "archive.zip"))[0].text == "a\nb"


def test_a_page_that_is_called_a_sheet_is_read(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "export.xls"
    path.write_text("<html><table><tr><td>k</td><td>v</td></tr><tr><td>a</td><td>1</td></tr></table></html>")
    assert tables(read(path))[0].text == "k | v\na | 1"


def old_sheet(folder: Path, name: str = "old.xls", *, locked: bool = False) -> Path:
    """A workbook of Excel 97, byte by byte: a file system of four sectors with one file in it."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    def opening(kind: int) -> bytes:
        return record(0x0809, struct.pack("<HHHHII", 0x0600, kind, 0, 0, 0, 0))

    def label(row: int, column: int, text: str) -> bytes:
        data = struct.pack("<HHHHB", row, column, 0, len(text), 1) + text.encode("utf-16-le")
        return record(0x0204, data)

    end = record(0x000A, b"")
    title = b"\x05\x00Sales"
    start = len(opening(5)) + 4 + 6 + len(title) + len(end)
    key = record(0x002F, struct.pack("<HHH", 1, 1, 1) + bytes(range(48))) if locked else b""  # the rest is noise then
    start += len(key)
    book = opening(5) + key + record(0x0085, struct.pack("<IBB", start, 0, 0) + title) + end
    book += opening(16) + label(0, 0, "城市") + label(0, 1, "people") + label(1, 0, "Ulm")
    book += record(0x0203, struct.pack("<HHHd", 1, 1, 0, 130_000.0)) + end
    book = book.ljust(4096, b"\0")

    def entry(title: str, kind: int, child: int, sector: int, size: int) -> bytes:
        data = title.encode("utf-16-le").ljust(64, b"\0") + struct.pack("<HBB", 2 * len(title) + 2, kind, 1)
        return data + struct.pack("<iii", -1, -1, child) + b"\0" * 36 + struct.pack("<iQ", sector, size)

    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 16 + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6)
    header += (
        b"\0" * 6 + struct.pack("<IIiIIiIiI", 0, 1, 1, 0, 4096, -2, 0, -2, 0) + struct.pack("<i", 0) + b"\xff" * 432
    )
    chain = struct.pack("<10i", -3, -2, 3, 4, 5, 6, 7, 8, 9, -2).ljust(512, b"\xff")
    folders = entry("Root Entry", 5, 1, -2, 0) + entry("Workbook", 2, -1, 2, 4096)
    empty = entry("", 0, -1, 0, 0)
    path = folder / name
    path.write_bytes(header + chain + folders + empty + empty + book)
    return path


def test_a_workbook_of_excel_97_is_read(read: Read, tmp_path: Path) -> None:
    parsed = read(old_sheet(tmp_path))
    assert [(block.kind, block.text) for block in parsed.blocks] == [
        ("heading", "Sales"),
        ("table", "城市 | people\nUlm | 130000"),
    ]


def test_a_workbook_of_excel_97_with_a_password_says_so(read: Read, tmp_path: Path) -> None:
    with pytest.raises(LockedDocumentError, match="asks for a password") as caught:
        read(old_sheet(tmp_path, locked=True))
    assert (caught.value.words_key, caught.value.details) == ("document_locked", {"asks": True})


def test_an_open_document_sheet_is_read(read: Read, tmp_path: Path) -> None:
    assert tables(read(ods(tmp_path, "<table:table-row>" + CELL * 2 + "</table:table-row>")))[0].text == "7 | 7"


CELL = '<table:table-cell office:value-type="float" office:value="7"><text:p>7</text:p></table:table-cell>'
_SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
)


def ods(folder: Path, rows: str) -> Path:
    path = folder / "made.ods"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", kind, zipfile.ZIP_STORED)
        archive.writestr(
            "content.xml",
            f"<office:document-content {_SPACES}><office:body><office:spreadsheet>"
            f'<table:table table:name="T">{rows}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
        archive.writestr(
            "META-INF/manifest.xml",
            '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{kind}"/></manifest:manifest>',
        )
    return path


def test_rows_repeated_without_end_are_given_up(tmp_path: Path) -> None:
    cell = CELL.replace("<table:table-cell", '<table:table-cell table:number-columns-repeated="16384"')
    path = ods(tmp_path, f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>')
    with pytest.raises(BrokenDocumentError):
        parsed(path, Limits(seconds=5))


def test_a_cell_at_the_far_end_of_a_sheet_costs_that_file_only(make: Callable[..., Path]) -> None:
    def fill(sheet: Any) -> None:
        sheet.write(0, 0, "first")
        sheet.write(1_048_575, 16_383, "last")

    with pytest.raises(BrokenDocumentError) as caught:
        parsed(make(S=fill), Limits())
    assert caught.value.words_key == "document_too_large"


def parsed(path: Path, limits: Limits) -> Parsed:
    parser, _ = parser_for(path.name, path.read_bytes()[:65536])
    return process.parse(path, path.name, parser, limits)


def test_an_archive_that_lies_about_its_size_costs_that_file_only(make: Callable[..., Path]) -> None:
    """The sheet says that it is small, and unpacks to two gigabytes."""
    path = make(S=[["a"]])
    zeros = b" " * (1 << 20)
    with zipfile.ZipFile(path) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    sheet = parts.pop("xl/worksheets/sheet1.xml")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
        with archive.open("xl/worksheets/sheet1.xml", "w") as entry:
            entry.write(sheet.partition(b"<sheetData>")[0] + b'<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>')
            for _ in range(300):
                entry.write(zeros)
        archive.getinfo("xl/worksheets/sheet1.xml").file_size = 1000
    with pytest.raises(BrokenDocumentError):
        parsed(path, Limits(memory=256 * 1024 * 1024, seconds=5))


def test_half_a_workbook_is_damaged(read: Read, make: Callable[..., Path]) -> None:
    path = make(S=[["a"]])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BrokenDocumentError) as caught:
        read(path)
    assert caught.value.words_key == "document_broken"


@pytest.mark.parametrize("parser", ["grid", "table_rows"])
def test_a_workbook_at_which_its_library_panics_is_damaged_however_it_is_read(
    make: Callable[..., Path], parser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import python_calamine

    class PanicException(BaseException):
        pass

    def panics(path: str) -> None:
        raise PanicException(path)

    path = make(Ships=[["name"], ["Gull"]])
    monkeypatch.setattr(python_calamine, "CalamineWorkbook", type("Book", (), {"from_path": staticmethod(panics)}))
    with pytest.raises(BrokenDocumentError):
        list(PARSER_REGISTRY[parser]().parse(path, path.name))


def test_a_binary_workbook_is_read_as_any_other(read: Read, tmp_path: Path) -> None:
    rows = {
        "Umsatz": [["Stadt", "Jahr", "offen"], ["Ulm", 2024.0, True], ["Köln", 1.5, None]],
        "表二": [["甲"], ["乙"]],
    }
    parsed = read(written(tmp_path / "made.xlsb", rows))
    assert parsed.about.pages == 2
    assert [(block.kind, block.text, block.page) for block in parsed.blocks] == [
        ("heading", "Umsatz", 1),
        ("table", "Stadt | Jahr | offen\nUlm | 2024 | TRUE\nKöln | 1.5 | ", 1),
        ("heading", "表二", 2),
        ("table", "甲\n乙", 2),
    ]
    (tmp_path / "cut.xlsb").write_bytes((tmp_path / "made.xlsb").read_bytes()[:-60])
    with pytest.raises(BrokenDocumentError):
        read(tmp_path / "cut.xlsb")
