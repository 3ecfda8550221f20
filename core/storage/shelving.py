"""Which named libraries a conversation uses: its own choice, and what its folder has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import Connection, select, update

from core.storage.base import NamedLibrary
from core.storage.statements import LIBRARIES, OWN_SHELVES, SETTINGS_OF_FOLDER, lent_to
from core.storage.tables import conversations, libraries

if TYPE_CHECKING:
    from collections.abc import Sequence


def libraries_used(connection: Connection, conversation_id: str) -> list[NamedLibrary]:
    """The libraries that a conversation uses, by name, inside a transaction."""
    shelves = shelves_of(connection, conversation_id)
    return by_name(connection.execute(LIBRARIES, {"wanted": shelves}).all()) if shelves else []


_WITHOUT: Final = "without_libraries"  # of a conversation's settings: those of its folder that it does not use


def shelves_of(connection: Connection, conversation_id: str) -> list[str]:
    """The libraries that a conversation uses: its own, and those of its folder that it does not leave out."""
    own = connection.execute(OWN_SHELVES, {"conversation": conversation_id}).scalars()
    return list(dict.fromkeys([*map(str, own), *_lent(connection, conversation_id)]))


def _lent(connection: Connection, conversation_id: str) -> list[str]:
    """The libraries that a conversation uses because its folder has them."""
    row = connection.execute(SETTINGS_OF_FOLDER, {"conversation": conversation_id}).first()
    if row is None:
        return []
    of_folder, own = (cast("dict[str, Any]", kept or {}) for kept in row)
    without = _ids(own.get(_WITHOUT))
    wanted = [one for one in _ids(of_folder.get("libraries")) if one not in without]
    if not wanted:
        return []
    whose = conversations.c.owner_id
    mine = select(libraries.c.id).join(conversations, conversations.c.id == conversation_id)
    mine = mine.where(libraries.c.id.in_(wanted), (libraries.c.owner_id == whose) | lent_to(whose))
    return [str(one) for one in connection.execute(mine).scalars()]


def _ids(kept: Any) -> list[str]:
    """Those of a list that was kept."""
    return [one for one in cast("list[Any]", kept) if isinstance(one, str)] if isinstance(kept, list) else []


def leave_out(connection: Connection, conversation_id: str, library_id: str, *, on: bool) -> None:
    """Let a conversation leave out a library of its folder, or use it again."""
    query = select(conversations.c.settings).where(conversations.c.id == conversation_id)
    kept: dict[str, Any] = dict(connection.execute(query).scalar() or {})
    without = [one for one in _ids(kept.pop(_WITHOUT, None)) if one != library_id]
    if on and library_id in _lent(connection, conversation_id):
        without.append(library_id)
    values = {**kept, _WITHOUT: without} if without else kept
    connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(settings=values))


def by_name(rows: Sequence[Sequence[Any]]) -> list[NamedLibrary]:
    """Libraries of rows that a listing gives, by name."""
    return sorted((NamedLibrary(*row) for row in rows), key=lambda one: (one.name.casefold(), one.created_at))
