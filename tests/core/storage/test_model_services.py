"""Services that owners set up: each its owner's alone, with a key that nobody can read in the file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
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
def store(database: Database) -> ModelServiceStore:
    return ModelServiceStore(database, Sealer("secret"))


async def saved(store: ModelServiceStore, service: str = "openai", *, key: str | None = KEY, use: bool = False) -> None:
    await store.save("alice", service, address="https://api.example/v1", model="m", key=key, use=use)


async def test_a_key_is_kept_sealed_and_shown_by_its_end(store: ModelServiceStore, tmp_path: Path) -> None:
    await saved(store)
    kept = await store.get("alice", "openai")
    assert kept is not None
    assert (kept.key_end, store.key_of(kept)) == ("cdef", KEY)
    assert "CANARY" not in repr(kept)
    with closing(sqlite3.connect(tmp_path / "parlour.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert all(b"CANARY" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


async def test_of_a_short_key_nothing_is_shown(store: ModelServiceStore) -> None:
    await saved(store, key="hunter2")
    kept = await store.get("alice", "openai")
    assert kept is not None
    assert (kept.key_end, store.key_of(kept)) == ("", "hunter2")


async def test_saving_without_a_key_keeps_it_and_an_empty_one_takes_it_away(store: ModelServiceStore) -> None:
    await saved(store)
    await store.save("alice", "openai", address="", model="other", key=None, use=False)
    kept = await store.get("alice", "openai")
    assert kept is not None
    assert (kept.model, store.key_of(kept)) == ("other", KEY)
    await saved(store, key="")
    kept = await store.get("alice", "openai")
    assert kept is not None
    assert (kept.key, kept.key_end, store.key_of(kept)) == (None, "", "")


async def test_a_key_that_may_not_go_to_the_new_address_is_dropped_in_the_same_step(store: ModelServiceStore) -> None:
    await saved(store)
    seen: list[str] = []

    def keeps(address: str) -> bool:
        seen.append(address)
        return address == "https://other.example/v1"

    for address, has_key in (("https://other.example/v1", False), ("https://third.example/v1", False)):
        await store.save("alice", "openai", address=address, model="m", key=None, use=False, keeps=keeps)
        kept = await store.get("alice", "openai")
        assert kept is not None
        assert (bool(kept.key), bool(kept.key_end), kept.address) == (has_key, has_key, address)
    await store.save("alice", "openai", address="https://other.example/v1", model="m", key=KEY, use=False, keeps=keeps)
    await store.save("alice", "openai", address="https://third.example/v1", model="m", key=None, use=False, keeps=keeps)
    kept = await store.get("alice", "openai")
    assert kept is not None
    assert store.key_of(kept) == KEY
    assert seen == ["https://api.example/v1", "https://other.example/v1", "https://other.example/v1"]


async def test_saving_tells_whether_it_answers(store: ModelServiceStore) -> None:
    given = {"address": "https://api.example/v1", "model": "m", "key": None}
    assert not await store.save("alice", "openai", **given, use=False)
    assert await store.save("alice", "openai", **given, use=True)
    assert await store.save("alice", "openai", **given, use=False)
    assert not await store.save("alice", "dashscope", **given, use=False)
    assert not await store.save("bob", "openai", **given, use=False)


async def test_at_most_one_answers_and_none_is_the_installations(store: ModelServiceStore) -> None:
    assert await store.in_use("alice") is None
    await saved(store, "openai", use=True)
    await saved(store, "dashscope", use=True)
    assert [(one.service, one.in_use) for one in await store.list("alice")] == [("dashscope", True), ("openai", False)]
    await saved(store, "openai")
    used = await store.in_use("alice")
    assert used is not None
    assert used.service == "dashscope"
    await store.use("alice", "")
    assert await store.in_use("alice") is None
    assert len(await store.list("alice")) == 2


async def test_what_is_alices_does_not_exist_for_bob(store: ModelServiceStore) -> None:
    await saved(store, use=True)
    assert await store.list("bob") == []
    await store.use("bob", "openai")
    await store.delete("bob", "openai")
    assert await store.in_use("alice") is not None
    await store.delete("alice", "openai")
    assert await store.list("alice") == []


async def test_a_row_that_was_moved_to_another_owner_does_not_open(
    store: ModelServiceStore, database: Database
) -> None:
    await saved(store)
    await database.write(lambda c: c.execute(text("UPDATE model_services SET owner_id = 'bob'")))
    kept = await store.get("bob", "openai")
    assert kept is not None
    with pytest.raises(StorageError) as caught:
        store.key_of(kept)
    assert caught.value.words_key == "key_unreadable"


async def test_with_another_secret_a_key_is_told_unreadable(store: ModelServiceStore, database: Database) -> None:
    await saved(store)
    kept = await store.get("alice", "openai")
    assert kept is not None
    with pytest.raises(StorageError) as caught:
        ModelServiceStore(database, Sealer("another secret")).key_of(kept)
    assert caught.value.words_key == "key_unreadable"
    assert caught.value.__cause__ is None


async def test_an_owner_need_not_be_known(store: ModelServiceStore) -> None:
    await store.save("carol", "openai", address="", model="m", key=KEY, use=True)
    assert await store.in_use("carol") is not None


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
    store = ModelServiceStore(database, Sealer("secret"))
    await saved(store, use=True)
    assert await database.read(lambda c: c.execute(text("SELECT count(*) FROM owners")).scalar_one()) == 1
    await database.aclose()
    assert [copy.name.startswith("old-0001-") for copy in (tmp_path / "backups").iterdir()] == [True]
