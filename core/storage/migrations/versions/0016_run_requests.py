"""What processes ask of each other's runs: to stop, to let a call run, to take what was typed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "run_requests",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("answer", sa.JSON(none_as_null=True)),
        sa.Column("at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_requests_run_id_runs", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["owner_id"], ["owners.id"], name="fk_run_requests_owner_id_owners", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "key", name="pk_run_requests"),
    )
