"""Tables in text files: CSV and TSV."""

from __future__ import annotations

import csv
import io
from itertools import islice
from typing import TYPE_CHECKING

from core.rag.document import About, table
from core.rag.parsers.base import PLAIN, Found, Wishes, ending
from core.rag.parsers.charset import decode, looks_like_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MEDIA_TYPES = {".csv": "text/csv", ".tsv": "text/tab-separated-values", ".tab": "text/tab-separated-values"}
_ROWS = 500  # in one block, so that a long file needs little memory at a time
_CELL = 1_000_000  # letters; the library's own limit breaks honest files


class SheetParser:
    """Reads rows; the first is taken for the header."""

    def accepts(self, name: str, head: bytes) -> str:
        """Text whose name says that it holds rows: a comma alone proves nothing."""
        return _MEDIA_TYPES.get(ending(name), "") if looks_like_text(head) else ""

    def parse(self, path: Path, name: str, wishes: Wishes = PLAIN) -> Iterator[Found]:  # noqa: ARG002 - all are asked alike
        """Tables of up to 500 rows, each with the header as its first."""
        yield About()
        text = decode(path.read_bytes())
        csv.field_size_limit(_CELL)
        rows = _filled(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(text, ending(name))))
        header = next(rows, None)
        if header is None:
            return
        first = True
        while (some := list(islice(rows, _ROWS))) or first:
            yield table([header, *some])
            first = False


def _filled(rows: Iterator[list[str]]) -> Iterator[tuple[str, ...]]:
    return (tuple(row) for row in rows if any(cell.strip() for cell in row))


def delimiter(text: str, kind: str) -> str:
    """What parts the cells: spreadsheets in many countries write semicolons into a file named .csv."""
    if kind != ".csv":
        return "\t"
    head = "\n".join(text.split("\n", 20)[:20])
    counts = {mark: head.count(mark) for mark in (",", ";", "\t", "|")}
    return max(counts, key=lambda mark: counts[mark])
