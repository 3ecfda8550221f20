"""All runs of the process: starts, finds and stops them, and picks up what a crash left behind."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakSet

from core.errors import NotFoundError
from core.messages.transcript import Transcript
from core.runs.log import ClaimsChecked, LoggedEvent, RunFinished
from core.runs.reply import Reply
from core.runs.rows import events_of, logged_of
from core.runs.run import Answerer, Run, whole
from core.runs.worker import is_alive, this_worker
from core.storage.base import busy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.messages.message import Message
    from core.runs.run import Check
    from core.storage.base import RunRecord, StoredMessage
    from core.storage.runs import RunStore

_LOG = logging.getLogger(__name__)
_REMEMBERED = 256


class Runs:
    """One live run per conversation.

    Args:
        store: Where runs and events are kept.
        limit: Seconds that one run may take.
        worker: Who this process is, for other processes on the same data.
        check: Looks at each reply that is complete.
    """

    _open: ClassVar[WeakSet[Runs]] = WeakSet()  # all of this process: another one on the same data may be answering

    def __init__(
        self, store: RunStore, *, limit: float = 600.0, worker: str | None = None, check: Check | None = None
    ) -> None:
        self._store = store
        self._check = check
        self._limit = limit
        self._worker = worker or this_worker()
        self._live: dict[str, Run] = {}
        self._unsettled: dict[str, Run] = {}
        self._callbacks: list[Callable[[str, str], None]] = []
        self._past: OrderedDict[str, Reply] = OrderedDict()
        Runs._open.add(self)

    async def start(  # noqa: PLR0913 - what a run is made of
        self,
        owner: str,
        conversation_id: str,
        agent: Answerer,
        *,
        user: Message | None,
        parent_id: str | None,
        history: Sequence[Message],
        model: str = "",
        title: str = "",
        earlier: Sequence[LoggedEvent] = (),
    ) -> Run:
        """Commit the user's message and the reply's place, then start to answer.

        It either returns the run or has stored nothing: whoever is cancelled too late gets the run all the same.

        Args:
            owner: Whose conversation it is.
            conversation_id: The conversation.
            agent: Who answers.
            user: The question, or `None` for another reply to what `parent_id` is.
            parent_id: The turn that the new one comes after; `None` for the first.
            history: What the agent is given, the question included.
            model: The name of the model, for the record.
            title: For a conversation that has none yet.
            earlier: What a continued reply begins with.

        Raises:
            ConflictError: key `busy`: the conversation has a live run.
            NotFoundError: The conversation or parent is not the owner's.
            NoSpaceError: The disk is full; nothing was stored.
        """
        if conversation_id in self._live:
            raise busy()
        late = self._unsettled.get(conversation_id)
        if late is not None:
            await late.settle()
            self._unsettled.pop(conversation_id, None)
        asked = [user] if user is not None else None

        async def begin() -> Run:
            record, _ = await self._store.create(
                owner, conversation_id, user=asked, parent_id=parent_id, model=model, worker=self._worker, title=title
            )
            run = Run(record, self._store, earlier=earlier, limit=self._limit, check=self._check)
            self._live[conversation_id] = run
            run.begin(agent, history, self._done)
            self._changed(owner, conversation_id)
            return run

        beginning = asyncio.create_task(begin())
        while not beginning.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({beginning})
        return beginning.result()

    def live(self, conversation_id: str) -> Run | None:
        """The conversation's live run."""
        return self._live.get(conversation_id)

    def live_conversations(self, owner: str) -> set[str]:
        """The owner's conversations that are being answered."""
        return {run.conversation_id for run in self._live.values() if run.owner == owner}

    def get(self, owner: str, run_id: str) -> Run:
        """A live run by its id.

        Raises:
            NotFoundError: There is no live run such as this of this owner.
        """
        for run in self._live.values():
            if run.id == run_id and run.owner == owner:
                return run
        raise NotFoundError("There is no such run.", kind="run")

    async def stop(self, owner: str, conversation_id: str) -> None:
        """Stop the conversation's live run and wait for its end. Without one, nothing happens.

        Raises:
            NotFoundError: The run is somebody else's.
        """
        run = self._live.get(conversation_id)
        if run is None:
            return
        if run.owner != owner:
            raise NotFoundError("There is no such conversation.", kind="conversation")
        await run.stop()

    async def reply(self, owner: str, message: StoredMessage) -> Reply:
        """What there is of a reply: live, or from the table. Readers share it: do not change it.

        Raises:
            NotFoundError: The run is somebody else's.
        """
        run = self._live.get(message.conversation_id) or self._unsettled.get(message.conversation_id)
        if run is not None and run.id == message.run_id and run.owner == owner:
            return run.reply()
        key = f"{owner} {message.id}"
        if key in self._past:
            self._past.move_to_end(key)
            return self._past[key]
        past = await self._past_reply(owner, message)
        if past.status != "running":
            self._past[key] = past
            if len(self._past) > _REMEMBERED:
                self._past.popitem(last=False)
        return past

    async def events(self, owner: str, run_id: str) -> list[LoggedEvent]:
        """What the table has of a run. Raises NotFoundError."""
        return [logged_of(row) for row in await self._store.events(owner, run_id)]

    async def recover(self) -> int:
        """Mark as interrupted what dead processes left running; how many runs there were."""
        found = 0
        for record, worker in await self._store.running():
            mine = worker == self._worker and not any(runs.live(record.conversation_id) for runs in list(Runs._open))
            if mine or not is_alive(worker):
                await self._interrupt(record)
                found += 1
        return found

    async def aclose(self) -> None:
        """End all runs as interrupted, their partial replies kept."""
        runs = [*self._live.values()]
        await asyncio.gather(*(run.stop("interrupted") for run in runs))
        await asyncio.gather(*(run.leave() for run in {*runs, *self._unsettled.values()}))

    def on_change(self, callback: Callable[[str, str], None]) -> Callable[[], None]:
        """Call back with (owner, conversation) when a run starts or ends; returns what ends this."""
        self._callbacks.append(callback)

        def leave() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return leave

    def _done(self, run: Run) -> None:
        self._live.pop(run.conversation_id, None)
        if not run.stored:
            self._unsettled[run.conversation_id] = run
        self._changed(run.owner, run.conversation_id)

    def _changed(self, owner: str, conversation_id: str) -> None:
        for callback in tuple(self._callbacks):
            callback(owner, conversation_id)

    async def _past_reply(self, owner: str, message: StoredMessage) -> Reply:
        events: list[LoggedEvent] = []
        error, model = None, ""
        if message.run_id is not None:
            record = await self._store.get(owner, message.run_id)
            events, error, model = await self.events(owner, message.run_id), record.error, record.model
        if not events:
            events = [LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events_of(message.parts), start=1)]
        reply = Reply(events)
        reply.model = model
        if message.status != "running":
            reply.apply(
                LoggedEvent(reply.seen + 1, events[-1].at if events else 0.0, RunFinished(message.status, error))
            )
        return reply

    async def _interrupt(self, record: RunRecord) -> None:
        logged = await self.events(record.owner_id, record.id)
        transcript = Transcript(one.event for one in logged if not isinstance(one.event, ClaimsChecked | RunFinished))
        parts = whole(transcript, "interrupted")
        await self._store.finish(record.owner_id, record.id, "interrupted", parts=parts, usage=transcript.usage)
        _LOG.info("Run %s was interrupted; %d messages of its reply are kept.", record.id, len(parts))
