"""A library, and workbooks that are made row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from core.rag.library import Library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as opened:
        yield opened


@pytest.fixture
def workbook(tmp_path: Path) -> Callable[..., Path]:
    """Makes `name` of sheets, each a list of rows."""

    def make(name: str = "sales.xlsx", **sheets: Sequence[Sequence[Any]]) -> Path:
        path = tmp_path / name
        with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"}) as book:
            for title, rows in sheets.items():
                sheet = book.add_worksheet(title)
                for at, row in enumerate(rows):
                    sheet.write_row(at, 0, row)
        return path

    return make
