"""A tab shows how far the model is that its owner chose, and goes on while it is fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from core.engine import Engine
from core.llm.request import Progress
from core.models.own_models import Draft, OwnerModels
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import model_of, models_of
from webui.frames import Frames
from webui.views import View, Views
from webui.words import Words

pytestmark = pytest.mark.anyio


class Request:
    """What Gradio tells a handler of its request."""

    def __init__(self, session: str, owner: str) -> None:
        self.session_hash, self.username, self.headers = session, owner, {"accept-language": "en"}


class Fetched(ScriptedModel):
    """A model whose file arrives when the test says so."""

    arrived: asyncio.Event

    async def prepare(self, progress: Callable[[Progress], None] | None = None) -> None:
        assert progress is not None
        progress(Progress("weights", 212_000_000, 491_000_000))
        await self.arrived.wait()


async def test_the_top_line_follows_the_chosen_model_until_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Fetched()
    model.arrived = asyncio.Event()
    monkeypatch.setattr(OwnerModels, "made", lambda *given, **more: model)
    settings = Settings.load(home=tmp_path / "home")
    async with Engine(settings, model=ScriptedModel()) as engine:
        views = Views(Words.of)
        painter = Frames(engine, views)
        engine.on_change(views.changed)
        await models_of(engine, LOCAL_OWNER).save(Draft("ollama", "", "m"), use=True)
        said: list[str] = []
        mine = views.of(Request("one", LOCAL_OWNER))  # type: ignore[arg-type]
        async with asyncio.timeout(20), aclosing(painter.follow(mine)) as frames:
            async for frame in frames:
                said.append(frame.panels["top"] if frame is not None else "")
                if "212 of 491" in said[-1]:
                    model.arrived.set()
        assert 'data-ready="loading"' in said[0]
        assert 'data-ready="ready"' in said[-1]
        others = [frame async for frame in painter.follow(View("alice", Words("en"))) if frame is not None]
        assert 'data-ready="ready"' in others[0].panels["top"]


async def test_a_tab_goes_on_while_its_own_model_is_fetched_and_no_other_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installation's model is still on its way: who chose another need not wait for it."""
    fetched = Fetched()
    fetched.arrived = asyncio.Event()
    monkeypatch.setattr(OwnerModels, "made", lambda *given, **more: ScriptedModel())
    settings = Settings.load(home=tmp_path / "home")
    async with Engine(settings, model=fetched) as engine, asyncio.timeout(20):
        painter = Frames(engine, Views(Words.of))
        await models_of(engine, LOCAL_OWNER).save(Draft("ollama", "", "m"), use=True)
        await (await model_of(engine, LOCAL_OWNER)).loader.ready()
        ends = [frame async for frame in painter.follow(View(LOCAL_OWNER, Words("en"))) if frame is not None]
        assert 'data-ready="ready"' in ends[-1].panels["top"]
        assert engine.readiness["model"].state == "loading"
        async with aclosing(painter.follow(View("alice", Words("en")))) as frames:
            first = await anext(frames)
            assert first is not None
            assert 'data-ready="loading"' in first.panels["top"]
