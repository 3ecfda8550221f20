"""Documents on their way into a library: read piece by piece, and searchable piece by piece."""

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

from core.errors import DocumentError, ParlourError
from core.rag import records
from core.rag.index_file import translated
from core.rag.page_content import kind_of
from core.rag.parsers import process
from core.rag.parsers.base import Wishes
from core.rag.parsers.catalog import HEAD, parser_for, unlocker_of
from core.rag.reading import Draft, text_found

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator, Iterable
    from pathlib import Path

    from core.rag.config import RAGConfig
    from core.rag.document import Document
    from core.rag.finding import Finder
    from core.rag.index_file import IndexFile
    from core.rag.originals import Known, Originals, Taken
    from core.rag.pages import Pages
    from core.rag.parsers.base import Found
    from core.rag.parsers.process import Limits
    from core.rag.pictures import Pictures
    from core.rag.reading import Piece
    from core.rag.readings import Job

# These are shown by their rows and lines, which another parser gives when they are looked at.
_SHOWN_OTHERWISE = frozenset({"sheet", "lines"})
_IN_PAGES = "application/pdf"  # the one whose reader can begin at any page

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a library is made of.

    Args:
        file: Documents, chunks and words.
        originals: The files themselves.
        pictures: What is shown of them.
        pages: What stands on their pages, to be shown.
        finder: What searches them.
    """

    file: IndexFile
    originals: Originals
    pictures: Pictures
    pages: Pages
    finder: Finder


class Keeping:
    """Puts documents into a library.

    Args:
        parts: Of the library.
        config: How documents are cut, and which reader reads a PDF.
        limits: What one file may cost.
    """

    def __init__(self, parts: Parts, config: RAGConfig, limits: Limits) -> None:
        self._file, self._originals, self._finder = parts.file, parts.originals, parts.finder
        self._pictures, self._pages = parts.pictures, parts.pages
        self._config, self._limits = config, limits

    def take_in(self, taken: Taken, document_id: str, known: Known, password: str, job: Job) -> Document:
        """Read a document; its first pages are searchable long before this returns.

        Raises:
            DocumentError: It cannot be read, or is not wanted any more; nothing of it stays.
            NoSpaceError: The disk is full; nothing of it stays.
        """
        try:
            if password and not known.is_text:
                self._unlock(taken, password, job)
            path = self._originals.keep(taken, document_id)
            document = self._read(path, taken.size, document_id, known, job)
            self._originals.describe(document_id, known)
        except BaseException as error:
            self._forget(document_id)
            job.check()  # a reader that is stopped may say anything
            if isinstance(error, OSError):
                raise translated(error) from error
            raise
        return document

    def read_again(self, document_id: str, known: Known, job: Job) -> Document:
        """Read a document from its original, which stays whatever happens; errors as in `take_in`."""
        path = self._originals.path(document_id)
        try:
            return self._read(path, path.stat().st_size, document_id, known, job)
        except BaseException:
            with self._file.writing() as db:
                self._delete(db, document_id)
            raise

    def restore(self, document_id: str, known: Known, job: Job) -> Document | None:
        """Read a document from its original that the index has lost; `None` if it was not lost, or cannot be read so.

        Of an encrypted file the original is the copy that asks for no password.
        """
        with self._file.reading() as db:
            if records.get(db, document_id) is not None:
                return None
        if not self._originals.is_known(document_id):
            return None
        try:
            document = self.read_again(document_id, known, job)
        except (DocumentError, OSError):
            job.check()
            _log.warning("An original cannot be read; the file itself is.", exc_info=True)
            return None
        self._originals.describe(document_id, known)
        return document

    def renew(self, document_id: str, known: Known, job: Job) -> Document | None:
        """Read a document anew from its original, which asks for no password; `None` if it is not here with both.

        Its text stays until the new one is complete, and whatever happens before that. Errors as in `take_in`.
        """
        path = self._originals.path(document_id)
        with self._file.reading() as db:
            before = records.get(db, document_id)
        if before is None or before.status != "ready" or not path.is_file():
            return None
        try:
            document = self._read(path, before.size, document_id, known, job, at_once=True)
            self._originals.describe(document_id, known)
        except BaseException as error:
            job.check()  # a reader that is stopped may say anything
            if isinstance(error, OSError):
                raise translated(error) from error
            raise
        return document

    def read_on(self, document_id: str, known: Known, job: Job) -> Document | None:
        """Read the rest of a document whose reading was stopped, from its original; `None` if it is not here so.

        What was read before stays, whatever happens. Errors as in `take_in`.
        """
        path = self._originals.path(document_id)
        with self._file.reading() as db:
            before = records.get(db, document_id)
        if before is None or before.status != "stopped" or not path.is_file():
            return None
        try:
            with self._file.writing() as db:  # under the name that it comes with this time
                db.execute("UPDATE documents SET name = ? WHERE id = ?", (known.name, document_id))
            document = self._read(path, before.size, document_id, known, job, before=before)
            self._originals.describe(document_id, known)
        except BaseException as error:
            with suppress(ParlourError), self._file.writing() as db:  # else the next reading begins anew
                db.execute("UPDATE documents SET status = 'stopped' WHERE id = ?", (document_id,))
            job.check()  # a reader that is stopped may say anything
            if isinstance(error, OSError):
                raise translated(error) from error
            raise
        return document

    def take_out(self, document_id: str) -> bool:
        """Delete a document, whether it was read to its end or not; whether it was there."""
        self._originals.disown(document_id)  # first: an original that is known is one to restore
        with self._file.writing() as db:
            is_there = self._delete(db, document_id)
        self._drop(document_id)
        self._finder.changed()
        return is_there

    def _read(  # noqa: PLR0913 - what is known of a document
        self,
        path: Path,
        size: int,
        document_id: str,
        known: Known,
        job: Job,
        *,
        at_once: bool = False,
        before: Document | None = None,
    ) -> Document:
        if known.is_text:
            media_type, blocks = text_found(path.read_text(encoding="utf-8"), known.name, known.page)
            draft = Draft(document_id, known.name, media_type, size, self._config, before=before)
            return self._drawn(draft, blocks, job, at_once=at_once)
        with path.open("rb") as stream:
            parser, media_type = parser_for(known.name, stream.read(HEAD), self._config.pdf_reader)
        there, first = self._written_before(document_id) if before and media_type == _IN_PAGES else ([], 1)
        if before and not there:
            before = replace(before, scanned=0)  # they are counted again
        draft = Draft(document_id, known.name, media_type, size, self._config, before=before)
        with (
            closing(
                process.stream(path, known.name, parser, self._limits, Wishes(first_page=first), stopped=job.stopped)
            ) as found,
            closing(self._written_down(_wanted(chain(there, found), job), draft, media_type, job)) as noted,
        ):
            return self._drawn(draft, noted, job, at_once=at_once)

    def _written_before(self, document_id: str) -> tuple[list[Found], int]:
        """What the pages held that were read whole before reading was stopped, and the page to go on from."""
        with self._file.reading() as db:
            last = records.last_page(db, document_id)  # at which it was stopped
        found = self._pages.before(document_id, last)
        return found, last if found else 1

    def _written_down(self, found: Iterable[Found], draft: Draft, media_type: str, job: Job) -> Generator[Found]:
        """The same; what will be shown of its pages is kept on the way, so that it is not read again for that."""
        if kind_of(media_type) in _SHOWN_OTHERWISE:
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
                    is_whole = is_whole and _done(partial(writer.take, one))
                    yield one
            except DocumentError:
                if is_whole and job.keeps() and draft.is_worth_keeping():  # else there was more than this before
                    _done(writer.finish)
                raise
            if is_whole:
                _done(writer.finish)

    def _drawn(self, draft: Draft, found: Iterable[Found], job: Job, *, at_once: bool) -> Document:
        """Keep it piece by piece, or `at_once` when all is read: then it replaces what was there in one step."""
        try:
            for _ in draft.steps(found):
                job.check()
                if draft.is_due() and not at_once:
                    is_first, was_found = not draft.is_begun, draft.is_found()
                    self._keep(draft.piece(), job, is_first=is_first)
                    job.tell(draft.progress, always=draft.is_found() and not was_found)
                else:
                    job.tell(draft.progress)
        except DocumentError:
            if at_once or not job.keeps() or not draft.is_worth_keeping():
                raise
            return self._stopped(draft, job)
        is_first, last = not draft.is_begun, draft.last()
        if at_once and last.document.status != "ready":
            raise DocumentError("No text was found this time.", key=last.document.note)
        return self._keep(last, job, is_first=is_first)

    def _stopped(self, draft: Draft, job: Job) -> Document:
        """Keep what was read when no more of it is wanted."""
        is_first, rest = not draft.is_begun, draft.stopped()
        document = self._keep(rest, job, is_first=is_first)
        job.tell(draft.progress, always=True)
        return document

    def _keep(self, piece: Piece, job: Job, *, is_first: bool) -> Document:
        """Make a piece searchable: all of it, or nothing."""
        document = piece.document
        title = document.title or document.name
        texts = [records.searched_text(title, chunk.heading, chunk.text) for chunk in piece.chunks]
        prepared = self._finder.words.prepare(texts)
        with self._file.writing() as db:
            job.check()
            if is_first:
                self._delete(db, document.id)  # what a reading left that was killed
                ids = records.insert(db, document, piece.chunks, piece.shapes)
            elif records.get(db, document.id) is None:  # another process took it out
                raise process.cancelled()
            else:
                ids = records.extend(db, document, piece.chunks, piece.shapes)
            self._finder.words.add(db, ids, prepared)
            kept = records.get(db, document.id) or document
        self._finder.changed()
        return kept

    def _delete(self, db: sqlite3.Connection, document_id: str) -> bool:
        if records.get(db, document_id) is None:
            return False
        self._finder.words.remove(db, records.chunk_ids(db, document_id))
        records.remove(db, document_id)
        return True

    def _unlock(self, taken: Taken, password: str, job: Job) -> None:
        """Put a copy that asks for no password in the place of an encrypted file."""
        opener = unlocker_of(taken.head, self._config.pdf_reader)
        if not opener:
            return
        if shutil.disk_usage(taken.path.parent).free < taken.size:  # its writer would only say that it failed
            raise translated(OSError(errno.ENOSPC, "There is no room for a copy."))
        open_copy = taken.path.with_name(f".{secrets.token_hex(8)}")
        try:
            if process.unlock(taken.path, open_copy, opener, password, self._limits, job.stopped):
                open_copy.replace(taken.path)
        finally:
            open_copy.unlink(missing_ok=True)

    def _forget(self, document_id: str) -> None:
        """Leave nothing of a document that was not read to its end."""
        self._drop(document_id)  # first: where the disk is full, there is room then
        try:
            self.take_out(document_id)
        except ParlourError as error:  # the disk is full: it stays "reading", and the next reading replaces it
            _log.warning("What was read of a document stays: %s", error)

    def _drop(self, document_id: str) -> None:
        self._originals.drop(document_id)
        self._pictures.drop(document_id)


def _wanted(found: Iterable[Found], job: Job) -> Generator[Found]:
    """The same, until no more is wanted: what the reader has sent already is not taken either."""
    for one in found:
        if job.stopped():
            raise process.cancelled()
        yield one


def _done(writing: Callable[[], None]) -> bool:
    """Whether something could be written that can be made again when it is needed."""
    try:
        writing()
    except OSError as error:
        _log.warning("What stands on a page was not kept: %s", error)
        return False
    return True
