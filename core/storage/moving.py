"""What one owner has, given to another: a guest who signs in takes her conversations along."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import Table, bindparam, delete, func, select, update

from core.errors import StorageError
from core.storage.blobs import FILES, key_of
from core.storage.conversations import insert_owner
from core.storage.message_texts import owner_key
from core.storage.owner_settings import Choices
from core.storage.preferences import ABOUT_ME, CHECK_CLAIMS, FOLLOW_UPS, JUDGE, TITLES
from core.storage.tables import (
    allowances,
    conversation_libraries,
    conversations,
    documents,
    file_uses,
    files,
    folders,
    ingested,
    libraries,
    message_agent_thoughts,
    message_texts,
    messages,
    notes,
    owners,
    queued_messages,
    run_events,
    runs,
    summaries,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

    from core.storage.blobs import Blobs
    from core.storage.database import Database

_BY_ID: Final = ("personas", "prompts")  # lists, each entry with an id of its own
# Not how tools are approved, nor what is sealed: a guest's tools may do less, and a secret opens for its owner alone.
_TAKEN: Final = (*_BY_ID, ABOUT_ME, TITLES, FOLLOW_UPS, CHECK_CLAIMS, JUDGE)
# All that conversations are made of; how tools are approved, and keys, stay with whom they were sealed for.
_MOVED: Final[tuple[Table, ...]] = (
    *(folders, conversations, queued_messages, messages, runs, run_events, files, file_uses, libraries),
    *(conversation_libraries, documents, ingested, allowances, message_agent_thoughts, summaries, message_texts),
)


async def move_conversations(database: Database, blobs: Blobs, giver: str, taker: str) -> int:
    """Give all conversations of an owner, with their files, documents and libraries, to another owner.

    Personas, prompts, notes and preferences go along where the taker has none like them. The giver is forgotten with
    what is left. No reply may be written and no document read of the giver's.

    Args:
        blobs: Has the bytes of each owner's files.

    Returns:
        How many conversations were moved.

    Raises:
        StorageError: The database or the store failed; nothing was moved.
    """
    mine = key_of(giver, FILES, "")
    copied = await _copy(blobs, mine, taker, ())

    def moved(connection: Connection) -> int:
        talks = select(func.count()).select_from(conversations).where(conversations.c.owner_id == giver)
        count = int(connection.execute(talks).scalar_one())
        insert_owner(connection, taker)
        for table in _MOVED:
            values: dict[str, Any] = {"owner_id": taker}
            if table is message_texts:
                values["owner_key"] = owner_key(taker)
            whose = table.c.owner_id == bindparam("giver")
            connection.execute(update(table).where(whose).values(**values), {"giver": giver})
        _take_settings(Choices(connection, giver), Choices(connection, taker))
        own = select(notes.c.key).where(notes.c.owner_id == taker)
        given = update(notes).where(notes.c.owner_id == giver, notes.c.key.not_in(own))
        connection.execute(given.values(owner_id=taker))
        connection.execute(delete(owners).where(owners.c.id == giver))
        return count

    count = await database.write(moved)
    with suppress(StorageError):  # what stays behind has no row, and belongs to nobody
        copied |= await _copy(blobs, mine, taker, copied)  # what came in between
        await blobs.delete(copied)
    return count


def _take_settings(given: Choices, kept: Choices) -> None:
    for name in _TAKEN:
        value, own = given.get(name), kept.get(name)
        if value is None:
            continue
        if own is None:
            kept.put(name, value)
        elif name in _BY_ID and isinstance(value, list) and isinstance(own, list):
            mine = cast("list[dict[str, Any]]", own)
            known = {one.get("id") for one in mine}
            kept.put(name, [*mine, *(one for one in cast("list[dict[str, Any]]", value) if one.get("id") not in known)])


async def _copy(blobs: Blobs, mine: str, taker: str, known: Collection[str]) -> set[str]:
    """The same bytes under the keys of another owner: those of one go when all is stored."""
    found = {blob.key async for blob in blobs.list(mine)} - set(known)
    for key in sorted(found):
        await blobs.copy(key, key_of(taker, FILES, key.removeprefix(mine)))
    return found
