"""The bytes of an answer, unpacked no further than was agreed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import anyio.lowlevel
import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


# What is asked for; unpacking it can be bounded at each step.
ENCODINGS = "gzip"
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class TooLargeError(Exception):
    """More than was agreed came, or would come out."""


class Body:
    """Takes an answer in pieces.

    Args:
        encoding: The answer's `content-encoding`.
        most: Bytes that may come out.

    Raises:
        ValueError: It is packed in a way that was not asked for.
    """

    def __init__(self, encoding: str, most: int) -> None:
        packed = encoding.strip().lower()
        if packed not in {"", "identity", *_WINDOWS}:
            raise ValueError(packed)
        self._unpacking = zlib.decompressobj(_WINDOWS[packed]) if packed in _WINDOWS else None
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> None:
        """Take in a piece.

        Raises:
            TooLargeError: There is no room for it.
            ValueError: It cannot be unpacked.
        """
        while piece:
            out, piece = self._unpacked(piece)
            self._size += len(out)
            if self._size > self._most:
                raise TooLargeError
            self._parts.append(out)

    def _unpacked(self, piece: bytes) -> tuple[bytes, bytes]:
        """What comes out of a piece, one byte beyond the room at most, and what of the piece is left."""
        if self._unpacking is None:
            return piece, b""
        if self._unpacking.eof:
            return b"", b""  # what follows the end belongs to nothing
        try:
            out = self._unpacking.decompress(piece, self._most - self._size + 1)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        return out, self._unpacking.unconsumed_tail

    def whole(self) -> bytes:
        """Everything.

        Raises:
            ValueError: It ended before its end.
        """
        if self._unpacking is not None and self._size and not self._unpacking.eof:
            raise ValueError("The answer was cut off.")
        return b"".join(self._parts)


ASKED: Final = {"accept-encoding": ENCODINGS}
"""The header that asks for nothing that cannot be unpacked here."""

_STEP: Final = 64 * 1024


def unpack(response: httpx2.Response, most: int | None, *, cut: bool = False) -> None:
    """Let an answer that is not read yet be unpacked in small steps while it is.

    Args:
        response: The answer; it tells of no packing any more.
        most: Bytes that may come out; `None` for any number, where whoever reads counts by himself.
        cut: What is more is left out; else it is an error.

    Raises:
        httpx2.DecodingError: It is packed in a way that was not asked for.
    """
    packed = response.headers.pop("content-encoding", "").strip().lower()
    if packed not in {"", "identity", *_WINDOWS}:
        raise httpx2.DecodingError(f"the answer is packed as {packed[:40]}, which was not asked for")
    if packed in _WINDOWS:
        response.headers.pop("content-length", None)  # of what is packed
    inner = response.stream
    if isinstance(inner, httpx2.AsyncByteStream):
        response.stream = _Unpacked(inner, _WINDOWS.get(packed), most, cut=cut)


class _Unpacked(httpx2.AsyncByteStream):
    """A body, in steps."""

    def __init__(self, inner: httpx2.AsyncByteStream, window: int | None, most: int | None, *, cut: bool) -> None:
        self._inner = inner
        self._window = window
        self._most = most
        self._cut = cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for piece in self._steps():
            if left is not None and len(piece) > left:
                if self._cut:
                    yield piece[:left]
                    return
                raise httpx2.DecodingError(f"the answer is larger than {self._most} bytes")
            left = None if left is None else left - len(piece)
            yield piece

    async def _steps(self) -> AsyncIterator[bytes]:
        if self._window is None:
            async for piece in self._inner:
                yield piece
            return
        unpacking = zlib.decompressobj(self._window)
        try:
            async for piece in self._inner:
                rest = piece
                while rest and not unpacking.eof:
                    out = unpacking.decompress(rest, _STEP)
                    rest = unpacking.unconsumed_tail
                    if out:
                        yield out
                    await anyio.lowlevel.checkpoint()  # everybody else has a turn between two steps
            yield unpacking.flush()
        except zlib.error as error:
            raise httpx2.DecodingError("the answer cannot be unpacked") from error

    async def aclose(self) -> None:
        """Close the connection."""
        await self._inner.aclose()
