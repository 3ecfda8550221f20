"""A run keeps a few files on its way, however many there are, and ends where nothing can be kept any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import pytest

from core.errors import DocumentError, NoSpaceError, ParlourError
from core.ingesting.keeping import Keeping
from core.ingesting.running import Run, Tally
from core.ingesting.sources import Files, Item
from core.rag.parsers.process import Limits
from core.reading.intake import Intake
from core.reading.owner_intake import OwnerIntake
from core.storage.base import NamedLibrary
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import OwnerStores, Stores

pytestmark = pytest.mark.anyio

MANY = 250


class Numbers:
    """A source of files that are never opened; `given` says how many it was asked for so far."""

    def __init__(self, count: int = MANY) -> None:
        self.count, self.given = count, 0

    def items(self) -> Iterator[Item]:
        for number in range(self.count):
            self.given += 1
            yield Item(f"/numbers/{number}.md", f"{number}.md", 1, "1 1")

    def opened(self, item: Item, most: int) -> AbstractContextManager[Path]:
        raise NotImplementedError


class Counting:
    """A reader that makes an empty document of each file, in turns of the loop."""

    at_once = 5

    def __init__(self, mine: OwnerStores, library: NamedLibrary, source: Numbers) -> None:
        self._mine, self._library, self._source = mine, library, source
        self.reading, self.most, self.ahead = 0, 0, 0
        self.begun: list[str] = []
        self.undone: list[str] = []
        self.errors: dict[str, ParlourError] = {}

    async def read(self, item: Item) -> str:
        self.begun.append(item.name)
        self.reading += 1
        self.most = max(self.most, self.reading)
        self.ahead = max(self.ahead, self._source.given - len(self.begun))
        try:
            if item.name in self.errors:
                raise self.errors[item.name]
            file = await self._mine.files.put(item.name, item.name.encode())
            new = await self._mine.documents.add(None, file.id, item.name, collection_id=self._library.id)
            return (await self._mine.documents.update(new.id, "ready", library_id=file.sha256)).id
        except asyncio.CancelledError:
            self.undone.append(item.name)
            raise
        finally:
            self.reading -= 1


@pytest.fixture
async def every(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Stores]:
    database = await Database.open(tmp_path / "parlour.db")
    yield Stores(database, tmp_path / "files", Sealer("secret"))
    await database.aclose()


@pytest.fixture
def mine(every: Stores) -> OwnerStores:
    return every.of("alice")


def heard(*_: object) -> None:
    """Nobody watches."""


async def test_a_few_files_are_on_their_way_however_many_there_are(mine: OwnerStores) -> None:
    library, source = await mine.libraries.create("Numbers"), Numbers()
    reader = Counting(mine, library, source)
    reader.errors["7.md"] = DocumentError("It is damaged.", key="document_broken")
    told: list[tuple[int, str, str]] = []

    def tell(tally: Tally, item: Item, trouble: ParlourError | None) -> None:
        told.append((tally.read, item.name, str(trouble or "")))

    tally = await Run(source, library, mine.ingested, reader, tell).go()
    assert tally == Tally(found=MANY, read=MANY - 1, known=0, failed=1)
    assert reader.most == 5
    assert reader.ahead <= 200, "no more of the list is in memory than is looked up at once"
    assert len(told) == MANY
    assert [said for _, name, said in told if name == "7.md"] == ["It is damaged."]
    again = Counting(mine, library, source)
    tally = await Run(source, library, mine.ingested, again, heard).go()
    assert (tally.known, tally.read, again.begun) == (MANY - 1, 1, ["7.md"])


async def test_files_with_the_same_bytes_are_taken_in_once(mine: OwnerStores) -> None:
    class Alike(Counting):
        at_once = 1
        first = ""

        async def read(self, item: Item) -> str:
            self.first = self.first or await super().read(item)
            return self.first

    library, source = await mine.libraries.create("Numbers"), Numbers(3)
    tally = await Run(source, library, mine.ingested, Alike(mine, library, source), heard).go()
    assert tally == Tally(found=3, read=1, known=2, failed=0)


async def test_where_nothing_can_be_kept_any_more_it_ends_and_goes_on_from_there(mine: OwnerStores) -> None:
    library, source = await mine.libraries.create("Numbers"), Numbers(60)
    reader = Counting(mine, library, source)
    reader.errors["30.md"] = NoSpaceError("The disk is full.")
    with pytest.raises(NoSpaceError):
        await Run(source, library, mine.ingested, reader, heard).go()
    assert reader.reading == 0
    assert len(reader.begun) < 60
    ready = {one.name for one in await mine.documents.list_shelved(library.id) if one.status == "ready"}
    reader.errors.clear()
    tally = await Run(source, library, mine.ingested, reader, heard).go()
    assert tally.known + tally.read == 60
    assert tally.failed == 0
    assert tally.known <= len(ready)
    assert len(await mine.documents.list_shelved(library.id)) == 60


@pytest.mark.parametrize("clock", [-3600.0, 0.0, 3600.0])
async def test_one_that_is_cancelled_undoes_what_it_began_and_not_what_another_reads_whatever_the_clock_says(
    clock: float, every: Stores, mine: OwnerStores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lamp.md"
    path.write_text("The green lamp stands beside the door.")
    library, never = await mine.libraries.create("Papers"), cast("Any", None)  # nothing is opened
    keeping = Keeping(mine, library, OwnerIntake(Intake(every, never, heard), mine), Files(str(path)), Limits())
    real = time.time

    async def cancelled(ahead: float) -> None:
        with monkeypatch.context() as patched, pytest.raises(asyncio.CancelledError):
            patched.setattr(time, "time", lambda: real() + ahead)
            async with keeping.document(path, "lamp.md"):
                patched.setattr(time, "time", real)
                raise asyncio.CancelledError

    async with keeping.document(path, "lamp.md") as new:
        await cancelled(clock)
        assert [one.id for one in await mine.documents.list_shelved(library.id)] == [new.id]
        await mine.libraries.remove_document(new.id)
        await cancelled(clock)
        assert await mine.documents.list_shelved(library.id) == []
