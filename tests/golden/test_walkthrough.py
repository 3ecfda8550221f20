"""A walk-through of three rounds over a database: all 26 recorded stages, message for message."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.mcp.pool import MCPManager
from tests.golden.sqlite_server import called
from tests.golden.walk import HERE, RECORD, SERVER, check_walk, made_database


@pytest.fixture(autouse=True)
def no_server_stays() -> Iterator[None]:
    yield
    MCPManager.shared().close()


def test_the_walk_goes_as_it_was_recorded_stage_by_stage(tmp_path: Path) -> None:
    arguments = [str(HERE / "sqlite_server.py"), str(RECORD), str(made_database(tmp_path / "school.db"))]
    check_walk({"command": sys.executable, "args": arguments})


def test_the_stand_in_answers_as_the_real_server_did() -> None:
    database = sqlite3.connect(":memory:", isolation_level=None)
    for call in SERVER["calls"]:
        result = called(SERVER["tools"]["tools"], database, call["tool"], call["arguments"])
        recorded = {key: call["result"][key] for key in ("content", "isError")}
        assert result == recorded, call["tool"]
    database.close()
