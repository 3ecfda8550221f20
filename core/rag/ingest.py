"""Ingestion: documents are read in pieces, each searchable at once; a lost index is rebuilt from the originals."""

from __future__ import annotations

import errno
import logging
import secrets
import shutil
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from core.errors import DocumentError, ModelServiceError, NoSpaceError, ParlourError
from core.rag.document_locks import ReadRequest
from core.rag.draft import Draft, parsed_text, progress_of
from core.rag.half_read import Keeper, found_on, last_of, reader_of
from core.rag.index_file import DamagedIndexError, IndexFile, move_aside, translated
from core.rag.originals import FileInfo
from core.rag.page_content import kind_of
from core.rag.parsers import process
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import HEAD, decryptor_of, parser_for

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from pathlib import Path

    from core.rag.config import RAGConfig
    from core.rag.document import Document
    from core.rag.document_locks import DocumentLocks, Job
    from core.rag.draft import Piece
    from core.rag.half_read import KeptPages
    from core.rag.originals import Originals, StagedFile
    from core.rag.pages import Pages, Pictures
    from core.rag.parsers.base import Found
    from core.rag.parsers.process import Limits
    from core.rag.prepared import Prepared, PreparedVectors
    from core.rag.retriever import Retriever
    from core.rag.shelf import Shelf

# Kinds of content that another parser makes when they are shown.
_SHOWN_VERBATIM = frozenset({"sheet", "lines"})
_RESUMABLE = frozenset({"application/pdf", "image/tiff"})  # formats whose parsers can start at any page
_PATIENCE = 30.0  # seconds for another process to begin a damaged index anew

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a library that ingestion writes to.

    Args:
        pictures: Rendered pages.
        pages: The content of pages, to be shown.
        retriever: Searches them.
        locks: Who reads which document.
        mark: `restore_mark` of the library's file.
    """

    shelf: Shelf
    originals: Originals
    pictures: Pictures
    pages: Pages
    retriever: Retriever
    locks: DocumentLocks
    mark: Path


class Ingestor:
    """Adds documents to a library, removes them, and restores them.

    Args:
        config: How documents are chunked, and which library reads a PDF.
        limits: What one file may cost.
    """

    def __init__(self, parts: Parts, config: RAGConfig, limits: Limits) -> None:
        self._shelf, self._originals, self._retriever = parts.shelf, parts.originals, parts.retriever
        self._mark = parts.mark
        self._pictures, self._pages, self._locks = parts.pictures, parts.pages, parts.locks
        self._config, self._limits = config, limits

    def add(
        self, staged: StagedFile, document_id: str, info: FileInfo, password: str, request: ReadRequest
    ) -> Document:
        """Read a document in, unless it is here already; its first pages are searchable long before this returns.

        Args:
            staged: Its bytes; deleted at the end, if they are not kept as the original.
            info: What the bytes do not say.
            password: Opens it, if it is encrypted.
            request: Who wants it, and how.

        Raises:
            DocumentError: It cannot be read, or was cancelled; nothing of it stays but what a stopped reading had.
            NoSpaceError: The disk is full; as above.
            StorageError: The library is closed, or cannot be written.
        """
        try:
            with self._locks.exclusive(document_id, request) as job:
                here = self._refresh(document_id, info, job) if request.again else self._existing(document_id, info)
                here = here or self._resume(document_id, info, job) or self._restore_one(document_id, info, job)
                document = here or self._read_new(staged, document_id, info, password, job)
                if document.status != "stopped":
                    job.report(partial(progress_of, document), always=True)
                return document
        finally:
            staged.path.unlink(missing_ok=True)

    def take(self, staged: StagedFile, ready: Prepared, vectors: PreparedVectors) -> Document:
        """Take in a document that was read elsewhere, unless it is here already: all of it at once, or nothing.

        Args:
            staged: Its bytes, as in `add`.
            ready: What was read of them.
            vectors: Keeps its vectors.

        Raises:
            DocumentError: These are not the bytes that were read (key `document_changed`).
            NoSpaceError: The disk is full.
            StorageError: The library is closed, or cannot be written.
        """
        known = ready.piece.document
        try:
            if staged.id != known.id:
                raise DocumentError(
                    "The file was changed while it was read.", hint="Take it in once more.", key="document_changed"
                )
            with self._locks.exclusive(known.id, ReadRequest()) as job:
                return self._existing(known.id, FileInfo(known.name)) or self._taken(staged, ready, vectors, job)
        finally:
            staged.path.unlink(missing_ok=True)

    def _taken(self, staged: StagedFile, ready: Prepared, vectors: PreparedVectors, job: Job) -> Document:
        known = ready.piece.document
        try:
            self._originals.commit(staged, known.id)
            kept = self._shelf.put(ready.piece, is_first=True, check=job.check) or known
            try:
                vectors.keep(known.id, ready.vectors)
            except ModelServiceError as error:
                _log.warning("The vectors of a document are made later: %s", error)
            self._originals.write_info(known.id, FileInfo(known.name))
        except BaseException as error:
            self._discard(known.id)
            if isinstance(error, OSError):
                raise translated(error) from error
            raise
        self._retriever.changed()
        return kept

    def remove(self, document_id: str) -> None:
        """Delete a document with its files; one that is being read is read no further."""
        if not self._locks.is_reading(document_id):
            self._remove(document_id)  # another process that reads it notices
        with self._locks.removing(document_id):
            self._remove(document_id)

    def restore(self) -> None:
        """Read the originals again if the index was lost: if it was damaged, or is empty though there are originals.

        If this is cut short, by a full disk or a killed process, the next opening goes on with it.

        Raises:
            NoSpaceError: The disk is full.
            StorageError: The library cannot be written.
        """
        mark = self._mark
        if not mark.exists():
            if not self._is_emptied():
                return
            _log.warning("The index of a library is empty; its documents are read again from their originals.")
            try:
                mark.touch()
            except OSError as error:
                raise translated(error) from error
        for document_id, info in self._originals.infos():
            with self._locks.exclusive(document_id, ReadRequest()) as job:
                document = self._shelf.document(document_id)
                if document is None or document.status == "reading":  # or cut short while it was read again
                    self._reread_or_skip(document_id, info, job)
        mark.unlink(missing_ok=True)

    def reread(self, document_id: str, info: FileInfo, job: Job) -> Document:
        """Read a document from its original, which stays whatever happens; errors as in `add`."""
        path = self._originals.path(document_id)
        try:
            return self._read(path, path.stat().st_size, document_id, info, job)
        except BaseException:
            self._shelf.remove(document_id)
            raise

    def _existing(self, document_id: str, info: FileInfo) -> Document | None:
        """The document with these bytes that is here already, renamed to the new name."""
        document = self._shelf.document(document_id)
        if document is None or document.status in {"reading", "stopped"}:  # its reader was killed, or stopped
            return None
        if document.name == info.name:
            return document
        self._shelf.rename(document_id, info.name)
        self._originals.write_info(document_id, info)
        return replace(document, name=info.name)

    def _is_emptied(self) -> bool:
        """Whether the index knows no document though there are originals."""
        return not self._shelf.documents() and next(self._originals.infos(), None) is not None

    def _reread_or_skip(self, document_id: str, info: FileInfo, job: Job) -> None:
        try:
            self.reread(document_id, info, job)
        except DocumentError:
            _log.exception("A document could not be read again.")
        except OSError as error:
            if isinstance(translation := translated(error), NoSpaceError):
                raise translation from error
            _log.exception("A document could not be read again.")

    def _read_new(self, staged: StagedFile, document_id: str, info: FileInfo, password: str, job: Job) -> Document:
        """Read a document that is not here, or the rest of one that another reader left; nothing else of it stays."""
        left: Document | None = None
        try:
            if password and not info.is_text:
                self._decrypt(staged, password, job)
            path = self._originals.commit(staged, document_id)
            left = self._left(document_id, info)
            document = self._read(path, staged.size, document_id, info, job, before=left)
            self._originals.write_info(document_id, info)
        except BaseException as error:
            if left is not None and (left.status == "stopped" or job.keeps_partial()):
                self._leave(document_id, info)
                if left.status == "reading" and left.chunks and isinstance(error, DocumentError):
                    return replace(left, status="stopped")
            else:
                self._discard(document_id)
            job.check()  # whatever error a stopped parser raised
            if isinstance(error, OSError):
                raise translated(error) from error
            raise
        return document

    def _left(self, document_id: str, info: FileInfo) -> Document | None:
        """A document that its reader left in the middle, with pages behind which it is read on; else `None`."""
        left = self._shelf.document(document_id)
        if left is None or left.status not in {"reading", "stopped"} or not self._kept(document_id)[0]:
            return None
        self._shelf.rename(document_id, info.name)  # the name that it comes with this time
        return left

    def _kept(self, document_id: str) -> tuple[list[KeptPages], int]:
        """The pages that are kept of a document that is not read to its end, and the last of them."""
        kept = self._shelf.half_read(document_id)
        last = last_of(kept, reader_of(self._config))
        return (kept, last) if last else ([], 0)

    def _leave(self, document_id: str, info: FileInfo) -> None:
        """Leave what another reader left to whoever reads it next."""
        with suppress(ParlourError):
            self._shelf.mark_stopped(document_id)
            self._originals.write_info(document_id, info)

    def _restore_one(self, document_id: str, info: FileInfo, job: Job) -> Document | None:
        """Read a document from its original if the index has lost it; `None` if it has not, or if that fails.

        Of an encrypted file the original is the decrypted copy.
        """
        if self._shelf.document(document_id) is not None:
            return None
        if not self._originals.is_complete(document_id):
            return None
        try:
            document = self.reread(document_id, info, job)
        except (DocumentError, OSError):
            job.check()
            _log.warning("An original cannot be read; the file itself is.", exc_info=True)
            return None
        self._originals.write_info(document_id, info)
        return document

    def _refresh(self, document_id: str, info: FileInfo, job: Job) -> Document | None:
        """Read a complete document anew from its original, without a password; `None` if there is no such document.

        Its text stays until the new one is complete. Errors as in `add`.
        """
        path = self._originals.path(document_id)
        before = self._shelf.document(document_id)
        if before is None or before.status != "ready" or not path.is_file():
            return None
        try:
            document = self._read(path, before.size, document_id, info, job, at_once=True)
            self._originals.write_info(document_id, info)
        except BaseException as error:
            job.check()  # whatever error a stopped parser raised
            if isinstance(error, OSError):
                raise translated(error) from error
            raise
        return document

    def _resume(self, document_id: str, info: FileInfo, job: Job) -> Document | None:
        """Read the rest of a stopped document from its original; `None` if there is no such document.

        What was read before stays, whatever happens. Errors as in `add`.
        """
        path = self._originals.path(document_id)
        before = self._shelf.document(document_id)
        if before is None or before.status != "stopped" or not path.is_file():
            return None
        try:
            self._shelf.rename(document_id, info.name)  # the name that it comes with this time
            document = self._read(path, before.size, document_id, info, job, before=before)
            self._originals.write_info(document_id, info)
        except BaseException as error:
            with suppress(ParlourError):  # else the next reading begins anew
                self._shelf.mark_stopped(document_id)
            job.check()  # whatever error a stopped parser raised
            if isinstance(error, OSError):
                raise translated(error) from error
            raise
        return document

    def _remove(self, document_id: str) -> None:
        self._originals.forget(document_id)  # first: an original with its info is one to restore
        self._shelf.remove(document_id)
        self._delete_files(document_id)
        self._retriever.changed()

    def _read(  # noqa: PLR0913 - what is known of a document
        self,
        path: Path,
        size: int,
        document_id: str,
        info: FileInfo,
        job: Job,
        *,
        at_once: bool = False,
        before: Document | None = None,
    ) -> Document:
        if info.is_text:
            media_type, blocks = parsed_text(path.read_text(encoding="utf-8"), info.name, info.page)
            draft = Draft(document_id, info.name, media_type, size, self._config, before=before)
            return self._index(draft, blocks, job, at_once=at_once)
        with path.open("rb") as stream:
            parser, media_type = parser_for(info.name, stream.read(HEAD), self._config.pdf_reader)
        can_resume = media_type in _RESUMABLE and not at_once
        kept, last = self._kept(document_id) if before and can_resume else ([], 0)
        there: Iterable[Found] = found_on(kept)
        if before and not last:
            there, last = self._content_before(document_id) if can_resume else ([], 0)
        if before and (kept or not last):
            before = replace(before, scanned=0, invisible=0)  # they are counted again
        draft = Draft(document_id, info.name, media_type, size, self._config, before=before)
        keeper = Keeper(reader_of(self._config), kept) if can_resume and (kept or not last) else None
        options = ParseOptions(first_page=last + 1)
        with (
            closing(process.stream(path, info.name, parser, self._limits, options, stopped=job.stopped)) as new,
            closing(keeper.noted(new) if keeper is not None else new) as found,
            closing(self._with_content(_until_stopped(chain(there, found), job), draft, media_type, job)) as noted,
        ):
            return self._index(draft, noted, job, at_once=at_once, keeper=keeper)

    def _content_before(self, document_id: str) -> tuple[list[Found], int]:
        """The content of the pages that were read completely before reading was stopped, and the last of them."""
        last = self._shelf.last_page(document_id)  # at which it was stopped
        found = self._pages.before(document_id, last)
        return found, last - 1 if found else 0

    def _with_content(self, found: Iterable[Found], draft: Draft, media_type: str, job: Job) -> Generator[Found]:
        """The same items; on the way, the content of pages is written down, so that showing them needs no reading."""
        if kind_of(media_type) in _SHOWN_VERBATIM:
            yield from found
            return
        try:
            opened = self._pages.writer(draft.document_id, media_type)
        except OSError as error:
            _log.warning("What stands on pages is not kept: %s", error)
            yield from found
            return
        with closing(opened) as writer:
            is_whole = True
            try:
                for one in found:
                    is_whole = is_whole and _written(partial(writer.take, one))
                    yield one
            except DocumentError:
                if (
                    is_whole and job.keeps_partial() and draft.is_worth_keeping()
                ):  # else there was more than this before
                    _written(writer.finish)
                raise
            if is_whole:
                _written(writer.finish)

    def _index(
        self, draft: Draft, found: Iterable[Found], job: Job, *, at_once: bool, keeper: Keeper | None = None
    ) -> Document:
        """Store it piece by piece, or `at_once` when all is read: then it replaces the old text in one step."""
        try:
            for _ in draft.steps(found):
                job.check()
                if draft.is_due() and not at_once:
                    is_first, was_found = not draft.is_begun, draft.is_searchable()
                    self._store(_with_pages(draft.piece(), keeper), job, is_first=is_first)
                    job.report(draft.progress, always=draft.is_searchable() and not was_found)
                else:
                    job.report(draft.progress)
        except DocumentError:
            if at_once or not job.keeps_partial() or not draft.is_worth_keeping():
                raise
            return self._index_rest(draft, job, keeper)
        is_first, last = not draft.is_begun, draft.last()
        if at_once and last.document.status != "ready":
            raise DocumentError("No text was found this time.", key=last.document.note)
        return self._store(last, job, is_first=is_first)

    def _index_rest(self, draft: Draft, job: Job, keeper: Keeper | None) -> Document:
        """Store what was read when the reading is stopped."""
        is_first, rest = not draft.is_begun, draft.stopped()
        document = self._store(_with_pages(rest, keeper), job, is_first=is_first)
        job.report(draft.progress, always=True)
        return document

    def _store(self, piece: Piece, job: Job, *, is_first: bool) -> Document:
        """Make a piece searchable: all of it, or nothing."""
        kept = self._shelf.put(piece, is_first=is_first, check=job.check)
        if kept is None:  # another process took it out
            raise process.cancelled()
        self._retriever.changed()
        return kept

    def _decrypt(self, staged: StagedFile, password: str, job: Job) -> None:
        """Replace an encrypted staged file by a decrypted copy."""
        opener = decryptor_of(staged.head, self._config.pdf_reader)
        if not opener:
            return
        if shutil.disk_usage(staged.path.parent).free < staged.size:  # its writer would only say that it failed
            raise translated(OSError(errno.ENOSPC, "There is no room for a copy."))
        open_copy = staged.path.with_name(f".{secrets.token_hex(8)}")
        try:
            if process.unlock(staged.path, open_copy, opener, password, self._limits, job.stopped):
                open_copy.replace(staged.path)
        finally:
            open_copy.unlink(missing_ok=True)

    def _discard(self, document_id: str) -> None:
        """Leave nothing of a document that was not read to its end."""
        self._delete_files(document_id)  # first: where the disk is full, there is room then
        try:
            self._remove(document_id)
        except ParlourError as error:  # the disk is full: it stays "reading", and the next reading replaces it
            _log.warning("What was read of a document stays: %s", error)

    def _delete_files(self, document_id: str) -> None:
        self._originals.delete(document_id)
        self._pictures.drop(document_id)


def _with_pages(piece: Piece, keeper: Keeper | None) -> Piece:
    """The piece with the pages that were read whole since the last one."""
    pages = keeper.take() if keeper is not None else None
    return replace(piece, kept=pages) if pages is not None else piece


def _until_stopped(found: Iterable[Found], job: Job) -> Generator[Found]:
    """The same items until the job is stopped, also those that the parser has sent already."""
    for one in found:
        if job.stopped():
            raise process.cancelled()
        yield one


def _written(writing: Callable[[], None]) -> bool:
    """Run `writing`; whether it succeeded. What it writes can be made again when it is needed."""
    try:
        writing()
    except OSError as error:
        _log.warning("What stands on a page was not kept: %s", error)
        return False
    return True


def open_index(path: Path) -> IndexFile:
    """The library's index; a damaged one is moved aside, and `Ingestor.restore` fills the new one.

    Raises:
        StorageError: The folder cannot be used.
    """
    try:
        return IndexFile(path)
    except DamagedIndexError:
        return _begun_anew(path)


def _begun_anew(path: Path) -> IndexFile:
    from filelock import FileLock

    try:
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=_PATIENCE):
            try:
                return IndexFile(path)  # another was quicker, and works with the new one
            except DamagedIndexError:
                restore_mark(path).touch()
                move_aside(path)
            return IndexFile(path)
    except OSError as error:
        raise translated(error) from error


def restore_mark(path: Path) -> Path:
    """Exists from when the index at `path` was lost until it is restored."""
    return path.with_name(f"{path.name}-restoring")
