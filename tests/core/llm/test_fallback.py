"""A chain of models: the next answers where one cannot, and never after anything was shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing

import pytest

from core.agents.basic import BasicAgent
from core.bridge.sync import run
from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError, SettingsError
from core.llm.fallback import FallbackModel, trouble_of
from core.llm.ledger import LedgerCall, recorded_by
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import USER, Message
from core.testing.model_server import ModelServer
from core.testing.script import Reply, refusal

pytestmark = pytest.mark.anyio

ASKED = ChatRequest((Message(USER, "q"),))


class Two:
    """Two services, and a chain of a model of each."""

    def __init__(self, first: ModelServer, second: ModelServer) -> None:
        self.first, self.second = first, second
        self.made: list[FallbackModel] = []

    def chain(self, **cfg) -> FallbackModel:
        first = {"model": "a", "model_type": "openai", "base_url": self.first.base_url, "api_key": "k"}
        second = {
            "model": "claude-b",
            "model_type": "anthropic",
            "base_url": f"http://127.0.0.1:{self.second.port}",
            "api_key": "k",
        }
        made = get_chat_model({"model_type": "fallback", "models": [first, second], **cfg})
        assert isinstance(made, FallbackModel)
        self.made.append(made)
        return made


@pytest.fixture
def two() -> Iterator[Two]:
    with ModelServer([]) as first, ModelServer([]) as second:
        both = Two(first, second)
        yield both
        for model in both.made:
            run(model.aclose())


async def events_of(model: FallbackModel) -> list:
    async with aclosing(model.stream(ASKED)) as events:
        return [event async for event in events]


async def test_the_first_answers_where_it_can(two):
    two.first.add(Reply(text="one"))
    events = await events_of(two.chain())
    assert events[-1].model.startswith("a ")
    assert two.second.requests == []


@pytest.mark.parametrize("trouble", [refusal(429, "Slow down."), refusal(503, "Too busy."), refusal(500, "Broken.")])
async def test_the_next_answers_where_one_is_busy_or_broken(two, trouble):
    two.first.add(trouble)
    two.second.add(Reply(text="two"))
    events = await events_of(two.chain())
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "two"
    assert events[-1].model.startswith("claude-b")
    assert [type(event) for event in events].count(MessageStarted) == 1
    assert [type(event) for event in events].count(MessageFinished) == 1


async def test_the_next_answers_where_one_cannot_be_reached(two):
    two.first.stop()
    two.second.add(Reply(text="two"))
    assert (await events_of(two.chain()))[-1].model.startswith("claude-b")


async def test_nobody_else_is_asked_once_anything_was_shown(two):
    two.first.add(Reply(text="one two three four", cut_after=3))
    two.second.add(Reply(text="two"))
    with pytest.raises(ModelMisbehavedError):
        await events_of(two.chain())
    assert two.second.requests == []


async def test_what_is_refused_stays_refused_unless_the_chain_says_otherwise(two):
    two.first.add(refusal(400, "That field is wrong."), refusal(400, "That field is wrong."))
    two.second.add(Reply(text="two"))
    with pytest.raises(ModelRefusedError):
        await events_of(two.chain())
    assert (await events_of(two.chain(on=["refused"])))[-1].model.startswith("claude-b")


async def test_a_chain_may_be_told_to_go_on_for_some_troubles_alone(two):
    two.first.add(refusal(500, "Broken."))
    with pytest.raises(ModelUnavailableError):
        await events_of(two.chain(on="busy"))
    assert two.second.requests == []


async def test_where_nobody_answers_it_says_who_was_asked(two):
    two.first.add(refusal(503, "Too busy."))
    two.second.add(refusal(529, "Overloaded"))
    with pytest.raises(ModelServiceError) as caught:
        await events_of(two.chain())
    assert caught.value.code == "529"
    assert caught.value.extra is not None
    assert len(caught.value.extra["tried"]) == 2


async def test_of_a_chain_within_a_chain_each_model_that_was_asked_is_named_and_so_is_the_one_that_answers(two):
    usual = {"model_type": "openai", "base_url": two.first.base_url, "api_key": "k", "generate_cfg": {"max_retries": 0}}
    inner = two.chain(generate_cfg={"max_retries": 0})
    whole = get_chat_model([inner, {"model": "last", **usual}])
    assert isinstance(whole, FallbackModel)
    two.made.append(whole)
    two.first.add(refusal(503, "Too busy."), refusal(503, "Busy, too."))
    two.second.add(refusal(529, "Overloaded"))
    with pytest.raises(ModelServiceError) as caught:
        await events_of(whole)
    labels = [model.label for model in (*inner.models, whole.models[1])]
    assert caught.value.extra is not None
    assert caught.value.extra["tried"] == labels
    two.first.add(refusal(503, "Too busy."))
    two.second.add(Reply(text="Hello."))
    finished = next(event for event in await events_of(whole) if isinstance(event, MessageFinished))
    assert finished.model == labels[1]


async def test_all_of_a_chain_are_closed_also_where_closing_one_fails(two, monkeypatch):
    chain, closed = two.chain(), []

    def closing(name, error):
        async def close():
            closed.append(name)
            if error:
                raise error

        return close

    for at, (name, error) in enumerate([("a", OSError("gone")), ("b", None)]):
        monkeypatch.setattr(chain.models[at], "aclose", closing(name, error))
    with pytest.raises(OSError, match="gone"):
        await chain.aclose()
    assert closed == ["a", "b"]
    monkeypatch.undo()


async def test_every_model_that_was_asked_has_its_line_in_the_account(two):
    class Ledger(list):
        def began(self, call: LedgerCall, spoke) -> None: ...
        def reads(self, call: LedgerCall, so_far) -> None: ...
        def ended(self, call: LedgerCall) -> None:
            self.append((call.outcome, call.wire.exchanges[-1].status))

    two.first.add(refusal(503, "Too busy."))
    two.second.add(Reply(text="two"))
    ledger = Ledger()
    with recorded_by(ledger):
        await events_of(two.chain())
    assert [status for _, status in ledger] == [503, 200]


def test_a_list_of_models_is_a_chain_and_the_reply_says_who_answered(two):
    two.first.add(refusal(429, "Slow down."))
    two.second.add(Reply(text="two", usage=(5, 7)))
    chain = two.chain()
    agent = BasicAgent(llm=list(chain.models))
    assert isinstance(agent.llm, FallbackModel)
    reply = agent.ask("q")
    assert reply.text == "two"
    assert reply.usage.total_tokens == 12
    assert [name.partition(" ")[0] for name in reply.models] == ["claude-b"]


async def test_how_a_chain_writes_goes_to_each_of_its_models(two):
    two.first.add(refusal(503, "Too busy."))
    two.second.add(Reply(text="two"))
    await events_of(two.chain(generate_cfg={"max_tokens": 33}))
    assert two.first.requests[-1].body["max_tokens"] == two.second.requests[-1].body["max_tokens"] == 33


def test_what_is_no_chain_is_said_to_be_none():
    with pytest.raises(SettingsError, match="at least one"):
        get_chat_model([])
    with pytest.raises(SettingsError, match="models cannot be"):
        get_chat_model({"model_type": "fallback", "models": "gpt-5-mini"})
    with pytest.raises(SettingsError, match="no setting 'moderation'"):
        get_chat_model({"model_type": "fallback", "models": ["gpt-5-mini"], "moderation": len})
    with pytest.raises(SettingsError, match="on cannot have 'sometimes'"):
        get_chat_model({"model_type": "fallback", "models": ["gpt-5-mini"], "on": ["sometimes"]})


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (ModelServiceError(None, "429", "x"), "busy"),
        (ModelServiceError(None, "502", "x"), "server"),
        (ModelRefusedError(None, "401", "x", key="model_key_wrong"), "key"),
        (ModelServiceError(OSError()), "connection"),
    ],
)
def test_an_error_tells_what_the_trouble_is(error, trouble):
    assert trouble_of(error) == trouble
