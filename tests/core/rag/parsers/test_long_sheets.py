"""A sheet of a million rows is no bomb: it is read row by row, and what is large elsewhere is refused as before."""

from __future__ import annotations

import zipfile

import pytest

from core.errors import BrokenDocumentError
from core.rag.parsers.archives import check_sizes

MB = 1024 * 1024


def entry(name: str, size: int, packed: int) -> zipfile.ZipInfo:
    one = zipfile.ZipInfo(name)
    one.file_size, one.compress_size = size, packed
    return one


def test_the_sheet_of_a_workbook_may_be_as_long_as_a_sheet_can_be() -> None:
    check_sizes([entry("xl/workbook.xml", 800, 400), entry("xl/worksheets/sheet1.xml", 131 * MB, 14 * MB)])


@pytest.mark.parametrize(
    "large",
    [
        entry("word/document.xml", 131 * MB, 14 * MB),
        entry("xl/sharedStrings.xml", 131 * MB, 14 * MB),
        entry("xl/worksheets/sheet1.xml", 401 * MB, 40 * MB),
        entry("xl/worksheets/sheet1.xml", 131 * MB, 1 * MB),  # packed so well that it is made to burst
    ],
)
def test_what_would_fill_the_memory_is_refused(large: zipfile.ZipInfo) -> None:
    with pytest.raises(BrokenDocumentError) as raised:
        check_sizes([large])
    assert raised.value.words_key == "document_too_large"
