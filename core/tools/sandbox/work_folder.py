"""The work folder from outside: files go in, what a cell wrote comes out. No link in it is ever followed."""

from __future__ import annotations

import ctypes
import mimetypes
import os
import re
import stat
import struct
from contextlib import suppress
from pathlib import PurePosixPath
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from core.tools.sandbox.results import Made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OPENAT2: Final = 437
_BENEATH: Final = 0x01 | 0x02 | 0x04 | 0x08  # no other file system, no magic links, no links, nothing above
_MOST_SEEN: Final = 2000
_MOST_TAKEN: Final = 20
_LARGEST: Final = 32 << 20
_LARGEST_ALL: Final = 64 << 20
_DEEPEST: Final = 4
_DEEPEST_COUNTED: Final = 64
_SMALLEST: Final = 4096
_MOST_ENTRIES: Final = 100_000
_ENDLESS: Final = 1 << 60
_UNPLAIN: Final = re.compile(r"[^\w.()\[\] +,@=-]+")
_BLOCK: Final = 1 << 20

Seen: TypeAlias = dict[str, tuple[int, int, int]]


class Taken(NamedTuple):
    """What is in a folder: bytes, endless where something cannot be counted, and entries."""

    size: int
    entries: int


class WorkFolder:
    """A folder that a sandbox writes into. What is done to it is done in threads, one after another.

    Args:
        descriptor: The open folder; this closes it.
        user: Who is to own what is put there; None for the own user.
    """

    def __init__(self, descriptor: int, user: int | None) -> None:
        self._folder = descriptor
        self._user = user
        self._put: dict[str, tuple[int, int]] = {}
        self._guard = Lock()

    def close(self) -> None:
        """Let go of it, once nobody works on it: its number may soon stand for another conversation's folder."""
        with self._guard:
            os.close(self._folder)
            self._folder = -1

    def put(self, name: str, source: Path) -> None:
        """Copy a file in under its name, unless that is done.

        Raises:
            OSError: There is no room, or a folder has that name.
        """
        about = source.stat()
        mark, entry = (about.st_mtime_ns, about.st_size), _entry(name)
        with self._guard:
            if self._put.get(entry) == mark:
                return
            with suppress(FileNotFoundError):
                os.unlink(entry, dir_fd=self._folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with source.open("rb") as read, os.fdopen(os.open(entry, flags, 0o600, dir_fd=self._folder), "wb") as write:
                if self._user is not None:
                    os.fchown(write.fileno(), self._user, self._user)
                while block := read.read(_BLOCK):
                    write.write(block)
            self._put[entry] = mark

    def seen(self) -> Seen:
        """The regular files there are, by their paths below the folder, each with what tells a change."""
        with self._guard:
            return self._seen()

    def _seen(self) -> Seen:
        found: Seen = {}
        for path, about in self._walk("", 0):
            found[path] = (about.st_mtime_ns, about.st_size, about.st_ino)
            if len(found) >= _MOST_SEEN:
                break
        return found

    def size(self) -> int:
        """Bytes of everything in it, hidden or deep; endless where something cannot be counted."""
        return self.taken().size

    def taken(self) -> Taken:
        """Bytes and entries of everything in it, counted no further than there may be entries."""
        with self._guard:
            return _taken(self._folder, 0, _MOST_ENTRIES)

    def made(self, before: Seen) -> tuple[list[Made], list[str]]:
        """What is new or changed since `before`, and sentences on what was left out."""
        with self._guard:
            return self._made(before)

    def _made(self, before: Seen) -> tuple[list[Made], list[str]]:
        now = self._seen()
        changed = [path for path, mark in now.items() if before.get(path) != mark]
        taken, left, room = list[Made](), list[str](), _LARGEST_ALL
        for path in sorted(changed):
            name = plain_name(path)
            data = self._read(path, min(_LARGEST, room)) if len(taken) < _MOST_TAKEN else None
            if data is None:
                left.append(name)
                continue
            room -= len(data)
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            taken.append(Made(name, kind, data))
        told = [f"Not handed out (too large, too many, or no plain files): {', '.join(left[:10])}."] if left else []
        return taken, told

    def read(self, path: str) -> bytes | None:
        """One file, if it is a plain one and not too large."""
        with self._guard:
            return self._read(path, _LARGEST)

    def _walk(self, below: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
        folder = self._open(below or ".", os.O_RDONLY | os.O_DIRECTORY)
        if folder is None:
            return
        try:
            names = sorted(os.listdir(folder))[:_MOST_SEEN]  # noqa: PTH208 - a descriptor
            for name in names:
                if name.startswith(".") or name == "__pycache__":
                    continue
                try:
                    about = os.stat(name, dir_fd=folder, follow_symlinks=False)
                except OSError:
                    continue  # it is gone
                path = f"{below}/{name}" if below else name
                if stat.S_ISREG(about.st_mode):
                    yield path, about
                elif stat.S_ISDIR(about.st_mode) and depth < _DEEPEST:
                    yield from self._walk(path, depth + 1)
        finally:
            os.close(folder)

    def _read(self, path: str, most: int) -> bytes | None:
        """A regular file that has one name alone and is not too large."""
        opened = self._open(path, os.O_RDONLY | os.O_NONBLOCK)
        if opened is None:
            return None
        with os.fdopen(opened, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or about.st_size > most:
                return None
            data = file.read(most + 1)
        return data if len(data) <= most else None

    def _open(self, path: str, flags: int) -> int | None:
        """Open something below the folder, by a call that itself refuses links and ways out."""
        libc: Any = ctypes.CDLL(None, use_errno=True)
        how = struct.pack("<QQQ", flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0, _BENEATH)
        opened = int(
            libc.syscall(
                ctypes.c_long(_OPENAT2),
                ctypes.c_long(self._folder),
                ctypes.c_char_p(os.fsencode(path)),
                ctypes.c_char_p(how),
                ctypes.c_size_t(len(how)),
            )
        )
        return opened if opened >= 0 else None


def _taken(folder: int, depth: int, most: int) -> Taken:
    """Bytes and entries below an open folder. Each thing counts as one block at least: empty files take room too."""
    total = count = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                count += 1
                if count > most:
                    break
                try:
                    about = entry.stat(follow_symlinks=False)
                    total += max(about.st_blocks * 512, _SMALLEST)
                    if stat.S_ISDIR(about.st_mode):
                        inside = _taken_inside(entry.name, folder, depth + 1, most - count)
                        total, count = total + inside.size, count + inside.entries
                except (FileNotFoundError, NotADirectoryError):
                    continue  # it is gone
    except PermissionError:
        return Taken(_ENDLESS, count)  # closed to us, by whoever made it
    except OSError:
        return Taken(total, count)
    return Taken(total, count)


def _taken_inside(name: str, folder: int, depth: int, most: int) -> Taken:
    if depth > _DEEPEST_COUNTED:
        return Taken(_ENDLESS, 0)
    inside = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        return _taken(inside, depth, most)
    finally:
        os.close(inside)


def _entry(name: str) -> str:
    """The name itself, as far as a folder can hold it."""
    fits = name.replace("/", "_").replace("\0", "").encode("utf-8", "replace")[:255].decode("utf-8", "ignore")
    return fits if fits not in {"", ".", ".."} else "file"


def plain_name(path: str) -> str:
    """The last part of a path as a name that is plain everywhere."""
    last = PurePosixPath(path.replace("\\", "/")).name
    name = _UNPLAIN.sub("_", last).strip(". ")
    return name[-120:] or "file"
