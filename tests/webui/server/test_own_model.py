"""A tab shows how far the model is that its owner chose, and goes on while it is fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from core.choosing import Draft
from core.engine import Engine
from core.llm.request import Progress
from core.own_models import OwnModels
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.scripted_model import ScriptedModel
from webui.context import WebContext
from webui.handlers.wiring import Handlers
from webui.uploads import Uploads
from webui.views import View
from webui.words import Words

pytestmark = pytest.mark.anyio


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
    monkeypatch.setattr(OwnModels, "made", lambda *given, **more: model)
    settings = Settings.load(home=tmp_path / "home")
    async with Engine(settings, model=ScriptedModel()) as engine:
        handlers = Handlers(WebContext(engine, settings, Words.of), Uploads(tmp_path / "tmp", 1000))
        await engine.choosing.save(LOCAL_OWNER, Draft("ollama", "", "m"), use=True)
        said: list[str] = []
        async with aclosing(handlers.followed(View(LOCAL_OWNER, Words("en")))) as frames:
            async for frame in frames:
                said.append(frame.top if frame is not None else "")
                if "212 of 491" in said[-1]:
                    model.arrived.set()
        assert 'data-ready="loading"' in said[0]
        assert 'data-ready="ready"' in said[-1]
        others = [frame async for frame in handlers.followed(View("alice", Words("en"))) if frame is not None]
        assert 'data-ready="ready"' in others[0].top
