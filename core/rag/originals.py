"""The original files, by the hash of their bytes: pages are rendered and a lost index is rebuilt from them.

`<hash>` holds the bytes; `<hash>.json` their `FileInfo`, written once the document is searchable.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import stat
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from core.errors import BrokenDocumentError, DocumentError, NotFoundError
from core.rag.index_file import translated
from core.storage.data_folder import oldest_first, put_in_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import TypeAlias

    Fetch: TypeAlias = Callable[[str, Path], bool]

_PIECE = 1 << 20
_FORGOTTEN = 24 * 3600.0  # seconds after which nobody works on a copy any more


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What the bytes do not say: the name, whether they were given as text, and the page that the text is from."""

    name: str
    page: int | None = None
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class StagedFile:
    """A copy in the folder, before it gets its place."""

    path: Path
    id: str
    size: int
    head: bytes


class Originals:
    """The folder.

    Args:
        folder: Made where there is none, readable by its owner only.
        fetch: Puts the bytes of a document that was added on another machine into a file; whether it could.

    Raises:
        NoSpaceError: The disk is full.
        StorageError: The folder cannot be made.
    """

    def __init__(self, folder: Path, fetch: Fetch | None = None) -> None:
        self._folder = folder
        self._fetch = fetch
        self._is_tidy = False
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise translated(error) from error

    def path(self, document_id: str) -> Path:
        """Where a document's bytes are, fetched where another machine has them.

        Raises:
            NoSpaceError: The disk is full.
            StorageError: They cannot be fetched now.
        """
        path = self._at(document_id)
        if self._fetch is not None and not path.is_file():
            self._bring(self._fetch, document_id)
        return path

    def _at(self, document_id: str) -> Path:
        """The id is a hash, so this never leaves the folder."""
        return self._folder / document_id

    def _bring(self, fetch: Fetch, document_id: str) -> None:
        draft = self._folder / f".{secrets.token_hex(8)}"
        try:
            if fetch(document_id, draft) and _digest_of(draft) == document_id:
                put_in_place(draft, self._at(document_id))
        except OSError as error:
            raise translated(error) from error
        finally:
            draft.unlink(missing_ok=True)

    def stage(self, source: Path, most: int, head: int) -> StagedFile:
        """Copy a file in, and find out its hash on the way.

        Args:
            most: Bytes that a file may have.
            head: How many of the first bytes to give back.

        Raises:
            NotFoundError: There is no such file.
            DocumentError: It is a folder, a device, may not be read, or is too large (key `document_too_large`).
            NoSpaceError: The disk is full.
        """
        try:
            kind = source.stat()
        except (OSError, ValueError) as error:
            raise NotFoundError(f"There is no file {source.name!r}.", name=source.name) from error
        if stat.S_ISDIR(kind.st_mode):
            hint = f'Add its files: for path in Path("{source.name}").rglob("*.pdf"): library.add(path).'
            raise DocumentError(f"{source.name!r} is a folder, not a file.", key="document_not_a_file", hint=hint)
        if not stat.S_ISREG(kind.st_mode):
            raise DocumentError(f"{source.name!r} is not a file.", key="document_not_a_file")
        if kind.st_size > most:
            raise too_large(kind.st_size, most)
        try:
            stream = source.open("rb")
        except OSError as error:
            said, hint = f"{source.name!r} cannot be opened: {error.strerror}.", "Let Parlour read it."
            raise DocumentError(said, hint=hint) from error
        try:
            with stream:
                return self._copied(iter(lambda: stream.read(_PIECE), b""), most, head)
        except OSError as error:
            raise translated(error) from error

    def stage_bytes(self, data: bytes) -> StagedFile:
        """The same for bytes in memory."""
        try:
            return self._copied(iter((data,)), len(data), 0)
        except OSError as error:
            raise translated(error) from error

    def _copied(self, pieces: Iterator[bytes], most: int, head: int) -> StagedFile:
        self._tidy()
        target = self._folder / f".{secrets.token_hex(8)}"
        digest = hashlib.sha256()
        size, first = 0, b""
        try:
            with target.open("xb") as out:
                for piece in pieces:
                    size += len(piece)
                    if size > most:  # it grew since it was looked at
                        raise too_large(size, most)
                    first = first or piece[:head]
                    digest.update(piece)
                    out.write(piece)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return StagedFile(target, digest.hexdigest(), size, first)

    def _tidy(self) -> None:
        """Delete copies that a process left that was killed; once, for the folder may be large."""
        if self._is_tidy:
            return
        self._is_tidy = True
        for path in self._folder.glob(".*"):
            try:
                if time.time() - path.stat().st_mtime > _FORGOTTEN:
                    path.unlink()
            except OSError:
                continue  # another process was faster

    def commit(self, staged: StagedFile, document_id: str) -> Path:
        """Give the copy its place."""
        put_in_place(staged.path, self._at(document_id))
        return self._at(document_id)

    def write_info(self, document_id: str, info: FileInfo) -> None:
        """Write down what the bytes do not say."""
        waiting = self._folder / f".{secrets.token_hex(8)}"
        try:
            waiting.write_text(json.dumps(asdict(info)), encoding="utf-8")
            waiting.replace(self._note(document_id))
        except OSError as error:
            waiting.unlink(missing_ok=True)
            raise translated(error) from error

    def is_complete(self, document_id: str) -> bool:
        """Whether a document was stored completely: its bytes and its info."""
        return self._note(document_id).is_file() and self._at(document_id).is_file()

    def forget(self, document_id: str) -> None:
        """Note that a document is not to be restored any more, before it is deleted."""
        self._note(document_id).unlink(missing_ok=True)

    def _note(self, document_id: str) -> Path:
        return self._folder / f"{document_id}.json"

    def delete(self, document_id: str) -> None:
        """Delete a document's bytes and info."""
        self.forget(document_id)
        self._at(document_id).unlink(missing_ok=True)

    def infos(self) -> Iterator[tuple[str, FileInfo]]:
        """The id and info of every stored document, the oldest first."""
        for note in oldest_first(self._folder.glob("*.json")):
            try:
                values = json.loads(note.read_text(encoding="utf-8"))
                yield note.stem, FileInfo(str(values["name"]), values.get("page"), bool(values.get("is_text")))
            except (OSError, ValueError, KeyError, TypeError):
                continue  # a half-written note belongs to a document that was never searchable


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def too_large(size: int, most: int) -> BrokenDocumentError:
    """What to say of a file beyond the limit."""
    return BrokenDocumentError(
        f"The file is too large: {_megabytes(size)} MB.",
        key="document_too_large",
        hint=f"Files may have up to {_megabytes(most)} MB.",
        size=_megabytes(size),
        limit=_megabytes(most),
    )


def _megabytes(size: int) -> int:
    return max(1, round(size / 1024 / 1024))
