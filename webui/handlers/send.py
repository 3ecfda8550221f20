"""A question on its way in: checked, its files moved into the store, and handed to the engine."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from core.errors import NotFoundError
from core.reading.attachments import checked_text
from core.reading.linked import LINK, link_name
from core.storage.base import busy
from webui.handlers.links import pages_to_read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from core.storage.base import FileRecord
    from webui.handlers.desk import Desk
    from webui.uploads import Upload
    from webui.views import View


class Draft(TypedDict):
    """What stands in the composer."""

    text: str
    files: list[str]


async def send(desk: Desk, view: View, draft: Draft | None) -> None:
    """Send what stands in the composer; it is emptied once the message is kept, and left alone if it is refused.

    Raises:
        ParlourError: The message is refused; nothing of it is kept.
    """
    text, paths = (draft["text"] or "", draft["files"] or []) if draft else ("", [])
    checked_text(text, len(paths))
    uploads = [desk.uploads.of(view.owner, path) for path in paths]
    await start(desk, view, text, [(upload.path, upload.name) for upload in uploads])
    for upload in uploads:
        desk.uploads.forget(upload)


async def start(desk: Desk, view: View, text: str, files: Sequence[tuple[Path, str]]) -> None:
    """Put files, and links to pages that shall be read, into the store and ask, in the tab's conversation or a new one.

    It is the conversation that the tab shows now: storing takes a while, and the reader may turn to another one.

    Raises:
        ConflictError: A reply is being written, or another message is being sent, in this tab.
        ParlourError: A file cannot be used, or storing failed; nothing is kept.
    """
    if view.sending or desk.engine.runs.live(view.conversation_id) is not None:
        raise busy()
    view.sending = True
    into = _Into(view.conversation_id, view.address, view.libraries)
    kept: list[FileRecord] = []
    try:
        with into.expected(desk, view.owner):
            links = pages_to_read(text)
            if files or links:  # a conversation makes its owner known by itself
                await desk.engine.conversations.ensure_owner(view.owner)
            given = [(name, path, "") for path, name in files]
            for name, source, kind in [*given, *((link_name(link), link.encode(), LINK) for link in links)]:
                kept.append(await desk.engine.files.put(view.owner, name, source, media_type=kind))
            await _ask(desk, view, text, kept, into)
    except BaseException:
        for file in kept:
            with suppress(NotFoundError):
                await desk.engine.files.delete(view.owner, file.id)
        raise
    finally:
        view.sending = False


@dataclass(frozen=True, slots=True)
class _Into:
    """Where a question goes.

    Args:
        conversation_id: The conversation; empty for a new one.
        wanted: What the page calls that new one in its address already.
        libraries: Those that it uses from the start.
    """

    conversation_id: str
    wanted: str
    libraries: Sequence[str]

    def expected(self, desk: Desk, owner: str) -> AbstractContextManager[None]:
        """While it is being stored: who loads the page again now gets the new conversation, not an empty room."""
        return desk.views.making(owner, self.wanted) if self.wanted and not self.conversation_id else nullcontext()


async def _ask(desk: Desk, view: View, text: str, files: Sequence[FileRecord], into: _Into) -> None:
    engine, fresh, wanted = desk.engine, not into.conversation_id, into.conversation_id
    async with engine.workspaces.open(view.owner) as workspace:
        for refused in await workspace.not_taken(files):
            raise refused
        if fresh:
            wanted = (await engine.conversations.create(view.owner, wanted=into.wanted)).id
        conversation = workspace.conversation(wanted)
        try:
            for library in into.libraries if fresh else ():
                with suppress(NotFoundError):  # deleted meanwhile
                    await workspace.libraries.use(wanted, library, on=True)
            await conversation.ask(text, [file.id for file in files], view.words.lang)
        except BaseException:
            if fresh:
                await conversation.delete()
            raise
    if fresh and not view.conversation_id:  # else the reader has turned to another one meanwhile
        view.show(wanted)
    view.resting = False
    view.poke(stale=True)


async def stop(desk: Desk, view: View) -> None:
    """Stop the reply; the tab's follower shows how it ends. Raises NotFoundError."""
    if desk.engine.runs.live(view.conversation_id) is not None:  # else it would be said of the next reply
        view.stopping = True
        view.poke()
    async with desk.conversation(view) as conversation:
        await conversation.stop()


async def drop(desk: Desk, view: View, path: str) -> None:
    """Forget a file that was taken out of the composer."""
    with suppress(NotFoundError):
        upload: Upload = desk.uploads.of(view.owner, path)
        desk.uploads.forget(upload)
