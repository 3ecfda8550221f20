"""`mcp-server-sqlite` itself, in the environment of its own that `make test-all` makes for it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.mcp.pool import MCPManager
from core.mcp.session import Session
from core.mcp.settings import ServerSettings
from tests.golden.walk import SERVER, check_walk, made_database

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PROGRAM = Path(sys.prefix) / "mcp-server-sqlite" / ("Scripts" if os.name == "nt" else "bin") / "mcp-server-sqlite"


@pytest.fixture(autouse=True)
def no_server_stays() -> Iterator[None]:
    yield
    MCPManager.shared().close()


def server_of(database: Path) -> dict[str, Any]:
    return {"command": str(PROGRAM), "args": ["--db-path", str(database)]}


async def test_its_tools_and_every_recorded_call_are_as_they_were(tmp_path: Path) -> None:
    session = Session("sqlite", ServerSettings.model_validate(server_of(tmp_path / "new.db")))
    await session.open()
    try:
        tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in session.tools]
        assert tools == SERVER["tools"]["tools"]
        for call in SERVER["calls"]:
            result = await session.call(call["tool"], call["arguments"])
            found = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            recorded = {key: call["result"][key] for key in ("content", "isError")}
            assert {key: found[key] for key in recorded} == recorded, json.dumps(call, ensure_ascii=False)
    finally:
        await session.aclose()
    assert len(SERVER["calls"]) == 17


def test_the_walk_goes_with_it_as_it_was_recorded_stage_by_stage(tmp_path: Path) -> None:
    check_walk(server_of(made_database(tmp_path / "school.db")))
