"""How many files a question passes from the page's `send` to the first word of its answer."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from core import plain_calls
from core.engine import Engine
from core.llm.request import ChatRequest
from core.messages.events import TextDelta
from core.runs.elsewhere import Heeding
from core.runs.log import RunEvent, RunLog
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from webui.context import WebContext
from webui.handlers.wiring import Handlers
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).resolve().parents[3]
PRODUCT = tuple(f"{ROOT / folder}/" for folder in ("core", "webui"))
TAB: Any = SimpleNamespace(session_hash="one", username="alice", headers={"referer": "http://127.0.0.1/"})
MOST_HANDING_ON = 16
MOST_RUNNING = 114  # two of them count what each owner uses, and know the keys of models that others share
"""`docs/decisions.md` has what was counted, and what it was at first."""


class Way:
    """The files that a question passes, counted as it goes (Python 3.11 has no `sys.monitoring`).

    Attributes:
        handing_on: Those with a function that is still open when the model is asked: each waits for the next one. Where
            a task goes on by itself, what was open when it was made counts.
        running: Those of which any function ran until the first word came, in any thread; cleared by who counts anew.
    """

    def __init__(self) -> None:
        self.handing_on: set[str] = set()
        self.running: set[str] = set()
        self._counts = False
        self._made_by: dict[asyncio.Task[Any], tuple[set[str], asyncio.Task[Any] | None]] = {}

    @contextmanager
    def hearing_threads(self) -> Iterator[None]:
        """While threads are started whose functions count, too."""
        threading.setprofile(self._called)
        try:
            yield
        finally:
            threading.setprofile(None)  # type: ignore[arg-type] - how it is switched off

    @contextmanager
    def followed(self) -> Iterator[None]:
        """From here on it is counted, until the first word."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._task)
        self._counts = True
        sys.setprofile(self._called)
        try:
            yield
        finally:
            self.first_word()
            loop.set_task_factory(None)

    def model_is_asked(self) -> None:
        """What is open now handed the question on."""
        task, opened = asyncio.current_task(), files_of(inspect.currentframe())
        while task is not None:
            self.handing_on |= opened
            opened, task = self._made_by.get(task, (set[str](), None))

    def first_word(self) -> None:
        """Nothing that runs from here on counts."""
        self._counts = False
        sys.setprofile(None)

    def _task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **given: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coroutine, loop=loop, **given)
        self._made_by[task] = files_of(inspect.currentframe()), asyncio.current_task()
        return task

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        if self._counts and event == "call" and frame.f_code.co_filename.startswith(PRODUCT):
            self.running.add(frame.f_code.co_filename)


def files_of(frame: FrameType | None) -> set[str]:
    """Our files with a function that is open in this frame or around it."""
    found: set[str] = set()
    while frame is not None:
        found.add(frame.f_code.co_filename)
        frame = frame.f_back
    return {name for name in found if name.startswith(PRODUCT)}


async def _nothing(_: Heeding) -> None:
    pass


async def test_a_question_passes_few_files_until_its_first_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, append, answered = Way(), RunLog.append, asyncio.Event()
    # Another test of this process may have set who is told of spans: what tells them is no part of the way.
    monkeypatch.setattr("core.observing._keepers", {})
    monkeypatch.setattr("core.observing._imported", lambda name: None)
    monkeypatch.setattr(Heeding, "look", _nothing)  # what others ask of a run is another way, gone beside this one

    def answer(request: ChatRequest) -> Reply:
        way.model_is_asked()
        return Reply(text="Here.")

    def appended(log: RunLog, event: RunEvent) -> None:
        append(log, event)
        if isinstance(event, TextDelta):
            way.first_word()
            answered.set()

    model = ScriptedModel("What is loaded by the first question does not count.", answer, answer)
    each: list[set[str]] = []
    with way.hearing_threads():
        async with Engine(Settings.load(home=tmp_path / "home"), model=model) as engine:
            handlers = Handlers(WebContext(engine, engine.settings, Words.of), Uploads(tmp_path / "tmp", 1000))
            await handlers.opened(TAB)
            await handlers.send({"text": "Are you there?", "files": []}, TAB)
            async for _ in handlers.follow(TAB):
                pass
            monkeypatch.setattr(RunLog, "append", appended)
            for _question in range(2):
                with way.followed():
                    await handlers.send({"text": "Then answer.", "files": []}, TAB)
                    await answered.wait()
                answered.clear()
                each.append(way.running.copy())
                way.running.clear()
                async for _ in handlers.follow(TAB):
                    pass
    # What goes on by itself, now and then, is on the way of one of two questions at most.
    found = {"handing_on": way.handing_on, "running": each[0] & each[1]}
    # Of a program that imports public names from `core`, calls of these are checked: another test may have been one.
    found["running"].discard(plain_calls.__file__)
    names = {kind: sorted(one.removeprefix(f"{ROOT}/") for one in files) for kind, files in found.items()}
    assert "webui/handlers/wiring.py" in names["handing_on"]
    assert "core/storage/database.py" in names["running"]
    assert len(names["handing_on"]) <= MOST_HANDING_ON, names["handing_on"]
    assert len(names["running"]) <= MOST_RUNNING, "\n".join(names["running"])
