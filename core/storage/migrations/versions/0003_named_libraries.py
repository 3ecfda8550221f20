"""Named libraries beside conversations, and what reading a document found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_KEPT = ("id", "owner_id", "conversation_id", "file_id", "name", "library_id", "status", "error", "pages", "created_at")
_ONE_HOME = "(conversation_id IS NULL) <> (collection_id IS NULL)"
_POINTERS = {
    "owner_id": "owners",
    "conversation_id": "conversations",
    "collection_id": "libraries",
    "file_id": "files",
}


def upgrade() -> None:
    _libraries()
    _documents()


def _libraries() -> None:
    op.create_table(
        "libraries",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        _points("libraries", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("id", name="pk_libraries"),
    )
    op.create_index("ix_libraries_owner_id", "libraries", ["owner_id"])
    op.create_table(
        "conversation_libraries",
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("library_id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        _points("conversation_libraries", "conversation_id", "conversations"),
        _points("conversation_libraries", "library_id", "libraries"),
        _points("conversation_libraries", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("conversation_id", "library_id", name="pk_conversation_libraries"),
    )
    for column in ("library_id", "owner_id"):
        op.create_index(f"ix_conversation_libraries_{column}", "conversation_libraries", [column])


def _documents() -> None:
    """Made anew and filled from the old one: SQLite cannot let an existing column be empty."""
    if op.get_bind().dialect.name == "postgresql":  # which can, and has no rows of before this step
        op.alter_column("documents", "conversation_id", nullable=True)
        op.add_column("documents", sa.Column("collection_id", sa.String()))
        op.add_column("documents", sa.Column("facts", sa.JSON()))
        op.create_foreign_key(
            "fk_documents_collection_id", "documents", "libraries", ["collection_id"], ["id"], ondelete="CASCADE"
        )
        op.create_check_constraint("ck_documents_one_home", "documents", _ONE_HOME)
        op.create_index("ix_documents_collection_id", "documents", ["collection_id"])
        return
    op.create_table(
        "documents_anew",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String()),
        sa.Column("collection_id", sa.String()),
        sa.Column("file_id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("library_id", sa.String()),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("error", sa.JSON()),
        sa.Column("pages", sa.Integer()),
        sa.Column("facts", sa.JSON()),
        sa.Column("created_at", sa.Float(), nullable=False),
        *(_points("documents", column, target) for column, target in _POINTERS.items()),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        sa.CheckConstraint(_ONE_HOME, name="ck_documents_one_home"),
    )
    old, new = _rows_of("documents"), _rows_of("documents_anew")
    op.execute(sa.insert(new).from_select(list(_KEPT), sa.select(*old.c)))
    op.drop_table("documents")
    op.rename_table("documents_anew", "documents")
    for column in (*_POINTERS, "library_id"):
        op.create_index(f"ix_documents_{column}", "documents", [column])


def _rows_of(table: str) -> sa.TableClause:
    return sa.table(table, *(sa.column(name, sa.String()) for name in _KEPT))


def _points(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE")
