"""MCP servers that owners set up: each its owner's alone, with settings that nobody can read in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from core.errors import ConflictError, NotFoundError, StorageError
from core.storage.database import Database
from core.storage.mcp_servers import McpServer, McpServerStore
from core.storage.sealing import Sealer

pytestmark = pytest.mark.anyio

SECRET = "sk-CANARY-0123456789abcdef"
NOTES: dict[str, Any] = {"command": "notes", "args": ["--here"], "env": {"TOKEN": SECRET}}
CLOCK: dict[str, Any] = {"url": "https://clock.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}}


@pytest.fixture
def stores(database: Database) -> Callable[[str], McpServerStore]:
    return partial(McpServerStore, database, Sealer("secret"))


@pytest.fixture
async def notes(stores: Callable[[str], McpServerStore], anyio_backend: str) -> McpServer:
    return (await stores("alice").add({"notes": NOTES}))[0]


async def test_settings_are_kept_sealed_and_come_back_whole(
    stores: Callable[[str], McpServerStore], notes: McpServer, tmp_path: Path
) -> None:
    assert stores("alice").settings_of(await stores("alice").get(notes.id)) == NOTES
    assert "CANARY" not in repr(notes)
    with closing(sqlite3.connect(tmp_path / "parlour.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert all(b"CANARY" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


async def test_a_new_one_is_neither_trusted_nor_confirmed(notes: McpServer) -> None:
    assert (notes.enabled, notes.trusted, notes.confirmed, notes.approved, notes.off) == (True, False, "", {}, ())


async def test_several_come_together_or_not_at_all(stores: Callable[[str], McpServerStore], notes: McpServer) -> None:
    with pytest.raises(ConflictError) as caught:
        await stores("alice").add({"clock": CLOCK, "NOTES": NOTES})
    assert caught.value.words_key == "server_name_taken"
    assert [one.name for one in await stores("alice").list()] == ["notes"]
    await stores("alice").add({"clock": CLOCK, "other": NOTES})
    assert {one.name for one in await stores("alice").list()} == {"notes", "clock", "other"}
    await stores("bob").add({"notes": NOTES})  # a name is taken among an owner's own alone


async def test_changes_add_up(stores: Callable[[str], McpServerStore], notes: McpServer) -> None:
    await stores("alice").set(notes.id, trusted=True, confirmed="print", approved={"a": "1"})
    await stores("alice").set(notes.id, approved={"b": "2"}, enabled=False)
    await stores("alice").switch(notes.id, ["a", "b"], on=False)
    changed = await stores("alice").switch(notes.id, ["a"], on=True)
    assert (changed.enabled, changed.trusted, changed.confirmed) == (False, True, "print")
    assert (changed.approved, changed.off) == ({"a": "1", "b": "2"}, ("b",))


async def test_another_command_is_trusted_no_more_and_its_tools_are_looked_at_again(
    stores: Callable[[str], McpServerStore], notes: McpServer
) -> None:
    await stores("alice").set(notes.id, trusted=True, confirmed="print", approved={"a": "1"})
    same = await stores("alice").change(notes.id, "notebook", lambda old: {**old, "env": {"TOKEN": "other"}})
    assert (same.name, same.trusted, same.confirmed, same.approved) == ("notebook", True, "print", {"a": "1"})
    other = await stores("alice").change(notes.id, "notebook", lambda old: {**old, "args": ["--elsewhere"]})
    assert (other.trusted, other.approved) == (False, {})


async def test_a_name_is_not_taken_from_another_server(
    stores: Callable[[str], McpServerStore], notes: McpServer
) -> None:
    (clock,) = await stores("alice").add({"clock": CLOCK})
    with pytest.raises(ConflictError):
        await stores("alice").change(clock.id, "Notes", lambda old: old)
    assert (await stores("alice").change(clock.id, "Clock", lambda old: old)).name == "Clock"


async def test_what_is_gone_is_gone_with_its_settings(
    stores: Callable[[str], McpServerStore], notes: McpServer
) -> None:
    await stores("alice").delete(notes.id)
    assert await stores("alice").list() == []
    with pytest.raises(NotFoundError):
        await stores("alice").delete(notes.id)


async def test_a_row_that_was_moved_to_another_owner_does_not_open(
    stores: Callable[[str], McpServerStore], notes: McpServer, database: Database
) -> None:
    await stores("bob").add({"mine": CLOCK})
    await database.write(lambda c: c.execute(text("UPDATE mcp_servers SET owner_id = 'bob' WHERE name = 'notes'")))
    with pytest.raises(StorageError) as caught:
        stores("alice").settings_of(await stores("bob").get(notes.id))
    assert caught.value.words_key == "key_unreadable"
