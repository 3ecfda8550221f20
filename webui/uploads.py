"""Files on their way in: each in a random folder of its own, known to the owner who sent it, until it is used.

They lie in the folder that Gradio takes files from, so the composer can show them; a file that is sent moves on
into the file store, one that is not is deleted after a while.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from anyio import to_thread
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from core.errors import DocumentError, NoSpaceError, NotFoundError, ParlourError, StorageError, UnsupportedFormatError
from core.rag.parsers.catalog import HEAD
from core.runs.lease import standing, this_worker
from core.storage.base import LOCAL_OWNER
from core.storage.files import brief_name, harmless_name
from webui.upload_kinds import NOT_WHAT_IT_SAYS, unread

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from starlette.requests import Request

    from core.limits import RateLimiter
    from webui.shared_uploads import SharedUploads


_PARTS = 50
_WRITE_AT = 256 * 1024
# What browsers write in place of signs that would end a name in a form.
_IN_FORMS = (("%22", '"'), ("%0D", " "), ("%0A", " "))


class TooLargeError(ParlourError):
    """The file is larger than the setting allows."""

    key = "upload_too_large"


class BadUploadError(ParlourError):
    """The request is not an upload that a browser would make."""

    key = "upload_broken"


class _Arrived(NamedTuple):
    """A file of a request; `name` is as its owner wrote it, and no path."""

    path: Path
    name: str
    size: int


class Incoming:
    """One multipart request: its files are written as they arrive."""

    def __init__(self, folder: Path, limit: int, content_type: str) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise BadUploadError("This is not a multipart request.")
        self.name = ""
        self._folder = folder
        self._limit = limit
        self._files: list[_Arrived] = []
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

    async def end(self) -> list[_Arrived]:
        """Write the rest; the files."""
        await self._write()
        if self._open is not None or not self._files:
            raise BadUploadError("The upload broke off, or holds no file.")
        return self._files

    def discard(self) -> None:
        """Delete what was written."""
        for path in [*(one.path for one in self._files), *([self._open] if self._open else [])]:
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
            self.name = _as_written(filename.decode(errors="replace"))
            self._open = self._folder / secrets.token_hex(16) / harmless_name(self.name)
            self._size = 0
            self._queue.append((self._open, b""))

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._open is None:
            return
        self._size += end - start
        if self._size > self._limit:
            raise TooLargeError("The file is too large.", name=self.name, limit=self._limit // 2**20)
        self._queue.append((self._open, data[start:end]))

    def _on_part_end(self) -> None:
        if self._open is not None:
            self._files.append(_Arrived(self._open, self.name, self._size))
            self._open = None


def _as_written(name: str) -> str:
    """The name of a file as its owner wrote it."""
    for form, sign in _IN_FORMS:
        name = name.replace(form, sign)
    return brief_name(name)


def _append(queue: list[tuple[Path, bytes]]) -> None:
    pieces: dict[Path, list[bytes]] = {}
    for path, data in queue:
        pieces.setdefault(path, []).append(data)
    for path, data in pieces.items():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("ab") as file:
            file.write(b"".join(data))


_MIB = 1024 * 1024
_PATIENCE = 3.0
_ASKED_FOR = 256 * 1024  # room is asked for in such steps where a request does not tell its length

Room: TypeAlias = "Callable[[int], Awaitable[None]]"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that was sent up and not used yet; `name` is what its owner calls it, `path` has a harmless one.

    `elsewhere` is where it is at the Parlour that took it in, if that is another one.
    """

    owner: str
    path: Path
    name: str
    size: int
    at: float
    elsewhere: str = ""


@dataclass(slots=True)
class _Progress:
    """How far an upload has come, for the bar that the page draws."""

    owner: str
    sent: int = 0
    name: str = ""
    done: bool = False
    moved: asyncio.Event = field(default_factory=asyncio.Event)


class _Place:
    """The room of one request while it comes."""

    def __init__(self, coming: dict[str, int], held: Callable[[str], int], owner: str, room: Room | None) -> None:
        self._coming = coming
        self._held = held
        self._owner = owner
        self._room = room
        self._size = self._filled = 0

    async def reserve(self, size: int) -> None:
        """So many bytes more. Raises QuotaError."""
        self._size += size
        self._coming[self._owner] = self._coming.get(self._owner, 0) + size  # first: who asks meanwhile sees it
        if self._room is not None and size:
            await self._room(self._held(self._owner))

    async def fill(self, size: int) -> None:
        """So many bytes are here. Raises QuotaError."""
        self._filled += size
        if self._filled > self._size:
            await self.reserve(max(_ASKED_FOR, self._filled - self._size))

    def release(self) -> None:
        """It is over, or counts as held."""
        left = self._coming.get(self._owner, 0) - self._size
        self._size = 0
        if left > 0:
            self._coming[self._owner] = left
        else:
            self._coming.pop(self._owner, None)


class Uploads:
    """What was sent up and not used yet.

    Args:
        folder: It lies in a folder of this process in `uploads` there. What processes have left that are gone is
            deleted now: nobody knows any more whose that was.
        limit: The largest file, in bytes.
        rate: Limits how many files an owner may send; the local owner may send any number.
    """

    def __init__(self, folder: Path, limit: int, *, rate: RateLimiter | None = None) -> None:
        self.folder = own_folder(folder.resolve() / "uploads")
        self.limit = limit
        self._rate = rate
        self._coming: dict[str, int] = {}  # bytes of each owner for which there is room, while they come
        self._held: dict[str, Upload] = {}
        self._progress: dict[str, _Progress] = {}
        self.shared: SharedUploads | None = None
        """Where other Parlours find them, if there are any."""

    def close(self) -> None:
        """Delete all of it: the process ends."""
        self._held.clear()
        give_up(self.folder)

    async def receive(  # noqa: PLR0913 - what a request tells, and what is wanted of it
        self,
        owner: str,
        content_type: str,
        body: AsyncIterable[bytes],
        upload_id: str = "",
        *,
        told: int = 0,
        room: Room | None = None,
        any_kind: bool = False,
        shared: bool = False,
    ) -> list[Upload]:
        """Write the files of a multipart request, in order.

        Args:
            content_type: The header of this name.
            upload_id: For `progress`.
            told: Bytes of the request as it tells them; what comes is counted all the same.
            room: Raises `QuotaError` where the owner may not have so many bytes more than are stored.
            any_kind: Take what is no document, too: it is for Parlour, and no conversation.
            shared: It may be used at another Parlour, where there is one.

        Raises:
            BadUploadError: It is not a multipart request with files.
            TooLargeError: A file is larger than the limit; nothing of the request is kept.
            UnsupportedFormatError: None of the files is a picture, sound, film, or a document that can be read. One
                such file among others comes in with them, and the reply says why it went without it.
            NoSpaceError: The disk is full; nothing of the request is kept.
            TooManyRequestsError: The owner has sent too many files; nothing of the request is kept.
            QuotaError: They have no room, with what is being sent at the same time; nothing of the request is kept.
        """
        await self._count(owner, 1)
        self._sweep()
        progress = self._watched(owner, upload_id)
        incoming = Incoming(self.folder, self.limit, content_type)
        place = _Place(self._coming, self.size_held, owner, room)
        counted = 1
        try:
            await place.reserve(told)
            async for piece in body:
                await place.fill(len(piece))
                await incoming.take(piece)
                await self._count(owner, incoming.files - counted)
                counted = max(counted, incoming.files)
                _move(progress, len(piece), incoming.name)
            arrived = await incoming.end()
            if not any_kind:
                await to_thread.run_sync(self._check_kinds, arrived)
            uploads = [Upload(owner, one.path, one.name, one.size, time.monotonic()) for one in arrived]
            if shared and self.shared is not None:
                await asyncio.gather(*(self.shared.give(owner, upload.path) for upload in uploads))
        except BaseException as error:
            await to_thread.run_sync(incoming.discard)
            if isinstance(error, OSError):
                raise _no_space(error) from error
            raise
        else:
            self._held.update({str(upload.path): upload for upload in uploads})  # and counts as held from now on
            return uploads
        finally:
            place.release()
            progress.done = True
            _move(progress, 0, "")

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

    def size_held(self, owner: str) -> int:
        """Bytes of what an owner has sent and not used yet, and of what is coming."""
        held = sum(upload.size for upload in self._held.values() if upload.owner == owner)
        return held + self._coming.get(owner, 0)

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

    async def find(self, owner: str, path: str, name: str = "") -> Upload:
        """The upload at `path`, here or at another Parlour.

        Args:
            name: What its owner calls it, for one that is elsewhere.

        Raises:
            NotFoundError: There is none, or it is somebody else's.
            StorageError: It is elsewhere, and the store cannot be used.
        """
        if self.shared is None or path in self._held:
            return self.of(owner, path)
        known = next((one for one in self._held.values() if one.elsewhere == path and one.owner == owner), None)
        if known is not None:
            return known
        here = await self.shared.fetch(owner, path, self.folder, harmless_name(path))
        size = await to_thread.run_sync(lambda: here.stat().st_size)
        upload = Upload(owner, here, brief_name(name) if name else here.name, size, time.monotonic(), path)
        self._held[str(here)] = upload
        return upload

    async def bring(self, owner: str, given: object) -> bool:
        """Make uploads of another Parlour, which a message of the page names, uploads of this one; change their paths.

        The page knows exactly what a file is called, which a form does not tell: what is `%22` in it may be a quote.

        Args:
            given: What the page sends, as JSON has it.

        Returns:
            Whether there were any.
        """
        brought = False
        for one in _named_files(given):
            name = one["orig_name"] if isinstance(one.get("orig_name"), str) else ""
            held = self._held.get(one["path"])
            if held is None and self.shared is not None:
                with suppress(StorageError):  # whoever uses it says that it is gone
                    one["path"] = str((await self.find(owner, one["path"], name)).path)
                    brought = True
            elif held is not None and held.owner == owner and name:
                self._held[one["path"]] = replace(held, name=brief_name(name))
        return brought

    async def drop(self, upload: Upload) -> None:
        """Forget an upload, and let no other Parlour find it."""
        self.forget(upload)
        if self.shared is not None:
            await self.shared.forget(upload.owner, upload.elsewhere or str(upload.path))

    def refusal(self, name: str, size: int, head: bytes) -> ParlourError | None:
        """Why such a file is not taken, by its first bytes; None where it is.

        The page asks before a file is sent, as advice; `receive` decides by it once the bytes are there.

        Args:
            name: What its owner calls it.
            size: Bytes.
            head: Its first 64 KiB.
        """
        if not size:
            return DocumentError("The file is empty.", key="document_empty", name=name)
        if size > self.limit:
            told, limit = self.size_told(str(size)), self.limit // _MIB
            return TooLargeError("The file is too large.", name=name, size=told, limit=limit)
        return unread(name, head)

    async def check(self, upload: Upload) -> None:
        """Raises DocumentError where it is empty, or nothing reads it, however it came in."""
        head = await to_thread.run_sync(_head, upload.path)
        if (error := self.refusal(upload.name, upload.size, head)) is not None:
            raise error

    def forget(self, upload: Upload) -> None:
        """Delete an upload: it was moved on, or is not wanted."""
        self._held.pop(str(upload.path), None)
        shutil.rmtree(upload.path.parent, ignore_errors=True)

    async def drain(self, body: AsyncIterable[bytes]) -> None:
        """Read the rest of a refused request and drop it: a browser that is still sending would not hear why."""
        rest = 8 * self.limit
        with suppress(RuntimeError, ClientDisconnect):  # all of it was read already, or nobody waits any more
            async for piece in body:
                rest -= len(piece)
                if rest < 0:
                    return

    def size_told(self, length: str) -> int:
        """The size of a refused request in the unit of the limit, and never the limit itself, which were no reason."""
        size = int(length) if length.isascii() and length.isdigit() else 0
        return max(round(size / _MIB), self.limit // _MIB + 1)

    def _check_kinds(self, arrived: Sequence[_Arrived]) -> None:
        """Raises DocumentError where none of the files can be read; an empty one is told about when it is."""
        errors = [self.refusal(one.name, one.size, _head(one.path)) for one in arrived]
        unread = [
            error
            for error in errors
            if isinstance(error, UnsupportedFormatError) or (error and error.words_key == NOT_WHAT_IT_SAYS)
        ]
        if unread and len(unread) == len(arrived):
            raise unread[0]

    async def _count(self, owner: str, files: int) -> None:
        if self._rate is not None and owner != LOCAL_OWNER and files > 0:
            await self._rate.take(owner, files)

    def _watched(self, owner: str, upload_id: str) -> _Progress:
        progress = _Progress(owner)
        if upload_id and upload_id not in self._progress:
            if len(self._progress) > 1000:
                self._progress.pop(next(iter(self._progress)))
            self._progress[upload_id] = progress
        return progress

    async def _begun(self, owner: str, upload_id: str) -> _Progress:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            progress = self._progress.get(upload_id)
            if progress is not None and progress.owner == owner:
                return progress
            await asyncio.sleep(0.05)
        raise NotFoundError("There is no such upload.", key="upload_gone")

    def _sweep(self) -> None:
        oldest = time.monotonic() - KEPT_SECONDS
        for upload in [upload for upload in self._held.values() if upload.at < oldest]:
            self.forget(upload)


def size_of(request: Request) -> int:
    """Bytes of a request as it tells them; 0 where it does not, for what arrives is counted all the same."""
    length = request.headers.get("content-length", "")
    return int(length[:20]) if length.isascii() and length.isdigit() else 0


def _named_files(given: object) -> list[dict[str, Any]]:
    """What names an upload, as Gradio's client writes it, however deep."""
    if isinstance(given, list):
        return [found for one in cast("list[object]", given) for found in _named_files(one)]
    if not isinstance(given, dict):
        return []
    values = cast("dict[str, Any]", given)
    if isinstance(values.get("path"), str) and isinstance(values.get("meta"), dict):
        return [values]
    return [found for one in values.values() for found in _named_files(one)]


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(HEAD)


def _move(progress: _Progress, size: int, name: str) -> None:
    progress.sent += size
    progress.name = name or progress.name
    progress.moved.set()


def _no_space(error: OSError) -> Exception:
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return NoSpaceError("The disk is full.") if full else error


KEPT_SECONDS: Final = 6 * 3600.0
"""How long an upload that is not used is kept."""

_LOG = logging.getLogger(__name__)
_NOTE = ".process"


def own_folder(among: Path) -> Path:
    """Make a folder of this process, and clear away those of processes that are gone.

    Args:
        among: The folder of all of them; made where it is missing.

    Raises:
        OSError: It cannot be made.
    """
    among.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = among / token_hex(8)
    _note_of(folder).write_text(this_worker(), "utf-8")  # first: a folder without a note is nobody's
    folder.mkdir(mode=0o700)
    for other in among.iterdir():
        if other != folder and other.is_dir() and not other.is_symlink() and _is_left(other):
            give_up(other)
    return folder


def give_up(folder: Path) -> None:
    """Delete such a folder with its note; what cannot be deleted stays for the next start."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        _LOG.warning("Uploads that nobody uses cannot be deleted: %s", folder)
        return
    _note_of(folder).unlink(missing_ok=True)


def _is_left(folder: Path) -> bool:
    try:
        state = standing(_note_of(folder).read_text("utf-8"))
    except (OSError, ValueError):
        state = "unknown"
    if state == "unknown":
        return time.time() - _last_change(folder) > KEPT_SECONDS
    return state == "dead"


def _last_change(folder: Path) -> float:
    """Unix seconds; now, where it cannot be told."""
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    except OSError:  # somebody is at work there
        return time.time()


def _note_of(folder: Path) -> Path:
    return folder.with_name(folder.name + _NOTE)
