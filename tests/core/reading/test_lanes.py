"""Reading is fair: what is read in a moment goes first, nobody waits for ever, and nobody takes all the room."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from core.reading.job import Lanes, patience
from core.storage.base import FileRecord

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024


def file(media_type: str, size: int) -> FileRecord:
    return FileRecord("f", "alice", "a", media_type, size, "0" * 64, 0.0)


def test_typed_documents_wait_less_than_long_ones_and_those_less_than_pictures() -> None:
    note, long, scan = file("text/plain", 4_000), file("application/pdf", 20 * MIB), file("image/png", 4_000)
    assert patience(note) < patience(long) < patience(scan)
    assert patience(file("application/pdf", 10_000 * MIB)) == patience(scan)


class Readers:
    """Those who wait and read, by name; each reads until it is let go."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.begun: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._gone: dict[str, asyncio.Event] = {}

    async def come(self, name: str, owner: str = "alice", patience: float = 0.0) -> None:
        self.begin(name, owner, patience)
        await settled()

    def begin(self, name: str, owner: str = "alice", patience: float = 0.0) -> None:
        gone = self._gone[name] = asyncio.Event()

        async def read() -> None:
            async with self.lanes.lane(owner, patience):
                self.begun.append(name)
                await gone.wait()

        self.tasks[name] = asyncio.create_task(read())

    async def go(self, name: str) -> None:
        self._gone[name].set()
        await self.tasks[name]
        await settled()

    async def end(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_note_that_comes_later_goes_before_scans(reading: Callable[[Lanes], Awaitable[Readers]]) -> None:
    readers = await reading(Lanes(1, 1))
    await readers.come("first")
    await readers.come("scan", patience=60)
    await readers.come("note", patience=0.01)
    await readers.go("first")
    await readers.go("note")
    assert readers.begun == ["first", "note", "scan"]


async def test_of_those_who_have_the_same_patience_the_first_comes_first(
    reading: Callable[[Lanes], Awaitable[Readers]],
) -> None:
    readers = await reading(Lanes(1, 1))
    for name in ("one", "two", "three"):
        await readers.come(name, patience=5)
    await readers.go("one")
    await readers.go("two")
    assert readers.begun == ["one", "two", "three"]


async def test_whoever_waited_out_its_patience_is_passed_over_no_longer(
    reading: Callable[[Lanes], Awaitable[Readers]],
) -> None:
    readers = await reading(Lanes(1, 1))
    await readers.come("first")
    await readers.come("scan", patience=-1)  # its minute is over
    await readers.come("note")
    await readers.go("first")
    assert readers.begun == ["first", "scan"]


async def test_an_owner_with_many_files_leaves_room_for_another(
    reading: Callable[[Lanes], Awaitable[Readers]],
) -> None:
    readers = await reading(Lanes(3, 2))
    for number in range(5):
        await readers.come(f"alice {number}")
    await readers.come("bob", owner="bob", patience=60)
    assert readers.begun == ["alice 0", "alice 1", "bob"]


async def test_one_document_begins_at_once_behind_a_thousand_of_somebody_elses(
    reading: Callable[[Lanes], Awaitable[Readers]],
) -> None:
    readers = await reading(Lanes(4, 2))
    for number in range(1_000):
        readers.begin(f"alice {number}")
    await readers.come("bob", owner="bob")
    assert readers.begun == ["alice 0", "alice 1", "bob"]
    await readers.go("alice 0")
    readers.begin("carol 0", owner="carol")
    await readers.come("carol 1", owner="carol")
    assert readers.begun[3:] == ["alice 2", "carol 0"], "four at the same time, two of each"


async def test_who_gives_up_waiting_or_reading_leaves_the_room_to_others(
    reading: Callable[[Lanes], Awaitable[Readers]],
) -> None:
    readers = await reading(Lanes(1, 1))
    for name in ("reads", "waits", "next"):
        await readers.come(name)
    readers.tasks["waits"].cancel()
    await settled()
    readers.tasks["reads"].cancel()
    await settled()
    assert readers.begun == ["reads", "next"]


@pytest.fixture
async def reading(anyio_backend: str):
    made: list[Readers] = []

    async def make(lanes: Lanes) -> Readers:
        made.append(Readers(lanes))
        return made[-1]

    yield make
    for readers in made:
        await readers.end()
