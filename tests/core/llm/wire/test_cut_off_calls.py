"""A reply that was cut off says so, also with a call in it: half a call must not be run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.llm.wire.dashscope import DashScopeReader
from core.llm.wire.openai import ChunkReader
from core.messages.events import CallDelta, MessageFinished

CALL = {"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": '{"path": "/home/a'}}


def line(chunk: dict[str, Any]) -> bytes:
    return f"data:{json.dumps(chunk)}\n\n".encode()


def openai(finish: str) -> list[Any]:
    reader = ChunkReader()
    events = reader.feed(line({"choices": [{"delta": {"tool_calls": [CALL]}, "finish_reason": None}]}))
    events += reader.feed(line({"choices": [{"delta": {}, "finish_reason": finish}]}) + b"data: [DONE]\n\n")
    return [*events, *reader.close()]


def dashscope(finish: str) -> list[Any]:
    reader = DashScopeReader()
    choice = {"message": {"role": "assistant", "content": "", "tool_calls": [CALL]}, "finish_reason": finish}
    return [*reader.feed(line({"output": {"choices": [choice]}, "request_id": "r"})), *reader.close()]


@pytest.mark.parametrize("read", [openai, dashscope])
def test_a_call_in_a_reply_that_was_cut_off_does_not_hide_that(read: Any) -> None:
    *_, call, end = read("length")
    assert isinstance(call, CallDelta)
    assert isinstance(end, MessageFinished)
    assert end.reason == "length"


@pytest.mark.parametrize("read", [openai, dashscope])
@pytest.mark.parametrize("finish", ["stop", "tool_calls"])
def test_a_reply_that_ended_with_a_call_ended_for_it(read: Any, finish: str) -> None:
    assert read(finish)[-1].reason == "calls"
