"""Rows of `message_texts` that have words: by FTS5 in SQLite, by a GIN index in PostgreSQL, with the same outcome."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final, Literal

from sqlalchemy import select

from core.storage.message_texts import INDEX, owner_key
from core.storage.tables import message_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from core.storage.excerpts import Sought

_KNOWN: Final = "SELECT 1 FROM message_index WHERE message_index MATCH ? LIMIT 1"
_FIND: Final = (
    "SELECT t.conversation_id, t.message_id FROM message_index JOIN message_texts t ON t.id = message_index.rowid "
    "WHERE message_index MATCH ? ORDER BY message_index.rowid DESC LIMIT ?"
)
_FIND_TERMS: Final = "SELECT conversation_id, message_id FROM message_texts WHERE terms @@ CAST(%s AS tsquery)"
_IN_ORDER: Final = " AND ' ' || {column} || ' ' LIKE %s"
_NEWEST: Final = " ORDER BY id DESC LIMIT %s"


def rows_with(
    connection: Connection, owner: str, column: Literal["title", "words"], sought: Sought, limit: int
) -> Sequence[Any]:
    """Conversation and message of the owner's newest rows that have all words, inside a transaction.

    Args:
        column: Where the words have to be; a row has a title, or is of a message.
        limit: How many rows at most.
    """
    if connection.dialect.name == "sqlite":
        match = f"owner_key : {owner_key(owner)} AND {column} : ({sought.match})"
        return connection.exec_driver_sql(_FIND, (match, limit)).all()
    tokens = [token for word in sought.tokens for token in word]
    query = " & ".join(f"'{one}'" for one in (owner_key(owner), *tokens)) + (":*" if sought.begun else "")
    # Of words that are several, the order is to be seen in the text alone: an index of places holds 256 of each.
    several = [(word, sought.begun and word is sought.tokens[-1]) for word in sought.tokens if len(word) > 1]
    asked = _FIND_TERMS + (" AND message_id IS NULL" if column == "title" else " AND message_id IS NOT NULL")
    asked += _IN_ORDER.format(column=column) * len(several) + _NEWEST
    orders = [f"% {' '.join(word)}{'' if is_begun else ' '}%" for word, is_begun in several]
    return connection.exec_driver_sql(asked, (query, *orders, limit)).all()


def check_index(connection: Connection, owner: str) -> None:
    """Nothing, where the index knows the owner; a damaged one may find nothing without a word. Raises sqlite3.Error.

    PostgreSQL looks after an index of its own by itself.
    """
    if connection.dialect.name != "sqlite":
        return
    there = select(message_texts.c.id).where(message_texts.c.owner_id == owner).limit(1)
    known = connection.exec_driver_sql(_KNOWN, (f"owner_key : {owner_key(owner)}",)).first()
    if known is None and connection.execute(there).first() is not None:
        raise sqlite3.DatabaseError(f"{INDEX} has nothing of what message_texts has.")
