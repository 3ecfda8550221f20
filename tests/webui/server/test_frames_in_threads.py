"""A frame that takes long is made in a thread: the loop, and with it everybody else's page, goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.tabs_of_engine import Tabs
from webui import frames
from webui.handlers.send import send
from webui.uploads import Uploads
from webui.views import View

pytestmark = pytest.mark.anyio
LONG = "herons fish. " * 5_000
ON_LOOP = "MainThread"


class House(Tabs):
    async def ask(self, view: View, text: str) -> None:
        await send(self.desk, view, {"text": text, "files": []})


@pytest.fixture
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword")
    async with Engine(settings, model=ScriptedModel(*request.param)) as engine:
        yield House(engine, Uploads(tmp_path / "tmp", 1_000_000))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Callable[[], None]]]:
    """Where each frame was made; `first` of `during` is called while the first one is."""
    threads: list[str] = []
    during: list[Callable[[], None]] = []
    shown = frames.conversation_entries

    def noted(*given: Any, **named: Any) -> Any:
        threads.append(threading.current_thread().name.partition("_")[0])
        if during:
            during.pop(0)()
        return shown(*given, **named)

    monkeypatch.setattr(frames, "conversation_entries", noted)
    return threads, during  # type: ignore[return-value]


@pytest.mark.parametrize("house", [("Herons fish.",)], indirect=True)
async def test_an_ordinary_frame_is_made_on_the_loop(house: House, made: Any) -> None:
    view = house.tab()
    await house.ask(view, "How do herons live?")
    assert "Herons fish." in str((await house.over(view)).chat)
    assert set(made[0]) == {ON_LOOP}


@pytest.mark.parametrize("house", [(LONG,)], indirect=True)
async def test_a_long_conversation_that_is_opened_is_made_in_a_thread_and_is_whole(house: House, made: Any) -> None:
    view = house.tab()
    await house.ask(view, "How do herons live?")
    growing = await house.over(view)
    made[0].clear()
    again = await house.over(house.tab("two", conversation=view.conversation_id))
    assert made[0][0] == "parlour-frames"  # whatever wakes the tab once more is quick: all of it is rendered
    assert again.chat == growing.chat
    assert LONG.strip() in str(again.chat)


@pytest.mark.parametrize("house", [(Reply(text=["one ", "two ", "three"], pace=0.3),)], indirect=True)
async def test_after_a_frame_that_took_long_the_next_is_made_in_a_thread_until_one_is_quick(
    house: House, made: Any
) -> None:
    def work() -> None:
        began = time.thread_time()
        while time.thread_time() - began < 0.06:
            pass

    view = house.tab()
    await house.ask(view, "Slowly, please")
    made[1].extend([work] * 2)
    await house.over(view)
    assert "three" in str((await house.over(view)).chat)
    assert made[0][0] == ON_LOOP
    assert "parlour-frames" in made[0]
    assert made[0][-1] == ON_LOOP


@pytest.mark.parametrize("house", [(LONG,)], indirect=True)
async def test_the_loop_goes_on_while_a_frame_is_made(house: House, made: Any) -> None:
    view = house.tab()
    await house.ask(view, "How do herons live?")
    await house.over(view)
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def wait() -> None:
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(20)

    made[1].append(wait)
    other = house.tab("two", conversation=view.conversation_id)
    painting = asyncio.create_task(house.over(other))
    async with asyncio.timeout(20):
        await begun.wait()  # made on the loop, the frame would wait for itself
        go_on.set()
        assert LONG.strip() in str((await painting).chat)


@pytest.mark.parametrize("house", [(LONG, "Otters swim.")], indirect=True)
async def test_a_tab_that_turns_away_while_a_frame_is_made_never_shows_it(house: House, made: Any) -> None:
    view, second = house.tab(), house.tab("two")
    await house.ask(view, "How do herons live?")
    await house.over(view)
    await house.ask(second, "And otters?")
    await house.over(second)
    loop, turned = asyncio.get_running_loop(), threading.Event()

    def turn() -> None:
        loop.call_soon_threadsafe(lambda: (third.show(second.conversation_id), turned.set()))
        assert turned.wait(20)

    made[1].append(turn)
    third = house.tab("three", conversation=view.conversation_id)
    async with asyncio.timeout(20), aclosing(house.frames.follow(third)) as following:
        seen = [frame async for frame in following if frame is not None]
    assert "Otters swim." in str(seen[-1].chat)
    assert not any("herons fish" in str(frame.chat) for frame in seen)
