"""Codes and tokens of programs that somebody let in: each counts once or for a while, and one used twice ends all."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select

from core.errors import ConflictError
from core.messages.message import Usage
from core.storage import api_keys, app_tokens, tables
from core.storage.api_keys import App, NewKey
from core.storage.app_tokens import Given, NewApp
from core.storage.database import Database
from core.storage.stores import Stores
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio

ASKED = {"redirect": "http://127.0.0.1:9/back", "given": True, "challenge": "c" * 43}
EDITOR = NewApp("Editor", App("app.editor", "https://here/mcp", "127.0.0.1"), ("search", "ask"), ASKED)


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncGenerator[Stores]:
    database = await Database.open(tmp_path / "parlour.db")
    yield stores_over(database)
    await database.aclose()


async def let_in(stores: Stores, owner: str = "alice") -> Given:
    """The first tokens of a program."""
    given = await stores.apps.exchange("code", await stores.of(owner).apps.let_in(EDITOR), ["search", "ask"])
    assert given is not None
    return given


async def test_a_code_is_good_for_tokens_once_and_coming_twice_ends_what_it_was_good_for(stores: Stores) -> None:
    code = await stores.of("alice").apps.let_in(EDITOR)
    kept = await stores.apps.find("code", code)
    assert kept is not None
    assert (kept.key.owner_id, kept.app, kept.about, kept.is_spent) == ("alice", EDITOR.app, ASKED, False)
    given = await stores.apps.exchange("code", code, ["search"])
    assert given is not None
    assert given.scopes == ("search",)
    found = await stores.apps.find("access", given.access)
    assert found is not None
    assert (found.key.owner_id, found.scopes) == ("alice", ("search",))
    assert await stores.apps.exchange("code", code, ["search"]) is None
    assert await stores.apps.find("access", given.access) is None
    assert await stores.apps.exchange("refresh", given.refresh, ["search"]) is None
    assert [one.revoked_at is not None for one in await stores.of("alice").api_keys.list()] == [True]


async def test_of_two_that_use_one_token_at_once_neither_is_let_in_for_long(stores: Stores) -> None:
    given = await let_in(stores)
    both = await asyncio.gather(*(stores.apps.exchange("refresh", given.refresh, ["ask"]) for _ in range(2)))
    assert [one is None for one in both].count(True) == 1
    (got,) = (one for one in both if one is not None)
    assert await stores.apps.find("access", got.access) is None


async def test_tokens_are_renewed_by_others_and_never_for_more(stores: Stores) -> None:
    given = await let_in(stores)
    less = await stores.apps.exchange("refresh", given.refresh, ["search", "root"])
    assert less is not None
    assert (less.scopes, less.access != given.access, less.refresh != given.refresh) == (("search",), True, True)
    more = await stores.apps.exchange("refresh", less.refresh, ["search", "ask"])
    assert more is not None
    assert more.scopes == ("search", "ask"), "what it was let in for, and no more than that"


async def test_each_runs_out_at_its_time(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    code = await stores.of("alice").apps.let_in(EDITOR)
    given, now = await let_in(stores), time.time()
    monkeypatch.setattr(app_tokens.time, "time", lambda: now + 61)
    assert await stores.apps.exchange("code", code, ["ask"]) is None
    assert await stores.apps.find("access", given.access) is not None
    monkeypatch.setattr(app_tokens.time, "time", lambda: now + 3601)
    assert await stores.apps.find("access", given.access) is None
    assert await stores.apps.find("refresh", given.refresh) is not None
    monkeypatch.setattr(app_tokens.time, "time", lambda: now + 31 * 86_400)
    assert await stores.apps.exchange("refresh", given.refresh, ["ask"]) is None


async def test_only_the_right_kind_of_token_is_found_and_none_is_kept_as_it_is(stores: Stores, tmp_path: Path) -> None:
    code = await stores.of("alice").apps.let_in(EDITOR)
    given = await let_in(stores)
    for kind in ("code", "access", "refresh"):
        for token in (code, given.access, given.refresh):
            fits = token == {"code": code, "access": given.access, "refresh": given.refresh}[kind]
            assert (await stores.apps.find(kind, token) is not None) == fits  # pyright: ignore[reportArgumentType]
        for wrong in ("", given.access[:-1], given.access + "x", given.access.swapcase(), "\ud800" * 43, "x" * 9999):
            assert await stores.apps.find(kind, wrong) is None  # pyright: ignore[reportArgumentType]
    assert await stores.api_keys.owner_of_key(given.access) is None, "it is no key for /v1"
    with closing(sqlite3.connect(tmp_path / "parlour.db")) as connection:
        kept = "\n".join(connection.iterdump())
    assert not [one for one in (code, given.access, given.refresh) if one[12:-4] in kept]


async def test_its_owner_shuts_it_out_among_the_keys_and_nobody_else_can(stores: Stores) -> None:
    given = await let_in(stores)
    (key,) = await stores.of("alice").api_keys.list()
    assert (key.name, key.app, key.scopes) == ("Editor", EDITOR.app, ("search", "ask"))
    assert await stores.of("bob").api_keys.list() == []
    await stores.of("alice").api_keys.note_use(key.id, Usage(prompt_tokens=3), questions=1)
    assert [one.requests for one in await stores.of("alice").api_keys.list()] == [1]
    await stores.of("alice").api_keys.revoke(key.id)
    assert await stores.apps.find("access", given.access) is None
    assert await stores.apps.exchange("refresh", given.refresh, ["ask"]) is None


async def tokens_in(stores: Stores) -> int:
    """How many codes and tokens are kept of all."""
    query = select(func.count()).select_from(tables.app_tokens)
    return await stores.database.read(lambda connection: int(connection.execute(query).scalar_one()))


async def test_a_program_that_is_shut_out_leaves_no_tokens(stores: Stores) -> None:
    await let_in(stores)
    (key,) = await stores.of("alice").api_keys.list()
    await stores.of("alice").api_keys.revoke(key.id)
    assert await tokens_in(stores) == 0


async def test_a_program_that_renews_its_tokens_without_end_fills_no_database(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_tokens, "_MOST_TOKENS", 8)
    other, given = await let_in(stores, "bob"), await let_in(stores)
    before = given
    for _ in range(12):
        renewed = await stores.apps.exchange("refresh", given.refresh, ["search"])
        assert renewed is not None
        assert await stores.apps.find("access", renewed.access) is not None
        before, given = given, renewed
    assert await tokens_in(stores) == 8 + 3, "and those of another: a code, and two tokens"
    assert await stores.apps.find("access", other.access) is not None
    assert await stores.apps.exchange("refresh", before.refresh, ["search"]) is None
    assert await stores.apps.find("access", given.access) is None, "one that comes again ends all still"


async def test_who_does_not_fetch_the_tokens_is_not_listed_and_makes_room(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "MOST_KEYS", 2)
    await stores.of("alice").apps.let_in(EDITOR)
    await stores.of("alice").api_keys.create(NewKey("Editor"))  # a program's name is no key's
    with pytest.raises(ConflictError):
        await stores.of("alice").apps.let_in(EDITOR)
    now = time.time()
    monkeypatch.setattr(api_keys.time, "time", lambda: now + 61)
    assert [one.app for one in await stores.of("alice").api_keys.list()] == [None]
    await stores.of("alice").apps.let_in(EDITOR)


async def test_the_owner_deleted_all_is_gone(stores: Stores) -> None:
    given = await let_in(stores, "u-1")
    await stores.people.forget("u-1")
    assert await stores.apps.find("access", given.access) is None
