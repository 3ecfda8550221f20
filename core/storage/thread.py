"""The turns of a conversation that is shown, each decoded when it is asked for."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from core.messages.message import Message
from core.storage.base import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Row


def stored_message(row: Row[Any], parts: Iterable[dict[str, Any]]) -> StoredMessage:
    """A turn from a row of the table `messages` and its decoded `parts`."""
    return StoredMessage(
        id=row.id,
        conversation_id=row.conversation_id,
        parent_id=row.parent_id,
        role=row.role,
        parts=tuple(Message(**part) for part in parts),
        run_id=row.run_id,
        status=row.status,
        created_at=row.created_at,
    )


class Thread(Sequence[StoredMessage]):
    """The turns from root to leaf. A page shows the last few of thousands, and only those are decoded.

    Args:
        rows: Of the table `messages`, their `parts` as the text of a JSON array.
    """

    def __init__(self, rows: Sequence[Row[Any]] = ()) -> None:
        self._rows = rows
        self._made: dict[int, StoredMessage] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> StoredMessage: ...
    @overload
    def __getitem__(self, at: slice) -> list[StoredMessage]: ...
    def __getitem__(self, at: int | slice) -> StoredMessage | list[StoredMessage]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        place = range(len(self))[at]
        made = self._made.get(place)
        if made is None:
            row = self._rows[place]
            made = self._made[place] = stored_message(row, json.loads(row.parts))
        return made

    def versions(self, tree: Sequence[Row[Any]]) -> dict[str, tuple[str, ...]]:
        """For each turn that has versions their ids, the oldest first, its own among them.

        Args:
            tree: The `id`, `parent_id` and `role` of each turn of the conversation, in the order in which they came.
        """
        beside: defaultdict[tuple[str | None, str], list[str]] = defaultdict(list)
        for row in tree:
            beside[row.parent_id, row.role].append(row.id)
        found = ((row.id, tuple(beside[row.parent_id, row.role])) for row in self._rows)
        return {turn_id: versions for turn_id, versions in found if len(versions) > 1}
