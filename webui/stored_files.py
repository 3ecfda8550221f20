"""Stored files as answers: by themselves, by the range that was asked for, or by an address of the store."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from core.storage.base import FileRecord
    from core.storage.files import FileStore

_LARGE: Final = 1024 * 1024  # bytes: what is larger is not fetched whole to be handed on
_SAVED: Final = "application/octet-stream"
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


async def stored_file(
    request: Request, files: FileStore, file_id: str, headers: Mapping[str, str], *, shown: frozenset[str] = frozenset()
) -> Response:
    """A stored file to its owner.

    Args:
        headers: What every such answer has.
        shown: The media types that a browser may show; everything else is saved to disk.

    Raises:
        NotFoundError: There is none such of this owner, or its bytes are gone.
        StorageError: Where it is kept cannot be used.
    """
    record = await files.record(file_id)
    is_shown = record.media_type in shown
    kind, how = (record.media_type, "inline") if is_shown else (_SAVED, "attachment")
    if files.is_remote and record.size > _LARGE:
        if not is_shown and (address := await files.address(record)):
            return RedirectResponse(address, 302, headers={**headers, "cache-control": "no-store"})
        return await _streamed(request, files, record, {**headers, **_about(kind, how, record.name)})
    held = AsyncExitStack()
    _, path = await held.enter_async_context(files.local(file_id))
    return _Held(held, path, kind, record.name, how, headers)


class _Held(FileResponse):
    """A file that is held until it was sent."""

    def __init__(
        self, held: AsyncExitStack, path: Path, kind: str, name: str, how: str, headers: Mapping[str, str]
    ) -> None:
        super().__init__(path, media_type=kind, filename=name, content_disposition_type=how, headers=headers)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        async with self._held:
            await super().__call__(scope, receive, send)


def _about(kind: str, how: str, name: str) -> dict[str, str]:
    return {
        "content-type": kind,
        "content-disposition": f"{how}; filename*=UTF-8''{quote(name, safe='')}",
        "accept-ranges": "bytes",
    }


async def _streamed(request: Request, files: FileStore, record: FileRecord, headers: dict[str, str]) -> Response:
    """A large file piece by piece as it comes from the store: all of it, or the one range that is asked for."""
    if request.method == "HEAD":  # a range is of a GET alone
        return Response(headers={**headers, "content-length": str(record.size)})
    place = _range(request.headers.get("range", ""), record.size)
    start, length = place or (0, record.size)
    if place is not None:
        if not length:
            return Response(status_code=416, headers={"content-range": f"bytes */{record.size}"})
        headers["content-range"] = f"bytes {start}-{start + length - 1}/{record.size}"
    pieces = files.open(record, start, length)
    try:
        first = await anext(pieces, b"")  # what is gone is told before the answer begins
    except BaseException:
        await pieces.aclose()
        raise
    headers["content-length"] = str(length)
    return _Streamed(first, pieces, 206 if place is not None else 200, headers)


class _Streamed(StreamingResponse):
    """The pieces of a file; they are let go of whenever the answer ends, even before it began."""

    def __init__(self, first: bytes, pieces: AsyncGenerator[bytes], status: int, headers: Mapping[str, str]) -> None:
        super().__init__(self._sent(first, pieces), status, headers=headers)
        self._pieces = pieces

    @staticmethod
    async def _sent(first: bytes, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        async with aclosing(self._pieces):
            await super().__call__(scope, receive, send)


def _range(asked: str, size: int) -> tuple[int, int] | None:
    """Where the one range of a header begins and how long it is: 0 where there is nothing of it.

    `None` for none, and for what is no single range of bytes: such a header is passed over (RFC 9110, 14.2).
    """
    found = _RANGE.fullmatch(asked.strip())
    if found is None or found[1] == found[2] == "":
        return None
    if not found[1]:
        length = min(int(found[2]), size)
        return size - length, length
    start, last = int(found[1]), int(found[2]) if found[2] else size
    if found[2] and last < start:
        return None
    return start, max(0, min(last, size - 1) - start + 1)
