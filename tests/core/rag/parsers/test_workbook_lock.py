"""Workbooks of Excel 97 to 2003 with a password: opened with it, in each way of encrypting them, and with nothing else.

`towns-locked.xls` was saved by LibreOffice 7.4, which encrypts with RC4 as Excel 97 does. The other two ways are
written here, by their published description.
"""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.library import Library
from core.rag.parsers import process
from core.rag.parsers.compound import Compound
from core.rag.parsers.office_lock import unlock
from core.rag.parsers.process import Limits
from core.rag.parsers.workbook_lock import opened
from tests.core.rag.parsers.compound_file import compound

SAVED = Path(__file__).with_name("towns-locked.xls")
PASSWORD = "open sesame"
FILLING = bytes([0xBB, 0xFF, 0xFF, 0xBA, 0xFF, 0xFF, 0xB9, 0x80, 0x00, 0xBE, 0x0F, 0x00, 0xBF, 0x0F, 0x00])
# Of the published table, the rows of the last places: the last letter's is the last.
ROWS = (
    (0x4563, 0x8AC6, 0x05AD, 0x0B5A, 0x16B4, 0x2D68, 0x5AD0),
    (0x0375, 0x06EA, 0x0DD4, 0x1BA8, 0x3750, 0x6EA0, 0xDD40),
    (0xD849, 0xA0B3, 0x5147, 0xA28E, 0x553D, 0xAA7A, 0x44D5),
    (0x6F45, 0xDE8A, 0xAD35, 0x4A4B, 0x9496, 0x390D, 0x721A),
    (0xEB23, 0xC667, 0x9CEF, 0x29FF, 0x53FE, 0xA7FC, 0x5FD9),
    (0x47D3, 0x8FA6, 0x0F6D, 0x1EDA, 0x3DB4, 0x7B68, 0xF6D0),
    (0xB861, 0x60E3, 0xC1C6, 0x93AD, 0x377B, 0x6EF6, 0xDDEC),
    (0x45A0, 0x8B40, 0x06A1, 0x0D42, 0x1A84, 0x3508, 0x6A10),
    (0xAA51, 0x4483, 0x8906, 0x022D, 0x045A, 0x08B4, 0x1168),
    (0x76B4, 0xED68, 0xCAF1, 0x85C3, 0x1BA7, 0x374E, 0x6E9C),
    (0x3730, 0x6E60, 0xDCC0, 0xA9A1, 0x4363, 0x86C6, 0x1DAD),
    (0x3331, 0x6662, 0xCCC4, 0x89A9, 0x0373, 0x06E6, 0x0DCC),
    (0x1021, 0x2042, 0x4084, 0x8108, 0x1231, 0x2462, 0x48C4),
)
BEGUN_BY_11 = 0xD40F
KEPT = {0x809: 99, 0x2F: 9999, 0xE1: 99, 0x85: 4}  # bytes that stay readable


def stream(told: bytes = b"") -> bytes:
    """A workbook with one sheet, larger than a block."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    def label(row: int, text: str) -> bytes:
        data = struct.pack("<HHHHB", row, 0, 0, len(text), 1) + text.encode("utf-16-le")
        return record(0x204, data)

    key = record(0x2F, told) if told else b""
    head = record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0)) + key + record(0xE1, b"\xb0\x04")
    title = b"\x05\x00Towns"
    start = len(head) + 4 + 6 + len(title) + 4
    made = head + record(0x85, struct.pack("<IBB", start, 0, 0) + title) + record(0xA, b"")
    made += record(0x809, struct.pack("<HHHHII", 0x600, 16, 0, 0, 0, 0))
    made += b"".join(label(row, f"Zürich 北京 {row}") for row in range(200))
    return made + record(0xA, b"")


def pieces(workbook: bytes) -> Iterator[tuple[int, int, int]]:
    """Of each record, where its content begins, where what is encrypted of it begins, and where both end."""
    at = 0
    while at < len(workbook):
        kind, size = struct.unpack_from("<HH", workbook, at)
        yield at + 4, at + 4 + min(size, KEPT.get(kind, 0)), at + 4 + size
        at += 4 + size


def rc4(key: bytes, data: bytes) -> bytes:
    box, j = list(range(256)), 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    out, i, j = bytearray(), 0, 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


def since_2002(bits: int = 128) -> bytes:
    """As Excel 2002 and 2003 encrypt: RC4 with keys of a chosen size."""
    dice = random.Random(3)
    salt, verifier = dice.randbytes(16), dice.randbytes(16)
    first = hashlib.sha1(salt + PASSWORD.encode("utf-16-le")).digest()

    def key(block: int) -> bytes:
        made = hashlib.sha1(first + struct.pack("<I", block)).digest()[: bits // 8]
        return made + bytes(11) if bits == 40 else made

    name = "Microsoft Enhanced Cryptographic Provider v1.0\0".encode("utf-16-le")
    header = struct.pack("<8I", 4, 0, 0x6801, 0x8004, bits, 1, 0, 0) + name
    check = rc4(key(0), verifier + hashlib.sha1(verifier).digest())
    told = struct.pack("<HHHII", 1, 4, 2, 4, len(header)) + header + struct.pack("<I", 16) + salt
    told += check[:16] + struct.pack("<I", 20) + check[16:]
    plain = stream(told)
    sealed = bytearray(plain)
    mask = b"".join(rc4(key(block), bytes(1024)) for block in range(len(plain) // 1024 + 1))
    for _, start, end in pieces(plain):
        sealed[start:end] = (a ^ b for a, b in zip(plain[start:end], mask[start:end], strict=True))
    return bytes(sealed)


def by_xor() -> bytes:
    """As Excel 95 did, and later versions still can."""
    letters = PASSWORD.encode()
    key = BEGUN_BY_11
    for letter, row in zip(letters, ROWS[-len(letters) :], strict=True):
        for bit in range(7):
            key ^= row[bit] if letter & (1 << bit) else 0
    check = 0
    for letter in [*reversed(letters), len(letters)]:
        check = (((check & 0x4000) >> 14) | ((check * 2) & 0x7FFF)) ^ letter
    array = []
    for at, letter in enumerate((letters + FILLING)[:16]):
        mixed = letter ^ (key >> 8 if at % 2 else key & 0xFF)
        array.append(mixed // 2 | (mixed % 2) * 128)
    plain = stream(struct.pack("<HHH", 0, key, check ^ 0xCE4B))
    sealed = bytearray(plain)
    for begin, start, end in pieces(plain):
        for at in range(start, end):
            turned = (plain[at] << 5 | plain[at] >> 3) & 0xFF
            sealed[at] = turned ^ array[(begin + (end - begin) + (at - begin)) % 16]
    return bytes(sealed)


LOCKS = [
    pytest.param(lambda: since_2002(128), id="RC4 of 128 bits"),
    pytest.param(lambda: since_2002(40), id="RC4 of 40 bits"),
    pytest.param(by_xor, id="XOR"),
]
Lock = Callable[[], bytes]


def test_a_workbook_that_an_office_program_locked_is_read_with_its_password(tmp_path: Path) -> None:
    with Library.open(tmp_path / "library") as library:
        with pytest.raises(LockedDocumentError) as caught:
            library.add(SAVED)
        assert (caught.value.words_key, caught.value.details) == ("document_locked", {"asks": True})
        with pytest.raises(LockedDocumentError) as caught:
            library.add(SAVED, password="open sesam")
        assert caught.value.words_key == "document_password_wrong"
        assert library.documents() == []
        assert library.add(SAVED, password=PASSWORD).media_type == "application/vnd.ms-excel"
        (passage,) = library.find("Zürich")
        assert passage.text == (
            "Town | Inhabitants\nTown 1 | 1000.5\nTown 2 | 2001\nTown 3 | 3001.5\nTown 4 | 4002\nTown 5 | 5002.5\n"
            "Zürich 北京 | 421878"
        )
        assert library.add(SAVED, again=True).status == "ready"  # from its copy, which asks for nothing


@pytest.mark.parametrize("lock", LOCKS)
def test_each_way_of_locking_is_known(lock: Lock) -> None:
    locked = lock()
    plain = opened(locked, PASSWORD)
    assert plain is not None
    assert len(plain) == len(locked)
    assert plain.endswith(stream()[-5_000:])
    for wrong in ("", "open sesamE", "a password that is longer than any"):
        with pytest.raises(LockedDocumentError) as caught:
            opened(locked, wrong)
        assert caught.value.words_key == "document_password_wrong"


@pytest.mark.parametrize("lock", LOCKS)
def test_the_open_copy_is_a_workbook(tmp_path: Path, lock: Lock) -> None:
    path = tmp_path / "a.xls"
    path.write_bytes(compound({"Workbook": lock()}))
    with Library.open(tmp_path / "library") as library:
        library.add(path, password=PASSWORD)
        found = library.find("Zürich", 20)
        assert "Zürich 北京 199" in "\n".join(one.text for one in found)


def test_a_workbook_that_is_not_locked_is_left_as_it_is(tmp_path: Path) -> None:
    assert opened(stream(), PASSWORD) is None
    assert opened(b"", PASSWORD) is None
    (tmp_path / "a.xls").write_bytes(compound({"Workbook": stream()}))
    assert not unlock(tmp_path / "a.xls", tmp_path / "b.xls", PASSWORD)
    assert not (tmp_path / "b.xls").exists()


def test_a_way_that_nobody_knows_is_said() -> None:
    with pytest.raises(LockedDocumentError, match="not known"):
        opened(stream(struct.pack("<HHH", 1, 9, 9)), PASSWORD)
    with pytest.raises(BrokenDocumentError):
        opened(stream(struct.pack("<HHH", 1, 1, 1)), PASSWORD)


@pytest.mark.parametrize("size", [70, 600, 5_000])
def test_another_content_stands_where_the_stream_stood(size: int) -> None:
    other = random.Random(1).randbytes(6_000)
    before = Compound(compound({"Other": other, "Small": b"s" * 200, "Workbook": b"x" * size}))
    after = Compound(bytes(before.replaced("Workbook", b"y" * size)))
    assert (after.get("Workbook"), after.get("Other"), after.get("Small")) == (b"y" * size, other, b"s" * 200)
    with pytest.raises(ValueError, match="Workbook"):
        before.replaced("Workbook", b"y")


@pytest.mark.parametrize("seed", range(30))
def test_flipped_and_missing_bytes_cost_that_file_only(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    data = bytearray(SAVED.read_bytes())
    for _ in range(dice.choice([1, 8, 60])):
        data[dice.randrange(8, len(data))] = dice.randrange(256)
    (tmp_path / "a").write_bytes(data[: dice.choice([len(data), len(data) // 2, 600])])
    with suppress(BrokenDocumentError, LockedDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)


def test_a_library_that_gives_up_half_way_costs_that_file_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.xls"
    assert unlock(SAVED, path, PASSWORD)
    data = bytearray(path.read_bytes())
    data[1616] = 93  # a chain of small sectors leaves the stream; calamine panics
    path.write_bytes(data)
    with pytest.raises(BrokenDocumentError, match="damaged") as caught:
        process.parse(path, path.name, "workbook", Limits())
    assert str(caught.value) == "The workbook is damaged."
    assert caplog.text == ""
