"""Files on their way in: each in a random folder of its own, known to the owner who sent it, until it is used.

They lie in the folder that Gradio takes files from, so the composer can show them; a file that is sent moves on
into the file store, one that is not is deleted after a while.
"""

from __future__ import annotations

import asyncio
import errno
import secrets
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from core.errors import NoSpaceError, NotFoundError, ParlourError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator
    from pathlib import Path

_KEEP = 6 * 3600.0
_NAME_BYTES = 150
_PARTS = 50
_WRITE_AT = 256 * 1024
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{kind}{n}" for kind in ("com", "lpt") for n in range(1, 10))})


class TooLargeError(ParlourError):
    """The file is larger than the setting allows."""

    key = "upload_too_large"


class BadUploadError(ParlourError):
    """The request is not an upload that a browser would make."""

    key = "upload_broken"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent up and not used yet; `name` is as its owner called it, made harmless."""

    owner: str
    path: Path
    name: str
    size: int
    at: float


@dataclass(slots=True)
class _Progress:
    """How far an upload has come, for the bar that the page draws."""

    owner: str
    sent: int = 0
    name: str = ""
    done: bool = False
    moved: asyncio.Event = field(default_factory=asyncio.Event)


def harmless_name(given: str) -> str:
    """A name that every file system takes, close to the one given: the last part, no control signs, not too long."""
    name = given.replace("\\", "/").rpartition("/")[2]
    name = "".join("_" if sign in '<>:"|?*' else sign for sign in name if sign.isprintable()).strip(" .")
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 12:
        stem, ending = name, ""
    if stem.lower() in _RESERVED:
        stem = f"_{stem}"
    room = _NAME_BYTES - len(ending.encode())
    stem = stem.encode()[:room].decode(errors="ignore") or "file"
    return f"{stem}.{ending}" if ending else stem


class Uploads:
    """What was sent up and not used yet.

    Args:
        folder: Where it lies; emptied now, for nobody knows any more whose that was.
        limit: The largest file, in bytes.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder.resolve()
        self.limit = limit
        self._held: dict[str, Upload] = {}
        self._progress: dict[str, _Progress] = {}
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)

    async def receive(
        self, owner: str, content_type: str, body: AsyncIterable[bytes], upload_id: str = ""
    ) -> list[Upload]:
        """Write the files of a multipart request, in order.

        Raises:
            BadUploadError: It is not a multipart request with files.
            TooLargeError: A file is larger than the limit; nothing of the request is kept.
            NoSpaceError: The disk is full; nothing of the request is kept.
        """
        self._sweep()
        progress = self._watched(owner, upload_id)
        incoming = _Incoming(self.folder, self.limit, content_type)
        try:
            async for piece in body:
                await incoming.take(piece)
                _move(progress, len(piece), incoming.name)
            uploads = [Upload(owner, path, path.name, size, time.monotonic()) for path, size in await incoming.end()]
        except BaseException as error:
            await to_thread.run_sync(incoming.discard)
            if isinstance(error, OSError):
                raise _no_space(error) from error
            raise
        finally:
            progress.done = True
            _move(progress, 0, "")
        self._held.update({str(upload.path): upload for upload in uploads})
        return uploads

    async def progress(self, owner: str, upload_id: str) -> AsyncIterator[dict[str, Any]]:
        """How far an upload comes, in the words of Gradio's client, until it is done.

        Raises:
            NotFoundError: Nobody, or somebody else, is sending it; waits three seconds for it to begin.
        """
        progress = await self._begun(owner, upload_id)
        shown = 0
        while not progress.done:
            progress.moved.clear()
            if progress.sent > shown:
                yield {"msg": "update", "orig_name": progress.name, "chunk_size": progress.sent - shown}
                shown = progress.sent
            await progress.moved.wait()
        self._progress.pop(upload_id, None)
        yield {"msg": "done"}

    def owns(self, owner: str, path: str) -> bool:
        """Whether `path` is a file that this owner sent up and has not used yet."""
        upload = self._held.get(path)
        return upload is not None and upload.owner == owner

    def of(self, owner: str, path: str) -> Upload:
        """The upload at `path`.

        Raises:
            NotFoundError: There is none, or it is somebody else's.
        """
        upload = self._held.get(path)
        if upload is None or upload.owner != owner:
            raise NotFoundError("There is no such upload.", key="upload_gone")
        return upload

    def forget(self, upload: Upload) -> None:
        """Delete an upload: it was moved on, or is not wanted."""
        self._held.pop(str(upload.path), None)
        shutil.rmtree(upload.path.parent, ignore_errors=True)

    def _watched(self, owner: str, upload_id: str) -> _Progress:
        progress = _Progress(owner)
        if upload_id and upload_id not in self._progress:
            if len(self._progress) > 1000:
                self._progress.pop(next(iter(self._progress)))
            self._progress[upload_id] = progress
        return progress

    async def _begun(self, owner: str, upload_id: str) -> _Progress:
        for _ in range(60):
            progress = self._progress.get(upload_id)
            if progress is not None and progress.owner == owner:
                return progress
            await asyncio.sleep(0.05)
        raise NotFoundError("There is no such upload.", key="upload_gone")

    def _sweep(self) -> None:
        oldest = time.monotonic() - _KEEP
        for upload in [upload for upload in self._held.values() if upload.at < oldest]:
            self.forget(upload)


class _Incoming:
    """One multipart request: its files are written as they arrive."""

    def __init__(self, folder: Path, limit: int, content_type: str) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise BadUploadError("This is not a multipart request.")
        self.name = ""
        self._folder = folder
        self._limit = limit
        self._files: list[tuple[Path, int]] = []
        self._buffer: list[bytes] = []
        self._open: Path | None = None
        self._size = 0
        self._parts = 0
        self._header, self._value = b"", b""
        self._queue: list[tuple[Path, bytes]] = []
        callbacks: Any = {
            "on_part_begin": self._on_part,
            "on_header_field": self._on_header_field,
            "on_header_value": self._on_header_value,
            "on_header_end": self._on_header,
            "on_part_data": self._on_data,
            "on_part_end": self._on_part_end,
        }
        self._parser = MultipartParser(options[b"boundary"], callbacks)

    async def take(self, piece: bytes) -> None:
        """Parse a piece of the body, and write what is long enough."""
        try:
            self._parser.write(piece)
        except MultipartParseError as error:
            raise BadUploadError(f"The upload cannot be read: {error}.") from error
        if sum(len(data) for _, data in self._queue) >= _WRITE_AT:
            await self._write()

    async def end(self) -> list[tuple[Path, int]]:
        """Write the rest; the files and their sizes."""
        await self._write()
        if self._open is not None or not self._files:
            raise BadUploadError("The upload broke off, or holds no file.")
        return self._files

    def discard(self) -> None:
        """Delete what was written."""
        for path in [*(path for path, _ in self._files), *([self._open] if self._open else [])]:
            shutil.rmtree(path.parent, ignore_errors=True)

    async def _write(self) -> None:
        queue, self._queue = self._queue, []
        if queue:
            await to_thread.run_sync(_append, queue)

    def _on_part(self) -> None:
        self._parts += 1
        if self._parts > _PARTS:
            raise BadUploadError(f"More than {_PARTS} files at once.")

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header(self) -> None:
        header, value = self._header.lower(), self._value
        self._header, self._value = b"", b""
        if header != b"content-disposition":
            return
        filename = parse_options_header(value)[1].get(b"filename")
        if filename is not None:
            self.name = filename.decode(errors="replace")
            self._open = self._folder / secrets.token_hex(16) / harmless_name(self.name)
            self._size = 0
            self._queue.append((self._open, b""))

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._open is None:
            return
        self._size += end - start
        if self._size > self._limit:
            raise TooLargeError("The file is too large.", name=self._open.name, limit=self._limit // 2**20)
        self._queue.append((self._open, data[start:end]))

    def _on_part_end(self) -> None:
        if self._open is not None:
            self._files.append((self._open, self._size))
            self._open = None


def _append(queue: list[tuple[Path, bytes]]) -> None:
    pieces: dict[Path, list[bytes]] = {}
    for path, data in queue:
        pieces.setdefault(path, []).append(data)
    for path, data in pieces.items():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("ab") as file:
            file.write(b"".join(data))


def _move(progress: _Progress, size: int, name: str) -> None:
    progress.sent += size
    progress.name = name or progress.name
    progress.moved.set()


def _no_space(error: OSError) -> Exception:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return NoSpaceError("The disk is full.") if full else error
