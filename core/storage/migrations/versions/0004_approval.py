"""What owners chose, and the tools that run unasked in a conversation."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "owner_settings",
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        _points("owner_settings", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("owner_id", "name", name="pk_owner_settings"),
    )
    op.create_table(
        "allowances",
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("tool", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        _points("allowances", "conversation_id", "conversations"),
        _points("allowances", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("conversation_id", "tool", name="pk_allowances"),
    )
    op.create_index("ix_allowances_owner_id", "allowances", ["owner_id"])


def _points(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE")
