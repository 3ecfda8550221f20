"""The server answers from its first moment, waits with whoever comes early, and closes cleanly."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from core.errors import SettingsError
from core.readiness import Readiness
from webui.middleware.answers import answer
from webui.startup_app import LOST, StartupApp

pytestmark = pytest.mark.anyio


class House:
    """A house that is opened when the test says so."""

    def __init__(self) -> None:
        self.readiness = Readiness()
        self.go = asyncio.Event()
        self.closed = asyncio.Event()
        self.cut = asyncio.Event()
        self.error: Exception | None = None

    @asynccontextmanager
    async def open(self, take: Callable[[Readiness], None]) -> AsyncGenerator[ASGIApp]:
        take(self.readiness)
        await self.go.wait()
        if self.error is not None:
            raise self.error
        self.readiness.mark("database", "ready")
        yield self.serve
        self.closed.set()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/stream":
            try:
                await asyncio.Event().wait()
            finally:
                self.cut.set()
        await answer(send, 200, "inside")


class Running:
    """The door, run as a server runs it."""

    def __init__(self, house: House) -> None:
        self.failures: list[Exception] = []
        self.door = StartupApp(house.open, self.failures.append)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self._trusted), base_url="http://127.0.0.1")
        self._said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def _trusted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Requests of the owner; a header makes one a stranger's."""
        stranger = b"stranger" in dict(scope["headers"])
        await self.door({**scope, "trusted": not stranger}, receive, send)

    async def start(self) -> None:
        self._task = asyncio.create_task(self.door({"type": "lifespan"}, self._said.get, self._heard.put))  # type: ignore[arg-type]
        await self._said.put({"type": "lifespan.startup"})
        assert (await self._heard.get())["type"] == "lifespan.startup.complete"

    async def stop(self) -> None:
        await self._said.put({"type": "lifespan.shutdown"})
        await asyncio.wait_for(self._task, 60)
        await self.client.aclose()


@pytest.fixture
async def house() -> House:
    return House()


@pytest.fixture
async def running(house: House) -> AsyncIterator[Running]:
    running = Running(house)
    await running.start()
    yield running
    house.go.set()
    await running.stop()


async def opened(running: Running) -> None:
    async with asyncio.timeout(60):
        while (await running.client.get("/readyz")).status_code != 200:
            await asyncio.sleep(0)


async def test_health_and_readiness_are_answered_before_the_house_is_open(running: Running) -> None:
    assert (await running.client.get("/healthz")).status_code == 200
    told = await running.client.get("/readyz")
    assert told.status_code == 503
    assert set(told.json()["parts"]) == {"database", "model", "page"}
    assert told.json()["parts"]["page"] == {
        "state": "loading",
        "label": "",
        "done": 0,
        "total": 0,
        "in_process": False,
        "built_in": False,
        "answered": False,
        "remedy": "",
    }


async def test_strangers_are_told_nothing_but_whether_it_is_ready(running: Running, house: House) -> None:
    house.readiness.mark("model", "ready", label="Secret 7B · models.internal")
    told = await running.client.get("/readyz", headers={"stranger": "1"})
    assert (told.status_code, told.json()) == (503, {"ready": False})
    house.go.set()
    await opened(running)
    told = await running.client.get("/readyz", headers={"stranger": "1"})
    assert (told.status_code, told.json()) == (200, {"ready": True})


async def test_who_comes_early_is_asked_to_wait_in_their_language(running: Running) -> None:
    english = await running.client.get("/", headers={"accept-language": "en-GB,en;q=0.9"})
    chinese = await running.client.get("/", headers={"accept-language": "zh-CN,zh;q=0.9"})
    assert english.status_code == chinese.status_code == 503
    assert 'http-equiv="refresh"' in english.text
    assert "opening" in english.text
    assert "正在打开" in chinese.text
    assert (await running.client.get("/config")).status_code == 503


async def test_a_page_that_is_open_already_is_told_that_nobody_is_there_and_waits(
    running: Running, house: House
) -> None:
    early = await running.client.post("/gradio_api/queue/join", json={})
    assert (early.status_code, early.json()) == (502, {"error": LOST})
    house.go.set()
    await opened(running)
    running.door.close()
    await house.closed.wait()
    late = await running.client.post("/chat/gradio_api/queue/join", json={})
    assert (late.status_code, late.json()) == (502, {"error": LOST})


async def test_the_framework_of_the_page_knows_the_words_for_it() -> None:
    found = find_spec("gradio")
    assert found is not None
    assert found.origin is not None
    scripts = Path(found.origin).parent / "templates" / "frontend" / "assets"
    front_end = next(text for path in scripts.glob("index-*.js") if "queue/join" in (text := path.read_text("utf-8")))
    [name] = re.findall(rf"(\w+)=`{LOST}`", front_end)
    assert f"?.error==={name};" in front_end, "else it would show the answer itself"


async def test_an_icon_asked_for_too_early_is_no_error(running: Running) -> None:
    assert (await running.client.get("/assets/icons/favicon.svg")).status_code == 204


async def test_the_house_is_served_when_it_is_open(running: Running, house: House) -> None:
    house.go.set()
    await opened(running)
    assert (await running.client.get("/")).text == "inside"
    assert (await running.client.get("/readyz")).json()["ready"] is True


async def test_readiness_tells_what_to_do_about_a_failure(running: Running, house: House) -> None:
    house.readiness.fail("model", SettingsError("No model.", key="weights_unreachable"))
    part = (await running.client.get("/readyz", headers={"accept-language": "en"})).json()["parts"]["model"]
    assert part["state"] == "failed"
    assert "PARLOUR_BASE_URL" in part["remedy"]


async def test_it_is_not_ready_while_the_model_failed_and_again_when_it_came(running: Running, house: House) -> None:
    house.go.set()
    await opened(running)
    house.readiness.fail("model", SettingsError("No model.", key="weights_unreachable"))
    assert (await running.client.get("/readyz")).status_code == 503
    assert (await running.client.get("/")).text == "inside", "the page says what to do"
    house.readiness.mark("model", "ready")
    assert (await running.client.get("/readyz")).status_code == 200


async def test_a_house_that_cannot_be_opened_is_reported(running: Running, house: House) -> None:
    house.error = SettingsError("The data folder is gone.")
    house.go.set()
    async with asyncio.timeout(60):
        while not running.failures:
            await asyncio.sleep(0)
    assert running.failures == [house.error]
    assert (await running.client.get("/healthz")).status_code == 200


async def test_closing_cuts_open_streams_and_closes_the_house(house: House) -> None:
    running = Running(house)
    await running.start()
    house.go.set()
    await opened(running)
    stream = asyncio.create_task(running.client.get("/stream"))
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        while not running.door.busy:
            await asyncio.sleep(0)
    running.door.close()
    await asyncio.wait_for(house.cut.wait(), 60)
    await asyncio.wait_for(house.closed.wait(), 60)
    await running.stop()
    answered = await asyncio.wait_for(stream, 60)
    assert (answered.status_code, answered.text) == (503, "Parlour is closing …")  # of which nothing had come yet
