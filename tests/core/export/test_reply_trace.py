"""What ran when for a reply, read from its log: models, tools, agents within agents, side by side and one by one."""

from __future__ import annotations

from typing import Any

import pytest

from core import FnCallAgent, GroupChat, tool
from core.export.redaction import Redaction
from core.export.reply_trace import traced_reply
from core.export.traces import Traced
from core.messages.events import CallStarted, MessageStarted, ToolFinished, ToolStarted
from core.messages.message import FunctionCall, Message, Usage
from core.runs.log import LoggedEvent, ModelAsked, ModelCalled, RunEvent
from core.runs.rows import logged_of, restored, rows_of
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from tests.core.runs.conftest import Talk, talk

__all__ = ["talk"]


@tool
def look_up(word: str, api_key: str = "") -> str:
    """Look a word up.

    Args:
        word: Which.
        api_key: A key.
    """
    if word == "none":
        raise ValueError("no such word")
    return word + api_key[:0]


def agent(*turns: Any, tools: Any = (), name: str | None = None) -> FnCallAgent:
    return FnCallAgent(list(tools), ScriptedModel(*turns), name=name, description="Helps.")


def shape(one: Traced) -> Any:
    return [f"{one.kind} {one.name}", *map(shape, one.inside)] if one.inside else f"{one.kind} {one.name}"


def drawn(logged: list[LoggedEvent]) -> tuple[Traced, ...]:
    return traced_reply(logged, 1_000.0, Redaction())


def at(*events: tuple[float, RunEvent]) -> list[LoggedEvent]:
    return [LoggedEvent(seq, when, event) for seq, (when, event) in enumerate(events, start=1)]


@pytest.mark.anyio
async def test_agents_called_side_by_side_have_each_what_they_did_live_and_from_the_table(talk: Talk):
    weather = agent(Say(calls=[("look_up", {"word": "rain"})]), "No rain.", tools=[look_up], name="Weather")
    news = agent("No news.", name="News")
    calls = [("Weather", {"question": "Rain?"}), ("News", {"question": "News?"}), ("look_up", {"word": "none"})]
    run = await talk.ask(agent(Say(calls=calls), "Done.", tools=[look_up, weather, news], name="Desk"))
    await run.wait()
    expected = [
        "model scripted",
        ["tool Weather", "model scripted", "tool look_up", "model scripted"],
        ["tool News", "model scripted"],
        "tool look_up",
        "model scripted",
    ]
    live = drawn(run.log.since())
    assert [shape(one) for one in live] == expected
    assert [one.purpose for one in live if one.kind == "model"] == ["step", "answer"]
    (failed,) = [one for root in live for one in root.everything if one.error]
    assert (failed.name, failed.arguments) == ("look_up", {"word": "none"})
    assert live[0].began >= 1_000.0
    assert [shape(one) for one in drawn(await talk.runs.of("alice").events(run.id))] == expected


@pytest.mark.anyio
async def test_of_several_speakers_each_has_what_it_did(talk: Talk):
    ann = agent(Say(calls=[("look_up", {"word": "tea"})]), "Tea.", tools=[look_up], name="Ann")
    group = GroupChat([ann, agent("Cake.", name="Bob")], "round_robin")
    run = await talk.ask(group)
    await run.wait()
    told = [shape(one) for one in drawn(run.log.since())]
    assert ["agent Ann", "model scripted", "tool look_up", "model scripted"] in told
    assert ["agent Bob", "model scripted"] in told


def test_times_come_from_the_log_and_what_ran_side_by_side_overlaps():
    done = Message("function", "x", name="a", extra={"function_id": "1"})
    line = ModelCalled("step", "m", Usage(prompt_tokens=5, completion_tokens=2, total_tokens=7), 2.0, "c", first=0.5)
    started: list[tuple[float, RunEvent]] = [(1.0, MessageStarted(None)), (2.0, CallStarted("1", "a"))]
    started += [(2.0, CallStarted("2", "b")), (2.5, line), (2.5, ToolStarted("1")), (3.0, ToolStarted("2"))]
    spans = drawn(at(*started, (4.0, ToolFinished("1", done)), (5.0, MessageStarted(None))))
    assert [(one.name, one.began - 1_000, one.seconds) for one in spans] == [
        ("m", 0.5, 2.0),
        ("a", 2.5, 1.5),
        ("b", 3.0, 2.0),  # it is not over: as long as all there is
    ]
    assert spans[0].usage == line.usage


def test_who_spoke_is_told_by_the_order_of_events_not_by_times_of_calls_that_took_no_time():
    def call(number: str, name: str, asked: float, told: float) -> list[tuple[float, RunEvent]]:
        line = ModelCalled("answer", "m", None, 0.001, number)
        return [(asked, ModelAsked(number, "answer", "m")), (asked, MessageStarted(name)), (told, line)]

    told = drawn(at(*call("1", "Ann", 1.0, 5.0), *call("2", "Bob", 5.0, 9.0)))
    assert [shape(one) for one in told] == [["agent Ann", "model m"], ["agent Bob", "model m"]]


def test_a_shortened_log_gives_no_speaker_what_another_one_did():
    lines = [ModelCalled("step", "m", Usage(), 1.0, name) for name in ("c1", "c2")]
    call = FunctionCall(name="look_up", arguments="{}")
    said = [
        Message("assistant", "Tea.", name="Ann"),
        Message("assistant", "", name="Bob", function_call=call, extra={"function_id": "1"}),
        Message("function", "cake", name="look_up", extra={"function_id": "1"}),
    ]
    logged = restored(said, at((2.0, lines[0]), (4.0, lines[1])))
    assert [shape(one) for one in drawn(logged)] == ["tool look_up", "model m", "model m"]


def test_no_key_stands_in_it_and_odd_logs_are_drawn_as_far_as_they_go():
    made = drawn(at((0.0, ToolStarted("never")), (1.0, CallStarted("1", "a"))))
    assert [one.name for one in made] == ["a"]
    assert drawn([]) == ()
    lost = ModelCalled("agent", "m", None, 1.0, "c", within=("gone",), said="key sk-abcdefghijklmnopqrstuvwxyz123456")
    (one,) = drawn(at((1.0, lost)))
    assert "sk-abc" not in one.said


def test_where_a_model_was_called_is_kept_in_the_table_and_older_rows_are_read():
    event = ModelCalled("agent", "m", None, 1.0, "c", agent="Lead", within=("1", "2"))
    rows = rows_of(at((1.0, event), (2.0, ModelCalled("answer", "m", None, 1.0))))
    assert logged_of(rows)[0].event == event
    assert "within" not in rows[1].payload
