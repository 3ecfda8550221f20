"""All runs of the process: starts, finds and stops them, and picks up what a crash left behind."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager, suppress
from dataclasses import replace
from random import sample
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias
from weakref import WeakSet

from core.bridge.cancellation import run_shielded
from core.bridge.pool import Listeners
from core.errors import ConflictError, NotFoundError, StorageError
from core.limits import Arrivals, Slots
from core.runs.elsewhere import Elsewhere, Heeding, OwnersElsewhere
from core.runs.feed import TableFeed
from core.runs.lease import BEAT, LeaseWatch, Renewing, this_worker
from core.runs.picking_up import Resume, begin, interrupt, pick_up
from core.runs.publishing import Publishing
from core.runs.rows import prune_daily, rows_of
from core.runs.run import Answerer, Beginning, Run, RunOptions
from core.runs.said_to_runs import SaidToRuns
from core.runs.table import Reservation, RunTable
from core.runs.taking import Taking, begun_with, check_queue
from core.storage.base import QUEUED, WAITING, busy
from core.storage.runs import LEASE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence

    from core.limits import ConcurrencyLimiter, Slot
    from core.messages.message import Message
    from core.runs.feed import Feed
    from core.runs.followed import FollowedRun
    from core.runs.lease import Sharing
    from core.runs.log import AskedFor
    from core.runs.resumable import ResumableRun
    from core.runs.run import Check
    from core.storage.base import Lease, QueuedMessage, RunRecord, StoredMessage
    from core.storage.runs import RunStore
    from core.storage.stores import Stores

Live: TypeAlias = "Run | FollowedRun"
"""A run that is being written, by this process or by another one."""

_LOG = logging.getLogger(__name__)
_PICKED_UP_AT_ONCE: Final = 8


class OwnerRuns(SaidToRuns):
    """The runs of one owner, this process's and those of others. What is somebody else's does not exist.

    Args:
        every: All runs of the process.
        store: Where the owner's are kept.
    """

    def __init__(self, owner: str, every: Runs, store: RunStore) -> None:
        super().__init__(owner, every.table, OwnersElsewhere(owner, every.elsewhere, store), store)
        self._every = every

    @contextmanager
    def reserve(
        self, conversation_id: str, held: Reservation | None = None, *, stopping: bool = False
    ) -> Generator[Reservation]:
        """Be the one who answers the conversation next, to the end of the block.

        The one place that decides whether a conversation is free, before anything is stored for a reply. Other
        processes on the same data are refused by the database, which holds one running reply for a conversation.

        Args:
            conversation_id: The conversation, or a name for one that is not there yet.
            held: What the caller reserved before; where that is this conversation, it is used.
            stopping: Whether the caller will stop the reply that is being written, and answer next.

        Raises:
            ConflictError: key `busy`: it is being answered, or somebody else has reserved it.
        """
        wanted = Reservation(self._owner, conversation_id)
        if held is not None and held == wanted:
            yield held
            return
        mine = self._every.live(conversation_id)
        is_live = mine is not None and mine.owner == self._owner
        if (is_live and not stopping) or self._table.reserved[wanted]:
            raise busy()
        with self._every.reserving(wanted):
            yield wanted

    async def start(  # noqa: PLR0913 - what a run is made of
        self,
        conversation_id: str,
        agent: Answerer,
        *,
        user: Message | None,
        parent_id: str | None,
        history: Sequence[Message],
        model: str = "",
        title: str = "",
        retitled: Sequence[str] = (),
        beginning: Beginning = Beginning(),  # noqa: B008 - frozen
        terms: RunOptions | None = None,
        queued: QueuedMessage | None = None,
        asked: AskedFor | None = None,
    ) -> Run:
        """Commit the user's message and the reply's place, then start to answer, as soon as it is the run's turn.

        Whoever prepares something for it beforehand does so within `reserve`. It either returns the run or has stored
        nothing: whoever is cancelled too late gets the run all the same.

        Args:
            agent: Who answers.
            user: The question, or `None` for another reply to what `parent_id` is.
            parent_id: The turn that the new one comes after; `None` for the first.
            history: What the agent is given, the question included.
            model: The name of the model, for the record.
            title: For a conversation that has none yet.
            retitled: Titles that it takes the place of as well.
            beginning: What a continued reply begins with.
            terms: What the run may do; the tools that change something ask, if it is left out.
            queued: The waiting message that becomes the question.
            asked: What another process would have to know to write the reply.

        Raises:
            ConflictError: key `busy`: the conversation has a live run; `queue_changed`: what waits was changed.
            NotFoundError: The conversation or parent is not the owner's, or the message does not wait any more.
            NoSpaceError: The disk is full; nothing was stored.
            TooManyRequestsError: Too many replies of the owner wait for their turn already.
        """
        late = self._table.unsettled.get(conversation_id)
        if late is not None and late.owner == self._owner:
            await late.settle()
            self._table.unsettled.pop(conversation_id, None)
        if asked is not None and self._every.sharing is not None:
            beginning = replace(beginning, logged=begun_with(asked, beginning.logged))
        slot = self._every.at_once.take(self._owner)

        async def begin() -> Run:
            with self._every.reserving(Reservation(self._owner, conversation_id)):
                try:
                    record, _ = await self._store.create(
                        conversation_id,
                        user=[user] if user is not None else None,
                        parent_id=parent_id,
                        model=model,
                        worker=self._every.worker,
                        title=title,
                        retitled=retitled,
                        queued=queued,
                        lasts=self._every.lasts,
                    )
                    await slot.of_run(record.id)
                except BaseException:
                    slot.release()
                    raise
                return self._every.launch(record, agent, history, beginning, terms, slot)

        return await run_shielded(begin())

    @property
    def hands_over(self) -> bool:
        """Whether other processes write what is asked here."""
        return self._every.hands_over

    async def hand_over(  # noqa: PLR0913 - as of `start`
        self,
        conversation_id: str,
        asked: AskedFor,
        user: Message | None,
        parent_id: str | None,
        *,
        model: str = "",
        title: str = "",
        retitled: Sequence[str] = (),
        beginning: Beginning = Beginning(),  # noqa: B008 - frozen
        queued: QueuedMessage | None = None,
    ) -> FollowedRun:
        """As `start`, for another process to write the reply, as soon as one has room for it.

        Args:
            asked: What that one has to know; the rest as of `start`.

        Raises:
            ConflictError: As `start`.
            NotFoundError: As `start`.
            TooManyRequestsError: As `start`.
        """
        every = self._every
        check_queue(len(self._elsewhere.conversations()), every.sharing)
        create = self._store.create(
            conversation_id,
            user=[user] if user is not None else None,
            parent_id=parent_id,
            model=model,
            worker=QUEUED,
            title=title,
            retitled=retitled,
            queued=queued,
            lasts=0.0,
            rows=rows_of(begun_with(asked, beginning.logged)),
        )
        return await run_shielded(every.handed_over(create))

    async def resume(
        self,
        resumable: ResumableRun,
        agent: Answerer,
        *,
        history: Sequence[Message],
        terms: RunOptions | None = None,
    ) -> Run:
        """Let a run of a dead process go on, in the same message, at the calls that have no result.

        Args:
            agent: Who answers.
            history: What the agent is given: the conversation, and the reply so far.
            terms: As of `start`.

        Raises:
            ConflictError: key `busy`: another process has taken it.
            NotFoundError: The run is somebody else's.
            TooManyRequestsError: Too many replies of the owner wait for their turn already.
        """
        record, every = resumable.record, self._every
        if record.owner_id != self._owner:
            raise NotFoundError("There is no such run.", kind="run")
        slot = every.at_once.take(self._owner)
        with every.reserving(Reservation(self._owner, record.conversation_id)):
            try:
                taken = await every.take_over(resumable)
                await slot.of_run(taken.id)
            except BaseException:
                slot.release()
                raise
            beginning = Beginning(resumable.logged, may_have_run=resumable.may_have_run, stored=True)
            return every.launch(taken, agent, history, beginning, terms, slot)

    def live(self, conversation_id: str) -> Live | None:
        """The live run of a conversation of the owner, as far as this process knows."""
        run = self._every.live(conversation_id) or self._elsewhere.live(conversation_id)
        return run if run is not None and run.owner == self._owner else None

    async def found(self, conversation_id: str) -> Live | None:
        """The same, whichever process writes it; what it has written before is known then. Raises StorageError."""
        run = self._every.live(conversation_id)
        if run is None:
            return await self._elsewhere.find(conversation_id)
        return run if run.owner == self._owner else None

    def live_conversations(self) -> set[str]:
        """The owner's conversations that are being answered, each as it is shown."""
        here = {run.shown_in for run in self._table.live.values() if run.owner == self._owner}
        return here | self._elsewhere.conversations()

    async def get(self, run_id: str) -> Live:
        """A live run by its id, whichever process writes it.

        Raises:
            NotFoundError: There is no live run such as this of this owner.
        """
        for run in self._table.live.values():
            if run.id == run_id and run.owner == self._owner:
                return run
        record = await self._store.get(run_id)
        found = await self._elsewhere.find(record.conversation_id) if record.status == "running" else None
        if found is None or found.id != run_id:
            raise NotFoundError("There is no such run.", kind="run")
        return found

    async def stop(self, conversation_id: str) -> None:
        """Stop the conversation's live run, whichever process writes it, and wait for its end.

        Without one, nothing happens.

        Raises:
            ConflictError: key `elsewhere`: another process writes it, and does not answer. It stays asked to stop.
            NotFoundError: The run is somebody else's.
        """
        run = await self._written_here(conversation_id)
        if run is not None:
            await run.stop()
            return
        found = await self._store.running(conversation_id)
        if found is None or not await self._every.called_off(*found):
            await self._elsewhere.stop(conversation_id)


class Runs:
    """One live run per conversation.

    Args:
        stores: Where runs and events are kept.
        limit: Seconds that one run may take.
        feed: Tells what happens in runs to other processes; left out, they read the tables.
        rests_after: Seconds after which a reply that waits for its user lets this process go, and goes on in any; it
            stays if left out.
        worker: Who this process is, for other processes on the same data.
        check: Looks at each reply that is complete.
        keep_events: Seconds after which the log of a finished reply is cut down to what its message does not say; for
            ever if left out.
        at_once: How many replies an owner may have at once; further ones wait for their turn. No limit if left out.
        arrivals: The pages whose questions are shown before replies are begun.
        sharing: How other processes go on with what this one leaves, and it with theirs, wherever a reply has come to;
            left out, only what was in the middle of its calls, or waited, goes on.

    Attributes:
        heard: Told each notice of other processes, where this one takes up what waits.
        table: Those of this process.
        elsewhere: Those that other processes on the same data write.
    """

    _open: ClassVar[WeakSet[Runs]] = WeakSet()  # all of this process: another one on the same data may be answering

    def __init__(  # noqa: PLR0913 - what runs are made with
        self,
        stores: Stores,
        *,
        limit: float = 600.0,
        worker: str | None = None,
        check: Check | None = None,
        at_once: ConcurrencyLimiter | None = None,
        keep_events: float | None = None,
        feed: Feed | None = None,
        rests_after: float | None = None,
        sharing: Sharing | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        self._stores = stores
        self.sharing = sharing
        self.lasts, self._beat = (sharing.lease, sharing.beat) if sharing is not None else (LEASE_SECONDS, BEAT)
        self.at_once = at_once or Slots()
        self._check = check
        self._limit = limit
        self.worker = worker or this_worker()
        self.table = RunTable()
        self.arrivals = arrivals or Arrivals()
        self._changed = Listeners[str, str]()
        self._renewing = Renewing(stores.runs, self._held, self._lost, beat=self._beat, lasts=self.lasts)
        self._leases: LeaseWatch[RunRecord] = LeaseWatch(by_clock=sharing is not None)
        self.hands_over = sharing is not None and not sharing.writes
        self._taking: Taking[RunRecord] | None = None
        self.heard = Listeners[str]()
        self._rests_after = rests_after
        self._heeding = Heeding(stores.run_requests, self.worker, self.table.live)
        feed = feed or TableFeed(stores.run_news)
        self._publishing = Publishing(feed) if feed.tells else None
        self.elsewhere = Elsewhere(stores, feed, self._places, self._changed)
        self._keep_events = keep_events
        self._chores: list[asyncio.Task[None]] = []
        Runs._open.add(self)

    def of(self, owner: str) -> OwnerRuns:
        """Those of one owner."""
        return OwnerRuns(owner, self, self._stores.of(owner).runs)

    def live(self, conversation_id: str) -> Run | None:
        """The conversation's live run, where this process writes it."""
        return self.table.live.get(conversation_id)

    def is_answered(self, conversation_id: str) -> bool:
        """Whether the conversation is being answered, as far as this process knows."""
        others = self.elsewhere.running()
        return conversation_id in self.table.live or any(one.conversation_id == conversation_id for one in others)

    async def recover(self, resume: Resume | None = None) -> int:
        """Pick up what dead processes left running; how many runs there were.

        What was in the middle of its calls, or waited for the user or for its turn, goes on; the rest is marked as
        interrupted, or goes on as well where replies are shared. A process that cannot be seen from here counts as dead
        when it has not renewed its lease in several calls.

        Args:
            resume: Lets a run go on, by calling its owner's `resume`; without it, all of them are interrupted.
        """
        running = await self._stores.runs.running()
        here = {held for runs in list(Runs._open) for held in runs.held_conversations()}
        own = [one for one in running if one[1].worker == self.worker]
        mine = [one for one in own if Reservation(one[0].owner_id, one[0].conversation_id) not in here]
        others = [one for one in running if one[1].worker not in {self.worker, WAITING, QUEUED}]
        left = [*mine, *await self._answered(running), *self._leases.look(others)]
        await self._pick_up(left, resume)
        return len(left)

    async def watch(self, resume: Resume | None = None, *, every: float | None = None) -> None:
        """Recover, and again every few seconds until `aclose`: other processes on the same data may die later on.

        Logs of old replies are shortened from now on as well.

        Args:
            resume: As of `recover`.
            every: Seconds between two looks; as often as leases are renewed, if left out.
        """
        if not self.hands_over:
            await self.recover(resume)
        self.elsewhere.begin()
        if not self.hands_over:
            watching = self._watch(resume, self._beat if every is None else every)
            self._chores.append(asyncio.create_task(watching, name="watch leases"))
        if resume is not None and self.sharing is not None and self.sharing.writes:
            self._take_up(resume, self.sharing)
        if self._keep_events is not None:
            pruning = prune_daily(self._stores.runs, self._keep_events)
            self._chores.append(asyncio.create_task(pruning, name="prune events"))

    def held_conversations(self) -> set[Reservation]:
        """The conversations whose run is live here, about to be, or over but not stored yet."""
        runs = [*self.table.live.values(), *(run for run in self.table.unsettled.values() if not run.stored)]
        return {*(Reservation(run.owner, run.conversation_id) for run in runs), *self.table.reserved}

    async def aclose(self) -> None:
        """End all runs as interrupted, their partial replies kept; those that wait for their user wait on."""
        if self._taking is not None:
            await self._taking.aclose()
        for chore in self._chores:
            chore.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)
        runs = [*self.table.live.values()]
        await asyncio.gather(*(run.suspend() for run in runs))
        await asyncio.gather(*(run.leave() for run in {*runs, *self.table.unsettled.values()}))
        await self._renewing.aclose()
        await self._heeding.aclose()
        if self._publishing is not None:
            await self._publishing.aclose()
        await self.elsewhere.aclose()
        await self.at_once.aclose()

    def on_change(self, callback: Callable[[str, str], None]) -> Callable[[], None]:
        """Call back with (owner, conversation) when a run starts or ends; returns what ends this."""
        return self._changed.add(callback)

    async def take_over(self, left: ResumableRun) -> RunRecord:
        """A run that a dead process has left, held by this one from now on. Raises as `AllRuns.take_over`."""
        if left.lease.worker == QUEUED:  # it was taken before anything was made ready
            return left.record
        rows = rows_of(left.logged)
        return await self._stores.runs.take_over(
            left.record, left.lease, self.worker, rows, seen=left.seen, lasts=self.lasts
        )

    def launch(
        self,
        record: RunRecord,
        agent: Answerer,
        history: Sequence[Message],
        beginning: Beginning,
        terms: RunOptions | None,
        slot: Slot,
    ) -> Run:
        """A run whose rows are stored, on its way."""
        owner, conversation_id = record.owner_id, record.conversation_id
        terms = terms or RunOptions(seconds=self._limit)
        terms = replace(
            terms, rests_after=self._rests_after, shared=self.sharing is not None, gives_way=self.arrivals.settled
        )
        run = Run(
            record,
            self._stores.of(owner).runs,
            beginning=beginning,
            terms=terms,
            check=self._check,
            slot=slot,
        )
        self.table.live[conversation_id] = run
        run.begin(agent, history, self._done)
        self._renewing.begin()
        self._heeding.begin()
        if self._publishing is not None:
            self._publishing.begin(run, beginning.stored * len(beginning.logged))
        self._changed(owner, conversation_id)
        return run

    async def _answered(self, running: Iterable[tuple[RunRecord, Lease]]) -> list[tuple[RunRecord, Lease]]:
        """Of the runs that no process holds, those whose users have answered or been silent for too long."""
        resting = [one for one in running if one[1].worker == WAITING]
        if not resting:
            return []
        asked = {request.run_id for request in await self._stores.run_requests.open(WAITING)}
        return [one for one in resting if one[0].id in asked or one[1].over]

    async def handed_over(self, create: Awaitable[tuple[RunRecord, StoredMessage]]) -> FollowedRun:
        """A run that another process is to write, followed. Raises as `create`."""
        record, _ = await create
        self._changed(record.owner_id, record.conversation_id)
        return await self.elsewhere.handed_over(record)

    def _take_up(self, resume: Resume, sharing: Sharing) -> None:
        """Write what is asked for where nobody writes, from now on."""

        async def take(record: RunRecord, lease: Lease) -> None:
            with self.reserving(Reservation(record.owner_id, record.conversation_id)):
                await begin(self._stores, record, lease, self.worker, resume, lasts=self.lasts)

        taking = self._taking = Taking(self._stores.run_news.queued, sharing, lambda: len(self.table.live), take)
        taking.begin()
        taking.listen(self._stores.database, self._heard)

        def moved(_of: str, _which: str) -> None:
            taking.woken.set()

        self._changed.add(moved)

    def _heard(self, said: str) -> None:
        if said == "asked":
            self.elsewhere.answered.set()
        self.heard(said)

    async def called_off(self, record: RunRecord, lease: Lease) -> bool:
        """End a run that no process has begun, as stopped; whether that was so."""
        if lease.worker != QUEUED:
            return False
        try:
            await interrupt(self._stores, record, lease, self.worker, status="stopped")
        except ConflictError:  # one begins with it at this moment
            return False
        self._changed(record.owner_id, record.conversation_id)
        return True

    async def _watch(self, resume: Resume | None, every: float) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(every):
                    await self.elsewhere.answered.wait()
            is_asked = self.elsewhere.answered.is_set()
            self.elsewhere.answered.clear()  # before the look: what is asked during it is looked at once more
            try:
                if is_asked:
                    await self._pick_up(await self._answered(await self._stores.runs.running()), resume)
                else:
                    await self.recover(resume)
            except Exception:  # noqa: BLE001 - logged below, and the next look may do better
                _LOG.exception("Runs of other processes could not be looked at; this is tried again.")

    @contextmanager
    def reserving(self, one: Reservation) -> Generator[None]:
        """While its next run is prepared or stored, the conversation is no one else's."""
        reserved = self.table.reserved
        reserved[one] += 1
        try:
            yield
        finally:
            reserved[one] -= 1
            if not reserved[one]:
                del reserved[one]

    def _places(self) -> set[str]:
        return {one.conversation_id for one in self.held_conversations()}

    def _held(self) -> dict[str, int]:
        """The runs whose leases are renewed: those that live, and those whose end is still to be stored."""
        runs = [*self.table.live.values(), *(run for run in self.table.unsettled.values() if not run.stored)]
        return {run.id: run.epoch for run in runs}

    def _lost(self, run_ids: Iterable[str]) -> None:
        lost = set(run_ids)
        for run in [run for run in self.table.live.values() if run.id in lost and not run.stored]:
            run.lose_lease()

    def _done(self, run: Run) -> None:
        self.table.past.pop((run.owner, run.message_id), None)
        for runs in (self.table.live, self.table.unsettled):
            if runs.get(run.conversation_id) is run:
                del runs[run.conversation_id]
        if not run.stored:
            self.table.unsettled[run.conversation_id] = run
        elif run.resting.begun:
            self.elsewhere.left(run.record)
        self._changed(run.owner, run.conversation_id)

    async def _pick_up(self, left: Sequence[tuple[RunRecord, Lease]], resume: Resume | None) -> None:
        """Pick runs up, some at a time; in no order, where others may be about the same."""
        together = asyncio.Semaphore(_PICKED_UP_AT_ONCE if self.sharing is not None else 1)

        async def picked_up(record: RunRecord, lease: Lease) -> None:
            async with together:
                try:
                    ended = await pick_up(
                        self._stores, record, lease, self.worker, resume, shared=self.sharing is not None
                    )
                except StorageError as error:  # the next look may do better
                    _LOG.warning("Run %s cannot be picked up yet: %s", record.id, error)
                    return
                if ended:
                    self._changed(record.owner_id, record.conversation_id)

        mixed = sample(left, len(left)) if self.sharing is not None else left
        await asyncio.gather(*(picked_up(*one) for one in mixed))

    async def interrupt(self, record: RunRecord, lease: Lease) -> None:
        """End a run that a dead process has left; what there is of its reply is kept. Raises ConflictError."""
        await interrupt(self._stores, record, lease, self.worker)
        self._changed(record.owner_id, record.conversation_id)
