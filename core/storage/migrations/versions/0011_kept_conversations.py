"""Folders, pins, the archive, who made a title, what is chosen for one conversation, and messages that wait."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    _conversations()
    op.create_table(
        "folders",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.Float(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        _points("folders", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("id", name="pk_folders"),
    )
    op.create_index("ix_folders_owner_id", "folders", ["owner_id"])
    op.create_table(
        "queued_messages",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("file_ids", sa.JSON(), nullable=False),
        sa.Column("position", sa.Float(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        _points("queued_messages", "owner_id", "owners"),
        _points("queued_messages", "conversation_id", "conversations"),
        sa.PrimaryKeyConstraint("id", name="pk_queued_messages"),
    )
    for column in ("conversation_id", "owner_id"):
        op.create_index(f"ix_queued_messages_{column}", "queued_messages", [column])


def _conversations() -> None:
    # What there is may have been named by hand, and nobody knows: it counts as named by hand.
    op.add_column("conversations", sa.Column("titled_by", sa.String(), nullable=False, server_default="person"))
    op.add_column("conversations", sa.Column("folder_id", sa.String()))
    op.add_column("conversations", sa.Column("pinned_at", sa.Float()))
    op.add_column("conversations", sa.Column("archived_at", sa.Float()))
    op.add_column("conversations", sa.Column("settings", sa.JSON(), nullable=False, server_default="{}"))
    op.create_index("ix_conversations_folder_id", "conversations", ["folder_id"])


def _points(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target}"
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")
