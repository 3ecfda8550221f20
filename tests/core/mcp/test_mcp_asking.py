"""Whom a server asks: who made the call it works at, and nobody where that is not certain."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from core.mcp.pool import MCPClient
from core.messages.transcript import call_message
from core.tools.base import ToolResult
from core.tools.runner import ToolRunner

pytestmark = pytest.mark.anyio

HOSTILE = Path(__file__).with_name("hostile_server.py")


async def nobody(*_: Any) -> None:
    """A program that allows questions during a call, and none else."""


class Chat:
    """A conversation that can be asked."""

    def __init__(self, answer: dict[str, Any] | None = None) -> None:
        self.answer = answer
        self.heard: list[tuple[str, str, str]] = []
        self.came = asyncio.Event()
        self.left = asyncio.Event()

    async def ask(self, call_id: str, server: str, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        self.heard.append((call_id, server, message))
        self.came.set()
        if self.answer is not None:
            return self.answer
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()


def greets(tmp_path: Path, case: str = "greets") -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HOSTILE), case, str(tmp_path / "none")], "timeout": 20}


async def said(client: MCPClient, **context: Any) -> str:
    answer = await client.tools[0].call("{}", **context)  # type: ignore[misc]
    assert isinstance(answer, ToolResult)
    return answer.text


async def test_the_conversation_whose_call_it_is_is_asked(tmp_path: Path) -> None:
    chat = Chat({"name": "Lin", "age": 6})
    async with MCPClient("s", greets(tmp_path), elicit=nobody) as client:
        assert await said(client, ask_user=chat.ask, call_id="c1") == "Hello Lin, 6"
    assert chat.heard == [("c1", "s", "Who are you?")]


async def test_a_call_of_nobody_who_can_be_asked_is_told_no(tmp_path: Path) -> None:
    async with MCPClient("s", greets(tmp_path), elicit=nobody) as client:
        assert await said(client) == "decline"


async def test_where_two_conversations_wait_for_the_server_neither_is_asked(tmp_path: Path) -> None:
    one, other = Chat({"name": "Lin", "age": 6}), Chat({"name": "Bo", "age": 7})
    async with MCPClient("s", greets(tmp_path, "greets_at_second"), elicit=nobody) as client:
        first = asyncio.create_task(said(client, ask_user=one.ask, call_id="c1"))
        assert await said(client, ask_user=other.ask, call_id="c2") == "decline"
        assert await first == "decline"
    assert one.heard == other.heard == []


async def test_two_calls_of_one_conversation_may_be_asked_about(tmp_path: Path) -> None:
    chat = Chat({"name": "Lin", "age": 6})
    async with MCPClient("s", greets(tmp_path, "greets_at_second"), elicit=nobody) as client:
        first = asyncio.create_task(said(client, ask_user=chat.ask, call_id="c1"))
        assert await said(client, ask_user=chat.ask, call_id="c2") == "accept"
        await first
    assert len(chat.heard) == 1


async def test_a_call_that_is_given_up_takes_its_question_back(tmp_path: Path) -> None:
    chat = Chat()
    async with MCPClient("s", greets(tmp_path), elicit=nobody) as client:
        call = asyncio.create_task(said(client, ask_user=chat.ask, call_id="c1"))
        await chat.came.wait()
        call.cancel()
        await asyncio.wait_for(chat.left.wait(), 10)


async def test_the_runner_hands_the_asking_on(tmp_path: Path) -> None:
    chat = Chat({"name": "Lin", "age": 6})
    async with MCPClient("s", greets(tmp_path), elicit=nobody) as client:
        tool = client.tools[0]
        call = call_message("c9", tool.name, "{}")
        events = [event async for event in ToolRunner({tool.name: tool}).run([call], ask_user=chat.ask)]
    assert chat.heard[0][0] == "c9"
    assert "Hello Lin" in str(events[-1])
