"""Every request that reaches a service has a line in the log of a reply, and the lines add up to what it counted."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from core.agents.basic import FnCallAgent
from core.agents.summarize import summarize
from core.agents.title import make_title
from core.llm.backends.openai.model import OpenAIModel
from core.llm.ledger import LedgerCall, recorded_by
from core.llm.wire_log import KEPT_HEAD, KEPT_TAIL, Received
from core.messages.content import ContentItem
from core.messages.events import Event, TextDelta
from core.messages.message import Message, Usage
from core.runs.call_stages import stages_of, unpacked
from core.runs.ledger import ended_calls
from core.runs.log import LoggedEvent, ModelAsked, ModelCalled
from core.runs.resume import events_to_continue
from core.runs.rows import KEPT_KINDS, logged_of
from core.testing.model_server import ModelServer
from core.testing.script import Reply, refusal
from core.tools.from_function import tool
from tests.core.runs.conftest import Talk

pytestmark = pytest.mark.anyio

SESSIONS = 200
PICTURE = "data:image/png;base64," + "iVBORw0KGgo" * 40
SECRET = "sk-my-own-key-0123456789"


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


@dataclass
class Service:
    """What a service plays, and what it has counted of it."""

    chance: random.Random
    depth: int = 0
    asked: int = 0
    read: int = 0
    wrote: int = 0

    def __call__(self, question: dict[str, Any]) -> Reply:
        roll = self.chance.random()
        if roll < 0.12:
            return refusal(429, "Slow down.", retry_after="0")
        if roll < 0.17:
            return refusal(500, "Out of order.", retry_after="0")
        usage = (self.chance.randrange(1, 5_000), self.chance.randrange(1, 900))
        self.read, self.wrote = self.read + usage[0], self.wrote + usage[1]
        names = [one["function"]["name"] for one in question.get("tools") or ()]
        if roll < 0.4 and names and question["messages"][-1]["role"] != "tool":
            name = self.chance.choice(names)
            given = {"n": 4} if name == "double" else {"question": "Double 4."}
            return Reply(calls=[(name, given)], usage=usage)
        return Reply("It is eight.", reasoning="Hm." if roll > 0.9 else "", usage=usage)


def model_at(server: ModelServer, **more: Any) -> OpenAIModel:
    generate = {"max_retries": 1, "use_raw_api": True, "circuit_breaker": False, **more}
    return OpenAIModel({"model": "scripted", "base_url": server.base_url, "api_key": SECRET, "generate_cfg": generate})


@dataclass
class Session:
    """An agent that may sum up before it answers, calls a tool and another agent, and is named afterwards."""

    model: OpenAIModel
    sums_up: bool = False
    asked: list[list[Message]] = field(default_factory=list[list[Message]])

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        if self.sums_up:
            await summarize(messages, self.model, "en", 4_000)
        helper = FnCallAgent([double], self.model, name="Helper", description="Knows numbers.")
        agent = FnCallAgent([double, helper], self.model, name="Chief")
        async with aclosing(agent.stream(messages, **kwargs)) as events:
            async for event in events:
                yield event


async def lines(talk: Talk, run_id: str) -> list[ModelCalled]:
    return [one.event for one in logged_of(await talk.store.events(run_id)) if isinstance(one.event, ModelCalled)]


def added(calls: Sequence[ModelCalled]) -> Usage:
    usages = [one.usage for one in calls if one.usage is not None and not one.cached]
    return sum(usages, Usage())


async def test_the_lines_of_random_sessions_add_up_to_what_the_service_counted(talk: Talk) -> None:
    chance = random.Random(12)
    service = Service(chance)
    seen: set[str] = set()
    with ModelServer(service) as server:
        model = model_at(server)
        for number in range(SESSIONS):
            service.read = service.wrote = 0
            before = len(server.requests)
            talk.id = (await talk.talks.create()).id
            run = await talk.ask(Session(model, sums_up=chance.random() < 0.2), f"What is twice {number}?")
            await run.wait()
            if chance.random() < 0.3:
                with recorded_by(run.ledger):
                    await make_title("What is twice four?", "It is eight.", model, "en")
            await run.ledger.settled()
            calls = await lines(talk, run.id)
            assert sum(one.requests for one in calls) == len(server.requests) - before, number
            spent = added(calls)
            assert (spent.prompt_tokens, spent.completion_tokens) == (service.read, service.wrote), number
            assert not spent.estimated
            assert len({one.call_id for one in calls}) == len(calls)
            seen |= {one.purpose for one in calls} | {one.outcome for one in calls}
            seen |= {"2nd try"} if any(one.retries for one in calls) else set()
        await model.aclose()
    assert seen >= {"answer", "step", "agent", "summary", "title", "finished", "failed", "2nd try"}


async def test_a_line_says_what_for_how_long_and_what_went_wrong(talk: Talk) -> None:
    with ModelServer([refusal(429, "Slow down.", retry_after="0"), refusal(500, "The cable is out.")]) as server:
        run = await talk.ask(Session(model_at(server)), "What is twice 4?")
        assert await run.wait() == "error"
    (call,) = await lines(talk, run.id)
    assert (call.purpose, call.outcome, call.retries, call.requests) == ("answer", "failed", 1, 2)
    assert call.usage is None
    assert "The cable is out." in call.said
    assert call.first is None
    assert call.seconds > 0
    stages = unpacked((await talk.runs.of("alice").stages(run.id))[call.call_id])
    assert [one["status"] for one in stages["received"]] == [429, 500]
    assert "The cable is out." in stages["received"][1]["body"]["text"][0]


async def test_what_is_kept_is_what_went_over_the_wire(talk: Talk) -> None:
    with ModelServer(Reply("It is eight.", reasoning="Two times four.", usage=(12, 3))) as server:
        run = await talk.ask(Session(model_at(server)), "What is twice 4? 两倍是多少？")
        await run.wait()
        (asked,) = server.requests
    (call,) = await lines(talk, run.id)
    stages = unpacked((await talk.runs.of("alice").stages(run.id))[call.call_id])
    (sent,), (received,) = stages["sent"], stages["received"]
    assert json.loads("".join(sent["body"]["text"])) == asked.body
    assert sent["size"] == int(asked.headers["content-length"]) == len(sent["body"]["text"][0].encode())
    assert sent["address"] == f"{server.base_url}/chat/completions"
    events = "".join(received["body"]["text"])
    assert events.startswith("data: {")
    assert events.rstrip().endswith("[DONE]")
    assert len(events.encode()) == received["size"]
    thought, said = json.loads("".join(stages["parsed"]["body"]["text"]))
    assert (said["content"], thought["reasoning_content"]) == ("It is eight.", "Two times four.")
    given = json.loads("".join(stages["given"]["body"]["text"]))
    assert given["messages"][-1]["content"] == "What is twice 4? 两倍是多少？"
    assert {one["name"] for one in given["tools"]} == {"double", "Helper"}


async def test_keys_and_the_bytes_of_pictures_are_never_stored(talk: Talk) -> None:
    with ModelServer(Reply(f"Your key is {SECRET}.", usage=(1, 1))) as server:
        model = OpenAIModel(
            {
                "model": "scripted-vl",
                "base_url": server.base_url,
                "api_key": SECRET,
                "vision": True,
                "default_headers": {"X-Account": "account-zebra"},
                "generate_cfg": {"extra_query": {"token": "query-zebra"}},
            }
        )
        agent = FnCallAgent([], model)
        question = Message("user", [ContentItem(image=PICTURE), ContentItem(text=f"I have {SECRET}. What is it?")])
        run = await talk.runs.of("alice").start(talk.id, agent, user=question, parent_id=None, history=[question])
        await run.wait()
    (packed,) = (await talk.runs.of("alice").stages(run.id)).values()
    kept = json.dumps(unpacked(packed))
    assert SECRET not in kept
    assert "zebra" not in kept  # a number may be that of a port
    assert PICTURE[40:] not in kept
    assert f"({440 * 3 // 4} bytes)" in kept
    assert "account" in kept.lower()  # the name of the header stays


async def test_a_stopped_call_is_counted_by_us_and_says_so(talk: Talk) -> None:
    with ModelServer(Reply("It is eight and more.", hang_after=4)) as server:
        run = await talk.ask(Session(model_at(server)), "What is twice 4?")
        async for one in run.log.follow():
            if isinstance(one.event, TextDelta):
                break
        await run.stop()
    (call,) = await lines(talk, run.id)
    assert call.outcome == "stopped"
    assert call.requests == 1
    assert call.usage is not None
    assert call.usage.estimated
    assert call.usage.prompt_tokens > 0


async def test_a_reply_from_the_cache_costs_nothing_and_says_so(talk: Talk, tmp_path: Any) -> None:
    with ModelServer(Reply("It is eight.", usage=(12, 3))) as server:
        model = model_at(server, cache_dir=str(tmp_path / "cache"))
        await (await talk.ask(Session(model), "What is twice 4?")).wait()
        talk.id = (await talk.talks.create()).id
        run = await talk.ask(Session(model), "What is twice 4?")
        await run.wait()
        assert len(server.requests) == 1
    (call,) = await lines(talk, run.id)
    assert (call.cached, call.requests) == (True, 0)
    assert call.usage is not None
    assert call.usage.cost == 0


async def test_a_call_that_ends_after_its_reply_still_gets_its_line(talk: Talk) -> None:
    with ModelServer(Reply("It is eight.", usage=(12, 3), delay=0.1)) as server:
        model = model_at(server)

        class Beside(Session):
            async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
                self.task = asyncio.create_task(summarize(messages, self.model, "en", 4_000))
                yield TextDelta("At once.")

        agent = Beside(model)
        run = await talk.ask(agent, "What is twice 4?")
        assert await run.wait() == "complete"
        await agent.task
        await run.ledger.settled()
    (call,) = await lines(talk, run.id)
    assert (call.purpose, call.outcome) == ("summary", "finished")
    assert call.usage == Usage(prompt_tokens=12, completion_tokens=3, total_tokens=15)


async def test_lines_outlive_pruning_and_the_bytes_do_not(talk: Talk) -> None:
    with ModelServer(Reply("It is eight.", usage=(12, 3))) as server:
        run = await talk.ask(Session(model_at(server)), "What is twice 4?")
        await run.wait()
    assert await talk.runs.of("alice").stages(run.id)
    await talk.stores.runs.prune(2e10, KEPT_KINDS)
    assert await talk.runs.of("alice").stages(run.id) == {}
    reply = await talk.runs.of("alice").reply(await talk.last())
    (call,) = reply.model_calls
    assert call.usage is not None
    assert call.usage.prompt_tokens == 12
    assert not reply.under_way


def test_a_call_whose_process_died_is_a_line_and_a_continued_reply_does_not_take_it_over() -> None:
    asked = LoggedEvent(1, 0.1, ModelAsked("c1", "answer", "scripted"))
    (line,) = ended_calls([asked])
    assert isinstance(line.event, ModelCalled)
    assert (line.seq, line.event.call_id, line.event.outcome) == (2, "c1", "interrupted")
    assert ended_calls([asked, line]) == []
    said = LoggedEvent(3, 0.2, TextDelta("Half"))
    assert [one.event for one in events_to_continue([asked, line, said])] == [TextDelta("Half")]


def test_of_a_long_reply_the_beginning_and_the_end_are_kept() -> None:
    received = Received()
    for number in range(400):
        received.add(b"%04d" % number * 256)
    assert received.size == 400 * 1024
    assert len(received.head) == KEPT_HEAD
    assert len(received.tail) == KEPT_TAIL
    assert received.head.startswith(b"0000")
    assert received.tail.endswith(b"0399")


async def test_a_long_request_says_where_it_was_cut(talk: Talk) -> None:
    told: list[LedgerCall] = []

    class Keeps:
        def began(self, call: LedgerCall, spoke: Any) -> None:
            pass

        def reads(self, call: LedgerCall, so_far: Any) -> None:
            pass

        def ended(self, call: LedgerCall) -> None:
            told.append(call)

    with ModelServer(Reply("It is long.", usage=(1, 1))) as server, recorded_by(Keeps()):
        await model_at(server, max_input_tokens=0).achat([Message("user", "word " * 100_000)])
    (sent,) = stages_of(told[0])["sent"]
    begin, end = cast("list[str]", sent["body"]["text"])
    assert len(begin) + len(end) + sent["body"]["cut"] == sent["size"] > 500_000
    assert begin.startswith(('{"messages"', '{"model"'))
    assert end.endswith("}")
