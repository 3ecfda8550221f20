"""MCP servers that owners set up: each its owner's alone, with settings that nobody can read in the file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
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
def store(database: Database) -> McpServerStore:
    return McpServerStore(database, Sealer("secret"))


@pytest.fixture
async def notes(store: McpServerStore, anyio_backend: str) -> McpServer:
    return (await store.add("alice", {"notes": NOTES}))[0]


async def test_settings_are_kept_sealed_and_come_back_whole(
    store: McpServerStore, notes: McpServer, tmp_path: Path
) -> None:
    assert store.settings_of(await store.get("alice", notes.id)) == NOTES
    assert "CANARY" not in repr(notes)
    with closing(sqlite3.connect(tmp_path / "parlour.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert all(b"CANARY" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


async def test_a_new_one_is_neither_trusted_nor_confirmed(notes: McpServer) -> None:
    assert (notes.enabled, notes.trusted, notes.confirmed, notes.approved, notes.off) == (True, False, "", {}, ())


async def test_several_come_together_or_not_at_all(store: McpServerStore, notes: McpServer) -> None:
    with pytest.raises(ConflictError) as caught:
        await store.add("alice", {"clock": CLOCK, "NOTES": NOTES})
    assert caught.value.words_key == "server_name_taken"
    assert [one.name for one in await store.list("alice")] == ["notes"]
    await store.add("alice", {"clock": CLOCK, "other": NOTES})
    assert {one.name for one in await store.list("alice")} == {"notes", "clock", "other"}
    await store.add("bob", {"notes": NOTES})  # a name is taken among an owner's own alone


async def test_changes_add_up(store: McpServerStore, notes: McpServer) -> None:
    await store.set("alice", notes.id, trusted=True, confirmed="print", approved={"a": "1"})
    await store.set("alice", notes.id, approved={"b": "2"}, enabled=False)
    await store.switch("alice", notes.id, ["a", "b"], on=False)
    changed = await store.switch("alice", notes.id, ["a"], on=True)
    assert (changed.enabled, changed.trusted, changed.confirmed) == (False, True, "print")
    assert (changed.approved, changed.off) == ({"a": "1", "b": "2"}, ("b",))


async def test_another_command_is_trusted_no_more_and_its_tools_are_looked_at_again(
    store: McpServerStore, notes: McpServer
) -> None:
    await store.set("alice", notes.id, trusted=True, confirmed="print", approved={"a": "1"})
    same = await store.change("alice", notes.id, "notebook", lambda old: {**old, "env": {"TOKEN": "other"}})
    assert (same.name, same.trusted, same.confirmed, same.approved) == ("notebook", True, "print", {"a": "1"})
    other = await store.change("alice", notes.id, "notebook", lambda old: {**old, "args": ["--elsewhere"]})
    assert (other.trusted, other.approved) == (False, {})


async def test_a_name_is_not_taken_from_another_server(store: McpServerStore, notes: McpServer) -> None:
    (clock,) = await store.add("alice", {"clock": CLOCK})
    with pytest.raises(ConflictError):
        await store.change("alice", clock.id, "Notes", lambda old: old)
    assert (await store.change("alice", clock.id, "Clock", lambda old: old)).name == "Clock"


async def test_what_is_gone_is_gone_with_its_settings(store: McpServerStore, notes: McpServer) -> None:
    await store.delete("alice", notes.id)
    assert await store.list("alice") == []
    with pytest.raises(NotFoundError):
        await store.delete("alice", notes.id)


async def test_a_row_that_was_moved_to_another_owner_does_not_open(
    store: McpServerStore, notes: McpServer, database: Database
) -> None:
    await store.add("bob", {"mine": CLOCK})
    await database.write(lambda c: c.execute(text("UPDATE mcp_servers SET owner_id = 'bob' WHERE name = 'notes'")))
    with pytest.raises(StorageError) as caught:
        store.settings_of(await store.get("bob", notes.id))
    assert caught.value.words_key == "key_unreadable"
