"""Takes documents into libraries in the background, and lets a question wait for them."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from core.errors import BrokenDocumentError, DocumentError, NotFoundError, ParlourError, StorageError
from core.runs.run import as_dict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from core.rag.library import Library
    from core.storage.base import DocumentRecord, FileRecord
    from core.storage.documents import DocumentStore
    from core.storage.files import FileStore

_LOG = logging.getLogger(__name__)


class Intake:
    """Reads documents in tasks of their own; each ends as `ready` or `failed`, with the reason.

    Args:
        files: Where the bytes are.
        documents: Where the states are kept.
        library: Opens an owner's library.
        changed: Called with (owner, conversation) after each change of a state; a named library's has none.
    """

    def __init__(
        self,
        files: FileStore,
        documents: DocumentStore,
        library: Callable[[str], Awaitable[Library]],
        changed: Callable[[str, str | None], None],
    ) -> None:
        self._files = files
        self._documents = documents
        self._library = library
        self._changed = changed
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def add(self, owner: str, conversation_id: str, file: FileRecord) -> DocumentRecord:
        """Note the document and begin to read it; one that failed before is tried again.

        Raises:
            NotFoundError: The conversation or file is not the owner's.
        """
        record = await self._documents.add(owner, conversation_id, file.id, file.name)
        if record.status == "failed":
            record = await self._documents.update(owner, record.id, "reading")
        if record.status == "reading":
            self._begin(record)
        return record

    async def resume(self) -> None:
        """Begin again what an earlier process did not finish."""
        for record in await self._documents.unread():
            self._begin(record)

    async def wait(self, owner: str, document_ids: Collection[str], timeout: float) -> None:
        """Wait until these documents can be searched.

        Raises:
            DocumentError: One of them cannot be read, or takes longer than `timeout` seconds.
        """
        tasks = {self._tasks[document_id] for document_id in document_ids if document_id in self._tasks}
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)
        for document_id in document_ids:
            record = await self._documents.get(owner, document_id)
            if record.status == "failed":
                raise _told(record.error or {})
            if record.status == "reading":
                text = f"{record.name} is still being read."
                raise BrokenDocumentError(text, hint="Ask again in a while.", key="document_too_slow", name=record.name)

    async def aclose(self) -> None:
        """Stop reading; the next start of the process begins again."""
        tasks = set(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, record: DocumentRecord) -> None:
        if record.id not in self._tasks:
            task = asyncio.create_task(self._take_in(record), name=f"document {record.id}")
            self._tasks[record.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(record.id, None))
            self._changed(record.owner_id, record.conversation_id)

    async def _take_in(self, record: DocumentRecord) -> None:
        reading = asyncio.create_task(self._read(record))
        try:
            await asyncio.wait({reading})
        finally:
            reading.cancel()  # nothing to a task that is done
        state = _outcome(record, reading)
        try:
            await self._documents.update(record.owner_id, record.id, **state)
        except NotFoundError:
            await self._take_out(record.owner_id, state.get("library_id"))
        except StorageError as error:
            # It stays "reading" in the table: the next start reads it again.
            _LOG.warning("What became of document %s could not be stored: %s", record.id, error)
        self._changed(record.owner_id, record.conversation_id)

    async def _read(self, record: DocumentRecord) -> dict[str, Any]:
        _, path = await self._files.get(record.owner_id, record.file_id)
        library = await self._library(record.owner_id)
        document = await library.aadd(path, name=record.name)
        if document.status == "no_text":
            raise DocumentError(f"{record.name} has no text.", key=document.note or "document_no_text")
        ready: dict[str, Any] = {"status": "ready", "library_id": document.id, "pages": document.pages}
        if document.note:
            noted = DocumentError(f"{record.name}: {document.note}.", key=document.note, name=record.name)
            ready["error"] = as_dict(noted)
        return ready

    async def _take_out(self, owner: str, library_id: str | None) -> None:
        """The conversation was deleted while its document was read."""
        if library_id is not None and not await self._documents.owns_library_document(owner, library_id):
            library = await self._library(owner)
            try:
                await library.aremove(library_id)
            except NotFoundError:
                _LOG.debug("Document %s was taken out already.", library_id)


def _outcome(record: DocumentRecord, reading: asyncio.Task[dict[str, Any]]) -> dict[str, Any]:
    error = reading.exception()
    if error is None:
        return reading.result()
    if not isinstance(error, ParlourError):
        _LOG.error("Document %s failed in a way nobody foresaw.", record.id, exc_info=error)
        error = DocumentError("It cannot be read.", hint="The log has the details.")
    told = as_dict(error)
    return {"status": "failed", "error": {**told, "details": {**told["details"], "name": record.name}}}


def _told(error: dict[str, Any]) -> DocumentError:
    """The error that a document's row keeps, to be raised again."""
    again = DocumentError(str(error.get("message", "")), hint=str(error.get("hint", "")), key=str(error.get("key", "")))
    again.details = dict(error.get("details") or {})
    return again
