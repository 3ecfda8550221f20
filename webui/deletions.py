"""Conversations deleted, one or several at once, with a moment in which that is taken back."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.bridge.cancellation import run_to_end
from core.errors import NotFoundError, ParlourError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.engine import Engine
    from webui.views import View, Views

_log = logging.getLogger(__name__)

_STAYS = 12.0  # seconds: the page offers to take it back for ten


@dataclass(frozen=True, slots=True)
class _Planned:
    """A conversation that will be deleted, by one wish."""

    view: View
    was_archived: bool


class Deletions:
    """The conversations that are about to be deleted.

    Until then they are in the archive, where no list shows them: should Parlour be killed before, nothing is lost.

    Args:
        seconds: After which they are.
    """

    def __init__(self, seconds: float = _STAYS) -> None:
        self._seconds = seconds
        self._planned: dict[str, _Planned] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def plan(self, engine: Engine, views: Views, view: View, ids: Sequence[str]) -> None:
        """Delete these in a moment; what is nobody's or somebody else's is left aside. Raises StorageError."""
        found: dict[str, _Planned] = {}
        fresh: dict[str, _Planned] = {}
        try:
            async with engine.workspaces.open(view.owner) as workspace:
                for one in ids:
                    with suppress(NotFoundError):
                        record = await workspace.conversations.get(one)
                        if one not in self._planned:
                            self._planned[one] = fresh[one] = _Planned(view, record.archived_at is not None)
                        found[one] = self._planned[one]
                await workspace.conversations.archive(list(found))
        except BaseException:  # nobody was promised that these go
            for one, planned in fresh.items():
                if self._planned.get(one) is planned:
                    del self._planned[one]
            views.changed(view.owner, None)
            raise
        for one in found:
            views.deleted(view.owner, one)
        task = asyncio.create_task(self._later(engine, views, found), name="delete conversations")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def take_back(self, engine: Engine, views: Views, view: View, ids: Sequence[str]) -> None:
        """Keep these after all, where it is not too late. Raises StorageError."""
        mine = [one for one in ids if (there := self._planned.get(one)) and there.view.owner == view.owner]
        back = [one for one in mine if not self._planned.pop(one).was_archived]
        async with engine.workspaces.open(view.owner) as workspace:
            await workspace.conversations.archive(back, on=False)
        views.changed(view.owner, None)

    def is_going(self, conversation_id: str) -> bool:
        """Whether a conversation is gone in a moment: for whoever opens its address or its links it is so already."""
        return conversation_id in self._planned

    def planned_of(self, owner: str) -> frozenset[str]:
        """The conversations of an owner that are gone in a moment."""
        return frozenset(one for one, planned in self._planned.items() if planned.view.owner == owner)

    async def finish(self, engine: Engine) -> None:
        """Delete now what was to be deleted in a moment: Parlour ends, and nobody can take it back any more."""
        waiting = [*self._tasks]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for one, planned in [*self._planned.items()]:
            await self._delete(engine, one, planned)

    async def _later(self, engine: Engine, views: Views, plan: Mapping[str, _Planned]) -> None:
        await asyncio.sleep(self._seconds)
        for one, planned in plan.items():
            # Else it was taken back; maybe it is planned anew since.
            if self._planned.get(one) is planned:
                await self._delete(engine, one, planned)
                views.changed(planned.view.owner, None)

    async def _delete(self, engine: Engine, conversation_id: str, planned: _Planned) -> None:
        del self._planned[conversation_id]
        try:
            async with engine.workspaces.open(planned.view.owner) as workspace:
                await run_to_end(workspace.conversation(conversation_id).delete())  # also where Parlour ends meanwhile
        except NotFoundError:
            _log.debug("A conversation was deleted elsewhere meanwhile.")
        except ParlourError as error:
            _log.warning("A conversation stays in the archive: %s", error)
