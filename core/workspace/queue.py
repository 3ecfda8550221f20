"""Messages that wait for the end of a conversation's reply, and are questions then, one after another."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.agents.conversation import language_of
from core.errors import NotFoundError, ParlourError
from core.messages.message import USER, Message
from core.reading.attachments import checked_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.runs.manager import Live
    from core.storage.base import FileRecord, QueuedMessage
    from core.workspace.conversation import Conversation

_LOG = logging.getLogger(__name__)
MOST: Final = 20
"""Messages that wait in one conversation; who writes more waits for none."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that waits, and the files that it brings."""

    message: QueuedMessage
    files: tuple[FileRecord, ...] = ()


class ConversationQueue:
    """The waiting messages of one conversation.

    One is sent when the reply before it is whole. A reply that is stopped, or fails, leaves all of them waiting for
    their owner. Each is sent once: the transaction that makes a question of it takes it out.

    Args:
        conversation: Whose they are.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._services = conversation.services
        self._queued = conversation.stores.queued
        self._files = conversation.stores.files

    async def list(self) -> list[Waiting]:
        """The next one first. Raises NotFoundError."""
        found = await self._queued.list(self._conversation.id)
        return [Waiting(one, await self._records(one.file_ids)) for one in found]

    async def add(self, text: str, file_ids: Sequence[str] = ()) -> QueuedMessage:
        """Let a message wait as the last one; where the reply has ended meanwhile, it is sent at once.

        Raises:
            ParlourError: key `empty_message`, `message_too_long` or `messages_full`.
            NotFoundError: The conversation is not the owner's.
            TooManyRequestsError: key `reading_full` or `reading_too_many`, as of `Conversation.ask`.
        """
        checked_text(text, len(file_ids))
        await self._services.intake.check_room_for(await self._records(file_ids))
        if len(await self._queued.list(self._conversation.id)) >= MOST:
            hint = "Wait until some of them are sent."
            raise ParlourError("Too many messages wait already.", hint=hint, key="messages_full", most=MOST)
        added = await self._queued.add(self._conversation.id, text.replace("\0", ""), file_ids)
        self._services.changed(self._conversation.id)
        await self._send_if_due()
        return added

    async def move(self, message_id: str, before: str = "") -> None:
        """Let one be sent before another, or as the last one. Raises NotFoundError: it was sent or removed.

        Args:
            before: The other one's id; "" for the end.
        """
        await self._own(message_id)
        await self._queued.move(message_id, before)
        self._services.changed(self._conversation.id)
        await self._send_if_due()

    async def take(self, message_id: str) -> Waiting:
        """Take one out to change it; its files are kept for a day. Raises NotFoundError: it was sent or removed."""
        await self._own(message_id)
        taken = await self._queued.remove(message_id)
        self._services.changed(self._conversation.id)
        return Waiting(taken, await self._records(taken.file_ids))

    async def remove(self, message_id: str) -> None:
        """Take one out for good, its files with it. Raises NotFoundError: it was sent or removed."""
        taken = await self.take(message_id)
        await self._files.let_go(taken.files)

    async def send(self, message_id: str) -> Live:
        """Send one that waits for its owner, before its turn if need be.

        Raises:
            ConflictError: key `busy`: the conversation is being answered; `queue_changed`: it was changed meanwhile.
            NotFoundError: It was sent or removed.
        """
        return await self._send(await self._own(message_id))

    async def send_due(self) -> Live | None:
        """Send the next one, if the reply before it is whole.

        Raises:
            ConflictError: As `send`.
            NotFoundError: The conversation is gone, or somebody else has sent it.
            ParlourError: It cannot be sent; it waits on.
        """
        if self._conversation.runs.live(self._conversation.id) is not None:
            return None
        due = await self._queued.due(self._conversation.id)
        return await self._send(due) if due is not None else None

    async def _send_if_due(self) -> None:
        """Send the next one, where the reply has ended meanwhile; one that cannot be sent waits on."""
        try:
            await self.send_due()
        except ParlourError as error:  # it goes on, or somebody else has sent it, among others
            _LOG.info("A message waits on: %s", error)

    async def _send(self, message: QueuedMessage) -> Live:
        here = [file.id for file in await self._records(message.file_ids)]
        lang = language_of([Message(USER, message.text)])
        run = await self._conversation.ask(message.text, here, lang, queued=message)
        self._services.changed(self._conversation.id)
        return run

    async def _own(self, message_id: str) -> QueuedMessage:
        found = await self._queued.get(message_id)
        if found.conversation_id != self._conversation.id:
            raise NotFoundError("This message waits in another conversation.", key="queue_gone", kind="queued_message")
        return found

    async def _records(self, file_ids: Sequence[str]) -> tuple[FileRecord, ...]:
        """Those of these files that are still here."""
        found: list[FileRecord] = []
        for file_id in file_ids:
            with suppress(NotFoundError):
                found.append(await self._files.record(file_id))
        return tuple(found)
