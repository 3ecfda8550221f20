"""People come with what they have, and leave with all of it."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from core.errors import ConflictError, NotFoundError, ParlourError
from core.people.people import PERSON
from core.storage.base import folder_name
from core.storage.blobs import beginning_of, delete_all
from core.storage.moving import move_conversations
from core.workspace.clearing import delete_everything

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from core.reading.intake import Intake
    from core.storage.stores import Stores
    from core.workspace.workspace import Workspace
    from core.workspace.workspaces import Workspaces

_EVERY: Final = 600.0  # seconds
_TRIED_AFTER: Final = (0.0, 0.05, 0.2, 1.0)  # seconds
_FOLDERS: Final = ("files", "shares", "libraries", "notes")


class Belongings:
    """Moves and deletes all that an owner has; an async context manager.

    Args:
        intake: Reads the documents that came along, where they were being read.
        home: The data folder.
        changed: Called with (owner, `None`) when the conversations of an owner are others than before.
    """

    def __init__(
        self,
        stores: Stores,
        workspaces: Workspaces,
        intake: Intake,
        home: Path,
        changed: Callable[[str, str | None], None],
    ) -> None:
        self._stores = stores
        self._intake = intake
        self._workspaces = workspaces
        self._home = home
        self._changed = changed
        self._going_on: set[asyncio.Task[None]] = set()

    async def take_along(self, guest: str, person_id: str) -> int:
        """Give what a guest has said and added to the person that she turned out to be.

        Replies that are being written to the guest are stopped, with what there is of them; documents that are being
        read are read again.

        Returns:
            How many conversations came along.

        Raises:
            StorageError: The database or the folder failed; all stays the guest's.
        """
        async with self._workspaces.open(guest) as workspace:
            talks = await workspace.conversations.list(temporary=True)
            if not (talks or await workspace.libraries.list() or await _made(workspace)):
                return 0
            for one in talks:
                await _rest(workspace, one.id)
        count = await move_conversations(self._stores.database, self._stores.blobs, guest, person_id)
        for owner in (guest, person_id):
            self._changed(owner, None)
        with suppress(ParlourError):  # what stays of the index belongs to nobody
            await self._workspaces.forget(guest)
        for kind in ("files", "libraries"):
            await _remove(self._home / kind / folder_name(guest))
        self._begin(self._read(person_id), "documents that came along")
        return count

    async def delete(self, person_id: str) -> None:
        """Delete all that somebody had whose account is gone: replies that are being written to them end first.

        Raises:
            ParlourError: Something could not be deleted; what remains is deleted at the next start.
        """
        async with self._workspaces.open(person_id) as workspace:
            await delete_everything(workspace, notes=True)
            for server in await workspace.tools.servers.list():
                with suppress(NotFoundError):
                    await workspace.tools.servers.remove(server.kept.id)
        await self._workspaces.forget(person_id)
        await delete_all(self._stores.blobs, beginning_of(person_id))
        await self._stores.people.forget(person_id)
        self._stores.api_keys.forget()
        name = folder_name(person_id)
        for kind in _FOLDERS:
            await _remove(self._home / kind / name)

    async def __aenter__(self) -> Self:
        """Delete from now on what is left of people whose accounts are gone."""
        self._begin(self._watch(), "what is left behind")
        return self

    async def __aexit__(self, *_: object) -> None:
        """End what goes on in the background; it is made good at the next start."""
        for task in self._going_on:
            task.cancel()
        await asyncio.gather(*self._going_on, return_exceptions=True)

    async def delete_left_behind(self) -> None:
        """Delete what is there of people whose account is gone, by the terminal or by a process that was killed."""
        for person_id in await self._stores.people.left_behind(PERSON):
            with suppress(ParlourError):  # it is tried again at the next start
                await self.delete(person_id)

    async def _watch(self) -> None:
        while True:
            with suppress(ParlourError):
                await self.delete_left_behind()
            await asyncio.sleep(_EVERY)

    def _begin(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)

    async def _read(self, person_id: str) -> None:
        """Take the documents that came along into the person's own index."""
        with suppress(ParlourError):  # it is done when the index is opened next
            async with self._workspaces.open(person_id) as workspace:
                await workspace.intake.opened(await workspace.index())
            for record in await self._stores.documents.unread():
                if record.owner_id == person_id:
                    await self._intake.take_left(record.id)


async def _rest(workspace: Workspace, conversation_id: str) -> None:
    with suppress(ConflictError, NotFoundError):  # written elsewhere, or deleted meanwhile
        await workspace.conversation(conversation_id).stop()
    await workspace.intake.leave(conversation_id)


async def _made(workspace: Workspace) -> bool:
    """Whether somebody has personas or prompts. Raises StorageError."""
    return bool(await workspace.steering.personas.list() or await workspace.steering.prompts.list())


async def _remove(folder: Path) -> None:
    """Delete a folder; once more where an index that is just being closed wrote into it meanwhile."""
    for pause in _TRIED_AFTER:
        await asyncio.sleep(pause)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        if not await asyncio.to_thread(folder.exists):
            return
