"""The files that were added to a conversation, for the tools that work on them or send them on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import NotFoundError
from core.storage.base import file_ids
from core.tools.given_files import GivenFile

if TYPE_CHECKING:
    from core.storage.conversations import ConversationStore
    from core.storage.documents import DocumentStore
    from core.storage.files import FileStore


class GivenFiles:
    """Files by owner and conversation. What is somebody else's does not exist.

    Args:
        conversations: Whose messages name files.
        documents: Those of the conversations.
        files: Where the files are.
    """

    def __init__(self, conversations: ConversationStore, documents: DocumentStore, files: FileStore) -> None:
        self._conversations, self._documents, self._files = conversations, documents, files

    async def of(self, owner: str, conversation_id: str) -> dict[str, GivenFile]:
        """What the user added to the conversation, by name; of two with one name, the later. Raises StorageError."""
        try:
            thread = await self._conversations.thread(owner, conversation_id)
        except NotFoundError:
            return {}
        wanted = [record.file_id for record in await self._documents.list(owner, conversation_id)]
        wanted += file_ids(part for message in thread if message.role == "user" for part in message.parts)
        found: dict[str, GivenFile] = {}
        for file_id in dict.fromkeys(wanted):
            try:
                record, path = await self._files.get(owner, file_id)
            except NotFoundError:
                continue
            found[record.name] = GivenFile(record.name, record.media_type, record.size, path)
        return found
