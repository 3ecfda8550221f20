"""What every agent promises: parity of dicts and messages, snapshots, system messages, Qwen-Agent's hook."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from core.agents.base import Agent
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.conversation import language_of, prepend_system
from core.errors import SettingsError, UnknownNameError
from core.messages.content import ContentItem
from core.messages.message import FunctionCall, Message
from core.messages.transcript import Transcript
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.base import BaseTool
from core.tools.builtin.calculator import Calculator
from core.tools.from_function import tool


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def agent_with_call(**options: Any) -> FnCallAgent:
    return FnCallAgent([double], ScriptedModel(Reply(calls=[("double", {"n": 21})]), "It is 42."), **options)


def test_dicts_in_dicts_out():
    reply = agent_with_call().run_nonstream([{"role": "user", "content": "hi"}])
    assert reply[0]["function_call"] == {"name": "double", "arguments": '{"n": 21}'}
    assert [(m["role"], m["content"]) for m in reply] == [
        ("assistant", ""),
        ("function", "42"),
        ("assistant", "It is 42."),
    ]
    assert all(type(m) is dict for m in reply)


def test_any_message_in_messages_out():
    mixed: list[Message | dict[str, Any]] = [{"role": "system", "content": "be kind"}, Message("user", "hi")]
    assert all(isinstance(m, Message) for m in agent_with_call().run_nonstream(mixed))
    assert all(isinstance(m, Message) for m in list(agent_with_call().run(mixed))[-1])


def test_snapshots_are_cumulative_and_those_given_never_change():
    model = ScriptedModel(Reply(text="one two three four five", pace=0.06))
    texts: list[str] = []
    kept: list[list[Message]] = []
    for reply in BasicAgent(llm=model).run([Message("user", "count")]):
        texts.append(reply[-1].get_text_content())
        kept.append(reply)
    assert texts[-1] == "one two three four five"
    assert len(texts) > 2
    assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
    assert [reply[-1].get_text_content() for reply in kept] == texts


def test_the_last_snapshot_is_the_whole_reply():
    streamed = list(agent_with_call().run([Message("user", "hi")]))[-1]
    assert [str(m.content) for m in streamed] == [
        str(m.content) for m in agent_with_call().run_nonstream([Message("user", "hi")])
    ]


def test_the_callers_list_and_messages_stay_as_they_are():
    messages = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}]
    agent_with_call(system_message="You count.").run_nonstream(messages)
    assert messages == [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}]
    own = [Message("system", [ContentItem(text="be kind")]), Message("user", "hi")]
    agent_with_call(system_message="You count.").run_nonstream(own)
    assert own[0].content == [ContentItem(text="be kind")]
    assert len(own) == 2


def test_closing_the_iterator_stops_the_model():
    model = ScriptedModel(Reply(text="one two three", pace=0.05))
    running = BasicAgent(llm=model).run([Message("user", "hi")])
    next(running)
    running.close()
    assert model.closed == 1


@pytest.mark.parametrize(
    ("conversation", "content"),
    [
        ([Message("user", "hi")], "You count."),
        ([Message("system", "be kind"), Message("user", "hi")], "You count.\n\nbe kind"),
    ],
)
def test_the_system_message_comes_first_and_keeps_the_conversations_own(conversation: list[Message], content: str):
    model = ScriptedModel("ok")
    BasicAgent(llm=model, system_message="You count.").run_nonstream(conversation)
    assert model.requests[0].messages[0].role == "system"
    assert model.requests[0].messages[0].content == content
    assert [m.role for m in model.requests[0].messages] == ["system", "user"]


def test_a_system_message_of_items_keeps_them():
    items = prepend_system([Message("system", [ContentItem(text="be kind"), ContentItem(image="x.png")])], "You count.")
    assert items[0].content == [
        ContentItem(text="You count.\n\n"),
        ContentItem(text="be kind"),
        ContentItem(image="x.png"),
    ]


def test_tools_are_given_by_name_dict_instance_class_and_function():
    class Mine(BaseTool):
        name = "mine"

    def plain(x: int) -> int:
        """Plain."""
        return x

    agent = Agent(
        ["calculator", {"name": "current_time", "timeout": 3}, Calculator({"timeout": 2}), Mine, double, plain]
    )
    assert list(agent.function_map) == ["calculator", "current_time", "mine", "double", "plain"]
    assert agent.function_map["calculator"].timeout == 2
    assert agent.function_map["current_time"].timeout == 3


def test_a_wrong_tool_is_told_at_once():
    with pytest.raises(UnknownNameError, match="Did you mean 'calculator'"):
        Agent(["calculater"])
    with pytest.raises(SettingsError, match="needs its name"):
        Agent([{"timeout": 3}])
    with pytest.raises(SettingsError, match="This is no tool: 3"):
        Agent([3])  # type: ignore[list-item]


def test_without_a_message_or_a_model_there_is_a_clear_error():
    with pytest.raises(ValueError, match="no message"):
        BasicAgent(llm=ScriptedModel("x")).run_nonstream([])
    with pytest.raises(SettingsError, match="has no model"):
        BasicAgent().run_nonstream([Message("user", "hi")])


# -- Qwen-Agent's hook


class Seed(Agent):
    """Written as for Qwen-Agent: `_run` yields the whole reply so far."""

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        messages.insert(0, Message("system", "mine"))
        messages[-1].content = "changed"
        reply: list[Message] = []
        for reply in self._call_llm(messages):
            yield reply
        found, name, arguments, _ = self._detect_tool(reply[-1])
        while found:
            result = self._call_tool(name, arguments)
            reply = [*reply, Message("function", result, name=name)]
            yield reply
            for more in self._call_llm([*messages, *reply]):
                yield reply + more
            found = False


def seed_agent(name: str | None = None) -> Seed:
    return Seed([double], ScriptedModel(Reply(calls=[("double", {"n": 2})]), Reply(text="It is 4.")), name=name)


def test_an_agent_with_the_seeds_run_works_and_is_signed():
    messages = [Message("user", "hi")]
    reply = list(seed_agent("Ada").run(messages))[-1]
    assert [(m.role, m.name) for m in reply] == [("assistant", "Ada"), ("function", "double"), ("assistant", "Ada")]
    assert messages[0].content == "hi"
    assert [m["content"] for m in seed_agent().run_nonstream([{"role": "user", "content": "hi"}])] == [
        "",
        "4",
        "It is 4.",
    ]


@pytest.mark.anyio
async def test_an_agent_with_the_seeds_run_speaks_in_events_too():
    events = [event async for event in seed_agent("Ada").stream([Message("user", "hi")])]
    reply = Transcript(events).messages()
    assert [(m.role, m.get_text_content()) for m in reply] == [
        ("assistant", ""),
        ("function", "4"),
        ("assistant", "It is 4."),
    ]
    assert (reply[0].extra or {})["function_id"] == (reply[1].extra or {})["function_id"]
    assert events[-1].kind == "message_finished"


@pytest.mark.anyio
async def test_a_seed_agent_may_tell_a_result_without_a_call():
    class Odd(Agent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            yield [Message("function", "42", name="oracle")]
            yield [Message("function", "42", name="oracle"), Message("assistant", "So it is.")]

    reply = Transcript([event async for event in Odd().stream([Message("user", "hi")])]).messages()
    assert [(m.role, m.get_text_content()) for m in reply] == [
        ("assistant", ""),
        ("function", "42"),
        ("assistant", "So it is."),
    ]


@pytest.mark.anyio
async def test_an_error_in_the_seeds_run_comes_over_as_it_is():
    class Broken(Agent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            yield [Message("assistant", "one")]
            raise RuntimeError("out of paper")

    with pytest.raises(RuntimeError, match="out of paper"):
        [event async for event in Broken().stream([Message("user", "hi")])]
    with pytest.raises(RuntimeError, match="out of paper"):
        list(Broken().run([Message("user", "hi")]))


def test_a_seed_subclass_may_use_the_reply_of_its_base():
    class Polite(FnCallAgent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            for reply in super()._run(messages, **kwargs):
                yield [*reply, Message("assistant", "You are welcome.")]

    agent = Polite([double], ScriptedModel(Reply(calls=[("double", {"n": 2})]), "4"))
    reply = agent.run_nonstream([Message("user", "hi")])
    assert [str(m["content"]) for m in reply] == ["", "4", "4", "You are welcome."]


def test_an_agent_without_a_hook_says_so():
    with pytest.raises(NotImplementedError, match="must define _stream_reply or _run"):
        Agent(llm=ScriptedModel("x")).run_nonstream([Message("user", "hi")])


class Exposed(Agent):
    """Shows what subclasses use."""

    call_tool = Agent._call_tool
    detect_tool = Agent._detect_tool


def test_call_tool_answers_errors_as_sentences():
    assert str(Exposed([double]).call_tool("double", {"n": "x"})).startswith("The field 'n' does not fit")
    assert str(Exposed([double]).call_tool("treble")).startswith("There is no tool named 'treble'.")


@pytest.mark.parametrize(
    ("texts", "lang"),
    [
        (["Hello there"], "en"),
        (["你好，你叫什么名字？"], "zh"),
        (["请解释 GPU 的 memory bandwidth"], "zh"),
        (["What does 你好 mean in English, and how is it pronounced by people?"], "en"),
        (["你好", "in English please"], "en"),
        (["你好", ""], "zh"),
        (["12 + 30"], "en"),
        ([], "en"),
    ],
)
def test_the_language_is_that_of_the_last_question(texts: list[str], lang: str):
    assert language_of([Message("user", text) for text in texts]) == lang


def test_a_call_of_the_seeds_form_is_detected():
    call = Message("assistant", "see", function_call=FunctionCall("double", "{}"))
    assert Exposed().detect_tool(call) == (True, "double", "{}", "see")
    assert Exposed().detect_tool(Message("assistant", "no")) == (False, "", "", "no")
