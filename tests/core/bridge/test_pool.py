"""Shared things: opened once, closed when nobody uses them, never while somebody does."""

from __future__ import annotations

import asyncio

import pytest

from core.bridge.pool import Pool

pytestmark = pytest.mark.anyio


class Rooms:
    """Opens and closes rooms, and remembers which are open."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.open: list[str] = []
        self.broken: set[str] = set()
        self.empty: set[str] = set()
        self.closed = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = 0

    async def make(self, key: str) -> str:
        await self.gate.wait()
        if self.fails:
            self.fails -= 1
            raise OSError(f"No room for {key}.")
        room = f"{key} {len(self.opened)}"
        self.opened.append(room)
        self.open.append(room)
        return room

    async def end(self, room: str) -> None:
        await asyncio.sleep(0)
        self.open.remove(room)
        self.closed.set()

    def pool(self, *, idle: float = 600.0, most: int = 2) -> Pool[str]:
        return Pool(
            self.make,
            self.end,
            intact=lambda room: room not in self.broken,
            kept=lambda room: room not in self.empty,
            idle=idle,
            most=most,
        )

    async def until_closed(self) -> None:
        async with asyncio.timeout(10):
            await self.closed.wait()
        self.closed.clear()


@pytest.fixture
async def rooms(anyio_backend: str) -> Rooms:
    return Rooms()


async def used(pool: Pool[str], *keys: str) -> list[str]:
    found: list[str] = []
    for key in keys:
        async with pool.use(key) as room:
            found.append(room)
    return found


async def test_those_who_ask_at_once_share_one_and_it_is_opened_once(rooms: Rooms) -> None:
    pool = rooms.pool()
    rooms.gate.clear()
    asking = [asyncio.create_task(used(pool, "a")) for _ in range(5)]
    await asyncio.sleep(0)
    rooms.gate.set()
    assert await asyncio.gather(*asking) == [["a 0"]] * 5
    assert await used(pool, "a") == ["a 0"]
    await pool.aclose()
    assert rooms.open == []


async def test_the_one_unused_for_longest_goes_first_and_what_is_in_use_never(rooms: Rooms) -> None:
    pool = rooms.pool(most=2)
    async with pool.use("kept"):
        await used(pool, "a", "b", "a", "c")  # b is the one unused for longest when c is left
        await rooms.until_closed()
        assert rooms.open == ["kept 0", "a 1", "c 3"]
    await rooms.until_closed()
    assert rooms.open == ["kept 0", "c 3"]
    await pool.aclose()


async def test_what_nobody_uses_is_closed_after_a_while(rooms: Rooms) -> None:
    pool = rooms.pool(idle=0.01)
    async with pool.use("a"):
        async with pool.use("b"):
            pass
        await rooms.until_closed()
        assert rooms.open == ["a 0"]
        assert len(pool) == 1
    await rooms.until_closed()
    assert (rooms.open, len(pool), "a" in pool) == ([], 0, False)
    await pool.aclose()


async def test_one_that_is_not_worth_keeping_is_closed_as_soon_as_nobody_uses_it(rooms: Rooms) -> None:
    pool = rooms.pool()
    rooms.empty.add("a 0")
    async with pool.use("a"), pool.use("a"):
        assert rooms.open == ["a 0"]
    await rooms.until_closed()
    assert rooms.open == []
    assert await used(pool, "a") == ["a 1"]
    assert rooms.open == ["a 1"]
    await pool.aclose()


async def test_one_that_cannot_be_opened_is_tried_again_by_the_next(rooms: Rooms) -> None:
    pool = rooms.pool()
    rooms.fails = 1
    with pytest.raises(OSError, match="No room"):
        await used(pool, "a")
    assert len(pool) == 0
    assert await used(pool, "a") == ["a 0"]
    await pool.aclose()


async def test_one_that_broke_is_closed_before_another_is_opened_in_its_place(rooms: Rooms) -> None:
    pool = rooms.pool()
    async with pool.use("a") as first:
        rooms.broken.add(first)
        async with pool.use("a") as second:
            assert (first, second) == ("a 0", "a 1")
            assert rooms.open == ["a 1"]
    assert await used(pool, "a") == ["a 1"]
    await pool.aclose()
    assert rooms.open == []


async def test_who_gives_up_waiting_ends_the_opening_for_nobody_else(rooms: Rooms) -> None:
    pool = rooms.pool()
    rooms.gate.clear()
    first, second = (asyncio.create_task(used(pool, "a")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    rooms.gate.set()
    assert await second == ["a 0"]
    with pytest.raises(asyncio.CancelledError):
        await first
    await pool.aclose()


async def test_closing_waits_for_what_is_being_opened_and_nothing_is_opened_after_it(rooms: Rooms) -> None:
    pool = rooms.pool()
    rooms.gate.clear()
    asking = asyncio.create_task(used(pool, "a"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(pool.aclose())
    await asyncio.sleep(0)
    rooms.gate.set()
    await closing
    assert rooms.open == []
    await asyncio.wait({asking})
    with pytest.raises(RuntimeError):
        await used(pool, "b")


async def test_one_that_is_closed_while_it_waits_for_the_one_before_to_close_holds_up_nobody(rooms: Rooms) -> None:
    slow = asyncio.Event()

    async def end(room: str) -> None:
        await slow.wait()
        rooms.open.remove(room)

    pool = Pool(rooms.make, end, idle=0.0, most=0)
    await used(pool, "a")  # is being closed, and that takes a while
    leaving = asyncio.create_task(used(pool, "a"))
    await asyncio.sleep(0)
    leaving.cancel()  # so the second one is unused, and closed, before it could be opened
    await asyncio.wait({leaving})
    slow.set()
    async with asyncio.timeout(10):
        assert await used(pool, "a") == ["a 2"]
        await pool.aclose()
    assert rooms.open == []


async def test_what_is_dropped_is_closed_at_once_unless_it_is_used(rooms: Rooms) -> None:
    pool = rooms.pool()
    await pool.drop("never opened")
    async with pool.use("a"):
        await pool.drop("a")
        assert rooms.open == ["a 0"]
    await pool.drop("a")
    assert rooms.open == []
    assert "a" not in pool
    async with pool.use("a") as again:
        assert again == "a 1"
    await pool.aclose()
