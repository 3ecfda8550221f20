"""An idle server sleeps: Gradio's queue is woken by what comes, and looks for nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import gradio as gr
import pytest
from gradio.data_classes import PredictBodyInternal

from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage
from webui.context import WebContext
from webui.gradio_patches import SESSIONS, wake_by_events
from webui.handlers.wiring import Handlers
from webui.layout import build
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio
_turn = asyncio.sleep


class Watched:
    """A real queue of Gradio's, that notes when it is looked into and what is done.

    Args:
        places: How many events may be done at once.
    """

    def __init__(self, places: int) -> None:
        with gr.Blocks() as blocks:
            button = gr.Button()
            button.click(lambda: None, concurrency_limit=None)
        blocks.queue(default_concurrency_limit=None, api_open=False)
        self.queue: Any = cast("Any", blocks)._queue
        self.queue.max_thread_count = places
        self.looks, self.done, self.held = 0, 0, asyncio.Event()
        look = self.queue.get_events

        def noted() -> Any:
            self.looks += 1
            return look()

        async def process(events: list[Any], *_: Any) -> None:
            await self.held.wait()
            self.done += len(events)
            self.queue.active_jobs[self.queue.active_jobs.index(events)] = None
            self.queue.event_queue_per_concurrency_id[events[0].concurrency_id].current_concurrency -= 1

        self.queue.get_events, self.queue.process_events = noted, process
        wake_by_events(self.queue)
        self.queue.start()

    async def push(self) -> None:
        """One click of the page."""
        body = PredictBodyInternal(fn_index=0, data=[], session_hash="tab", request=None)
        told, _, state = await self.queue.push(body, None, None)
        assert told, state


async def turns(count: int = 50) -> None:
    """Let everything that can go on go on."""
    for _ in range(count):
        await _turn(0)


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long anybody wanted to sleep; not in other threads, where something of an earlier test may still run."""
    asked: list[float] = []
    here = threading.get_ident()

    async def sleep(delay: float, result: Any = None) -> Any:
        if threading.get_ident() == here:
            asked.append(delay)
        return await _turn(delay, result)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return asked


@pytest.fixture
async def watched(rests: list[float]) -> AsyncGenerator[Watched]:
    del rests  # noted from the start
    one = Watched(places=2)
    yield one
    one.queue.close()
    await turns()


async def test_a_queue_in_which_nothing_is_sets_no_timer_and_is_not_looked_into_again(
    watched: Watched, rests: list[float]
) -> None:
    await turns()
    assert [rest for rest in rests if rest < 60] == []
    assert watched.looks == 1


async def test_what_comes_is_done_at_once_and_what_has_no_place_waits_for_one(watched: Watched) -> None:
    await turns()
    for _ in range(3):
        await watched.push()
    await turns()
    assert len(watched.queue) == 1
    watched.held.set()
    await turns()
    assert watched.done == 3
    assert watched.looks <= 8


async def test_a_queue_that_is_closed_ends(watched: Watched) -> None:
    await turns()
    watched.queue.close()
    await turns()
    assert not [task for task in asyncio.all_tasks() if "_process" in str(task.get_coro())]


def test_a_tab_that_gradio_has_forgotten_goes_on(app: AppProcess, page: RawPage) -> None:
    page.painted()
    page.send("hello before")
    for _ in range(SESSIONS + 5):
        other = RawPage(app.url, client=page.client).open()
        other.run(other.loading())
    page.painted()
    shown, _ = page.paint(page.send("hello after"))
    assert "hello before" in shown
    assert "hello after" in shown


async def test_what_a_tab_asks_for_is_begun_in_the_order_in_which_it_was_asked_for(tmp_path: Path) -> None:
    async with Engine(Settings.load(home=tmp_path / "home"), model=ScriptedModel()) as engine:
        context = WebContext(engine, engine.settings, Words.of)
        blocks: Any = build(context, Handlers(context, Uploads(tmp_path / "tmp", 1000)).wire)
        blocks.queue(default_concurrency_limit=None, api_open=False)
        numbers = {function.fn.__name__: number for number, function in blocks.fns.items()}
        one = ["open_and_follow", "act_and_follow", "send_and_follow", "act_and_follow", "stop", "send_and_follow"]
        asked = [*one, "act_and_follow"] * 3
        for name in asked:
            body = PredictBodyInternal(fn_index=numbers[name], data=[], session_hash="tab", request=None)
            assert (await blocks._queue.push(body, None, None))[2] == "success"
        begun = [blocks._queue.get_events()[0][0].fn.fn.__name__ for _ in asked]
    assert begun == asked
