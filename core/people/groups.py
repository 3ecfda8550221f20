"""What administrators do about groups of people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import NotFoundError
from core.people.names import checked_name, name_key
from core.people.people import by_whom, forbidden, typed_limits
from core.people.roles import may

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.people.people import People
    from core.storage.groups import Group, GroupStore
    from core.storage.people import Person


class Groups:
    """The rules about groups, over what is stored of them. Who acts is `None` for whoever has the terminal.

    Args:
        people: Knows which role who acts has by now.
    """

    def __init__(self, store: GroupStore, people: People) -> None:
        self.store = store
        self._people = people

    async def make(self, me: Person | None, typed: str) -> Group:
        """A new group, with nobody in it.

        Raises:
            ConflictError: key `group_name_taken`.
            ParlourError: key `role_forbidden`, or as `checked_name`.
        """
        await self._check(me)
        name = checked_name(typed)
        return await self.store.make(name, name_key(name), by_whom(me))

    async def rename(self, me: Person | None, group_id: str, typed: str) -> None:
        """Another name. Raises as `make`, and NotFoundError (`no_group`)."""
        await self._check(me)
        name = checked_name(typed)
        await self.store.rename(group_id, name, name_key(name), by_whom(me))

    async def delete(self, me: Person | None, group_id: str) -> Group:
        """Delete a group with all that is shared with it. Raises NotFoundError, ParlourError (`role_forbidden`)."""
        await self._check(me)
        return await self.store.delete(group_id, by_whom(me))

    async def add(self, me: Person | None, group_id: str, person_id: str) -> None:
        """Let somebody be in it. Raises NotFoundError, ParlourError (`role_forbidden`)."""
        await self._check(me)
        await self.store.add(group_id, person_id, by_whom(me))

    async def take_out(self, me: Person | None, group_id: str, person_id: str) -> None:
        """Let somebody be in it no more. Raises NotFoundError, ParlourError (`role_forbidden`)."""
        await self._check(me)
        await self.store.take_out(group_id, person_id, by_whom(me))

    async def set_limits(self, me: Person | None, group_id: str, typed: Mapping[str, str]) -> None:
        """What each of its members may use, typed as for `People.set_limits`.

        Raises:
            NotFoundError: key `no_group`.
            ParlourError: key `limits_odd` or `role_forbidden`.
        """
        await self._check(me)
        await self.store.set_limits(group_id, typed_limits(typed), by_whom(me))

    async def _check(self, me: Person | None) -> None:
        if me is None:
            return
        try:
            now = await self._people.store.get(me.id)
        except NotFoundError as error:
            raise forbidden() from error
        if not may(now.role, "house"):
            raise forbidden()
