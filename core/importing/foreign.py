"""Reads exports of other applications, and our JSON, into a stage; a broken conversation is left out and counted."""

from __future__ import annotations

from bisect import bisect_left
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import IO, TYPE_CHECKING, Any, Final, cast

from core.importing.catalog import OURS, READERS
from core.importing.json_elements import ElementError, elements
from core.importing.problems import problem
from core.importing.tree import BrokenTreeError, NewerExportError, arrived, said
from core.importing.tree import Foreign as Tree

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from core.importing.archive import Archive
    from core.importing.catalog import Reader
    from core.importing.stage import Stage
    from core.importing.tree import Attached
    from core.storage.base import FileRecord

MOST_MESSAGES: Final = 500_000
_LARGEST: Final = 128 << 20  # bytes of one conversation
_LARGEST_FILE: Final = 512 << 20


class Foreign:
    """One export.

    Args:
        path: The file.
        name: What the reader calls it.
        archive: What is in it, where it is a ZIP.
        stage: Where conversations go.
        left_out: Counts what is left out, by the reason.
        told: Called with the share that was read, from 0 to 1; it may raise to end the reading.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        archive: Archive | None,
        stage: Stage,
        left_out: Counter[str],
        told: Callable[[float], None],
    ) -> None:
        self._path, self._name, self._archive = path, name, archive
        self._stage, self._left_out, self._told = stage, left_out, told
        self._kept: dict[str, FileRecord] = {}
        self._entries = sorted(archive.sizes, key=_last) if archive is not None else []
        self._reader: Reader | None = None

    def read(self) -> str:
        """Read all of it; returns whose export it is.

        Raises:
            UnsupportedFormatError: It is none that can be read.
        """
        try:
            for one in self._objects():
                self._reader = self._reader or next((each for each in READERS if each.takes(one)), None)
                if self._reader is None:
                    raise problem("import_unknown", file=self._name)
                self._take(self._reader, one)
        except ElementError as error:
            key = "import_too_large" if error.large else "import_damaged" if self._reader else "import_unknown"
            raise problem(key, file=self._name, where=self._name) from error
        if self._reader is None:
            raise problem("import_unknown", file=self._name)
        return self._reader.name

    def _take(self, reader: Reader, one: dict[str, Any]) -> None:
        if not reader.takes(one):
            self._left_out["broken"] += 1
            return
        try:
            found = reader.read(one, self._left_out, self._find)
            self._stage.look()
            made = arrived(found, self._left_out, self._keep, self._stage.look) if isinstance(found, Tree) else found
        except NewerExportError as error:
            raise problem("import_newer", file=self._name) from error
        except BrokenTreeError:
            self._left_out["broken"] += 1
            return
        if made is not None:
            self._stage.add(made if reader is OURS else replace(made, origin=_origin(reader, one)))
        if self._stage.messages > MOST_MESSAGES:
            raise problem("import_too_many", file=self._name, most=f"{MOST_MESSAGES:,}")

    def _objects(self) -> Iterator[dict[str, Any]]:
        for name, size in self._sources():
            with self._opened(name) as file:
                counted = _Counted(file, size, self._told)
                for one in elements(cast("IO[bytes]", counted), _LARGEST):
                    if isinstance(one, dict):
                        yield cast("dict[str, Any]", one)
                    else:
                        self._left_out["broken"] += 1

    def _sources(self) -> Iterator[tuple[str, int]]:
        """The files with conversations, and their sizes."""
        if self._archive is None:
            yield "", self._path.stat().st_size
            return
        sizes = self._archive.sizes
        named = [name for name in sizes if _last(name) == "conversations.json"]
        parts = [name for name in sizes if _last(name).startswith("conversations-") and name.endswith(".json")]
        every = [name for name in sizes if name.endswith(".json")]
        found = named or sorted(parts) or sorted(every)
        if not found:
            raise problem("import_unknown", file=self._name)
        yield from ((name, sizes[name]) for name in found)
        if self._reader is OURS:  # each is a file by the title of its conversation, which may be such a name
            yield from ((name, sizes[name]) for name in sorted({*every} - {*found}))

    @contextmanager
    def _opened(self, name: str) -> Generator[IO[bytes]]:
        if self._archive is not None:
            with self._archive.opened(name) as entry:
                yield entry
        else:
            with self._path.open("rb") as file:
                yield file

    def _find(self, beginning: str) -> str:
        """The entry whose name begins so; "" where there is none."""
        at = bisect_left(self._entries, beginning, key=_last)
        found = self._entries[at] if beginning and at < len(self._entries) else ""
        return found if _last(found).startswith(beginning) else ""

    def _keep(self, one: Attached) -> FileRecord | None:
        if one.entry in self._kept:
            return self._kept[one.entry]
        if one.entry:
            if self._archive is None or (size := self._archive.sizes[one.entry]) > _LARGEST_FILE:
                return None
            self._archive.unpack(one.entry, place := self._stage.place(size))
        else:
            place = self._stage.place(len(one.data))
            place.write_bytes(one.data)
        kept = self._stage.keep(one.name, place).record
        if one.entry:
            self._kept[one.entry] = kept
        return kept


class _Counted:
    """A file that tells how much of it was read."""

    def __init__(self, file: IO[bytes], size: int, told: Callable[[float], None]) -> None:
        self._file, self._size, self._told = file, max(1, size), told
        self._read = 0

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        self._read += len(piece)
        self._told(min(1.0, self._read / self._size))
        return piece


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _origin(reader: Reader, one: dict[str, Any]) -> str:
    """What names a conversation of another application, whoever exports it when; "" where it has no id of its own."""
    own = said(one.get(reader.key)) or said(one.get("id"))
    return sha256(f"{reader.name}\n{own}".encode(errors="replace")).hexdigest()[:32] if own else ""
