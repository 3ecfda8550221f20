"""The database file: made, brought up to date, full, busy, damaged, cancelled."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine

from core.errors import ConflictError, NoSpaceError, StorageError
from core.storage import database as database_module
from core.storage.database import Database
from core.storage.migrations import steps, upgrade
from core.storage.tables import metadata

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quick_databases() -> None:
    """None: how a file is made, and made to survive a power failure, is the subject."""


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


async def store_an_owner(database: Database, owner: str, size: int = 0) -> None:
    await database.write(
        lambda c: c.exec_driver_sql("INSERT INTO owners VALUES (?, ?)", (owner + "x" * size, 1.0)).rowcount
    )


async def owner_count(database: Database) -> int:
    return await database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM owners").scalar_one())


async def test_the_steps_make_the_tables_that_the_program_uses(tmp_path: Path) -> None:
    await (await Database.open(tmp_path / "a.db")).aclose()
    engine = create_engine(f"sqlite:///{tmp_path / 'a.db'}")
    with engine.connect() as connection:
        # What SQLite keeps of an index of words is no table of ours.
        ours = {"include_name": lambda name, kind, _: kind != "table" or not str(name).startswith("message_index")}
        context = MigrationContext.configure(connection, opts={"compare_type": True, **ours})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_the_newest_step_is_the_one_that_opening_looks_for() -> None:
    assert ScriptDirectory(str(Path(steps.__file__).parent)).get_heads() == [steps.HEAD]


OF_THE_HOUSE = {
    "owners",
    "people",
    "groups",
    "group_members",
    "sign_ins",
    "sessions",
    "invitations",
    "audit",
}  # who the owners are


async def test_every_table_has_an_owner() -> None:
    assert {name for name, table in metadata.tables.items() if "owner_id" not in table.c} == OF_THE_HOUSE


async def test_the_file_is_its_owners_alone_and_writes_ahead(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "home" / "a.db")
    await database.aclose()
    assert stat.S_IMODE((tmp_path / "home" / "a.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700
    assert rows(tmp_path / "home" / "a.db", "PRAGMA journal_mode") == [("wal",)]


async def test_messages_survive_a_power_failure_and_checkpoints_are_cheap(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")

    def level(connection: Connection) -> int:
        return connection.exec_driver_sql("PRAGMA synchronous").scalar_one()

    assert [await database.write(level), await database.write(level, durable=False), await database.write(level)] == [
        2,
        1,
        2,
    ]
    await database.aclose()


async def test_killed_in_the_middle_of_the_steps_it_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    program = (
        "import os, sys; from pathlib import Path\n"
        "from alembic import op; from core.storage.migrations.upgrade import bring_up_to_date\n"
        "done = []; make = op.create_index\n"
        "def dying(*a, **k):\n"
        "    done.append(a)\n"
        "    if len(done) == 4: os._exit(9)\n"
        "    return make(*a, **k)\n"
        "op.create_index = dying\n"
        "bring_up_to_date(Path(sys.argv[1]))\n"
    )
    killed = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program, str(path)], check=False)
    assert killed.returncode == 9
    assert rows(path, "SELECT count(*) FROM sqlite_master") == [(0,)]
    database = await Database.open(path)
    await store_an_owner(database, "somebody")
    assert await owner_count(database) == 1
    await database.aclose()


async def test_a_file_of_a_newer_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await (await Database.open(path)).aclose()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    with pytest.raises(StorageError) as caught:
        await Database.open(path)
    assert caught.value.words_key == "storage_newer"


def killed_while_it_writes(path: Path) -> None:
    """A process opens the file, writes, and is killed."""
    program = (
        "import os, sqlite3, sys; connection = sqlite3.connect(sys.argv[1])\n"
        "connection.execute(\"INSERT INTO owners VALUES ('killed', 1.0)\"); connection.commit()\n"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == -9


@pytest.mark.parametrize("damage", ["not a database", "overwritten pages"])
async def test_a_damaged_file_is_named_and_not_touched(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.db"
    database = await Database.open(path)
    for number in range(200):
        await store_an_owner(database, str(number), 200)
    await database.aclose()
    path.with_name("a.db-wal").write_bytes(bytes(32))  # it did not end well, and the journal holds nothing whole
    content = bytearray(path.read_bytes())
    content = bytearray(b"no database " * 999) if damage == "not a database" else content
    if damage == "overwritten pages":
        content[5000:40_000] = b"\x07" * 35_000
    path.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        await Database.open(path)
    assert caught.value.words_key == "storage_damaged"
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


async def test_the_whole_file_is_looked_through_only_after_an_end_that_was_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[bool] = []
    updating: Any = upgrade
    check = updating._checked_revision

    def noted(connection: sqlite3.Connection, path: Path, *, scan: bool) -> str | None:
        scanned.append(scan)
        return check(connection, path, scan=scan)

    monkeypatch.setattr(upgrade, "_checked_revision", noted)
    path = tmp_path / "a.db"
    for _ in range(2):
        database = await Database.open(path)
        await store_an_owner(database, f"owner{len(scanned)}")
        await database.aclose()
    assert scanned == [False, False]
    killed_while_it_writes(path)
    database = await Database.open(path)
    assert await owner_count(database) == 3
    await store_an_owner(database, "after the kill")
    beside = await Database.open(path)  # another process has it open: whether it ends well is not known yet
    await beside.aclose()
    await database.aclose()
    await (await Database.open(path)).aclose()
    assert scanned[2:] == [True, True, False]


async def test_a_damaged_file_of_a_clean_end_is_named_where_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    database = await Database.open(path)
    for number in range(200):
        await store_an_owner(database, str(number), 200)
    await database.aclose()
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"\x07" * (len(content) - len(content) // 2)
    path.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        database = await Database.open(path)
        await database.read(lambda c: c.exec_driver_sql("SELECT count(*), max(id) FROM owners").all())
    assert caught.value.words_key == "storage_damaged"


async def test_on_a_full_disk_nothing_stored_is_lost_and_it_goes_on_when_there_is_space(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    await store_an_owner(database, "before")
    pages = await database.read(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar_one())
    await database.write(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar())
    with pytest.raises(NoSpaceError):
        await store_an_owner(database, "too much", 100_000)
    assert await owner_count(database) == 1
    await database.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count=100000").scalar())
    await store_an_owner(database, "after", 100_000)
    assert await owner_count(database) == 2
    await database.aclose()


async def test_a_database_that_another_process_keeps_locked_is_busy_and_then_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "_BUSY_TIMEOUT", 0.05)
    database = await Database.open(tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConflictError) as caught:
            await store_an_owner(database, "late")
        assert caught.value.words_key == "storage_busy"
        other.execute("ROLLBACK")
    await store_an_owner(database, "late")
    await database.aclose()


async def test_a_cancelled_caller_leaves_no_transaction_open(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    for number in range(30):
        writing = asyncio.create_task(store_an_owner(database, str(number)))
        for _ in range(number % 10):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait({writing})
    await store_an_owner(database, "after")
    assert await owner_count(database) == 28  # what had begun was done whole; three had not begun
    with closing(sqlite3.connect(tmp_path / "a.db", timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # nobody holds the lock
        other.execute("ROLLBACK")
    await database.aclose()


async def test_an_error_inside_a_transaction_undoes_all_of_it(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")

    def half(connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO owners VALUES ('half', 1.0)")
        raise LookupError("changed my mind")

    with pytest.raises(LookupError):
        await database.write(half)
    assert await owner_count(database) == 0
    await database.aclose()


async def test_many_writers_wait_for_each_other(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    await asyncio.gather(*(store_an_owner(database, str(number)) for number in range(100)))
    assert await owner_count(database) == 100
    await database.aclose()


async def test_what_another_process_changed_is_known_from_what_this_one_changed(tmp_path: Path) -> None:
    ours, theirs = [await Database.open(tmp_path / "parlour.db") for _ in range(2)]
    await ours.look_for_others()
    before = ours.others()
    await store_an_owner(ours, "alice")
    await ours.look_for_others()
    assert ours.others() == before
    await store_an_owner(theirs, "bob")
    await ours.look_for_others()
    assert ours.others() != before
    await ours.aclose()
    await theirs.aclose()
    with pytest.raises(StorageError, match="closed"):
        await ours.look_for_others()


async def test_a_folder_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError) as caught:
        await Database.open(tmp_path / "file" / "a.db")
    assert "file" in str(caught.value)


async def test_what_is_under_way_when_it_closes_is_done_and_leaves_no_file_open(tmp_path: Path) -> None:
    database, path = await Database.open(tmp_path / "a.db"), tmp_path / "a.db"
    begun, go = threading.Event(), threading.Event()

    def slowly(connection: Connection) -> int:
        begun.set()
        go.wait(20)
        return connection.exec_driver_sql("INSERT INTO owners VALUES (hex(randomblob(8)), 1.0)").rowcount

    def look(connection: Connection) -> int:
        go.wait(20)
        return len(connection.exec_driver_sql("PRAGMA table_list").all())

    work = [asyncio.ensure_future(database.write(slowly)) for _ in range(2)]
    work += [asyncio.ensure_future(database.read(look)) for _ in range(4)]
    await asyncio.to_thread(begun.wait, 20)
    ending = asyncio.create_task(database.aclose())
    await asyncio.sleep(0)
    go.set()
    await ending
    assert all(await asyncio.gather(*work))
    assert [one.name for one in tmp_path.iterdir()] == [path.name], "what was written ahead is in the file itself"
    assert rows(path, "SELECT count(*) FROM owners") == [(2,)]


async def test_a_closed_database_says_so(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "a.db")
    await database.aclose()
    with pytest.raises(StorageError, match="closed"):
        await owner_count(database)
