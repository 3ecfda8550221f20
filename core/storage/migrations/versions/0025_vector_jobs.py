"""Which libraries in PostgreSQL lack vectors, and which process makes them."""

from __future__ import annotations

from alembic import op

from core.storage.shelf_tables import vector_jobs_statement

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(vector_jobs_statement())
