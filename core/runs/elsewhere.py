"""The runs of other processes on the same data: which there are, how they go on, and what is asked of them."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any, Final

from core.errors import ConflictError, StorageError
from core.runs.approvals import already_decided
from core.runs.followed import FollowedRun, Following
from core.runs.lease import seems_held
from core.storage.base import WAITING
from core.storage.run_news import RunRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from core.runs.feed import Feed
    from core.storage.base import Lease, RunRecord
    from core.storage.runs import RunStore
    from core.storage.stores import Stores


_LOG = logging.getLogger(__name__)
_EVERY: Final = 1.0
"""Seconds between two looks at what others write."""
_PATIENCE: Final = 15.0
"""Seconds within which a process that is alive does what it is asked; the next one needs a little longer."""
_ASKS_EVERY: Final = 0.1
_IDLE: Final = 60.0
"""Seconds after which a run is not followed any more that nobody asked for."""


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
        self._news, self.requests = stores.run_news, stores.run_requests
        self._feed = feed
        self._here = here
        self._changed = changed
        self._every = every
        self.patience = patience
        self._known: dict[str, RunRecord] = {}
        self._followed: dict[str, Following] = {}
        self.answered = asyncio.Event()
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
        self._know(record)
        await self._follow(record).ready()
        following = self._followed.get(record.conversation_id)
        return following.run if following is not None else None

    async def look(self) -> None:
        """See which runs there are. Raises StorageError."""
        before = {*self._here()}
        found = await self._news.running()
        own = before | {*self._here()}
        now = {record.conversation_id: record for record, _ in found if record.conversation_id not in own}
        gone = [one for place, one in self._known.items() if place not in now and place not in self._followed]
        for record in now.values():
            self._know(record)
        for record in gone:
            del self._known[record.conversation_id]
            self._changed(record.owner_id, record.conversation_id)
        self._rest()

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
        self._changed(run.owner, place)

    async def _watch(self) -> None:
        while True:
            try:
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
            await asyncio.wait_for(run.wait(), self._every.patience)
        except TimeoutError as error:
            raise _left_alone() from error

    async def ask(self, conversation_id: str, kind: str, key: str, payload: dict[str, Any]) -> Any:
        """Have something done to the conversation's run, and wait until it is.

        Args:
            kind: What, as `core.runs.heeding` names it.
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


def _left_alone() -> ConflictError:
    said = "The process that writes this reply does not answer."
    return ConflictError(said, hint="Another one goes on with it in a while, and does what was asked.", key="elsewhere")
