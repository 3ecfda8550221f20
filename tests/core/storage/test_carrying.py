"""An embedded installation is carried over into PostgreSQL: all of it, once, and never over something else."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from core.errors import ConflictError, StorageError
from core.messages.message import Message
from core.storage import carrying
from core.storage.carrying import carry
from core.storage.database import Database, count_opening
from core.storage.installation import check_secret
from core.storage.owner_settings import OwnerSettings
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.storage.tables import metadata

pytestmark = pytest.mark.anyio
STORED = Path(__file__).with_name("stored")
SECRET = "the secret of the stored databases"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A data folder's database with something in each table that Parlour of today fills."""
    found = tmp_path / "parlour.db"
    found.write_bytes(gzip.decompress((STORED / "0015.db.gz").read_bytes()))
    return found


def nobody(_table: str, _rows: int) -> None:
    pass


def counts_of(run: Callable[[str], Any]) -> dict[str, int]:
    return {name: run(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in metadata.tables}


def rows_of(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as connection:
        return counts_of(connection.execute)


def rows_in(address: str) -> dict[str, int]:
    with psycopg.connect(address) as connection:
        return counts_of(lambda query: connection.execute(query.encode()))


@pytest.mark.parametrize("schema", ["0001", "0012", "0019"])
def test_all_rows_of_every_schema_arrive(schema: str, tmp_path: Path, postgres: str) -> None:
    path = tmp_path / "parlour.db"
    path.write_bytes(gzip.decompress((STORED / f"{schema}.db.gz").read_bytes()))
    told: dict[str, int] = {}
    carry(path, postgres, SECRET, told.__setitem__)
    assert rows_in(postgres) == rows_of(path) == told
    assert told["messages"] > 0


async def test_what_arrived_is_found_read_and_gone_on_with(path: Path, postgres: str, tmp_path: Path) -> None:
    before = await Database.open(path)
    owner = "local"
    was = Stores(before, tmp_path / "files", Sealer(SECRET)).of(owner)
    first = await was.conversations.create("Äpfel und 灯塔看守人")
    question = await was.conversations.add_message(first.id, "user", [Message("user", "Wo ist das 灯塔?\0")], None)
    await OwnerSettings(before, owner).change("odd", lambda _: {"nan": float("nan"), "half": "\ud83d"})
    listed = await was.conversations.list()
    found = [hit.conversation.id for hit in (await was.search.find("灯塔")).conversations]
    await before.aclose()
    carry(path, postgres, SECRET, nobody)
    after = await Database.open(postgres)
    now = Stores(after, tmp_path / "files", Sealer(SECRET)).of(owner)
    assert await now.conversations.list() == listed
    assert [hit.conversation.id for hit in (await now.search.find("灯塔")).conversations] == found != []
    assert await now.settings.get("odd") == {"nan": None, "half": "\ud83d"}
    reply = await now.conversations.add_message(first.id, "assistant", [Message("assistant", "Dort.")], question.id)
    assert [turn.id for turn in await now.conversations.thread(first.id)] == [question.id, reply.id]
    await after.aclose()


async def test_a_parlour_of_the_data_folder_goes_on_with_what_was_carried(
    path: Path, postgres: str, tmp_path: Path
) -> None:
    before = await Database.open(path)
    for _ in range(3):
        assert await count_opening(before, tmp_path) is None
    await before.aclose()
    carry(path, postgres, SECRET, nobody)
    after = await Database.open(postgres)
    assert await count_opening(after, tmp_path) is None, "it is no older copy"
    await after.aclose()


def test_a_message_whose_question_is_gone_is_told_and_not_left_out(path: Path, postgres: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE messages SET parent_id = 'gone' WHERE parent_id IS NOT NULL")
        connection.commit()
    with pytest.raises(ConflictError, match="messages"):
        carry(path, postgres, SECRET, nobody)


def test_a_reply_that_is_older_than_its_question_arrives_after_it(path: Path, postgres: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE messages SET created_at = 2e9 WHERE parent_id IS NULL")
        connection.commit()
    carry(path, postgres, SECRET, nobody)
    assert rows_in(postgres)["messages"] == rows_of(path)["messages"]


class CutOffError(Exception):
    pass


def cut_off_at(table: str) -> Callable[[str, int], None]:
    def told(name: str, _rows: int) -> None:
        if name == table:
            raise CutOffError

    return told


async def test_cut_short_it_goes_on_and_meanwhile_no_parlour_starts(path: Path, postgres: str) -> None:
    with pytest.raises(CutOffError):
        carry(path, postgres, SECRET, cut_off_at("messages"))
    assert (rows_in(postgres)["messages"] > 0, rows_in(postgres)["runs"]) == (True, 0)
    database = await Database.open(postgres)
    with pytest.raises(ConflictError) as caught:
        await check_secret(database, SECRET)  # as each Parlour does that starts
    assert caught.value.words_key == "move_unfinished"
    with psycopg.connect(postgres) as connection:
        (place,) = connection.execute("SELECT max(ctid::text) FROM messages").fetchone() or ("",)
    carry(path, postgres, SECRET, nobody)
    with psycopg.connect(postgres) as connection:  # what was there already was not written again
        assert connection.execute("SELECT max(ctid::text) FROM messages").fetchone() == (place,)
    assert rows_in(postgres) == rows_of(path)
    await check_secret(database, SECRET)
    await database.aclose()


def test_what_changed_in_the_data_folder_after_a_cut_arrives_too(path: Path, postgres: str) -> None:
    with pytest.raises(CutOffError):
        carry(path, postgres, SECRET, cut_off_at("runs"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE conversations SET title = 'changed meanwhile'")
        connection.commit()
    carry(path, postgres, SECRET, nobody)
    with psycopg.connect(postgres) as connection:
        assert connection.execute("SELECT DISTINCT title FROM conversations").fetchall() == [("changed meanwhile",)]


def test_a_database_that_holds_something_else_is_left_alone(path: Path, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("INSERT INTO owners VALUES ('somebody', 1.0)")
    with pytest.raises(ConflictError) as caught:
        carry(path, postgres, SECRET, nobody)
    assert caught.value.words_key == "move_not_empty"
    assert sum(rows_in(postgres).values()) == 1


def test_what_another_installation_has_carried_is_left_alone(path: Path, postgres: str) -> None:
    with pytest.raises(CutOffError):
        carry(path, postgres, "another secret", cut_off_at("owners"))
    with pytest.raises(ConflictError) as caught:
        carry(path, postgres, SECRET, nobody)
    assert caught.value.words_key == "move_not_empty"


def test_a_move_that_is_done_is_not_done_again(path: Path, postgres: str) -> None:
    carry(path, postgres, SECRET, nobody)
    with pytest.raises(ConflictError) as caught:
        carry(path, postgres, SECRET, nobody)
    assert caught.value.words_key == "move_not_empty"


async def test_no_parlour_may_run_on_the_data_folder(
    path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carrying, "PATIENCE", 0.05)
    database = await Database.open(path)
    await database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM owners").scalar_one())
    with pytest.raises(ConflictError) as caught:
        carry(path, postgres, SECRET, nobody)
    assert caught.value.words_key == "storage_in_use"
    assert sum(rows_in(postgres).values()) == 0
    await database.aclose()


def test_what_arrives_changed_is_told_and_not_kept(path: Path, postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.title := 'x'; RETURN NEW; END $$;"
            "CREATE TRIGGER spoil BEFORE INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION spoil()"
        )
        try:
            with pytest.raises(StorageError) as caught:
                carry(path, postgres, SECRET, nobody)
        finally:
            connection.execute("DROP TRIGGER spoil ON conversations; DROP FUNCTION spoil()")
    assert (caught.value.words_key, caught.value.details["table"]) == ("move_differs", "conversations")
    assert rows_in(postgres)["conversations"] == 0
