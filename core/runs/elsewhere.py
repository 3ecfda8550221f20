"""The runs of other processes on the same data: how they go on, what is asked of them, and of this one by them."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from core.bridge.pool import Listeners
from core.errors import BadArgumentsError, ConflictError, NotFoundError, ParlourError, StorageError, shown
from core.runs.approvals import already_decided
from core.runs.followed import FollowedRun, Following
from core.runs.lease import seems_held
from core.storage.base import QUEUED, WAITING
from core.storage.run_news import RunRequest
from core.tools.approval import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from core.runs.feed import Feed
    from core.runs.log import ApprovalAsked
    from core.runs.run import Run
    from core.storage.base import Lease, RunRecord
    from core.storage.run_news import RunRequests
    from core.storage.runs import RunStore
    from core.storage.stores import Stores


_LOG = logging.getLogger(__name__)
_EVERY: Final = 1.0
"""Seconds between two looks at what others write."""
_PATIENCE: Final = 15.0
"""Seconds within which a process that is alive does what it is asked; the next one needs a little longer."""
_ASKS_EVERY: Final = 0.1
_HEEDS_EVERY: Final = 0.25
"""Seconds between two looks at what is asked here; they go on only while a reply is written here."""
_IDLE: Final = 60.0
"""Seconds after which a run is not followed any more that nobody asked for."""
_TOLD_AFTER: Final = 3.0
"""Seconds for which nobody may write a reply before its reader is told so."""


class Elsewhere:
    """What this process knows of the runs of others.

    All of them are known by name; those are followed that somebody asks for.

    Args:
        stores: Where they are kept.
        feed: Tells what happens in them.
        here: The conversations whose runs are this process's own.
        changed: Called with (owner, conversation) when a run begins or ends.
        every: Seconds between two looks.
        patience: Seconds to wait for a process that is asked for something.

    Attributes:
        answered: Set when something was asked here of a run that no process holds.
        ended: Told of each that was followed here to its end.
    """

    def __init__(
        self,
        stores: Stores,
        feed: Feed,
        here: Callable[[], Collection[str]],
        changed: Callable[[str, str], None],
        *,
        every: float = _EVERY,
        patience: float = _PATIENCE,
    ) -> None:
        self._runs, self.requests = stores.runs, stores.run_requests
        self._database = stores.database
        self._feed = feed
        self._here = here
        self._changed = changed
        self._every = every
        self.patience = patience
        self._known: dict[str, RunRecord] = {}
        self._followed: dict[str, Following] = {}
        self._unwritten: dict[str, float] = {}
        self.answered = asyncio.Event()
        self.ended = Listeners[FollowedRun]()
        self._looking: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Look from now on."""
        self._looking = asyncio.create_task(self._watch(), name="look at runs elsewhere")

    async def aclose(self) -> None:
        """Look no more, and follow nothing."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        followed, self._followed = self._followed, {}
        for one in followed.values():
            one.close()
        await asyncio.gather(*(one.task for one in followed.values()), return_exceptions=True)
        await self._feed.aclose()

    def running(self) -> Collection[RunRecord]:
        """Those that are known to be written."""
        return self._known.values()

    def live(self, conversation_id: str) -> FollowedRun | None:
        """The run that another process writes in a conversation, followed from now on."""
        record = self._known.get(conversation_id)
        return self._follow(record) if record is not None else None

    def left(self, record: RunRecord) -> None:
        """A run of this process waits in the tables from now on."""
        self._know(record)

    async def follow(self, record: RunRecord) -> FollowedRun | None:
        """A run that is being written, with what was written before; `None` where it is this process's, or over."""
        if record.conversation_id in self._here():
            return None
        run = await self.handed_over(record)
        return run if record.conversation_id in self._followed else None

    async def handed_over(self, record: RunRecord) -> FollowedRun:
        """The same of a run that was asked for here, and that another process writes."""
        self._know(record)
        run = self._follow(record)
        await run.ready()
        following = self._followed.get(record.conversation_id)
        return following.run if following is not None else run

    async def look(self) -> None:
        """See which runs there are. Raises StorageError."""
        before = {*self._here()}
        found = await self._runs.running()
        own = before | {*self._here()}
        now = {record.conversation_id: record for record, _ in found if record.conversation_id not in own}
        gone = [one for place, one in self._known.items() if place not in now and place not in self._followed]
        for record in now.values():
            self._know(record)
        for record in gone:
            del self._known[record.conversation_id]
            self._changed(record.owner_id, record.conversation_id)
        self._tell_unwritten(found)
        self._rest()

    def _tell_unwritten(self, found: Sequence[tuple[RunRecord, Lease]]) -> None:
        """Let who reads a reply that nobody writes know it, after a few seconds."""
        now, before = time.monotonic(), self._unwritten
        leases = {record.id: lease for record, lease in found}
        left = {one for one, lease in leases.items() if lease.worker != WAITING and not _is_written(lease)}
        self._unwritten = {one: before.get(one, now) for one in left}
        somebody = any(map(_is_written, leases.values()))
        for run in [one.run for one in self._followed.values()]:
            if now - self._unwritten.get(run.id, now) < _TOLD_AFTER:
                run.stand("")
            elif not somebody:
                run.stand("nobody")
            else:  # what somebody has left is taken over in a moment
                lease = leases.get(run.id)
                run.stand("busy" if lease is not None and lease.worker == QUEUED else "")

    def _know(self, record: RunRecord) -> None:
        former = self._known.get(record.conversation_id)
        following = self._followed.get(record.conversation_id)
        if following is not None and following.run.id != record.id:
            del self._followed[record.conversation_id]
            following.close()
        self._known[record.conversation_id] = record
        if former is None or former.id != record.id:
            self._changed(record.owner_id, record.conversation_id)

    def _follow(self, record: RunRecord) -> FollowedRun:
        following = self._followed.get(record.conversation_id)
        if following is None:
            following = Following(FollowedRun(record), self._feed, self._moved, self._over)
            self._followed[record.conversation_id] = following
        following.run.used = time.monotonic()
        return following.run

    def _rest(self) -> None:
        """Follow no more what nobody asks for."""
        long_ago = time.monotonic() - _IDLE
        for place in [place for place, one in self._followed.items() if one.run.used < long_ago]:
            self._followed.pop(place).close()

    def _moved(self, run: FollowedRun) -> None:
        self._changed(run.owner, run.conversation_id)

    def _over(self, run: FollowedRun) -> None:
        place = run.conversation_id
        following, record = self._followed.get(place), self._known.get(place)
        if following is not None and following.run is run:
            del self._followed[place]
        if record is not None and record.id == run.id:
            del self._known[place]
        self.ended(run)
        self._changed(run.owner, place)

    async def _watch(self) -> None:
        seen = -1
        while True:
            try:
                await self._database.look_for_others()
                before, seen = seen, self._database.others()
                if self._known or seen != before:
                    await self.look()
            except StorageError as error:
                _LOG.info("It is not known what other processes write: %s", error)
            except Exception:  # noqa: BLE001 - logged below, and the next look may do better
                _LOG.exception("It is not known what other processes write.")
            await asyncio.sleep(self._every)


class OwnersElsewhere:
    """The runs of one owner that other processes write, and what is asked of them.

    Args:
        every: Those of all owners.
        store: Has the owner's.
    """

    def __init__(self, owner: str, every: Elsewhere, store: RunStore) -> None:
        self._owner = owner
        self._every = every
        self._store = store

    def live(self, conversation_id: str) -> FollowedRun | None:
        """The run in a conversation, as far as this process knows, followed from now on."""
        run = self._every.live(conversation_id)
        return run if run is not None and run.owner == self._owner else None

    async def find(self, conversation_id: str) -> FollowedRun | None:
        """The same, looked for in the tables, with what was written before. Raises StorageError."""
        found = await self._store.running(conversation_id)
        return await self._every.follow(found[0]) if found is not None else None

    def conversations(self) -> set[str]:
        """Those that are being answered."""
        return {run.conversation_id for run in self._every.running() if run.owner_id == self._owner}

    async def stop(self, conversation_id: str) -> None:
        """Have the conversation's run stopped, and wait for its end. Without one, nothing happens.

        Raises:
            ConflictError: key `elsewhere`: no process does it.
            StorageError: The database failed.
        """
        run = await self.find(conversation_id)
        if run is None:
            return
        await self._every.requests.ask(run.record, RunRequest(run.id, "stop", "stop", {}))
        await self._refuse_if_left(conversation_id)
        found = await self._store.running(conversation_id)
        if found is not None:
            self._call(found[1])
        try:
            async with asyncio.timeout(self._every.patience):
                await run.wait()
        except TimeoutError as error:
            raise _left_alone() from error

    async def ask(self, conversation_id: str, kind: str, key: str, payload: dict[str, Any]) -> Any:
        """Have something done to the conversation's run, and wait until it is.

        Args:
            kind: What, as `Heeding` names it.
            key: Of several who ask with one key the first is heard.
            payload: With what.

        Returns:
            What the process answers.

        Raises:
            ConflictError: key `already_decided`: somebody was quicker, or the run is over; `elsewhere`: no process
                does it yet. It stays asked.
            NotFoundError: As the process says.
            StorageError: The database failed.
        """
        found = await self._store.running(conversation_id)
        if found is None:
            raise already_decided()
        record, _ = found
        if not await self._every.requests.ask(record, RunRequest(record.id, key, kind, payload)):
            raise already_decided()
        await self._refuse_if_left(conversation_id)
        self._call(found[1])
        end = time.monotonic() + self._every.patience
        while (answer := await self._every.requests.answer(record.id, key)) is None:
            if time.monotonic() > end:
                raise _left_alone()
            now = await self._store.running(conversation_id)
            if now is None or now[0].id != record.id:
                raise already_decided()
            await asyncio.sleep(_ASKS_EVERY)
        return answer

    def _call(self, lease: Lease) -> None:
        if lease.worker == WAITING:
            self._every.answered.set()

    async def _refuse_if_left(self, conversation_id: str) -> None:
        found = await self._store.running(conversation_id)
        if found is not None and not seems_held(found[1]):
            raise _left_alone()


def _is_written(lease: Lease) -> bool:
    """Whether a process holds the run."""
    return lease.worker not in {QUEUED, WAITING} and lease.until is not None and not lease.over


def _left_alone() -> ConflictError:
    said = "The process that writes this reply does not answer."
    return ConflictError(said, hint="Another one goes on with it in a while, and does what was asked.", key="elsewhere")


class Heeding:
    """Looks at what is asked, as long as there are runs here.

    Args:
        requests: Where it is asked.
        worker: This process.
        live: Its runs, by their conversations.
    """

    def __init__(
        self, requests: RunRequests, worker: str, live: dict[str, Run], *, every: float = _HEEDS_EVERY
    ) -> None:
        self._requests = requests
        self._worker = worker
        self._live = live
        self._every = every
        self._task: asyncio.Task[None] | None = None
        self._at_work: set[tuple[str, str]] = set()
        self._work: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        """Look from now on, until no run lives."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._heed(), name="heed requests")

    async def aclose(self) -> None:
        """End it."""
        tasks = [*self._work, *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def look(self) -> None:
        """Begin what is asked and not begun. Raises StorageError."""
        runs = {run.id: run for run in self._live.values() if not run.resting.begun}
        for request in await self._requests.open(self._worker):
            run, this = runs.get(request.run_id), (request.run_id, request.key)
            if run is not None and this not in self._at_work:
                self._at_work.add(this)
                task = asyncio.create_task(self._settle(run, request), name=f"{request.kind} of run {run.id}")
                self._work.add(task)
                task.add_done_callback(self._work.discard)

    async def _heed(self) -> None:
        while self._live:
            try:
                await self.look()
            except StorageError as error:
                _LOG.info("It is not known what other processes ask: %s", error)
            await asyncio.sleep(self._every)

    async def _settle(self, run: Run, request: RunRequest) -> None:
        try:
            await self._tell(run, request, await _answer_to(run, request))
        except ParlourError as error:  # it is asked still
            _LOG.warning("What is asked of run %s could not be done: %s", run.id, error)
        except Exception:  # noqa: BLE001 - logged; whoever asked hears nothing, and asks again
            _LOG.exception("What is asked of run %s could not be done.", run.id)
        finally:
            self._at_work.discard((request.run_id, request.key))

    async def _tell(self, run: Run, request: RunRequest, answer: dict[str, Any]) -> None:
        """Tell what is done, as soon as that can be stored: it is not done again."""
        while True:
            try:
                return await self._requests.settle(request, answer)
            except StorageError as error:
                _LOG.warning("What was asked of run %s is done, and cannot be told yet: %s", run.id, error)
            await asyncio.sleep(self._every)


async def _answer_to(run: Run, request: RunRequest) -> dict[str, Any]:
    try:
        return await _done(run, request)
    except BadArgumentsError as error:
        return {"error": BadArgumentsError.key, "said": str(error), "details": _as_json(error.details)}
    except (ConflictError, NotFoundError) as error:
        return {"error": "gone" if isinstance(error, NotFoundError) else error.words_key}


def _as_json(details: dict[str, Any]) -> dict[str, Any]:
    """What an error tells, as text where no JSON holds it: a tool of a program may say anything."""
    try:
        return json.loads(json.dumps(details, default=str))
    except (RecursionError, TypeError, ValueError):
        return {name: _as_text(one) for name, one in details.items()}


def _as_text(one: object) -> str:
    try:
        return str(one)
    except RecursionError:
        return shown(one)


async def _done(run: Run, request: RunRequest) -> dict[str, Any]:
    """Do it; the answer. Raises BadArgumentsError, ConflictError, NotFoundError."""
    given: Any = request.payload
    match request.kind:
        case "stop":
            await run.stop()
        case "decide":
            decision = Decision(given["allowed"], given["arguments"])
            run.questions.check(given["call_id"], decision)
            asked: ApprovalAsked = await run.questions.decide(given["call_id"], decision, always=given["always"])
            return {"asked": asdict(asked)}
        case "give":
            run.inputs.give(given["input_id"], given["values"])
        case "enough":
            run.enough.set()
        case "ask_again":
            run.questions.ask_again(given["tool"])
        case _:
            _LOG.warning("A newer program asks run %s for what is not known here: %s", run.id, request.kind)
    return {}


def heard(answer: dict[str, Any]) -> dict[str, Any]:
    """What a process has answered.

    Raises:
        BadArgumentsError: It says that edited arguments do not fit the tool.
        ConflictError: It says that somebody was quicker, or that the call is over.
        NotFoundError: It says that there is no such call.
    """
    match answer.get("error"):
        case None:
            return answer
        case "gone":
            raise NotFoundError("There is no such call.", kind="call")
        case BadArgumentsError.key:
            raise BadArgumentsError(answer["said"], **answer["details"])
        case _:
            raise already_decided()
