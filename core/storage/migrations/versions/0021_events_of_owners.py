"""Whose an event is, is looked up in PostgreSQL: where an owner goes, all events of everybody were read for it."""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE INDEX ix_run_events_owner_id ON run_events (owner_id)")
