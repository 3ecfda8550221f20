"""Which files of a folder or a store were taken into a named library by `parlour ingest`, and what went wrong."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "ingested",
        sa.Column("collection_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("mark", sa.String(), nullable=False),
        sa.Column("document_id", sa.String()),
        sa.Column("error", sa.JSON(none_as_null=True)),
        sa.Column("at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["libraries.id"], name="fk_ingested_collection_id_libraries", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["owners.id"], name="fk_ingested_owner_id_owners", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["document_id"], ["documents.id"], name="fk_ingested_document_id_documents", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "key", name="pk_ingested"),
    )
    op.create_index("ix_ingested_owner_id", "ingested", ["owner_id"])
    op.create_index("ix_ingested_document_id", "ingested", ["document_id"])
    op.create_index("ix_files_sha256", "files", ["sha256"])
