"""Deletes all that an owner has said and added: conversations, folders, libraries, and the notes of the assistant."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from core.errors import NotFoundError

if TYPE_CHECKING:
    from core.workspace.workspace import Workspace

_AT_ONCE = 200


async def delete_everything(workspace: Workspace, *, notes: bool = False) -> int:
    """Delete them with their documents and files. Replies that are being written are stopped first.

    Models, services, tools and preferences stay. What was deleted when something fails is gone; the rest is there.

    Args:
        notes: Whether the notes that the assistant keeps go, too.

    Returns:
        How many conversations there were.

    Raises:
        StorageError: The database failed.
        ToolError: The notes cannot be deleted.
    """
    count = 0
    while found := await workspace.conversations.list(_AT_ONCE, temporary=True):
        for one in found:
            with suppress(NotFoundError):  # deleted in another tab meanwhile
                await workspace.conversation(one.id).delete()
            workspace.services.changed(one.id)  # tabs that show it turn to a new one
            count += 1
    for library in await workspace.libraries.list():
        with suppress(NotFoundError):
            await workspace.libraries.delete(library.id)
    for folder in await workspace.folders.list():
        with suppress(NotFoundError):
            await workspace.folders.delete(folder.id)
    await workspace.stores.api_responses.clear()
    for one in await workspace.stores.api_files.list():
        with suppress(NotFoundError):
            await workspace.stores.api_files.delete(one.file.id)
    before = None
    while notes and (kept := await workspace.tools.notes.list()) and kept != before:  # of very many some at a time
        for note in kept:
            await workspace.tools.notes.delete(note.key)
        before = kept
    await workspace.models.notes.forget_used()
    await workspace.dictation.forget()
    workspace.services.changed()
    return count
