"""Server-sent events out of bytes that come apart anywhere."""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class EventLines:
    """Gives the `data` of each event as soon as it is whole; comments and other fields are left out.

    Lines end in LF or CRLF. Bytes are cut at line ends only, so no character is ever torn. A byte order mark before the
    first line is no part of it.
    """

    def __init__(self) -> None:
        self._is_first = True
        self._rest: list[bytes] = []  # of a line that is not over: a picture in one line is put together once
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that this piece completes."""
        lines = piece.split(b"\n")
        if len(lines) == 1:
            self._rest.append(piece)
            return []
        if self._rest:
            self._rest.append(lines[0])
            lines[0] = b"".join(self._rest)
        self._rest = [last] if (last := lines.pop()) else []
        found: list[bytes] = []
        if self._is_first:
            self._is_first = False
            lines[0] = lines[0].removeprefix(BOM_UTF8)
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                data.append(line[5:])
            elif data and line.strip() == b"":
                found.append(data[0] if len(data) == 1 else b"\n".join(data))
                data = []
        self._data = data
        return found

    def close(self) -> list[bytes]:
        """The data of an event whose last line or blank line never came."""
        return self.feed(b"\n\n")


async def one_event(raw: bytes) -> AsyncGenerator[bytes, None]:
    """A whole JSON body as one server-sent event."""
    yield b"data: " + raw.replace(b"\n", b" ") + b"\n\n"
