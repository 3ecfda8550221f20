"""Keys for programs, what was used by each, the files that programs brought, and replies that they go on from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("print", sa.String(), nullable=False),
        sa.Column("key_end", sa.String(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("models", sa.JSON(none_as_null=True)),
        sa.Column("budget", sa.Float()),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float()),
        sa.Column("used_at", sa.Float()),
        sa.Column("revoked_at", sa.Float()),
        _points("api_keys", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
    )
    op.create_index("ix_api_keys_owner_id", "api_keys", ["owner_id"])
    op.create_index("ix_api_keys_print", "api_keys", ["print"], unique=True)
    op.create_table(
        "api_usage",
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("month", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("completion_tokens", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cost", sa.Float(), nullable=False),
        _points("api_usage", "key_id", "api_keys"),
        _points("api_usage", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("key_id", "month", name="pk_api_usage"),
    )
    op.create_index("ix_api_usage_owner_id", "api_usage", ["owner_id"])
    op.create_table(
        "api_files",
        sa.Column("file_id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        _points("api_files", "file_id", "files"),
        _points("api_files", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("file_id", name="pk_api_files"),
    )
    op.create_index("ix_api_files_owner_id", "api_files", ["owner_id"])
    op.create_table(
        "api_responses",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        _points("api_responses", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("id", name="pk_api_responses"),
    )
    op.create_index("ix_api_responses_owner_id", "api_responses", ["owner_id"])


def _points(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target}"
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")
