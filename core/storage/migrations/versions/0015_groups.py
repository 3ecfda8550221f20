"""Groups of people, with what each of them may use, and what is shared with them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.create_table(
        "groups",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("limits", sa.JSON(), nullable=False, server_default="{}"),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_groups"),
        sa.UniqueConstraint("name_key", name="uq_groups_name_key"),
    )
    op.create_table(
        "group_members",
        sa.Column("group_id", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        _points("group_members", "group_id", "groups"),
        _points("group_members", "person_id", "people"),
        sa.PrimaryKeyConstraint("group_id", "person_id", name="pk_group_members"),
    )
    op.create_index("ix_group_members_person_id", "group_members", ["person_id"])
    op.create_table(
        "lent",
        sa.Column("group_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("thing_id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("writes", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        _points("lent", "group_id", "groups"),
        _points("lent", "owner_id", "owners"),
        sa.PrimaryKeyConstraint("group_id", "kind", "thing_id", "owner_id", name="pk_lent"),
    )
    op.create_index("ix_lent_owner_id", "lent", ["owner_id"])


def _points(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_{column}_{target}"
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")
