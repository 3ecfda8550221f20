"""Office files and books are zip archives: whatever their headers say, a file is read or refused in one sentence."""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.errors import BrokenDocumentError
from core.rag.parsers.process import Parsed

Read = Callable[..., Parsed]
_LOCAL, _CENTRAL = b"PK\x03\x04", b"PK\x01\x02"
_ENCRYPTED, _PATCHED, _STRONGLY_ENCRYPTED = 0x1, 0x20, 0x40
_NOTHING_KNOWN, _BZIP2, _LZMA = 99, 12, 14
WORD = "lamplight"  # of the shared files
# What a header may say, and from which of its bytes on: flags, then the method of compression.
WRONG = {
    "encrypted": (0, _ENCRYPTED),
    "patched": (0, _PATCHED),
    "strongly encrypted": (0, _STRONGLY_ENCRYPTED),
    "a method nobody knows": (2, _NOTHING_KNOWN),
    "another method": (2, _BZIP2),
    "a method with a header of its own": (2, _LZMA),
}


def with_headers(data: bytes, entry: zipfile.ZipInfo, at: int, value: int) -> bytes:
    """The archive, in which an entry's header says something else, in front of it and in the directory alike."""
    changed = bytearray(data)
    name = entry.filename.encode()
    directory = data.index(_CENTRAL)
    central = next(
        place for place in _places(data, _CENTRAL, directory) if data[place + 46 : place + 46 + len(name)] == name
    )
    for place in (entry.header_offset + 6, central + 8):
        (before,) = struct.unpack_from("<H", data, place + at)
        struct.pack_into("<H", changed, place + at, value if at else before | value)
    return bytes(changed)


def _places(data: bytes, mark: bytes, start: int) -> Iterator[int]:
    while (start := data.find(mark, start)) >= 0:
        yield start
        start += 1


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "ods", "epub"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_header_that_lies_costs_that_file_only(
    files: dict[str, bytes], read: Read, tmp_path: Path, kind: str, wrong: str
) -> None:
    path = tmp_path / f"a.{kind}"
    with zipfile.ZipFile(io.BytesIO(files[kind])) as archive:
        entries = archive.infolist()
    for entry in entries:
        path.write_bytes(with_headers(files[kind], entry, *WRONG[wrong]))
        with contextlib.suppress(BrokenDocumentError):
            parsed = read(path)
            assert parsed.about.damaged or WORD in " ".join(block.text for block in parsed.blocks)


@pytest.mark.parametrize(
    ("kind", "part", "old", "new"),
    [
        pytest.param("docx", "_rels/.rels", b"<Relationships ", b"<Relations ", id="another root"),
        pytest.param("docx", "[Content_Types].xml", b" PartName=", b" Part=", id="a part without a name"),
        pytest.param("docx", "[Content_Types].xml", b"styles+xml", b"style+xml", id="styles of another type"),
        pytest.param("pptx", "ppt/_rels/presentation.xml.rels", b" Target=", b" At=", id="a slide nowhere"),
        pytest.param("pptx", "ppt/slides/_rels/slide1.xml.rels", b"slideLayout", b"slide", id="no layout"),
        pytest.param("pptx", "[Content_Types].xml", b"presentationml.slide+", b"slide+", id="a slide of another type"),
    ],
)
def test_a_package_whose_parts_do_not_fit_together_is_damaged(
    files: dict[str, bytes], read: Read, tmp_path: Path, kind: str, part: str, old: bytes, new: bytes
) -> None:
    path = tmp_path / f"a.{kind}"
    with zipfile.ZipFile(io.BytesIO(files[kind])) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            assert name != part or old in data
            target.writestr(name, data.replace(old, new) if name == part else data)
    with pytest.raises(BrokenDocumentError):
        read(path)
