"""What the next message takes is counted by the model's own counter, part by part, before it is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.engine import Engine
from core.settings import Settings
from core.testing.model_server import ModelServer
from core.testing.script import Reply

pytestmark = pytest.mark.anyio


async def test_the_parts_of_a_conversation_add_up_and_grow_with_it(tmp_path: Path) -> None:
    with ModelServer(Reply("A fairly short reply.", usage=(50, 5))) as server:
        given = {"base_url": server.base_url, "model": "scripted", "api_key": "any", "titles": False}
        async with Engine(Settings.load(home=tmp_path, **given)) as engine, engine.workspaces.open("alice") as mine:
            talk = mine.conversation((await mine.conversations.create()).id)
            run = await talk.ask("What is twice four?")
            await run.wait()
            known = await talk.metering()
            assert known is not None
            empty = await known.with_draft("  ")
            full = await known.with_draft("And what is twice that, in words? " * 10)
            fresh = await mine.conversation("").metering()
            assert fresh is not None
            new = await fresh.with_draft("")
            stranger = await mine.conversations.create()
    assert (empty.draft, empty.messages) == (0, 2)
    assert empty.history > 5
    assert empty.instructions > 0
    assert empty.taken == empty.instructions + empty.tools + empty.files + empty.history
    assert full.taken - empty.taken == full.draft > 50
    assert empty.room > 1000
    assert (new.history, new.messages, new.spent) == (0, 0, 0)
    assert known.reply == 5
    assert stranger.id


async def test_an_unknown_price_is_unknown_and_not_nothing(tmp_path: Path) -> None:
    with ModelServer(Reply("Eight.", usage=(50, 5))) as server:
        given = {"base_url": server.base_url, "model": "scripted", "api_key": "any", "titles": False}
        async with Engine(Settings.load(home=tmp_path, **given)) as engine, engine.workspaces.open("alice") as mine:
            talk = mine.conversation((await mine.conversations.create()).id)
            await (await talk.ask("What is twice four?")).wait()
            known = await talk.metering()
            assert known is not None
            meter = await known.with_draft("More.")
    if not meter.free:  # a server on this machine is free
        assert (meter.cost, meter.spent) == (None, None)
    else:
        assert (meter.cost, meter.spent, meter.paid) == (0, 0, False)
