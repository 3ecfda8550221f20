"""Texts under keys such as `notes/2026/plan`, each in a file of its own."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.errors import BadArgumentsError, ToolError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

LONGEST_KEY: Final = 500  # characters
_LONGEST_PART: Final = 200  # bytes; file systems take 255
_HALF: Final = ".half-written-"  # how files begin that are being written
_TRIES: Final = 20  # to make a folder that others remove
_OUTSIDE: Final = re.compile(r"[\x00-\x1f\x7f\\]|\A/*[A-Za-z]:")
_NO_FILE_NAME: Final = re.compile(r'[<>:"|?*]' if os.name == "nt" else r"\A\Z")
_ONLY_DOTS: Final = re.compile(r"[. ]+")


class KeyNotExistsError(ToolError):
    """Nothing is kept under that key."""


class KeyFiles:
    """A folder of values. What is written is there as a whole or not at all; nothing leads out of the folder.

    Args:
        root: The folder, made when the first value is kept. Each owner of values needs one.
        longest_value: The most bytes (UTF-8) of one value.
        most_bytes: The most bytes of all values together.
    """

    def __init__(
        self, root: Path, *, longest_value: int = 2**20, most_bytes: int = 64 * 2**20, most_keys: int = 10_000
    ) -> None:
        self._root = root
        self._longest_value = longest_value
        self._most_bytes = most_bytes
        self._most_keys = most_keys

    def put(self, key: str, value: str) -> None:
        """Keep `value`, in place of what was there.

        Raises:
            BadArgumentsError: No value can have this key, or the value is too long.
            ToolError: There is no room left, or the folder cannot be written.
        """
        parts = parts_of(key)
        if not parts:
            raise BadArgumentsError("A value needs a key such as 'notes/plan'.")
        data = value.encode("utf-8", "replace")
        if len(data) > self._longest_value:
            raise BadArgumentsError(
                f"The value has {len(data)} bytes; at most {self._longest_value} may be kept under one key."
            )
        with _explained(key):
            place = self._place(parts)
            self._check_room(place, len(data))
            if place.is_dir():
                _remove_empty(place)
            _write(place, data)

    def get(self, key: str) -> str:
        """What is kept under `key`.

        Raises:
            BadArgumentsError: No value can have this key.
            KeyNotExistsError: Nothing is kept there.
        """
        with _explained(key):
            place = self._place(parts_of(key))
            if not place.is_file():
                raise KeyNotExistsError(f"Get Failed: {key} does not exist")
            return _read(place)

    def delete(self, key: str) -> bool:
        """Forget what is kept under `key`; whether there was anything.

        Raises:
            BadArgumentsError: No value can have this key.
        """
        with _explained(key):
            place = self._place(parts_of(key))
            if not place.is_file():
                return False
            place.unlink()
            self._tidy(place.parent)
            return True

    def scan(self, key: str) -> Iterator[tuple[str, str]]:
        """The keys below `key`, as seen from there (`/a/b`), in order, each with its value.

        Raises:
            BadArgumentsError: No value can have this key.
        """
        with _explained(key):
            top = self._place(parts_of(key))
            if top.is_file():
                yield "", _read(top)
            found = sorted((file.relative_to(top).as_posix(), file) for file, _ in files_below(top))
        for name, file in found:
            with _explained(name):
                yield f"/{name}", _read(file)

    def _place(self, parts: list[str]) -> Path:
        """The file of a key; links on the way to it are not followed."""
        place = self._root.resolve().joinpath(*parts)
        if os.path.normcase(place.resolve()) != os.path.normcase(place):
            raise BadArgumentsError(f"The key {'/'.join(parts)!r} leads out of the place where values are kept.")
        return place

    def _tidy(self, folder: Path) -> None:
        """Remove a folder in which nothing is left, and those around it: no limit counts them, but they take room."""
        root = self._root.resolve()
        with suppress(OSError):  # something is in it
            while folder != root:
                folder.rmdir()
                folder = folder.parent

    def _check_room(self, place: Path, size: int) -> None:
        others = [taken for file, taken in files_below(self._root.resolve()) if file != place]
        if len(others) >= self._most_keys:
            raise ToolError(f"There is no room: {self._most_keys} values are kept. Delete some first.")
        if sum(others) + size > self._most_bytes:
            raise ToolError(
                f"There is no room: {self._most_bytes} bytes are the most of all values. Delete some first."
            )


def parts_of(key: str) -> list[str]:
    """The names of folders and file that a key stands for; `/` at either end says nothing.

    Raises:
        BadArgumentsError: No file inside a folder can have this name.
    """
    if _OUTSIDE.search(key):
        raise BadArgumentsError(f"The key {key!r} may have no backslash, drive or control character.")
    if len(key) > LONGEST_KEY:
        raise BadArgumentsError(f"The key has {len(key)} characters; at most {LONGEST_KEY} may be.")
    parts = [part for part in key.split("/") if part]
    for part in parts:
        if _ONLY_DOTS.fullmatch(part):
            raise BadArgumentsError(f"The key {key!r} leads out of the place where values are kept.")
        if len(part.encode("utf-8", "replace")) > _LONGEST_PART:
            raise BadArgumentsError(
                f"A part of the key is too long: at most {_LONGEST_PART} bytes may stand between '/'."
            )
        if part.startswith(_HALF) or _NO_FILE_NAME.search(part) or not _is_text(part):
            raise BadArgumentsError(f"The key {key!r} cannot be the name of a file.")
    return parts


def _is_text(part: str) -> bool:
    return part == part.encode("utf-8", "replace").decode("utf-8")


def files_below(folder: Path) -> Iterator[tuple[Path, int]]:
    """All values below a folder with their sizes; links are passed by."""
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(Path(entry.path))
        elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(_HALF):
            try:
                size = entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:  # deleted meanwhile
                continue
            yield Path(entry.path), size


def _read(place: Path) -> str:
    return place.read_bytes().decode("utf-8", "replace")


def _write(place: Path, data: bytes) -> None:
    number, half = _begun(place.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(half).replace(place)
    except BaseException:
        Path(half).unlink(missing_ok=True)
        raise


def _begun(folder: Path) -> tuple[int, str]:
    """A new file in a folder, which is made; again where it went meanwhile because its last value was deleted."""
    left = _TRIES
    while True:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return tempfile.mkstemp(prefix=_HALF, dir=folder)
        except (FileNotFoundError, FileExistsError):
            left -= 1
            if left == 0:
                raise


def _remove_empty(folder: Path) -> None:
    """Remove a folder in which nothing is kept any more; one that holds values is an `OSError`."""
    for below in folder.iterdir():
        _remove_empty(below)
    folder.rmdir()


@contextmanager
def _explained(key: str) -> Generator[None]:
    """What the file system refuses, in one sentence without a path of this machine."""
    try:
        yield
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise ToolError(f"The key {key!r} cannot be used: a key is either a value or a folder of keys.") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise ToolError(f"The key {key!r} cannot be used: {why}.") from error
