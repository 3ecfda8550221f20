"""Each step of thought is kept once, in order, without a gap: whatever becomes of the reply."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.basic import FnCallAgent
from core.agents.react import ReActChat
from core.errors import ModelUnavailableError
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message
from core.messages.transcript import Transcript
from core.runs.log import StepRecorded, message_events
from core.runs.reply import CallBlock
from core.runs.resume import events_to_continue, events_to_rerun_call
from core.runs.run import Beginning, Run
from core.runs.steps import Steps, steps_of
from core.storage.base import AgentThought
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.from_function import tool

pytestmark = pytest.mark.anyio


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sun over {city}."


@tool
def nothing() -> str:
    """Gives nothing."""
    return ""


@tool
async def endless() -> str:
    """Never ends."""
    await asyncio.Event().wait()
    return "never"


def breaks_off(text: str) -> Any:
    yield MessageStarted()
    yield TextDelta(text)
    raise ModelUnavailableError("It is gone.")


async def kept(talk: Any, run: Run) -> list[AgentThought]:
    return await talk.runs.of("alice").thoughts(run.message_id)


def short(steps: list[AgentThought]) -> list[tuple[int, str, str | None, str | None, str | None]]:
    return [(one.position, one.thought, one.tool_name, one.tool_input, one.observation) for one in steps]


def noted(run: Run) -> list[tuple[int, str | None]]:
    """What the log says of steps."""
    found = (one.event for one in run.log.since())
    return [(event.position, event.call_id) for event in found if isinstance(event, StepRecorded)]


async def test_function_calls_are_a_step_each_with_what_was_said_before(talk: Any) -> None:
    rome, oslo = ("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"})
    model = ScriptedModel(
        Reply("I look.", reasoning="Two cities.", calls=[rome, oslo]), Reply(calls=[("nothing", {})]), "Sunny."
    )
    run = await talk.ask(FnCallAgent([weather, nothing], model))
    began = datetime.now(UTC)
    assert await run.wait() == "complete"
    steps = await kept(talk, run)
    assert short(steps) == [
        (1, "Two cities.\n\nI look.", "weather", '{"city": "Rome"}', "Sun over Rome."),
        (2, "Two cities.\n\nI look.", "weather", '{"city": "Oslo"}', "Sun over Oslo."),
        (3, "", "nothing", "{}", steps[2].observation),
        (4, "Sunny.", None, None, None),
    ]
    assert all(abs((one.created_at - began).total_seconds()) < 60 for one in steps if one.created_at)
    calls = [block for block in run.reply().blocks if isinstance(block, CallBlock)]
    assert [(call.position, call.call_id) for call in calls] + [(4, None)] == noted(run)
    again = [row.event for row in await talk.runs.of("alice").events(run.id)]
    assert [event.position for event in again if isinstance(event, StepRecorded)] == [1, 2, 3, 4]


async def test_a_reply_that_thinks_in_text_keeps_thought_action_and_observation(talk: Any) -> None:
    model = ScriptedModel(
        'Thought: I need the weather.\nAction: weather\nAction Input: {"city": "Rome"}',
        "Thought: I know it.\nFinal Answer: It is sunny.",
    )
    run = await talk.ask(ReActChat([weather], model))
    assert await run.wait() == "complete"
    steps = await kept(talk, run)
    assert steps[0].to_dict()["tool_input"] == {"city": "Rome"}
    assert [(one.thought, one.tool_name, one.observation) for one in steps] == [
        ("I need the weather.", "weather", "Sun over Rome."),
        ("I know it.", None, None),
    ]


async def test_a_reply_that_is_stopped_in_a_call_keeps_the_step_and_says_so(talk: Any) -> None:
    run = await talk.ask(FnCallAgent([endless], ScriptedModel(Reply("I try.", calls=[("endless", {})]))))
    async for one in run.log.follow():
        if one.event.kind == "tool_started":
            break
    await run.stop()
    ((_, thought, name, _, observation),) = short(await kept(talk, run))
    assert (thought, name) == ("I try.", "endless")
    assert observation is not None
    assert "cut off" in observation
    assert len(noted(run)) == 1


async def test_a_reply_that_fails_keeps_the_steps_there_were(talk: Any) -> None:
    model = ScriptedModel(Reply(calls=[("weather", {"city": "Rome"})]), breaks_off("Half"))
    run = await talk.ask(FnCallAgent([weather], model))
    assert await run.wait() == "error"
    assert [(one.tool_name, one.thought) for one in await kept(talk, run)] == [("weather", ""), (None, "Half")]


async def test_a_reply_without_a_word_has_no_steps(talk: Any) -> None:
    run = await talk.ask(FnCallAgent([], ScriptedModel("")))
    await run.wait()
    assert await kept(talk, run) == []


async def test_what_a_dead_process_left_keeps_its_steps_once(talk: Any) -> None:
    model = ScriptedModel(Reply("I look.", calls=[("weather", {"city": "Rome"})]), "Sunny.")
    run = await talk.ask(FnCallAgent([weather], model))
    await run.wait()
    whole = await kept(talk, run)
    forgotten = ["message_agent_thoughts WHERE position = 2", "run_events WHERE kind = 'step_recorded'"]
    for where in forgotten:
        assert await talk.database.write(lambda c, where=where: c.exec_driver_sql(f"DELETE FROM {where}").rowcount)
    for _ in range(2):
        await talk.database.write(lambda c: c.exec_driver_sql("UPDATE runs SET status = 'running'").rowcount)
        assert await talk.runs.recover() == 1
    again = await kept(talk, run)
    assert again[0] == whole[0]
    assert [one.position for one in again] == [1, 2]
    logged = [row.event for row in await talk.runs.of("alice").events(run.id)]
    assert [event.position for event in logged if isinstance(event, StepRecorded)] == [1, 2]


async def test_a_reply_that_is_gone_on_with_has_all_its_steps_from_1(talk: Any) -> None:
    model = ScriptedModel(Reply(calls=[("weather", {"city": "Rome"})]), breaks_off("It is"))
    first = await talk.ask(FnCallAgent([weather], model))
    await first.wait()
    logged = await talk.runs.of("alice").events(first.id)
    question = (await talk.thread())[0]
    run = await talk.runs.of("alice").start(
        talk.id,
        FnCallAgent([weather], ScriptedModel("sunny.")),
        user=None,
        parent_id=question.id,
        history=list(question.parts),
        beginning=Beginning(events_to_continue(logged)),
    )
    assert await run.wait() == "complete"
    assert [(one.position, one.tool_name, one.thought) for one in await kept(talk, run)] == [
        (1, "weather", ""),
        (2, None, "It is sunny."),
    ]
    assert [position for position, _ in noted(run)] == [1, 2]
    assert len(await kept(talk, first)) == 2


async def test_a_call_that_is_made_anew_is_counted_anew(talk: Any) -> None:
    both = Reply(calls=[("weather", {"city": "Rome"}), ("weather", {"city": "Oslo"})])
    first = await talk.ask(FnCallAgent([weather], ScriptedModel(both, "Sunny.")))
    await first.wait()
    logged = await talk.runs.of("alice").events(first.id)
    (call_id,) = [call for position, call in noted(first) if position == 1]
    question = (await talk.thread())[0]
    logged = events_to_rerun_call(logged, str(call_id), {"city": "Bonn"})
    run = await talk.runs.of("alice").start(
        talk.id,
        FnCallAgent([weather], ScriptedModel("Still sunny.")),
        user=None,
        parent_id=question.id,
        history=[*question.parts, *Transcript(message_events(logged)).messages()],
        beginning=Beginning(logged, may_have_run=frozenset()),
    )
    assert await run.wait() == "complete"
    assert [(one.tool_input, one.observation) for one in await kept(talk, run)] == [
        ('{"city": "Bonn"}', "Sun over Bonn."),
        ('{"city": "Oslo"}', "Sun over Oslo."),
        (None, None),
    ]
    assert [position for position, _ in noted(run)] == [1, 2, 3]


# -- whatever happens --------------------------------------------------------------------------------------------------

_TURNS = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.lists(st.booleans(), max_size=3)), max_size=5
)  # thinks, speaks, its calls: does each come after the ones that were made with it?


def played(turns: list[tuple[bool, bool, list[bool]]]) -> list[Event]:
    events: list[Event] = []
    for number, (thinks, speaks, calls) in enumerate(turns):
        ids = [f"{number}-{at}" for at in range(len(calls))]
        events.append(MessageStarted())
        events += [ReasoningDelta(f"think {number}")] if thinks else []
        events += [TextDelta(f"say {number}")] if speaks else []
        for call in ids:
            events += [CallStarted(call, "f"), CallDelta(call, "{}")]
        events.append(MessageFinished("calls" if ids else "stop"))
        order = sorted(ids, key=lambda call: (calls[ids.index(call)], call))
        events += [ToolStarted(call) for call in ids]
        events += [
            ToolFinished(call, Message("function", call, name="f", extra={"function_id": call})) for call in order
        ]
    return events


@given(_TURNS, st.integers(0, 60))
def test_what_the_log_says_while_it_grows_is_what_the_whole_reply_has(
    turns: list[tuple[bool, bool, list[bool]]], resumed_at: int
) -> None:
    transcript, steps = Transcript(), Steps()
    said: list[StepRecorded] = []
    for number, event in enumerate(played(turns)):
        transcript.apply(event)
        if number == resumed_at:
            steps = Steps(len(said))
        said += steps.take(transcript.messages())
    said += steps.take(transcript.messages(), ended=True)
    assert steps.take(transcript.messages(), ended=True) == []
    whole = steps_of(transcript.messages())
    assert [one.position for one in said] == list(range(1, len(whole) + 1))
    assert [one.call_id for one in said] == [one.call_id for one in whole]
    assert all(one.result is not None for one in whole if one.call is not None)
    assert sum(one.call is not None for one in whole) == sum(len(calls) for _, _, calls in turns)
