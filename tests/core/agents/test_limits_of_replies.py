"""What a reply may use: what is looked at when; a limit that cannot hold is refused before anything is asked."""

from __future__ import annotations

from typing import Any

import pytest

from core import BasicAgent, FnCallAgent, Limits, tool
from core.agents.tools import AgentTool
from core.errors import LimitReachedError, SettingsError
from core.llm.base import BaseChatModel
from core.llm.request import ChatRequest, Stream
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.testing.model_server import ModelServer
from core.testing.script import Reply as Said
from core.testing.scripted_model import ScriptedModel

HOSTED: dict[str, Any] = {"model": "gpt-4o", "api_key": "sk-none"}
UNKNOWN: dict[str, Any] = {"model": "m", "model_server": "http://127.0.0.1:9/v1", "api_key": "none"}


def noting() -> tuple[Any, list[str]]:
    noted: list[str] = []

    @tool
    def note(word: str) -> str:
        """Note a word."""
        noted.append(word)
        return "noted"

    return note, noted


def test_what_a_model_asked_for_beyond_a_limit_is_not_done():
    note, noted = noting()
    model = ScriptedModel(Said(calls=[("note", {"word": "tea"})], usage=(20, 10)), Said("Done.", usage=(20, 10)))
    with pytest.raises(LimitReachedError, match="The reply has taken 30 tokens of 20") as error:
        FnCallAgent([note], model).ask("Note tea.", limits=Limits(tokens=20))
    assert (noted, len(model.requests)) == ([], 1)
    assert error.value.reply.usage.total_tokens == 30


def test_within_its_limit_it_is_done():
    note, noted = noting()
    model = ScriptedModel(Said(calls=[("note", {"word": "tea"})], usage=(20, 10)), Said("Done.", usage=(20, 10)))
    assert FnCallAgent([note], model).ask("Note tea.", limits=Limits(tokens=31)).text == "Done."
    assert noted == ["tea"]


def test_an_answer_that_went_beyond_a_limit_is_the_reply_where_nothing_is_left_to_do():
    reply = BasicAgent(llm=ScriptedModel(Said("Done.", usage=(20, 10)))).ask("Go", limits=Limits(tokens=20))
    assert (reply.text, reply.usage.total_tokens) == ("Done.", 30)


def test_each_reply_has_its_limit_to_itself():
    agent, limits = BasicAgent(llm=ScriptedModel(Said("Done.", usage=(8, 8)))), Limits(tokens=20)
    assert [agent.ask("Go", limits=limits).text for _ in range(3)] == ["Done."] * 3


def test_a_limit_of_cost_is_refused_where_no_price_is_known_and_no_model_is_asked():
    with ModelServer([Said("Done.")]) as server:
        agent = BasicAgent(llm={"model": "m", "model_server": server.base_url, "api_key": "any"})
        with pytest.raises(SettingsError, match=r"The price of 'm' is not known, .*Write Limits\(tokens="):
            agent.ask("Go", limits=Limits(cost=0.1))
        assert not server.requests
        assert agent.ask("Go", limits=Limits(tokens=1_000)).text == "Done."


@pytest.mark.parametrize("llm", [UNKNOWN, [HOSTED, UNKNOWN], [UNKNOWN, HOSTED]], ids=["one", "second", "first"])
def test_a_limit_of_cost_counts_the_models_of_agents_that_are_called_and_of_chains(llm: Any):
    inner = FnCallAgent([], llm, name="inner", description="Knows.")
    for agent in (inner, FnCallAgent([AgentTool(inner)], ScriptedModel("Done."))):
        with pytest.raises(SettingsError, match="The price of 'm' is not known"):
            agent.events("Go", limits=Limits(cost=0.1))


def test_a_limit_of_cost_holds_for_listed_models_models_here_and_models_that_tell_their_cost():
    class Own(BaseChatModel):
        async def _stream(self, request: ChatRequest) -> Stream:
            yield MessageStarted()
            yield TextDelta("Done.")
            yield MessageFinished("stop")

    for llm in (HOSTED, ScriptedModel("Done."), Own({"model": "own"})):
        BasicAgent(llm=llm).events("Go", limits=Limits(cost=0.1))
