"""People with names and passwords: their sessions, the one-time links that let them in, and what administrators did."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("password", sa.Text(), nullable=False),
        sa.Column("limits", sa.JSON(), nullable=False, server_default="{}"),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("seen_at", sa.Float()),
        sa.ForeignKeyConstraint(["id"], ["owners.id"], name="fk_people_id_owners", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_people"),
        sa.UniqueConstraint("name_key", name="uq_people_name_key"),
    )
    op.create_table(
        "sign_ins",
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False, server_default="{}"),
        sa.Column("created_at", sa.Float(), nullable=False),
        _of_person("sign_ins"),
        sa.PrimaryKeyConstraint("issuer", "subject", name="pk_sign_ins"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("browser", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("seen_at", sa.Float(), nullable=False),
        _of_person("sessions"),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
    )
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("person_id", sa.String()),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("ends_at", sa.Float(), nullable=False),
        _of_person("invitations"),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("did", sa.String(), nullable=False),
        sa.Column("to", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_table(
        "used",
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("day", sa.String(), nullable=False),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("cost", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["owners.id"], name="fk_used_owner_id_owners", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("owner_id", "day", name="pk_used"),
    )
    for table in ("sign_ins", "sessions", "invitations"):
        op.create_index(f"ix_{table}_person_id", table, ["person_id"])


def _of_person(table: str) -> sa.ForeignKeyConstraint:
    name = f"fk_{table}_person_id_people"
    return sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=name, ondelete="CASCADE")
