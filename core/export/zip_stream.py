"""A ZIP archive that is sent while it is made: nothing of it waits on a disk, and little in memory."""

from __future__ import annotations

import time
import zipfile
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Pieces:
    """Keeps what is written until it is taken; it cannot be gone back in."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def flush(self) -> None:
        """Nothing waits anywhere."""

    def write(self, data: Any, /) -> int:
        piece = bytes(data)
        self.pieces.append(piece)
        return len(piece)


class ZipStream:
    """Files one after the other; each name is used once, a second of it gets a number.

    Attributes:
        entries: Size and SHA-256 of what was added, by its name.
    """

    def __init__(self) -> None:
        self._sink = _Pieces()
        self._zip = zipfile.ZipFile(cast("Any", self._sink), "w", zipfile.ZIP_DEFLATED, allowZip64=True)
        self._now = time.localtime()[:6]
        self.entries: dict[str, tuple[int, str]] = {}
        self._numbers: dict[str, int] = {}  # the last of each name, so that thousands alike cost no more than others

    def add(self, name: str, pieces: Iterable[bytes], *, packed: bool = True) -> bytes:
        """A whole file; returns what is to be sent.

        Args:
            packed: False for what is packed already.
        """
        name = self.free_name(name)
        with self._opened(name, packed=packed) as entry:
            digest, size = sha256(), 0
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                entry.write(piece)
        self.entries[name] = (size, digest.hexdigest())
        return self._taken()

    def end(self) -> bytes:
        """The table at the end of the archive."""
        self._zip.close()
        return self._taken()

    def free_name(self, name: str) -> str:
        """The name, or with a number before its ending where it is used already."""
        stem, dot, ending = name.rpartition(".")
        free, number = name, self._numbers.get(name, 1)
        while free in self.entries:
            number += 1
            free = f"{stem} ({number}){dot}{ending}"
        self._numbers[name] = number
        return free

    def _opened(self, name: str, *, packed: bool) -> Any:
        about = zipfile.ZipInfo(name, self._now)
        about.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        about.external_attr = 0o600 << 16
        return self._zip.open(about, "w", force_zip64=True)

    def _taken(self) -> bytes:
        made, self._sink.pieces = b"".join(self._sink.pieces), []
        return made
