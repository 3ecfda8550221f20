"""The one loop: model, tools, model … until there is an answer, or one clear sentence."""

from __future__ import annotations

import threading
from contextlib import aclosing
from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.agents.tool_loop import ToolLoop
from core.errors import ModelUnavailableError
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message
from core.messages.transcript import Transcript
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.from_function import tool

pytestmark = pytest.mark.anyio


@tool
def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def ask(text: str = "Go") -> list[Message]:
    return [Message("user", text)]


async def events_of(model: ScriptedModel, **options: Any) -> list[Event]:
    loop = ToolLoop(model, {"double": double}, **options)
    return [event async for event in loop.reply(ask(), lang="en")]


async def reply_of(model: ScriptedModel, **options: Any) -> list[Message]:
    return Transcript(await events_of(model, **options)).messages()


def calls(*arguments: str) -> Reply:
    return Reply(calls=[("double", text) for text in arguments])


async def test_tools_run_until_the_model_answers():
    model = ScriptedModel(calls('{"n": 2}', '{"n": 3}'), calls('{"n": 4}'), "4, 6 and 8")
    reply = await reply_of(model)
    assert [(m.role, m.get_text_content()) for m in reply] == [
        ("assistant", ""),
        ("assistant", ""),
        ("function", "4"),
        ("function", "6"),
        ("assistant", ""),
        ("function", "8"),
        ("assistant", "4, 6 and 8"),
    ]
    assert len(model.requests) == 3
    assert [m.role for m in model.requests[1].messages] == ["user", "assistant", "assistant", "function", "function"]


async def test_the_order_of_events_is_the_order_of_what_happens():
    kinds = [event.kind for event in await events_of(ScriptedModel(calls('{"n": 2}'), "4"))]
    assert kinds == [
        "message_started",
        "call_started",
        "call_delta",
        "message_finished",
        "tool_started",
        "tool_finished",
        "message_started",
        "text_delta",
        "message_finished",
    ]


async def test_after_twenty_model_calls_it_says_so_and_leaves_no_call_unanswered():
    model = ScriptedModel(calls('{"n": 2}'))
    events = await events_of(model)
    reply = Transcript(events).messages()
    assert len(model.requests) == 20
    assert model.requests[-1].generate["function_choice"] == "none"
    assert "used all the tool calls" in model.requests[-1].messages[-1].get_text_content()
    assert reply[-1].get_text_content().startswith("I stopped here: after 20 model calls")
    assert (reply[-2].extra or {})["failed"] == "call_limit"
    assert sum(isinstance(e, CallStarted) for e in events) == sum(isinstance(e, ToolFinished) for e in events)


async def test_an_answer_on_the_last_call_is_the_answer():
    model = ScriptedModel(calls('{"n": 2}'), "It is 4.")
    reply = await reply_of(model, most_calls=2)
    assert reply[-1].get_text_content() == "It is 4."


async def test_an_unreadable_call_is_told_to_the_model_which_mends_it():
    model = ScriptedModel(calls("n is two"), calls('{"n": 2}'), "4")
    reply = await reply_of(model)
    assert "not a JSON object" in model.requests[1].messages[-1].get_text_content()
    assert reply[-1].get_text_content() == "4"


async def test_unreadable_calls_are_told_twice_and_then_the_user_hears_of_it():
    model = ScriptedModel(calls("n is two"))
    reply = await reply_of(model)
    assert len(model.requests) == 3
    assert "cannot be read" in reply[-1].get_text_content()


async def test_no_call_is_ever_named_nothing():
    nameless = [MessageStarted(), CallStarted("c", " "), CallDelta("c", "{}"), MessageFinished("calls")]
    events = await events_of(ScriptedModel(nameless, "sorry"))
    names = [event.name for event in events if isinstance(event, CallStarted)]
    assert names == ["unreadable_call"]
    results = [e.message.get_text_content() for e in events if isinstance(e, ToolFinished)]
    assert results[0].startswith("This call names no tool, so nothing was run.")


@pytest.mark.parametrize(
    ("template", "written", "told"),
    [
        ("nous", '<tool_call>\n{"arguments": {"n": 2}}\n</tool_call>', "names no tool"),
        ("nous", '<tool_call>\n{"name": "double", "arguments": {"n": 2', "cannot be read"),
        ("nous", "<tool_call>\nplease double two\n</tool_call>", "cannot be read"),
        ("qwen", "✿FUNCTION✿: double\n✿ARGS✿: two, please", "cannot be read"),
    ],
)
async def test_what_a_model_wrote_wrong_is_told_to_it_twice_and_never_run(template: str, written: str, told: str):
    model = ScriptedModel(written, native=False)
    reply = await reply_of(model, generate={"fncall_prompt_type": template})
    assert len(model.requests) == 3
    results = [message for message in reply if message.role == "function"]
    assert [told in message.get_text_content() for message in results] == [True] * 3
    assert "cannot be read" in reply[-1].get_text_content()
    mended = ScriptedModel(written, '{"name": "double", "arguments": {"n": 2}}', "4", native=False)
    assert (await reply_of(mended, generate={"fncall_prompt_type": template}))[-1].get_text_content() == "4"


async def test_a_call_cut_off_before_its_name_is_told_as_well():
    half = [MessageStarted(), TextDelta("<tool_call>\n{'x"), MessageFinished("length")]
    _, result, answer = await reply_of(ScriptedModel(half, "Sorry.", native=False))
    assert "cannot be read" in result.get_text_content()
    assert answer.get_text_content() == "Sorry."


async def test_an_unknown_tool_is_answered_and_the_model_goes_on():
    model = ScriptedModel(Reply(calls=[("duoble", {"n": 1})]), "sorry")
    reply = await reply_of(model)
    assert "Did you mean 'double'?" in reply[1].get_text_content()
    assert reply[-1].get_text_content() == "sorry"


async def test_leaving_early_stops_the_model():
    model = ScriptedModel(Reply(text="one two three four", pace=0.001))
    async with aclosing(ToolLoop(model, {}).reply(ask(), lang="en")) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert model.closed == 1


async def test_leaving_early_stops_the_tools():
    import asyncio

    stopped = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()
        return ""

    loop = ToolLoop(ScriptedModel(Reply(calls=[("wait", {})])), {"wait": wait})
    async with aclosing(loop.reply(ask(), lang="en")) as events:
        async for event in events:
            if isinstance(event, ToolStarted):
                await asyncio.sleep(0)
                break
    # The tool had begun or was never begun: either way nothing is left running.
    assert not [task for task in asyncio.all_tasks() if "_finished" in repr(task)]


async def test_a_failing_model_raises_and_what_was_said_stays():
    model = ScriptedModel(calls('{"n": 2}'), ModelUnavailableError(message="away"))
    seen: list[Event] = []

    async def read() -> None:
        async for event in ToolLoop(model, {"double": double}).reply(ask(), lang="en"):
            seen.append(event)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(ModelUnavailableError):
        await read()
    assert isinstance(seen[-1], ToolFinished)


async def test_the_speaker_is_named_on_every_message():
    agent = FnCallAgent([double], ScriptedModel(calls('{"n": 2}'), "4"), name="Ada")
    reply = Transcript([event async for event in agent.stream(ask())]).messages()
    assert [message.name for message in reply] == ["Ada", "double", "Ada"]


async def test_three_calls_of_one_turn_run_at_the_same_time():
    together = threading.Barrier(3, timeout=30)

    @tool
    def meet() -> str:
        """Wait for the other two."""
        together.wait()
        return "met"

    model = ScriptedModel(Reply(calls=[("meet", {})] * 3), "done")
    events = [event async for event in FnCallAgent([meet], model).stream(ask())]
    assert [one.content for one in Transcript(events).messages() if one.role == "function"] == ["met"] * 3
    assert len(Transcript(events).messages()) == 7


async def test_the_language_of_its_own_sentences_is_the_users():
    loop = ToolLoop(ScriptedModel(calls('{"n": 2}')), {"double": double}, most_calls=1)
    events = [event async for event in loop.reply(ask("翻倍"), lang="zh")]
    assert Transcript(events).messages()[-1].get_text_content().startswith("我在这里停下了")


@pytest.mark.parametrize("template", ["nous", "json_schema"])
async def test_half_a_call_of_a_reply_that_was_cut_off_is_never_run(template: str):
    half: list[Event] = [
        MessageStarted(),
        TextDelta('{"name": "double", "arguments": {"n": 2'),
        MessageFinished("length"),
    ]
    model = ScriptedModel(half, "Sorry.", native=False)
    _, result, answer = await reply_of(model, generate={"fncall_prompt_type": template})
    assert (result.extra or {})["failed"] == "bad_arguments"
    assert "cut off" in result.get_text_content()
    assert answer.get_text_content() == "Sorry."


async def test_a_named_tool_must_be_called_once_and_then_the_model_may_answer():
    model = ScriptedModel(calls('{"n": 2}'), "4")
    model.generate_cfg = {"function_choice": "double"}
    assert (await reply_of(model))[-1].get_text_content() == "4"
    assert [request.generate["function_choice"] for request in model.requests] == ["double", "auto"]
