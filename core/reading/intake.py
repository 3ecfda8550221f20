"""Takes documents into libraries in the background: each is a job that can be watched, called off and tried again."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from core.errors import DocumentError, LockedDocumentError, NotFoundError, StorageError
from core.rag.attached import Attached
from core.rag.document import ReadingProgress
from core.reading import job as outcome
from core.reading.attachments import LINK, fetched
from core.reading.job import Lanes, ReadingJob
from core.reading.preparing import Preparing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from core.net.addresses import Reach
    from core.rag.attached import Status
    from core.rag.library import Library
    from core.reading.preparing import Made
    from core.storage.base import DocumentRecord, DocumentStatus, FileRecord
    from core.storage.stores import Stores

_LOG = logging.getLogger(__name__)

_AT_ONCE = 4
_OF_EACH_OWNER = 2
_NAMED = 3
_RESTORED_WITHIN = 300.0  # seconds
_PREPARED = 50  # libraries that are looked into at the start; the others when they are opened
_UNREAD: tuple[DocumentStatus, ...] = ("failed", "cancelled")
# Only its reader can help: with a password.
_ASKED = "document_password_asked"
_LOCKED = frozenset({_ASKED, "document_password_wrong"})


class Intake:
    """Reads documents in jobs of their own; each ends as `ready`, `failed` (with the reason) or `cancelled`.

    Args:
        stores: Where the bytes and the states are kept.
        index: Opens the index of an owner's documents, for an `async with` block.
        changed: Called with (owner, conversation) after each change of a state; a named library's has none.
    """

    def __init__(
        self,
        stores: Stores,
        index: Callable[[str], AbstractAsyncContextManager[Library]],
        changed: Callable[[str, str | None], None],
    ) -> None:
        self._stores = stores
        self._index = index
        self._changed = changed
        self._jobs: dict[str, ReadingJob] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._preparing = Preparing(index, lambda owner: changed(owner, None))
        self._lanes = Lanes(_AT_ONCE, _OF_EACH_OWNER)
        self._waiting: dict[tuple[str, str], set[asyncio.Event]] = {}
        self._taking_out: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._is_closing = False
        self.reach: Reach | None = None
        """How far links may lead; `None` is the open internet."""
        self.keeps_unneeded = False
        """Whether texts stay in an index that no document needs: those of a database that may come back."""

    async def add(
        self, owner: str, conversation_id: str | None, file: FileRecord, *, collection_id: str | None = None
    ) -> DocumentRecord:
        """Note the document and begin to read it; one that failed before is tried again, unless it needs a password.

        Args:
            owner: Whose it is.
            conversation_id: The conversation that it belongs to; `None` if it belongs to a named library.
            file: Its bytes.
            collection_id: The named library. Added once more, what was called off there is read after all.

        Raises:
            NotFoundError: The conversation, library or file is not the owner's.
        """
        record = await self._stores.of(owner).documents.add(
            conversation_id, file.id, file.name, collection_id=collection_id
        )
        again = record.status == "failed" and not is_locked(record)
        if again or (record.status == "cancelled" and collection_id is not None):
            return await self.retry(owner, record.id)
        if record.status == "reading":
            self._begin(record)
        return record

    async def resume(self) -> None:
        """Begin again what an earlier process did not finish; in the background, its vectors too."""
        for record in await self._stores.documents.unread():
            self._begin(record)
        owners = await self._stores.documents.owners(_PREPARED)
        going_on = asyncio.create_task(self._preparing.go_on(owners), name="unfinished vectors")
        self._tasks.add(going_on)
        going_on.add_done_callback(self._tasks.discard)

    async def opened(self, owner: str, library: Library) -> None:
        """An owner's index was opened: make good what is wrong with it.

        Texts go that nobody needs: a process was killed, or could not take them out. Documents that were read and are
        not in it, because it was lost, are read again. Where vectors are missing, their making is watched.

        Raises:
            StorageError: The index or the table of documents cannot be read.
        """
        known = {document.id for document in await asyncio.to_thread(library.documents)}
        if not self.keeps_unneeded:
            await take_out(library, await self._stores.of(owner).documents.unneeded(list(known)))
        for record in await self._stores.of(owner).documents.found():
            if record.library_id not in known:
                await self._restore(record)
        await self._preparing.resume(owner, library, await self._stores.of(owner).documents.read())

    # ---- watching

    def progress(self, document_id: str) -> ReadingProgress | None:
        """How far the reading of a document is; `None` while it waits for its turn, or if it is not being read."""
        job = self._jobs.get(document_id)
        return job.progress if job is not None else None

    def preparing(self, owner: str) -> Mapping[str, Made]:
        """The documents, by id, that were read but cannot be searched by meaning yet, and how far that has come."""
        return self._preparing.of(owner)

    def being_read(self, owner: str, conversation_id: str) -> list[DocumentRecord]:
        """The conversation's documents that are being read now."""
        mine = (job.record for job in self._jobs.values() if job.record.owner_id == owner)
        return [record for record in mine if record.conversation_id == conversation_id]

    async def wait(
        self, owner: str, conversation_id: str, document_ids: Collection[str], timeout: float
    ) -> list[DocumentRecord]:
        """Wait until these documents were read, `timeout` seconds at most, or until `go_on` is called.

        Returns:
            The documents as they are then; those of which a search finds some already have a `library_id`.

        Raises:
            NotFoundError: One of them is gone.
        """
        await self._ended(owner, conversation_id, document_ids, timeout)
        return await self.records(owner, document_ids)

    async def restored(self, owner: str, conversation_id: str, library_ids: Collection[str]) -> bool:
        """Wait for those of these texts that are being read again because the index had lost them.

        Not longer than a few minutes, or until `go_on` is called.

        Args:
            owner: Whose they are.
            conversation_id: The conversation that waits.
            library_ids: Their ids in the index.

        Returns:
            Whether there were any.
        """
        lost = [
            document_id
            for document_id, job in self._jobs.items()
            if job.restores and job.record.owner_id == owner and job.record.library_id in library_ids
        ]
        if lost:
            await self._ended(owner, conversation_id, lost, _RESTORED_WITHIN)
        return bool(lost)

    async def _ended(self, owner: str, conversation_id: str, document_ids: Collection[str], timeout: float) -> None:
        """Wait until the jobs of these documents have ended, `timeout` seconds at most, or until `go_on` is called."""
        tasks = {job.task for key in document_ids if (job := self._jobs.get(key)) is not None and job.task is not None}
        if tasks:
            go = asyncio.Event()
            waiting = self._waiting.setdefault((owner, conversation_id), set())
            waiting.add(go)
            either = [asyncio.create_task(asyncio.wait(tasks)), asyncio.create_task(go.wait())]
            try:
                await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.discard(go)
                if not waiting:
                    self._waiting.pop((owner, conversation_id), None)
                for one in either:
                    one.cancel()

    async def known_in_part(self, owner: str, conversation_id: str) -> list[DocumentRecord]:
        """The first few documents that were stopped, or belong to a named library and are still being read.

        Of those within reach of the conversation. Raises NotFoundError.
        """
        return await self._stores.of(owner).documents.known_in_part(conversation_id, _NAMED)

    async def attached(self, owner: str, conversation_id: str) -> list[Attached]:
        """The files that a conversation may be answered from, as they stand now; the same text once.

        Raises:
            NotFoundError: The conversation is not the owner's.
        """
        records = await self._stores.of(owner).documents.attached(conversation_id)
        once = {record.library_id or record.id: record for record in reversed(records)}
        return [self._attached(record) for record in reversed(once.values())]

    async def shelved(self, owner: str, collection_id: str) -> list[Attached]:
        """The same of a named library."""
        return [self._attached(record) for record in await self._stores.of(owner).documents.list_shelved(collection_id)]

    def _attached(self, record: DocumentRecord) -> Attached:
        progress, facts = self.progress(record.id), record.facts or {}
        status: Status = record.status
        if status == "cancelled" and record.library_id is not None:
            status = "stopped"
        elif is_locked(record):
            status = "locked"
        if progress is not None:
            pages, total = progress.pages, progress.total
        else:
            pages, total = facts.get("pages") or 0, facts.get("total") or record.pages
        return Attached(
            record.name, status, pages, total, record.library_id, self.preparing(record.owner_id).get(record.id)
        )

    async def records(self, owner: str, document_ids: Collection[str]) -> list[DocumentRecord]:
        """Documents as they are now. Raises NotFoundError."""
        return [await self._stores.of(owner).documents.get(document_id) for document_id in document_ids]

    async def first_sign(self, owner: str, document_id: str, timeout: float) -> DocumentRecord:
        """Wait until some of a document was read or its reading is over, `timeout` seconds at most.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        job = self._jobs.get(document_id)
        if job is not None and job.task is not None:
            opened = asyncio.create_task(job.opened.wait())
            try:
                await asyncio.wait({opened, job.task}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                opened.cancel()
        return await self._stores.of(owner).documents.get(document_id)

    # ---- steering

    def go_on(self, owner: str, conversation_id: str) -> None:
        """Let the reply that waits in this conversation go on with what can be searched now."""
        for go in self._waiting.get((owner, conversation_id), ()):
            go.set()

    async def cancel(self, owner: str, document_id: str) -> DocumentRecord:
        """Stop reading a document; what can be found of it already stays. One that was read stays as it is.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        record = await self._stores.of(owner).documents.get(document_id)
        job = self._jobs.get(document_id)
        if job is not None and job.task is not None:
            job.stop()
            await asyncio.wait({job.task})
        elif record.status == "reading":
            record = await self._stores.of(owner).documents.update(document_id, "cancelled", only_if=("reading",))
            self._changed(owner, record.conversation_id)
        return await self._stores.of(owner).documents.get(document_id)

    async def retry(self, owner: str, document_id: str, password: str = "") -> DocumentRecord:
        """Read a document that failed or was called off once more, of one that was stopped the rest; no other.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        before = await self._stores.of(owner).documents.get(document_id)
        if before.status not in _UNREAD:
            return before
        there = before.library_id
        record = await self._stores.of(owner).documents.update(
            document_id, "reading", library_id=there, facts=before.facts, only_if=_UNREAD
        )
        if record.status == "reading":
            self._begin(record, password, before if there is not None else None)
        return record

    async def forget(self, owner: str, document_id: str) -> DocumentRecord:
        """Let go of what was read of a document that was stopped; any other stays as it is. Raises NotFoundError."""
        before = await self._stores.of(owner).documents.get(document_id)
        if before.status != "cancelled" or before.library_id is None:
            return before
        record = await self._stores.of(owner).documents.update(document_id, "cancelled", only_if=("cancelled",))
        await self.take_out(owner, [before.library_id])
        self._changed(owner, record.conversation_id)
        return record

    async def renew(self, owner: str, document_id: str, password: str = "") -> DocumentRecord:
        """Read a document anew, one that was read too; nothing to one that is being read.

        What was read before stays until it is read anew to the end, for this document and for whoever else has the
        same text; if that fails or is called off, all is as before, and the document says what went wrong.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        before = await self._stores.of(owner).documents.get(document_id)
        if before.status != "ready":
            return await self.retry(owner, document_id, password)
        record = await self._stores.of(owner).documents.update(
            document_id, "reading", library_id=before.library_id, facts=before.facts, only_if=("ready",)
        )
        if record.status == "reading":
            self._begin(record, password, before)
        return record

    async def leave(self, owner: str, conversation_id: str) -> None:
        """Stop reading whatever belongs to a conversation that is about to be deleted."""
        jobs = [self._jobs[record.id] for record in self.being_read(owner, conversation_id)]
        for job in jobs:
            job.cancel()
        tasks = {job.task for job in jobs if job.task is not None}
        if tasks:
            await asyncio.wait(tasks)

    async def aclose(self) -> None:
        """Stop reading; the next start of the process goes on with what was read."""
        self._is_closing = True
        for job in self._jobs.values():
            job.stop()
        readings = {job.reading for job in self._jobs.values() if job.reading is not None}
        if readings:
            await asyncio.wait(readings)
        ending = set(self._tasks)
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        await self._preparing.aclose()

    async def put_out(self, owner: str, freed: Sequence[FileRecord], unneeded: Sequence[str]) -> None:
        """Delete the bytes of files that nothing needs any more, and take texts out of the owner's index."""
        self._stores.of(owner).files.discard(freed)
        await self.take_out(owner, unneeded)

    async def take_out(self, owner: str, library_ids: Sequence[str]) -> None:
        """Take texts out of the owner's index that nobody needs; one that cannot be is logged, and stays."""
        try:
            async with self._undisturbed(owner):
                needless = await self._stores.of(owner).documents.unneeded(library_ids)
                if needless:
                    async with self._index(owner) as library:
                        await take_out(library, needless)
        except StorageError as error:
            _LOG.warning("Texts that nobody needs stay until the index is opened anew: %s", error)

    # ---- inside

    def _undisturbed(self, owner: str) -> asyncio.Semaphore:
        """Held from the question which texts are needed until the others are gone; a reading begins before or after.

        Else a document that is read again at once would be taken out with what is left of its failed reading.
        """
        lock = self._taking_out.get(owner) or asyncio.Semaphore(1)
        self._taking_out[owner] = lock
        return lock

    async def _restore(self, record: DocumentRecord) -> None:
        """Read a document again that the index has lost; it counts as being read until then."""
        _LOG.warning("Document %s is missing in its index; it is read again.", record.id)
        try:
            again = await self._stores.of(record.owner_id).documents.update(
                record.id,
                "reading",
                library_id=record.library_id,
                facts=record.facts,
                only_if=(record.status,),
            )
        except NotFoundError:  # it was deleted meanwhile
            return
        if again.status == "reading" and not self._is_closing:
            self._begin(again, restores=True)

    def _begin(
        self,
        record: DocumentRecord,
        password: str = "",
        before: DocumentRecord | None = None,
        *,
        restores: bool = False,
    ) -> None:
        if record.id in self._jobs:
            return
        job = ReadingJob(record, password, before, restores=restores)
        self._jobs[record.id] = job
        job.task = asyncio.create_task(self._take_in(job), name=f"document {record.id}")
        self._tasks.add(job.task)
        job.task.add_done_callback(self._tasks.discard)
        self._changed(record.owner_id, record.conversation_id)

    async def _take_in(self, job: ReadingJob) -> None:
        owner, document_id = job.record.owner_id, job.record.id
        job.reading = asyncio.create_task(self._read(job))
        is_needless = False
        try:
            await self._followed(job, job.reading)
            if self._is_closing:  # its row stays "reading"
                return
            state = job.outcome()
            if "library_id" not in state and await self._is_still_there(job):
                state = job.kept(state)
            is_needless = state.get("library_id") is None
            record = await self._stores.of(owner).documents.update(document_id, **state)
            if not is_needless and (job.before is not None or not (record.facts or {}).get("known")):
                for conversation_id in await self._stores.of(owner).documents.renewed(record):
                    self._changed(owner, conversation_id)
        except NotFoundError:  # the conversation was deleted while its document was read
            is_needless = True
        except StorageError as error:
            is_needless = False
            # It stays "reading" in the table: the next start reads it again.
            _LOG.warning("What became of document %s could not be stored: %s", document_id, error)
        finally:
            job.cancel()  # nothing to a reading that is over
            self._jobs.pop(document_id, None)
        if is_needless and job.progress is not None and not job.progress.fetching:
            await self.take_out(owner, [job.progress.document_id])
        self._changed(owner, job.record.conversation_id)

    async def _is_still_there(self, job: ReadingJob) -> bool:
        """Whether what was read on, or anew, in vain can be found as before."""
        if job.before is None or job.before.library_id is None:
            return False
        try:
            async with self._index(job.record.owner_id) as library:
                return await asyncio.to_thread(outcome.is_known, library, job.before.library_id, outcome.FOUND)
        except StorageError:
            return False

    async def _followed(self, job: ReadingJob, reading: asyncio.Task[dict[str, Any]]) -> None:
        """Wait for the end; what can be searched before that is noted, so that a question may go on with it."""
        searchable = asyncio.create_task(job.searchable.wait())
        try:
            await asyncio.wait({reading, searchable}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            searchable.cancel()
        if not reading.done() and job.progress is not None:
            record, begun = job.record, job.progress.document_id
            try:
                await self._stores.of(record.owner_id).documents.update(record.id, "reading", library_id=begun)
            except NotFoundError:  # it was deleted meanwhile: what is read of it goes with it
                job.cancel()
            except StorageError as error:  # only the end matters: reading goes on
                _LOG.warning("That document %s can be searched could not be stored: %s", record.id, error)
            self._changed(record.owner_id, record.conversation_id)
            await asyncio.wait({reading})

    async def _read(self, job: ReadingJob) -> dict[str, Any]:
        record, password = job.record, job.password
        job.password = ""
        async with self._lanes.lane(record.owner_id):
            file, path = await self._stores.of(record.owner_id).files.get(record.file_id)
            if file.media_type == LINK:
                record, file, path = await self._fetched(job, path)
            job.progress = ReadingProgress(file.sha256)
            async with self._index(record.owner_id) as library:
                known = job.before is None and await asyncio.to_thread(outcome.is_known, library, file.sha256)
                asked: dict[str, Any] = {"progress": job.moved, "cancelled": job.cancelled, "enough": job.enough}
                again = job.before is not None and job.before.status == "ready"
                async with self._undisturbed(record.owner_id):
                    pass  # whose text it was is settled; from here on the row says that it is needed
                try:
                    document = await library.aadd(path, name=record.name, password=password, again=again, **asked)
                except LockedDocumentError as error:
                    if error.details.get("asks"):
                        error.words_key = _ASKED
                    raise
        if document.status == "no_text":
            raise DocumentError(f"{record.name} has no text.", key=document.note or "document_no_text")
        if not known:
            self._preparing.watch(record.owner_id, record.id, document.id)
        return outcome.read(document, record.name, job.progress, known=known)

    async def _fetched(self, job: ReadingJob, link: Path) -> tuple[DocumentRecord, FileRecord, Path]:
        """What stands at the address that a link names; from now on the link's file is what was found there.

        Raises:
            FetchError: It cannot be fetched, or may not be.
        """
        owner, file_id = job.record.owner_id, job.record.file_id
        job.progress = ReadingProgress("", fetching=True)
        self._changed(owner, job.record.conversation_id)
        data, name = await fetched(await asyncio.to_thread(link.read_text, "utf-8"), self.reach)
        file = await self._stores.of(owner).files.refill(file_id, name, data)
        job.record = await self._stores.of(owner).documents.rename(job.record.id, file.name)
        self._changed(owner, job.record.conversation_id)
        return job.record, file, self._stores.of(owner).files.path_of(file)


async def take_out(library: Library, library_ids: Iterable[str]) -> None:
    """Take texts out of an index; one that cannot be is logged, and stays."""
    for library_id in library_ids:
        try:
            await library.aremove(library_id)
        except NotFoundError:
            _LOG.debug("Document %s was taken out already.", library_id)
        except StorageError as error:
            _LOG.warning("The text %s stays in the index: %s", library_id, error)


def is_locked(record: DocumentRecord) -> bool:
    """Whether a document failed for want of a password that would open it."""
    return record.status == "failed" and (record.error or {}).get("key") in _LOCKED
