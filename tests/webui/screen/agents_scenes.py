"""Conversations in which several agents speak, or one asks another."""

from __future__ import annotations

from typing import Any

from core.messages.events import CallDelta, CallStarted, MessageStarted, ReasoningDelta, TextDelta, ToolStarted
from core.runs.log import ApprovalAsked, NestedEvent, RunFinished
from tests.webui.screen.calls_scenes import FILE, WISHES, At, Scene, came, reply_of, turns

CAST = ("Planner", "Data Analyst", "研究员", "web_reader")
MENTIONS = (("Planner", "Plans"), ("Data Analyst", "Counts and draws"), ("研究员", "查找资料"), ("web_reader", ""))


def inside(calls: tuple[str, ...], *events: At) -> list[At]:
    """The same, in the reply of an agent that was called."""
    return [(at, NestedEvent(calls, event)) for at, event in events]


def ask(call_id: str, name: str, question: str, at: float) -> list[At]:
    """A question to an agent."""
    given = '{"question": "' + question + '"}'
    return [(at, CallStarted(call_id, name)), (at, CallDelta(call_id, given)), (at + 0.1, ToolStarted(call_id))]


def group() -> Scene:
    """Three take turns; one of them looks something up."""
    reply = reply_of(
        (0, MessageStarted("Planner")), (0.1, TextDelta("Let us first see **what the data says**, then write it up.")),
        (1, MessageStarted("Data Analyst")), (1.1, ReasoningDelta("Growth is (b-a)/a.")),
        (1.2, CallStarted("a", "calculator")), (1.2, CallDelta("a", '{"expression": "(84-60)/60"}')),
        (1.3, ToolStarted("a")), came("a", 1.5, "0.4"),
        (1.6, MessageStarted("Data Analyst")), (1.7, TextDelta("It grew by 40 % within the year.")),
        (2, MessageStarted("研究员")), (2.1, TextDelta("行业平均增长约为 12 %，所以这个结果相当突出。")),
        (3, MessageStarted("Planner")), (3.1, TextDelta("Then that is the headline.")),
        (4, RunFinished("complete")),
    )  # fmt: skip
    return turns("How did the year go, and how does it compare?", reply)


def _deep(at: float) -> list[At]:
    """The analyst is asked, asks the reader, and that one wants to write a file."""
    question = ask("b", "web_reader", "What is the average growth in the sector?", at + 0.4)
    written = [(at + 1, CallStarted("c", "write_file")), (at + 1, CallDelta("c", '{"path": "speed-up.csv"}'))]
    return [
        *ask("a", "Data Analyst", "How much did revenue grow, and is that a lot?", at),
        *inside(
            ("a",),
            (at + 0.2, MessageStarted("Data Analyst")),
            (at + 0.3, ReasoningDelta("I need the average of the sector for this.")),
            (at + 0.4, TextDelta("Revenue grew by 40 %. Let me see what is usual.")),
            *question,
        ),
        *inside(
            ("a", "b"),
            (at + 0.6, MessageStarted("web_reader")),
            (at + 0.7, TextDelta("The sector grew by about 12 %; I keep the table that says so.")),
            *written,
        ),
    ]


def nested() -> Scene:
    """Agents within agents at work; the innermost one waits for the reader."""
    wants: Any = ApprovalAsked("a", "write_file", dict(FILE), "writes", WISHES["write_file"], [], 4e9, ["b", "c"])
    reply = reply_of((0, MessageStarted("Planner")), (0.1, TextDelta("I ask our analyst.")), *_deep(0.2), (2, wants))
    return turns("How did the year go?", reply)


def nested_done() -> Scene:
    """The same when it is over; and one question that failed."""
    reply = reply_of(
        (0, MessageStarted("Planner")), (0.1, TextDelta("I ask our analyst.")), *_deep(0.2),
        *inside(("a", "b"), (2, ToolStarted("c")), came("c", 2.1, "Written.")),
        *inside(("a",), came("b", 2.2, "About 12 %.")),
        *inside(("a",), (2.3, MessageStarted("Data Analyst")), (2.4, TextDelta("40 %, three times the sector."))),
        came("a", 2.5, "40 %, three times the sector."),
        *ask("d", "研究员", "中国市场的增长是多少？", 3),
        came("d", 4, "The service did not answer.", failed="tool_timeout"),
        (5, MessageStarted("Planner")), (5.1, TextDelta("A very good year: 40 % against 12 %.")),
        (6, RunFinished("complete")),
    )  # fmt: skip
    return turns("How did the year go?", reply)


SCENES = {"group": group, "nested": nested, "nested_done": nested_done}
RUNNING = {"nested"}
