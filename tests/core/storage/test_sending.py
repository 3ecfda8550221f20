"""What is sent several statements at a time is stored as if each had been run where it stands."""

from __future__ import annotations

from typing import Any, Final

import psycopg
import pytest
from sqlalchemy import Connection, bindparam, insert, select, text, update

from core.errors import ConflictError, StorageError
from core.storage.conversations import ConversationStore
from core.storage.database import Database, first_of, rows_of, send
from core.storage.tables import conversations, owner_settings, owners

pytestmark = pytest.mark.anyio

_ADD: Final = insert(owners)
_RENAME: Final = update(owners).where(owners.c.id == bindparam("former")).values(id=bindparam("name"))
_THIS: Final = select(owners).where(owners.c.id == bindparam("name"))
_ALL: Final = select(owners.c.id).order_by(owners.c.id)
_SET: Final = insert(owner_settings)
_IS_SET: Final = select(owner_settings.c.value).where(owner_settings.c.name == bindparam("name"))
_FILE: Final = select(conversations).where(conversations.c.id == bindparam("conversation"))


def owner(name: str) -> dict[str, Any]:
    return {"id": name, "created_at": 1.5}


def names(connection: Connection) -> list[str]:
    return [row.id for row in rows_of(connection, _ALL, {})]


async def test_it_is_stored_at_the_end_of_the_transaction(database: Database) -> None:
    await database.write(lambda c: send(c, _ADD, owner("carol"), owner("dora")))
    assert await database.read(names) == ["alice", "bob", "carol", "dora"]


async def test_what_is_read_after_it_sees_it_however_it_is_read(database: Database) -> None:
    def work(connection: Connection) -> tuple[Any, Any]:
        send(connection, _ADD, owner("carol"))
        quickly = first_of(connection, _THIS, {"name": "carol"})
        send(connection, _RENAME, {"former": "carol", "name": "dora"})
        usually = connection.execute(_THIS, {"name": "dora"}).first()
        return tuple(quickly), usually

    quickly, usually = await database.write(work)
    assert quickly == ("carol", 1.5)
    assert usually == ("dora", 1.5)


async def test_it_happens_in_the_order_in_which_it_was_said(database: Database) -> None:
    def work(connection: Connection) -> None:
        send(connection, _ADD, owner("carol"))
        connection.execute(update(owners).where(owners.c.id == "carol").values(id="dora"))
        send(connection, _RENAME, {"former": "dora", "name": "eve"})

    await database.write(work)
    assert await database.read(names) == ["alice", "bob", "eve"]


async def test_values_are_kept_as_they_are_otherwise(database: Database) -> None:
    values: list[Any] = [None, True, 1, 2.5, "", "ä 你好 \\ \" '", {"a": [1, None, {"b": "\ud83d\ude00"}]}, ["x"] * 40]

    def work(connection: Connection) -> list[tuple[Any, Any]]:
        for number, value in enumerate(values):
            row = {"owner_id": "alice", "name": f"quick {number}", "value": value}
            send(connection, _SET, row)
            connection.execute(_SET, {**row, "name": f"usual {number}"})
        return [
            (
                first_of(connection, _IS_SET, {"name": f"quick {number}"})[0],
                connection.execute(_IS_SET, {"name": f"usual {number}"}).scalar(),
            )
            for number in range(len(values))
        ]

    for quickly, usually in await database.write(work):
        assert quickly == usually
        assert type(quickly) is type(usually)


async def test_a_row_that_is_read_has_its_columns_by_their_names(database: Database) -> None:
    record = await ConversationStore(database, "alice").create("Talk")
    row = await database.read(lambda c: first_of(c, _FILE, {"conversation": record.id}))
    assert (row.id, row.owner_id, row.title, row.leaf_id) == (record.id, "alice", "Talk", None)
    assert await database.read(lambda c: first_of(c, _FILE, {"conversation": "other"})) is None


async def test_what_a_rule_forbids_is_told_in_the_words_of_who_sent_it_and_nothing_is_stored(
    database: Database,
) -> None:
    def work(connection: Connection) -> None:
        send(connection, _ADD, owner("carol"))
        send(connection, _ADD, owner("alice"), refused=lambda: ConflictError("There is one.", key="busy"))
        send(connection, _ADD, owner("dora"))

    for _ in range(5):  # whichever connection it is, and however often
        with pytest.raises(ConflictError, match="There is one"):
            await database.write(work)
    assert await database.read(names) == ["alice", "bob"]
    await database.write(lambda c: send(c, _ADD, owner("carol")))
    assert await database.read(names) == ["alice", "bob", "carol"]


async def test_without_such_words_it_is_an_error_of_the_database(database: Database) -> None:
    with pytest.raises(StorageError):
        await database.write(lambda c: send(c, _ADD, owner("carol"), owner("alice")))
    assert await database.read(names) == ["alice", "bob"]


async def test_of_a_work_that_fails_nothing_is_left_to_be_sent(database: Database) -> None:
    def work(connection: Connection) -> None:
        send(connection, _ADD, owner("carol"))
        raise KeyError

    for _ in range(5):
        with pytest.raises(KeyError):
            await database.write(work)
        await database.write(lambda c: first_of(c, _THIS, {"name": "alice"}))
    assert await database.read(names) == ["alice", "bob"]


async def test_what_is_no_json_is_refused_and_nothing_of_it_is_stored(database: Database) -> None:
    row = {"owner_id": "alice", "name": "odd", "value": {"a": object()}}

    def work(connection: Connection) -> None:
        send(connection, _ADD, owner("carol"))
        send(connection, _SET, row)

    with pytest.raises(Exception, match="not JSON serializable"):
        await database.write(work)
    assert await database.read(names) == ["alice", "bob"]


async def test_text_with_nul_is_kept_without_it(postgres: str) -> None:
    opened = await Database.open(postgres)
    await opened.write(lambda c: send(c, _ADD, owner("ca\0rol")))
    assert await opened.read(names) == ["carol"]
    await opened.aclose()


async def test_more_than_goes_over_the_line_at_once_is_stored_whole(database: Database) -> None:
    many = [owner(f"{number} {'x' * 2000}") for number in range(2000)]
    await database.write(lambda c: send(c, _ADD, *many))
    assert len(await database.read(names)) == len(many) + 2


async def test_a_connection_that_is_lost_meanwhile_costs_nothing(postgres: str) -> None:
    opened, tries = await Database.open(postgres), list[int]()

    def cut_off_once(connection: Connection) -> None:
        tries.append(1)
        number = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        send(connection, _ADD, owner("carol"))
        if len(tries) == 1:
            with psycopg.connect(postgres, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 5000)", (number,))
        send(connection, _ADD, owner("dora"))

    await opened.write(cut_off_once)
    assert len(tries) == 2
    assert await opened.read(names) == ["carol", "dora"]
    await opened.aclose()
