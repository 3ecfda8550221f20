"""Summaries of the beginnings of long conversations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "summaries",
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        _points("message_id", "messages"),
        _points("conversation_id", "conversations"),
        _points("owner_id", "owners"),
        sa.PrimaryKeyConstraint("message_id", name="pk_summaries"),
    )
    op.create_index("ix_summaries_conversation_id", "summaries", ["conversation_id"])
    op.create_index("ix_summaries_owner_id", "summaries", ["owner_id"])


def _points(column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=f"fk_summaries_{column}", ondelete="CASCADE")
