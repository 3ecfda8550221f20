"""A Parlour that is told to stop leaves its proxy first: it says so, and serves on until nobody is served any more."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from core.errors import StorageError
from core.readiness import Readiness
from core.storage.database import Database
from core.storage.ping import DatabaseCheck
from webui.middleware.answers import answer
from webui.server import Drain, Server, bind
from webui.startup_app import StartupApp

pytestmark = pytest.mark.anyio


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class House:
    """Answers at once, and holds up who asks for `/slow` until `go`."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    @asynccontextmanager
    async def open(self, take: Callable[[Readiness], None]) -> AsyncIterator[ASGIApp]:
        readiness = Readiness()
        readiness.mark("database", "ready")
        readiness.mark("model", "ready")
        readiness.mark("page", "ready")
        take(readiness)
        yield self.serve

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await self.go.wait()
        await answer(send, 200, "inside")


async def ready(client: httpx.AsyncClient, status: int) -> None:
    async with asyncio.timeout(10):
        while (await client.get("/readyz")).status_code != status:
            await asyncio.sleep(0.01)  # between two looks, not for luck


async def test_told_to_stop_it_is_ready_no_more_serves_on_and_ends_when_nobody_is_served() -> None:
    house, clock = House(), Clock()
    app = StartupApp(house.open, print)
    server = Server(app, app.close, drain=Drain(30, app.drain, lambda: app.busy, clock))
    sock = bind("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{sock.getsockname()[1]}", timeout=30) as client:
        await ready(client, 200)
        reply = asyncio.create_task(client.get("/slow"))
        async with asyncio.timeout(10):
            while not app.busy:
                await asyncio.sleep(0.01)  # between two looks, not for luck
        server.handle_exit(signal.SIGTERM, None)
        await ready(client, 503)
        clock.now = 29.0
        assert (await client.get("/")).text == "inside"
        assert (await client.get("/healthz")).status_code == 200
        assert not server.should_exit
        house.go.set()
        assert (await reply).text == "inside"
        await asyncio.wait_for(serving, 10)


def drain_of(clock: Clock, *, busy: bool) -> Drain:
    drain = Drain(30, lambda: None, lambda: busy, clock)
    assert not drain.is_over()
    assert drain.begin()
    return drain


def test_it_waits_until_proxies_have_noticed_even_where_nobody_is_served() -> None:
    clock = Clock()
    drain = drain_of(clock, busy=False)
    clock.now = 4.0
    assert not drain.is_over()
    clock.now = 6.0
    assert drain.is_over()


def test_it_waits_no_longer_than_it_was_told_whoever_is_served() -> None:
    clock = Clock()
    drain = drain_of(clock, busy=True)
    clock.now = 29.0
    assert not drain.is_over()
    clock.now = 30.0
    assert drain.is_over()


@pytest.mark.parametrize("signs", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT), (signal.SIGINT,)])
async def test_a_second_signal_and_ctrl_c_do_not_wait(signs: tuple[signal.Signals, ...]) -> None:
    closed: list[bool] = []
    drain = Drain(30, lambda: None, lambda: True)
    server = Server(_nothing, lambda: closed.append(True), drain=drain)
    for sign in signs:
        assert not closed
        server.handle_exit(sign, None)
    assert closed
    assert server.should_exit


async def test_a_database_that_is_gone_makes_it_ready_no_more_and_one_that_is_back_ready_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.storage.ping._PATIENCE", 60)  # a machine that does other things as well takes its time
    database, clock = await Database.open(tmp_path / "a.db"), Clock()
    place: Any = SimpleNamespace(read=database.read)  # behind which a server goes and comes back
    check = DatabaseCheck(place, clock)

    async def gone(_: object) -> None:
        raise StorageError("The database cannot be reached.")

    async def told(seconds: float) -> dict[str, Any]:
        clock.now = seconds
        check()
        await check.asked()
        return check()

    assert await told(0) == {"ready": True}
    assert await told(2) == {"ready": True}
    place.read = gone
    assert await told(3) == {"ready": True}  # it was asked a second ago
    assert await told(4) == {"ready": False}
    place.read = database.read
    assert await told(6) == {"ready": True}
    await database.aclose()


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    return
