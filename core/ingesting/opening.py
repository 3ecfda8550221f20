"""What a run needs of a house, opened without its page: stores, the owner's index, and the queue of documents."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from core.errors import SettingsError
from core.rag.grown import shelves_at
from core.reading.indexing import index_config, maker_in
from core.reading.intake import Intake
from core.reading.libraries import checked_name
from core.reading.owner_intake import OwnerIntake
from core.runs.lease import this_worker
from core.storage.base import folder_name
from core.storage.database import Database
from core.storage.installation import check_secret, files_are_here
from core.storage.opening import opened_blobs
from core.storage.reading_rows import reader_named
from core.storage.sealing import Sealer
from core.storage.stores import Stores

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from core.rag.config import RAGConfig
    from core.rag.library import Library
    from core.rag.shelf import Shelf
    from core.settings import Settings
    from core.storage.base import NamedLibrary
    from core.storage.stores import OwnerStores

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class House:
    """What a run works with.

    Args:
        stores: The owner's.
        intake: The owner's documents on their way.
        index: Of all the owner's documents.
        config: As the index is opened otherwise.
    """

    stores: OwnerStores
    intake: OwnerIntake
    index: Library
    config: RAGConfig


@asynccontextmanager
async def opened_house(settings: Settings, owner: str, at_once: int, *, vectors: bool) -> AsyncGenerator[House]:
    """What a run needs, to the end of the block; Parlour may run at the same time.

    Args:
        owner: Whose documents they are.
        at_once: How many documents are read at the same time.
        vectors: Whether this process makes vectors of what is read.

    Raises:
        MissingExtraError: What reads documents, or speaks to the database or store, is not installed.
        SettingsError: The secret, or without a store the data folder, is not the one of the other Parlours.
        StorageError: The database, the store or the index cannot be used.
    """
    home = settings.make_home()
    async with AsyncExitStack() as opened:
        database = await Database.open(settings.database_in(home))
        opened.push_async_callback(database.aclose)
        await check_secret(database, settings.signing_secret())
        if settings.shares_rows_alone and not await files_are_here(database, home / "files", keeps=False):
            raise _elsewhere(database.name, home)
        blobs = await opened.enter_async_context(opened_blobs(settings))
        quota = settings.files_mb * _MIB or None
        every = Stores(database, blobs, Sealer(settings.signing_secret()), quota=quota)
        worker = this_worker()
        shelves = shelves_at(
            settings.database_in(home), reader_named(worker), maker_in(settings, worker, makes=vectors)
        )
        if shelves is not None:
            opened.callback(shelves.close)
        config = index_config(settings)
        used = config if vectors else config.model_copy(update={"retrieval_type": "keyword"})
        shelf = await asyncio.to_thread(shelves.of, owner) if shelves is not None else None
        index = await asyncio.to_thread(_index, home / "libraries" / folder_name(owner), used, shelf)
        opened.push_async_callback(partial(asyncio.to_thread, index.close))
        index.read_at_once(at_once)

        @asynccontextmanager
        async def same(_: str) -> AsyncGenerator[Library]:
            yield index

        # Of a run a few files are on their way at any time, however many it has: it waits by itself.
        intake = Intake(every, same, _nobody_looks, (at_once, at_once))
        opened.push_async_callback(intake.aclose)
        yield House(every.of(owner), OwnerIntake(intake, every.of(owner)), index, config)


def _elsewhere(name: str, home: Path) -> SettingsError:
    """What is taken in would lie where no Parlour finds it."""
    text = (
        f"The Parlours on {name} keep their files elsewhere than in {home}, and could not open what is taken in here."
    )
    hint = "Set PARLOUR_FILES to the store of all, or PARLOUR_HOME (--home) to their data folder."
    return SettingsError(text, hint=hint, key="files_elsewhere", place=name, home=str(home))


def _nobody_looks(_: str, __: str | None) -> None:
    """There is no page that would show how it goes."""


def _index(folder: Path, config: RAGConfig, shelf: Shelf | None) -> Library:
    from core.rag.library import Library  # brings the document readers with it

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Library.open(folder, config, shelf=shelf)


async def library_named(stores: OwnerStores, name: str) -> NamedLibrary:
    """The owner's library of this name, made where there is none. Raises ParlourError: the name is empty."""
    wanted = checked_name(name)
    for one in await stores.libraries.list():
        if one.name == wanted:
            return one
    return await stores.libraries.create(wanted)
