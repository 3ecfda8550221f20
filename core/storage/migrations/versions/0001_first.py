"""Owners, conversations, a tree of messages, runs and their events, files, documents."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_LIVE = sa.text("status = 'running'")


def upgrade() -> None:
    _owners_and_conversations()
    _messages_and_runs()
    _files_and_documents()


def _owners_and_conversations() -> None:
    _table("owners", _id(), _number("created_at"))
    _table(
        "conversations",
        _id(),
        _text("owner_id"),
        sa.Column("title", sa.Text(), nullable=False),
        _text("leaf_id", nullable=True),
        _number("created_at"),
        _number("updated_at"),
        points={"owner_id": "owners"},
    )


def _messages_and_runs() -> None:
    _table(
        "messages",
        _id(),
        _text("owner_id"),
        _text("conversation_id"),
        _text("parent_id", nullable=True),
        _text("role"),
        sa.Column("parts", sa.JSON(), nullable=False),
        _text("run_id", nullable=True),
        _text("status"),
        _number("created_at"),
        points={"owner_id": "owners", "conversation_id": "conversations", "parent_id": "messages"},
    )
    _table(
        "runs",
        _id(),
        _text("owner_id"),
        _text("conversation_id"),
        _text("message_id"),
        _text("status"),
        sa.Column("error", sa.JSON()),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("usage", sa.JSON()),
        _text("worker"),
        _number("started_at"),
        sa.Column("finished_at", sa.Float()),
        points={"owner_id": "owners", "conversation_id": "conversations", "message_id": "messages"},
    )
    op.create_index(
        "ix_runs_one_live", "runs", ["conversation_id"], unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE
    )
    _table(
        "run_events",
        _text("run_id"),
        sa.Column("seq", sa.Integer(), nullable=False),
        _text("owner_id"),
        _number("at"),
        _text("kind"),
        sa.Column("payload", sa.JSON(), nullable=False),
        key=("run_id", "seq"),
        points={"owner_id": "owners", "run_id": "runs"},
        indexed=(),
    )


def _files_and_documents() -> None:
    _table(
        "files",
        _id(),
        _text("owner_id"),
        sa.Column("name", sa.Text(), nullable=False),
        _text("media_type"),
        sa.Column("size", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        _text("sha256"),
        _number("created_at"),
        points={"owner_id": "owners"},
    )
    _table(
        "file_uses",
        _text("file_id"),
        _text("conversation_id"),
        _text("owner_id"),
        key=("file_id", "conversation_id"),
        points={"owner_id": "owners", "file_id": "files", "conversation_id": "conversations"},
        indexed=("owner_id", "conversation_id"),
    )
    _table(
        "documents",
        _id(),
        _text("owner_id"),
        _text("conversation_id"),
        _text("file_id"),
        sa.Column("name", sa.Text(), nullable=False),
        _text("library_id", nullable=True),
        _text("status"),
        sa.Column("error", sa.JSON()),
        sa.Column("pages", sa.Integer()),
        _number("created_at"),
        points={"owner_id": "owners", "conversation_id": "conversations", "file_id": "files"},
        indexed=("owner_id", "conversation_id", "file_id", "library_id"),
    )


def _id() -> sa.Column[Any]:
    return _text("id")


def _text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.String(), nullable=nullable)


def _number(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Float(), nullable=False)


def _table(
    name: str,
    *columns: sa.Column[Any],
    key: tuple[str, ...] = ("id",),
    points: dict[str, str] | None = None,
    indexed: tuple[str, ...] | None = None,
) -> None:
    """A table; `points` names the tables that its columns point to, which are indexed unless said otherwise."""
    pointers = points or {}
    foreign = [
        sa.ForeignKeyConstraint([column], [f"{target}.id"], name=f"fk_{name}_{column}", ondelete="CASCADE")
        for column, target in pointers.items()
    ]
    op.create_table(name, *columns, *foreign, sa.PrimaryKeyConstraint(*key, name=f"pk_{name}"))
    for column in pointers if indexed is None else indexed:
        op.create_index(f"ix_{name}_{column}", name, [column])
