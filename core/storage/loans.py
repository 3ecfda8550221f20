"""What is lent, where its owner keeps it, and the end of it when that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import delete, select

from core.storage.audit import note_act
from core.storage.tables import groups, lent, owner_settings, people

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

PERSONAS: Final = "personas"
"""The owner's setting that holds the personas."""
_SERVICES: Final = "services"  # the owner's setting that lists the web services


def end_loans(connection: Connection, owner: str, kind: str, thing_id: str) -> None:
    """Something is gone, so that nobody has it any more whom it was shared with; the audit says so for each group."""
    same = lent.c.owner_id == owner, lent.c.kind == kind, lent.c.thing_id == thing_id
    query = select(groups.c.name).join(lent, lent.c.group_id == groups.c.id).where(*same).order_by(groups.c.name)
    had = connection.execute(query).scalars().all()
    if had:
        connection.execute(delete(lent).where(*same))
        name = str(connection.execute(select(people.c.name).where(people.c.id == owner)).scalar() or "")
        for group in had:
            note_act(connection, name, f"taken_back_{kind}", group, {})


def personas_of(connection: Connection, owner: str) -> list[dict[str, Any]]:
    """An owner's personas, as they are kept."""
    kept = _setting(connection, owner, PERSONAS)
    listed = cast("list[object]", kept) if isinstance(kept, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def service_row(connection: Connection, owner: str, service_id: str) -> Mapping[str, Any] | None:
    """A web service as its owner keeps it; `None` for none."""
    listed = _setting(connection, owner, _SERVICES)
    kept = _setting(connection, owner, f"service:{service_id}")
    if not isinstance(listed, list) or service_id not in listed or not isinstance(kept, dict):
        return None
    return cast("Mapping[str, Any]", kept)


def _setting(connection: Connection, owner: str, name: str) -> object:
    query = select(owner_settings.c.value).where(owner_settings.c.owner_id == owner, owner_settings.c.name == name)
    return connection.execute(query).scalar()
