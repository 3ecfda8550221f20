"""The passages of libraries in PostgreSQL; where the database is a file, each library has a file of its own."""

from __future__ import annotations

from alembic import op

from core.storage.shelf_tables import shelf_statements

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for statement in shelf_statements():
            op.execute(statement)
