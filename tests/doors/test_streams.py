"""What a stream does while nothing comes or nobody reads, and which ids name personas and a program's agents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import httpx
import openai
import pytest
from openai import OpenAI
from starlette.types import Message as ASGIMessage

from core import Assistant
from core.agents.base import Agent
from core.doors.door import Answer, Sink
from core.engine import Engine
from core.errors import TooManyRequestsError
from core.messages.events import Event, TextDelta
from core.people.people import new_person
from core.storage.base import folder_name
from core.testing.script import Reply
from core.workspace.levels import Level
from core.workspace.personas import Persona
from tests.doors.house import OWNER, House, house_in
from webui.doors.stream import ReplyStream

HELLO: list[Any] = [{"role": "user", "content": "Hello?"}]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house_in(tmp_path_factory.mktemp("streams") / "home", replies_at_once=1) as house:
        yield house


@pytest.fixture(scope="module")
def key(house: House) -> str:
    return house.key("tests")


def test_a_comment_shows_that_the_connection_is_alive_while_the_model_is_silent(
    house: House, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webui.doors.stream.ALIVE", 0.02)
    house.says(Reply(text="At last.", delay=0.3))
    body = {"model": "installed", "messages": HELLO, "stream": True}
    headers = {"Authorization": f"Bearer {key}"}
    lines = httpx.post(f"{house.base_url}/chat/completions", json=body, headers=headers, timeout=30).text.split("\n\n")
    assert lines.count(": keep-alive") > 1
    said = [json.loads(one[6:]) for one in lines if one.startswith("data: {")]
    assert "".join(one["choices"][0]["delta"].get("content") or "" for one in said if one["choices"]) == "At last."
    with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
        house.says(Reply(text="At last.", delay=0.3))
        chunks = list(client.chat.completions.create(model="installed", messages=HELLO, stream=True))
        assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "At last."


class Endless:
    """A reply without an end, which counts the letters that were taken from it."""

    reason = "stop"

    def __init__(self) -> None:
        self.letters = 0
        self.waits = asyncio.Event()

    async def run(self, sink: Sink) -> None:
        while True:
            sink.take(TextDelta("a" * 1_000))
            self.letters += 1_000
            if sink.full:
                self.waits.set()
                await sink.drained()


class Plain:
    """The text alone."""

    def first(self) -> bytes:
        return b""

    def piece(self, event: Event) -> bytes:
        return event.text.encode() if isinstance(event, TextDelta) else b""

    async def last(self) -> bytes:
        return b""

    def failed(self, told: dict[str, object]) -> bytes:
        return b""


@pytest.mark.anyio
async def test_a_stream_that_is_never_read_stops_the_model_and_ends_when_the_program_has_left() -> None:
    answer, left, closed = Endless(), asyncio.Event(), asyncio.Event()

    async def closing() -> None:
        closed.set()

    async def receive() -> ASGIMessage:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: ASGIMessage) -> None:
        if message["type"] == "http.response.body":  # a socket whose other end takes nothing
            await left.wait()

    stream = ReplyStream(cast("Answer", answer), Plain(), closing=closing, over=closing)
    served = asyncio.create_task(stream({"type": "http"}, receive, send))
    async with asyncio.timeout(30):
        await answer.waits.wait()
        held = answer.letters
        for _ in range(100):
            await asyncio.sleep(0)
        assert answer.letters <= held + 1_000_000, "what nobody reads is not made"
        left.set()
        await closed.wait()
        await served


def test_a_program_that_leaves_makes_room_for_the_next(house: House, key: str) -> None:
    house.says(Reply(text="word " * 50, hang_after=20), "Next.")
    body = {"model": "installed", "messages": HELLO, "stream": True}
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.stream("POST", f"{house.base_url}/chat/completions", json=body, headers=headers, timeout=30) as answer:
        assert answer.status_code == 200
    with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
        made = client.chat.completions.create(model="installed", messages=HELLO)
        assert made.choices[0].message.content == "Next."


def test_a_persona_is_named_by_its_lasting_id_and_is_its_owners_alone(house: House, key: str) -> None:
    async def saved(engine: Engine) -> Persona:
        async with engine.workspaces.open(OWNER) as workspace:
            return await workspace.steering.personas.save(Persona("", "Poet", level=Level(instructions="Rhyme.")))

    model = f"persona:{house.do(saved).id}"
    with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
        assert client.models.retrieve(model).model_dump()["name"] == "Poet"
        house.says("A rose, of course.")
        made = client.chat.completions.create(model=model, messages=HELLO)
        assert (made.model, made.choices[0].message.content) == (model, "A rose, of course.")
        assert "Rhyme." in house.model.requests[0].body["messages"][0]["content"]
    stranger = house.key("stranger", owner="b-stranger")
    with OpenAI(base_url=house.base_url, api_key=stranger, max_retries=0) as other, pytest.raises(openai.NotFoundError):
        other.chat.completions.create(model=model, messages=HELLO)


def test_agents_of_a_program_are_named_in_place_of_the_assistant(tmp_path: Path) -> None:
    def agents(address: str) -> list[Agent]:
        llm = {"model": "scripted", "base_url": address, "api_key": "any"}
        return [Assistant(llm=llm, name="Ann"), Assistant(llm=llm, name="Bob", system_message="You are Bob.")]

    with (
        house_in(tmp_path / "home", agents) as house,
        OpenAI(base_url=house.base_url, api_key=house.key("tests"), max_retries=0, timeout=30) as client,
    ):
        kinds = {one.id: one.model_dump()["kind"] for one in client.models.list()}
        assert {name for name, kind in kinds.items() if kind == "agent"} == {"agent:Ann", "agent:Bob"}
        assert "parlour" not in kinds
        house.says("I am Bob.")
        made = client.chat.completions.create(model="agent:Bob", messages=HELLO)
        assert made.choices[0].message.content == "I am Bob."
        assert "You are Bob." in house.model.requests[0].body["messages"][0]["content"]
        for gone in ("parlour", "agent:Eve", "agent:"):
            with pytest.raises(openai.NotFoundError):
                client.chat.completions.create(model=gone, messages=HELLO)


def test_a_limit_that_is_reached_in_mid_reply_lets_it_come_to_its_end_and_refuses_the_next(tmp_path: Path) -> None:
    with house_in(tmp_path / "home", messages_per_day=(1, 0)) as house:
        key, stores = house.key("guest", owner="b-guest"), house.engine.stores
        with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
            house.says(Reply(text="one two three four five six", pace=0.2))
            stream = client.chat.completions.create(model="installed", messages=HELLO, stream=True)
            said = [next(stream).choices[0].delta.content]
            (kept,) = house.do(lambda _: stores.of("b-guest").api_keys.list())
            house.do(lambda _: stores.of("b-guest").api_keys.note_use(kept.id, None, questions=1))
            with pytest.raises(TooManyRequestsError):
                house.do(lambda _: stores.use.check("b-guest"))
            said += [one.choices[0].delta.content for one in stream if one.choices]
            assert "".join(filter(None, said)) == "one two three four five six"
            with pytest.raises(openai.RateLimitError) as caught:
                client.chat.completions.create(model="installed", messages=HELLO)
            assert "retry-after" in caught.value.response.headers
            assert len(house.model.requests) == 1, "nothing more is asked for it"


def test_a_key_that_is_revoked_in_mid_reply_asks_no_more(tmp_path: Path) -> None:
    with house_in(tmp_path / "home") as house:
        key, keys = house.key("stolen"), house.engine.stores.of(OWNER).api_keys
        with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=30) as client:
            house.says(Reply(text="one two three four five six", pace=0.2))
            stream = client.chat.completions.create(model="installed", messages=HELLO, stream=True)
            next(stream)
            (kept,) = house.do(lambda _: keys.list())
            house.do(lambda _: keys.revoke(kept.id))
            for asked in (client.models.list, lambda: client.chat.completions.create(model="parlour", messages=HELLO)):
                with pytest.raises(openai.AuthenticationError):
                    asked()
            assert list(stream)[-1].choices[0].finish_reason == "stop", "what it was let in for is still answered"
            assert len(house.model.requests) == 1


def test_of_somebody_who_is_deleted_in_mid_reply_the_stream_ends_and_nobody_comes_in_by_the_key(tmp_path: Path) -> None:
    with house_in(tmp_path / "home") as house:
        tom = new_person("Tom", "member")
        house.do(lambda engine: engine.people.store.add(tom, "terminal"))
        key = house.key("tom", owner=tom.id)

        async def delete(engine: Engine) -> None:
            await engine.people.remove(tom, tom.id)
            await engine.belongings.delete(tom.id)

        with OpenAI(base_url=house.base_url, api_key=key, max_retries=0, timeout=60) as client:
            house.says(Reply(text=[f"word{number} " for number in range(300)], pace=0.05))
            asked = {"model": "parlour", "messages": HELLO, "extra_body": {"store": True}}
            stream = client.chat.completions.create(stream=True, **asked)
            said = [next(stream)]
            house.do(delete)
            with suppress(openai.APIError):
                said.extend(stream)
            assert len(said) < 150, "the reply was not written to its end"
            with pytest.raises(openai.AuthenticationError):
                client.models.list()
        assert house.do(lambda engine: engine.stores.of(tom.id).conversations.list()) == []
        assert not (tmp_path / "home" / "files" / folder_name(tom.id)).exists()
