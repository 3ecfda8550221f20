"""Takes documents into libraries in the background: each is a job that can be watched, called off and tried again."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from core.errors import (
    DocumentError,
    LeaseLostError,
    LockedDocumentError,
    NotFoundError,
    StorageError,
    UnsupportedFormatError,
)
from core.rag.document import ReadingProgress
from core.reading import job as outcome
from core.reading.attachments import LINK, fetched
from core.reading.job import Lanes, ReadingJob
from core.reading.making import MakingVectors
from core.reading.preparing import Preparing
from core.reading.shared import SharedReading
from core.storage.base import QUEUED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.net.addresses import Reach
    from core.rag.document import Document
    from core.rag.grown.making import VectorJobs
    from core.rag.library import Library
    from core.rag.unread_parts import UnreadParts
    from core.runs.lease import Sharing
    from core.storage.base import DocumentRecord, FileRecord
    from core.storage.files import FileStore
    from core.storage.reading_rows import Hold
    from core.storage.readings import Taken
    from core.storage.stores import OwnerStores, Stores

_LOG = logging.getLogger(__name__)

Hear: TypeAlias = (
    "Callable[[DocumentRecord, FileRecord, Path, Callable[[float, float], None]], Awaitable[tuple[bytes, str]]]"
)
"""Makes the transcript of a recording, as WebVTT, and says what made it; told how far it is, in seconds."""

_AT_ONCE = 4
_OF_EACH_OWNER = 2
_LOOKS_EVERY = 0.25  # seconds between two looks at what other processes read that somebody waits for
_LOOKS_FOR_LEFT = 8  # of these looks, how many come before one whether anybody reads it
_PREPARED = 50  # libraries that are looked into at the start; the others when they are opened
# Only its reader can help: with a password.
_ASKED = "document_password_asked"
_LOCKED = frozenset({_ASKED, "document_password_wrong"})


class Intake:
    """Reads the documents of all owners, each in a job of its own.

    A job ends as `ready`, `failed` (with the reason) or `cancelled`. What an owner asks for is in `OwnerIntake`.

    Args:
        stores: Where the bytes and the states are kept.
        index: Opens the index of an owner's documents, for an `async with` block.
        changed: Called with (owner, conversation) after each change of a state; a named library's has none.
        at_once: How many documents are read at the same time, of all owners and of each.
        sharing: As of `SharedReading`.
        worker: As of `SharedReading`.
        jobs: As of `MakingVectors`; left out, vectors are made by whoever has an index open.
        most_waiting: How many documents of one owner may be read or wait for it; 0 for any number.

    Attributes:
        jobs: What is being read here, by the ids of documents.
        shared: What others read, and the leases of what is read here.
        preparing: What was read and cannot be searched by meaning yet.
        waiting: What lets the replies of (owner, conversation) go on that wait for documents.
    """

    def __init__(  # noqa: PLR0913 - where it reads from and writes to
        self,
        stores: Stores,
        index: Callable[[str], AbstractAsyncContextManager[Library]],
        changed: Callable[[str, str | None], None],
        at_once: tuple[int, int] = (_AT_ONCE, _OF_EACH_OWNER),
        *,
        sharing: Sharing | None = None,
        worker: str | None = None,
        jobs: VectorJobs | None = None,
        most_waiting: int = 0,
    ) -> None:
        self._stores = stores
        self._index = index
        self._tell = changed
        self.jobs: dict[str, ReadingJob] = {}
        if sharing is not None:
            sharing = replace(sharing, most=at_once[0], each=at_once[1])
        self.shared = SharedReading(stores, self.jobs, self._begin_taken, self.changed, sharing=sharing, worker=worker)
        self.shared.most_waiting = most_waiting
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.preparing = Preparing(index, lambda owner: changed(owner, None), is_told=jobs is not None)
        self._vector_jobs = jobs
        self._making = MakingVectors(jobs, index, self.preparing, self._look_into) if jobs is not None else None
        self._lanes = Lanes(*at_once)
        self.waiting: dict[tuple[str, str], set[asyncio.Event]] = {}
        self._taking_out: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self.is_closing = False
        self.reach: Reach | None = None
        """How far links may lead; `None` is the open internet."""
        self.hear: Hear | None = None
        """Turns recordings into transcripts, where there is anything that does."""
        self.keeps_unneeded = False
        """Whether texts stay in an index that no document needs: those of a database that may come back."""

    def changed(self, owner: str, conversation_id: str | None) -> None:
        """Tell that something of a document changed: whoever shows it, and whoever waits for it."""
        news, self._news = self._news, asyncio.Event()
        news.set()
        self._tell(owner, conversation_id)

    @property
    def differing(self) -> tuple[str, Sequence[str]]:
        """The models by which vectors are made here, and those that other processes have in their place."""
        return (
            (self._vector_jobs.models, self._vector_jobs.makers.others) if self._vector_jobs is not None else ("", ())
        )

    async def make_vectors(self, owner: str) -> None:
        """Make the vectors of an owner's documents that are held up, now. Raises StorageError."""
        if self._vector_jobs is not None:
            await asyncio.to_thread(self._vector_jobs.try_again, owner)
        self.preparing.try_again(owner)

    async def _look_into(self, owner: str) -> None:
        """Find out which of an owner's documents wait for vectors. Raises StorageError."""
        async with self._index(owner) as library:
            await self.preparing.resume(owner, library, await self._stores.of(owner).documents.read())

    async def resume(self) -> None:
        """Begin again what an earlier process did not finish; in the background, its vectors too.

        From now on also what other processes leave, or what waits for one that has room.
        """
        await self.shared.watch()
        if self._making is not None:
            self._making.begin()
        if not self.reads:
            return
        owners = await self._stores.documents.owners(_PREPARED)
        going_on = asyncio.create_task(self.preparing.go_on(owners), name="unfinished vectors")
        self._tasks.add(going_on)
        going_on.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        """Stop reading; the next start of the process goes on with what was read."""
        self.is_closing = True
        held = self.shared.holds()
        for job in self.jobs.values():
            job.stop()
        readings = {job.reading for job in self.jobs.values() if job.reading is not None}
        if readings:
            await asyncio.wait(readings)
        ending = set(self._tasks)
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        await self.shared.aclose()
        if held := {**held, **self.shared.holds()}:  # with what was taken meanwhile
            await self.shared.leave(held)
        await self.preparing.aclose()
        if self._making is not None:
            await self._making.aclose()

    async def take_out(self, stores: OwnerStores, library_ids: Sequence[str]) -> None:
        """Take texts out of an owner's index that nobody needs; one that cannot be is logged, and stays."""
        try:
            async with self._undisturbed(stores):
                needless = await stores.documents.unneeded(library_ids)
                if needless:
                    async with self._index(stores.owner) as library:
                        await take_out(library, needless)
        except StorageError as error:
            _LOG.warning("Texts that nobody needs stay until the index is opened anew: %s", error)

    # ---- inside

    def _undisturbed(self, stores: OwnerStores) -> asyncio.Semaphore:
        """Held from the question which texts are needed until the others are gone; a reading begins before or after.

        Else a document that is read again at once would be taken out with what is left of its failed reading.
        """
        lock = self._taking_out.get(stores.owner) or asyncio.Semaphore(1)
        self._taking_out[stores.owner] = lock
        return lock

    @property
    def reads(self) -> bool:
        """Whether this process reads what waits; one that does not leaves it to others."""
        return self.shared.sharing is None or self.shared.sharing.writes

    async def begin(
        self,
        record: DocumentRecord,
        hold: Hold,
        epoch: int,
        password: str = "",
        before: DocumentRecord | None = None,
    ) -> None:
        """Have a document read, whose row says already that it is being read: here, or where there is room.

        Args:
            hold: How its reading began.
            epoch: The one of its reading, if it was begun just now; 0 if it is read already.
            before: Its row before, if it is read anew or on.
        """
        job = self.jobs.get(record.id)
        if job is not None and epoch not in {0, job.epoch} and job.task is not None:
            job.cancel()  # its end is stored already, or another process read it on
            await asyncio.wait({job.task})
        if record.id in self.jobs:
            return
        epoch = epoch or self.shared.held.get(record.id, 0)
        if hold.worker == QUEUED:
            if epoch:
                self.shared.waits(record, hold)
                self.changed(record.owner_id, record.conversation_id)
        elif epoch:
            job = ReadingJob(
                record, self._stores.of(record.owner_id), password, before, restores=hold.restores, epoch=epoch
            )
            self._start(job)
        else:
            await self.take_left(record.id)

    async def take_left(self, document_id: str) -> None:
        """Read a document that is marked as being read, where nobody seems to do so.

        Where processes part the work, those that look for it find it by themselves.
        """
        if self.shared.sharing is not None:
            return
        try:
            await self.shared.take_left(document_id)
        except StorageError as error:
            _LOG.info("It is not known who reads document %s: %s", document_id, error)

    async def over(self, stores: OwnerStores, document_ids: Collection[str]) -> None:
        """Wait until none of these documents is being read, by whichever process.

        Raises:
            NotFoundError: One of them is gone.
        """
        looks = 0
        while True:
            news = self._news
            unread = [one for one in document_ids if (await stores.documents.get(one)).status == "reading"]
            if not unread:
                return
            looks += 1
            if looks % _LOOKS_FOR_LEFT == 0:
                for one in unread:
                    await self.take_left(one)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOKS_EVERY):
                    await news.wait()

    def _begin_taken(self, taken: Taken) -> None:
        """Read what was taken over from another process, or waited for one."""
        unread = taken.unread
        if self.is_closing:
            self.shared.held[unread.id] = unread.epoch  # to be left to others in a moment
        if unread.id in self.jobs or self.is_closing:
            return
        job = ReadingJob(
            unread.record,
            self._stores.of(unread.owner_id),
            self.shared.opened(taken),
            taken.before,
            restores=unread.restores,
            epoch=unread.epoch,
            unread=unread,
        )
        self._start(job)

    def _start(self, job: ReadingJob) -> None:
        record = job.record
        self.jobs[record.id] = job
        self.shared.begun()
        job.task = asyncio.create_task(self._take_in(job), name=f"document {record.id}")
        self._tasks.add(job.task)
        job.task.add_done_callback(self._tasks.discard)
        self.changed(record.owner_id, record.conversation_id)

    async def _take_in(self, job: ReadingJob) -> None:
        stores, document_id = job.stores, job.record.id
        job.reading = asyncio.create_task(self._read(job))
        is_needless = False
        try:
            await self._followed(job, job.reading)
            if not self.is_closing and job.lost_hold():
                await self.shared.leave({document_id: job.epoch})
                return
            if self.is_closing or job.passed:  # its row stays "reading"
                return
            state = job.outcome()
            if "library_id" not in state and await self._is_still_there(job):
                state = job.kept(state)
            # Another Parlour may have called it off, or have read it: that stands.
            record = await stores.documents.update(document_id, **state, only_if=("reading",), epoch=job.epoch)
            is_needless = record.library_id is None
            if not is_needless and (job.before is not None or not (record.facts or {}).get("known")):
                for conversation_id in await stores.documents.renewed(record):
                    self.changed(stores.owner, conversation_id)
        except LeaseLostError:  # another process reads it by now, or has read it
            _LOG.info("Document %s is read by another process.", document_id)
        except NotFoundError:  # the conversation was deleted while its document was read
            is_needless = True
        except StorageError as error:
            is_needless = False
            # It stays "reading" in the table: the next start reads it again.
            _LOG.warning("What became of document %s could not be stored: %s", document_id, error)
        finally:
            job.cancel()  # nothing to a reading that is over
            self.jobs.pop(document_id, None)
            self.shared.room()
        if is_needless and job.progress is not None and not job.progress.fetching:
            await self.take_out(stores, [job.progress.document_id])
        self.changed(stores.owner, job.record.conversation_id)

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
                now = await job.stores.documents.update(
                    record.id,
                    "reading",
                    library_id=begun,
                    facts=record.facts,
                    only_if=("reading",),
                    epoch=job.epoch,
                )
                if now.status != "reading":  # another Parlour called it off
                    job.cancel()
            except NotFoundError:  # it was deleted meanwhile: what is read of it goes with it
                job.cancel()
            except StorageError as error:  # only the end matters: reading goes on
                _LOG.warning("That document %s can be searched could not be stored: %s", record.id, error)
            self.changed(record.owner_id, record.conversation_id)
            await asyncio.wait({reading})

    async def _read(self, job: ReadingJob) -> dict[str, Any]:
        record, password = job.record, job.password
        job.password = ""
        files = job.stores.files
        waiting = await files.record(record.file_id)
        if self.shared.sharing is not None and not files.is_remote and not await _is_here(files, record.file_id):
            job.passed = await self.shared.pass_on(job)
            if job.passed:
                return {}
        job.hears = waiting.media_type.startswith(("audio/", "video/"))
        if job.hears:
            self.shared.room()
            async with files.local(record.file_id) as (waiting, sound):
                return await self._heard(job, waiting, sound)
        async with self._lanes.lane(record.owner_id, outcome.patience(waiting)), AsyncExitStack() as held:
            file, path = await held.enter_async_context(files.local(record.file_id))
            if file.media_type == LINK:
                record = await self._fetched(job, path)
                file, path = await held.enter_async_context(files.local(record.file_id))
            job.progress = ReadingProgress(file.sha256)
            try:
                document, known = await self._added(job, file, path, password)
            except StorageError as error:
                if error.words_key != "library_closed" or self.is_closing:
                    raise
                # The index's file was deleted or replaced meanwhile, and another index was opened in its place.
                document, known = await self._added(job, file, path, password)
        if document.status == "no_text":
            raise DocumentError(f"{record.name} has no text.", key=document.note or "document_no_text")
        if not known:
            self.preparing.watch(record.owner_id, record.id, document.id)
        unread = await self._unread_parts(record, document)
        return outcome.read(document, record.name, job.progress, known=known, unread=unread)

    async def _heard(self, job: ReadingJob, file: FileRecord, sound: Path) -> dict[str, Any]:
        """Take the transcript of a recording in, as what its document says. Others are read meanwhile."""
        record = job.record
        if self.hear is None:
            raise UnsupportedFormatError("Recordings cannot be read here.", key="hearing_missing")
        job.progress = ReadingProgress(file.sha256)

        def moved(heard: float, length: float) -> None:
            job.progress = ReadingProgress(file.sha256, heard=heard, length=length)
            self.changed(record.owner_id, record.conversation_id)

        text, by = await self.hear(record, file, sound, moved)
        length = job.progress.length
        with TemporaryDirectory(prefix="parlour-") as folder:
            path = Path(folder) / "transcript.vtt"
            await asyncio.to_thread(path.write_bytes, text)
            async with self._lanes.lane(record.owner_id):
                digest = hashlib.sha256(text).hexdigest()
                document, known = await self._added(job, replace(file, sha256=digest), path, "")
        if document.status == "no_text":
            raise DocumentError(f"Nothing is said in {record.name}.", key="recording_silent")
        if not known:
            self.preparing.watch(record.owner_id, record.id, document.id)
        told = outcome.read(document, record.name, job.progress, known=known)
        return {**told, "facts": {**(told["facts"] or {}), "by": by, "length": length}}

    async def _added(self, job: ReadingJob, file: FileRecord, path: Path, password: str) -> tuple[Document, bool]:
        """The document in the owner's index, and whether it was there before. Raises as `Library.add`."""
        record = job.record
        async with self._index(record.owner_id) as library:
            known = job.before is None and await asyncio.to_thread(outcome.is_known, library, file.sha256)
            asked: dict[str, Any] = {"progress": job.moved, "cancelled": job.cancelled, "enough": job.enough}
            again = job.before is not None and job.before.status == "ready"
            async with self._undisturbed(job.stores):
                pass  # whose text it was is settled; from here on the row says that it is needed
            try:
                return await library.aadd(path, name=record.name, password=password, again=again, **asked), known
            except LockedDocumentError as error:
                if error.details.get("asks"):
                    error.words_key = _ASKED
                raise

    async def _unread_parts(self, record: DocumentRecord, document: Document) -> UnreadParts | None:
        """The files in an archive or a letter that could not be read."""
        from core.rag.unread_parts import PARTS_UNREAD, unread_parts  # brings the document readers with it

        if document.note != PARTS_UNREAD:
            return None
        try:
            async with self._index(record.owner_id) as library:
                return await asyncio.to_thread(unread_parts, library, document.id)
        except StorageError:  # that there are any is said all the same
            return None

    async def _fetched(self, job: ReadingJob, link: Path) -> DocumentRecord:
        """What stands at the address that a link names; from now on the link's file is what was found there.

        Raises:
            FetchError: It cannot be fetched, or may not be.
        """
        stores, file_id = job.stores, job.record.file_id
        job.progress = ReadingProgress("", fetching=True)
        self.changed(stores.owner, job.record.conversation_id)
        data, name = await fetched(await asyncio.to_thread(link.read_text, "utf-8"), self.reach)
        file = await stores.files.replace_content(file_id, name, data)
        job.record = await stores.documents.rename(job.record.id, file.name)
        self.changed(stores.owner, job.record.conversation_id)
        return job.record


async def _is_here(files: FileStore, file_id: str) -> bool:
    """Whether the bytes of a file are on this machine, or can be fetched."""
    try:
        async with files.local(file_id):
            return True
    except NotFoundError:
        return False


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
