"""Calls at once, and what changes between the decision about a call and its start, or after its end."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from core.bridge.sync import run
from core.messages.events import Event, ToolFinished
from core.messages.transcript import call_message
from core.tools.approval import ApprovalRequest, Decision, Guard, Policy, guard_for
from core.tools.base import BaseTool
from core.tools.runner import ToolRunner

pytestmark = pytest.mark.anyio


class Note(BaseTool):
    name = "note"
    description = "Writes."
    writes = True
    parameters = {"type": "object", "properties": {}}

    def __init__(self) -> None:
        super().__init__()
        self.written = 0
        self.began, self.go_on = asyncio.Event(), asyncio.Event()

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        self.began.set()
        await self.go_on.wait()
        self.written += 1
        return "written"


class Changing(Guard):
    """Rules that are set anew while calls run."""

    def __init__(self, policy: Policy, ask: Any = None) -> None:
        super().__init__(policy, ask)
        self.now = policy

    async def rules(self) -> Policy:
        return self.now


async def events_of(runner: ToolRunner, count: int, name: str) -> list[Event]:
    calls = [call_message(str(number), name, json.dumps({})) for number in range(count)]
    return [event async for event in runner.run(calls)]


def texts(events: list[Event]) -> list[str]:
    return [event.message.get_text_content() for event in events if isinstance(event, ToolFinished)]


@pytest.mark.parametrize("now", [Policy(), Policy("never", deny=("note",))])
async def test_what_is_taken_back_while_a_call_waits_for_its_place_is_not_run(now: Policy) -> None:
    note = Note()
    guard = Changing(Policy(lasting=("note",)))
    task = asyncio.create_task(events_of(ToolRunner({"note": note}, guard=guard, at_once=1), 2, "note"))
    await note.began.wait()
    guard.now = now
    note.go_on.set()
    assert note.written == 0
    first, last = texts(await task)
    assert (first, note.written) == ("written", 1)
    assert last != "written"


async def test_what_the_user_allowed_is_not_asked_again_when_its_place_comes() -> None:
    note = Note()
    asked: list[str] = []
    note.go_on.set()
    guard = Guard(Policy(), lambda asking: not asked.append(asking.call_id))
    assert texts(await events_of(ToolRunner({"note": note}, guard=guard, at_once=1), 3, "note")) == ["written"] * 3
    assert sorted(asked) == ["0", "1", "2"]


class Sums(BaseTool):
    name = "sums"
    description = "Writes a number."
    writes = True
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        return f"wrote {self._verify_json_format_args(params)['n']}"


async def test_a_call_that_is_asked_about_when_its_place_comes_runs_as_the_user_changed_it() -> None:
    note = Note()
    asked: list[ApprovalRequest] = []

    def user(asking: ApprovalRequest) -> Decision:
        asked.append(asking)
        return Decision(allowed=True, arguments={"n": 2}, why="user")

    guard = Changing(Policy(lasting=("note", "sums")), user)
    calls = [call_message("0", "note", "{}"), call_message("1", "sums", '{"n": 1}')]
    runner = ToolRunner({"note": note, "sums": Sums()}, guard=guard, at_once=1)

    async def all_of_it() -> list[Event]:
        return [event async for event in runner.run(calls)]

    task = asyncio.create_task(all_of_it())
    await note.began.wait()
    guard.now = Policy()
    note.go_on.set()
    last = [event.message for event in await task if isinstance(event, ToolFinished)][-1]
    assert [one.call_id for one in asked] == ["1"]
    assert "wrote 2" in last.get_text_content()
    assert (last.extra or {})["arguments"] == {"n": 2}


class LeftBehind(BaseTool):
    """A plain function that asks for something after its call is over."""

    name = "slow"
    description = "Slow."
    parameters = {"type": "object", "properties": {}}

    def __init__(self, inner: BaseTool) -> None:
        super().__init__()
        self.inner = inner
        self.asks, self.done, self.go_on = threading.Event(), threading.Event(), threading.Event()
        self.allowed: bool | None = None
        self.is_late = True

    def call(self, params: str | dict[str, Any], *, approval: Any = None, **kwargs: Any) -> str:
        if self.is_late:
            self.go_on.wait(20)
        self.asks.set()
        try:
            self.allowed = run(approval.decide(self.inner, "inner", {}, [])).allowed
        finally:
            self.done.set()
        return "over"


async def test_a_thread_that_its_call_left_behind_is_asked_about_no_more_and_does_nothing() -> None:
    asked: list[ApprovalRequest] = []
    slow = LeftBehind(Note())
    guard = Guard(Policy(), lambda asking: not asked.append(asking))
    (told,) = texts(await events_of(ToolRunner({"slow": slow}, guard=guard, deadline=0.1), 1, "slow"))
    assert "did not finish" in told
    slow.go_on.set()
    assert await asyncio.to_thread(slow.done.wait, 20)
    assert slow.allowed is False
    assert asked == []


async def test_a_question_from_a_thread_ends_with_the_call_that_is_stopped() -> None:
    is_open, is_over = asyncio.Event(), asyncio.Event()

    async def never(asking: ApprovalRequest) -> bool:
        is_open.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_over.set()
        return True

    slow = LeftBehind(Note())
    slow.is_late = False
    task = asyncio.create_task(events_of(ToolRunner({"slow": slow}, guard=Guard(Policy(), never)), 1, "slow"))
    async with asyncio.timeout(20):
        await is_open.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await is_over.wait()
        assert await asyncio.to_thread(slow.done.wait, 20)
    assert slow.allowed is not True


class StartsAThread(BaseTool):
    """A program's tool that works in a thread of its own."""

    name = "threaded"
    description = "Works in a thread."
    parameters = {"type": "object", "properties": {}}
    guard: Guard | None = None

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
        def work() -> None:
            self.guard = guard_for(None)

        thread = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        thread.start()
        thread.join()
        return "done"


async def test_a_thread_that_is_started_in_a_copied_context_works_under_the_guard() -> None:
    heard: list[Mapping[str, Any]] = []
    tool = StartsAThread()
    guard = Guard(Policy(deny=("note",)), lambda asking: not heard.append(asking.arguments))
    await events_of(ToolRunner({"threaded": tool}, guard=guard), 1, "threaded")
    assert tool.guard is not None
    assert tool.guard.wraps(guard)
