"""Libraries that somebody else had and deleted: who was to be answered from them is told, as where one is taken back.

The rows that named such a library go with it. So a conversation that used it remembers it in its settings, and for what
only names it, a folder or a draft, its owner remembers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import Text, select, update
from sqlalchemy import cast as as_type

from core.storage.conversations import settings_of
from core.storage.documents import kept_ids
from core.storage.owner_settings import Choices
from core.storage.tables import conversation_libraries, conversations, folders, group_members, lent, people

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

_LOST: Final = "lost_libraries"  # of a conversation's settings, and of what owners chose
_MOST: Final = 200  # an owner remembers the last ones


def note_deleted(connection: Connection, owner: str, library_id: str) -> None:
    """Have others remember that a library of `owner` is going; before it is gone, inside a transaction."""
    used = (
        select(conversations.c.id, conversations.c.owner_id, conversations.c.settings)
        .join(conversation_libraries, conversation_libraries.c.conversation_id == conversations.c.id)
        .where(conversation_libraries.c.library_id == library_id, conversations.c.owner_id != owner)
    )
    whose = {*_borrowers(connection, owner, library_id), *_with_folders(connection, owner, library_id)}
    for row in connection.execute(used).all():
        whose.add(row.owner_id)
        kept = cast("dict[str, Any]", row.settings or {})
        values = {**kept, _LOST: _with(kept_ids(kept.get(_LOST)), library_id)}
        connection.execute(update(conversations).where(conversations.c.id == row.id).values(settings=values))
    for one in sorted(whose):
        choices = Choices(connection, one)
        choices.put(_LOST, _with(kept_ids(choices.get(_LOST)), library_id)[-_MOST:])


def note_all_deleted(connection: Connection, owner: str) -> None:
    """The same of all libraries that `owner` shares, while it is still known with whom."""
    query = select(lent.c.thing_id).where(lent.c.owner_id == owner, lent.c.kind == "library").distinct()
    for library_id in connection.execute(query).scalars().all():
        note_deleted(connection, owner, str(library_id))


def lost_to(connection: Connection, owner: str, library_ids: Sequence[str]) -> list[str]:
    """Those of several libraries of which `owner` remembers that somebody else deleted them."""
    lost = set(kept_ids(Choices(connection, owner).get(_LOST)) if library_ids else ())
    return [one for one in library_ids if one in lost]


def lost_in(connection: Connection, conversation_id: str) -> list[str]:
    """The libraries of which a conversation remembers that somebody else deleted them."""
    return kept_ids(settings_of(connection, conversation_id).get(_LOST))


def forget_lost(connection: Connection, conversation_id: str, library_id: str) -> None:
    """A conversation misses a library no more, inside a transaction."""
    settings = settings_of(connection, conversation_id)
    left = [one for one in kept_ids(settings.pop(_LOST, None)) if one != library_id]
    values = {**settings, _LOST: left} if left else settings
    connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(settings=values))


def _borrowers(connection: Connection, owner: str, library_id: str) -> set[str]:
    query = (
        select(group_members.c.person_id)
        .join(lent, lent.c.group_id == group_members.c.group_id)
        .join(people, people.c.id == group_members.c.person_id)
        .where(lent.c.owner_id == owner, lent.c.kind == "library", lent.c.thing_id == library_id)
        .where(group_members.c.person_id != owner)
    )
    return {str(one) for one in connection.execute(query).scalars()}


def _with_folders(connection: Connection, owner: str, library_id: str) -> set[str]:
    """Who has a folder whose conversations are to be answered from a library."""
    query = select(folders.c.owner_id, folders.c.settings).where(folders.c.owner_id != owner)
    query = query.where(as_type(folders.c.settings, Text).contains(library_id, autoescape=True))
    rows = connection.execute(query).all()
    return {str(whose) for whose, settings in rows if library_id in kept_ids(settings.get("libraries"))}


def _with(some: Iterable[str], library_id: str) -> list[str]:
    return [*(one for one in some if one != library_id), library_id]
