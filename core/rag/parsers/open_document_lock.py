"""OpenDocument sheets (ODS) with a password: the parts of the package encrypted one by one, or all of it as one part.

The package's manifest says how: ODF 1.2, part 3, sections 3.4 and 4.8. Since 24.2 LibreOffice puts a whole package into
another as its only part, as ODF 1.5 will, with Argon2id and AES in GCM.
"""

from __future__ import annotations

import base64
import hashlib
import lzma
import re
import zipfile
import zlib
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError
from core.rag.parsers.lock_answers import unknown, wrong
from core.rag.parsers.zip_limits import check_sizes, check_zip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_MANIFEST, _PACKAGE = "META-INF/manifest.xml", "encrypted-package"
_AES = re.compile(r"aes(128|192|256)-(cbc|gcm)")
_BLOWFISH = frozenset({"blowfish cfb", "blowfish"})
_BLOWFISH_KEYS = range(4, 57)  # bytes
_HASHES = frozenset({"sha1", "sha256"})
_FIRST = 1024  # bytes that a checksum is usually of
# The files themselves say 1,024 to 100,000 rounds, and 64 MB.
_MOST_ROUNDS = 10_000_000
_MOST_PASSES = 1_000
_MOST_MEMORY = 512 * 1024  # KiB
_MOST_LANES = 64
_PIECE = 64 * 1024
# `RuntimeError`: the archive's own encryption or, as `NotImplementedError`, a packing that nobody knows.
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError)
_NONSENSE = (LookupError, ValueError, OverflowError)

Told = dict[str, dict[str, str]]  # the elements of one of the manifest's entries, and their attributes


def unlock(path: Path, target: Path, password: str) -> bool:
    """Write a copy that asks for no password; whether the file asks for one at all, else nothing is written.

    Raises:
        LockedDocumentError: It is not this one, or nothing here knows how the file is encrypted.
        BrokenDocumentError: It is damaged, or too large inside.
    """
    check_zip(path)
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest(archive)
            parts = _parts(manifest, archive)
            if not parts:
                return False
            check_sizes([_unpacked(entry, parts) for entry in archive.infolist()])
            # Where one fits, the password does: another that does not fit may be damaged.
            if not any(part.fits(part.opened(_read(archive, name), password)) for name, part in parts.items()):
                raise wrong()
            if _PACKAGE in parts:
                with target.open("wb") as out:
                    for piece in parts[_PACKAGE].content(_read(archive, _PACKAGE), password):
                        out.write(piece)
            else:
                _copy(archive, target, manifest, parts, password)
    except _damage() as error:
        raise BrokenDocumentError("The file is damaged: it cannot be decrypted.") from error
    return True


def asks(path: Path) -> bool:
    """Whether an archive is a package that asks for a password; a damaged one does not."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(_parts(_manifest(archive), archive))
    except _damage():
        return False


@dataclass(frozen=True, slots=True)
class _Part:
    """A part that is encrypted.

    Args:
        size: Bytes of its content.
        told: How it is encrypted.
    """

    size: int
    told: Told

    def content(self, data: bytes, password: str) -> Iterator[bytes]:
        """What is in it, piece by piece."""
        packed = self.opened(data, password)
        reader = zlib.decompressobj(-zlib.MAX_WBITS)
        left = self.size
        for at in range(0, len(packed), _PIECE):
            piece = reader.decompress(packed[at : at + _PIECE], left + 1)
            left -= len(piece)
            if left < 0 or reader.eof:
                break
            yield piece
        else:
            piece = b""
        if left or not reader.eof:
            raise ValueError(self.size)
        yield piece

    def opened(self, data: bytes, password: str) -> bytes:
        """The part as it was deflated; noise if the password is another and nothing but a checksum can tell."""
        told = self.told["algorithm"]
        begin, name = base64.b64decode(told["initialisation-vector"]), _name(told["algorithm-name"])
        if name in _BLOWFISH:
            return _blowfish(self._key(password, None), begin, data)
        if not (aes := _AES.fullmatch(name)):
            raise unknown()
        key = self._key(password, int(aes[1]) // 8)
        return _cbc(key, begin, data) if aes[2] == "cbc" else _gcm(key, begin, data)

    def fits(self, packed: bytes) -> bool:
        """Whether what was decrypted is as it was."""
        told = self.told["encryption-data"]
        if "checksum" not in told:  # GCM has one of its own
            return True
        name, _, first = _name(told["checksum-type"]).partition("-")
        if name not in _HASHES:
            raise unknown()
        made = hashlib.new(name, packed[:_FIRST] if first else packed, usedforsecurity=False).digest()
        return made == base64.b64decode(told["checksum"])

    def _key(self, password: str, size: int | None) -> bytes:
        start = _name(self.told.get("start-key-generation", {}).get("start-key-generation-name", "SHA1"))
        if start not in _HASHES:
            raise unknown()
        first = hashlib.new(start, password.encode("utf-8", errors="surrogatepass"), usedforsecurity=False).digest()
        told = self.told["key-derivation"]
        salt = base64.b64decode(told["salt"])
        match _name(told["key-derivation-name"]):
            case "pbkdf2":
                size = size or _within(told.get("key-size", "16"), _BLOWFISH_KEYS)
                rounds = _within(told.get("iteration-count", "1024"), range(1, _MOST_ROUNDS + 1))
                return hashlib.pbkdf2_hmac("sha1", first, salt, rounds, size)
            case "argon2id":
                return _argon2(first, salt, told, size or _within(told["key-size"], _BLOWFISH_KEYS))
            case _:  # a key of OpenPGP among them
                raise unknown()


def _etree() -> Any:
    return import_module("lxml.etree")


def _damage() -> tuple[type[Exception], ...]:
    """What damage raises, of the archive, of its list of parts and of what that says."""
    return (*_DAMAGE, *_NONSENSE, _etree().LxmlError)


def _manifest(archive: zipfile.ZipFile) -> Any:
    """The root of the package's list of its parts, empty if there is none."""
    etree = _etree()
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True)
    return etree.fromstring(_read(archive, _MANIFEST) if _MANIFEST in archive.NameToInfo else b"<none/>", parser)


def _parts(manifest: Any, archive: zipfile.ZipFile) -> dict[str, _Part]:
    """The parts of the archive that are encrypted."""
    parts: dict[str, _Part] = {}
    for entry in manifest.iter("{*}file-entry"):
        told: Told = {
            _local(one.tag): {_local(name): str(value) for name, value in one.attrib.items()} for one in entry.iter("*")
        }
        if "encryption-data" in told and (path := told["file-entry"]["full-path"]) in archive.NameToInfo:
            parts[path] = _Part(int(told["file-entry"]["size"]), told)
    return parts


def _unpacked(entry: zipfile.ZipInfo, parts: Mapping[str, _Part]) -> zipfile.ZipInfo:
    """The same entry with the size of what is in it."""
    if entry.filename not in parts:
        return entry
    told = zipfile.ZipInfo(entry.filename)
    told.compress_size, told.file_size = entry.compress_size, max(entry.file_size, parts[entry.filename].size)
    return told


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except OSError as error:  # of a damaged archive, not of the disk that the copy is written to
        raise ValueError(name) from error


def _copy(archive: zipfile.ZipFile, target: Path, manifest: Any, parts: Mapping[str, _Part], password: str) -> None:
    """The package once more, with nothing in it encrypted."""
    for told in list(manifest.iter("{*}encryption-data")):
        told.getparent().remove(told)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in archive.NameToInfo:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            data = _read(archive, name)
            with copy.open(entry, "w") as out:
                if name == _MANIFEST:
                    out.write(_etree().tostring(manifest, xml_declaration=True, encoding="UTF-8"))
                elif name in parts:
                    for piece in parts[name].content(data, password):
                        out.write(piece)
                else:
                    out.write(data)


def _local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def _name(told: str) -> str:
    """The name of an algorithm, which is written shortly or as the end of an address."""
    return re.split("[#:]", told)[-1].lower().replace("/", "-")


def _within(told: str, numbers: range) -> int:
    if (number := int(told)) not in numbers:
        raise ValueError(told[:20])
    return number


def _argon2(first: bytes, salt: bytes, told: Mapping[str, str], size: int) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    passes, memory, lanes = (
        _within(told[f"argon2-{name}"], range(1, most + 1))
        for name, most in (("iterations", _MOST_PASSES), ("memory", _MOST_MEMORY), ("lanes", _MOST_LANES))
    )
    try:
        maker = Argon2id(salt=salt, length=size, iterations=passes, lanes=lanes, memory_cost=memory)
    except UnsupportedAlgorithm as error:  # built with an old OpenSSL
        raise unknown() from error
    return maker.derive(first)


def _cbc(key: bytes, begin: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    reader = Cipher(algorithms.AES(key), modes.CBC(begin)).decryptor()
    plain = reader.update(data) + reader.finalize()
    return plain[: -plain[-1]] if plain and plain[-1] in range(1, 17) else plain


def _gcm(key: bytes, begin: bytes, data: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(begin, data.removeprefix(begin), None)
    except InvalidTag as error:  # or it is damaged: nothing tells which
        raise wrong() from error


def _blowfish(key: bytes, begin: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
    from cryptography.hazmat.decrepit.ciphers.modes import CFB
    from cryptography.hazmat.primitives.ciphers import Cipher

    reader = Cipher(Blowfish(key), CFB(begin)).decryptor()
    return reader.update(data) + reader.finalize()
