"""What owners chose, and which tools run unasked: each its owner's alone."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from core.errors import NotFoundError, SettingsError
from core.storage.conversations import Allowances, ConversationStore
from core.storage.database import Database
from core.storage.owner_settings import Choices, OwnerSettings

pytestmark = pytest.mark.anyio


async def test_a_choice_is_kept_replaced_and_forgotten(database: Database) -> None:
    settings = partial(OwnerSettings, database)
    assert await settings("alice").get("approval") is None
    assert await settings("alice").get("approval", {"mode": "writes"}) == {"mode": "writes"}
    await settings("alice").change("approval", lambda _: {"mode": "always", "deny": ["mcp:*:delete_*"]})
    await settings("alice").change("approval", lambda _: {"mode": "never"})
    await settings("alice").change("tools", lambda _: {"off": ["calculator"]})
    assert await settings("alice").get("approval") == {"mode": "never"}
    await settings("alice").change("approval", lambda _: None)
    assert await settings("alice").get("approval") is None
    assert await settings("alice").get("tools") == {"off": ["calculator"]}


async def test_somebody_elses_choice_is_not_seen_and_not_changed(database: Database) -> None:
    settings = partial(OwnerSettings, database)
    await settings("alice").change("approval", lambda _: {"mode": "never"})
    assert await settings("bob").get("approval") is None
    await settings("bob").change("approval", lambda _: {"mode": "always"})
    assert await settings("alice").get("approval") == {"mode": "never"}


async def test_an_owner_need_not_be_known_to_choose(database: Database) -> None:
    settings = partial(OwnerSettings, database)
    await settings("carol").change("web_search", lambda _: ["anything", 1, True])
    assert await settings("carol").get("web_search") == ["anything", 1, True]


async def test_changes_at_the_same_time_are_all_kept(database: Database) -> None:
    settings = partial(OwnerSettings, database)
    changes = [settings("alice").change("tools", lambda kept, n=n: [*(kept or []), n]) for n in range(40)]
    await asyncio.gather(*changes)
    assert sorted(await settings("alice").get("tools")) == list(range(40))


async def test_changes_by_two_processes_are_all_kept(database: Database) -> None:
    other = await Database.open(database.place)
    try:
        stores = [partial(OwnerSettings, database), partial(OwnerSettings, other)]
        changes = [stores[n % 2]("alice").change("tools", lambda kept, n=n: [*(kept or []), n]) for n in range(40)]
        await asyncio.gather(*changes)
        assert sorted(await stores[0]("alice").get("tools")) == list(range(40))
    finally:
        await other.aclose()


async def test_a_change_that_fails_leaves_all_as_it_was(database: Database) -> None:
    settings = partial(OwnerSettings, database)
    await settings("alice").change("tools", lambda _: ["kept"])

    def fails(choices: Choices) -> None:
        choices.put("tools", ["half"])
        choices.put("approval", {"mode": "never"})
        raise SettingsError("No.")

    with pytest.raises(SettingsError):
        await settings("alice").change_together(fails)
    assert await settings("alice").get("tools") == ["kept"]
    assert await settings("alice").get("approval") is None


async def test_an_allowance_holds_for_one_conversation_and_once(database: Database) -> None:
    talks, store = partial(ConversationStore, database), partial(Allowances, database)
    one, other = (await talks("alice").create()).id, (await talks("alice").create()).id
    await store("alice").add(one, "mcp:notes:write")
    await store("alice").add(one, "code_interpreter")
    await store("alice").add(one, "mcp:notes:write")
    assert await store("alice").list(one) == ["code_interpreter", "mcp:notes:write"]
    assert await store("alice").list(other) == []
    await store("alice").remove(one, "code_interpreter")
    assert await store("alice").list(one) == ["mcp:notes:write"]


async def test_an_allowance_in_somebody_elses_conversation_does_not_exist(database: Database) -> None:
    talks, store = partial(ConversationStore, database), partial(Allowances, database)
    hers = (await talks("alice").create()).id
    for attempt in (store("bob").add(hers, "t"), store("bob").list(hers), store("bob").remove(hers, "t")):
        with pytest.raises(NotFoundError):
            await attempt
    assert await store("alice").list(hers) == []


async def test_an_allowance_goes_with_its_conversation(database: Database) -> None:
    talks, store = partial(ConversationStore, database), partial(Allowances, database)
    talk = (await talks("alice").create()).id
    await store("alice").add(talk, "t")
    await talks("alice").delete(talk)
    left = await database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM allowances").scalar_one())
    assert left == 0


async def test_what_is_forgotten_of_a_server_is_that_servers_and_of_one_owner_alone(database: Database) -> None:
    talks, store = partial(ConversationStore, database), partial(Allowances, database)
    hers, his = (await talks("alice").create()).id, (await talks("bob").create()).id
    kept = ["mcp:myXnotes:act", "mcp:my_notes2:act", "xmcp:my_notes:act"]
    for tool in ("mcp:my_notes:act", "mcp:my_notes:look", *kept):
        await store("alice").add(hers, tool)
    await store("bob").add(his, "mcp:my_notes:act")
    await store("alice").forget("mcp:my_notes:")
    assert await store("alice").list(hers) == kept
    assert await store("bob").list(his) == ["mcp:my_notes:act"]
