"""Logs of old replies lose what their messages say as well, and the replies read the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

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
from core.messages.message import FUNCTION, Message, Usage
from core.runs import rows as pruning
from core.runs.log import Checked, NestedEvent, RunEvent, TurnsSummarised
from core.runs.manager import Runs
from core.runs.reply import Reply
from core.runs.rows import KEPT_KINDS
from core.storage.base import EventRow, RunRecord

pytestmark = pytest.mark.anyio

FOUND = Message(FUNCTION, "…", name="ask", extra={"passages": [{"text": "300", "source": "a"}], "function_id": "1"})
INNER = Message(FUNCTION, "42", name="count", extra={"function_id": "2"})
EVENTS: list[RunEvent] = [
    TurnsSummarised("They spoke of ships.", 4),
    MessageStarted("Ann"),
    ReasoningDelta("Let me see. "),
    ReasoningDelta("I look."),
    TextDelta("I look it up."),
    CallStarted("1", "ask"),
    CallDelta("1", '{"q": "how much"}'),
    MessageFinished("calls", Usage(prompt_tokens=3, completion_tokens=4, total_tokens=7)),
    ToolStarted("1"),
    NestedEvent(("1",), MessageStarted("Bob")),
    NestedEvent(("1",), TextDelta("I count.")),
    NestedEvent(("1",), CallStarted("2", "count")),
    NestedEvent(("1",), ToolStarted("2")),
    NestedEvent(("1",), ToolFinished("2", INNER)),
    ToolFinished("1", FOUND),
    MessageStarted("Ann"),
    TextDelta("It is 300 [1]."),
    MessageFinished("stop", Usage(prompt_tokens=5, completion_tokens=6, total_tokens=11)),
]


class Plays:
    """Gives these events."""

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event | TurnsSummarised, None]:
        for event in EVENTS:
            if isinstance(event, NestedEvent):
                kwargs["inside"](event.calls, event.event)
            else:
                yield event  # type: ignore[misc]


async def check(reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Checked]:
    return (Checked(len(reply.blocks) - 1, 14, "supported", (1,)),)


def seen(reply: Reply) -> dict[str, Any]:
    """What a reader sees of a reply, but for how long it took."""

    def block(one: Any) -> dict[str, Any]:
        inner = getattr(one, "inner", None)
        names = ("kind", "text", "name", "arguments", "state", "result", "speaker")
        return {name: getattr(one, name, None) for name in names} | {"inner": inner and seen(inner)}

    return {
        "blocks": [block(one) for one in reply.blocks],
        "passages": reply.passages,
        "claims": reply.claims,
        "summary": reply.summary,
        "speakers": reply.speakers,
        "usage": reply.usage,
        "status": reply.status,
        "error": reply.error,
    }


async def ended_long_ago(talk: Any, days: float) -> None:
    at = time.time() - days * 86_400
    await talk.database.write(lambda c: c.exec_driver_sql("UPDATE runs SET finished_at = ?", (at,)).rowcount)


async def rows(talk: Any, run_id: str) -> list[str]:
    return [row.kind for row in await talk.store.events(run_id)]


async def test_a_pruned_reply_reads_as_it_did(talk: Any) -> None:
    talk.runs = Runs(talk.stores, check=check)
    run = await talk.ask(Plays())
    assert await run.wait() == "complete"
    before = seen(await Runs(talk.stores).of("alice").reply(await talk.last()))
    assert before["claims"]
    await ended_long_ago(talk, 91)
    assert await talk.stores.runs.prune(time.time() - 90 * 86_400, KEPT_KINDS) == 1
    assert set(await rows(talk, run.id)) <= KEPT_KINDS
    assert seen(await Runs(talk.stores).of("alice").reply(await talk.last())) == before
    assert await talk.stores.runs.prune(time.time(), KEPT_KINDS) == 0  # there is nothing more to be had


async def test_a_reply_whose_log_holds_nothing_else_is_read_from_its_message(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker("Hello there."))
    await run.wait()
    assert await talk.stores.runs.prune(time.time() + 1, frozenset()) == 1
    assert await rows(talk, run.id) == []
    reply = await Runs(talk.stores).of("alice").reply(await talk.last())
    assert (reply.text, reply.status) == ("Hello there.", "complete")


async def test_what_is_young_or_still_being_written_keeps_its_log(talk: Any, speaker: Any) -> None:
    run = await talk.ask(speaker("Hello there."))
    await run.wait()
    before = await rows(talk, run.id)
    assert await talk.stores.runs.prune(time.time() - 86_400, KEPT_KINDS) == 0
    assert await rows(talk, run.id) == before
    live, _ = await talk.store.create(talk.id, user=None, parent_id=None)
    await talk.store.append(live.id, [EventRow(1, 0.0, "text_delta", {"text": "Well,"})], epoch=live.epoch)
    await ended_long_ago(talk, 100)
    assert await talk.stores.runs.prune(time.time(), KEPT_KINDS) == 1  # the other one
    assert await rows(talk, live.id) == ["text_delta"]
    assert (await talk.store.get(live.id)).status == "running"


async def test_many_are_pruned_some_at_a_time(talk: Any, speaker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.storage.runs._BATCH", 2)
    said = [f"Number {number}." for number in range(5)]
    for text in said:
        await (await talk.ask(speaker(text))).wait()
    assert await talk.stores.runs.prune(time.time() + 1, KEPT_KINDS) == 5
    assert [turn.parts[0].get_text_content() for turn in await talk.thread()][1::2] == said


async def test_it_is_done_by_itself_and_ends_with_the_runs(talk: Any, speaker: Any, monkeypatch: Any) -> None:
    pruned = asyncio.Event()
    prune = talk.stores.runs.prune

    async def noted(before: float, keep: Any) -> int:
        try:
            return await prune(before, keep)
        finally:
            pruned.set()

    monkeypatch.setattr(pruning, "_FIRST_AFTER", 0.0)
    monkeypatch.setattr(talk.stores.runs, "prune", noted)
    run = await talk.ask(speaker("Hello there."))
    await run.wait()
    await ended_long_ago(talk, 91)
    runs = Runs(talk.stores, keep_events=90 * 86_400.0)
    await runs.watch()
    async with asyncio.timeout(10):
        await pruned.wait()
    await runs.aclose()
    assert set(await rows(talk, run.id)) <= KEPT_KINDS
