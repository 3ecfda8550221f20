"""Whether an MCP server may ask its owner things; none may before its owner says so."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("mcp_servers", sa.Column("asks", sa.Boolean(), nullable=False, server_default=sa.false()))
