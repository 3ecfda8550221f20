"""A multipart request, read as it arrives: its files go to disk piece by piece, under harmless names."""

from __future__ import annotations

import secrets
import shutil
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from core.errors import ParlourError
from core.messages.invisible import plain_line

if TYPE_CHECKING:
    from pathlib import Path

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


def harmless_name(given: str) -> str:
    """A name that every file system takes, close to the one given: the last part, no control signs, not too long."""
    name = plain_line(given.replace("\\", "/").rpartition("/")[2], "")
    name = "".join("_" if sign in '<>:"|?*' else sign for sign in name).strip(" .")
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 12:
        stem, ending = name, ""
    if stem.lower() in _RESERVED:
        stem = f"_{stem}"
    room = _NAME_BYTES - len(ending.encode())
    stem = stem.encode()[:room].decode(errors="ignore") or "file"
    return f"{stem}.{ending}" if ending else stem


class Incoming:
    """One multipart request: its files are written as they arrive."""

    def __init__(self, folder: Path, limit: int, content_type: str) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise BadUploadError("This is not a multipart request.")
        self.name = ""
        self._folder = folder
        self._limit = limit
        self._files: list[tuple[Path, int]] = []
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

    @property
    def files(self) -> int:
        """How many have begun."""
        return len(self._files) + (self._open is not None)

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
        if filename is not None and self._open is None:  # a part has one name, however often it says so
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
