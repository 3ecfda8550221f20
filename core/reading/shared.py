"""Documents among processes: leases of those that are read here, what others read, and what nobody reads any more."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakSet

from core.errors import ConflictError, DocumentError, NotFoundError, StorageError
from core.rag.document import ReadingProgress
from core.runs.lease import BEAT, LeaseWatch, Renewing, seems_held, standing, this_worker
from core.runs.run import as_dict
from core.runs.taking import Taking
from core.storage.base import QUEUED
from core.storage.reading_rows import Hold, state_of
from core.storage.runs import LEASE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from core.reading.job import ReadingJob
    from core.runs.lease import Sharing
    from core.storage.base import DocumentRecord, Lease
    from core.storage.readings import Taken, Unread
    from core.storage.stores import OwnerStores, Stores

_LOG = logging.getLogger(__name__)

_MOST_KNOWN: Final = 1000
"""Documents that are being read, or wait, of which a process knows how far they are."""
_LOOKS_EVERY: Final = 1.0
"""Seconds between two looks at what others read, where processes part the work."""
_TELLS_EVERY: Final = 0.5
"""Seconds between two times that it is told how far readings are, and heard what is asked of them."""
_GRACE: Final = 3.0
"""Seconds for which a document may wait before one that serves pages reads it, where nobody else reads."""
_MOST_LOST: Final = 2
"""Readers that may die of a document before it is left unread."""
_MOST_PASSED: Final = 3
"""Processes that look for the bytes of a document before they count as gone."""
_LACKED_FOR: Final = 10.0
"""Seconds for which a process leaves a document to others whose bytes it has not."""
_FIELDS: Final = frozenset(one.name for one in fields(ReadingProgress))


class SharedReading:
    """What a process reads, in the eyes of the others on the same data, and what these read.

    Args:
        stores: Where it is noted.
        jobs: What is read here, by the ids of documents.
        begin: Begins to read what was taken.
        changed: Called with (owner, conversation) where others come further.
        sharing: How processes on one PostgreSQL database part the work: what is to be read waits in the tables for
            whoever has room. Left out, each reads what is added to it, and what a dead one left.
        worker: This process.

    Attributes:
        known: What others read, or nobody yet, by the ids of documents; as of the last look.
        held: What is held here beside the jobs, each with its epoch.
        most_waiting: How many documents of one owner may be read or wait for it; 0 for any number.
    """

    _open: ClassVar[WeakSet[SharedReading]] = WeakSet()  # all of this process: another one may read on the same data

    def __init__(
        self,
        stores: Stores,
        jobs: Mapping[str, ReadingJob],
        begin: Callable[[Taken], None],
        changed: Callable[[str, str | None], None],
        *,
        sharing: Sharing | None = None,
        worker: str | None = None,
    ) -> None:
        self._stores, self._readings = stores, stores.readings
        self._jobs, self._begin, self._changed = jobs, begin, changed
        self.sharing = sharing
        self.worker = worker or this_worker()
        self.lasts, self._beat = (sharing.lease, sharing.beat) if sharing is not None else (LEASE_SECONDS, BEAT)
        self.known: dict[str, Unread] = {}
        self.held: dict[str, int] = {}
        self.most_waiting = 0
        self._leases: LeaseWatch[Unread] = LeaseWatch(by_clock=sharing is not None)
        self._renewing = Renewing(self, self.holds, self.lose, beat=self._beat, lasts=self.lasts)
        self._taking: Taking[Unread] | None = None
        self._waits_since: dict[str, float] = {}
        self._lacks: dict[str, float] = {}
        self._told: dict[str, ReadingProgress] = {}
        self._looked = 0.0
        self._may_wait = True
        self._are_more = False
        self._telling: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        SharedReading._open.add(self)

    # ---- what is read here

    def hold(self, mine: OwnerStores, *, patience: float = 0.0, password: str = "", restores: bool = False) -> Hold:
        """How the reading of a document begins that is added here.

        Args:
            mine: Of whose document it is.
            patience: For how many seconds others may go before.
            password: Opens it; kept sealed where another process may read it, else nowhere.
        """
        most = 0 if restores else self.most_waiting
        if self.sharing is None:
            return Hold(self.worker, self.lasts, time.time(), restores, most=most)
        sealed = self._stores.sealer.seal(password, "password", mine.owner) if password else ""
        return Hold(QUEUED, due=time.time() + patience, restores=restores, password=sealed, most=most)

    def opened(self, taken: Taken) -> str:
        """The password of what was taken; "" where it cannot be read, so that its owner is asked for it."""
        if not taken.password:
            return ""
        try:
            return self._stores.sealer.open(taken.password, "password", taken.unread.owner_id)
        except StorageError:
            return ""

    def holds(self) -> dict[str, int]:
        """What this process holds, each with its epoch."""
        return {**self.held, **{one: job.epoch for one, job in list(self._jobs.items())}}  # another loop may ask

    def busy(self) -> int:
        """How many are read here that take room; recordings are heard by a service."""
        return sum(not job.hears for job in self._jobs.values())

    def begun(self) -> None:
        """Something is held here: renew its lease, and hear what is asked of it, as long as there is any."""
        self._renewing.begin()
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_on(), name="tell of readings")

    def room(self) -> None:
        """There is something to be taken, or room for it."""
        self._may_wait = True
        if self._taking is not None:
            self._taking.woken.set()

    def waits(self, record: DocumentRecord, hold: Hold) -> None:
        """A document that was added here waits for a process."""
        from core.storage.base import Lease
        from core.storage.readings import Unread

        self.known[record.id] = Unread(record, 0, Lease(QUEUED, None), hold.due, restores=hold.restores)
        self.room()

    def lose(self, lost: Iterable[str]) -> None:
        """These are read by others by now, or by nobody: read them no further."""
        for document_id in lost:
            if (job := self._jobs.get(document_id)) is not None:
                job.cancel()
            self.held.pop(document_id, None)

    async def renew(self, held: Mapping[str, int], lasts: float) -> set[str]:
        """Renew leases, as of `AllReadings`; what was begun anew meanwhile is not lost."""
        return self._still(held, await self._readings.renew(held, lasts))

    def _still(self, held: Mapping[str, int], lost: Iterable[str]) -> set[str]:
        now = self.holds()
        return {one for one in lost if now.get(one) == held[one]}

    async def pass_on(self, job: ReadingJob) -> bool:
        """Leave a document to others whose bytes are not here; false where nobody seems to have them."""
        unread = job.unread
        if unread is None or unread.passed >= _MOST_PASSED:
            return False
        self._lacks[unread.id] = time.monotonic() + _LACKED_FOR
        try:
            # Its lease was renewed meanwhile, so it is given up first.
            await self._readings.give_up({unread.id: job.epoch}, queue=True, passed=True)
        except StorageError as error:
            _LOG.warning("Document %s could not be left to others: %s", unread.id, error)
        return True

    async def leave(self, held: Mapping[str, int]) -> None:
        """Let others go on with what was read here, at once."""
        try:
            await self._readings.give_up(held, queue=self.sharing is not None)
        except StorageError as error:
            _LOG.warning("Others go on with what was read here when its lease is over: %s", error)

    # ---- what others read

    def progress(self, document_id: str) -> ReadingProgress | None:
        """How far another process is with a document, as of the last look."""
        unread = self.known.get(document_id)
        told = unread.progress if unread is not None else None
        if not told or "document_id" not in told:
            return None
        return ReadingProgress(**{name: value for name, value in told.items() if name in _FIELDS})

    async def watch(self) -> None:
        """Take up what is left, and look at what others read from now on. Raises StorageError."""
        await self.look(first=True)
        if self.sharing is not None:
            self._taking = Taking(self._queued, self.sharing, self.busy, self._take)
            self._taking.begin()
        self._watching = asyncio.create_task(self._watch(), name="look at readings elsewhere")

    async def aclose(self) -> None:
        """Begin nothing more, and look no more."""
        if self._taking is not None:
            await self._taking.aclose()
        tasks = [one for one in (self._watching, self._telling) if one is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._renewing.aclose()

    async def look(self, *, first: bool = False) -> None:
        """See what others read, and take up what nobody does. Raises StorageError.

        Args:
            first: What a process left that cannot be seen from here is taken up at once, as it was before a restart.
        """
        found = await self._readings.unread(_MOST_KNOWN)
        self._are_more = len(found) == _MOST_KNOWN
        here = {one for every in (self, *SharedReading._open) for one in every.holds()}
        others = {one.id: one for one in found if one.id not in here}
        before, self.known = self.known, others
        for document_id in before.keys() | others.keys():
            was, now = before.get(document_id), others.get(document_id)
            if was is None or now is None or was.progress != now.progress or was.record != now.record:
                of = now or was
                if of is not None:
                    self._changed(of.owner_id, of.record.conversation_id)
        self._waits_since = {one: self._waits_since.get(one, time.monotonic()) for one in others}
        self._may_wait = self._may_wait or self._is_waited_for()
        now = time.monotonic()
        if not first and self.sharing is not None and now - self._looked < self._beat:
            return
        self._looked = now
        mine = [one for one in others.values() if one.lease.worker == self.worker and (first or _same(one, before))]
        await self._take_up(mine, others.values(), first=first and self.sharing is None)

    async def take_left(self, document_id: str) -> None:
        """Read a document that is marked as being read, where no process seems to do so. Raises StorageError."""
        if document_id in self.holds():
            return
        unread = await self._readings.of(document_id)
        if unread is None or unread.lease.worker == QUEUED or document_id in self.holds():
            return
        if unread.lease.worker == self.worker or not seems_held(unread.lease):
            await self._take(unread, unread.lease)
        else:
            self.known[document_id] = unread

    # ---- inside

    async def _take_up(self, mine: Sequence[Unread], others: Iterable[Unread], *, first: bool) -> None:
        """Take up what is left.

        Args:
            mine: Of this process, which reads it no more: what became of it could not be stored.
        """
        rest = [(one, one.lease) for one in others if one.lease.worker not in {self.worker, QUEUED}]
        left = [one for one, _ in self._leases.look(rest)]
        if first:
            left += [one for one, lease in rest if one not in left and standing(lease.worker) != "alive"]
        for unread in [*mine, *left]:
            died = bool(unread.epoch) and unread.lease.until is not None and unread.lease.worker != self.worker
            try:
                await self._take_over(unread, died=died)
            except ConflictError as error:
                _LOG.debug("Document %s is read elsewhere: %s", unread.id, error)
            except StorageError as error:  # a full disk ends no start; the next look tries again
                _LOG.warning("Document %s waits to be read: %s", unread.id, error)

    async def _take_over(self, unread: Unread, *, died: bool) -> None:
        """Take up what a process has left. Raises ConflictError, StorageError."""
        if unread.asked is not None:
            await self._readings.put_back(unread, died=died)
            with suppress(NotFoundError):
                await self._stores.of(unread.owner_id).documents.call_off(unread.id)
            self._changed(unread.owner_id, unread.record.conversation_id)
        elif died and unread.lost >= _MOST_LOST:
            await self._give_in(unread)
        elif self.sharing is None:
            self._begin(await self._readings.take(unread, self.worker, lasts=self.lasts))
        else:
            _LOG.info("Document %s was left by the process that read it.", unread.id)
            await self._readings.put_back(unread, died=died)
            self.room()

    async def _give_in(self, unread: Unread) -> None:
        """Leave a document unread that each of its readers dies of. Raises ConflictError, StorageError."""
        taken = await self._readings.take(unread, self.worker, lasts=self.lasts)
        name, before = unread.record.name, taken.before
        error = DocumentError(
            f"Each process that read {name} died of it.",
            hint="Save it anew, or as PDF, and try that.",
            key="document_too_heavy",
            name=name,
        )
        state: dict[str, Any] = {"status": "failed", "facts": unread.record.facts}
        if before is not None:
            state = state_of(before)
        state["error"] = as_dict(error)
        with suppress(NotFoundError):
            await self._stores.of(unread.owner_id).documents.update(
                unread.id, **state, only_if=("reading",), epoch=taken.unread.epoch
            )
        self._changed(unread.owner_id, unread.record.conversation_id)

    async def _queued(self) -> tuple[Sequence[tuple[Unread, Lease]], Mapping[str, int]]:
        """What waits and may be taken here, and how many of each owner are being read here."""
        sharing, now = self.sharing, time.monotonic()
        doing = Counter(job.record.owner_id for job in self._jobs.values() if not job.hears)
        if sharing is None or not self._may_wait:
            return [], doing
        self._may_wait = False  # before it is asked: what comes meanwhile says so again
        waiting = await self._readings.waiting(sharing.each or sharing.most)
        self._may_wait = self._may_wait or bool(waiting)
        self._lacks = {one: until for one, until in self._lacks.items() if until > now}
        able = [one for one in waiting if one.id not in self._lacks and (sharing.writes or self._is_left(one))]
        return [(one, one.lease) for one in able], doing

    def _is_waited_for(self) -> bool:
        """Whether something waits, as of the last look."""
        return any(one.lease.worker == QUEUED for one in self.known.values())

    def _is_left(self, unread: Unread) -> bool:
        """Whether a document waits for long, and nobody else reads any; or another one had not its bytes."""
        if unread.passed:
            return True
        since = self._waits_since.get(unread.id)
        waited = since is not None and time.monotonic() - since >= _GRACE
        return waited and not any(
            one.lease.worker != QUEUED and one.lease.until is not None and not one.lease.over
            for one in self.known.values()
        )

    async def _take(self, unread: Unread, _: Lease) -> None:
        try:
            taken = await self._readings.take(unread, self.worker, lasts=self.lasts)
        except ConflictError:  # another process was quicker
            return
        self.known.pop(unread.id, None)
        self._begin(taken)

    async def _watch(self) -> None:
        seen = -1
        database = self._stores.database
        while True:
            await asyncio.sleep(self._beat if self.sharing is None else min(_LOOKS_EVERY, self._beat))
            try:
                before, seen = seen, database.others()
                if self.known or self._are_more or seen != before:
                    await self.look()
            except StorageError as error:
                _LOG.info("It is not known what other processes read: %s", error)
            except Exception:  # noqa: BLE001 - logged below, and the next look may do better
                _LOG.exception("It is not known what other processes read.")

    async def _tell_on(self) -> None:
        """Tell how far readings are, and do what is asked of them, as long as there are any."""
        shares = self.sharing is not None
        while held := self.holds():
            await asyncio.sleep(min(_TELLS_EVERY, self._beat) if shares else self._beat)
            held = self.holds()
            now = {one: job.progress for one, job in self._jobs.items() if shares and job.progress is not None}
            moved = {one: progress for one, progress in now.items() if self._told.get(one) != progress}
            try:
                still = await self._readings.tell(held, {one: _as_json(progress) for one, progress in moved.items()})
            except StorageError as error:
                _LOG.info("It is not told how far readings are: %s", error)
                continue
            self._told = {one: progress for one, progress in now.items() if one in still}
            self.lose(self._still(held, held.keys() - still.keys()))
            for job in [job for one, job in self._jobs.items() if still.get(one) is not None]:
                job.stop()


def _same(unread: Unread, before: Mapping[str, Unread]) -> bool:
    """Whether a document was read in the same way at an earlier look."""
    was = before.get(unread.id)
    return was is not None and (was.epoch, was.lease.worker) == (unread.epoch, unread.lease.worker)


def _as_json(progress: ReadingProgress) -> dict[str, Any]:
    return asdict(progress)
