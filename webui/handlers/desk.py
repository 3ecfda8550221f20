"""What handlers work with."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from core.engine import Engine
    from core.workspace.conversation import Conversation
    from webui.uploads import Uploads
    from webui.views import View, Views


@dataclass(frozen=True, slots=True)
class Desk:
    """The engine, what was sent up, and the open tabs."""

    engine: Engine
    uploads: Uploads
    views: Views

    @asynccontextmanager
    async def conversation(self, view: View) -> AsyncGenerator[Conversation]:
        """The conversation that a tab shows, while something is done in it. Raises StorageError."""
        async with self.engine.workspaces.open(view.owner) as workspace:
            yield workspace.conversation(view.conversation_id)
