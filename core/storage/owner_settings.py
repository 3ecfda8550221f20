"""What owners chose: JSON values under names, such as how tools are approved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, delete

from core.storage.conversations import hold_owner, insert_owner
from core.storage.dialects import upsert
from core.storage.loans import end_loans
from core.storage.statements import OWNER_CHOICE
from core.storage.tables import owner_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.storage.database import Database

T = TypeVar("T")


class OwnerSettings:
    """The settings of one owner. What is somebody else's does not exist.

    The names in use: `approval` ({"mode", "allow", "ask", "deny"}), `tools` ({"off", "on"}), `web_search`, `unread`
    (ids of conversations), `lost_libraries` (ids of libraries that others deleted), `places` (who holds one, by
    `places.Places`), and those of `preferences.Preferences`.
    """

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def get(self, name: str, default: Any = None) -> Any:
        """What the owner chose; `default` where nothing was chosen."""
        wanted = {"owner": self._owner, "name": name}
        found = await self._database.read(lambda c: c.execute(OWNER_CHOICE, wanted).first())
        return default if found is None else found.value

    async def change(self, name: str, change: Callable[[Any], Any], *, alone: bool = False) -> Any:
        """Change a choice: it is read and written in one transaction, so that no other change is lost.

        Args:
            change: Given the choice so far (`None` where nothing was chosen), returns the one that replaces it:
                anything that is JSON, `None` to forget it. It runs in the thread of the database: quick, and free of
                side effects. What it raises leaves everything as it was.
            alone: Whether nothing else hangs on it, no other choice and no row: then a change waits for another one of
                the same owner's, and is never refused because of it.

        Returns:
            The new choice.

        Raises:
            StorageError: The database failed.
        """

        def changed(choices: Choices) -> Any:
            value = change(choices.get(name))
            choices.put(name, value)
            return value

        if not alone:
            return await self.change_together(changed)

        def held(connection: Connection) -> Any:
            hold_owner(connection, self._owner)
            return changed(Choices(connection, self._owner))

        return await self._database.write(held, holds=True)

    async def read_together(self, read: Callable[[Choices], T]) -> T:
        """Read several choices at one moment.

        Args:
            read: Given all of the owner's choices; what it returns is returned.

        Raises:
            StorageError: The database failed.
        """
        return await self._database.read(lambda connection: read(Choices(connection, self._owner)))

    async def change_together(self, change: Callable[[Choices], T]) -> T:
        """Change several choices in one transaction; as `change` otherwise.

        Args:
            change: Given all of the owner's choices, to read and write; what it returns is returned.

        Raises:
            StorageError: The database failed.
        """
        return await self._database.write(lambda connection: change(Choices(connection, self._owner)))


class Choices:
    """All choices of an owner inside one transaction."""

    def __init__(self, connection: Connection, owner: str) -> None:
        self._connection = connection
        self._owner = owner

    def get(self, name: str) -> Any:
        """What was chosen; `None` where nothing was."""
        return self._connection.execute(OWNER_CHOICE, {"owner": self._owner, "name": name}).scalar()

    def put(self, name: str, value: Any) -> None:
        """Replace a choice; `None` forgets it."""
        if value is None:
            self._connection.execute(delete(owner_settings).where(*_is(self._owner, name)))
            return
        insert_owner(self._connection, self._owner)
        adding = upsert(owner_settings).values(owner_id=self._owner, name=name, value=value)
        self._connection.execute(
            adding.on_conflict_do_update(index_elements=["owner_id", "name"], set_={"value": value})
        )

    def end_loans(self, kind: str, thing_id: str) -> None:
        """Something that was kept here is gone, so that nobody has it any more whom it was shared with."""
        end_loans(self._connection, self._owner, kind, thing_id)


def _is(owner: str, name: str) -> tuple[Any, Any]:
    return owner_settings.c.owner_id == owner, owner_settings.c.name == name
