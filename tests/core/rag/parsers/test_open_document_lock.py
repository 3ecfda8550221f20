"""OpenDocument sheets with a password: opened with it, in each way of encrypting them, and with nothing else.

`towns-locked.ods` and `towns-locked-1.1.ods` were saved by LibreOffice 7.4, as ODF 1.3 (AES) and as ODF 1.1 (Blowfish).
The other ways are written here, by their published description.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import random
import re
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from core.errors import BrokenDocumentError, LockedDocumentError
from core.rag.library import Library
from core.rag.parsers import process
from core.rag.parsers.open_document_lock import unlock
from core.rag.parsers.process import Limits, Parsed

HERE = Path(__file__).parent
SAVED = [HERE / "towns-locked.ods", HERE / "towns-locked-1.1.ods"]
SAVED_WITH = "open sesame"
PASSWORD = "öffne dich 开门"
OPENER = "core.rag.parsers.open_document_lock"
KIND = "application/vnd.oasis.opendocument.spreadsheet"
SPACE = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
MANIFEST, WORD = "META-INF/manifest.xml", "lamplight"  # the word of the shared files
NOISE = random.Random(4).randbytes(5_000)

Parts = dict[str, bytes]
Read = Callable[..., Parsed]
Lock = Callable[..., bytes]


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def deflated(data: bytes) -> bytes:
    writer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return writer.compress(data) + writer.flush()


def stretched(start: bytes, salt: bytes, rounds: int, size: int) -> bytes:
    """PBKDF2 with HMAC-SHA1."""
    made, block = b"", 1
    while len(made) < size:
        turn = hmac.digest(start, salt + block.to_bytes(4, "big"), "sha1")
        mixed = int.from_bytes(turn, "big")
        for _ in range(rounds - 1):
            turn = hmac.digest(start, turn, "sha1")
            mixed ^= int.from_bytes(turn, "big")
        made, block = made + mixed.to_bytes(20, "big"), block + 1
    return made[:size]


def aes_cbc(key: bytes, begin: bytes, data: bytes) -> bytes:
    """Padded as XML Encryption has it: only the last byte counts."""
    short = 16 - len(data) % 16
    writer = Cipher(algorithms.AES(key), modes.CBC(begin)).encryptor()
    return writer.update(data + NOISE[: short - 1] + bytes([short])) + writer.finalize()


def blowfish_cfb(key: bytes, begin: bytes, data: bytes) -> bytes:
    block = Cipher(Blowfish(key), modes.ECB()).encryptor()
    out = b""
    for at in range(0, len(data), 8):
        begin = bytes(one ^ mask for one, mask in zip(data[at : at + 8], block.update(begin), strict=False))
        out += begin
    return out


def zipped(parts: Parts, rest: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("mimetype", KIND)
        for name, data in parts.items():
            archive.writestr(name, data)
        archive.writestr(
            "META-INF/manifest.xml",
            f'<?xml version="1.0"?><manifest:manifest xmlns:manifest="{SPACE}" xmlns:loext="urn:loext">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{KIND}"/>{rest}</manifest:manifest>',
            zipfile.ZIP_DEFLATED,
        )
    return out.getvalue()


def element(name: str, **told: object) -> str:
    said = "".join(f' manifest:{key.replace("_", "-")}="{value}"' for key, value in told.items())
    return f"<manifest:{name}{said}/>"


def entry(name: str, size: int, how: str, **checksum: str) -> str:
    opening = element("encryption-data", **checksum).removesuffix("/>")
    outer = element("file-entry", full_path=name, media_type="text/xml", size=size).removesuffix("/>")
    return f"{outer}>{opening}>{how}</manifest:encryption-data></manifest:file-entry>"


def of_1_2(parts: Parts, password: str = PASSWORD, checksum: str = f"{SPACE}#sha256-1k") -> bytes:
    """As ODF 1.2 encrypts: SHA-256 and AES."""
    sealed, said, dice = dict[str, bytes](), "", random.Random(1)
    for name, data in parts.items():
        salt, begin, packed = dice.randbytes(16), dice.randbytes(16), deflated(data)
        key = stretched(hashlib.sha256(password.encode()).digest(), salt, 40, 32)
        sealed[name] = aes_cbc(key, begin, packed)
        how = element(
            "algorithm",
            algorithm_name="http://www.w3.org/2001/04/xmlenc#aes256-cbc",
            initialisation_vector=base64_of(begin),
        )
        how += element("start-key-generation", start_key_generation_name=f"{SPACE}#sha256", key_size=32)
        how += element(
            "key-derivation", key_derivation_name="PBKDF2", key_size=32, iteration_count=40, salt=base64_of(salt)
        )
        check = hashlib.sha256(packed[:1024] if checksum.endswith("1k") else packed).digest()
        said += entry(name, len(data), how, checksum_type=checksum, checksum=base64_of(check))
    return zipped(sealed, said)


def of_1_1(parts: Parts, password: str = PASSWORD) -> bytes:
    """As ODF 1.0 and 1.1 encrypt: SHA-1 and Blowfish, which need not be said."""
    sealed, said, dice = dict[str, bytes](), "", random.Random(2)
    for name, data in parts.items():
        salt, begin, packed = dice.randbytes(16), dice.randbytes(8), deflated(data)
        key = stretched(hashlib.sha1(password.encode()).digest(), salt, 1024, 16)
        sealed[name] = blowfish_cfb(key, begin, packed)
        how = element("algorithm", algorithm_name="Blowfish CFB", initialisation_vector=base64_of(begin))
        how += element("key-derivation", key_derivation_name="PBKDF2", iteration_count=1024, salt=base64_of(salt))
        check = base64_of(hashlib.sha1(packed[:1024]).digest())
        said += entry(name, len(data), how, checksum_type="SHA1/1K", checksum=check)
    return zipped(sealed, said)


def as_a_whole(parts: Parts, password: str = PASSWORD) -> bytes:
    """As LibreOffice encrypts since 24.2: a package in a package, with Argon2id and AES in GCM."""
    inner, dice = zipped(parts), random.Random(3)
    salt, begin = dice.randbytes(16), dice.randbytes(12)
    start = hashlib.sha256(password.encode()).digest()
    key = Argon2id(salt=salt, length=32, iterations=2, lanes=2, memory_cost=64).derive(start)
    writer = Cipher(algorithms.AES(key), modes.GCM(begin)).encryptor()
    sealed = begin + writer.update(deflated(inner)) + writer.finalize() + writer.tag
    how = element(
        "algorithm",
        algorithm_name="http://www.w3.org/2009/xmlenc11#aes256-gcm",
        initialisation_vector=base64_of(begin),
    )
    how += element(
        "start-key-generation",
        start_key_generation_name="http://www.w3.org/2001/04/xmlenc#sha256",
        key_size=32,
    )
    how += element(
        "key-derivation",
        key_derivation_name="urn:org:documentfoundation:names:experimental:office:manifest:argon2id",
        key_size=32,
        salt=base64_of(salt),
    ).replace("/>", ' loext:argon2-iterations="2" loext:argon2-memory="64" loext:argon2-lanes="2"/>')
    return zipped({"encrypted-package": sealed}, entry("encrypted-package", len(inner), how))


LOCKS = [
    pytest.param(of_1_2, id="ODF 1.2"),
    pytest.param(of_1_1, id="ODF 1.1"),
    pytest.param(as_a_whole, id="the whole package"),
]


def retold(locked: bytes, old: str, new: str) -> bytes:
    """The same archive with another manifest; `old` is a pattern."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(locked)) as before, zipfile.ZipFile(out, "w") as after:
        for name in before.namelist():
            data = before.read(name)
            if name.endswith("manifest.xml"):
                data, count = re.subn(old.encode(), new.encode(), data)
                assert count
            after.writestr(name, data)
    return out.getvalue()


def parts_of(path: Path) -> Parts:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name not in {"mimetype", MANIFEST}}


@pytest.fixture
def content(files: dict[str, bytes]) -> Parts:
    """What a good sheet holds."""
    with zipfile.ZipFile(io.BytesIO(files["ods"])) as archive:
        return {"content.xml": archive.read("content.xml"), "Pictures/a.png": NOISE, "empty": b""}


@pytest.mark.parametrize("saved", SAVED, ids=["ODF 1.3", "ODF 1.1"])
def test_a_sheet_that_an_office_program_locked_is_read_with_its_password(tmp_path: Path, saved: Path) -> None:
    with Library.open(tmp_path / "library") as library:
        with pytest.raises(LockedDocumentError) as caught:
            library.add(saved)
        assert (caught.value.words_key, caught.value.details) == ("document_locked", {"asks": True})
        with pytest.raises(LockedDocumentError) as caught:
            library.add(saved, password="open sesam")
        assert caught.value.words_key == "document_password_wrong"
        assert library.documents() == []
        document = library.add(saved, password=SAVED_WITH)
        assert document.media_type == KIND
        (passage,) = library.find("Zürich")
        assert passage.text == (
            "Town | Inhabitants\nTown 1 | 1000.5\nTown 2 | 2001\nTown 3 | 3001.5\nTown 4 | 4002\nTown 5 | 5002.5\n"
            "Zürich 北京 | 421878"
        )
        assert library.add(saved, again=True).status == "ready"  # from its copy, which asks for nothing
        kept = sorted(one.name for one in (tmp_path / "library" / "originals").iterdir() if one.is_file())
        assert all(one.startswith(document.id) for one in kept)  # nothing else stays


@pytest.mark.parametrize("lock", LOCKS)
def test_each_way_of_locking_is_known(tmp_path: Path, read: Read, content: Parts, lock: Lock) -> None:
    path, target = tmp_path / "a.ods", tmp_path / "b.ods"
    path.write_bytes(lock(content))
    with pytest.raises(LockedDocumentError) as caught:
        read(path)
    assert (caught.value.words_key, caught.value.details) == ("document_locked", {"asks": True})
    for wrong in ("", "öffne dich 开", "\ud800"):
        with pytest.raises(LockedDocumentError) as caught:
            unlock(path, target, wrong)
        assert caught.value.words_key == "document_password_wrong"
        assert not target.exists()
    assert unlock(path, target, PASSWORD)
    assert parts_of(target) == content
    assert WORD in " ".join(block.text for block in read(target).blocks)
    assert not unlock(target, tmp_path / "c.ods", PASSWORD)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 1023, 1024, 1025, 300_000])
@pytest.mark.parametrize("lock", LOCKS)
def test_what_is_inside_comes_out_byte_by_byte(tmp_path: Path, lock: Lock, size: int) -> None:
    parts = {"content.xml": random.Random(size).randbytes(size), "styles.xml": b"<a/>" * size}
    (tmp_path / "a").write_bytes(lock(parts))
    assert unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
    assert parts_of(tmp_path / "b") == parts


@pytest.mark.parametrize("name", ["http://www.w3.org/2000/09/xmldsig#sha256", "SHA256"])
def test_a_checksum_of_all_bytes_is_known_too(tmp_path: Path, content: Parts, name: str) -> None:
    (tmp_path / "a").write_bytes(of_1_2(content, checksum=name))
    assert unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
    assert parts_of(tmp_path / "b") == content


def test_a_sheet_that_is_not_locked_is_left_as_it_is(tmp_path: Path, files: dict[str, bytes]) -> None:
    path = tmp_path / "a.ods"
    path.write_bytes(files["ods"])
    assert not unlock(path, tmp_path / "b.ods", PASSWORD)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content.xml", "<a/>")
    assert not unlock(path, tmp_path / "b.ods", PASSWORD)
    assert not (tmp_path / "b.ods").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"PBKDF2"', '"PGP"', id="a key of OpenPGP"),
        pytest.param("#aes256-cbc", "#tripledes-cbc", id="another cipher"),
        pytest.param("1.0#sha256", "1.0#sha3-512", id="another hash"),
    ],
)
def test_a_way_that_nobody_knows_is_said(tmp_path: Path, content: Parts, old: str, new: str) -> None:
    (tmp_path / "a").write_bytes(retold(of_1_2(content), old, new))
    with pytest.raises(LockedDocumentError, match="not known") as caught:
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
    assert (caught.value.words_key, caught.value.details) == ("document_locked", {})


def test_a_password_hashed_without_end_is_given_up(tmp_path: Path, content: Parts) -> None:
    for rounds, key in (("9999999", "document_too_slow"), ("1000000000000", "document_broken")):
        locked = retold(of_1_2(content), 'iteration-count="40"', f'iteration-count="{rounds}"')
        (tmp_path / "a").write_bytes(locked)
        with pytest.raises(BrokenDocumentError) as caught:
            process.unlock(tmp_path / "a", tmp_path / "b", OPENER, PASSWORD, Limits(seconds=1))
        assert caught.value.words_key == key


@pytest.mark.parametrize("name", ["iterations", "memory", "lanes"])
@pytest.mark.parametrize("said", ["0", "-1", "9999999", "1000000000000", "many", "9" * 5_000])
def test_a_key_that_would_fill_the_memory_is_not_made(tmp_path: Path, content: Parts, name: str, said: str) -> None:
    (tmp_path / "a").write_bytes(retold(as_a_whole(content), f'argon2-{name}="\\d+"', f'argon2-{name}="{said}"'))
    with pytest.raises(BrokenDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)


def test_the_worker_has_room_for_the_key_that_libreoffice_makes(tmp_path: Path, content: Parts) -> None:
    locked = as_a_whole(content)
    for name, said in (("iterations", 3), ("memory", 65536), ("lanes", 4)):
        locked = retold(locked, f'argon2-{name}="\\d+"', f'argon2-{name}="{said}"')
    (tmp_path / "a").write_bytes(locked)
    with pytest.raises(LockedDocumentError) as caught:  # it is another key, but one was made
        process.unlock(tmp_path / "a", tmp_path / "b", OPENER, PASSWORD, Limits())
    assert caught.value.words_key == "document_password_wrong"


@pytest.mark.parametrize("lock", LOCKS)
def test_what_grows_too_large_is_not_unpacked(tmp_path: Path, lock: Lock) -> None:
    (tmp_path / "a").write_bytes(lock({"content.xml": bytes(30_000_000)}))
    with pytest.raises(BrokenDocumentError) as caught:
        process.unlock(tmp_path / "a", tmp_path / "b", OPENER, PASSWORD, Limits())
    assert caught.value.words_key == "document_too_large"


@pytest.mark.parametrize("said", ["29999", "30001", "0", "-1", "some"])
@pytest.mark.parametrize("lock", [of_1_2, of_1_1])
def test_a_part_of_another_size_than_is_said_is_damage(tmp_path: Path, lock: Lock, said: str) -> None:
    locked = lock({"content.xml": bytes(30_000)})
    (tmp_path / "a").write_bytes(retold(locked, 'manifest:size="30000"', f'manifest:size="{said}"'))
    with pytest.raises(BrokenDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)


def test_a_damaged_part_is_no_other_password(tmp_path: Path, content: Parts) -> None:
    sealed = bytearray(of_1_2({**content, "z.xml": NOISE}))
    at = sealed.index(b"z.xml") + 5
    sealed[at : at + 2_000] = NOISE[:2_000]
    with zipfile.ZipFile(io.BytesIO(sealed)) as archive:
        told = archive.getinfo("z.xml")
        check = zlib.crc32(sealed[at : at + told.file_size])
    changed = bytes(sealed).replace(told.CRC.to_bytes(4, "little"), check.to_bytes(4, "little"))
    (tmp_path / "a").write_bytes(changed)
    with pytest.raises(BrokenDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("lock", LOCKS)
def test_flipped_and_missing_bytes_cost_that_file_only(tmp_path: Path, content: Parts, lock: Lock, seed: int) -> None:
    dice = random.Random(seed)
    data = bytearray(lock(content))
    for _ in range(dice.choice([1, 8, 60])):
        data[dice.randrange(8, len(data))] = dice.randrange(256)
    (tmp_path / "a").write_bytes(data[: dice.choice([len(data), len(data), len(data) // 2, 600])])
    with suppress(BrokenDocumentError, LockedDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("lock", LOCKS)
def test_whatever_the_manifest_says_it_costs_that_file_only(
    tmp_path: Path, content: Parts, lock: Lock, seed: int
) -> None:
    dice = random.Random(seed)
    with zipfile.ZipFile(io.BytesIO(lock(content))) as archive:
        values = re.findall(r'[\w-]+="[^"]*"', archive.read(MANIFEST).decode())
    name, _, value = dice.choice(values).partition("=")
    others = [
        "",
        "0",
        "-1",
        "65",
        "AAAA",
        "=",
        "ü",
        "#",
        "PBKDF2",
        value.strip('"')[:-1],
        dice.choice(values).split('"')[1],
    ]
    old = re.escape(f"{name}={value}")
    (tmp_path / "a").write_bytes(retold(lock(content), old, f'{name}="{dice.choice(others)}"'))
    with suppress(BrokenDocumentError, LockedDocumentError):
        unlock(tmp_path / "a", tmp_path / "b", PASSWORD)
