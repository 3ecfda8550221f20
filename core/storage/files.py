"""Stored files: bytes under opaque names, one folder per owner; what they are called is only in the table."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from core.bridge.whole import whole
from core.errors import NotFoundError, QuotaError, StorageError
from core.messages.invisible import plain_line
from core.storage.base import LOCAL_OWNER, FileRecord, folder_name, new_id
from core.storage.conversations import clean, know_owner
from core.storage.needs import needed_files
from core.storage.sniff import media_type_of, suffix_for
from core.storage.synced import make_folder, put_in_place
from core.storage.tables import files
from core.storage.trouble import translated

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from core.storage.database import Database

_BLOCK = 1024 * 1024
_LONGEST_NAME = 120
_BATCH = 500  # files that are deleted in one transaction


class FileStore:
    """Files of owners in `folder`. What is somebody else's does not exist.

    Args:
        database: Has their rows.
        folder: Has their bytes.
        quota: Bytes that the files of one owner may take, the local owner excepted; no limit if left out.
    """

    def __init__(self, database: Database, folder: Path, *, quota: int | None = None) -> None:
        self._database = database
        self._folder = folder
        self._quota = quota

    async def put(self, owner: str, name: str, source: Path | bytes, *, media_type: str = "") -> FileRecord:
        """Copy a file in.

        Args:
            owner: Whose it is.
            name: What it is called; only its last part is kept, without control characters, at most 120 letters.
            source: The file to copy, or its bytes.
            media_type: What kind it is; found in its content by default.

        Raises:
            NoSpaceError: The disk is full; nothing is left behind.
            QuotaError: The owner's files take too much room with it; nothing is left behind.
            StorageError: The source or the store cannot be used.
        """
        file_id, shown = new_id(), shown_name(name)
        draft = self._folder_of(owner) / f".{file_id}.part"
        path = None
        try:
            size, digest, found = await whole(asyncio.to_thread(_take_in, source, draft, shown))
            fresh = FileRecord(file_id, owner, shown, media_type or found, size, digest, time.time())
            path = self.path_of(fresh)
            await whole(asyncio.to_thread(put_in_place, draft, path))
            values = {column: getattr(fresh, column) for column in FileRecord.__slots__}

            def note(connection: Connection) -> None:
                self._check_room(connection, owner, size)
                know_owner(connection, owner)
                connection.execute(insert(files).values(values))

            await self._database.write(note)
        except OSError as error:
            for one in (draft, path):
                if one is not None:
                    one.unlink(missing_ok=True)
            raise translated(error, self._folder) from error
        except BaseException:  # a file without a row would be lost in the folder for ever
            draft.unlink(missing_ok=True)
            if path is not None:  # whoever was cancelled may have stored the row
                path.unlink(missing_ok=True)
                with suppress(StorageError):
                    await self._database.write(lambda c: c.execute(delete(files).where(files.c.id == file_id)))
            raise
        return fresh

    async def refill(self, owner: str, file_id: str, name: str, data: bytes) -> FileRecord:
        """Put other bytes into a file, under another name: whoever names it means these from now on.

        Raises:
            NotFoundError: There is none such of this owner.
            NoSpaceError: The disk is full; the file is as it was.
            QuotaError: The owner's files take too much room with them; the file is as it was.
        """
        before = await self.record(owner, file_id)
        await self.check_room(owner, len(data) - before.size)
        return await whole(self._refilled(before, shown_name(name), data))  # whoever asks may leave in the midst of it

    async def _refilled(self, before: FileRecord, name: str, data: bytes) -> FileRecord:
        draft = self._folder_of(before.owner_id) / f".{before.id}.part"
        try:
            size, digest, media_type = await asyncio.to_thread(_take_in, data, draft, name)
            fresh = replace(before, name=name, media_type=media_type, size=size, sha256=digest)
            await asyncio.to_thread(put_in_place, draft, self.path_of(fresh))
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise translated(error, self._folder) from error
        changed = {"name": name, "media_type": media_type, "size": size, "sha256": digest}
        change = update(files).where(files.c.id == before.id).values(changed)
        if not await self._database.write(lambda c: c.execute(change).rowcount):
            self.discard([fresh])  # it was deleted meanwhile: its new bytes would belong to nobody
            raise NotFoundError("There is no such file.", kind="file")
        if self.path_of(before) != self.path_of(fresh):
            self.discard([before])
        return fresh

    async def get(self, owner: str, file_id: str) -> tuple[FileRecord, Path]:
        """A file and where its bytes are.

        Raises:
            NotFoundError: There is none such of this owner, or its bytes are gone.
        """
        record = await self.record(owner, file_id)
        path = self.path_of(record)
        if not path.is_file():
            raise NotFoundError("The file is gone from the data folder.", kind="file")
        return record, path

    async def record(self, owner: str, file_id: str) -> FileRecord:
        """What is known about a file. Raises NotFoundError."""
        query = select(files).where(files.c.id == file_id, files.c.owner_id == owner)
        row = await self._database.read(lambda c: c.execute(query).first())
        if row is None:
            raise NotFoundError("There is no such file.", kind="file")
        return file_record(row)

    async def check_room(self, owner: str, more: int) -> None:
        """Nothing, where the owner's files may take `more` bytes.

        Raises:
            QuotaError: They may not.
        """
        await self._database.read(lambda c: self._check_room(c, owner, more))

    async def delete(self, owner: str, file_id: str) -> None:
        """Delete a file, its row and bytes. Raises NotFoundError."""
        record = await self.record(owner, file_id)
        await self._database.write(lambda c: c.execute(delete(files).where(files.c.id == file_id)))
        self.discard([record])

    async def delete_unused(self, older_than: float) -> int:
        """Delete uploads that nothing came to need and that were stored before this time (Unix seconds)."""
        unused = files.c.id.not_in(needed_files()) & (files.c.created_at < older_than)
        some = select(files.c.id).where(unused).limit(_BATCH)
        # Found and deleted in one statement: a file that a message came to need meanwhile stays.
        deletion = delete(files).where(files.c.id.in_(some)).returning(files)
        deleted = 0
        while True:
            rows = await self._database.write(lambda c: c.execute(deletion).all())
            self.discard(file_record(row) for row in rows)
            deleted += len(rows)
            if len(rows) < _BATCH:
                return deleted

    def discard(self, records: Iterable[FileRecord]) -> None:
        """Delete the bytes of files whose rows are gone already."""
        for record in records:
            with suppress(OSError):  # in use on Windows, or gone: the row is what counts
                self.path_of(record).unlink(missing_ok=True)

    def path_of(self, record: FileRecord) -> Path:
        """Where a file's bytes are; the suffix is the one of what was found in it."""
        return self._folder_of(record.owner_id) / (record.id + suffix_for(record.media_type))

    def _check_room(self, connection: Connection, owner: str, more: int) -> None:
        if self._quota is None or owner == LOCAL_OWNER:
            return
        query = select(func.coalesce(func.sum(files.c.size), 0)).where(files.c.owner_id == owner)
        used = int(connection.execute(query).scalar_one())
        if used + more > self._quota:
            raise QuotaError(
                "There is no room left for this owner's files.",
                hint="Delete conversations or libraries with files that are no longer needed.",
                used=round(used / _BLOCK),
                limit=round(self._quota / _BLOCK),
            )

    def _folder_of(self, owner: str) -> Path:
        return self._folder / folder_name(owner)


def shown_name(name: str) -> str:
    """A name as it may be shown: its last part, without control characters, not too long, never empty."""
    last = re.split(r"[/\\]", clean(name))[-1]
    plain = plain_line(last, "").strip(". ")
    if len(plain) > _LONGEST_NAME:
        stem, dot, suffix = plain.rpartition(".")
        tail = dot + suffix if stem and len(suffix) <= 10 else ""
        plain = plain[: _LONGEST_NAME - len(tail) - 1] + "…" + tail
    return plain or "file"


def _take_in(source: Path | bytes, draft: Path, name: str) -> tuple[int, str, str]:
    """Copy to the draft; returns size, SHA-256 and media type."""
    make_folder(draft.parent)
    digest = hashlib.sha256()
    opened: IO[bytes] = BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    with opened as reading, draft.open("xb") as writing:
        while block := reading.read(_BLOCK):
            digest.update(block)
            writing.write(block)
    return draft.stat().st_size, digest.hexdigest(), media_type_of(draft, name)


def file_record(row: Row[Any]) -> FileRecord:
    """A row of the table `files`."""
    return FileRecord(row.id, row.owner_id, row.name, row.media_type, row.size, row.sha256, row.created_at)
