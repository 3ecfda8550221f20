"""The steps of thought of each reply, numbered by the database's own rule."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

# Positions count from 1 without a gap: a step comes after the last one, stays where it is, and goes only as the last,
# or with all of its message.
_RULES = (
    """CREATE TRIGGER message_agent_thoughts_come_last BEFORE INSERT ON message_agent_thoughts
    WHEN NEW.position <>
        1 + coalesce((SELECT max(position) FROM message_agent_thoughts WHERE message_id = NEW.message_id), 0)
    BEGIN SELECT RAISE(ABORT, 'the positions of steps have no gap'); END""",
    """CREATE TRIGGER message_agent_thoughts_stay BEFORE UPDATE OF message_id, position ON message_agent_thoughts
    WHEN NEW.message_id <> OLD.message_id OR NEW.position <> OLD.position
    BEGIN SELECT RAISE(ABORT, 'a step stays where it is'); END""",
    """CREATE TRIGGER message_agent_thoughts_go_last BEFORE DELETE ON message_agent_thoughts
    WHEN EXISTS (SELECT 1 FROM messages WHERE id = OLD.message_id)
        AND EXISTS (SELECT 1 FROM owners WHERE id = OLD.owner_id)
        AND EXISTS (SELECT 1 FROM message_agent_thoughts WHERE message_id = OLD.message_id AND position > OLD.position)
    BEGIN SELECT RAISE(ABORT, 'the positions of steps have no gap'); END""",
)

_RULES_OF_POSTGRESQL = (
    """CREATE FUNCTION message_agent_thoughts_rules() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.position <>
            1 + coalesce((SELECT max(position) FROM message_agent_thoughts WHERE message_id = NEW.message_id), 0)
        THEN RAISE EXCEPTION 'the positions of steps have no gap'; END IF;
        RETURN NEW;
    ELSIF TG_OP = 'UPDATE' THEN
        IF NEW.message_id <> OLD.message_id OR NEW.position <> OLD.position
        THEN RAISE EXCEPTION 'a step stays where it is'; END IF;
        RETURN NEW;
    END IF;
    IF EXISTS (SELECT 1 FROM messages WHERE id = OLD.message_id)
        AND EXISTS (SELECT 1 FROM owners WHERE id = OLD.owner_id)
        AND EXISTS (SELECT 1 FROM message_agent_thoughts WHERE message_id = OLD.message_id AND position > OLD.position)
    THEN RAISE EXCEPTION 'the positions of steps have no gap'; END IF;
    RETURN OLD;
    END $$""",
    """CREATE TRIGGER message_agent_thoughts_rules BEFORE INSERT OR UPDATE OR DELETE ON message_agent_thoughts
    FOR EACH ROW EXECUTE FUNCTION message_agent_thoughts_rules()""",
)


def upgrade() -> None:
    op.create_table(
        "message_agent_thoughts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=False),
        sa.Column("thought", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.String(255), nullable=True),
        sa.Column("tool_input", sa.Text(), nullable=True),
        sa.Column("observation", sa.Text(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        _points("owner_id", "owners"),
        _points("message_id", "messages"),
        sa.PrimaryKeyConstraint("id", name="pk_message_agent_thoughts"),
        sa.UniqueConstraint("message_id", "position", name="uq_message_agent_thoughts_message_id_position"),
        sa.CheckConstraint("position >= 1", name="ck_message_agent_thoughts_position"),
    )
    op.create_index("ix_message_agent_thoughts_owner_id", "message_agent_thoughts", ["owner_id"])
    op.create_index("message_agent_thought_message_id_idx", "message_agent_thoughts", ["message_id"])
    for rule in _RULES_OF_POSTGRESQL if op.get_bind().dialect.name == "postgresql" else _RULES:
        op.execute(rule)


def _points(column: str, target: str) -> sa.ForeignKeyConstraint:
    name = f"fk_message_agent_thoughts_{column}"
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=name, ondelete="CASCADE")
