"""A library whose index was lost: it is made again from the originals, however often that is cut short.

Lost is one that is damaged, and one that knows no document though there are originals: it was deleted, or emptied.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from core.errors import DocumentError, NoSpaceError
from core.rag import records
from core.rag.index_file import DamagedIndexError, IndexFile, move_aside, translated
from core.rag.readings import Wish

if TYPE_CHECKING:
    from pathlib import Path

    from core.rag.keeping import Keeping
    from core.rag.originals import Known, Originals
    from core.rag.readings import Job, Readings

_log = logging.getLogger(__name__)


def opened(path: Path) -> IndexFile:
    """The library's file; a damaged one makes way for a new one, and `restore` knows of it until it is done.

    Raises:
        StorageError: The folder cannot be used.
    """
    try:
        return IndexFile(path)
    except DamagedIndexError:
        try:
            _mark(path).touch()
            move_aside(path)
        except OSError as error:
            raise translated(error) from error
        return IndexFile(path)


def restore(file: IndexFile, originals: Originals, readings: Readings, keeping: Keeping) -> None:
    """Read the originals again that a lost index knew; nothing where none was lost.

    What ends it before its end, a full disk or a killed process, leaves the rest to the next opening.

    Raises:
        NoSpaceError: The disk is full.
        StorageError: The library cannot be written.
    """
    mark = _mark(file.path)
    if not mark.exists():
        if not _is_emptied(file, originals):
            return
        _log.warning("The index of a library is empty; its documents are read again from their originals.")
        try:
            mark.touch()
        except OSError as error:
            raise translated(error) from error
    for document_id, known in originals.known():
        with readings.alone(document_id, Wish()) as job:
            with file.reading() as db:
                document = records.get(db, document_id)
            if document is None or document.status == "reading":  # or cut short while it was read again
                _read_again(document_id, known, keeping, job)
    mark.unlink(missing_ok=True)


def _is_emptied(file: IndexFile, originals: Originals) -> bool:
    """Whether there are originals of documents of which the index knows none."""
    with file.reading() as db:
        (is_known,) = db.execute("SELECT EXISTS (SELECT 1 FROM documents)").fetchone()
    return not is_known and next(originals.known(), None) is not None


def _read_again(document_id: str, known: Known, keeping: Keeping, job: Job) -> None:
    try:
        keeping.read_again(document_id, known, job)
    except DocumentError:
        _log.exception("A document could not be read again.")
    except OSError as error:
        if isinstance(said := translated(error), NoSpaceError):
            raise said from error
        _log.exception("A document could not be read again.")


def _mark(path: Path) -> Path:
    return path.with_name(f"{path.name}-restoring")
