"""Which passages of a large library in PostgreSQL have a word, in lists that a search reads at once."""

from __future__ import annotations

from alembic import op

from core.storage.shelf_tables import list_statements

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for statement in list_statements():
            op.execute(statement)
