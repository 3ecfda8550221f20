"""What an agent does that is called as a tool stands inside of that call, live, from the table and after a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message
from core.runs.begun import begun_in, without_broken
from core.runs.log import ApprovalAsked, LoggedEvent, NestedEvent, RunEvent, RunFinished, RunLog
from core.runs.manager import Runs
from core.runs.nested_events import NestedEvents
from core.runs.reply import CallBlock, Reply, TextBlock
from core.runs.resumable import ResumableRun
from core.runs.resume import events_to_rerun_call
from core.runs.rows import logged_of, rows_of
from core.runs.run import Run, RunOptions
from core.storage.base import EventRow
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Decision
from tests.core.runs.note_tools import Note, agent_of, writes

pytestmark = pytest.mark.anyio

YES = Decision(allowed=True)
QUESTION = {"question": "Write hi."}


class Twice(Note):
    """May be written a second time."""

    idempotent = True


def logged(*events: RunEvent) -> list[LoggedEvent]:
    return [LoggedEvent(seq, float(seq), event) for seq, event in enumerate(events, start=1)]


def chief(note: Note, *turns: Any, goes_on: bool = False) -> FnCallAgent:
    """An agent that can ask Lead, who can ask Helper, who writes notes.

    Args:
        goes_on: Whether both have made their calls before.
    """
    helper = agent_of(note, *([] if goes_on else [writes("hi")]), "It is written.")
    helper.name = "Helper"
    asks = [] if goes_on else [Say(calls=[("Helper", QUESTION)])]
    lead = FnCallAgent([helper], ScriptedModel(*asks, "Helper did it."), name="Lead")
    return FnCallAgent([lead], ScriptedModel(*turns), name="Chief")


def only_call(reply: Reply) -> CallBlock:
    [call] = [block for block in reply.blocks if isinstance(block, CallBlock)]
    return call


def told(reply: Reply | None) -> list[str]:
    """Who says and calls what."""
    assert reply is not None
    lines: list[str] = []
    for block in reply.blocks:
        if isinstance(block, TextBlock):
            lines.append(f"{block.speaker}: {block.text}")
        elif isinstance(block, CallBlock):
            lines.append(f"{block.speaker} -> {block.name} {block.state}")
            lines += [f"  {line}" for line in (told(block.inner) if block.inner is not None else [])]
    return lines


async def asked(run: Run, since: float = 0.0) -> CallBlock:
    async with asyncio.timeout(20):
        async for _ in run.log.follow():
            for call in run.reply().asking:
                if call.asked is not None and call.asked.until > since:
                    return call
    raise AssertionError(run.reply().blocks)


WHOLE = [
    "Chief -> Lead done",
    "  Lead -> Helper done",
    "    Helper -> write_note done",
    "    Helper: It is written.",
    "  Lead: Helper did it.",
    "Chief: Done.",
]


async def test_agents_within_agents_are_told_where_they_are_called_live_and_from_the_table(talk: Any) -> None:
    note = Note()
    run = await talk.ask(chief(note, Say(calls=[("Lead", QUESTION)]), "Done."))
    call = await asked(run)
    assert told(run.reply()) == [
        "Chief -> Lead asked",
        "  Lead -> Helper asked",
        f"    Helper -> {note.name} asked",
    ], "what waits for the user is seen down to the very call"
    await talk.runs.of("alice").decide(talk.id, call.call_id, YES)
    assert await run.wait() == "complete"
    whole = [line.replace("write_note", note.name) for line in WHOLE]
    assert told(run.reply()) == whole
    [_, stored] = await talk.thread()
    again = await Runs(talk.stores).of("alice").reply(stored)
    assert told(again) == whole
    assert again.speakers == {"Chief": None}


async def test_the_model_reads_nothing_of_what_happened_inside(talk: Any) -> None:
    run = await talk.ask(chief(Note(), Say(calls=[("Lead", QUESTION)]), "Done."))
    await talk.runs.of("alice").decide(talk.id, (await asked(run)).call_id, YES)
    await run.wait()
    [_, stored] = await talk.thread()
    assert [(part.role, part.get_text_content()) for part in stored.parts] == [
        ("assistant", ""),
        ("function", "Helper did it."),
        ("assistant", "Done."),
    ]


async def test_what_an_agent_writes_that_is_called_as_a_tool_counts_as_the_reply_s_own(talk: Any) -> None:
    async def asking(letters: int) -> Run:
        helper = FnCallAgent([], ScriptedModel(Say(text=["word " * 20] * 10, pace=0.001)), name="Helper")
        turns = Say(calls=[("Helper", QUESTION)]), "Done."
        run = await talk.ask(
            FnCallAgent([helper], ScriptedModel(*turns), name="Chief"), terms=RunOptions(letters=letters)
        )
        await run.wait()
        return run

    short = await asking(500)
    assert (short.status, (short.error or {}).get("key")) == ("paused", "length_limit")
    inner = only_call(short.reply()).inner
    assert inner is not None
    assert 500 <= len(inner.text) < 1000, "what was written up to there is kept"
    assert (await asking(2_000)).status == "complete"


async def test_stopped_in_the_middle_what_was_said_inside_stays_and_nothing_seems_to_work(talk: Any) -> None:
    note = Note()
    run = await talk.ask(chief(note, Say(calls=[("Lead", QUESTION)]), "never said"))
    await asked(run)
    await run.stop()
    [_, stored] = await talk.thread()
    again = await Runs(talk.stores).of("alice").reply(stored)
    assert told(again) == [
        "Chief -> Lead stopped",
        "  Lead -> Helper stopped",
        f"    Helper -> {note.name} stopped",
    ]


@pytest.mark.parametrize("kind", [Note, Twice])
async def test_agents_within_agents_go_on_after_a_restart_and_are_told_once(talk: Any, kind: Any) -> None:
    note = kind()
    run = await talk.ask(chief(note, Say(calls=[("Lead", QUESTION)]), "never said"))
    first = (await asked(run)).asked
    assert first is not None
    await talk.runs.aclose()
    later = Runs(talk.stores)

    async def resume(resumable: ResumableRun) -> None:
        await later.of(resumable.record.owner_id).resume(
            resumable, chief(note, "Done.", goes_on=True), history=[Message("user", "q"), *resumable.messages()]
        )

    assert await later.recover(resume) == 1
    again = later.live(talk.id)
    assert again is not None
    call = await asked(again)
    assert call.asked == first
    await later.of("alice").decide(talk.id, call.call_id, YES)
    assert await again.wait() == "complete"
    assert note.written == ["hi"]
    assert told(again.reply()) == [line.replace("write_note", note.name) for line in WHOLE]
    await later.aclose()


def test_pieces_of_inner_text_become_one_row_and_come_back_as_they_were() -> None:
    row = Message("function", "It came.", name="t", extra={"function_id": "b"})
    events = [
        CallStarted("a", "Lead"),
        NestedEvent(("a",), MessageStarted("Lead")),
        NestedEvent(("a",), TextDelta("one ")),
        NestedEvent(("a",), TextDelta("two")),
        NestedEvent(("a", "b"), TextDelta("deeper")),
        NestedEvent(("a",), ToolFinished("b", row)),
    ]
    rows = rows_of(logged(*events))
    assert [one.seq for one in rows] == [1, 2, 4, 5, 6]
    assert [one.event for one in logged_of(rows)] == [
        *events[:2],
        NestedEvent(("a",), TextDelta("one two")),
        *events[4:],
    ]


def test_questions_that_were_kept_before_agents_were_told_of_are_read() -> None:
    old = {"call_id": "a", "name": "t", "arguments": {}, "reason": "writes", "wants": {}, "addresses": [], "until": 1.0}
    (event,) = [one.event for one in logged_of([EventRow(1, 0.0, "approval_asked", old)])]
    assert isinstance(event, ApprovalAsked)
    assert event.within == []
    assert Reply(logged(CallStarted("a", "t"), event)).asking


async def test_text_of_several_agents_at_once_is_joined_and_nothing_is_lost() -> None:
    log = RunLog()
    inside = NestedEvents(log.append)
    for number in range(50):
        inside(("a",), TextDelta(f"a{number} "))
        inside(("b",), TextDelta(f"b{number} "))
    inside(("a",), ToolStarted("c"))
    inside.end("a")
    inside(("a",), TextDelta("too late"))
    inside.close()
    assert [one.event for one in log.since()] == [
        NestedEvent(("a",), TextDelta("".join(f"a{number} " for number in range(50)))),
        NestedEvent(("a",), ToolStarted("c")),
        NestedEvent(("b",), TextDelta("".join(f"b{number} " for number in range(50)))),
    ]


async def test_pictures_made_inside_are_not_kept_twice() -> None:
    log = RunLog()
    inside = NestedEvents(log.append)
    picture = ContentItem(image="data:image/png;base64,AAAA")
    extra = {"function_id": "b", "whole": "x", "cut_from": 9}
    inside(("a",), ItemAdded(picture))
    inside(("a",), ToolFinished("b", Message("function", [ContentItem(text="Drawn."), picture], name="t", extra=extra)))
    [one] = log.since()
    assert isinstance(one.event, NestedEvent)
    assert isinstance(one.event.event, ToolFinished)
    assert (one.event.event.message.content, one.event.event.message.extra) == ("Drawn.", {"function_id": "b"})


def test_a_call_made_anew_with_other_words_forgets_what_its_agent_had_done() -> None:
    events = logged(
        CallStarted("a", "Lead"),
        CallDelta("a", "{}"),
        ToolStarted("a"),
        NestedEvent(("a",), TextDelta("old")),
        ToolFinished("a", Message("function", "x", name="Lead", extra={"function_id": "a"})),
        RunFinished("complete"),
    )
    assert not any(
        isinstance(one.event, NestedEvent) for one in events_to_rerun_call(events, "a", {"question": "other"})
    )


def test_passages_found_inside_are_numbered_before_the_call_is_over() -> None:
    passage = {"document_id": "d", "chunk_id": 1, "text": "t", "number": 1}
    found = Message("function", "x", name="t", extra={"function_id": "b", "passages": [passage]})
    outer = Message("function", "y", name="Lead", extra={"function_id": "a", "passages": [passage]})
    reply = Reply(logged(CallStarted("a", "Lead"), ToolStarted("a"), NestedEvent(("a",), ToolFinished("b", found))))
    assert reply.passages == [passage]
    reply.apply(LoggedEvent(9, 9.0, ToolFinished("a", outer)))
    assert reply.passages == [passage]


def test_a_call_inside_is_found_by_its_address() -> None:
    inner = [NestedEvent(("a",), CallStarted("b", "Helper")), NestedEvent(("a", "b"), CallStarted("c/1", "note"))]
    reply = Reply(logged(CallStarted("a", "Lead"), *inner))
    deep = reply.call("a/b/c/1")
    assert deep is not None
    assert (deep.name, deep.address) == ("note", "a/b/c/1")
    assert reply.call("a/x") is None


def test_a_call_that_began_after_the_last_result_may_have_been_made() -> None:
    read = Message("function", "x", name="t", extra={"function_id": "b"})
    calls = [one for name in "bcd" for one in (CallStarted(name, "t"), CallDelta(name, "{}"))]
    did = [MessageStarted("Lead"), *calls, MessageFinished("calls"), ToolStarted("b"), ToolFinished("b", read)]
    events = logged(
        CallStarted("a", "Lead"), *(NestedEvent(("a",), one) for one in (*did, ToolStarted("c"), TextDelta("broken")))
    )
    kept = without_broken(events, {"a"})
    assert [one.event for one in kept[1:]] == [NestedEvent(("a",), one) for one in (*did, ToolStarted("c"))]
    for parked in (True, False):
        found = begun_in(kept, {"a"}, parked=parked)["a"]
        assert "c" in found.may_have_run, "it is not made a second time"
    assert found.messages[-1].content == "x"
