"""Compound files, in which Office 97 kept documents and later versions keep encrypted ones: streams by their names."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER = 512
_LAST = 0xFFFFFFFA  # numbers from here on are no sectors
_ENTRY = 128
_STREAM, _ROOT = 2, 5


class Compound:
    """The streams of a compound file; those of its folders count like others.

    Args:
        data: The whole file.

    Raises:
        BrokenDocumentError: It is none, or damaged.
    """

    def __init__(self, data: bytes) -> None:
        if not data.startswith(SIGNATURE) or len(data) < _HEADER:
            raise _damaged()
        self._data = memoryview(data)
        shift, small_shift = struct.unpack_from("<HH", data, 30)
        if shift not in {9, 12} or small_shift != 6:
            raise _damaged()
        self._size, self._small_size = 1 << shift, 1 << small_shift
        first_entry, self._cutoff, first_small = struct.unpack_from("<I4xII", data, 48)
        self._next = self._numbers(self._table_sectors())
        self._next_small = self._numbers(list(self._chain(first_small, self._next)))
        self._entries = self._directory(first_entry)
        start, size = self._entries.get("", (_LAST, 0))
        self._small = self._joined(start, size)

    def get(self, name: str) -> bytes | None:
        """A stream, or `None` if there is none of this name."""
        if name not in self._entries:
            return None
        start, size = self._entries[name]
        if size >= self._cutoff:
            return self._joined(start, size)
        pieces = (
            self._small[at * self._small_size : (at + 1) * self._small_size]
            for at in self._chain(start, self._next_small)
        )
        return b"".join(pieces)[:size]

    def replaced(self, name: str, content: bytes) -> bytearray:
        """The whole file with another content of a stream that is there, as long as the one before.

        Raises:
            ValueError: There is none of this name, or it is not as long.
        """
        start, size = self._entries.get(name, (_LAST, -1))
        if size != len(content):
            raise ValueError(name)
        made = bytearray(self._data)
        at = 0
        for place, length in self._places(start, size):
            made[place : place + length] = content[at : at + length]
            at += length
        return made

    def _places(self, start: int, size: int) -> Iterator[tuple[int, int]]:
        """Where in the file a stream stands, and how much of it in each place."""
        if size >= self._cutoff:
            places = [((at + 1) * self._size, self._size) for at in self._chain(start, self._next)]
        else:
            first, _ = self._entries.get("", (_LAST, 0))
            around = [(at + 1) * self._size for at in self._chain(first, self._next)]
            in_one = self._size // self._small_size
            small = [divmod(at, in_one) for at in self._chain(start, self._next_small)]
            if any(of >= len(around) for of, _ in small):
                raise _damaged()
            places = [(around[of] + at * self._small_size, self._small_size) for of, at in small]
        for place, length in places:
            if size > 0 and place + min(length, size) > len(self._data):
                raise _damaged()
            yield place, min(length, size)
            size -= min(length, size)

    def _sector(self, number: int) -> memoryview:
        at = (number + 1) * self._size
        if at >= len(self._data):
            raise _damaged()
        return self._data[at : at + self._size]

    def _chain(self, first: int, follows: tuple[int, ...]) -> Iterator[int]:
        """The sectors that follow each other; a chain that is longer than all of them bites its tail."""
        at, left = first, len(follows)
        while at < _LAST:
            if at >= len(follows) or left == 0:
                raise _damaged()
            yield at
            at, left = follows[at], left - 1

    def _joined(self, first: int, size: int) -> bytes:
        return b"".join(self._sector(at) for at in self._chain(first, self._next))[:size]

    def _numbers(self, sectors: list[int]) -> tuple[int, ...]:
        data = b"".join(self._sector(at) for at in sectors)
        return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])

    def _table_sectors(self) -> list[int]:
        """Where the table of chains stands: the first places in the header, more in sectors of their own."""
        found = [at for at in struct.unpack_from("<109I", self._data, 76) if at < _LAST]
        (more,) = struct.unpack_from("<I", self._data, 68)
        most = len(self._data) // self._size
        left = most
        while more < _LAST and len(found) <= most:
            if left == 0:  # a sector that names no others but itself as the next
                raise _damaged()
            left -= 1
            *numbers, more = self._numbers([more])
            found += [at for at in numbers if at < _LAST]
        if len(found) > most:
            raise _damaged()
        return found

    def _directory(self, first: int) -> dict[str, tuple[int, int]]:
        data = b"".join(self._sector(at) for at in self._chain(first, self._next))
        found: dict[str, tuple[int, int]] = {}
        for at in range(0, len(data) - _ENTRY + 1, _ENTRY):
            length, kind = struct.unpack_from("<HB", data, at + 64)
            start, size = struct.unpack_from("<IQ", data, at + 116)
            if kind in {_STREAM, _ROOT}:
                name = data[at : at + max(0, min(length, 64) - 2)].decode("utf-16-le", errors="replace")
                found.setdefault("" if kind == _ROOT else name, (start, size))
        return found


def _damaged() -> BrokenDocumentError:
    return BrokenDocumentError("The file is damaged: its parts cannot be found.")
