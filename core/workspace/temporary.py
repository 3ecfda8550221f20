"""Temporary conversations: neither listed nor found, not titled by a model, without notes, and gone after a day."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final, Self

from core.errors import NotFoundError, ParlourError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from core.runs.manager import Runs
    from core.storage.conversations import AllConversations
    from core.workspace.workspace import Workspace

_LOG = logging.getLogger(__name__)
STAYS: Final = 24 * 3600.0
"""Seconds after its last message for which a temporary conversation is there."""
_EVERY: Final = 600.0


class TemporaryConversations:
    """Deletes temporary conversations of all owners a day after their last message; an async context manager.

    Several processes may look at the same rows: what one of them has deleted, the others do not find.

    Args:
        runs: All replies of the process: a conversation that is being answered stays.
        open_workspace: Opens the workspace of an owner.
        every: Seconds between two looks.
    """

    def __init__(
        self,
        conversations: AllConversations,
        runs: Runs,
        open_workspace: Callable[[str], AbstractAsyncContextManager[Workspace]],
        *,
        every: float = _EVERY,
    ) -> None:
        self._conversations = conversations
        self._runs = runs
        self._open = open_workspace
        self._every = every
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Look at once, and again every few minutes; what cannot be deleted now can be later."""
        self._watching = asyncio.create_task(self._watch(), name="temporary conversations")
        return self

    async def __aexit__(self, *_: object) -> None:
        """Look no more."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def sweep(self, now: float) -> int:
        """Delete those whose last message is a day old; returns how many. What cannot be deleted now can be later.

        Args:
            now: In Unix seconds.

        Raises:
            StorageError: The database cannot be read.
        """
        gone = 0
        for owner, conversation_id in await self._conversations.temporary(before=now - STAYS):
            if self._runs.is_answered(conversation_id):
                continue
            try:
                async with self._open(owner) as workspace:
                    gone += await _deleted(workspace, conversation_id)
            except NotFoundError:
                _LOG.debug("Another process was quicker.")
            except ParlourError as error:  # the others do not wait for it
                _LOG.warning("A temporary conversation could not be deleted; this is tried again: %s", error)
        return gone

    async def _watch(self) -> None:
        while True:
            try:
                await self.sweep(time.time())
            except ParlourError as error:
                _LOG.warning("Temporary conversations could not be deleted; this is tried again: %s", error)
            except Exception:  # noqa: BLE001 - logged below; the next look may do better
                _LOG.exception("Temporary conversations could not be deleted; this is tried again.")
            await asyncio.sleep(self._every)


async def _deleted(workspace: Workspace, conversation_id: str) -> bool:
    """Delete one; false where it is a reply that belongs to another conversation, which it is moved to."""
    # A second reply that nobody has looked at since the process ended is not lost.
    places = workspace.stores.second_replies
    if await places.is_place(conversation_id) and await places.close(conversation_id) is not None:
        return False
    await workspace.conversation(conversation_id).delete()
    return True
