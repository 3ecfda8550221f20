"""The replies of one owner: what there is of them, and what is noted behind their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.errors import NotFoundError
from core.runs.judgement import without
from core.runs.ledger import stages_in
from core.runs.log import LoggedEvent, RunFinished
from core.runs.reply import Reply
from core.runs.rows import WIRE_KINDS, borne_out, events_of, is_pruned, logged_of, restored, rows_of
from core.storage.conversations import clean

if TYPE_CHECKING:
    from collections.abc import Collection

    from core.runs.elsewhere import OwnersElsewhere
    from core.runs.log import Rating, RunEvent
    from core.runs.table import RunTable
    from core.storage.base import AgentThought, StoredMessage
    from core.storage.runs import RunStore

LONGEST_REASON: Final = 500


class OwnerReplies:
    """The replies of one owner. What is somebody else's does not exist.

    Args:
        table: The runs that this process knows.
        elsewhere: Those of other processes.
        store: Where the owner's are kept.
    """

    def __init__(self, owner: str, table: RunTable, elsewhere: OwnersElsewhere, store: RunStore) -> None:
        self._owner = owner
        self._table = table
        self._elsewhere = elsewhere
        self._store = store

    async def reply(self, message: StoredMessage) -> Reply:
        """What there is of a reply: live, or from the table. Readers share it: do not change it.

        Raises:
            NotFoundError: The run is somebody else's.
        """
        run = self._table.live.get(message.conversation_id) or self._table.unsettled.get(message.conversation_id)
        if run is not None and run.id == message.run_id and run.owner == self._owner:
            return run.reply()
        if message.status == "running" and message.run_id is not None:
            elsewhere = await self._elsewhere.find(message.conversation_id)
            if elsewhere is not None and elsewhere.id == message.run_id:
                return elsewhere.reply()
        key = (self._owner, message.id)
        past = self._table.past.get(key)
        if past is None:
            past = await self._past_reply(message)
            if past.status != "running":
                self._table.past[key] = past
        else:
            self._table.past.move_to_end(key)
        return past

    async def bear_out(self, message: StoredMessage, claims: Collection[int]) -> None:
        """Note for good that passages were found for sentences of a reply that were doubted; it waits for its end.

        Args:
            claims: The indices of the sentences in its `claims`.

        Raises:
            NotFoundError: The reply is gone, or somebody else's.
            StorageError: It cannot be stored.
        """
        run = self._table.live.get(message.conversation_id) or self._table.unsettled.get(message.conversation_id)
        if message.run_id is None:
            return
        if run is not None and run.id == message.run_id and run.owner == self._owner:
            await run.wait()
            await run.settle()
        reply = await self.reply(message)
        await self._store.revise(message.run_id, "claims_checked", lambda payload: borne_out(payload, claims))
        self._table.past.pop((self._owner, message.id), None)
        if reply.judged is not None:  # a model may have denied what is proved now
            proved = {one[:2] for at, one in enumerate(reply.claims) if at in claims}
            await self.note(message, without(reply.judged, proved))

    async def note(self, message: StoredMessage, event: RunEvent) -> None:
        """Put an event behind the end of a reply that is over. Raises ConflictError, NotFoundError, StorageError."""
        (row,) = rows_of([LoggedEvent(0, 0.0, event)])
        await self._store.add(message.run_id or "", row.kind, row.payload)
        self._table.past.pop((self._owner, message.id), None)

    async def rate(self, message: StoredMessage, mark: Rating, reason: str = "") -> None:
        """Keep what its reader thinks of a reply that is over, in its log.

        Args:
            mark: "" takes back what was said before.
            reason: At most `LONGEST_REASON` letters count.

        Raises:
            ConflictError: key `busy`: the reply is being written.
            NotFoundError: The reply is gone, or somebody else's; or no run wrote it.
            StorageError: It cannot be stored.
        """
        if message.run_id is None:
            raise NotFoundError("There is no such reply.", kind="message")
        run = self._table.unsettled.get(message.conversation_id)
        if run is not None and run.id == message.run_id and run.owner == self._owner:
            await run.settle()
        said = clean(reason).strip()[:LONGEST_REASON]
        await self._store.add(message.run_id, "rated", {"mark": mark, "reason": said if mark else ""})
        self._table.past.pop((self._owner, message.id), None)

    async def thoughts(self, message_id: str) -> list[AgentThought]:
        """The steps of a reply that is over, the first one first. Raises NotFoundError."""
        return await self._store.thoughts.list(message_id)

    async def events(self, run_id: str, *, whole: bool = False) -> list[LoggedEvent]:
        """What has happened in a run, with what went over the wire if it is `whole`. Raises NotFoundError."""
        left_out = () if whole else WIRE_KINDS
        for run in (*self._table.live.values(), *self._table.unsettled.values()):
            if run.id == run_id and run.owner == self._owner:
                return [one for one in run.log.since() if one.event.kind not in left_out]
        logged = logged_of(await self._store.events(run_id, without=left_out))
        return restored((await self._store.place(run_id)).parts, logged) if is_pruned(logged) else logged

    async def stages(self, run_id: str) -> dict[str, str]:
        """What is kept of what a run's model calls sent and received, packed, by the call. Raises NotFoundError."""
        return stages_in(await self.events(run_id, whole=True))

    async def _past_reply(self, message: StoredMessage) -> Reply:
        events: list[LoggedEvent] = []
        error, model = None, ""
        if message.run_id is not None:
            record = await self._store.get(message.run_id)
            events, error, model = await self.events(message.run_id), record.error, record.model
        if not events:
            events = [LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events_of(message.parts), start=1)]
        reply = Reply(events)
        reply.model = model
        if message.status != "running":
            reply.apply(
                LoggedEvent(reply.seen + 1, events[-1].at if events else 0.0, RunFinished(message.status, error))
            )
        return reply
