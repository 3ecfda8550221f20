"""The tokens with which owners have signed in to MCP servers, sealed; empty for those that want none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("mcp_servers", sa.Column("sign_in", sa.Text(), nullable=False, server_default=""))
