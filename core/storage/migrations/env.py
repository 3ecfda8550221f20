"""What Alembic runs around the steps: one transaction for all of them, on the connection it was given."""

from __future__ import annotations

from alembic import context

from core.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite cannot change a column in place
)
context.run_migrations()
