"""Sends what waits when a reply has ended, whether a page is open or not, and what a dead process left unsent."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Self

from core.errors import ConflictError, NotFoundError, ParlourError, TooManyRequestsError
from core.runs.lease import BEAT

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from core.runs.manager import Runs
    from core.storage.queued_messages import AllQueuedMessages
    from core.workspace.workspace import Workspace

_LOG = logging.getLogger(__name__)


class Sending:
    """Sends waiting messages of all owners; an async context manager, which looks at once for what is left from before.

    Several processes may look at the same rows: whoever makes a question of a message takes its row out with it, and
    the others find nothing to send.

    Args:
        runs: All replies of the process.
        queued: All waiting messages.
        open_workspace: Opens the workspace of an owner.
        every: Seconds between two looks for what other processes left.
    """

    def __init__(
        self,
        runs: Runs,
        queued: AllQueuedMessages,
        open_workspace: Callable[[str], AbstractAsyncContextManager[Workspace]],
        *,
        every: float = BEAT,
    ) -> None:
        self._runs = runs
        self._queued = queued
        self._open = open_workspace
        self._every = every
        self._tasks: dict[asyncio.Task[None], tuple[str, str]] = {}
        self._again: set[tuple[str, str]] = set()  # whose next reply ended before their task did
        self._refused: set[str] = set()  # messages that could not be sent: they wait for their owner
        self._seen: set[str] = set()
        self._watching: asyncio.Task[None] | None = None
        self._leave = runs.on_change(self._moved)

    async def __aenter__(self) -> Self:
        """Send what was left unsent, and look again every few seconds."""
        await self.look(patiently=False)
        self._watching = asyncio.create_task(self._watch(), name="watch queues")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Begin nothing more; what is not sent stays for the next start."""
        self._leave()
        tasks = [*self._tasks, *([self._watching] if self._watching is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def is_sending(self, owner: str) -> bool:
        """Whether a waiting message of an owner is on its way to become a question."""
        return any(whose == owner for whose, _ in self._tasks.values())

    async def look(self, *, patiently: bool = True) -> None:
        """Send what could be sent and nobody sends. Raises StorageError.

        Args:
            patiently: Leave alone what was not there at the last look: its own process may be about to send it.
        """
        due = await self._queued.due()
        before, self._seen = self._seen, {message for _, _, message in due}
        for owner, conversation_id, message in due:
            if message not in self._refused and (message in before or not patiently):
                self._begin(owner, conversation_id)

    def _moved(self, owner: str, conversation_id: str) -> None:
        if not self._runs.is_answered(conversation_id):
            self._begin(owner, conversation_id)

    def _begin(self, owner: str, conversation_id: str) -> None:
        if (owner, conversation_id) in self._tasks.values():
            self._again.add((owner, conversation_id))
            return
        task = asyncio.create_task(self._send(owner, conversation_id), name="send what waits")
        self._tasks[task] = (owner, conversation_id)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        whose = self._tasks.pop(task)
        if whose in self._again and not task.cancelled():
            self._again.discard(whose)
            self._begin(*whose)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.look()
            except Exception:  # noqa: BLE001 - logged below, and the next look may do better
                _LOG.exception("It is not known whether messages wait; this is tried again.")

    async def _send(self, owner: str, conversation_id: str) -> None:
        try:
            if not await self._queued.any_in(conversation_id):  # as nearly always, in each of several processes
                return
            async with self._open(owner) as workspace:
                await workspace.queue(conversation_id).send_due()
        except (ConflictError, NotFoundError, TooManyRequestsError) as error:
            _LOG.debug("A message waits on: %s", error)  # being answered, gone, or at the next look
        except ParlourError as error:
            _LOG.info("A waiting message could not be sent: %s", error)
            await self._refuse(owner, conversation_id)
        except Exception:  # noqa: BLE001 - logged below; the message waits for its owner
            _LOG.exception("A waiting message could not be sent.")
            await self._refuse(owner, conversation_id)

    async def _refuse(self, owner: str, conversation_id: str) -> None:
        """Try the conversation's next message no more by itself, and let its pages show that it waits."""
        async with self._open(owner) as workspace:
            waiting = await workspace.queue(conversation_id).list()
            self._refused |= {one.message.id for one in waiting[:1]}
            workspace.services.changed(conversation_id)
