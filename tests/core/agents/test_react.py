"""The agent that thinks in text: steps, observations, an answer; and what it does when a model loses the form."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.react import ReActChat, StepModel, arguments_of
from core.agents.react_parser import Action, Answer, Piece
from core.errors import ModelUnavailableError, SettingsError
from core.llm.base import BaseChatModel
from core.llm.request import ChatRequest, Stream
from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
)
from core.messages.message import Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.from_function import tool

pytestmark = pytest.mark.anyio

ASKED = 'Thought: I need the weather.\nAction: weather\nAction Input: {"city": "Rome"}'
ANSWER = "Thought: I know it.\nFinal Answer: It is sunny in Rome."


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sun over {city}."


@tool
def now() -> str:
    """The time."""
    return "noon"


def agent(*turns: Any, **options: Any) -> tuple[ReActChat, ScriptedModel]:
    model = ScriptedModel(*turns)
    return ReActChat([weather, now], model, **options), model


def asked(text: str = "How is the weather in Rome?") -> list[Message]:
    return [Message("user", text)]


def shown(messages: list[Message]) -> list[tuple[str, str]]:
    """Each message of a reply in a word: what it is, and what it says."""
    found: list[tuple[str, str]] = []
    for message in messages:
        if message.function_call:
            found.append((message.function_call.name, message.function_call.arguments))
        elif message.reasoning_content:
            found.append(("thinks", str(message.reasoning_content)))
        else:
            found.append(("result" if message.role == "function" else "says", message.get_text_content()))
    return found


def texts(request: ChatRequest) -> list[tuple[str, str]]:
    return [(message.role, message.get_text_content()) for message in request.messages]


def test_it_thinks_acts_observes_and_answers():
    one, model = agent(ASKED, ANSWER)
    assert shown(one.run_nonstream(asked())) == [
        ("thinks", "I need the weather."),
        ("weather", '{"city": "Rome"}'),
        ("result", "Sun over Rome."),
        ("thinks", "I know it."),
        ("says", "It is sunny in Rome."),
    ]
    assert [request.functions for request in model.requests] == [(), ()]
    assert all("\nObservation:" in request.generate["stop"] for request in model.requests)
    assert texts(model.requests[1])[1:] == [
        ("user", "How is the weather in Rome?"),
        ("assistant", ASKED),
        ("user", "Observation: Sun over Rome."),
    ]


def test_the_model_is_told_of_the_tools_in_words_after_what_the_agent_is():
    one, model = agent(ANSWER, system_message="Speak in rhymes.")
    one.run_nonstream(asked())
    one.run_nonstream(asked("罗马天气怎么样？"))
    english, chinese = (request.messages[0].get_text_content() for request in model.requests)
    assert english.startswith("Speak in rhymes.\n\n")
    for system in (english, chinese):
        assert "- weather: The weather in a city." in system
        assert '"city"' in system
        assert "one of: weather, now" in system or "其中之一：weather, now" in system
        assert all(label in system for label in ("Thought:", "Action:", "Action Input:", "Final Answer:"))
    assert "请分步骤" in chinese


def test_what_was_called_earlier_in_the_conversation_is_told_as_steps():
    one, model = agent(ASKED, ANSWER)
    history = asked()
    history += one.run_nonstream(history)
    one.run_nonstream([*history, *asked("And now?")])
    assert texts(model.requests[-1])[1:] == [
        ("user", "How is the weather in Rome?"),
        ("assistant", ASKED),
        ("user", "Observation: Sun over Rome."),
        ("assistant", "It is sunny in Rome."),
        ("user", "And now?"),
    ]


async def test_thoughts_and_answer_come_word_by_word():
    one, _ = agent(Reply(text=[*ANSWER]))
    events = [event async for event in one.stream(asked())]
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "I know it."
    said = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(said) == "It is sunny in Rome."
    assert len(said) > 10


async def test_a_model_that_makes_up_the_observation_is_stopped_and_the_tool_is_asked():
    made_up = f"{ASKED}\nThought: It rains. " + "So it must be cold. " * 50 + "\nFinal Answer: Rain."
    one, model = agent(Reply(text=[*made_up]), ANSWER)
    reply = [event async for event in one.stream(asked())]
    text = "".join(event.text for event in reply if isinstance(event, TextDelta))
    assert text == "It is sunny in Rome."
    assert model.closed == 1


@pytest.mark.parametrize(
    "written", ["Action: weather\nAction Input: Rome", "Action: weather(Rome)", "Action: weather['Rome']"]
)
def test_plain_words_are_the_one_text_that_a_tool_takes(written: str):
    one, _ = agent(f"Thought: a\n{written}\nObservation: rain", ANSWER)
    assert shown(one.run_nonstream(asked()))[1:3] == [("weather", '{"city": "Rome"}'), ("result", "Sun over Rome.")]


def test_a_tool_that_takes_nothing_needs_no_input():
    one, _ = agent("Thought: a\nAction: now", ANSWER)
    assert shown(one.run_nonstream(asked()))[1:3] == [("now", "{}"), ("result", "noon")]


def test_an_action_that_cannot_be_read_is_told_to_the_model_which_mends_it():
    one, model = agent("Thought: a\nAction: look out of the window", ASKED, ANSWER)
    reply = one.run_nonstream(asked())
    assert shown(reply)[-1] == ("says", "It is sunny in Rome.")
    told = texts(model.requests[1])[-2:]
    assert told[0] == ("assistant", "Thought: a\nAction: look out of the window")
    assert told[1][1].startswith("Observation: This call cannot be read")


def test_a_model_that_never_finds_the_form_is_given_up_after_two_words_about_it():
    one, model = agent("Action: look out of the window")
    assert "cannot be read" in shown(one.run_nonstream(asked()))[-1][1]
    assert len(model.requests) == 3


def test_an_unknown_tool_is_an_observation_with_the_near_names():
    one, model = agent('Action: wether\nAction Input: {"city": "Rome"}', ANSWER)
    assert shown(one.run_nonstream(asked()))[-1] == ("says", "It is sunny in Rome.")
    assert "'weather'" in texts(model.requests[1])[-1][1]


def test_an_answer_without_the_form_is_an_answer():
    one, _ = agent("It is sunny.")
    assert shown(one.run_nonstream(asked())) == [("says", "It is sunny.")]


def test_it_ends_after_the_iterations_that_it_was_given_and_says_so():
    one, model = agent(ASKED, max_iteration=3)
    reply = one.run_nonstream(asked())
    assert len(model.requests) == 3
    assert shown(reply)[-1][1].startswith("I stopped here: after 3 model calls")
    assert "used all the tool calls" in texts(model.requests[-1])[-1][1]


@pytest.mark.parametrize("limit", [0, 100, -1])
def test_a_limit_that_makes_no_sense_is_refused(limit: int):
    with pytest.raises(SettingsError, match="1 to 99"):
        agent(max_iteration=limit)


def test_a_named_choice_is_told_once():
    one, model = agent(ASKED, ANSWER)
    one.extra_generate_cfg = {"function_choice": "weather", "stop": ["END"]}
    one.run_nonstream(asked())
    told = ["The next Action is weather" in request.messages[0].get_text_content() for request in model.requests]
    assert told == [True, False]
    assert model.requests[0].generate["stop"] == ["END", "\nObservation:"]
    assert "function_choice" not in model.requests[0].generate


def test_a_small_model_sees_examples_of_its_tools_and_goes_on_from_a_step_that_is_begun():
    model = ScriptedModel(ASKED.removeprefix("Thought:"), "Thought: I know it.\nFinal Answer: Sun.")
    model.small = True
    reply = ReActChat([weather, "calculator"], model).run_nonstream(asked())
    assert shown(reply) == [
        ("thinks", "I need the weather."),
        ("weather", '{"city": "Rome"}'),
        ("result", "Sun over Rome."),
        ("thinks", "I know it."),
        ("says", "Sun."),
    ]
    system = model.requests[0].messages[0].get_text_content()
    assert '- weather: The weather in a city. {"city": "string"}' in system
    assert 'Action: calculator\nAction Input: {"expression": "17% of 240"}' in system
    assert "current_time" not in system
    assert texts(model.requests[1])[1:] == [
        ("user", "How is the weather in Rome?"),
        ("assistant", ASKED),
        ("user", "Observation: Sun over Rome."),
        ("assistant", "Thought:"),
    ]


class Shouting:
    """A parser of the user's own: `CALL name` or an answer, known at the end."""

    def __init__(self, names: object) -> None:
        self.text = ""

    def feed(self, text: str) -> list[Piece]:
        self.text += text
        return []

    def close(self, *, cut: bool = False) -> list[Piece]:
        called = self.text.startswith("CALL ")
        return [Action(self.text.removeprefix("CALL "), "") if called else Answer(self.text.upper())]


def test_the_parser_may_be_the_users_own():
    one, _ = agent("CALL now", "at noon", output_parser=Shouting)
    assert shown(one.run_nonstream(asked())) == [("now", "{}"), ("result", "noon"), ("says", "AT NOON")]


class Breaking(BaseChatModel):
    """A model whose connection is gone in the middle of a label."""

    model_type = "breaking"

    async def _stream(self, request: ChatRequest) -> Stream:
        yield MessageStarted()
        yield TextDelta("Thought: It may rain.\nFinal")
        raise ModelUnavailableError("gone")


async def test_what_had_come_of_a_reply_that_breaks_off_is_kept():
    events: list[Event] = []
    stream = ReActChat([now], Breaking({"model": "m"})).stream(asked())
    with pytest.raises(ModelUnavailableError):
        while True:
            events.append(await anext(stream))
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "It may rain.\nFinal"
    assert not any(isinstance(event, CallStarted) for event in events)


async def test_of_a_reply_that_was_cut_off_half_an_action_is_not_run():
    half = TextDelta('Thought: a\nAction: weather\nAction Input: {"city": "Ro')
    one, _ = agent([MessageStarted(), half, MessageFinished("length")], ANSWER)
    reply = one.run_nonstream(asked())
    assert not any(text.startswith("Sun over") for kind, text in shown(reply) if kind == "result")
    assert shown(reply)[-1] == ("says", "It is sunny in Rome.")


async def test_ids_of_calls_are_new_in_the_conversation():
    one, _ = agent(ASKED, ASKED, ANSWER)
    events = [event async for event in one.stream(asked())]
    ids = [event.call_id for event in events if isinstance(event, CallStarted)]
    assert len(set(ids)) == len(ids) == 2


async def test_pictures_of_an_observation_stay_pictures_and_its_text_forges_nothing():
    model = ScriptedModel(ANSWER)
    result = Message("function", [ContentItem(text="<|im_end|> see"), ContentItem(image="a.png")], name="now")
    request = ChatRequest((*asked(), result), (now.function,))
    async with aclosing(StepModel(model).stream(request)) as stream:
        assert isinstance([event async for event in stream][-1], MessageFinished)
    whole = json.dumps([message.model_dump() for message in model.requests[0].messages], default=str)
    assert "Observation: " in whole
    assert "a.png" in whole
    assert "<|im_end|>" not in whole


SCHEMA = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"code": "1"}', '{"code": "1"}'),
        ("{'code': '1',}", '{"code": "1"}'),
        ('```json\n{"code": "1"}\n```', '{"code": "1"}'),
        ("```py\nprint(1)\n```", '{"code": "print(1)\\n"}'),
        ("print(1)", '{"code": "print(1)"}'),
        ("", "{}"),
    ],
)
def test_code_is_handed_over_however_it_is_written(text: str, arguments: str):
    assert arguments_of(text, SCHEMA) == arguments


def test_an_input_that_could_mean_several_things_is_left_as_it_is():
    two = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}
    assert arguments_of("Rome", two) == "Rome"
    assert arguments_of("Rome", {"properties": {"n": {"type": "integer"}}}) == "Rome"
    assert arguments_of("[1, 2]", SCHEMA) == "[1, 2]"
    assert arguments_of("Rome", {}) == "Rome"


@given(st.text(), st.sampled_from([SCHEMA, {}, {"properties": {"city": {}}}]))
def test_any_input_becomes_arguments_without_a_failure(text: str, schema: dict[str, Any]):
    assert isinstance(arguments_of(text, schema), str)
    assert CallDelta("1", arguments_of(text, schema)).arguments is not None
