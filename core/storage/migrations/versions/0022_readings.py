"""Who reads a document, until when that holds, how far it is, and what its reader needs: any process may read it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.create_table(
        "readings",
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.Float()),
        sa.Column("due", sa.Float(), nullable=False),
        sa.Column("progress", sa.JSON(none_as_null=True)),
        sa.Column("asked", sa.String()),
        sa.Column("before", sa.JSON(none_as_null=True)),
        sa.Column("restores", sa.Boolean(), nullable=False),
        sa.Column("password", sa.Text()),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name="fk_readings_document_id_documents", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["owners.id"], name="fk_readings_owner_id_owners", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("document_id", name="pk_readings"),
    )
    op.create_index("ix_readings_owner_id", "readings", ["owner_id"])
    unread = sa.text("status = 'reading'")  # which are few of all there are
    op.create_index("ix_documents_unread", "documents", ["created_at"], sqlite_where=unread, postgresql_where=unread)
