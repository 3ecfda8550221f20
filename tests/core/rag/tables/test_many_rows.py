"""A sheet of a million rows is read, found in and summed up, in little memory, and let go when it is not wanted."""

from __future__ import annotations

import threading
import zipfile
from typing import TYPE_CHECKING

import psutil
import pytest

from core.errors import DocumentError
from core.rag.library import Library

if TYPE_CHECKING:
    from pathlib import Path

    from core.rag.document import ReadingProgress

FEW, MANY = 3_000, 1_000_000
CITIES = ("Ulm", "Bonn", "Kiel", "Trier", "Essen", "Jena", "Mainz")
_MOST = 400 * 1024 * 1024  # bytes that this process grows by
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PARTS = "http://schemas.openxmlformats.org/package/2006"
_SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def sheet(path: Path, rows: int) -> Path:
    """A CSV, or a workbook with one sheet: an order in each row, with its city and an amount from 0 to 999."""
    cells = [(n + 1, CITIES[n % len(CITIES)], n % 1000) for n in range(rows)]
    if path.suffix == ".csv":
        path.write_text("\n".join(["order,city,amount", *(f"{n},{city},{sum_}" for n, city, sum_ in cells)]))
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as book:
        kinds = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        kinds += f'<Override PartName="/xl/workbook.xml" ContentType="{_SHEETS}.sheet.main+xml"/>'
        kinds += f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_SHEETS}.worksheet+xml"/>'
        book.writestr("[Content_Types].xml", f'<Types xmlns="{_PARTS}/content-types">{kinds}</Types>')
        book.writestr("_rels/.rels", _link("officeDocument", "xl/workbook.xml"))
        book.writestr("xl/_rels/workbook.xml.rels", _link("worksheet", "worksheets/sheet1.xml"))
        names = '<sheets><sheet name="Sales" sheetId="1" r:id="r1"/></sheets>'
        book.writestr("xl/workbook.xml", f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}">{names}</workbook>')
        with book.open("xl/worksheets/sheet1.xml", "w") as out:
            head = "".join(map(_text, ("order", "city", "amount")))
            out.write(f'<worksheet xmlns="{_MAIN}"><sheetData><row>{head}</row>'.encode())
            for n, city, amount in cells:
                out.write(f"<row><c><v>{n}</v></c>{_text(city)}<c><v>{amount}</v></c></row>".encode())
            out.write(b"</sheetData></worksheet>")
    return path


def _link(kind: str, target: str) -> str:
    one = f'<Relationship Id="r1" Type="{_LINKS}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{_PARTS}/relationships">{one}</Relationships>'


def _text(said: str) -> str:
    return f'<c t="inlineStr"><is><t>{said}</t></is></c>'


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("name", ["sales.csv", "sales.xlsx"])
def test_a_sheet_of_many_rows_is_found_in_and_summed_up(tmp_path: Path, name: str, rows: int) -> None:
    path = sheet(tmp_path / name, rows)
    with Library.open(tmp_path / "library") as library:
        before = psutil.Process().memory_info().rss
        document = library.add(path)
        assert (document.status, document.tables) == ("ready", 1)
        assert f"{rows} | " in library.find(f"order {rows}", 1)[0].text
        (table,) = library.tables.of([document.id], lambda: False)
        told = library.tables.ask([document.id], f'SELECT count(*), sum(amount) FROM "{table.name}"')
        assert told.rows == ((rows, rows * 999 // 2),)
        assert psutil.Process().memory_info().rss - before < _MOST


def test_a_sheet_of_many_rows_is_let_go_as_soon_as_it_is_not_wanted(tmp_path: Path) -> None:
    path, stop = sheet(tmp_path / "sales.csv", 60_000), threading.Event()

    def seen(progress: ReadingProgress) -> None:
        if progress.chunks:
            stop.set()

    with Library.open(tmp_path / "library") as library:
        with pytest.raises(DocumentError) as caught:
            library.add(path, progress=seen, cancelled=stop)
        assert caught.value.words_key == "document_cancelled"
        assert library.documents() == []
