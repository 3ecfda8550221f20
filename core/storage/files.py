"""Stored files: bytes under opaque names, one folder per owner; and what kind of file it is, by its content."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
import zipfile
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from core.bridge.cancellation import run_to_end
from core.errors import NotFoundError, QuotaError, StorageError
from core.messages.invisible import plain_line
from core.storage.base import LOCAL_OWNER, FileRecord, is_id, new_id
from core.storage.blobs import FILES, UPLOADS, FolderBlobs, check_key, copy_bytes, key_of
from core.storage.conversations import clean, freed_files, insert_owner, is_unneeded
from core.storage.data_folder import translated
from core.storage.tables import files
from core.storage.use import given_to

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

    from core.storage.blobs import Blob, Blobs
    from core.storage.database import Database


UNKNOWN = "application/octet-stream"
_HEAD = 64 * 1024
_ZIP = b"PK\x03\x04"

_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyp", "video/mp4"),
    (0, b"BM", "image/bmp"),
)
_OFFICE = "application/vnd.openxmlformats-officedocument."
_IN_ZIP = (
    ("word/document.xml", _OFFICE + "wordprocessingml.document"),
    ("xl/workbook.xml", _OFFICE + "spreadsheetml.sheet"),
    ("ppt/presentation.xml", _OFFICE + "presentationml.presentation"),
    ("META-INF/container.xml", "application/epub+zip"),
)
_TEXTS = {
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".htm": "text/html",
    ".html": "text/html",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
}
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/bmp": ".bmp",
    "audio/wav": ".wav",
    "audio/ogg": ".ogg",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/mp4": ".m4a",
    "audio/webm": ".weba",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    **{media_type: suffix for suffix, media_type in _TEXTS.items() if suffix in {".csv", ".html", ".md"}},
    "text/plain": ".txt",
    "text/uri-list": ".uri",  # never what a content is found to be
    _IN_ZIP[0][1]: ".docx",
    _IN_ZIP[1][1]: ".xlsx",
    _IN_ZIP[2][1]: ".pptx",
}


def media_type_of(path: Path, name: str) -> str:
    """The media type of a file: `application/octet-stream` for what is not known, the empty file included."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return _in_zip(path) if head.startswith(_ZIP) else media_type_of_head(head, name)


def media_type_of_head(head: bytes, name: str) -> str:
    """The media type of a file of which only the first bytes are there; every ZIP archive is `application/zip`.

    Args:
        head: Its first 64 KiB.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if head.startswith(_ZIP):  # before what is in it: a PDF may be its first file
        return "application/zip"
    # Readers accept a PDF that begins late; a text that only speaks of one does not start so early.
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    if head.startswith(b"\x1aE\xdf\xa3"):
        # A browser's recordings of sound and of pictures begin alike; the tracks' names tell them apart.
        return "audio/webm" if b"A_" in head and b"V_" not in head else "video/webm"
    for offset, magic, media_type in _MAGIC:
        if head.startswith(magic, offset) and not (magic == b"BM" and _is_text(head)):
            return media_type
    return _text_type(head, suffix) if _is_text(head) else UNKNOWN


def suffix_for(media_type: str) -> str:
    """The suffix that a stored file of this kind gets, with its dot; empty for unknown kinds."""
    return _SUFFIXES.get(media_type, "")


def _in_zip(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError):
        return "application/zip"
    return next((media_type for name, media_type in _IN_ZIP if name in names), "application/zip")


def _is_text(head: bytes) -> bool:
    if head.startswith(_BYTE_ORDER_MARKS):
        return True
    # Old Chinese encodings are not UTF-8, but neither do they hold control characters.
    return bool(head) and not any(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)


def _text_type(head: bytes, suffix: str) -> str:
    start = head[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return _TEXTS.get(suffix, "text/plain")


_BLOCK = 1024 * 1024
_LONGEST_NAME = 120
_NAME_BYTES = 150  # of a name on a disk: an encrypted one takes no more, and a draft has a longer one
_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{kind}{n}" for kind in ("com", "lpt") for n in range(1, 10))})
_BATCH = 500  # files that are deleted in one transaction


class FileStore:
    """The files of one owner. What is somebody else's does not exist.

    Args:
        database: Has their rows.
        blobs: Has their bytes.
        quota: Bytes that they may take, those of the local owner excepted, where an administrator set nothing else for
            the owner or a group of theirs; no limit if left out.
        beside: Adds up what else of the owner's counts with them.
    """

    def __init__(
        self,
        database: Database,
        owner: str,
        blobs: Blobs,
        *,
        quota: int | None = None,
        beside: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        self._database = database
        self._owner = owner
        self._blobs = blobs
        self._quota = quota
        self._beside = beside

    async def put(self, name: str, source: Path | bytes, *, media_type: str = "", wanted: str = "") -> FileRecord:
        """Copy a file in.

        Args:
            name: What it is called; only its last part is kept, without control characters, at most 120 letters.
            source: The file to copy, or its bytes.
            media_type: What kind it is; found in its content by default.
            wanted: The id that it shall have, which nothing else may have.

        Raises:
            ConflictError: Something else has got the id that is wanted; nothing is left behind.
            NoSpaceError: The disk is full; nothing is left behind.
            QuotaError: The owner's files take too much room with it; nothing is left behind.
            StorageError: The source or the store cannot be used.
        """
        file_id, shown = wanted if is_id(wanted) else new_id(), shown_name(name)
        draft = self._blobs.draft(key_of(self._owner, FILES, file_id))
        fresh: FileRecord | None = None
        try:
            size, digest, found = await run_to_end(asyncio.to_thread(_take_in, source, draft, shown))
            fresh = FileRecord(file_id, self._owner, shown, media_type or found, size, digest, time.time())
            await run_to_end(self._blobs.take(self.key(fresh), draft, digest))
            values = {column: getattr(fresh, column) for column in FileRecord.__slots__}

            beside = await self._size_beside()

            def note(connection: Connection) -> None:
                self._check_room(connection, size, beside)
                insert_owner(connection, self._owner)
                connection.execute(insert(files).values(values))

            await self._database.write(note)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise translated(error, draft.parent.parent) from error
        except BaseException:  # a file without a row would be lost in the store for ever
            draft.unlink(missing_ok=True)
            if fresh is not None:  # whoever was cancelled may have stored the row
                await run_to_end(self._take_back(fresh, is_mine=not wanted))
            raise
        return fresh

    async def _take_back(self, fresh: FileRecord, *, is_mine: bool) -> None:
        """Leave nothing of a file that could not be stored; one that got its id first stays.

        Args:
            is_mine: Whether nothing else can have the id.
        """
        with_id = (files.c.id == fresh.id) & (files.c.owner_id == self._owner)

        def take_back(connection: Connection) -> bool:
            connection.execute(delete(files).where(with_id, files.c.created_at == fresh.created_at))
            return connection.execute(select(files.c.id).where(with_id)).first() is None

        with suppress(StorageError):
            is_mine = await self._database.write(take_back)
        if is_mine:
            await self.discard([fresh])

    async def replace_content(self, file_id: str, name: str, data: bytes) -> FileRecord:
        """Put other bytes into a file, under another name: whoever names it means these from now on.

        Raises:
            NotFoundError: There is none such of this owner.
            NoSpaceError: The disk is full; the file is as it was.
            QuotaError: The owner's files take too much room with them; the file is as it was.
        """
        before = await self.record(file_id)
        await self.check_room(len(data) - before.size)
        return await run_to_end(
            self._refilled(before, shown_name(name), data)
        )  # whoever asks may leave in the midst of it

    async def _refilled(self, before: FileRecord, name: str, data: bytes) -> FileRecord:
        draft = self._blobs.draft(self.key(before))
        try:
            size, digest, media_type = await asyncio.to_thread(_take_in, data, draft, name)
            fresh = replace(before, name=name, media_type=media_type, size=size, sha256=digest)
            await self._blobs.take(self.key(fresh), draft, digest)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise translated(error, draft.parent.parent) from error
        except StorageError:
            draft.unlink(missing_ok=True)
            raise
        changed = {"name": name, "media_type": media_type, "size": size, "sha256": digest}
        change = update(files).where(files.c.id == before.id).values(changed)
        if not await self._database.write(lambda c: c.execute(change).rowcount):
            await self.discard([fresh])  # it was deleted meanwhile: its new bytes would belong to nobody
            raise NotFoundError("There is no such file.", kind="file")
        if self.key(before) != self.key(fresh):
            await self.discard([before])
        return fresh

    @asynccontextmanager
    async def local(self, file_id: str) -> AsyncGenerator[tuple[FileRecord, Path]]:
        """A file as one of this machine, to the end of an `async with` block; nobody may write into it.

        Raises:
            NotFoundError: There is none such of this owner, or its bytes are gone.
            StorageError: The store cannot be used.
        """
        record = await self.record(file_id)
        async with self._blobs.local(self.key(record), record.sha256) as path:
            yield record, path

    async def read(self, file_id: str) -> bytes:
        """All bytes of a file that is not large. Raises as `local`."""
        async with self.local(file_id) as (_, path):
            return await asyncio.to_thread(path.read_bytes)

    def open(self, record: FileRecord, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        """The bytes of a file, or a range of them, piece by piece. Raises NotFoundError, StorageError."""
        return self._blobs.open(self.key(record), start, length)

    async def address(self, record: FileRecord) -> str:
        """Where a browser may save a large file from by itself, for a minute; "" where Parlour hands it out."""
        return await self._blobs.sign(self.key(record), record.name) if self.is_remote else ""

    @property
    def is_remote(self) -> bool:
        """Whether another machine has the bytes."""
        return self._blobs.is_remote

    async def record(self, file_id: str) -> FileRecord:
        """What is known about a file. Raises NotFoundError."""
        query = select(files).where(files.c.id == file_id, files.c.owner_id == self._owner)
        row = await self._database.read(lambda c: c.execute(query).first())
        if row is None:
            raise NotFoundError("There is no such file.", kind="file")
        return file_record(row)

    async def with_content(self, digest: str) -> FileRecord | None:
        """The latest file with these bytes, by their SHA-256; `None` where there is none."""
        query = select(files).where(files.c.sha256 == digest, files.c.owner_id == self._owner)
        row = await self._database.read(lambda c: c.execute(query.order_by(files.c.created_at.desc())).first())
        return None if row is None else file_record(row)

    async def check_room(self, more: int) -> None:
        """Nothing, where the owner's files may take `more` bytes.

        Raises:
            QuotaError: They may not.
        """
        beside = await self._size_beside()
        await self._database.read(lambda c: self._check_room(c, more, beside))

    async def delete(self, file_id: str) -> None:
        """Delete a file, its row and bytes. Raises NotFoundError."""
        record = await self.record(file_id)
        await self._database.write(lambda c: c.execute(delete(files).where(files.c.id == file_id)))
        await self.discard([record])

    async def let_go(self, records: Iterable[FileRecord]) -> None:
        """Delete those of some files that nothing came to need; what cannot be deleted is swept later."""
        ids = [record.id for record in records]
        with suppress(StorageError):
            if ids:
                await self.discard(await self._database.write(lambda c: freed_files(c, ids)))

    async def discard(self, records: Iterable[FileRecord]) -> None:
        """Delete the bytes of files whose rows are gone already; what cannot be deleted is swept later."""
        with suppress(StorageError):
            await self._blobs.delete([self.key(record) for record in records])

    def key(self, record: FileRecord) -> str:
        """What a file's bytes are kept under; the suffix is the one of what was found in it.

        Raises:
            NotFoundError: The file is somebody else's.
        """
        if record.owner_id != self._owner:
            raise NotFoundError("There is no such file.", kind="file")
        return key_of(self._owner, FILES, record.id + suffix_for(record.media_type))

    async def _size_beside(self) -> int:
        return 0 if self._beside is None or self._owner == LOCAL_OWNER else await self._beside()

    def _check_room(self, connection: Connection, more: int, beside: int) -> None:
        if self._owner == LOCAL_OWNER:
            return
        own = given_to(connection, self._owner).megabytes
        quota = self._quota if own is None else int(own * _BLOCK) or None
        if quota is None:
            return
        query = select(func.coalesce(func.sum(files.c.size), 0)).where(files.c.owner_id == self._owner)
        used = int(connection.execute(query).scalar_one()) + beside
        if used + more > quota:
            raise QuotaError(
                "There is no room left for this owner's files.",
                hint="Delete conversations or libraries with files that are no longer needed.",
                used=round(used / _BLOCK),
                limit=round(quota / _BLOCK),
            )


class AllFiles:
    """The files of all owners.

    Args:
        database: Has their rows.
        blobs: Has their bytes: a folder with one for each owner, or another store.
        quota: As of `FileStore`.
        beside: The same, of each owner.
    """

    def __init__(
        self,
        database: Database,
        blobs: Path | Blobs,
        *,
        quota: int | None = None,
        beside: Callable[[str], Awaitable[int]] | None = None,
    ) -> None:
        self._database = database
        self.blobs: Blobs = FolderBlobs({FILES: blobs}) if isinstance(blobs, Path) else blobs
        self._quota = quota
        self._beside = beside

    def of(self, owner: str) -> FileStore:
        """Those of one owner."""
        beside = partial(self._beside, owner) if self._beside is not None else None
        return FileStore(self._database, owner, self.blobs, quota=self._quota, beside=beside)

    async def delete_unused(self, older_than: float) -> int:
        """Delete uploads that nothing came to need and that were stored before this time (Unix seconds)."""
        unused = is_unneeded(files.c.id) & (files.c.created_at < older_than)
        some = select(files.c.id).where(unused).limit(_BATCH)
        # Found and deleted in one statement: a file that a message came to need meanwhile stays.
        deletion = delete(files).where(files.c.id.in_(some)).returning(files)
        deleted = 0
        while True:
            rows = await self._database.write(lambda c: c.execute(deletion).all())
            for record in map(file_record, rows):
                await self.of(record.owner_id).discard([record])
            deleted += len(rows)
            if len(rows) < _BATCH:
                return deleted

    async def missing(self) -> list[str]:
        """The names of files whose bytes are not there. Raises StorageError."""
        there = {blob.key async for blob in self.blobs.list("o/")}
        rows = await self._database.read(lambda c: c.execute(select(files)).all())
        return [one.name for one in map(file_record, rows) if self.of(one.owner_id).key(one) not in there]

    async def delete_orphans(self, older_than: float) -> int:
        """Delete bytes that no row names and that were stored before this time: a process ended between the two.

        Uploads that nobody sent are among them.

        Returns:
            How many there were.

        Raises:
            StorageError: The database or the store failed; the next time goes on.
        """
        batch: list[Blob] = []
        deleted = 0
        async for blob in self.blobs.list("o/"):
            if blob.changed < older_than and check_key(blob.key)["kind"] in {FILES, UPLOADS}:
                batch.append(blob)
            if len(batch) == _BATCH:
                deleted, batch = deleted + await self._without_row(batch), []
        return deleted + await self._without_row(batch)

    async def _without_row(self, batch: list[Blob]) -> int:
        names = {check_key(blob.key)["name"].partition(".")[0] for blob in batch}
        query = select(files).where(files.c.id.in_(names))
        rows = await self._database.read(lambda c: c.execute(query).all())
        known = {self.of(record.owner_id).key(record) for record in map(file_record, rows)}
        orphans = [blob.key for blob in batch if blob.key not in known]
        await self.blobs.delete(orphans)
        return len(orphans)


def shown_name(name: str) -> str:
    """A name as it may be shown: its last part, without control characters, not too long, never empty.

    It may begin with one dot.
    """
    last = re.split(r"[/\\]", clean(name))[-1]
    plain = _with_dot(plain_line(last, ""))
    if len(plain) > _LONGEST_NAME:
        stem, dot, suffix = plain.rpartition(".")
        tail = dot + suffix if stem and len(suffix) <= 10 else ""
        plain = plain[: _LONGEST_NAME - len(tail) - 1] + "…" + tail
    return plain or "file"


def brief_name(given: str) -> str:
    """A name as its owner wrote it, to be shown: the last part, no control signs, its stem cut to 150 bytes with it.

    It may begin with one dot. What it is called on a disk says `harmless_name`.
    """
    return _cut(_with_dot(_last_part(given)), "…")


def harmless_name(given: str) -> str:
    """A name that every file system takes, close to the one given: the last part, no control signs, not too long."""
    name = "".join("_" if sign in '<>:"|?*' else sign for sign in _last_part(given)).strip(" .")
    return _cut(f"_{name}" if name.partition(".")[0].lower() in _RESERVED else name, "")


def _with_dot(name: str) -> str:
    """The name without dots and spaces around it, but for one dot that it begins with, as that of `.env` does."""
    bare = name.strip(" .")
    return f".{bare}" if bare and name.lstrip().startswith(".") else bare


def _last_part(name: str) -> str:
    return plain_line(re.split(r"[/\\]", name)[-1], "")


def _cut(name: str, told: str) -> str:
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem or len(ending) > 12:
        stem, ending = name, ""
    room = _NAME_BYTES - len(ending.encode())
    if len(stem.encode()) > room:
        stem = stem.encode()[: room - len(told.encode())].decode(errors="ignore") + told
    stem = stem or "file"
    return f"{stem}.{ending}" if ending else stem


def _take_in(source: Path | bytes, draft: Path, name: str) -> tuple[int, str, str]:
    """Copy to the draft; returns size, SHA-256 and media type."""
    digest = hashlib.sha256()
    copy_bytes(source, draft, digest.update)
    return draft.stat().st_size, digest.hexdigest(), media_type_of(draft, name)


def file_record(row: Row[Any]) -> FileRecord:
    """A row of the table `files`."""
    return FileRecord(row.id, row.owner_id, row.name, row.media_type, row.size, row.sha256, row.created_at)
