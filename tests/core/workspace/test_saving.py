"""What the meter offers to save is saved in the next request, by what it said, and is taken back as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.settings import Settings
from core.testing.model_server import ModelServer
from core.testing.script import Reply
from core.workspace.conversation import Conversation
from core.workspace.saving import LEAST, Saving
from core.workspace.workspace import Workspace

pytestmark = pytest.mark.anyio

WORDS = "The harbour lies in the north, and the boats come home with the tide. " * 12
SUMMARY = "They spoke of the harbour."


def answer(asked: dict[str, Any]) -> Reply:
    """Sums up, or writes a long reply."""
    last = str(asked["messages"][-1]["content"])
    return Reply(SUMMARY if last.startswith("Somebody will go on") else WORDS)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(answer) as running:
        yield running


@pytest.fixture
def house(tmp_path: Path, server: ModelServer) -> Callable[..., Engine]:
    def opened(**more: Any) -> Engine:
        given = {"base_url": server.base_url, "model": "scripted", "api_key": "any", "titles": False, **more}
        return Engine(Settings.load(home=tmp_path, **given))

    return opened


async def begun(mine: Workspace, questions: int) -> Conversation:
    talk = mine.conversation((await mine.conversations.create()).id)
    for number in range(questions):
        await (await talk.ask(f"Question {number}. {WORDS}")).wait()
    return talk


async def offered(talk: Conversation, kind: str, *, done: bool = False) -> Saving:
    known = await talk.metering()
    assert known is not None
    found = [one for one in known.meter.savings if (one.kind, one.done) == (kind, done)]
    assert found, [one.key for one in known.meter.savings]
    return found[0]


async def taken(talk: Conversation) -> int:
    known = await talk.metering()
    assert known is not None
    return known.meter.taken


def sent(server: ModelServer) -> list[dict[str, Any]]:
    return server.requests[-1].body["messages"]


async def test_the_first_messages_go_as_a_summary_that_is_made_with_the_next_message(
    house: Callable[..., Engine], server: ModelServer
) -> None:
    async with house() as engine, engine.workspaces.open("alice") as mine:
        talk = await begun(mine, 4)
        offer, before = await offered(talk, "summary"), await taken(talk)
        assert (offer.count, offer.pending) == (4, True)  # the newest two questions stay, with what came after them
        asked = len(server.requests)
        await talk.save_tokens(offer.key, on=True)
        assert len(server.requests) == asked  # nothing is called before it is needed
        assert before - await taken(talk) == offer.tokens > LEAST
        await (await talk.ask("And now?")).wait()
        assert len(server.requests) == asked + 2
        said = json.dumps(sent(server))
        assert SUMMARY in said
        assert "Question 1." not in said
        assert "Question 2." in said
        assert len(await talk.messages()) == 10  # whoever reads still sees them all
        done = await offered(talk, "summary", done=True)
        assert (done.pending, done.tokens > offer.tokens) == (False, True)  # the summary is shorter than was expected
        await talk.save_tokens(done.key, on=False)
        await (await talk.ask("And then?")).wait()
        assert "Question 0." in json.dumps(sent(server))


async def test_where_no_summary_is_made_the_first_messages_can_be_left_out(
    house: Callable[..., Engine], server: ModelServer
) -> None:
    async with house(summarise=False) as engine, engine.workspaces.open("alice") as mine:
        talk = await begun(mine, 3)
        offer, before = await offered(talk, "leave_out"), await taken(talk)
        await talk.save_tokens(offer.key, on=True)
        assert before - await taken(talk) == offer.tokens
        await (await talk.ask("And now?")).wait()
        said = json.dumps(sent(server))
        assert "Question 0." not in said
        assert "Question 1." in said
        await talk.save_tokens(offer.key, on=False)
        assert (await offered(talk, "leave_out")).count == 4


async def test_a_short_conversation_is_offered_nothing_of_its_history(
    house: Callable[..., Engine], server: ModelServer
) -> None:
    async with house() as engine, engine.workspaces.open("alice") as mine:
        talk = await begun(mine, 2)
        known = await talk.metering()
        assert known is not None
        assert not [one for one in known.meter.savings if one.kind in {"summary", "leave_out"}]
        await talk.save_tokens("summary:x", on=True)  # what is not offered is left aside
        assert await talk.chosen() == {}


async def test_tools_that_cost_most_are_left_out_and_come_back_as_they_were(
    house: Callable[..., Engine], server: ModelServer
) -> None:
    async with house() as engine, engine.workspaces.open("alice") as mine:
        talk = await begun(mine, 1)
        await mine.steering.change(talk.id, {"tools": {"web_search": True, "web_extractor": True}})
        await (await talk.ask("And before?")).wait()
        assert all(name in json.dumps(server.requests[-1].body) for name in ("web_search", "web_extractor"))
        offer, before = await offered(talk, "tools"), await taken(talk)
        await talk.save_tokens(offer.key, on=True)
        assert before - await taken(talk) == offer.tokens >= LEAST
        await (await talk.ask("And now?")).wait()
        assert not any(name in json.dumps(server.requests[-1].body) for name in offer.names)
        await talk.save_tokens(offer.key, on=True)  # a second tab, with the same offer still in sight
        await talk.save_tokens(offer.key, on=False)
        assert await talk.chosen() == {"tools": {"web_search": True, "web_extractor": True}}


async def test_a_document_that_is_sent_whole_is_sent_as_passages(
    house: Callable[..., Engine], server: ModelServer
) -> None:
    parts = "\n\n".join(f"# Part {number}\n\nBoat number {number} is moored. {WORDS}" for number in range(12))
    async with house() as engine, engine.workspaces.open("alice") as mine:
        talk = mine.conversation((await mine.conversations.create()).id)
        file = await mine.stores.files.put("boats.md", parts.encode())
        await (await talk.ask("Where is boat number 7?", [file.id])).wait()
        offer, before = await offered(talk, "passages"), await taken(talk)
        assert "number 1 is" in json.dumps(sent(server))
        whole = len(json.dumps(sent(server)))
        assert offer.names == ("boats.md",)
        await talk.save_tokens(offer.key, on=True)
        assert before - await taken(talk) == offer.tokens > LEAST
        await (await talk.ask("Where is boat number 8, the blue one?")).wait()
        assert "number 8 is" in json.dumps(sent(server))
        assert len(json.dumps(sent(server))) < whole
        await talk.save_tokens(offer.key, on=False)
        assert await talk.chosen() == {}
        assert await taken(talk) >= before
