"""Cells of a workbook straight from its XML: what measurements compare with, read by none of the product's parsers."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
Cells = dict[tuple[int, str], str | float]


def cells_of(path: Path, sheet: int) -> Cells:
    """The cells of a sheet (from 1) by row number and column letters."""
    with zipfile.ZipFile(path) as book:
        shared: list[str] = []
        if "xl/sharedStrings.xml" in book.namelist():
            root = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
            shared = ["".join(text.text or "" for text in one.iter(f"{MAIN}t")) for one in root.iter(f"{MAIN}si")]
        root = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{sheet}.xml"))
    found: Cells = {}
    for cell in root.iter(f"{MAIN}c"):
        match = re.fullmatch(r"([A-Z]+)(\d+)", cell.get("r", ""))
        value = cell.find(f"{MAIN}v")
        text = "".join(one.text or "" for one in cell.iter(f"{MAIN}t")) if value is None else value.text or ""
        if match is None or not text:
            continue
        kind = cell.get("t", "n")
        found[int(match[2]), match[1]] = shared[int(text)] if kind == "s" else float(text) if kind == "n" else text
    return found
