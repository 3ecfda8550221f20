"""What a reader sees of a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message, Usage
from core.runs.log import (
    ApprovalAsked,
    ApprovalGiven,
    LoggedEvent,
    RunEvent,
    RunFinished,
    ToolProgress,
    is_urgent,
)
from core.runs.reply import CallBlock, ItemBlock, ReasoningBlock, Reply, TextBlock
from core.runs.rows import logged_of, rows_of


def logged(*events: RunEvent) -> list[LoggedEvent]:
    """One event each second."""
    return [LoggedEvent(seq, float(seq), event) for seq, event in enumerate(events, start=1)]


def result(call_id: str, passages: Sequence[dict[str, Any]] = (), **extra: Any) -> ToolFinished:
    more = {"passages": list(passages)} if passages else {}
    return ToolFinished(call_id, Message("function", "done", name="f", extra={"function_id": call_id, **more, **extra}))


def test_thinking_and_text_become_blocks_with_the_time_it_took() -> None:
    reply = Reply(
        logged(MessageStarted(), ReasoningDelta("let me "), ReasoningDelta("see"), TextDelta("It "), TextDelta("is."))
    )
    thought, text = reply.blocks
    assert isinstance(thought, ReasoningBlock)
    assert isinstance(text, TextBlock)
    assert (thought.text, thought.seconds, text.text) == ("let me see", 2.0, "It is.")
    assert reply.status == "running"


def test_thoughts_that_are_proven_each_by_itself_are_paragraphs() -> None:
    thoughts = (
        ReasoningDelta("One"),
        ReasoningDelta(".", "proof"),
        ReasoningDelta("Two."),
        ReasoningDelta("", "proof"),
    )
    (thought,) = Reply(logged(MessageStarted(), *thoughts, ReasoningDelta("Three."))).blocks
    assert isinstance(thought, ReasoningBlock)
    assert thought.text == "One.\n\nTwo.\n\nThree."


def test_thinking_that_goes_on_has_no_time_yet() -> None:
    (thought,) = Reply(logged(MessageStarted(), ReasoningDelta("hm"))).blocks
    assert isinstance(thought, ReasoningBlock)
    assert thought.seconds is None


def test_parallel_calls_stand_side_by_side_in_order_whatever_ends_first() -> None:
    reply = Reply(
        logged(
            MessageStarted(),
            CallStarted("a", "slow"),
            CallStarted("b", "fast"),
            CallDelta("b", '{"x":'),
            CallDelta("a", "{}"),
            CallDelta("b", "1}"),
            MessageFinished("calls"),
            ToolStarted("a"),
            ToolStarted("b"),
            result("b"),
        )
    )
    slow, fast = reply.blocks
    assert isinstance(slow, CallBlock)
    assert isinstance(fast, CallBlock)
    assert (slow.name, slow.state, slow.arguments, slow.seconds) == ("slow", "running", "{}", None)
    assert (fast.name, fast.state, fast.arguments, fast.seconds) == ("fast", "done", '{"x":1}', 1.0)


def test_a_call_waits_until_its_tool_starts() -> None:
    (call,) = Reply(logged(MessageStarted(), CallStarted("a", "f"), CallDelta("a", "{"))).blocks
    assert isinstance(call, CallBlock)
    assert (call.state, call.started_at) == ("waiting", None)


def states(reply: Reply) -> list[str]:
    return [block.state for block in reply.blocks if isinstance(block, CallBlock)]


def test_a_failed_tool_and_a_call_that_was_cut_off_are_failed() -> None:
    events = [MessageStarted(), CallStarted("a", "f"), ToolStarted("a"), result("a", failed="tool_timeout")]
    reply = Reply(logged(*events, CallStarted("b", "g"), ToolStarted("b"), RunFinished("interrupted")))
    assert states(reply) == ["failed", "failed"]
    assert [block.result is None for block in reply.blocks if isinstance(block, CallBlock)] == [False, True]


@pytest.mark.parametrize("status", ["stopped", "paused"])
def test_what_still_works_or_waits_when_the_reply_is_stopped_is_stopped(status: Any) -> None:
    calls = [MessageStarted(), CallStarted("a", "f"), CallStarted("b", "g"), MessageFinished("calls")]
    reply = Reply(logged(*calls, ask("a"), ToolStarted("b"), RunFinished(status)))
    assert states(reply) == ["stopped", "stopped"]
    assert reply.asking == []


def ask(call_id: str) -> ApprovalAsked:
    wants = {"en": "write a note", "zh": "写一条笔记"}
    return ApprovalAsked(call_id, "mcp:notes:write", {"text": "hi"}, "writes", wants, ["https://example.org"], 1e9)


def test_a_call_that_waits_for_the_user_is_asked_until_it_is_decided() -> None:
    calls = [MessageStarted(), CallStarted("a", "write"), CallStarted("b", "write"), MessageFinished("calls")]
    reply = Reply(logged(*calls, ask("b"), ask("a")))
    assert states(reply) == ["asked", "asked"]
    assert [call.call_id for call in reply.asking] == ["a", "b"]
    assert reply.asking[0].asked == ask("a")
    reply.apply(LoggedEvent(7, 7.0, ApprovalGiven("a", True, {"text": "ho"}, "user")))
    reply.apply(LoggedEvent(8, 8.0, ApprovalGiven("b", False, None, "timeout")))
    assert states(reply) == ["waiting", "refused"]
    reply.apply(LoggedEvent(9, 9.0, ToolStarted("a")))
    reply.apply(LoggedEvent(10, 10.0, ToolProgress("a", "half", 1, 2)))
    reply.apply(LoggedEvent(11, 11.0, result("a", arguments={"text": "ho"})))
    reply.apply(LoggedEvent(12, 12.0, result("b", failed="refused_timeout")))
    first, second = (block for block in reply.blocks if isinstance(block, CallBlock))
    assert (first.state, first.edited, first.seconds) == ("done", {"text": "ho"}, 2.0)
    assert first.progress == ToolProgress("a", "half", 1, 2)
    assert (second.state, second.edited, reply.asking) == ("refused", None, [])


def test_a_question_its_answer_and_progress_are_in_the_table_as_they_were() -> None:
    events = [ask("a"), ApprovalGiven("a", True, {"n": [1]}, "user", always=True), ToolProgress("a", "half", 0.5, None)]
    assert [one.event for one in logged_of(rows_of(logged(*events)))] == events
    assert [is_urgent(event) for event in events] == [True, True, False]


def test_passages_are_numbered_in_order_of_appearance() -> None:
    def passage(number: int) -> dict[str, Any]:
        return {"document_id": "d", "chunk_id": number, "text": f"t{number}"}

    first = [passage(7), passage(8)]
    reply = Reply(
        logged(CallStarted("a", "ask"), result("a", first), CallStarted("b", "ask"), result("b", [passage(9)]))
    )
    assert [(p["chunk_id"], p["number"]) for p in reply.passages] == [(7, 1), (8, 2), (9, 3)]


def test_a_continued_reply_that_finds_the_same_passages_again_keeps_their_numbers() -> None:
    found = [{"document_id": "d", "chunk_id": 7, "text": "t", "number": 1}]
    other = [{"document_id": "d", "chunk_id": 8, "text": "u", "number": 1}]
    reply = Reply(
        logged(
            *(CallStarted("a", "ask"), result("a", found)),
            *(CallStarted("b", "ask"), result("b", found)),
            *(CallStarted("c", "ask"), result("c", other)),
        )
    )
    assert [(p["chunk_id"], p["number"]) for p in reply.passages] == [(7, 1), (8, 2)]


def test_items_usage_and_the_end_are_taken_in() -> None:
    picture = ContentItem(image="/files/x")
    spent = Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3)
    error = {"key": "no_space", "message": "full", "hint": "", "details": {}}
    reply = Reply(
        logged(
            *(ItemAdded(picture), TextDelta("there"), MessageFinished("stop", spent), MessageFinished("stop", spent)),
            RunFinished("error", error),
        )
    )
    assert reply.blocks[0] == ItemBlock(picture)
    assert reply.usage == spent + spent
    assert (reply.status, reply.error, reply.text) == ("error", error, "there")


def test_two_speakers_have_blocks_of_their_own() -> None:
    reply = Reply(logged(MessageStarted("Ann"), TextDelta("Hi."), MessageStarted("Bob"), TextDelta("Ho.")))
    assert [(block.name, block.text) for block in reply.blocks if isinstance(block, TextBlock)] == [
        ("Ann", "Hi."),
        ("Bob", "Ho."),
    ]


EVENTS = st.lists(
    st.one_of(
        st.builds(TextDelta, st.text(max_size=3)),
        st.builds(ReasoningDelta, st.text(max_size=3)),
        st.just(MessageStarted()),
        st.sampled_from(
            [CallStarted("a", "f"), CallDelta("a", "{"), CallDelta("b", "}"), ToolStarted("a"), result("a")]
        ),
    ),
    max_size=30,
)


def shape(reply: Reply) -> list[object]:
    return [
        (block.kind, getattr(block, "text", ""), getattr(block, "arguments", ""), getattr(block, "state", ""))
        for block in reply.blocks
    ]


@given(EVENTS, st.data())
def test_whatever_is_joined_for_the_table_reads_the_same(events: list[RunEvent], data: st.DataObject) -> None:
    whole = logged(*events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    rows = [
        row for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True) for row in rows_of(whole[start:end])
    ]
    assert shape(Reply(logged_of(rows))) == shape(Reply(whole))


@given(EVENTS)
def test_an_event_that_comes_twice_counts_once(events: list[RunEvent]) -> None:
    whole = logged(*events)
    reply = Reply(whole)
    for one in whole:
        reply.apply(one)
    assert shape(reply) == shape(Reply(whole))


def test_a_snapshot_stays_as_it_was_and_the_reply_goes_on() -> None:
    events = [
        TextDelta("Herons "),
        CallStarted("1", "search"),
        CallDelta("1", '{"q": '),
        CallDelta("1", '"herons"}'),
        TextDelta("fish."),
    ]
    every = logged(*events)
    reply = Reply(every[:3])
    before = reply.snapshot()
    for one in every[3:]:
        reply.apply(one)
    first = reply.blocks[0]
    assert isinstance(first, TextBlock)
    first.pieces.append("!")
    assert (before.text, before.seen, len(before.blocks)) == ("Herons ", 3, 2)
    assert arguments(before) == '{"q": '
    assert reply.snapshot().text == reply.text
    assert arguments(reply.snapshot()) == arguments(reply) == '{"q": "herons"}'


def arguments(reply: Reply) -> str:
    call = reply.call("1")
    assert call is not None
    return call.arguments
