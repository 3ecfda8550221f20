"""A tool that asks: the card in every frame, the answer over the bus, and nothing for who it does not belong to."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request as HttpRequest

from core.agents.basic import FnCallAgent
from core.engine import Engine
from core.errors import ConflictError, NotFoundError, ParlourError
from core.runs import reply as replies
from core.runs.reply import CallBlock
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.base import BaseTool
from core.workspace.program import Program
from tests.webui.server.tabs_of_engine import Tabs
from webui.context import WebContext
from webui.handlers.approval import CallRoutes, arguments_of, call_of
from webui.handlers.send import send
from webui.uploads import Uploads
from webui.views import View
from webui.words import Words

pytestmark = pytest.mark.anyio
OWNER = "b-alice"
PUT = {"operate": "put", "key": "note", "value": "one"}
WRITE = Reply(calls=[("storage", PUT)])


class House(Tabs):
    """Its model wants to keep a note."""

    owner = OWNER

    async def ask(self, view: View) -> str:
        """Ask, and wait until a call of the reply waits for the reader; its id."""
        await send(self.desk, view, {"text": "Keep a note.", "files": []})
        await self.seen(view, "p-asks")
        run = self.engine.runs.live(view.conversation_id)
        assert run is not None
        return run.reply().asking[0].call_id

    async def notes(self) -> list[str]:
        return sorted(note.text for note in await self.engine.toolbox.of(OWNER).notes.list())


@pytest.fixture
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    turns = getattr(request, "param", (WRITE, "Done."))
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword", max_iteration=3)
    async with Engine(settings, model=ScriptedModel(*turns)) as engine:
        await engine.stores.of(OWNER).conversations.ensure_owner()
        await engine.toolbox.of(OWNER).choices.switch("storage", on=True)
        yield House(engine, Uploads(tmp_path / "tmp", 1_000_000))


async def test_a_call_waits_with_its_card_in_every_tab_until_one_answers(house: House) -> None:
    tab = house.tab()
    call = await house.ask(tab)
    other = house.tab("two", conversation=tab.conversation_id)
    frame = await house.seen(other, "p-asks")
    assert "asks you" in str(frame.chat)
    assert "It waits for your answer" in unescape(frame.panels["status"])
    assert 'class="p-st p-ask" role="img" aria-label="asks you"' in frame.panels["history"]
    assert await house.notes() == []
    await house.act(tab, do="allow", call=call)
    assert (await house.over(other)).panels["ask"] == ""
    assert await house.notes() == ["one"]
    assert "you allowed it" in str((await house.over(tab)).chat)


async def test_what_is_not_allowed_is_not_done_and_said_to_be(house: House) -> None:
    tab = house.tab()
    await house.act(tab, do="refuse", call=await house.ask(tab))
    frame = await house.over(tab)
    assert await house.notes() == []
    assert frame.panels["ask"] == ""
    assert "you did not allow it" in str(frame.chat)


async def test_edited_arguments_are_what_is_sent_and_shown(house: House) -> None:
    tab = house.tab()
    call = await house.ask(tab)
    await house.act(tab, do="allow", call=call, arguments={"value": "two\nlines"})
    frame = await house.over(tab)
    assert await house.notes() == ["two\nlines"]
    assert "you changed it" in str(frame.chat)
    assert arguments_of((await house.last(tab))[1]) == {**PUT, "value": "two\nlines"}


class Price(BaseTool):
    """Changes a price; what it was called with is in `done`."""

    name = "price"
    writes = True
    parameters = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "body": {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]},
        },
    }

    def __init__(self) -> None:
        super().__init__()
        self.done: list[Any] = []

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        self.done.append(self._verify_json_format_args(params))
        return "done"


UNFIT = "This does not fit what the tool takes"


@pytest.mark.parametrize(
    ("language", "typed", "field", "said"),
    [
        (
            "en",
            {"body": '{"price": "no"}'},
            "body",
            f"{UNFIT}: body.price must be a number.",
        ),
        ("zh", {"body": '{"price": "no"}'}, "body", "与该工具的参数要求不符：body.price 必须是数字。"),
        ("en", {"body": "{}"}, "body", f"{UNFIT}: body.price is missing."),
        (
            "en",
            {"body": '{"price": 3}', "id": "8.5"},
            "id",
            f"{UNFIT}: id must be a whole number.",
        ),
    ],
)
async def test_an_edited_argument_that_does_not_fit_its_tool_is_told_at_its_field_and_the_card_stays(
    tmp_path: Path, language: str, typed: dict[str, str], field: str, said: str
) -> None:
    price = Price()
    call = Reply(calls=[("price", {"id": 7, "body": {"price": 3}})])
    program = Program([FnCallAgent([price], ScriptedModel(call, "Done."))])
    async with Engine(Settings.load(home=tmp_path / "home", code="off"), program=program) as engine:
        house = House(engine, Uploads(tmp_path / "tmp", 1_000_000))
        await engine.stores.of(OWNER).conversations.ensure_owner()
        tab = house.tab(language=language)
        call_id = await house.ask(tab)
        await house.act(tab, do="allow", call=call_id, arguments=typed)
        (told,) = re.findall(
            r'data-name="(\w+)"[^>]* data-unfit="([^"]+)"', (await house.seen(tab, "data-unfit")).panels["ask"]
        )
        assert (told[0], unescape(told[1])) == (field, said)
        assert price.done == []
        await house.act(tab, do="allow", call=call_id, arguments={"body": '{"price": 4}'})
        assert (await house.over(tab)).panels["ask"] == ""
        assert price.done == [{"id": 7, "body": {"price": 4}}]


async def test_only_the_first_answer_counts_and_only_of_a_call_that_waits(house: House) -> None:
    tab = house.tab()
    call = await house.ask(tab)
    for message in ({"call": "another"}, {"call": 7}, {}):
        with pytest.raises(ConflictError):
            await house.act(tab, do="allow", **message)
    await house.act(tab, do="refuse", call=call)
    with pytest.raises(ConflictError) as late:
        await house.act(tab, do="allow", call=call)
    assert late.value.words_key == "already_decided"
    await house.over(tab)
    assert await house.notes() == []


async def test_a_card_that_was_left_open_is_no_answer_to_another_question(house: House) -> None:
    """Another version of a reply, or another chat, may ask about a call of the same id."""
    tab = house.tab()
    call = await house.ask(tab)
    (shown,) = re.findall(r'data-asked="([^"]+)"', (await house.seen(tab, "p-asks")).panels["ask"])
    for wrong in ("1800000000.000", "", 7):
        for answer in ("allow", "refuse"):
            with pytest.raises(ConflictError):
                await house.act(tab, do=answer, call=call, asked=wrong)
    await house.act(tab, do="allow", call=call, asked=shown)
    await house.over(tab)
    assert await house.notes() == ["one"]


async def test_nobody_else_can_answer_or_see(house: House) -> None:
    tab = house.tab()
    call = await house.ask(tab)
    mallory = house.tab("three", "b-mallory")
    mallory.conversation_id = tab.conversation_id
    with pytest.raises(ConflictError):
        await house.act(mallory, do="allow", call=call)
    frame = await house.over(mallory)
    assert frame.panels["ask"] == ""
    assert await house.notes() == []
    await house.act(tab, do="refuse", call=call)
    await house.over(tab)


@pytest.mark.parametrize("house", [(WRITE, WRITE, "Done.")], indirect=True)
async def test_once_allowed_for_the_chat_it_asks_no_more_there(house: House) -> None:
    tab = house.tab()
    await house.act(tab, do="allow", call=await house.ask(tab), always=True)
    frame = await house.over(tab)
    assert "Done." in str(frame.chat)
    assert await house.notes() == ["one"]


@pytest.mark.parametrize("house", [(WRITE, "Done.", "Done again.")], indirect=True)
async def test_a_call_is_made_again_with_other_arguments_in_a_version_of_its_own(house: House) -> None:
    tab = house.tab()
    await house.act(tab, do="allow", call=await house.ask(tab))
    await house.over(tab)
    before, call = await house.last(tab)
    with pytest.raises(ParlourError):
        await house.act(tab, do="rerun", id=before, call=call.call_id, arguments={"value": 4})
    with pytest.raises(NotFoundError):
        await house.act(tab, do="rerun", id=before, call="another", arguments={})
    await house.act(tab, do="rerun", id=before, call=call.call_id, arguments={"value": "three"})
    frame = await house.seen(tab, "p-asks")
    assert "three" in frame.panels["ask"]
    run = house.engine.runs.live(tab.conversation_id)
    assert run is not None
    await house.act(tab, do="allow", call=run.reply().asking[0].call_id)
    await house.over(tab)
    assert await house.notes() == ["three"]
    after, again = await house.last(tab)
    assert after != before
    assert arguments_of(again)["value"] == "three"


@pytest.mark.parametrize(
    "house", [tuple(Reply(calls=[("calculator", {"expression": f"1+{n}"})]) for n in range(4))], indirect=True
)
async def test_a_reply_that_reached_its_limit_is_paused_and_goes_on_when_told_to(house: House) -> None:
    tab = house.tab()
    await send(house.desk, tab, {"text": "Reckon on and on.", "files": []})
    frame = await house.over(tab)
    in_a_row = r"asked the model as often in a row as one may \((\d+)\)"
    [times] = re.findall(in_a_row, unescape(str(frame.chat)))
    [message] = re.findall(r"#do-continue-([\w-]+)", unescape(str(frame.chat)))
    assert "The reply is paused" in frame.panels["status"]
    assert house.engine.readiness["model"].answered  # it did, each time
    await house.act(tab, do="continue", id=message)
    assert house.engine.runs.live(tab.conversation_id) is not None
    frame = await house.over(tab)
    assert set(re.findall(in_a_row, unescape(str(frame.chat)))) == {times}, "counted since it was told to go on"


async def fetched(house: House, what: str, owner: str | None = OWNER, **query: str) -> tuple[int, bytes, str]:
    """What a route answers: its status, its body and how it may be shown."""
    table: list[Any] = CallRoutes(WebContext(house.engine, house.engine.settings, Words.of)).table()
    routes = {route.path: route for route in table}
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    scope = {"type": "http", "method": "GET", "headers": [], "query_string": asked.encode(), "owner": owner}
    answer = await routes[f"/calls/{what}"].endpoint(HttpRequest(scope))
    return answer.status_code, answer.body, answer.headers.get("content-disposition", "")


async def test_all_of_a_call_is_there_for_its_owner_alone(house: House) -> None:
    tab = house.tab()
    await house.act(tab, do="allow", call=await house.ask(tab))
    await house.over(tab)
    message, call = await house.last(tab)
    named = {"message": message, "call": call.call_id}
    status, body, _ = await fetched(house, "given", **named)
    told = json.loads(body)
    assert (status, told["name"], told["label"]) == (200, "storage", "Notes")
    assert {"name": "value", "kind": "text", "text": "one"} in told["fields"]
    status, body, way = await fetched(house, "text", **named, of="result")
    assert (status, way[:10]) == (200, "attachment")
    assert b"note" in body
    assert (await fetched(house, "text", **named, of="given"))[1] == b"operate: put\nkey: note\nvalue: one"
    for what in ("given", "text", "item"):
        assert (await fetched(house, what, "b-mallory", **named))[0] == 404
        assert (await fetched(house, what, None, **named))[0] == 401
        assert (await fetched(house, what, message=message, call="another"))[0] == 404
        assert (await fetched(house, what, message="another", call=call.call_id))[0] == 404
    for n in ("0", "9", "-1", "x", "²"):
        assert (await fetched(house, "item", **named, n=n))[0] == 404


def test_a_call_is_found_by_its_id_alone() -> None:
    with pytest.raises(NotFoundError):
        call_of(replies.Reply(), "a")
    assert arguments_of(CallBlock("a", "t")) == {}
    assert arguments_of(CallBlock("a", "t", pieces=["[1]"])) == {}
