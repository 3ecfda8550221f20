"""Office files with a password, of each way of encrypting them: opened with it, and with nothing else.

`towns-locked.xls` was saved by LibreOffice 7.4, which encrypts with RC4 as Excel 97 does. The others are written here,
by the published description of the formats.
"""

from __future__ import annotations

import base64
import hashlib
import io
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.library import Library
from core.rag.parsers import process
from core.rag.parsers.office_encryption import unlock
from core.rag.parsers.process import Limits
from tests.core.rag.parsers.compound_file import FREE, compound

SAVED = Path(__file__).with_name("towns-locked.xls")
SHEETS = [Path(__file__).with_name(name) for name in ("towns-locked.ods", "towns-locked-1.1.ods")]
PASSWORD = "open sesame"
PASSWORD_WIDE = "öffne dich 开门"
ROUNDS = 1000
NAMESPACE = "http://schemas.microsoft.com/office/2006/keyEncryptor/password"
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


def _cipher(key: bytes, mode: modes.CBC | modes.ECB, data: bytes) -> bytes:
    writer = Cipher(algorithms.AES(key), mode).encryptor()
    return writer.update(data.ljust(-(-len(data) // 16) * 16, b"\0")) + writer.finalize()


def since_2010(plain: bytes, password: str = PASSWORD_WIDE, rounds: int = ROUNDS, name: str = "SHA512") -> bytes:
    """As Word encrypts since 2010, by the published description."""

    def digest(data: bytes) -> bytes:
        return hashlib.new(name.lower(), data).digest()

    dice = random.Random(5)
    wide = 16 if name == "SHA1" else 32  # bytes of a key; Office 2010 writes SHA-1 with the smaller
    data_salt, salt, key, verifier = (dice.randbytes(size) for size in (16, 16, wide, 16))
    made = digest(salt + password.encode("utf-16-le"))
    for number in range(rounds):
        made = digest(struct.pack("<I", number) + made)

    def sealed(purpose: str, data: bytes) -> str:
        own = digest(made + bytes.fromhex(purpose))[:wide]
        return base64.b64encode(_cipher(own, modes.CBC(salt), data)).decode()

    size = len(digest(b""))
    common = (
        f'blockSize="16" keyBits="{8 * wide}" hashSize="{size}" cipherAlgorithm="AES" cipherChaining="ChainingModeCBC"'
    )
    told = (
        f'<encryption xmlns:p="{NAMESPACE}"><keyData saltSize="16" {common} hashAlgorithm="{name}" '
        f'saltValue="{base64.b64encode(data_salt).decode()}"/>'
        '<dataIntegrity encryptedHmacKey="" encryptedHmacValue=""/>'
        f"<keyEncryptors><keyEncryptor><p:encryptedKey "
        f'spinCount="{rounds}" saltSize="16" {common} hashAlgorithm="{name}" '
        f'saltValue="{base64.b64encode(salt).decode()}" '
        f'encryptedVerifierHashInput="{sealed("fea7d2763b4b9e79", verifier)}" '
        f'encryptedVerifierHashValue="{sealed("d7aa0f6d3061344e", digest(verifier))}" '
        f'encryptedKeyValue="{sealed("146e0be7abacd0d6", key)}"/></keyEncryptor></keyEncryptors></encryption>'
    )
    package = struct.pack("<Q", len(plain))
    for number, at in enumerate(range(0, len(plain), 4096)):
        begin = digest(data_salt + struct.pack("<I", number))[:16]
        package += _cipher(key, modes.CBC(begin), plain[at : at + 4096])
    info = struct.pack("<HHI", 4, 4, 0x40) + told.encode()
    return compound({"EncryptionInfo": info, "EncryptedPackage": package})


def of_2007(plain: bytes, password: str = PASSWORD_WIDE) -> bytes:
    """As Word 2007 encrypts."""

    def digest(data: bytes) -> bytes:
        return hashlib.sha1(data).digest()

    dice = random.Random(6)
    salt, verifier = dice.randbytes(16), dice.randbytes(16)
    made = digest(salt + password.encode("utf-16-le"))
    for number in range(50_000):
        made = digest(struct.pack("<I", number) + made)
    last = digest(made + bytes(4)).ljust(64, b"\0")
    key = digest(bytes(one ^ 0x36 for one in last))[:16]
    name = "Microsoft Enhanced RSA and AES Cryptographic Provider\0".encode("utf-16-le")
    header = struct.pack("<8I", 0x24, 0, 0x660E, 0x8004, 128, 0x18, 0, 0) + name
    check = _cipher(key, modes.ECB(), digest(verifier).ljust(32, b"\0"))
    info = struct.pack("<HHII", 3, 2, 0x24, len(header)) + header + struct.pack("<I", 16) + salt
    info += _cipher(key, modes.ECB(), verifier) + struct.pack("<I", 20) + check
    package = struct.pack("<Q", len(plain)) + _cipher(key, modes.ECB(), plain)
    return compound({"EncryptionInfo": info, "EncryptedPackage": package})


Encrypt = Callable[[bytes], bytes]
PACKAGES: dict[str, Encrypt] = {"since 2010": since_2010, "of 2007": of_2007}
WORKBOOKS: dict[str, Callable[[], bytes]] = {
    "RC4 of 128 bits": lambda: since_2002(128),
    "RC4 of 40 bits": lambda: since_2002(40),
    "XOR": by_xor,
}


def archive(size: int = 0) -> bytes:
    """A zip of at least this many bytes, the same each time: what is inside an encrypted package."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as package:
        package.writestr(zipfile.ZipInfo("a"), random.Random(size).randbytes(size))
    return out.getvalue()


@pytest.fixture
def docx() -> bytes:
    from docx import Document

    out = io.BytesIO()
    document = Document()
    document.add_paragraph("The lamp is green.")
    document.save(out)
    return out.getvalue()


def key_of(library: Library, path: Path, password: str) -> str:
    with pytest.raises(LockedDocumentError) as caught:
        library.add(path, password=password)
    assert library.documents() == []
    return caught.value.words_key


@pytest.mark.parametrize("way", PACKAGES)
def test_a_word_document_is_read_with_its_password_alone(tmp_path: Path, docx: bytes, way: str) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(PACKAGES[way](docx))
    with Library.open(tmp_path / "library") as library:
        assert key_of(library, path, "") == "document_locked"
        assert key_of(library, path, "wrong") == "document_password_wrong"
        document = library.add(path, password=PASSWORD_WIDE)
        assert [passage.text for passage in library.find("lamp")] == ["The lamp is green."]
        assert (tmp_path / "library" / "originals" / document.id).read_bytes() == docx


@pytest.mark.parametrize("way", PACKAGES)
def test_what_is_inside_comes_out_byte_by_byte(tmp_path: Path, way: str) -> None:
    small = len(archive())
    for size in (0, 1, 15 - small % 16, 16 - small % 16, 4095 - small, 4096 - small, 4097 - small, 200_000):
        plain = archive(size)
        (tmp_path / "a").write_bytes(PACKAGES[way](plain))
        assert unlock(tmp_path / "a", tmp_path / "b", PASSWORD_WIDE)
        assert (tmp_path / "b").read_bytes() == plain, size


def test_all_hashes_of_the_format_are_known(tmp_path: Path) -> None:
    for name in ("SHA1", "SHA256", "SHA384"):
        (tmp_path / "a").write_bytes(since_2010(archive(), name=name))
        assert unlock(tmp_path / "a", tmp_path / "b", PASSWORD_WIDE)
        assert (tmp_path / "b").read_bytes() == archive(), name
        with pytest.raises(LockedDocumentError) as caught:
            unlock(tmp_path / "a", tmp_path / "c", "wrong")
        assert caught.value.words_key == "document_password_wrong", name


def test_damage_inside_is_no_wrong_password(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(since_2010(b"no archive", rounds=10))
    with pytest.raises(BrokenDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD_WIDE)


@pytest.mark.parametrize("way", PACKAGES)
def test_a_last_sector_that_is_filled_up_is_cut_to_its_size(tmp_path: Path, way: str) -> None:
    import olefile

    plain = archive(4096 + 40)
    with olefile.OleFileIO(io.BytesIO(PACKAGES[way](plain))) as container:
        info, package = (container.openstream(name).read() for name in ("EncryptionInfo", "EncryptedPackage"))
    package += bytes(-(len(package) - 8) % 512)
    (tmp_path / "a").write_bytes(compound({"EncryptionInfo": info, "EncryptedPackage": package}))
    assert unlock(tmp_path / "a", tmp_path / "b", PASSWORD_WIDE)
    assert (tmp_path / "b").read_bytes() == plain


def test_a_workbook_that_an_office_program_locked_is_read_with_its_password(tmp_path: Path) -> None:
    with Library.open(tmp_path / "library") as library:
        with pytest.raises(LockedDocumentError) as caught:
            library.add(SAVED)
        assert (caught.value.words_key, caught.value.details) == ("document_locked", {"asks": True})
        assert key_of(library, SAVED, "open sesam") == "document_password_wrong"
        assert library.add(SAVED, password=PASSWORD).media_type == "application/vnd.ms-excel"
        (passage,) = library.find("Zürich")
        assert passage.text == (
            "Town | Inhabitants\nTown 1 | 1000.5\nTown 2 | 2001\nTown 3 | 3001.5\nTown 4 | 4002\nTown 5 | 5002.5\n"
            "Zürich 北京 | 421878"
        )
        assert library.add(SAVED, again=True).status == "ready"  # from its copy, which asks for nothing


@pytest.mark.parametrize("way", WORKBOOKS)
def test_each_way_of_locking_a_workbook_is_known(tmp_path: Path, way: str) -> None:
    import olefile

    other = random.Random(1).randbytes(6_000)
    path, copy = tmp_path / "a.xls", tmp_path / "b.xls"
    locked = WORKBOOKS[way]()
    path.write_bytes(compound({"Other": other, "Small": b"s" * 200, "Workbook": locked}))
    for wrong in ("open sesamE", "a password that is longer than any", "开门", "\ud800"):
        with pytest.raises(LockedDocumentError) as caught:
            unlock(path, copy, wrong)
        assert caught.value.words_key == "document_password_wrong", wrong
        assert not copy.exists()
    assert unlock(path, copy, PASSWORD)
    with olefile.OleFileIO(str(copy)) as container:
        plain = container.openstream("Workbook").read()
        assert (container.openstream("Other").read(), container.openstream("Small").read()) == (other, b"s" * 200)
    assert len(plain) == len(locked)
    assert plain.endswith(stream()[-5_000:])
    with Library.open(tmp_path / "library") as library:
        library.add(path, password=PASSWORD)
        found = library.find("Zürich", 20)
        assert "Zürich 北京 199" in "\n".join(one.text for one in found)


def test_what_is_not_encrypted_is_left_as_it_is(tmp_path: Path) -> None:
    for streams in ({"WordDocument": b"x" * 5000, "Small": b"y" * 70}, {"Workbook": stream()}, {"Workbook": b""}):
        (tmp_path / "a").write_bytes(compound(streams))
        with suppress(BrokenDocumentError):  # an empty workbook is none
            assert not unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
        assert not (tmp_path / "b").exists()


def test_an_encryption_that_is_not_known_is_said(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(compound({"Workbook": stream(struct.pack("<HHH", 1, 9, 9))}))
    with pytest.raises(LockedDocumentError, match="not known"):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
    (tmp_path / "a").write_bytes(compound({"EncryptionInfo": b"\3\0\3\0" * 9, "EncryptedPackage": b"y" * 5000}))
    with pytest.raises(LockedDocumentError, match="not known"):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
    (tmp_path / "a").write_bytes(compound({"Workbook": stream(b"\1\0\1")}))
    with pytest.raises(BrokenDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)


def test_flipped_and_missing_bytes_cost_that_file_only(tmp_path: Path, docx: bytes) -> None:
    for source, password in ((since_2010(docx, rounds=10), PASSWORD_WIDE), (SAVED.read_bytes(), PASSWORD)):
        for seed in range(40):
            dice = random.Random(seed)
            data = bytearray(source)
            for _ in range(dice.choice([1, 8, 60])):
                data[dice.randrange(8, len(data))] = dice.randrange(256)
            (tmp_path / "a").write_bytes(data[: dice.choice([len(data), len(data) // 2, 600])])
            with suppress(BrokenDocumentError, LockedDocumentError):
                unlock(tmp_path / "a", tmp_path / "b", password)


def chain_in_a_circle(data: bytearray) -> bytearray:
    table = 512 + struct.unpack_from("<I", data, 76)[0] * 512
    struct.pack_into("<I", data, table + 8, 0)  # the third sector is followed by the first
    return data


def table_that_follows_itself(data: bytearray) -> bytearray:
    number = (len(data) - 512) // 512
    struct.pack_into("<I", data, 68, number)
    return data + struct.pack("<128I", *[FREE] * 127, number)


def table_cut_short(data: bytearray) -> bytearray:
    struct.pack_into("<I", data, 68, (len(data) - 512) // 512)
    return data + b"\0\0"


@pytest.mark.parametrize("damage", [chain_in_a_circle, table_that_follows_itself, table_cut_short])
def test_sectors_in_disorder_are_given_up(tmp_path: Path, damage: Callable[[bytearray], bytearray]) -> None:
    data = bytearray(compound({"EncryptionInfo": b"x" * 5000, "EncryptedPackage": b"y" * 5000}))
    (tmp_path / "a").write_bytes(damage(data))
    opener = "core.rag.parsers.office_encryption"
    with pytest.raises((BrokenDocumentError, LockedDocumentError)) as caught:
        process.unlock(tmp_path / "a", tmp_path / "b", opener, PASSWORD, Limits(seconds=20))
    assert caught.value.words_key != "document_too_slow"


def test_a_password_hashed_without_end_is_given_up(tmp_path: Path) -> None:
    data = since_2010(archive(), rounds=10).replace(b'spinCount="10"', b'spinCount="99"')
    for said in (b"1000001", b"9999999", b"99999999999"):
        info = data.replace(b'spinCount="99" saltSize="16"', b'spinCount="%s"' % said + b" " * (15 - len(said)))
        (tmp_path / "a").write_bytes(info)
        with pytest.raises((BrokenDocumentError, LockedDocumentError)) as caught:
            unlock(tmp_path / "a", tmp_path / "b", PASSWORD_WIDE)
        assert caught.value.words_key in {"document_broken", "document_locked"}


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


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
@pytest.mark.parametrize("password", ["", PASSWORD])
def test_an_open_document_sheet_with_a_password_says_what_can_be_done(
    tmp_path: Path, path: Path, password: str
) -> None:
    with Library.open(tmp_path / "library") as library:
        with pytest.raises(LockedDocumentError) as caught:
            library.add(path, password=password)
        assert str(caught.value) == "The workbook is protected by a password. Save a copy without a password."
        assert (caught.value.words_key, caught.value.details) == ("document_locked", {})
        assert library.documents() == []
