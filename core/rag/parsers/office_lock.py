"""Office files (DOCX, XLSX, PPTX) with a password: the way of 2007 of encrypting them, and the one since 2010.

Old workbooks (XLS) go to `workbook_lock.py`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError
from core.rag.parsers import workbook_lock
from core.rag.parsers.compound import Compound
from core.rag.parsers.lock_answers import unknown, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_INFO, _PACKAGE = "EncryptionInfo", "EncryptedPackage"
_SEGMENT = 4096  # bytes that have a beginning of their own
_BLOCK = 16  # bytes of AES
_ROUNDS_2007 = 50_000
_MOST_ROUNDS = 10_000_000  # that the format allows
_HASHES = {"SHA1": "sha1", "SHA-1": "sha1", "SHA256": "sha256", "SHA384": "sha384", "SHA512": "sha512"}
_TAG = re.compile(r"<(?:\w+:)?(keyData|encryptedKey)\s([^>]*)>")
_VALUE = re.compile(r'(\w+)\s*=\s*"([^"]*)"')
# What the key is made for.
_INPUT, _CHECK, _KEY = (bytes.fromhex(text) for text in ("fea7d2763b4b9e79", "d7aa0f6d3061344e", "146e0be7abacd0d6"))


def unlock(path: Path, target: Path, password: str) -> bool:
    """Write a copy that asks for no password; whether the file asks for one at all, else nothing is written.

    Raises:
        LockedDocumentError: It is not this one, or nothing here knows how the file is encrypted.
        BrokenDocumentError: It is damaged.
    """
    try:
        compound = Compound(path.read_bytes())
        info, package = compound.get(_INFO), compound.get(_PACKAGE)
        if info is None or package is None:
            return _unlock_workbook(compound, target, password)
        size, pieces = _opened(info, package, password)
        with target.open("wb") as out:
            for piece in pieces:
                out.write(piece)
            out.truncate(size)
    except (struct.error, ValueError, KeyError, binascii.Error) as error:
        raise BrokenDocumentError("The file is damaged: nothing says how it is encrypted.") from error
    return True


def _unlock_workbook(compound: Compound, target: Path, password: str) -> bool:
    workbook = compound.get(workbook_lock.WORKBOOK)
    plain = workbook_lock.opened(workbook, password) if workbook else None
    if plain is None:
        return False
    target.write_bytes(compound.replaced(workbook_lock.WORKBOOK, plain))
    return True


def _opened(info: bytes, package: bytes, password: str) -> tuple[int, Iterator[bytes]]:
    """The size of what is inside, and its bytes."""
    major, minor = struct.unpack_from("<HH", info)
    (size,) = struct.unpack_from("<Q", package)
    inside = memoryview(package)[8:]
    inside = inside[: len(inside) // _BLOCK * _BLOCK]  # some writers fill the last sector up
    size = min(size, len(inside))
    if (major, minor) == (4, 4):
        return size, _since_2010(info[8:].decode("utf-8", errors="replace"), inside, password)
    if minor == 2:
        return size, _of_2007(info, inside, password)
    raise unknown()


@dataclass(frozen=True, slots=True)
class _Lock:
    """What a file says of a key.

    Args:
        salt: Goes into it.
        hash: Makes it.
        size: Its bytes.
    """

    salt: bytes
    hash: Callable[[bytes], bytes]
    size: int

    @classmethod
    def of(cls, values: Mapping[str, str]) -> _Lock:
        if values["cipherAlgorithm"] != "AES" or values["cipherChaining"] != "ChainingModeCBC":
            raise unknown()
        name = _HASHES[values["hashAlgorithm"]]
        return cls(base64.b64decode(values["saltValue"]), _hash(name), int(values["keyBits"]) // 8)

    def begin(self, number: int | None = None) -> bytes:
        """What the first block is mixed with, of the whole or of a segment."""
        made = self.salt if number is None else self.hash(self.salt + struct.pack("<I", number))
        return _sized(made, _BLOCK)


def _hash(name: str) -> Callable[[bytes], bytes]:
    return lambda data: hashlib.new(name, data, usedforsecurity=False).digest()


def _since_2010(told: str, inside: memoryview, password: str) -> Iterator[bytes]:
    found = {tag: dict(_VALUE.findall(values)) for tag, values in _TAG.findall(told)}
    of_data, of_key = found["keyData"], found["encryptedKey"]
    data, lock = _Lock.of(of_data), _Lock.of(of_key)
    rounds = int(of_key["spinCount"])
    if rounds > _MOST_ROUNDS:
        raise ValueError(rounds)
    made = _slowly(lock, password, rounds)

    def told_by(name: str, purpose: bytes) -> bytes:
        key = _sized(lock.hash(made + purpose), lock.size)
        return _cbc(key, lock.begin(), base64.b64decode(of_key[name]))

    check = lock.hash(told_by("encryptedVerifierHashInput", _INPUT))
    if told_by("encryptedVerifierHashValue", _CHECK)[: len(check)] != check:
        raise wrong()
    key = told_by("encryptedKeyValue", _KEY)[: lock.size]
    return (
        _cbc(key, data.begin(number), bytes(inside[at : at + _SEGMENT]))
        for number, at in enumerate(range(0, len(inside), _SEGMENT))
    )


def _of_2007(info: bytes, inside: memoryview, password: str) -> Iterator[bytes]:
    (length,) = struct.unpack_from("<I", info, 8)
    algorithm, _, bits = struct.unpack_from("<III", info, 20)
    if algorithm not in {0x660E, 0x660F, 0x6610}:  # AES with three sizes of keys
        raise unknown()
    salt, verifier, check = struct.unpack_from("<4x16s16s4x32s", info, 12 + length)
    lock = _Lock(salt, _hash("sha1"), bits // 8)
    last = lock.hash(_slowly(lock, password, _ROUNDS_2007) + struct.pack("<I", 0))
    halves = (lock.hash(bytes(one ^ mask for one in last.ljust(64, b"\0"))) for mask in (0x36, 0x5C))
    key = b"".join(halves)[: lock.size]
    if lock.hash(_ecb(key, verifier)) != _ecb(key, check)[:20]:
        raise wrong()
    step = 256 * _SEGMENT
    return (_ecb(key, bytes(inside[at : at + step])) for at in range(0, len(inside), step))


def _slowly(lock: _Lock, password: str, rounds: int) -> bytes:
    """Hashed again and again, so that nobody tries many passwords."""
    made = lock.hash(lock.salt + password.encode("utf-16-le", errors="surrogatepass"))
    pack = struct.Struct("<I").pack
    for number in range(rounds):
        made = lock.hash(pack(number) + made)
    return made


def _sized(data: bytes, size: int) -> bytes:
    return data[:size].ljust(size, b"\x36")


def _cbc(key: bytes, begin: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import modes

    return _decrypted(key, modes.CBC(begin), data)


def _ecb(key: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import modes

    return _decrypted(key, modes.ECB(), data)  # noqa: S305 - so the format is


def _decrypted(key: bytes, mode: Any, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    reader = Cipher(algorithms.AES(key), mode).decryptor()
    return reader.update(data) + reader.finalize()
