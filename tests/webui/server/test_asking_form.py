"""What an MCP server asks during a call: a form in the conversation that made it, its answer over the bus."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from html import unescape
from pathlib import Path

import pytest

from core.engine import Engine
from core.errors import ConflictError, ParlourError
from core.runs.approvals import Inputs
from core.runs.log import InputGiven, LoggedEvent, RunLog
from core.runs.reply import CallBlock
from core.runs.run import Run
from core.settings import Settings
from core.storage.base import LOCAL_OWNER
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import talk_of
from tests.webui.server.tabs_of_engine import Tabs
from webui.handlers.send import send
from webui.uploads import Uploads
from webui.views import View

pytestmark = pytest.mark.anyio

HOSTILE = Path(__file__).parents[2] / "core" / "mcp" / "hostile_server.py"
GREET = Reply(calls=[("asker-act", {})])


class House(Tabs):
    """With a server that asks."""

    async def add(self, tmp_path: Path, *, asks: bool) -> None:
        tools = self.engine.toolbox.of(LOCAL_OWNER)
        servers = tools.servers
        entry = {"command": sys.executable, "args": [str(HOSTILE), "greets", str(tmp_path / "none")]}
        kept = await servers.add("asker", entry)
        await servers.confirm(kept.id, (await servers.list())[0].print)
        if asks:
            await servers.let_ask(kept.id, on=True)
        assert [tool.name for tool in await servers.tools()] == ["asker-act"]
        await tools.rules.change(lists={"allow": ["mcp:asker:*"]})

    async def ask(self, view: View) -> str:
        """Ask the model, and wait for the form; the id of its question."""
        await send(self.desk, view, {"text": "Greet me.", "files": []})
        frame = await self.seen(view, "p-form")
        found = re.search(r'data-call="([^"]+)"', frame.panels["ask"])
        assert found is not None
        return unescape(found[1])

    async def call(self, view: View) -> CallBlock:
        return (await self.last(view))[1]

    def run(self, view: View) -> Run:
        run = self.engine.runs.live(view.conversation_id)
        assert run is not None
        return run


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", max_iteration=3)
    async with Engine(settings, model=ScriptedModel(GREET, "Done.")) as engine:
        await engine.stores.of(LOCAL_OWNER).conversations.ensure_owner()
        yield House(engine, Uploads(tmp_path / "tmp", 1_000_000))


def result_of(call: CallBlock) -> str:
    return call.result.get_text_content() if call.result is not None else ""


async def test_the_form_stands_in_every_tab_until_it_is_answered(house: House, tmp_path: Path) -> None:
    await house.add(tmp_path, asks=True)
    tab = house.tab()
    asked = await house.ask(tab)
    other = house.tab("two", conversation=tab.conversation_id, language="zh")
    shown = await house.seen(other, "p-form")
    assert "服务器“asker”有问题要问你" in unescape(shown.panels["ask"])
    assert "Who are you?" in unescape(shown.panels["ask"])
    assert "asks you" in str((await house.seen(tab, "p-form")).chat)
    with pytest.raises(ParlourError) as caught:
        await house.act(tab, do="answer", call=asked, arguments={"name": "Lin", "age": "old"})
    assert caught.value.words_key == "wrong_answer"
    await house.act(tab, do="answer", call=asked, arguments={"name": "Lin", "age": "6", "more": "x"})
    assert (await house.over(other)).panels["ask"] == ""
    call = await house.call(tab)
    assert (call.state, result_of(call)) == ("done", "Hello Lin, 6")
    with pytest.raises(ConflictError):
        await house.act(tab, do="answer", call=asked, arguments={"name": "Bo", "age": "7"})


async def test_what_was_answered_is_not_kept(house: House, tmp_path: Path) -> None:
    await house.add(tmp_path, asks=True)
    tab = house.tab()
    asked = await house.ask(tab)
    run = house.run(tab)
    await house.act(tab, do="answer", call=asked, arguments={"name": "Rumpelstilz", "age": "6"})
    await house.over(tab)
    told = [str(one.event) for one in await house.engine.runs.of(LOCAL_OWNER).events(run.id)]
    assert [one for one in told if "Rumpelstilz" in one and "Hello" not in one] == []


async def test_a_no_goes_to_the_server_and_the_reply_goes_on(house: House, tmp_path: Path) -> None:
    await house.add(tmp_path, asks=True)
    tab = house.tab()
    await house.act(tab, do="decline", call=await house.ask(tab))
    assert "Done." in str((await house.over(tab)).chat)
    assert result_of(await house.call(tab)) == "decline"


async def test_a_server_that_may_not_ask_shows_nothing(house: House, tmp_path: Path) -> None:
    await house.add(tmp_path, asks=False)
    tab = house.tab()
    await send(house.desk, tab, {"text": "Greet me.", "files": []})
    async with asyncio.timeout(20), aclosing(house.frames.follow(tab)) as frames:
        assert [frame.panels["ask"] async for frame in frames if frame is not None and frame.panels["ask"]] == []


async def test_a_question_is_no_call_that_can_be_allowed(house: House, tmp_path: Path) -> None:
    await house.add(tmp_path, asks=True)
    tab = house.tab()
    asked = await house.ask(tab)
    call = house.run(tab).reply().asking[0].call_id
    for name in (asked, call):
        with pytest.raises(ConflictError):
            await house.act(tab, do="allow", call=name)
    with pytest.raises(ConflictError):
        await house.act(house.tab("two"), do="answer", call=asked, arguments={})


async def test_stopping_takes_the_form_away(house: House, tmp_path: Path) -> None:
    await house.add(tmp_path, asks=True)
    tab = house.tab()
    await house.ask(tab)
    await talk_of(house.engine, LOCAL_OWNER, tab.conversation_id).stop()
    assert (await house.over(tab)).panels["ask"] == ""
    assert (await house.call(tab)).state == "stopped"


async def test_after_a_restart_the_call_is_over_and_said_to_be(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", max_iteration=3)
    async with Engine(settings, model=ScriptedModel(GREET, "Done.")) as engine:
        await engine.stores.of(LOCAL_OWNER).conversations.ensure_owner()
        house = House(engine, Uploads(tmp_path / "tmp", 1_000_000))
        await house.add(tmp_path, asks=True)
        tab = house.tab()
        await house.ask(tab)
        conversation = tab.conversation_id
    async with Engine(settings, model=ScriptedModel("Done.")) as engine:
        house = House(engine, Uploads(tmp_path / "tmp", 1_000_000))
        frame = await house.over(house.tab("two", conversation=conversation))
    assert frame.panels["ask"] == ""
    assert "its server had asked something when Parlour closed" in unescape(str(frame.chat))


async def test_silence_is_a_no_and_a_second_question_of_a_call_is_another_one() -> None:
    log, waits = RunLog(), list[bool]()
    inputs = Inputs(log, waits.append, within=0.01)
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert await inputs.ask("c", "s", "Who?", schema) is None
    assert await inputs.ask("c", "s", "Who?", {"properties": {"a": {}}, "required": ["a"]}) is None
    given = [one.event for one in log.since() if isinstance(one.event, InputGiven)]
    assert [one.why for one in given] == ["timeout"]
    assert waits == [True, False]
    inputs.close()
    assert await inputs.ask("c", "s", "Who?", schema) is None
    assert isinstance(log.since()[0], LoggedEvent)
