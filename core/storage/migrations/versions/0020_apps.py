"""Other programs that somebody let in at a page of Parlour's, with the tokens that each got."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("app", sa.JSON(none_as_null=True)))
    op.create_table(
        "app_tokens",
        sa.Column("print", sa.String(), nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.Column("spent_at", sa.Float()),
        sa.Column("about", sa.JSON(), nullable=False),
        _points("key_id", "api_keys"),
        _points("owner_id", "owners"),
        sa.PrimaryKeyConstraint("print", name="pk_app_tokens"),
    )
    op.create_index("ix_app_tokens_key_id", "app_tokens", ["key_id"])
    op.create_index("ix_app_tokens_owner_id", "app_tokens", ["owner_id"])


def _points(column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_app_tokens_{column}_{target}"
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")
