"""`ask`: a question, and the reply as one value made of the events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core import Limits, Message, Reply, ToolResult, fold, tool
from core.agents.base import Agent
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.reply import afold
from core.errors import LimitReachedError, SettingsError
from core.rag.document import Passage
from core.testing.model_server import ModelServer
from core.testing.script import Reply as Said
from core.testing.scripted_model import ScriptedModel

PAGE = Passage("Tea is ready after four minutes.", 1.0, "tea.pdf", "d1", 3, ((1.0, 2.0, 3.0, 4.0),))


@tool
def look(word: str) -> ToolResult:
    """Look it up."""
    row = {**PAGE.as_dict(), "number": 1}
    return ToolResult(f"[1] {PAGE.text}", passages=(row,), data={"word": word})


def reader(*turns: Any) -> FnCallAgent:
    return FnCallAgent([look], ScriptedModel(*turns))


def test_a_reply_has_text_messages_calls_passages_citations_claims_usage_and_log():
    asks = Said(calls=[("look", {"word": "tea"})], usage=(10, 2))
    says = Said("Tea is ready after four minutes [1].", reasoning="Hm.", usage=(20, 5))
    reply = reader(asks, says).ask("When is tea ready?")
    assert (reply.text, reply.output, str(reply)) == ("Tea is ready after four minutes [1].",) * 3
    assert reply.calls[0].name == "look"
    assert (reply.calls[0].arguments, reply.calls[0].data) == ({"word": "tea"}, {"word": "tea"})
    assert reply.passages == [PAGE]
    cited = reply.citations[0]
    assert (cited.mark, cited.document, cited.page, cited.rectangles) == (1, "tea.pdf", 3, PAGE.rectangles)
    assert cited.sentence == "Tea is ready after four minutes"
    assert [claim.verdict for claim in reply.claims] == ["supported"]
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (30, 7)
    assert (reply.stop_reason, reply.question, reply.reasoning) == ("stop", "When is tea ready?", "Hm.")
    assert [one.seq for one in reply.log] == list(range(1, len(reply.log) + 1))


def test_the_log_of_a_reply_folds_to_the_same_reply():
    reply = reader(Said(calls=[("look", {"word": "tea"})]), "Four minutes.").ask("When?")
    again = fold(reply.log, reply.asked)
    assert (again.messages, again.usage, again.stop_reason) == (reply.messages, reply.usage, reply.stop_reason)
    assert fold([one.event for one in reply.log]).text == "Four minutes."


@pytest.mark.anyio
async def test_events_come_as_they_happen_and_fold():
    agent = BasicAgent(llm=ScriptedModel("Good day."))
    seen = [event async for event in agent.events("Hello?")]
    assert [event.kind for event in seen] == ["message_started", "text_delta", "text_delta", "message_finished"]
    assert (await afold(agent.events("Hello?"))).text == "Good day."
    assert (await agent.aask("Hello?")).text == "Good day."


def test_what_is_no_event_is_no_reply():
    with pytest.raises(TypeError, match=r"events\[0\] must be an event, not 'Hello'"):
        fold(["Hello"])  # type: ignore[list-item]


def test_a_reply_goes_on_from_an_earlier_one():
    model = ScriptedModel("Ann.", "You are Ann.")
    agent = BasicAgent(llm=model)
    first = agent.ask("I am Ann.")
    second = agent.ask("Who am I?", history=first)
    assert [one.content for one in second.history] == ["I am Ann.", "Ann.", "Who am I?", "You are Ann."]
    assert [one.content for one in model.requests[1].messages] == ["I am Ann.", "Ann.", "Who am I?"]


def test_an_agent_with_a_step_of_qwen_agents_answers_too():
    class Echo(Agent):
        def _run(self, messages: list[Message], lang: str = "en") -> Iterator[list[Message]]:  # type: ignore[override]
            yield [Message("assistant", messages[-1].get_text_content().upper())]

    assert Echo().ask("hello").text == "HELLO"
    assert Echo(llm=ScriptedModel("4")).ask("not a number", output_type=int).output == 4


def test_files_belong_to_the_question(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    model = ScriptedModel("Yes.")
    BasicAgent(llm=model).ask("Look.", files=[tmp_path / "a.pdf"])
    assert [item.type for item in model.requests[0].messages[-1].items][:1] == ["text"]
    assert "a.pdf" in str(model.requests[0].messages[-1])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"output": int}, "A reply of BasicAgent has no argument 'output'. Did you mean 'output_type'?"),
        (
            {"response_format": int},
            "A reply of BasicAgent has no argument 'response_format'. Did you mean 'output_type'?",
        ),
        ({"usage_limits": 3}, "A reply of BasicAgent has no argument 'usage_limits'. Did you mean 'limits'?"),
        ({"message_history": []}, "A reply of BasicAgent has no argument 'message_history'. Did you mean 'history'?"),
        ({"limits": 3}, "limits must be a Limits, not 3. Write limits=Limits(calls=5)."),
        ({"files": "a.pdf"}, "files must be a list of paths and addresses, not 'a.pdf'. Write files=['a.pdf']."),
        ({"output_retries": -1}, "output_retries must be 0 to 20, as a whole number, not -1. Write output_retries=2."),
        ({"approve": True}, "A reply of BasicAgent has no argument 'approve'. Did you mean 'approval'?"),
    ],
)
def test_a_wrong_argument_is_one_sentence_that_says_what_to_write(wrong: dict[str, Any], sentence: str):
    with pytest.raises(SettingsError) as error:
        BasicAgent(llm=ScriptedModel("Yes.")).ask("Hello?", **wrong)
    assert str(error.value) == sentence


@pytest.mark.parametrize("wrong", [{"calls": 0}, {"tokens": 1.5}, {"cost": "much"}, {"seconds": True}])
def test_a_limit_is_a_number_above_nothing(wrong: dict[str, Any]):
    name = next(iter(wrong))
    with pytest.raises(SettingsError, match=rf"^{name} of Limits must be a .*Write Limits\({name}="):
        Limits(**wrong)


@pytest.mark.parametrize(("limits", "key"), [(Limits(calls=1), "call_limit"), (Limits(tokens=10), "token_limit")])
def test_a_reply_that_reaches_a_limit_ends_with_what_there_is(limits: Limits, key: str):
    agent = reader(Said("Wait.", calls=[("look", {"word": "tea"})], usage=(10, 2)), "Never said.")
    with pytest.raises(LimitReachedError) as error:
        agent.ask("When?", limits=limits)
    assert error.value.words_key == key
    reply = error.value.reply
    assert isinstance(reply, Reply)
    assert (reply.calls[0].name, reply.usage.total_tokens) == ("look", 12)


def test_a_reply_that_takes_too_long_ends_in_time():
    with pytest.raises(LimitReachedError, match=r"taken its 0\.05 seconds") as error:
        BasicAgent(llm=ScriptedModel(Said("Hello", hang=True))).ask("Hello?", limits=Limits(seconds=0.05))
    assert error.value.words_key == "time_limit"


def test_a_service_of_openais_is_asked_once_for_a_reply():
    with ModelServer([Said("Good day.", usage=(5, 3))]) as server:
        llm = {"model": "scripted", "model_server": server.base_url, "api_key": "any"}
        reply = BasicAgent(llm=llm).ask("Hello?")
        assert (reply.text, reply.usage.total_tokens, len(server.requests)) == ("Good day.", 8, 1)
