"""What messages and titles say, as words, and an index over it that triggers keep up; filled from what is there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

import sqlalchemy as sa
from alembic import op

from core.storage.message_texts import LONGEST, owner_key, spaced

if TYPE_CHECKING:
    from collections.abc import Iterator

revision = "0012"
down_revision = "0011"

_TABLE: Final = """CREATE VIRTUAL TABLE message_index USING fts5(
    owner_key, title, words, content='message_texts', content_rowid='id',
    tokenize='unicode61 remove_diacritics 2', prefix='1 2')"""
_ADDED: Final = """CREATE TRIGGER message_texts_added AFTER INSERT ON message_texts BEGIN
    INSERT INTO message_index(rowid, owner_key, title, words)
    VALUES (new.id, new.owner_key, new.title, new.words);
END"""
_GONE: Final = """CREATE TRIGGER message_texts_gone AFTER DELETE ON message_texts BEGIN
    INSERT INTO message_index(message_index, rowid, owner_key, title, words)
    VALUES ('delete', old.id, old.owner_key, old.title, old.words);
END"""
_CHANGED: Final = """CREATE TRIGGER message_texts_changed AFTER UPDATE ON message_texts BEGIN
    INSERT INTO message_index(message_index, rowid, owner_key, title, words)
    VALUES ('delete', old.id, old.owner_key, old.title, old.words);
    INSERT INTO message_index(rowid, owner_key, title, words)
    VALUES (new.id, new.owner_key, new.title, new.words);
END"""
# The words of PostgreSQL's rows, the owner as one of them: by them it is seen which rows fit, and in the row itself in
# which order they stand.
_WORDS: Final = """ALTER TABLE message_texts ADD COLUMN terms tsvector GENERATED ALWAYS AS (
    array_to_tsvector(array_remove(string_to_array(owner_key || ' ' || title || ' ' || words, ' '), ''))) STORED"""
_INDEX: Final = "CREATE INDEX ix_message_texts_terms ON message_texts USING gin (terms)"
_ADD: Final = """INSERT INTO message_texts (message_id, conversation_id, owner_id, owner_key, title, words)
    VALUES (?, ?, ?, ?, ?, ?)"""
_AT_ONCE: Final = 500


def upgrade() -> None:
    op.create_table(
        "message_texts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("message_id", sa.String()),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("owner_key", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        _points("message_id", "messages"),
        _points("conversation_id", "conversations"),
        _points("owner_id", "owners"),
        sa.PrimaryKeyConstraint("id", name="pk_message_texts"),
        sa.UniqueConstraint("message_id", name="uq_message_texts_message_id"),
    )
    for column in ("conversation_id", "owner_id"):
        op.create_index(f"ix_message_texts_{column}", "message_texts", [column])
    if op.get_bind().dialect.name == "postgresql":  # where no message is from before this step
        for statement in (_WORDS, _INDEX):
            op.execute(statement)
        return
    for statement in (_TABLE, _ADDED, _GONE, _CHANGED):
        op.execute(statement)
    rows: list[tuple[Any, ...]] = []
    connection = op.get_bind()
    for row in _rows(connection):
        rows.append(row)
        if len(rows) == _AT_ONCE:
            connection.exec_driver_sql(_ADD, rows)
            rows = []
    if rows:
        connection.exec_driver_sql(_ADD, rows)


def _rows(connection: sa.Connection) -> Iterator[tuple[Any, ...]]:
    titles = "SELECT id, owner_id, title FROM conversations ORDER BY created_at, id"
    for talk, owner, title in connection.exec_driver_sql(titles).fetchall():
        yield None, talk, owner, owner_key(owner), spaced(title), ""
    ids = connection.exec_driver_sql("SELECT id FROM messages ORDER BY created_at, id").scalars().all()
    for message in ids:  # one at a time: all of them need not fit into memory
        columns = "SELECT conversation_id, owner_id, role, parts FROM messages WHERE id = ?"
        talk, owner, role, parts = connection.exec_driver_sql(columns, (message,)).one()
        said = _said(role, json.loads(parts))
        if said.strip():
            yield message, talk, owner, owner_key(owner), "", spaced(said)


def _said(role: str, parts: list[dict[str, Any]]) -> str:
    """The text of a question, or of a reply's own sentences."""
    found: list[str] = []
    for part in parts:
        content = part.get("content") if part.get("role") == role else None
        if isinstance(content, list):
            items = cast("list[dict[str, Any]]", content)
            content = "\n".join(str(item["text"]) for item in items if item.get("text"))
        if isinstance(content, str) and content.strip():
            found.append(content)
    return "\n\n".join(found)[:LONGEST]


def _points(column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_message_texts_{column}_{target}"
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")
