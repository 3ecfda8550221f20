"""Leases of runs: until when the process that answers keeps a run, and how often the run has changed hands."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("runs", sa.Column("epoch", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("runs", sa.Column("lease_until", sa.Float(), server_default="0"))
