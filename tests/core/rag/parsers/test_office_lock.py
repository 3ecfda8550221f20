"""Office files with a password: opened with it, and with nothing else."""

from __future__ import annotations

import base64
import hashlib
import io
import random
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.library import Library
from core.rag.parsers import process
from core.rag.parsers.compound import Compound
from core.rag.parsers.office_lock import unlock
from core.rag.parsers.process import Limits
from tests.core.rag.parsers.compound_file import FREE, compound

PASSWORD = "öffne dich 开门"
ROUNDS = 1000


def _cipher(key: bytes, mode: modes.CBC | modes.ECB, data: bytes) -> bytes:
    writer = Cipher(algorithms.AES(key), mode).encryptor()
    return writer.update(data.ljust(-(-len(data) // 16) * 16, b"\0")) + writer.finalize()


def since_2010(plain: bytes, password: str = PASSWORD, rounds: int = ROUNDS, name: str = "SHA512") -> bytes:
    """As Word encrypts since 2010, by the published description."""

    def digest(data: bytes) -> bytes:
        return hashlib.new(name.lower(), data).digest()

    dice = random.Random(5)
    data_salt, salt, key, verifier = (dice.randbytes(size) for size in (16, 16, 32, 16))
    made = digest(salt + password.encode("utf-16-le"))
    for number in range(rounds):
        made = digest(struct.pack("<I", number) + made)

    def sealed(purpose: str, data: bytes) -> str:
        own = digest(made + bytes.fromhex(purpose))[:32].ljust(32, b"\x36")
        return base64.b64encode(_cipher(own, modes.CBC(salt), data)).decode()

    size = len(digest(b""))
    common = f'blockSize="16" keyBits="256" hashSize="{size}" cipherAlgorithm="AES" cipherChaining="ChainingModeCBC"'
    told = (
        f'<encryption><keyData saltSize="16" {common} hashAlgorithm="{name}" '
        f'saltValue="{base64.b64encode(data_salt).decode()}"/><keyEncryptors><keyEncryptor><p:encryptedKey '
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


def of_2007(plain: bytes, password: str = PASSWORD) -> bytes:
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


Lock = Callable[[bytes], bytes]
LOCKS = [pytest.param(since_2010, id="since 2010"), pytest.param(of_2007, id="of 2007")]


@pytest.fixture
def docx() -> bytes:
    from docx import Document

    out = io.BytesIO()
    document = Document()
    document.add_paragraph("The lamp is green.")
    document.save(out)
    return out.getvalue()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_word_document_is_read_with_its_password(tmp_path: Path, docx: bytes, lock: Lock) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(lock(docx))
    with Library.open(tmp_path / "library") as library:
        document = library.add(path, password=PASSWORD)
        assert [passage.text for passage in library.find("lamp")] == ["The lamp is green."]
        assert (tmp_path / "library" / "originals" / document.id).read_bytes() == docx


@pytest.mark.parametrize("lock", LOCKS)
@pytest.mark.parametrize(("password", "key"), [("", "document_locked"), ("wrong", "document_password_wrong")])
def test_without_it_it_stays_closed(tmp_path: Path, docx: bytes, lock: Lock, password: str, key: str) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(lock(docx))
    with Library.open(tmp_path / "library") as library:
        with pytest.raises(LockedDocumentError) as caught:
            library.add(path, password=password)
        assert caught.value.words_key == key
        assert library.documents() == []


@pytest.mark.parametrize("size", [0, 1, 15, 16, 4095, 4096, 4097, 200_000])
@pytest.mark.parametrize("lock", LOCKS)
def test_what_is_inside_comes_out_byte_by_byte(tmp_path: Path, lock: Lock, size: int) -> None:
    plain = random.Random(size).randbytes(size)
    (tmp_path / "a").write_bytes(lock(plain))
    assert unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
    assert (tmp_path / "b").read_bytes() == plain


@pytest.mark.parametrize("name", ["SHA1", "SHA256", "SHA384"])
def test_all_hashes_of_the_format_are_known(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_bytes(since_2010(b"inside", name=name))
    assert unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
    assert (tmp_path / "b").read_bytes() == b"inside"


def test_a_compound_file_that_is_not_encrypted_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(compound({"WordDocument": b"x" * 5000, "Small": b"y" * 70}))
    assert not unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
    assert not (tmp_path / "b").exists()
    found = Compound((tmp_path / "a").read_bytes())
    assert (found.get("WordDocument"), found.get("Small")) == (b"x" * 5000, b"y" * 70)


@pytest.mark.parametrize("seed", range(40))
def test_flipped_and_missing_bytes_cost_that_file_only(tmp_path: Path, docx: bytes, seed: int) -> None:
    dice = random.Random(seed)
    data = bytearray(since_2010(docx, rounds=10))
    for _ in range(dice.choice([1, 8, 60])):
        data[dice.randrange(8, len(data))] = dice.randrange(256)
    (tmp_path / "a").write_bytes(data[: dice.choice([len(data), len(data) // 2, 600])])
    with suppress(BrokenDocumentError, LockedDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)


def test_a_chain_that_bites_its_tail_is_given_up(tmp_path: Path) -> None:
    data = bytearray(compound({"EncryptionInfo": b"x" * 5000, "EncryptedPackage": b"y" * 5000}))
    table = 512 + struct.unpack_from("<I", data, 76)[0] * 512
    struct.pack_into("<I", data, table + 8, 0)  # the third sector is followed by the first
    with pytest.raises(BrokenDocumentError):
        Compound(bytes(data)).get("EncryptionInfo")


def test_table_sectors_that_follow_themselves_are_given_up() -> None:
    data = bytearray(compound({"EncryptionInfo": b"x" * 5000}))
    number = (len(data) - 512) // 512
    struct.pack_into("<I", data, 68, number)
    data += struct.pack("<128I", *[FREE] * 127, number)
    read: list[int] = []

    class Counted(Compound):
        def _sector(self, number: int) -> memoryview:
            read.append(number)
            assert len(read) < 1000
            return super()._sector(number)

    with pytest.raises(BrokenDocumentError):
        Counted(bytes(data))


def test_a_table_sector_that_is_cut_short_is_damage(tmp_path: Path) -> None:
    data = bytearray(compound({"EncryptionInfo": b"x" * 5000}))
    struct.pack_into("<I", data, 68, (len(data) - 512) // 512)
    (tmp_path / "a").write_bytes(data + b"\0\0")
    with pytest.raises(BrokenDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)


@pytest.mark.parametrize("lock", LOCKS)
def test_what_follows_the_last_block_is_left_out(tmp_path: Path, lock: Lock) -> None:
    plain = random.Random(7).randbytes(4096 + 40)
    locked = Compound(lock(plain))
    info, package = locked.get("EncryptionInfo"), locked.get("EncryptedPackage")
    assert info is not None
    assert package is not None
    (tmp_path / "a").write_bytes(compound({"EncryptionInfo": info, "EncryptedPackage": package + b"more"}))
    assert unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
    assert (tmp_path / "b").read_bytes() == plain


def test_a_password_hashed_without_end_is_given_up(tmp_path: Path) -> None:
    data = since_2010(b"inside", rounds=10).replace(b'spinCount="10"', b'spinCount="99"')
    for said in (b"9999999", b"99999999999"):
        info = data.replace(b'spinCount="99" saltSize="16"', b'spinCount="%s"' % said + b" " * (15 - len(said)))
        (tmp_path / "a").write_bytes(info)
        with pytest.raises(BrokenDocumentError) as caught:
            process.unlock(tmp_path / "a", tmp_path / "b", "core.rag.parsers.office_lock", PASSWORD, Limits(seconds=1))
        assert caught.value.words_key in {"document_too_slow", "document_broken"}
