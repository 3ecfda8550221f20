"""Where the bytes of files are: what every store of them can do, and the one that is a folder of this machine.

A key says whose the bytes are and of which kind, `o/OWNER/f/FILE.pdf`; who may have them is told by the tables alone.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from secrets import token_hex
from stat import S_ISREG
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from core.errors import ConflictError, NotFoundError, StorageError
from core.storage.base import folder_name
from core.storage.data_folder import make_folder, put_in_place, put_new, translated

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

BLOCK: Final = 1024 * 1024
"""Bytes that are in memory at a time."""
SIGNED_SECONDS: Final = 60.0
"""How long an address leads to bytes that was signed for one look at them."""
FILES, SHARES, UPLOADS = "f", "s", "u"
"""The kinds: files of conversations, shared snapshots, and what was sent up and not used yet."""
_KEY: Final = re.compile(r"o/(?P<owner>[\w-]{1,64})/(?P<kind>[a-z])/(?P<name>[\w-][\w.-]{0,254})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Blob:
    """What a list says of stored bytes; `changed` is in Unix seconds."""

    key: str
    size: int
    changed: float


class Blobs(Protocol):
    """Bytes by their keys.

    Attributes:
        is_remote: Whether another machine has them, so that every look costs a request.
    """

    is_remote: bool

    def draft(self, key: str) -> Path:
        """Where bytes are made ready that `take` puts under the key; a new name each time."""
        ...

    async def take(self, key: str, draft: Path, digest: str = "") -> None:
        """Put a complete draft under its key, in place of what is there; the draft is gone then.

        Args:
            digest: As of `local`.

        Raises:
            NoSpaceError: The disk is full.
            StorageError: The store cannot be used; what was there is there still.
        """
        ...

    async def put(self, key: str, source: Path | bytes, *, only_new: bool = False) -> None:
        """Copy bytes under a key.

        Args:
            only_new: Only where nothing has this key.

        Raises:
            ConflictError: key `blob_taken`: something has it, and `only_new` was asked for.
            StorageError: As of `take`.
        """
        ...

    def open(self, key: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        """The bytes, or a range of them, piece by piece. Raises NotFoundError, StorageError."""
        ...

    def local(self, key: str, digest: str = "") -> AbstractAsyncContextManager[Path]:
        """A file of this machine with the bytes, to the end of an `async with` block; nobody may write into it.

        Args:
            digest: What tells other bytes under the same key apart.

        Raises:
            NotFoundError: There is nothing under the key.
            StorageError: The store cannot be used.
        """
        ...

    async def sign(self, key: str, name: str, seconds: float = SIGNED_SECONDS) -> str:
        """An address where the bytes are saved from, as `name`, by whoever has it; "" where the store gives none."""
        ...

    async def delete(self, keys: Collection[str]) -> None:
        """Delete bytes; what is not there is passed over. Raises StorageError."""
        ...

    async def copy(self, key: str, to: str) -> None:
        """The same bytes under another key, where nothing has it. Raises NotFoundError, StorageError."""
        ...

    async def read(self, keys: Sequence[str]) -> list[bytes | None]:
        """All bytes of small things, in order; `None` for what is not there. Raises StorageError."""
        ...

    def list(self, prefix: str) -> AsyncGenerator[Blob]:
        """All whose keys begin so. Raises StorageError."""
        ...

    async def find(self, kind: str, name: str) -> Sequence[str]:
        """The keys of this kind and name, whoever has them; of shared snapshots alone. Raises StorageError."""
        ...


def key_of(owner: str, kind: str, name: str) -> str:
    """The key of an owner's bytes."""
    return f"{beginning_of(owner)}{kind}/{name}"


def beginning_of(owner: str) -> str:
    """What all keys of an owner begin with."""
    return f"o/{folder_name(owner)}/"


async def delete_all(blobs: Blobs, prefix: str) -> None:
    """Delete everything whose key begins so. Raises StorageError."""
    await blobs.delete([blob.key async for blob in blobs.list(prefix)])


def check_key(key: str) -> re.Match[str]:
    """The parts of a key: `owner` (the name of the folder), `kind`, `name`.

    Raises:
        NotFoundError: It is no key, so there is nothing under it.
    """
    found = _KEY.fullmatch(key)
    if found is None:
        raise gone()
    return found


def is_key(path: str) -> bool:
    """Whether something in a store is under a key; what somebody else has put there is not."""
    return _KEY.fullmatch(path) is not None


def gone() -> NotFoundError:
    """The bytes of a file are not where they were."""
    return NotFoundError("The file is gone from the store.", kind="file")


def taken() -> ConflictError:
    """Something has the key already."""
    return ConflictError("Something else was stored under this name first.", key="blob_taken")


async def size_of(blobs: Blobs, kind: str, owner: str) -> int:
    """Bytes that an owner's things of one kind take. Raises StorageError."""
    return sum([blob.size async for blob in blobs.list(key_of(owner, kind, ""))])


class FolderBlobs:
    """Bytes in folders of this machine, one for each owner.

    Args:
        places: The folder of each kind, which has a folder for each owner; they are made when they are needed.
    """

    is_remote = False

    def __init__(self, places: Mapping[str, Path]) -> None:
        self._places = dict(places)

    def path(self, key: str) -> Path:
        """Where the bytes of a key are, or would be. Raises NotFoundError."""
        parts = check_key(key)
        if parts["kind"] not in self._places:
            raise gone()
        return self._places[parts["kind"]] / parts["owner"] / parts["name"]

    def draft(self, key: str) -> Path:
        """As of `Blobs`."""
        path = self.path(key)
        return path.with_name(f".{path.name}-{token_hex(4)}.part")

    async def take(self, key: str, draft: Path, digest: str = "") -> None:
        """As of `Blobs`."""
        del digest
        path = self.path(key)
        try:
            await asyncio.to_thread(put_in_place, draft, path)
        except OSError as error:
            raise translated(error, path.parent.parent) from error

    async def put(self, key: str, source: Path | bytes, *, only_new: bool = False) -> None:
        """As of `Blobs`."""
        path, draft = self.path(key), self.draft(key)
        try:
            await asyncio.to_thread(copy_bytes, source, draft)
            await asyncio.to_thread(put_new if only_new else put_in_place, draft, path)
        except FileExistsError as error:
            raise taken() from error
        except OSError as error:
            raise translated(error, path.parent.parent) from error
        finally:
            await asyncio.to_thread(_dropped, draft)

    async def open(self, key: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        """As of `Blobs`."""
        async with self.local(key) as path:
            file = await asyncio.to_thread(path.open, "rb")
            with file:
                file.seek(start)
                while length is None or length > 0:
                    piece = await asyncio.to_thread(file.read, BLOCK if length is None else min(BLOCK, length))
                    if not piece:
                        return
                    length = None if length is None else length - len(piece)
                    yield piece

    @asynccontextmanager
    async def local(self, key: str, digest: str = "") -> AsyncGenerator[Path]:
        """As of `Blobs`: the file itself, no copy."""
        del digest
        path = self.path(key)
        if not await asyncio.to_thread(path.is_file):
            raise gone()
        yield path

    async def sign(self, key: str, name: str, seconds: float = SIGNED_SECONDS) -> str:
        """Nothing: nobody but Parlour hands out what lies in a folder."""
        del key, name, seconds
        return ""

    async def delete(self, keys: Collection[str]) -> None:
        """As of `Blobs`; what is in use on Windows stays, and is told when all else is gone."""
        paths = [self.path(key) for key in keys]
        await asyncio.to_thread(_delete, paths)

    async def copy(self, key: str, to: str) -> None:
        """As of `Blobs`: by a link where the file system has them."""
        source, target = self.path(key), self.path(to)
        try:
            await asyncio.to_thread(_copy, source, target)
        except FileNotFoundError as error:
            raise gone() from error
        except OSError as error:
            raise translated(error, target.parent) from error

    async def read(self, keys: Sequence[str]) -> list[bytes | None]:
        """As of `Blobs`."""
        paths = [self.path(key) for key in keys]
        return await asyncio.to_thread(_read_each, paths) if paths else []

    async def find(self, kind: str, name: str) -> Sequence[str]:
        """As of `Blobs`."""
        check_key(f"o/x/{kind}/{name}")
        place = self._places.get(kind)
        if place is None:
            return []
        found = await asyncio.to_thread(lambda: sorted(place.glob(f"*/{name}")))
        return [f"o/{path.parent.name}/{kind}/{name}" for path in found]

    async def list(self, prefix: str) -> AsyncGenerator[Blob]:
        """As of `Blobs`."""
        for kind, place in self._places.items():
            try:
                found = await asyncio.to_thread(_listed, kind, place, prefix)
            except OSError as error:
                raise translated(error, place) from error
            for one in found:
                yield one


def files_beside(files: Path) -> FolderBlobs:
    """The folders of a data folder: that of files is given, those of other kinds lie beside it."""
    return FolderBlobs({FILES: files, SHARES: files.parent / "shares"})


def copy_bytes(source: Path | bytes, target: Path, heard: Any = None) -> None:
    """Write a new file with these bytes, in a folder that is made where it is missing.

    Args:
        heard: Called with each piece, to add it up.

    Raises:
        OSError: The one cannot be read or the other not be written.
    """
    make_folder(target.parent)
    opened: IO[bytes] = BytesIO(source) if isinstance(source, bytes) else source.open("rb")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with opened as reading, os.fdopen(os.open(target, flags, 0o600), "wb") as writing:
        while block := reading.read(BLOCK):
            if heard is not None:
                heard(block)
            writing.write(block)


def _dropped(path: Path) -> None:
    """Delete a file that may be there; what cannot be deleted stays."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _delete(paths: list[Path]) -> None:
    """Delete all that can be. Raises StorageError where one could not."""
    failed: StorageError | None = None
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:  # such as in use on Windows
            failed = translated(error, path)
    if failed is not None:
        raise failed


def _read_each(paths: Iterable[Path]) -> list[bytes | None]:
    found: list[bytes | None] = []
    for path in paths:
        try:
            found.append(path.read_bytes())
        except FileNotFoundError:
            found.append(None)
        except OSError as error:
            raise translated(error, path) from error
    return found


def _copy(source: Path, target: Path) -> None:
    make_folder(target.parent)
    if target.exists():
        return
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except FileExistsError:  # another was faster
        return
    except OSError:  # a file system without links
        draft = target.with_name(f".{target.name}-{token_hex(4)}.part")
        try:
            shutil.copy2(source, draft)
            put_in_place(draft, target)
        finally:
            _dropped(draft)


def _listed(kind: str, place: Path, prefix: str) -> list[Blob]:
    found: list[Blob] = []
    whose = prefix.split("/")[1] if prefix.count("/") > 1 else ""
    owners = [place / whose] if whose else sorted(place.iterdir()) if place.is_dir() else []
    for owner in owners:
        start = f"o/{owner.name}/{kind}/"
        if not owner.is_dir() or not (start.startswith(prefix) or prefix.startswith(start)):
            continue
        for path in sorted(owner.iterdir()):
            key = start + path.name
            if not key.startswith(prefix) or not is_key(key):
                continue
            with suppress(FileNotFoundError):  # deleted meanwhile
                told = path.stat()
                if S_ISREG(told.st_mode):
                    found.append(Blob(key, told.st_size, told.st_mtime))
    return found
