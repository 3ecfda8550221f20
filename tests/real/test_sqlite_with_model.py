"""The first round of the recorded walk for real: the default model asks `mcp-server-sqlite` and says what it found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from core.agents.basic import FnCallAgent
from core.llm.backends.llama_cpp import LlamaCppModel
from core.llm.weights_catalog import DEFAULT
from core.mcp.pool import MCPManager
from core.messages.message import USER, Message
from core.messages.transcript import Transcript
from tests.golden.walk import made_database
from tests.real.test_sqlite_server import server_of

pytestmark = [pytest.mark.anyio, pytest.mark.weights, pytest.mark.slow]

WHO = "你扮演一个数据库助手，你具有查询数据库的能力"


@pytest.fixture
async def model() -> AsyncIterator[LlamaCppModel]:
    loaded = LlamaCppModel({"model": DEFAULT, "threads": 1, "generate_cfg": {"temperature": 0, "max_tokens": 200}})
    await loaded.prepare()
    yield loaded
    await loaded.aclose()


async def test_the_default_model_lists_the_tables_of_a_database(model: LlamaCppModel, tmp_path: Path) -> None:
    servers = {"mcpServers": {"sqlite": server_of(made_database(tmp_path / "school.db"))}}
    tools = await MCPManager.shared().connect(servers)
    transcript = Transcript()
    try:
        async with aclosing(FnCallAgent(tools, model, WHO).stream([Message(USER, "数据库有几张表")])) as events:
            async for event in events:
                transcript.apply(event)
    finally:
        await MCPManager.shared().aclose()
    reply = transcript.messages()
    assert [message.function_call.name for message in reply if message.function_call] == ["sqlite-list_tables"]
    results = [message.content for message in reply if message.role == "function"]
    assert results == ["[{'name': 'students'}, {'name': 'sqlite_sequence'}, {'name': 'log'}]"]
    answer = reply[-1].get_text_content()
    assert "students" in answer or "3" in answer or "三" in answer, answer
