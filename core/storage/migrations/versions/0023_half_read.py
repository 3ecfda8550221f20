"""Pages of documents whose reading has not come to its end; of a library in a file they are in that file."""

from __future__ import annotations

from alembic import op

from core.storage.shelf_tables import half_read_statement

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(half_read_statement())
