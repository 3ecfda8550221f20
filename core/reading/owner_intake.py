"""What an owner does with documents: has them read, watches that, calls it off, and tries again."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from core.errors import NotFoundError, StorageError
from core.rag.attached import Attached
from core.rag.unread_parts import PARTS_UNREAD, UnreadParts
from core.reading.attachments import kind_of, untaken
from core.reading.intake import is_locked, take_out
from core.reading.job import patience
from core.reading.senses import AGREED, asked_first
from core.storage.reading_rows import check_waiting

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence

    from core.rag.attached import Status
    from core.rag.document import ReadingProgress
    from core.rag.grown.makers import HeldUp
    from core.rag.library import Library
    from core.reading.attachments import Named
    from core.reading.intake import Intake
    from core.reading.job import ReadingJob
    from core.reading.preparing import Made
    from core.storage.base import DocumentRecord, DocumentStatus, FileRecord
    from core.storage.reading_rows import Hold
    from core.storage.readings import Unread
    from core.storage.stores import OwnerStores

_LOG = logging.getLogger(__name__)

_NAMED = 3
_RESTORED_WITHIN = 300.0  # seconds
_LOOKS_EVERY = 0.25
_ENDS_WITHIN = 15.0  # seconds within which a reader elsewhere that lives ends; the next one needs a little longer
_LEFT_WITHIN = 3.0  # the same where what it reads is deleted anyway
_UNREAD: tuple[DocumentStatus, ...] = ("failed", "cancelled")


class OwnerIntake:
    """The documents of one owner on their way into the index. What is somebody else's does not exist.

    Args:
        intake: Reads those of everybody.
    """

    def __init__(self, intake: Intake, stores: OwnerStores) -> None:
        self._owner = stores.owner
        self._intake = intake
        self._stores = stores

    async def check_room_for(self, files: Sequence[Named], *, more: int = 0) -> None:
        """Check that the documents among these files may wait to be read, before their question is kept.

        Args:
            more: Documents beside them.

        Raises:
            TooManyRequestsError: key `reading_full`: so many of this owner wait that no more may; `reading_too_many`:
                here are more than ever may.
        """
        most, more = self._intake.shared.most_waiting, more + sum(kind_of(file) == "document" for file in files)
        if most and more:
            check_waiting(await self._stores.documents.waiting(), more, most)

    async def add(
        self,
        conversation_id: str | None,
        file: FileRecord,
        *,
        collection_id: str | None = None,
        is_let_in: bool = False,
    ) -> DocumentRecord:
        """Note the document and begin to read it; one that failed before is tried again.

        Not one that waits for its owner: for a password, or for a word on what reading it costs.

        Args:
            conversation_id: The conversation that it belongs to; `None` if it belongs to a named library.
            collection_id: The named library. Added once more, what was called off there is read after all.
            is_let_in: Whether it waits however many do: what came with a question that is kept already was looked at
                before (`check_room_for`).

        Raises:
            NotFoundError: The conversation, library or file is not the owner's.
            TooManyRequestsError: key `reading_full`: so many of this owner wait that no more may.
        """
        record, hold, epoch = await self.noted(conversation_id, file, collection_id=collection_id, is_let_in=is_let_in)
        again = record.status == "failed" and not (is_locked(record) or asked_first(record))
        if again or (record.status == "cancelled" and collection_id is not None):
            return await self._retry(record.id, is_let_in=is_let_in)
        if record.status == "reading":
            await self._intake.begin(record, hold, epoch)
        return record

    async def noted(
        self,
        conversation_id: str | None,
        file: FileRecord,
        *,
        collection_id: str | None = None,
        is_let_in: bool = False,
    ) -> tuple[DocumentRecord, Hold, int]:
        """Note the document, and that it is to be read here; as `add`.

        Returns:
            The document, how its reading begins, and the epoch of that; 0 where it was there already.
        """
        hold = self._intake.shared.hold(self._stores, patience=patience(file))
        if is_let_in:
            hold = replace(hold, most=0)
        record, epoch = await self._stores.documents.add_to_read(
            conversation_id, file.id, file.name, hold, collection_id=collection_id
        )
        return record, hold, epoch

    @contextmanager
    def holding(self, record: DocumentRecord, epoch: int) -> Generator[None]:
        """To the end of the block a document that was noted here is read by nobody else."""
        held = self._intake.shared.held
        if epoch:
            held[record.id] = epoch
            self._intake.shared.begun()
        try:
            yield
        finally:
            held.pop(record.id, None)

    async def opened(self, library: Library) -> None:
        """An owner's index was opened: make good what is wrong with it.

        Texts go that nobody needs: a process was killed, or could not take them out. Documents that were read and are
        not in it, because it was lost, are read again. Where vectors are missing, their making is watched.

        Raises:
            StorageError: The index or the table of documents cannot be read.
        """
        known = {document.id for document in await asyncio.to_thread(library.documents)}
        if not self._intake.keeps_unneeded:
            await take_out(library, await self._stores.documents.unneeded(list(known)))
        for record in await self._stores.documents.found():
            if record.library_id not in known:
                await self._restore(record)
        await self._intake.preparing.resume(self._owner, library, await self._stores.documents.read())

    # ---- watching

    def progress(self, document_id: str) -> ReadingProgress | None:
        """How far the reading of a document is; `None` while it waits for its turn, or if it is not being read.

        Of one that another process reads it is known as of a second ago.
        """
        job = self._job(document_id)
        if job is not None:
            return job.progress
        return self._intake.shared.progress(document_id) if self._elsewhere(document_id) is not None else None

    def preparing(self) -> Mapping[str, Made]:
        """The documents, by id, that were read but cannot be searched by meaning yet, and how far that has come."""
        return self._intake.preparing.of(self._owner)

    def held_up(self) -> HeldUp:
        """Why search by meaning is not being prepared for them; "" where it is."""
        return self._intake.preparing.held_up(self._owner)

    def being_read(self, conversation_id: str) -> list[DocumentRecord]:
        """The conversation's documents that are being read now, or wait for it."""
        here = {one: job.record for one, job in self._intake.jobs.items()}
        every = {**{one: unread.record for one, unread in self._intake.shared.known.items()}, **here}
        mine = (record for record in every.values() if record.owner_id == self._owner)
        return [record for record in mine if record.conversation_id == conversation_id]

    async def wait(self, conversation_id: str, document_ids: Collection[str], timeout: float) -> list[DocumentRecord]:
        """Wait until these documents were read, `timeout` seconds at most, or until `go_on` is called.

        Returns:
            The documents as they are then; those of which a search finds some already have a `library_id`.

        Raises:
            NotFoundError: One of them is gone.
        """
        records = await self.records(document_ids)
        unread = [record.id for record in records if record.status == "reading"]
        if not unread:
            return records
        await self._ended(conversation_id, unread, timeout)
        return await self.records(document_ids)

    async def restored(self, conversation_id: str, library_ids: Collection[str]) -> bool:
        """Wait for those of these texts that are being read again because the index had lost them.

        Not longer than a few minutes, or until `go_on` is called.

        Args:
            library_ids: Their ids in the index.

        Returns:
            Whether there were any.
        """
        lost = [
            document_id
            for document_id, job in self._intake.jobs.items()
            if job.restores and job.record.owner_id == self._owner and job.record.library_id in library_ids
        ]
        lost += [
            document_id
            for document_id, unread in self._intake.shared.known.items()
            if unread.restores and unread.owner_id == self._owner and unread.record.library_id in library_ids
        ]
        if lost:
            await self._ended(conversation_id, lost, _RESTORED_WITHIN)
        return bool(lost)

    async def known_in_part(self, conversation_id: str) -> list[DocumentRecord]:
        """The first few documents that were stopped, or belong to a named library and are still being read.

        Of those within reach of the conversation. Raises NotFoundError.
        """
        return await self._stores.documents.known_in_part(conversation_id, _NAMED)

    async def attached(self, conversation_id: str) -> list[Attached]:
        """The files that a conversation may be answered from, as they stand now; the same text once.

        Before them one entry stands for those that were too many to be added at once, where there are any.

        Raises:
            NotFoundError: The conversation is not the owner's.
        """
        records = await self._stores.documents.attached(conversation_id)
        once = {record.library_id or record.id: record for record in reversed(records)}
        left = untaken(await self._stores.conversations.settings(conversation_id)) if once else None
        files = [self._attached(record) for record in reversed(once.values())]
        return [left, *files] if left is not None else files

    async def shelved(self, collection_id: str) -> list[Attached]:
        """The same of a named library."""
        return [self._attached(record) for record in await self._stores.documents.list_shelved(collection_id)]

    async def records(self, document_ids: Collection[str]) -> list[DocumentRecord]:
        """Documents as they are now. Raises NotFoundError."""
        return [await self._stores.documents.get(document_id) for document_id in document_ids]

    async def wait_for_end(self, document_id: str) -> DocumentRecord:
        """Wait until the reading of a document is over; the document as it is then. Raises NotFoundError."""
        job = self._job(document_id)
        if job is not None and job.task is not None:
            await asyncio.wait({job.task})
        if job is None or self._intake.shared.sharing is not None:
            await self._intake.over(self._stores, [document_id])
        return await self._stores.documents.get(document_id)

    async def wait_for_first_pages(self, document_id: str, timeout: float) -> DocumentRecord:
        """Wait until some of a document was read or its reading is over, `timeout` seconds at most.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        job = self._job(document_id)
        if job is not None and job.task is not None:
            opened = asyncio.create_task(job.opened.wait())
            try:
                await asyncio.wait({opened, job.task}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                opened.cancel()
        elif (await self._stores.documents.get(document_id)).status == "reading":
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._opened_elsewhere(document_id)
        return await self._stores.documents.get(document_id)

    # ---- steering

    def stop_waiting(self, conversation_id: str) -> None:
        """Let the reply that waits in this conversation go on with what can be searched now."""
        for go in self._intake.waiting.get((self._owner, conversation_id), ()):
            go.set()

    async def cancel(self, document_id: str) -> DocumentRecord:
        """Stop reading a document; what can be found of it already stays. One that was read stays as it is.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        record = await self._stores.documents.get(document_id)
        job = self._job(document_id)
        if job is not None and job.task is not None:
            job.stop()
            await asyncio.wait({job.task})
        elif record.status == "reading":
            await self._call_off(record, _ENDS_WITHIN)
        return await self._stores.documents.get(document_id)

    async def retry(self, document_id: str, password: str = "") -> DocumentRecord:
        """Read a document that failed or was called off once more, of one that was stopped the rest; no other.

        For one that was read, search by meaning is prepared where that was held up.

        Raises:
            NotFoundError: There is none such of this owner.
            TooManyRequestsError: key `reading_full`, as of `add`.
        """
        return await self._retry(document_id, password)

    async def _retry(self, document_id: str, password: str = "", *, is_let_in: bool = False) -> DocumentRecord:
        before = await self._stores.documents.get(document_id)
        if before.status not in _UNREAD:
            if document_id in self.preparing():
                await self._intake.make_vectors(self._owner)
            return before
        there, facts = before.library_id, before.facts
        if asked_first(before):
            facts = {**(facts or {}), AGREED: True}
        hold = await self._hold(before, password, is_let_in=is_let_in)
        record, epoch = await self._stores.documents.begin(
            document_id, hold, _UNREAD, library_id=there, facts=facts, anew=there is not None
        )
        if record.status == "reading":
            await self._intake.begin(record, hold, epoch, password, before if there is not None else None)
        return record

    async def forget(self, document_id: str) -> DocumentRecord:
        """Let go of what was read of a document that was stopped; any other stays as it is. Raises NotFoundError."""
        before = await self._stores.documents.get(document_id)
        if before.status != "cancelled" or before.library_id is None:
            return before
        record = await self._stores.documents.update(document_id, "cancelled", only_if=("cancelled",))
        await self._intake.take_out(self._stores, [before.library_id])
        self._intake.changed(self._owner, record.conversation_id)
        return record

    async def renew(self, document_id: str, password: str = "") -> DocumentRecord:
        """Read a document anew, one that was read too; nothing to one that is being read.

        What was read before stays until it is read anew to the end, for this document and for whoever else has the
        same text; if that fails or is called off, all is as before, and the document says what went wrong.

        Raises:
            NotFoundError: There is none such of this owner.
            TooManyRequestsError: key `reading_full`, as of `add`.
        """
        before = await self._stores.documents.get(document_id)
        if before.status != "ready":
            return await self.retry(document_id, password)
        if document_id in self.preparing():
            await self._intake.make_vectors(self._owner)
        hold = await self._hold(before, password)
        record, epoch = await self._stores.documents.begin(
            document_id, hold, ("ready",), library_id=before.library_id, facts=before.facts, anew=True
        )
        if record.status == "reading":
            await self._intake.begin(record, hold, epoch, password, before)
        return record

    async def leave(self, conversation_id: str) -> None:
        """Stop reading whatever belongs to a conversation that is about to be deleted."""
        records = self.being_read(conversation_id)
        jobs = [job for record in records if (job := self._job(record.id)) is not None]
        for job in jobs:
            job.cancel()
        tasks = {job.task for job in jobs if job.task is not None}
        if tasks:
            await asyncio.wait(tasks)
        for record in records:
            if record.id in self._intake.shared.known:
                with suppress(NotFoundError):
                    await self._call_off(record, _LEFT_WITHIN)

    async def delete_unneeded(self, freed: Sequence[FileRecord], unneeded: Sequence[str]) -> None:
        """Delete the bytes of files that nothing needs any more, and take texts out of the owner's index."""
        await self._stores.files.discard(freed)
        await self._intake.take_out(self._stores, unneeded)

    # ---- inside

    def _job(self, document_id: str) -> ReadingJob | None:
        job = self._intake.jobs.get(document_id)
        return job if job is not None and job.record.owner_id == self._owner else None

    async def _ended(self, conversation_id: str, document_ids: Collection[str], timeout: float) -> None:
        """Wait until the jobs of these documents have ended, `timeout` seconds at most, or until `go_on` is called."""
        here = {key: job.task for key in document_ids if (job := self._job(key)) is not None and job.task is not None}
        tasks, others = set(here.values()), [key for key in document_ids if key not in here]
        if others:
            tasks.add(asyncio.create_task(self._over(others), name="documents read elsewhere"))
        if tasks:
            go = asyncio.Event()
            waiting = self._intake.waiting.setdefault((self._owner, conversation_id), set())
            waiting.add(go)
            either: list[asyncio.Task[Any]] = [
                asyncio.create_task(asyncio.wait(tasks)),
                asyncio.create_task(go.wait()),
            ]
            try:
                await asyncio.wait(either, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.discard(go)
                if not waiting:
                    self._intake.waiting.pop((self._owner, conversation_id), None)
                for one in [*either, *(tasks - set(here.values()))]:
                    one.cancel()

    async def _over(self, document_ids: Collection[str]) -> None:
        with suppress(NotFoundError, StorageError):  # whoever waits looks then
            await self._intake.over(self._stores, document_ids)

    async def _opened_elsewhere(self, document_id: str) -> None:
        """Wait until another process has read some of a document."""
        ended = asyncio.create_task(self._over([document_id]))
        try:
            while not ended.done():
                progress = self.progress(document_id)
                if progress is not None and (progress.pages or progress.chunks):
                    return
                await asyncio.wait({ended}, timeout=_LOOKS_EVERY)
        finally:
            ended.cancel()

    def _elsewhere(self, document_id: str) -> Unread | None:
        unread = self._intake.shared.known.get(document_id)
        return unread if unread is not None and unread.owner_id == self._owner else None

    async def _call_off(self, record: DocumentRecord, within: float) -> None:
        """Have another process read a document no further, and wait for that. Raises NotFoundError."""
        if await self._stores.documents.call_off(record.id):
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._intake.over(self._stores, [record.id])
        self._intake.shared.known.pop(record.id, None)
        self._intake.changed(self._owner, record.conversation_id)

    async def _hold(
        self, record: DocumentRecord, password: str = "", *, restores: bool = False, is_let_in: bool = False
    ) -> Hold:
        """How the reading of a document begins that was read before, or in vain."""
        shared, waits = self._intake.shared, 0.0
        if shared.sharing is not None:
            waits = patience(await self._stores.files.record(record.file_id))
        hold = shared.hold(self._stores, patience=waits, password=password, restores=restores)
        return replace(hold, most=0) if is_let_in else hold

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
        made, unread = self.preparing().get(record.id), _unread_in(record)
        return Attached(record.name, status, pages, total, record.library_id, made, unread=unread)

    async def _restore(self, record: DocumentRecord) -> None:
        """Read a document again that the index has lost; it counts as being read until then."""
        _LOG.warning("Document %s is missing in its index; it is read again.", record.id)
        try:
            hold = await self._hold(record, restores=True)
            again, epoch = await self._stores.documents.begin(
                record.id, hold, (record.status,), library_id=record.library_id, facts=record.facts
            )
        except NotFoundError:  # it was deleted meanwhile
            return
        if again.status == "reading" and not self._intake.is_closing:
            await self._intake.begin(again, hold, epoch)


def _unread_in(record: DocumentRecord) -> UnreadParts:
    """The files within a document that were not read, as far as its row names them."""
    error = record.error or {}
    details: dict[str, Any] = error.get("details") or {}
    names, more = details.get("files"), details.get("more")
    if error.get("key") != PARTS_UNREAD or not isinstance(names, list):
        return UnreadParts()
    return UnreadParts(tuple(map(str, cast("list[Any]", names))), more if isinstance(more, int) else 0)
