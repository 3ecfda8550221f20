"""Exports from a data folder, whether or not Parlour runs over it."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from core.errors import NotFoundError
from core.export.exporting import Exporting
from core.export.secrets import KnownSecrets
from core.runs.manager import Runs
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.model_services import ModelServiceStore
from core.storage.runs import RunStore
from core.storage.sealing import Sealer
from core.toolbox.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from core.settings import Settings


@asynccontextmanager
async def conversations_at_rest(settings: Settings) -> AsyncGenerator[tuple[ConversationStore, Exporting], None]:
    """The conversations of a data folder, and what exports them; no model is loaded and no server started.

    Raises:
        NotFoundError: Nothing was ever kept there.
        StorageError: The database is damaged, newer than this program, or cannot be used.
    """
    path = settings.home / "parlour.db"
    if not path.is_file():
        raise NotFoundError(f"There is no data in {settings.home}.", hint="Name its folder with --home.")
    database = await Database.open(path)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(database.aclose)
        sealer = Sealer(settings.signing_secret())
        toolbox = Toolbox.over(database, sealer, settings)
        opened.push_async_callback(toolbox.aclose)
        runs = Runs(RunStore(database))
        opened.push_async_callback(runs.aclose)
        conversations = ConversationStore(database)
        secrets = KnownSecrets(settings, ModelServiceStore(database, sealer), toolbox)
        yield conversations, Exporting(conversations, runs, secrets)
