"""What is put into the audit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from core.storage.tables import audit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection


def note_act(connection: Connection, by: str, did: str, to: str, details: Mapping[str, Any]) -> None:
    """Put something into the audit, inside a transaction."""
    connection.execute(insert(audit).values(at=time.time(), by=by, did=did, to=to, details=dict(details)))
