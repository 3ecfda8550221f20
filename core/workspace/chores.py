"""What is done without anybody asking: what a process left unfinished is taken up, and time is kept."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Self

from core.workspace.sending import Sending
from core.workspace.sweeping import Sweeping
from core.workspace.temporary import TemporaryConversations

if TYPE_CHECKING:
    from core.runs.manager import Live
    from core.runs.resumable import ResumableRun
    from core.workspace.services import Services
    from core.workspace.workspaces import Workspaces

_UNUSED_FILES_STAY: Final = 24 * 3600.0


class Chores:
    """Goes on by itself for all owners, from the start to the end; an async context manager.

    Args:
        services: What workspaces work with, open already.

    Attributes:
        sending: Sends what waits for the end of a reply.
        temporary: Deletes temporary conversations.
    """

    def __init__(self, services: Services, workspaces: Workspaces) -> None:
        self._services = services
        self._workspaces = workspaces
        self.sending = Sending(services.runs, services.stores.queued, workspaces.open)
        self.temporary = TemporaryConversations(services.stores.conversations, services.runs, workspaces.open)
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Take up what a crash left behind: files that nothing uses, documents, replies, messages that wait.

        Raises:
            StorageError: The database failed.
        """
        await self._services.stores.files.delete_unused(time.time() - _UNUSED_FILES_STAY)
        await self._services.intake.resume()
        await self._services.runs.watch(self._resume)
        async with AsyncExitStack() as opening:
            await opening.enter_async_context(self.sending)
            await opening.enter_async_context(self.temporary)
            if not self._services.intake.keeps_unneeded:  # rows may come back that name what seems to be nobody's
                await opening.enter_async_context(Sweeping(self._services.stores.files))
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Begin nothing more. Replies and documents end with what makes them."""
        await self._open.aclose()

    async def _resume(self, resumable: ResumableRun) -> Live:
        async with self._workspaces.open(resumable.record.owner_id) as workspace:
            return await workspace.conversation(resumable.record.conversation_id).resume(resumable)
