"""Keys for programs: found by their hash alone, for one owner alone, until they are revoked or over."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest

from core.errors import ConflictError, NotFoundError, ParlourError
from core.messages.message import Usage
from core.storage import api_keys
from core.storage.api_keys import MOST_KEYS, PREFIX, NewKey
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncGenerator[Stores]:
    database = await Database.open(tmp_path / "parlour.db")
    yield Stores(database, tmp_path / "files", Sealer("the secret of this test, long enough"))
    await database.aclose()


async def test_a_key_is_shown_once_and_only_its_hash_is_kept(stores: Stores, tmp_path: Path) -> None:
    key, kept = await stores.of("alice").api_keys.create(NewKey.checked({"name": " editor ", "scopes": ["files"]}))
    assert key.startswith(PREFIX)
    assert len(key) == len(PREFIX) + 43
    assert (kept.name, kept.key_end, kept.scopes, kept.models) == ("editor", key[-4:], ("files",), None)
    found = await stores.api_keys.owner_of_key(key)
    assert found is not None
    assert (found.owner_id, found.id) == ("alice", kept.id)
    with closing(sqlite3.connect(tmp_path / "parlour.db")) as connection:
        assert key[len(PREFIX) : -4] not in "\n".join(connection.iterdump())
    for wrong in ("", key[:-1], key + "x", key.swapcase(), PREFIX + "A" * 43, "\ud800" * 43):
        assert await stores.api_keys.owner_of_key(wrong) is None


async def test_a_revoked_key_counts_no_more_and_only_its_owner_can_revoke_it(stores: Stores) -> None:
    key, kept = await stores.of("alice").api_keys.create(NewKey("editor"))
    assert await stores.api_keys.owner_of_key(key) is not None
    with pytest.raises(NotFoundError):
        await stores.of("bob").api_keys.revoke(kept.id)
    assert await stores.of("bob").api_keys.list() == []
    await stores.of("alice").api_keys.revoke(kept.id)
    assert await stores.api_keys.owner_of_key(key) is None
    assert [one.revoked_at is not None for one in await stores.of("alice").api_keys.list()] == [True]
    with pytest.raises(NotFoundError):
        await stores.of("alice").api_keys.revoke(kept.id)


async def test_a_key_ends_when_its_time_is_up(stores: Stores) -> None:
    key, _ = await stores.of("alice").api_keys.create(NewKey("short", expires_at=time.time() - 1))
    assert await stores.api_keys.owner_of_key(key) is None
    key, _ = await stores.of("alice").api_keys.create(NewKey.checked({"name": "long", "days": 1}))
    assert await stores.api_keys.owner_of_key(key) is not None


async def test_what_was_used_is_counted_by_the_month_and_against_the_budget(stores: Stores) -> None:
    keys = stores.of("alice").api_keys
    key, kept = await keys.create(NewKey.checked({"name": "editor", "budget": "0.5", "models": ["parlour"]}))
    for _ in range(2):
        await keys.note_use(kept.id, Usage(prompt_tokens=10, completion_tokens=5, cost=0.25))
    await keys.note_use(kept.id, None)
    await stores.of("bob").api_keys.note_use(kept.id, Usage(prompt_tokens=1))  # not bob's: nothing happens
    stores.api_keys.forget()
    found = await stores.api_keys.owner_of_key(key)
    assert found is not None
    assert (found.requests, found.tokens, found.cost, found.is_spent) == (3, 30, 0.5, True)
    assert found.used_at is not None
    assert abs(found.used_at - time.time()) < 60
    assert found.may_use("parlour")
    assert not found.may_use("persona:x")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"name": " \n"}, "api_key_unnamed"),
        ({"name": "a", "scopes": ["root"]}, "api_key_scopes"),
        ({"name": "a", "scopes": []}, "api_key_scopes"),
        ({"name": "a", "budget": "-1"}, "api_key_value"),
        ({"name": "a", "days": "nan"}, "api_key_value"),
        ({"name": "a", "models": []}, "api_key_value"),
        ({"name": "a", "models": [1]}, "api_key_value"),
    ],
)
def test_a_key_that_cannot_be_so_is_refused_with_a_reason(given: dict[str, object], key: str) -> None:
    with pytest.raises(ParlourError) as caught:
        NewKey.checked(given)
    assert caught.value.words_key == key


async def test_names_are_taken_once_and_there_are_not_too_many(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "MOST_KEYS", 2)
    keys = stores.of("alice").api_keys
    first = (await keys.create(NewKey("a")))[1]
    for name, key in (("A", "api_key_taken"), ("b", ""), ("c", "api_keys_many")):
        if not key:
            await keys.create(NewKey(name))
            continue
        with pytest.raises(ConflictError) as caught:
            await keys.create(NewKey(name))
        assert caught.value.words_key == key
    await keys.revoke(first.id)
    await keys.create(NewKey("a"))  # the oldest revoked one makes room
    assert sorted(one.name for one in await keys.list() if one.revoked_at is None) == ["a", "b"]
    assert MOST_KEYS == 100


async def test_files_and_replies_of_programs_stay_until_they_are_deleted(stores: Stores) -> None:
    alice, bob = stores.of("alice"), stores.of("bob")
    one = await alice.api_files.put("notes.txt", b"Tea takes four minutes.", "assistants")
    assert await stores.files.delete_unused(time.time() + 60) == 0
    assert [(each.file.name, each.purpose) for each in await alice.api_files.list()] == [("notes.txt", "assistants")]
    with pytest.raises(NotFoundError):
        await bob.api_files.delete(one.file.id)
    await alice.api_files.delete(one.file.id)
    with pytest.raises(NotFoundError):
        await alice.files.record(one.file.id)
    await alice.api_responses.keep("resp_1", {"history": []})
    await bob.api_responses.keep("resp_1", {"history": ["stolen"]})  # somebody else's id is left alone
    assert await alice.api_responses.get("resp_1") == {"history": []}
    with pytest.raises(NotFoundError):
        await bob.api_responses.get("resp_1")
