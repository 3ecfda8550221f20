"""Each owner's conversations, read once for all the tabs that show them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.base import Conversation
    from core.storage.conversations import ConversationStore

_KEPT = 1_000  # owners
_LENGTHS = 8  # of lists of one owner: each tab may show more of it


class Histories:
    """Lists of conversations, kept until they change.

    Args:
        conversations: Where they are read.
    """

    def __init__(self, conversations: ConversationStore) -> None:
        self._conversations = conversations
        self._lists: OrderedDict[str, dict[int, asyncio.Task[list[Conversation]]]] = OrderedDict()

    def changed(self, owner: str) -> None:
        """Read the owner's list again when somebody wants it."""
        self._lists.pop(owner, None)

    async def of(self, owner: str, limit: int) -> Sequence[Conversation]:
        """The owner's conversations, the one used last first; the same list for all who ask until it changes.

        Args:
            owner: Whose they are.
            limit: How many at most.

        Raises:
            StorageError: The database failed.
        """
        lists = self._lists.setdefault(owner, {})
        reading = lists.get(limit)
        if reading is None or (reading.done() and (reading.cancelled() or reading.exception() is not None)):
            reading = lists[limit] = asyncio.create_task(self._conversations.list(owner, limit))
            if len(lists) > _LENGTHS:
                del lists[next(iter(lists))]
            if len(self._lists) > _KEPT:
                self._lists.popitem(last=False)
        if reading.done():
            return reading.result()
        return await asyncio.shield(reading)  # whoever leaves does not take it from the others
