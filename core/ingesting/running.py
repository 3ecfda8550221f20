"""One run: goes through a source, passes over what is there, has the rest read, and keeps the ledger."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from core.errors import DocumentError, NotFoundError, ParlourError
from core.ingesting.keeping import raised
from core.runs.run import as_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from core.ingesting.sources import Item, Source
    from core.storage.base import NamedLibrary
    from core.storage.ingested import IngestedStore

_BATCH: Final = 200  # files that the ledger is asked about at once
_WHOLE: Final = frozenset({"ready"})


class Reader(Protocol):
    """Reads files into a library."""

    @property
    def at_once(self) -> int:
        """How many files to give it at the same time."""
        ...

    async def read(self, item: Item) -> str:
        """Read a file in: the document of the library that it is, when all of it is there.

        Cancelled, nothing of it stays.

        Raises:
            DocumentError: It cannot be read.
            NotFoundError: It is gone.
            StorageError: Nothing can be kept now: no further file could be either.
        """
        ...


@dataclass(slots=True)
class Tally:
    """What became of the files so far.

    Args:
        found: How many the source had.
        read: Taken in by this run.
        known: There already.
        failed: Not to be taken in, now or in an earlier run.
    """

    found: int = 0
    read: int = 0
    known: int = 0
    failed: int = 0


class Run:
    """A run.

    Args:
        source: What to take in.
        library: Where to.
        ledger: What earlier runs did.
        reader: Reads what is missing.
        told: Called after each file that is new: with the tally, the file, and what went wrong with it, if anything.
    """

    def __init__(
        self,
        source: Source,
        library: NamedLibrary,
        ledger: IngestedStore,
        reader: Reader,
        told: Callable[[Tally, Item, ParlourError | None], None],
    ) -> None:
        self._source, self._library, self._ledger, self._reader = source, library, ledger, reader
        self._told = told
        self.tally = Tally()
        self._documents: set[str] = set()  # that this run took in

    async def go(self, *, passing_failed: bool = False) -> Tally:
        """Take in all that is missing; cancelled, what was begun is undone and what is whole stays.

        Args:
            passing_failed: Whether files are passed over that could not be read before, and did not change since.

        Raises:
            StorageError: Nothing can be kept any more, or the source does not answer; what is whole stays.
        """
        items = self._source.items()
        working: set[asyncio.Task[None]] = set()
        try:
            while some := await asyncio.to_thread(_next, items):
                self.tally.found += len(some)
                for item in await self._missing(some, passing_failed=passing_failed):
                    if len(working) >= self._reader.at_once:
                        working = await _some_ended(working)
                    working.add(asyncio.create_task(self._take(item), name=f"ingest {item.name}"))
            while working:
                working = await _some_ended(working)
        finally:
            for task in working:
                task.cancel()
            await asyncio.gather(*working, return_exceptions=True)
        return self.tally

    async def _missing(self, some: list[Item], *, passing_failed: bool) -> list[Item]:
        known = await self._ledger.known(self._library.id, [item.place for item in some])
        missing: list[Item] = []
        for item in some:
            before = known.get(item.place)
            if before is None or before.mark != item.mark:
                missing.append(item)
            elif before.status in _WHOLE:
                self.tally.known += 1
            elif before.error is not None and passing_failed:
                self.tally.failed += 1
                self._told(self.tally, item, raised(before.error))
            else:
                missing.append(item)
        return missing

    async def _take(self, item: Item) -> None:
        noted: dict[str, Any] = {}
        trouble: ParlourError | None = None
        try:
            document = await self._reader.read(item)
            noted = {"document_id": document}
            if document in self._documents:  # the same bytes as another file
                self.tally.known += 1
            else:
                self._documents.add(document)
                self.tally.read += 1
        except (DocumentError, NotFoundError) as error:
            trouble = error
        if trouble is not None:
            self.tally.failed += 1
            told = as_dict(trouble)
            noted = {"error": {**told, "details": {**told["details"], "name": item.name}}}
        await self._ledger.note(self._library.id, item.place, item.mark, **noted)
        self._told(self.tally, item, trouble)


def _next(items: Iterator[Item]) -> list[Item]:
    return list(islice(items, _BATCH))


async def _some_ended(working: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Those that go on, once some have ended. Raises what one of these raised."""
    ended, going = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
    for task in ended:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return going
