"""Workbooks of Excel 97 to 2003 (XLS) with a password: RC4 in its two ways, and the older XOR.

A workbook is a stream of records: their heads stay readable, and so do the few records that a program needs before it
can ask. RC4 begins anew every 1,024 bytes, counted over all of them.
"""

from __future__ import annotations

import hashlib
import struct
from itertools import islice
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError
from core.rag.parsers.compound import Compound
from core.rag.parsers.lock_answers import unknown, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORKBOOK = "Workbook"
"""The stream of the compound file in which all sheets are."""
_HEAD = struct.Struct("<HH")  # of a record: what it is, and how long
_BEGINNING, _PASSWORD, _SHEET = 0x809, 0x2F, 0x85
# Never encrypted: the beginnings, what says how, who has it open, and what tells of a shared workbook.
_CLEAR = frozenset({_BEGINNING, _PASSWORD, 0xE1, 0x138, 0x194, 0x195, 0x196})
_CLEAR_OF_SHEET = 4  # where its records begin
_BLOCK = 1024
_LONGEST = 15  # letters that XOR knows of a password
# Each of the places of a letter, from the last; a key is made by shifting and folding them.
_PLACES = struct.unpack(
    ">15H", bytes.fromhex("1021 3331 3730 76b4 aa51 45a0 b861 47d3 eb23 6f45 d849 0375 4563 7b61 aefc")
)
_FOLD = 0x1021
_BEGUN = struct.unpack(
    ">15H", bytes.fromhex("e1f0 1d0f cc9c 84c0 110c 0e10 f1ce 313e 1872 e139 d40f 84f9 280c a96a 4ec3")
)
_FILLED_UP = bytes.fromhex("bbffffbaffffb98000be0f00bf0f00")

Record = tuple[int, int, int]  # what it is, where its content begins, and where it ends


def opened(stream: bytes, password: str) -> bytes | None:
    """The same stream with nothing encrypted, as long as before; `None` if nothing is.

    Args:
        stream: `WORKBOOK` of the compound file.
        password: Opens it.

    Raises:
        LockedDocumentError: It does not, or nothing here knows how the file is encrypted.
        BrokenDocumentError: It is damaged.
    """
    told = _told(stream)
    if told is None:
        return None
    try:
        plain = _plain(stream, told, password)
    except struct.error as error:
        raise BrokenDocumentError("The file is damaged: nothing says how it is encrypted.") from error
    for kind, start, end in _records(stream):
        plain[start - _HEAD.size : start] = stream[start - _HEAD.size : start]
        if kind in _CLEAR:
            plain[start:end] = stream[start:end]
        elif kind == _SHEET:
            plain[start : start + _CLEAR_OF_SHEET] = stream[start : start + _CLEAR_OF_SHEET]
        if kind == _PASSWORD:  # it stays, for records tell where others are, and says nothing
            plain[start - _HEAD.size : end] = _HEAD.pack(0, end - start) + bytes(end - start)
    return bytes(plain)


def asks(data: bytes) -> bool:
    """Whether a compound file is a workbook that asks for a password; a damaged one does not."""
    try:
        return _told(Compound(data).get(WORKBOOK) or b"") is not None
    except (BrokenDocumentError, struct.error):
        return False


def _told(stream: bytes) -> bytes | None:
    """What a workbook that is encrypted says of it, right behind its beginning."""
    first = (stream[start:end] for kind, start, end in islice(_records(stream), 2) if kind == _PASSWORD)
    return next(first, None)


def _records(stream: bytes) -> Iterator[Record]:
    at = 0
    while at + _HEAD.size <= len(stream):
        kind, size = _HEAD.unpack_from(stream, at)
        at += _HEAD.size
        yield kind, at, min(at + size, len(stream))
        at += size


def _plain(stream: bytes, told: bytes, password: str) -> bytearray:
    """Everything decrypted, what is not encrypted too."""
    way, major, minor = struct.unpack_from("<HHH", told)
    if way == 0:
        return _without_xor(stream, told, password)
    if (major, minor) == (1, 1):
        return _without_rc4(stream, _rc4_of_97(told, password))
    if major in {2, 3, 4} and minor == 2:
        return _without_rc4(stream, _rc4_of_2002(told, password))
    raise unknown()


def _rc4_of_97(told: bytes, password: str) -> Callable[[int], bytes]:
    """The keys of blocks, of 40 bits in truth."""
    salt, verifier = struct.unpack_from("<16s32s", told, 6)
    first = _md5((_md5(_utf16(password))[:5] + salt) * 16)[:5]

    def key(block: int) -> bytes:
        return _md5(first + struct.pack("<I", block))

    check = _rc4(key(0), verifier)
    if _md5(check[:16]) != check[16:]:
        raise wrong()
    return key


def _rc4_of_2002(told: bytes, password: str) -> Callable[[int], bytes]:
    """The keys of blocks, of 40 to 128 bits."""
    (length,) = struct.unpack_from("<I", told, 10)
    algorithm, _, bits = struct.unpack_from("<III", told, 22)
    if algorithm != 0x6801:
        raise unknown()
    salt, verifier = struct.unpack_from("<4x16s16s", told, 14 + length)
    (check,) = struct.unpack_from("<4x20s", told, 50 + length)
    first = _sha1(salt + _utf16(password))
    size = (bits or 40) // 8

    def key(block: int) -> bytes:
        made = _sha1(first + struct.pack("<I", block))[:size]
        return made.ljust(16, b"\0") if size == 5 else made

    seen = _rc4(key(0), verifier + check)
    if _sha1(seen[:16]) != seen[16:]:
        raise wrong()
    return key


def _without_rc4(stream: bytes, key: Callable[[int], bytes]) -> bytearray:
    plain = bytearray()
    for block, at in enumerate(range(0, len(stream), _BLOCK)):
        plain += _rc4(key(block), stream[at : at + _BLOCK])
    return plain


def _rc4(key: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
    from cryptography.hazmat.primitives.ciphers import Cipher

    try:
        reader = Cipher(ARC4(key), mode=None).decryptor()
    except ValueError as error:  # a size of keys that there is none of
        raise unknown() from error
    return reader.update(data) + reader.finalize()


def _without_xor(stream: bytes, told: bytes, password: str) -> bytearray:
    key, check = struct.unpack_from("<HH", told, 2)
    letters = bytes((ord(letter) & 0xFF) or (ord(letter) >> 8 & 0xFF) for letter in password)
    if not 0 < len(letters) <= _LONGEST or (_xor_key(letters), _xor_check(letters)) != (key, check):
        raise wrong()
    pairs = key.to_bytes(2, "little") * 8
    mask = bytes(_turned(one ^ two, 2) for one, two in zip((letters + _FILLED_UP)[:16], pairs, strict=True))
    plain = bytearray(stream.translate(bytes(_turned(byte, 3) for byte in range(256))))
    for _, start, end in _records(stream):
        turn = end % 16  # a record's mask begins where the record ends
        own = (mask[turn:] + mask[:turn]) * ((end - start) // 16 + 1)
        mixed = int.from_bytes(plain[start:end]) ^ int.from_bytes(own[: end - start])
        plain[start:end] = mixed.to_bytes(end - start)
    return plain


def _xor_key(letters: bytes) -> int:
    key = _BEGUN[len(letters) - 1]
    for letter, place in zip(reversed(letters), _PLACES, strict=False):
        for bit in range(7):
            if letter >> bit & 1:
                key ^= place
            place = (place << 1 & 0xFFFF) ^ (_FOLD if place & 0x8000 else 0)  # noqa: PLW2901 - the next of the row
    return key


def _xor_check(letters: bytes) -> int:
    check = 0
    for letter in (*reversed(letters), len(letters)):
        check = (check >> 14 & 1 | check << 1 & 0x7FFF) ^ letter
    return check ^ 0xCE4B


def _turned(byte: int, bits: int) -> int:
    return (byte << bits | byte >> (8 - bits)) & 0xFF


def _utf16(password: str) -> bytes:
    return password.encode("utf-16-le", errors="surrogatepass")


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).digest()
