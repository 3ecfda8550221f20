"""Services that owners set up: each its owner's alone, with a key that nobody can read in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from core.errors import StorageError
from core.storage.database import Database
from core.storage.migrations import steps
from core.storage.model_services import ModelServiceStore
from core.storage.sealing import Sealer

pytestmark = pytest.mark.anyio

KEY = "sk-CANARY-0123456789abcdef"


@pytest.fixture
def stores(database: Database) -> Callable[[str], ModelServiceStore]:
    return partial(ModelServiceStore, database, Sealer("secret"))


async def saved(
    stores: Callable[[str], ModelServiceStore], service: str = "openai", *, key: str | None = KEY, use: bool = False
) -> None:
    await stores("alice").save(service, address="https://api.example/v1", model="m", key=key, use=use)


async def test_a_key_is_kept_sealed_and_shown_by_its_end(
    stores: Callable[[str], ModelServiceStore], tmp_path: Path
) -> None:
    await saved(stores)
    kept = await stores("alice").get("openai")
    assert kept is not None
    assert (kept.key_end, stores("alice").key_of(kept)) == ("cdef", KEY)
    assert "CANARY" not in repr(kept)
    with closing(sqlite3.connect(tmp_path / "parlour.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert all(b"CANARY" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


async def test_of_a_short_key_nothing_is_shown(stores: Callable[[str], ModelServiceStore]) -> None:
    await saved(stores, key="hunter2")
    kept = await stores("alice").get("openai")
    assert kept is not None
    assert (kept.key_end, stores("alice").key_of(kept)) == ("", "hunter2")


async def test_saving_without_a_key_keeps_it_and_an_empty_one_takes_it_away(
    stores: Callable[[str], ModelServiceStore],
) -> None:
    await saved(stores)
    await stores("alice").save("openai", address="", model="other", key=None, use=False)
    kept = await stores("alice").get("openai")
    assert kept is not None
    assert (kept.model, stores("alice").key_of(kept)) == ("other", KEY)
    await saved(stores, key="")
    kept = await stores("alice").get("openai")
    assert kept is not None
    assert (kept.key, kept.key_end, stores("alice").key_of(kept)) == (None, "", "")


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)  # it counts what the work asks
async def test_a_key_that_may_not_go_to_the_new_address_is_dropped_in_the_same_step(
    stores: Callable[[str], ModelServiceStore],
) -> None:
    await saved(stores)
    seen: list[str] = []

    def keeps(address: str) -> bool:
        seen.append(address)
        return address == "https://other.example/v1"

    for address, has_key in (("https://other.example/v1", False), ("https://third.example/v1", False)):
        await stores("alice").save("openai", address=address, model="m", key=None, use=False, keeps=keeps)
        kept = await stores("alice").get("openai")
        assert kept is not None
        assert (bool(kept.key), bool(kept.key_end), kept.address) == (has_key, has_key, address)
    await stores("alice").save("openai", address="https://other.example/v1", model="m", key=KEY, use=False, keeps=keeps)
    await stores("alice").save(
        "openai", address="https://third.example/v1", model="m", key=None, use=False, keeps=keeps
    )
    kept = await stores("alice").get("openai")
    assert kept is not None
    assert stores("alice").key_of(kept) == KEY
    assert seen == ["https://api.example/v1", "https://other.example/v1", "https://other.example/v1"]


async def test_saving_tells_whether_it_answers(stores: Callable[[str], ModelServiceStore]) -> None:
    given = {"address": "https://api.example/v1", "model": "m", "key": None}
    assert not await stores("alice").save("openai", **given, use=False)
    assert await stores("alice").save("openai", **given, use=True)
    assert await stores("alice").save("openai", **given, use=False)
    assert not await stores("alice").save("dashscope", **given, use=False)
    assert not await stores("bob").save("openai", **given, use=False)


async def test_at_most_one_answers_and_none_is_the_installations(stores: Callable[[str], ModelServiceStore]) -> None:
    assert await stores("alice").in_use() is None
    await saved(stores, "openai", use=True)
    await saved(stores, "dashscope", use=True)
    assert [(one.service, one.in_use) for one in await stores("alice").list()] == [
        ("dashscope", True),
        ("openai", False),
    ]
    await saved(stores, "openai")
    used = await stores("alice").in_use()
    assert used is not None
    assert used.service == "dashscope"
    await stores("alice").use("")
    assert await stores("alice").in_use() is None
    assert len(await stores("alice").list()) == 2


async def test_what_is_alices_does_not_exist_for_bob(stores: Callable[[str], ModelServiceStore]) -> None:
    await saved(stores, use=True)
    assert await stores("bob").list() == []
    await stores("bob").use("openai")
    await stores("bob").delete("openai")
    assert await stores("alice").in_use() is not None
    await stores("alice").delete("openai")
    assert await stores("alice").list() == []


async def test_a_row_that_was_moved_to_another_owner_does_not_open(
    stores: Callable[[str], ModelServiceStore], database: Database
) -> None:
    await saved(stores)
    await database.write(lambda c: c.execute(text("UPDATE model_services SET owner_id = 'bob'")))
    kept = await stores("bob").get("openai")
    assert kept is not None
    with pytest.raises(StorageError) as caught:
        stores("alice").key_of(kept)
    assert caught.value.words_key == "key_unreadable"


async def test_with_another_secret_a_key_is_told_unreadable(
    stores: Callable[[str], ModelServiceStore], database: Database
) -> None:
    await saved(stores)
    kept = await stores("alice").get("openai")
    assert kept is not None
    with pytest.raises(StorageError) as caught:
        ModelServiceStore(database, Sealer("another secret"), "alice").key_of(kept)
    assert caught.value.words_key == "key_unreadable"
    assert caught.value.__cause__ is None


async def test_an_owner_need_not_be_known(stores: Callable[[str], ModelServiceStore]) -> None:
    await stores("carol").save("openai", address="", model="m", key=KEY, use=True)
    assert await stores("carol").in_use() is not None


@pytest.mark.parametrize("sealed", ["", "1.", "1.AAAA", "2.zzz", "1.not base64!", "1." + "A" * 80])
def test_what_nobody_sealed_does_not_open(sealed: str) -> None:
    with pytest.raises(StorageError):
        Sealer("secret").open(sealed, "alice", "openai")


def test_the_same_text_is_never_sealed_the_same() -> None:
    sealer = Sealer("secret")
    assert sealer.seal(KEY, "a", "b") != sealer.seal(KEY, "a", "b")
    assert sealer.open(sealer.seal("密钥", "a"), "a") == "密钥"


async def test_a_database_of_before_gets_the_table_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    steps.run_steps(path, "0001")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO owners VALUES ('alice', 1.0)")
    database = await Database.open(path)
    stores = partial(ModelServiceStore, database, Sealer("secret"))
    await saved(stores, use=True)
    assert await database.read(lambda c: c.execute(text("SELECT count(*) FROM owners")).scalar_one()) == 1
    await database.aclose()
    assert [copy.name.startswith("old-0001-") for copy in (tmp_path / "backups").iterdir()] == [True]
