"""A workbook in Excel's binary form (XLSB), written record by record, as [MS-XLSB] lays them out."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

Value = str | float | bool | None

_BOOK, _BOOK_END, _SHEETS, _SHEETS_END, _SHEET = 131, 132, 143, 144, 156
_PAGE, _PAGE_END, _SIZE, _DATA, _DATA_END, _ROW = 129, 130, 148, 145, 146, 0
_BOOL, _NUMBER, _SHARED = 4, 5, 7
_TEXTS, _TEXTS_END, _TEXT = 159, 160, 19
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'


def written(path: Path, sheets: Mapping[str, Sequence[Sequence[Value]]]) -> Path:
    """Write one.

    Args:
        sheets: The rows of each sheet, by its title.
    """
    texts = list(dict.fromkeys(one for rows in sheets.values() for row in rows for one in row if isinstance(one, str)))
    listed = [
        _record(_SHEET, struct.pack("<II", 0, number) + _wide(f"rId{number}") + _wide(title))
        for number, title in enumerate(sheets, 1)
    ]
    parts = {"xl/workbook.bin": b"".join([_record(_BOOK), _record(_SHEETS), *listed, _record(_SHEETS_END)])}
    parts["xl/workbook.bin"] += _record(_BOOK_END)
    shared = [_record(_TEXT, b"\0" + _wide(one)) for one in texts]
    count = struct.pack("<II", len(texts), len(texts))
    parts["xl/sharedStrings.bin"] = b"".join([_record(_TEXTS, count), *shared, _record(_TEXTS_END)])
    kinds = {f"rId{number}": ("worksheet", f"worksheets/sheet{number}.bin") for number in range(1, len(sheets) + 1)}
    for number, rows in enumerate(sheets.values(), 1):
        parts[f"xl/worksheets/sheet{number}.bin"] = _sheet(rows, texts)
    kinds[f"rId{len(sheets) + 1}"] = ("sharedStrings", "sharedStrings.bin")
    parts["xl/_rels/workbook.bin.rels"] = _links(kinds)
    parts["_rels/.rels"] = _links({"rId1": ("officeDocument", "xl/workbook.bin")})
    types = (
        f'{_HEAD}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="bin" ContentType="application/vnd.ms-excel.sheet.binary.macroEnabled.main"/></Types>'
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", types)
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def _sheet(rows: Sequence[Sequence[Value]], texts: Sequence[str]) -> bytes:
    wide = max((len(row) for row in rows), default=1)
    size = struct.pack("<IIII", 0, max(len(rows) - 1, 0), 0, wide - 1)
    made = [_record(_PAGE), _record(_SIZE, size), _record(_DATA)]
    for number, row in enumerate(rows):
        made.append(_record(_ROW, struct.pack("<IIHBBBI", number, 0, 300, 0, 0, 0, 0)))
        made += [_cell(column, value, texts) for column, value in enumerate(row) if value is not None]
    return b"".join([*made, _record(_DATA_END), _record(_PAGE_END)])


def _cell(column: int, value: str | float | bool, texts: Sequence[str]) -> bytes:
    place = struct.pack("<II", column, 0)
    if isinstance(value, bool):
        return _record(_BOOL, place + struct.pack("<B", value))
    if isinstance(value, str):
        return _record(_SHARED, place + struct.pack("<I", texts.index(value)))
    return _record(_NUMBER, place + struct.pack("<d", value))


def _record(kind: int, data: bytes = b"") -> bytes:
    return _seven_bits(kind) + _seven_bits(len(data)) + data


def _seven_bits(number: int) -> bytes:
    """A number in bytes of seven bits, the lowest first; each but the last one says that another follows."""
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _wide(text: str) -> bytes:
    data = text.encode("utf-16-le")
    return struct.pack("<I", len(data) // 2) + data


def _links(kinds: Mapping[str, tuple[str, str]]) -> bytes:
    links = "".join(
        f'<Relationship Id="{name}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for name, (kind, target) in kinds.items()
    )
    space = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'{_HEAD}<Relationships xmlns="{space}">{links}</Relationships>'.encode()
