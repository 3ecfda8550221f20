"""Which processes make vectors in PostgreSQL, by which models; and how many died of a library, beside what failed."""

from __future__ import annotations

from alembic import op

from core.storage.shelf_tables import vector_makers_statements

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for statement in vector_makers_statements():
            op.execute(statement)
