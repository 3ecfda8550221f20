"""Unpacks the answer of an HTTP client in small steps while it is read."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import anyio.lowlevel
import httpx2

from core.net.body import WINDOWS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


_STEP: Final = 64 * 1024


class TooMuchError(httpx2.DecodingError):
    """More came than was agreed, or would come out.

    Args:
        most: Bytes that were agreed.
    """

    def __init__(self, most: int) -> None:
        super().__init__(f"the answer is larger than {most} bytes")
        self.most = most


def unpack(response: httpx2.Response, most: int | None, *, cut: bool = False) -> None:
    """Let an answer that is not read yet be unpacked in small steps while it is.

    Args:
        response: The answer; it tells of no packing any more.
        most: Bytes that may come out; `None` for any number, where whoever reads counts by himself.
        cut: What is more is left out; else it is `TooMuchError`, where it is read.

    Raises:
        httpx2.DecodingError: It is packed in a way that was not asked for.
    """
    packed = response.headers.pop("content-encoding", "").strip().lower()
    if packed not in {"", "identity", *WINDOWS}:
        raise httpx2.DecodingError(f"the answer is packed as {packed[:40]}, which was not asked for")
    if packed in WINDOWS:
        response.headers.pop("content-length", None)  # of what is packed
    inner = response.stream
    if isinstance(inner, httpx2.AsyncByteStream):
        response.stream = _Unpacked(inner, WINDOWS.get(packed), most, cut=cut)


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
                raise TooMuchError(self._most or 0)
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
