"""What owners chose: JSON values under names, such as how tools are approved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert as insert_or

from core.storage.conversations import know_owner
from core.storage.tables import owner_settings

if TYPE_CHECKING:
    from core.storage.database import Database


class OwnerSettings:
    """Settings of owners. What is somebody else's does not exist.

    The names in use: `approval` ({"mode", "allow", "ask", "deny"}), `tools` ({"off", "on"}), `web_search`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, owner: str, name: str, default: Any = None) -> Any:
        """What the owner chose; `default` where nothing was chosen."""
        found = await self._database.read(
            lambda c: c.execute(select(owner_settings.c.value).where(*_is(owner, name))).first()
        )
        return default if found is None else found.value

    async def set(self, owner: str, name: str, value: Any) -> None:
        """Keep a choice, in place of the one before; `None` forgets it.

        Args:
            owner: Whose it is; need not be known yet.
            name: What was chosen.
            value: Anything that is JSON.
        """

        def keep(connection: Connection) -> None:
            if value is None:
                connection.execute(delete(owner_settings).where(*_is(owner, name)))
                return
            know_owner(connection, owner)
            adding = insert_or(owner_settings).values(owner_id=owner, name=name, value=value)
            changed = adding.on_conflict_do_update(index_elements=["owner_id", "name"], set_={"value": value})
            connection.execute(changed)

        await self._database.write(keep)


def _is(owner: str, name: str) -> tuple[Any, Any]:
    return owner_settings.c.owner_id == owner, owner_settings.c.name == name
