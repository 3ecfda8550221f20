"""Copies on this machine of bytes that are elsewhere: bounded, the least recently used going first, none in use."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from core.errors import StorageError
from core.storage.data_folder import make_folder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

_MOST_PROCESSES: Final = 64


@dataclass(slots=True)
class _Copy:
    path: Path
    size: int
    users: int = 0


class LocalCopies:
    """A folder of copies, of this process alone.

    Args:
        folder: Has a folder for each process that works on the same data folder at the same time.
        most: Bytes that copies may take which nobody has in use.

    Raises:
        StorageError: The folder cannot be made.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._most = most
        self.folder = self._own(folder)
        self._kept: dict[str, _Copy] = self._found()  # the least recently used first
        self._size = sum(one.size for one in self._kept.values())
        self._making: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def close(self) -> None:
        """Let another process have the folder."""
        self._lock.release()

    def draft(self) -> Path:
        """A name in the folder for bytes that are being made ready."""
        return self.folder / "drafts" / token_hex(16)

    @property
    def size(self) -> int:
        """Bytes that copies take."""
        return self._size

    @asynccontextmanager
    async def held(
        self, key: str, digest: str, name: str, fill: Callable[[Path], Awaitable[None]]
    ) -> AsyncGenerator[Path]:
        """A copy, to the end of an `async with` block.

        Args:
            key: What it is a copy of.
            digest: Which bytes these are.
            name: What the file is called.
            fill: Writes the bytes where there is no copy yet; what it raises is raised.

        Raises:
            OSError: The disk is full, or cannot be used.
        """
        place = _place(key, digest)
        lock = self._making.get(place) or asyncio.Semaphore(1)
        self._making[place] = lock
        async with lock:  # who comes second finds what the first has fetched
            copy = self._let_go(place)
            if copy is None or not copy.path.is_file():  # somebody may have emptied the folder
                copy = await self._made(self.folder / place / name, fill)
            self._keep(place, copy)  # used last
            copy.users += 1
        try:
            with suppress(OSError):
                os.utime(copy.path.parent)
            await self._bound()
            yield copy.path
        finally:
            copy.users -= 1
            if not copy.users and place not in self._kept:
                async with lock:  # it was deleted meanwhile; somebody may be fetching another to its place
                    if place not in self._kept:
                        await self._remove(copy)
            await self._bound()

    async def forget(self, key: str) -> None:
        """Let go of all copies of what was deleted elsewhere; who has one in use keeps it to the end."""
        for place in [one for one in self._kept if one.startswith(_place(key))]:
            copy = self._let_go(place)
            if copy is not None and not copy.users:
                await self._remove(copy)

    async def adopt(self, key: str, digest: str, name: str, draft: Path) -> None:
        """Make a draft the copy of what was just stored elsewhere; one that cannot be is deleted."""
        path = self.folder / _place(key, digest) / name
        try:
            size = await asyncio.to_thread(_put, draft, path)
        except OSError:
            with suppress(OSError):
                await asyncio.to_thread(draft.unlink, missing_ok=True)
            return
        before = self._let_go(_place(key, digest))
        copy = before or _Copy(path, size)
        copy.size = size
        self._keep(_place(key, digest), copy)
        await self._bound()

    def _keep(self, place: str, copy: _Copy) -> None:
        self._kept[place] = copy
        self._size += copy.size

    def _let_go(self, place: str) -> _Copy | None:
        copy = self._kept.pop(place, None)
        self._size -= copy.size if copy is not None else 0
        return copy

    async def _made(self, path: Path, fill: Callable[[Path], Awaitable[None]]) -> _Copy:
        draft = self.draft()
        try:
            await asyncio.to_thread(make_folder, draft.parent)
            await fill(draft)
            return _Copy(path, await asyncio.to_thread(_put, draft, path))
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    async def _remove(self, copy: _Copy) -> None:
        aside = self._aside(copy)  # at once: the next who wants it makes another in its place
        if aside is not None:
            await asyncio.to_thread(shutil.rmtree, aside, ignore_errors=True)

    def _aside(self, copy: _Copy) -> Path | None:
        aside = self.draft()
        try:
            make_folder(aside.parent)
            copy.path.parent.rename(aside)
        except OSError:  # somebody emptied the folder
            return None
        return aside

    async def _bound(self) -> None:
        if self._size <= self._most:
            return
        for place in [place for place, one in self._kept.items() if not one.users]:
            if self._size <= self._most:
                return
            copy = self._kept.get(place)
            if copy is not None and not copy.users:  # nobody took it while another was being deleted
                self._let_go(place)
                await self._remove(copy)

    def _found(self) -> dict[str, _Copy]:
        """What an earlier process left, by the time of its last use."""
        shutil.rmtree(self.folder / "drafts", ignore_errors=True)
        found: list[tuple[float, str, _Copy]] = []
        for place in self.folder.iterdir():
            with suppress(OSError):
                if place.is_dir() and (files := list(place.iterdir())):
                    found.append((place.stat().st_mtime, place.name, _Copy(files[0], files[0].stat().st_size)))
        return {name: copy for _, name, copy in sorted(found, key=lambda one: one[0])}

    def _own(self, among: Path) -> Path:
        from filelock import FileLock, Timeout

        try:
            make_folder(among)
            for number in range(_MOST_PROCESSES):
                lock = FileLock(among / f"{number}.lock", timeout=0)
                with suppress(Timeout):
                    lock.acquire()
                    self._lock = lock
                    make_folder(among / str(number))
                    return among / str(number)
        except OSError as error:
            raise StorageError(f"{among} cannot be used: {error.strerror}.", path=str(among)) from error
        raise StorageError(f"Too many processes work with {among}.", path=str(among))


def _put(draft: Path, path: Path) -> int:
    """Give a draft its name; returns its size. Raises OSError."""
    make_folder(path.parent)
    draft.replace(path)
    return path.stat().st_size


def _place(key: str, digest: str | None = None) -> str:
    """The folder of a copy; without a digest, what those of all its bytes begin with."""
    start = sha256(key.encode()).hexdigest()[:32]
    return start if digest is None else f"{start}-{sha256(digest.encode()).hexdigest()[:12]}"
