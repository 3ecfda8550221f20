"""The whole of it: open what is needed, run, and make the vectors that are still missing."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.bridge.cancellation import run_to_end
from core.errors import SettingsError, StorageError
from core.ingesting.here import ReaderHere
from core.ingesting.keeping import Keeping
from core.ingesting.opening import library_named, opened_house
from core.ingesting.running import Run
from core.ingesting.sources import source_of
from core.rag.parsers.process import Limits
from core.storage.opening import store_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.errors import ParlourError
    from core.ingesting.opening import House
    from core.ingesting.running import Reader, Tally
    from core.ingesting.sources import Item, Source
    from core.rag.library import Library
    from core.settings import Settings
    from core.storage.base import NamedLibrary
    from core.storage.stores import OwnerStores

LOCAL: Final = "local"
_SOON: Final = 2.0  # seconds that nobody has to be told of
_APART: Final = 1.0  # seconds between two looks at whether all vectors are made
_SHOWN: Final = 300  # letters of what was typed that an error repeats
_MOST_HERE: Final = 8  # files at the same time, where nothing is said


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be taken in, and how.

    Args:
        source: A file, a folder, a pattern of paths, or `s3://bucket/prefix`.
        library: The name of the library; it is made where there is none.
        owner: Whose it is.
        on: `local`, `ray` for a Ray cluster of this machine, or the address of a cluster.
        resume: Whether files are passed over that could not be read before, and did not change since.
        workers: How many files are read at the same time on this machine; one for each core by default.
    """

    source: str
    library: str
    owner: str
    on: str = LOCAL
    resume: bool = False
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """Whom to tell how it goes.

    Args:
        file: Called after each file that is new, with what went wrong with it, if anything.
        vectors: Called when all was read, and vectors are still missing.
    """

    file: Callable[[Tally, Item, ParlourError | None], None]
    vectors: Callable[[], None]


async def ingest(settings: Settings, wanted: Wanted, told: Told) -> tuple[Tally, bool]:
    """Take in what is missing. Cancelled, what is whole stays, and of the rest nothing.

    Returns:
        What became of the files, and whether all of it can be searched by meaning, where that is wished for.

    Raises:
        MissingExtraError: Something is not installed that this needs.
        SettingsError: There is no such source or cluster, or nothing in it.
        StorageError: The database, the store or the index cannot be used; what is whole stays.
    """
    source = source_of(wanted.source, store_of(settings))
    if await asyncio.to_thread(next, source.items(), None) is None:  # told at once: what is opened below takes a while
        raise _nothing(wanted.source)
    here = wanted.on == LOCAL
    workers = wanted.workers or min(os.cpu_count() or 1, _MOST_HERE)
    async with AsyncExitStack() as opened:
        ray = None
        if not here:
            from core.ingesting.on_ray import cluster

            ray = await asyncio.to_thread(opened.enter_context, cluster(wanted.on, workers))
        house = await opened.enter_async_context(opened_house(settings, wanted.owner, workers, vectors=here))
        before = {one.id for one in await house.stores.libraries.list()}
        library = await library_named(house.stores, wanted.library)
        keeping = Keeping(house.stores, library, house.intake, source, Limits())
        reader: Reader = ReaderHere(keeping, settings.pdf_reader, workers)
        if ray is not None:
            reader = await asyncio.to_thread(_on_ray, ray, keeping, house, source)
        run = Run(source, library, house.stores.ingested, reader, told.file)
        try:
            tally = await run.go(passing_failed=wanted.resume)
        finally:
            if library.id not in before:
                await run_to_end(_drop_empty(house.stores, library))
        if not tally.found:
            raise _nothing(wanted.source)
        if not (tally.read or tally.known):
            return tally, True  # what other libraries of the owner lack is not this run's concern
        if here:
            return tally, await with_vectors(house.index, told)
    async with opened_house(settings, wanted.owner, workers, vectors=True) as house:  # what the cluster did not make
        return tally, await with_vectors(house.index, told)


def _on_ray(ray: object, keeping: Keeping, house: House, source: Source) -> Reader:
    from core.ingesting.on_ray import ReaderOnRay

    return ReaderOnRay(ray, keeping, house.index, source, (house.config, Limits()))


async def _drop_empty(stores: OwnerStores, library: NamedLibrary) -> None:
    """Keep no library that nothing came into, where the database lets it go."""
    with suppress(StorageError):
        await stores.libraries.delete_empty(library.id)


def _nothing(source: str) -> SettingsError:
    typed = repr(source[:_SHOWN])
    return SettingsError(
        f"There are no files at {typed}.",
        hint="Give a file, a folder, a pattern in quotes such as 'papers/**/*.pdf', or s3://bucket/prefix.",
        key="ingest_nothing",
        source=typed,
    )


def _lacks_vectors(index: Library) -> bool:
    """Whether a passage has no vector yet: that all are there may take a while to be seen, too."""
    made = index.retriever.vector_progress([one.id for one in index.documents()])
    return any(known < every for known, every in made.values())


async def with_vectors(index: Library, told: Told) -> bool:
    """Wait until all vectors are made; whether they are."""
    if await asyncio.to_thread(index.wait_for_vectors, _SOON):
        return True
    if await asyncio.to_thread(_lacks_vectors, index):
        told.vectors()
    while not await asyncio.to_thread(index.wait_for_vectors, _APART):
        if index.retriever.vectors_idle():
            return await asyncio.to_thread(index.wait_for_vectors, 0.0)
    return True
