"""What an assistant keeps for its owner from one conversation to another."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_table(
        "notes",
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["owners.id"], name="fk_notes_owner_id_owners", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("owner_id", "key", name="pk_notes"),
    )
