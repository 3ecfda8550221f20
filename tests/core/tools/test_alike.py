"""Calls of one turn that are the same: what only reads is done once for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from core.messages.events import ToolFinished, ToolStarted
from core.messages.transcript import call_message
from core.tools.approval import ApprovalRequest, Guard, Policy
from core.tools.base import BaseTool
from core.tools.builtin.storage import Storage
from core.tools.catalog import TOOL_REGISTRY
from core.tools.runner import ToolRunner
from tests.core.runs.note_tools import Note

pytestmark = pytest.mark.anyio


class Look(Note):
    """Only reads, and says that looking once is enough."""

    name = "look"
    writes = False
    idempotent = True
    deduplicate = True


class Dice(Look):
    """Only reads, but may find something else each time."""

    name = "dice"
    deduplicate = False


async def done(tool: BaseTool, *arguments: str, guard: Guard | None = None) -> tuple[dict[str, str], int]:
    """The results by the calls' ids, and how many tools started."""
    calls = [call_message(str(at), tool.name, text) for at, text in enumerate(arguments)]
    results: dict[str, str] = {}
    started = 0
    async with aclosing(ToolRunner({tool.name: tool}, guard=guard).run(calls)) as events:
        async for event in events:
            started += isinstance(event, ToolStarted)
            if isinstance(event, ToolFinished):
                assert (event.message.extra or {})["function_id"] == event.call_id
                results[event.call_id] = event.message.get_text_content()
    return results, started


async def test_what_only_reads_is_done_once_for_calls_that_are_the_same() -> None:
    look = Look()
    results, started = await done(look, '{"text": "a"}', '{ "text":"a" }', '{"text": "b"}', '{"text": "a"}')
    assert sorted(look.written) == ["a", "b"]
    assert started == 2
    assert results == {"0": "written: a", "1": "written: a", "2": "written: b", "3": "written: a"}


@pytest.mark.parametrize("kind", [Note, Dice])
async def test_what_changes_something_or_may_find_something_else_is_done_each_time(kind: type[Note]) -> None:
    tool = kind()
    assert (await done(tool, '{"text": "a"}', '{"text": "a"}'))[1] == 2
    assert tool.written == ["a", "a"]


async def test_of_calls_that_are_the_same_one_is_asked_about_and_the_answer_is_for_all() -> None:
    asked: list[str] = []

    def no(asking: ApprovalRequest) -> bool:
        asked.append(asking.call_id)
        return False

    look = Look()
    results, started = await done(look, '{"text": "a"}', '{"text": "a"}', guard=Guard(Policy("always"), no))
    assert (asked, look.written, started, len(set(results.values()))) == (["0"], [], 0, 1)
    note = Note()
    await done(note, '{"text": "a"}', '{"text": "a"}', guard=Guard(Policy(), no))
    assert asked == ["0", "0", "1"]


async def test_arguments_that_cannot_be_read_are_told_of_each_call() -> None:
    results, _ = await done(Look(), '{"text": 1}', '{"text": 1}', "[]")
    assert [sorted(results), len(results)] == [["0", "1", "2"], 3]


async def test_a_tool_that_fails_while_it_is_asked_what_it_does_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bool:
        raise LookupError("a stranger's mistake")

    monkeypatch.setattr(Look, "destroys", broken)
    results, started = await done(Look(), '{"text": "a"}', '{"text": "a"}')
    assert (sorted(results), started) == (["0", "1"], 2)


async def test_a_note_is_kept_as_often_as_it_is_asked_for_and_read_once(tmp_path: Path) -> None:
    storage = Storage({"storage_root_path": str(tmp_path)})
    put, get = '{"operate": "put", "key": "a", "value": "1"}', '{"operate": "get", "key": "a"}'
    assert (await done(storage, put, put))[1] == 2
    assert (await done(storage, get, get)) == ({"0": "1", "1": "1"}, 1)


def test_whatever_changes_something_or_asks_an_agent_is_never_done_once_for_many() -> None:
    tools: Mapping[str, Any] = TOOL_REGISTRY
    once = {name for name in tools if tools[name].deduplicate}
    assert {"calculator", "current_time", "web_search", "web_extractor", "retrieval"} <= once
    assert not once & {"code_interpreter", "python_executor", "image_gen"}
