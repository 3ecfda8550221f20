"""Lists of conversations as the store makes them, without a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from core.storage.base import ConversationRecord, Folder, History, ListedRow, Section
from core.storage.conversation_list import Place


def _row(section: Section, number: int, folder: Folder | None, one: ConversationRecord | None, at: float) -> ListedRow:
    inside = folder is None or one is not None
    position, name = (folder.position, folder.id) if folder is not None else (0.0, "")
    place = Place(number, position, name, inside, -at if one is not None else 0.0, one.id if one is not None else "")
    return ListedRow(str(place), section, folder, one)


def listed(conversations: Iterable[ConversationRecord], folders: Sequence[Folder] = ()) -> History:
    """The whole list: pinned ones, folders with what is in those that are open, and the others, the newest first."""
    those = [*conversations]
    pinned = [one for one in those if one.pinned_at is not None]
    filed = [one for one in those if one.folder_id is not None and one.pinned_at is None]
    loose = [one for one in those if one.folder_id is None and one.pinned_at is None]
    rows = [_row("pinned", 0, None, one, one.pinned_at or 0.0) for one in pinned]
    for folder in folders:
        inside = [one for one in filed if one.folder_id == folder.id] if folder.settings.get("open") else []
        rows += [_row("filed", 1, folder, None, 0.0)]
        rows += [_row("filed", 1, folder, one, one.updated_at) for one in inside]
    rows += [_row("loose", 2, None, one, one.updated_at) for one in loose]
    homes = {one.id: one.folder_id or "" for one in filed}
    return History(tuple(rows), tuple(folders), sizes=Counter(homes.values()), homes=homes)
