"""A ZIP from elsewhere, of which nothing is believed: names, sizes and links are looked at before it is unpacked."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.importing.problems import problem
from core.storage.data_folder import translated

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import IO

MOST_ENTRIES: Final = 100_000
MOST_BYTES: Final = 8 << 30
"""Bytes of all files together, unpacked."""
_RATIO: Final = 200  # to one; texts of people pack to a tenth
_HARMLESS: Final = 64 << 20  # bytes that may be packed however well
_BLOCK: Final = 1 << 20
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, NotImplementedError, OSError)
_UNREADABLE: Final = (*_BROKEN, ValueError)  # names that are no text
_PACKED: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})  # others take what memory a file asks for


class Archive:
    """What is in a ZIP, by name. Use it in a `with` block.

    Args:
        path: The file.
        name: What the reader calls it.

    Raises:
        UnsupportedFormatError: key `import_damaged_itself`, `import_damaged`, `import_unsafe` or `import_too_large`.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        try:
            self._zip = zipfile.ZipFile(path)
        except _UNREADABLE as error:
            raise problem("import_damaged", file=name, where=name) from error
        try:
            self.sizes = self._checked()
        except BaseException:
            self._zip.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def read(self, name: str, most: int) -> bytes:
        """A whole entry of at most so many bytes.

        Raises:
            UnsupportedFormatError: key `import_damaged` or `import_too_large`.
        """
        if self.sizes.get(name, 0) > most:
            raise problem("import_too_large", file=self.name, where=_shown(name))
        with self.opened(name) as entry:
            return entry.read()

    @contextmanager
    def opened(self, name: str) -> Generator[IO[bytes]]:
        """An entry to be read piece by piece. Raises UnsupportedFormatError, key `import_damaged`."""
        try:
            entry = self._zip.open(name)
        except (KeyError, *_UNREADABLE) as error:
            raise problem("import_damaged", file=self.name, where=_shown(name)) from error
        try:
            with entry:
                yield entry
        except _BROKEN as error:
            raise problem("import_damaged", file=self.name, where=_shown(name)) from error

    def unpack(self, name: str, target: Path | None = None) -> str:
        """Read an entry to its end, and write it where a target is given; returns its SHA-256.

        Raises:
            NoSpaceError: The disk is full.
            StorageError: It cannot be written.
            UnsupportedFormatError: key `import_damaged`.
        """
        digest = sha256()
        with self.opened(name) as entry:
            written = target.open("xb") if target is not None else None
            try:
                while block := entry.read(_BLOCK):
                    digest.update(block)
                    if written is not None:
                        _write(written, block)
            finally:
                if written is not None:
                    written.close()
        return digest.hexdigest()

    def _checked(self) -> dict[str, int]:
        infos = self._zip.infolist()
        if len(infos) > MOST_ENTRIES:
            raise problem("import_too_many_files", file=self.name, n=f"{len(infos):,}")
        sizes: dict[str, int] = {}
        for info in infos:
            name = info.filename
            kind = info.external_attr >> 16
            is_odd = stat.S_IFMT(kind) not in {0, stat.S_IFREG, stat.S_IFDIR}
            if is_odd or name in sizes or not is_safe(name):
                raise problem("import_unsafe", file=self.name, where=_shown(name))
            if info.compress_type not in _PACKED:
                raise problem("import_damaged", file=self.name, where=_shown(name))
            if not info.is_dir():
                sizes[name] = info.file_size
        total = sum(sizes.values())
        packed = sum(info.compress_size for info in infos)
        if total > MOST_BYTES or (total > _HARMLESS and total > _RATIO * max(1, packed)):
            raise problem("import_too_large", file=self.name, where=f"{total >> 20:,} MB")
        return sizes


def _write(written: IO[bytes], block: bytes) -> None:
    try:
        written.write(block)
    except OSError as error:  # which says nothing of the archive
        raise translated(error, Path(written.name).parent) from error


def is_safe(name: str) -> bool:
    """Whether a name stays within its folder, on every system."""
    if not name or len(name) > 400 or re.search(r"[\x00-\x1f\\:]", name):
        return False
    return all(part not in {"", ".", ".."} for part in name.removesuffix("/").split("/"))


def _shown(name: str) -> str:
    plain = "".join(sign if sign.isprintable() else "?" for sign in name)
    return plain if len(plain) <= 80 else f"{plain[:79]}…"
