"""Where the files are that are taken in: a folder, a pattern of paths, or an S3 store.

A source says what there is bit by bit, and no more of it is in memory than one folder's names.
"""

from __future__ import annotations

import glob
import os
import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, Protocol

from core.errors import DocumentError, NotFoundError, SettingsError
from core.rag.originals import too_large
from core.storage.object_blobs import Bucket, StoreErrors, opened_store

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from contextlib import AbstractContextManager

_S3: Final = "s3://"
_BUCKET: Final = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>.*))?", re.DOTALL)
_PIECE: Final = 4 * 1024 * 1024
_LISTED: Final = 500
_UNREAD: Final = "\ufffd"  # stands in a place for bytes that are no UTF-8


@dataclass(frozen=True, slots=True)
class Item:
    """A file of a source.

    Args:
        place: Where it is; the same in every run.
        name: What it is called.
        size: In bytes.
        mark: Changes when the file does.
    """

    place: str
    name: str
    size: int
    mark: str


class Source(Protocol):
    """Files somewhere. It holds nothing open, and can be sent to other machines, which can open its files, too."""

    def items(self) -> Iterator[Item]:
        """All files, bit by bit, in the same order each time; hidden ones are left out.

        Raises:
            StorageError: A store does not answer, or takes no such key.
        """
        ...

    def opened(self, item: Item, most: int) -> AbstractContextManager[Path]:
        """The file as one of this machine, for a `with` block; nobody may write into it.

        Args:
            most: Bytes that it may have.

        Raises:
            DocumentError: It is larger (key `document_too_large`), or its name is no UTF-8 (`document_misnamed`).
            NotFoundError: It is gone.
            StorageError: A store does not answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Files:
    """Files of this machine, or of a disk that several machines share.

    Args:
        start: A file, a folder with all that is in it, or a pattern such as `docs/**/*.pdf`.
    """

    start: str

    def items(self) -> Iterator[Item]:
        """As of `Source`."""
        for path in self._paths():
            try:
                kind = path.stat()
            except OSError:  # it went meanwhile, or is a link to nowhere
                continue
            if S_ISREG(kind.st_mode):
                place = str(path.absolute()).encode(errors="surrogateescape").decode(errors="replace")
                yield Item(place, Path(place).name, kind.st_size, f"{kind.st_size} {kind.st_mtime_ns}")

    def _paths(self) -> Iterable[Path]:
        start = Path(self.start).expanduser()
        if start.is_file():
            return [start]
        if start.is_dir():
            return _walked(start)
        return map(Path, sorted(glob.iglob(str(start), recursive=True)))  # noqa: PTH207 - of any folder

    @contextmanager
    def opened(self, item: Item, most: int) -> Generator[Path]:
        """As of `Source`."""
        path = Path(item.place)
        if not path.is_file():
            if _UNREAD in item.place:
                part = next(one for one in path.parts if _UNREAD in one)
                hint = "Rename the file or folder."
                said = f"The name {part!r} cannot be read as UTF-8."
                raise DocumentError(said, hint=hint, key="document_misnamed", part=part)
            raise NotFoundError(f"There is no file {item.place!r}.", hint="Is its disk here?", name=item.name)
        _check_size(path.stat().st_size, most)
        yield path


def _walked(folder: Path) -> Iterator[Path]:
    """The files of a folder and of those in it, by name; no link to a folder is followed."""
    try:
        with os.scandir(folder) as found:
            entries = sorted((one.name, one.is_dir(follow_symlinks=False)) for one in found)
    except OSError:  # it may not be looked into, or went
        return
    for name, is_folder in entries:
        if name.startswith("."):
            continue
        if is_folder:
            yield from _walked(folder / name)
        else:
            yield folder / name


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of an S3 store.

    Args:
        bucket: Where they are; all below its prefix.
    """

    bucket: Bucket = field(repr=False)

    def items(self) -> Iterator[Item]:
        """As of `Source`."""
        obs, store = _store(self.bucket)
        with StoreErrors(obs, self.bucket).told():
            for some in obs.list(store, chunk_size=_LISTED):
                for one in some:
                    key = str(one["path"])
                    if one["size"] and not any(part.startswith(".") for part in key.split("/")):
                        mark = str(one.get("e_tag") or one["last_modified"].isoformat())
                        place = f"{self.bucket.address}/{key}"
                        yield Item(place, key.rpartition("/")[2], one["size"], f"{one['size']} {mark}")

    @contextmanager
    def opened(self, item: Item, most: int) -> Generator[Path]:
        """As of `Source`: a copy, as long as the block runs."""
        _check_size(item.size, most)
        obs, store = _store(self.bucket)
        errors = StoreErrors(obs, self.bucket)
        key = item.place.removeprefix(f"{self.bucket.address}/")
        with tempfile.TemporaryDirectory(prefix="parlour-ingest-") as folder:
            path = Path(folder) / "file"
            with errors.told(), path.open("wb") as file:
                answer = obs.get(store, key)
                left = answer.meta["size"]
                for piece in answer.stream(min_chunk_size=_PIECE):
                    left -= file.write(piece)
            if left:
                raise errors.unreachable()
            yield path


@lru_cache(maxsize=8)
def _store(bucket: Bucket) -> tuple[Any, Any]:
    return opened_store(bucket)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise too_large(size, most)


def source_of(given: str, keys: Bucket) -> Source:
    """The source that somebody named.

    Args:
        given: A file, a folder, a pattern, or `s3://bucket/prefix`.
        keys: What opens a store, as the settings have it for files; its own bucket does not count.

    Raises:
        SettingsError: It is none of these.
        MissingExtraError: It is a store, and what speaks with one is not installed.
    """
    if given.startswith(_S3):
        found = _BUCKET.fullmatch(given)
        if found is None:
            raise SettingsError(
                f"SOURCE must be a bucket and a prefix, and not {given!r}.", hint="Write it like s3://bucket/papers."
            )
        prefix = (found["prefix"] or "").strip("/")
        bucket = Bucket(
            found["bucket"],
            prefix,
            keys.endpoint,
            "",
            keys.region,
            keys.access_key,
            keys.secret_key,
            keys.session_token,
        )
        _store(bucket)
        return Objects(bucket)
    return Files(given)
