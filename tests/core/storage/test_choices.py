"""What owners chose, and which tools run unasked: each its owner's alone."""

from __future__ import annotations

import asyncio

import pytest

from core.errors import NotFoundError, SettingsError
from core.storage.conversations import Allowances, ConversationStore
from core.storage.database import Database
from core.storage.owner_settings import Choices, OwnerSettings

pytestmark = pytest.mark.anyio


async def test_a_choice_is_kept_replaced_and_forgotten(database: Database) -> None:
    settings = OwnerSettings(database)
    assert await settings.get("alice", "approval") is None
    assert await settings.get("alice", "approval", {"mode": "writes"}) == {"mode": "writes"}
    await settings.change("alice", "approval", lambda _: {"mode": "always", "deny": ["mcp:*:delete_*"]})
    await settings.change("alice", "approval", lambda _: {"mode": "never"})
    await settings.change("alice", "tools", lambda _: {"off": ["calculator"]})
    assert await settings.get("alice", "approval") == {"mode": "never"}
    await settings.change("alice", "approval", lambda _: None)
    assert await settings.get("alice", "approval") is None
    assert await settings.get("alice", "tools") == {"off": ["calculator"]}


async def test_somebody_elses_choice_is_not_seen_and_not_changed(database: Database) -> None:
    settings = OwnerSettings(database)
    await settings.change("alice", "approval", lambda _: {"mode": "never"})
    assert await settings.get("bob", "approval") is None
    await settings.change("bob", "approval", lambda _: {"mode": "always"})
    assert await settings.get("alice", "approval") == {"mode": "never"}


async def test_an_owner_need_not_be_known_to_choose(database: Database) -> None:
    settings = OwnerSettings(database)
    await settings.change("carol", "web_search", lambda _: ["anything", 1, True])
    assert await settings.get("carol", "web_search") == ["anything", 1, True]


async def test_changes_at_the_same_time_are_all_kept(database: Database) -> None:
    settings = OwnerSettings(database)
    changes = [settings.change("alice", "tools", lambda kept, n=n: [*(kept or []), n]) for n in range(40)]
    await asyncio.gather(*changes)
    assert sorted(await settings.get("alice", "tools")) == list(range(40))


async def test_changes_by_two_processes_are_all_kept(database: Database) -> None:
    other = await Database.open(database.path)
    try:
        stores = [OwnerSettings(database), OwnerSettings(other)]
        changes = [stores[n % 2].change("alice", "tools", lambda kept, n=n: [*(kept or []), n]) for n in range(40)]
        await asyncio.gather(*changes)
        assert sorted(await stores[0].get("alice", "tools")) == list(range(40))
    finally:
        await other.aclose()


async def test_a_change_that_fails_leaves_all_as_it_was(database: Database) -> None:
    settings = OwnerSettings(database)
    await settings.change("alice", "tools", lambda _: ["kept"])

    def fails(choices: Choices) -> None:
        choices.put("tools", ["half"])
        choices.put("approval", {"mode": "never"})
        raise SettingsError("No.")

    with pytest.raises(SettingsError):
        await settings.change_together("alice", fails)
    assert await settings.get("alice", "tools") == ["kept"]
    assert await settings.get("alice", "approval") is None


async def test_an_allowance_holds_for_one_conversation_and_once(database: Database) -> None:
    talks, store = ConversationStore(database), Allowances(database)
    one, other = (await talks.create("alice")).id, (await talks.create("alice")).id
    await store.add("alice", one, "mcp:notes:write")
    await store.add("alice", one, "code_interpreter")
    await store.add("alice", one, "mcp:notes:write")
    assert await store.list("alice", one) == ["code_interpreter", "mcp:notes:write"]
    assert await store.list("alice", other) == []
    await store.remove("alice", one, "code_interpreter")
    assert await store.list("alice", one) == ["mcp:notes:write"]


async def test_an_allowance_in_somebody_elses_conversation_does_not_exist(database: Database) -> None:
    talks, store = ConversationStore(database), Allowances(database)
    hers = (await talks.create("alice")).id
    for attempt in (store.add("bob", hers, "t"), store.list("bob", hers), store.remove("bob", hers, "t")):
        with pytest.raises(NotFoundError):
            await attempt
    assert await store.list("alice", hers) == []


async def test_an_allowance_goes_with_its_conversation(database: Database) -> None:
    talks, store = ConversationStore(database), Allowances(database)
    talk = (await talks.create("alice")).id
    await store.add("alice", talk, "t")
    await talks.delete("alice", talk)
    left = await database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM allowances").scalar_one())
    assert left == 0


async def test_what_is_forgotten_of_a_server_is_that_servers_and_of_one_owner_alone(database: Database) -> None:
    talks, store = ConversationStore(database), Allowances(database)
    hers, his = (await talks.create("alice")).id, (await talks.create("bob")).id
    kept = ["mcp:myXnotes:act", "mcp:my_notes2:act", "xmcp:my_notes:act"]
    for tool in ("mcp:my_notes:act", "mcp:my_notes:look", *kept):
        await store.add("alice", hers, tool)
    await store.add("bob", his, "mcp:my_notes:act")
    await store.forget("alice", "mcp:my_notes:")
    assert await store.list("alice", hers) == kept
    assert await store.list("bob", his) == ["mcp:my_notes:act"]
