"""PostgreSQL as the database: made, shared by several Parlours, away, full, closed to somebody."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
import traceback
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, insert, select, text

from core.engine import Engine
from core.errors import ConflictError, NoSpaceError, ParlourError, SettingsError, StorageError
from core.messages.message import Message
from core.rag.document import Chunk, Document
from core.rag.draft import Piece
from core.rag.grown.shelf import PgShelves
from core.settings import Settings
from core.storage import postgres_database, postgres_engine
from core.storage.conversations import ConversationStore, is_unneeded
from core.storage.database import Database
from core.storage.migrations.postgres import bring_up_to_date
from core.storage.migrations.steps import HEAD
from core.storage.owner_settings import OwnerSettings
from core.storage.postgres_database import PostgresDatabase
from core.storage.postgres_engine import conninfo_of, engine_of, named
from core.storage.run_news import RunRequest, RunRequests
from core.storage.runs import AllRuns
from core.storage.tables import files, metadata, owner_settings
from core.testing.scripted_model import ScriptedModel
from tests.grown_postgres import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def opened(postgres: str, anyio_backend: str) -> AsyncIterator[Database]:
    database = await Database.open(postgres)
    yield database
    await database.aclose()


def add_owner(owner: str) -> Callable[[Connection], Any]:
    return lambda c: c.execute(text("INSERT INTO owners VALUES (:owner, 1.0)"), {"owner": owner})


async def owner_count(database: Database) -> int:
    return await database.read(lambda c: c.execute(text("SELECT count(*) FROM owners")).scalar_one())


async def test_the_steps_make_the_tables_that_the_program_uses(opened: Database) -> None:
    def differences(connection: Connection) -> list[Any]:
        of_one_form = {"installation", "terms", "ix_message_texts_terms", "ix_run_events_owner_id"}
        ours = {"include_name": lambda name, kind, _: name not in of_one_form}
        return compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True, **ours}), metadata)

    assert await opened.read(differences) == []


WRONG_ADDRESSES = {
    "no address": ("postgres", "storage_address"),
    "another kind": ("mysql://127.0.0.1/parlour", "storage_address"),
    "a list that ends too early": ("postgresql://postgres@{server},/parlour", "storage_address"),
    "a list with a word for a port": ("postgresql://postgres@{server},127.0.0.1:port/parlour", "storage_address"),
    "more ports than servers": ("postgresql://postgres@/parlour?host=a,b&port=1,2,3", "storage_address"),
    "nobody listens": ("postgresql://parlour@127.0.0.1:1/parlour", "storage_gone"),
    "no such database": ("postgresql://postgres@{server}/nowhere", "storage_missing"),
    "no such name": ("postgresql://nobody@{server}/postgres", "storage_password"),
    "a name that may make no tables": ("postgresql://guest@{server}/postgres", "storage_forbidden"),
    "a name that may not sign in": ("postgresql://closed@{server}/postgres", "storage_forbidden"),
}


@pytest.mark.parametrize(("address", "key"), WRONG_ADDRESSES.values(), ids=WRONG_ADDRESSES)
async def test_a_database_that_cannot_be_used_is_one_sentence(
    address: str, key: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("guest LOGIN", "closed NOLOGIN"):
        postgres_server.admin.execute(f"DROP ROLE IF EXISTS {role.split()[0]}; CREATE ROLE {role}".encode())
    with pytest.raises(ParlourError) as caught:
        await Database.open(address.format(server=f"127.0.0.1:{postgres_server.port}"))
    assert caught.value.words_key == key
    assert "\n" not in str(caught.value).partition("\nMore about it")[0]


SEVERAL = {
    "one": ("postgresql://p:a,b@one:7/parlour", "one", "7", "one:7"),
    "several": ("postgresql://p:a,b@one:7,two:8/parlour?sslmode=require", "one,two", "7,8", "one:7 or two:8"),
    "ports unsaid": ("postgres://one,two:8/parlour", "one,two", "5432,8", "one:5432 or two:8"),
    "by number": ("postgresql://p@[::1]:7,[::2]/parlour", "::1,::2", "7,5432", "::1:7 or ::2:5432"),
    "beside the place": ("postgresql://p@/parlour?host=one,two&port=7,8", "one,two", "7,8", "one:7 or two:8"),
    "one by one": ("postgresql://p@/parlour?host=one:7&host=two:8", "one,two", "7,8", "one:7 or two:8"),
    "unsaid": ("postgresql:///parlour", None, None, "this machine"),
}


@pytest.mark.parametrize(("address", "host", "port", "told"), SEVERAL.values(), ids=SEVERAL)
def test_an_address_may_name_several_servers_and_all_that_connect_read_it_alike(
    address: str, host: str | None, port: str | None, told: str
) -> None:
    engine = engine_of(address, 1)
    for read in (conninfo_to_dict(conninfo_of(address)), *engine.dialect.create_connect_args(engine.url)[1:]):
        assert (read.get("host"), str(read["port"]) if "port" in read else None) == (host, port)
    assert named(address) == f"the database parlour at {told}"
    wanted = "read-write" if "or" in told.split() else None
    assert conninfo_to_dict(conninfo_of(address)).get("target_session_attrs") == wanted


async def test_who_is_let_in_no_more_meets_a_storage_error_and_goes_on_when_that_is_over(
    postgres_server: PostgresServer,
) -> None:
    admin, address = postgres_server.admin, postgres_server.make("shut")
    admin.execute("CREATE ROLE once LOGIN")
    admin.execute("ALTER DATABASE shut OWNER TO once")
    database = await Database.open(address.replace("postgres@", "once@"))
    await database.write(add_owner("before"))
    admin.execute("ALTER ROLE once NOLOGIN")
    admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'once'")
    for asked in (owner_count(database), database.write(add_owner("meanwhile"))):
        with pytest.raises(StorageError) as caught:  # what works with it goes on after that, and after nothing else
            await asked
        assert caught.value.words_key == "storage_forbidden"
    admin.execute("ALTER ROLE once LOGIN")
    assert await owner_count(database) == 1
    await database.aclose()


@pytest.mark.parametrize("address", ["postgresql://parlour:hidden@word@127.0.0.1/parlour", "postgresql://p:hidden"])
async def test_an_address_that_is_wrong_by_its_password_shows_nothing_of_it(address: str) -> None:
    with pytest.raises(SettingsError) as caught:
        await Database.open(address)
    assert caught.value.words_key == "storage_address"
    assert "word" not in f"{caught.value}".partition("password")[0]
    assert "hidden" not in "".join(traceback.format_exception(caught.value))


async def test_what_somebody_wrote_stands_in_no_log_of_a_failure(opened: Database) -> None:
    word = "-".join(("hidden", "word"))
    with pytest.raises(ConflictError) as caught:
        await opened.write(lambda c: c.execute(insert(owner_settings).values(owner_id="x", name="n", value=word)))
    assert word not in "".join(traceback.format_exception(caught.value))


async def test_whether_a_file_is_needed_is_looked_up_and_nobody_elses_files_are_read(opened: Database) -> None:
    def plan(connection: Connection) -> str:
        connection.execute(text("SET LOCAL enable_seqscan = off"))  # as where there are many
        query = select(files.c.id).where(files.c.id == "one", is_unneeded(files.c.id))
        said = query.compile(dialect=connection.dialect, compile_kwargs={"literal_binds": True})
        return "\n".join(connection.exec_driver_sql(f"EXPLAIN {said}").scalars())

    assert len(re.findall(r"Index Cond: \(+file_id", await opened.read(plan))) == 3


async def test_where_an_owner_goes_nobody_elses_events_are_read(opened: Database) -> None:
    def plan(connection: Connection) -> str:
        connection.execute(text("SET LOCAL enable_seqscan = off"))  # as where there are many
        gone = "EXPLAIN DELETE FROM ONLY run_events WHERE owner_id = 'alice'"  # as the rule between the tables does
        return "\n".join(connection.exec_driver_sql(gone).scalars())

    assert "ix_run_events_owner_id" in await opened.write(plan)


async def test_a_password_is_never_shown() -> None:
    with pytest.raises(StorageError) as caught:
        await Database.open("postgresql://parlour:hidden-word@127.0.0.1:1/parlour")
    assert "hidden-word" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value)


async def test_tables_of_a_newer_program_are_left_alone(own_postgres: PostgresServer) -> None:
    address = own_postgres.make("parlour")
    bring_up_to_date(address)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StorageError) as caught:
        await Database.open(address)
    assert caught.value.words_key == "storage_newer"


async def test_of_many_that_bring_it_up_to_date_one_does_and_all_can_go_on(postgres_server: PostgresServer) -> None:
    address = postgres_server.make("raced")
    both = await asyncio.gather(*(Database.open(address) for _ in range(4)))
    await both[0].write(add_owner("somebody"))
    assert [await owner_count(one) for one in both] == [1] * 4
    for one in both:
        await one.aclose()


async def test_who_waits_too_long_for_another_to_bring_it_up_to_date_says_so(postgres_server: PostgresServer) -> None:
    address = postgres_server.make("waited")
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(7265700175711217)")
        with pytest.raises(ConflictError) as caught:
            await asyncio.to_thread(bring_up_to_date, address, 1)
    assert caught.value.words_key == "storage_migrating"
    bring_up_to_date(address)
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == (HEAD,)


async def test_two_questions_at_the_same_moment_give_one_run(postgres: str) -> None:
    replicas = [await Database.open(postgres) for _ in range(2)]
    await ConversationStore(replicas[0], "alice").ensure_owner()
    runs = [AllRuns(one).of("alice") for one in replicas]
    for number in range(10):
        talk = await ConversationStore(replicas[0], "alice").create(f"talk {number}")
        asked = [one.create(talk.id, user=[Message("user", "q")], parent_id=None, worker="w") for one in (*runs, *runs)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        begun = [one for one in outcomes if not isinstance(one, BaseException)]
        refused = [one.words_key for one in outcomes if isinstance(one, ConflictError)]
        assert (len(begun), refused) == (1, ["busy"] * 3)
        assert len(await ConversationStore(replicas[1], "alice").thread(talk.id)) == 2
        await runs[0].finish(begun[0][0].id, "complete", epoch=1, parts=[])
    for one in replicas:
        await one.aclose()


async def test_writes_whose_outcome_depends_on_their_order_run_one_after_the_other(postgres: str) -> None:
    replicas = [await Database.open(postgres) for _ in range(3)]

    def add_next(connection: Connection) -> None:
        count: int = connection.execute(text("SELECT count(*) FROM owners")).scalar_one()
        connection.execute(text("INSERT INTO owners VALUES (:id, 1.0)"), {"id": f"owner {count}"})

    await asyncio.gather(*(replicas[number % 3].write(add_next) for number in range(30)))
    assert await owner_count(replicas[0]) == 30
    for one in replicas:
        await one.aclose()


async def test_writes_of_different_rows_of_a_small_table_do_not_meet(opened: Database) -> None:
    for one in ("a", "b"):
        await opened.write(add_owner(one))
    await opened.write(lambda c: c.execute(text("ANALYZE owners")))  # PostgreSQL would read a page as a whole
    tried, both = list[str](), threading.Barrier(2)

    def change(owner: str, connection: Connection) -> None:
        connection.execute(text("SELECT * FROM owners WHERE id = :owner"), {"owner": owner}).one()
        if owner not in tried:
            tried.append(owner)
            both.wait(10)  # each has read its row, and neither has written it
        else:
            tried.append(owner)
        connection.execute(text("UPDATE owners SET created_at = 2 WHERE id = :owner"), {"owner": owner})

    await asyncio.gather(*(opened.write(partial(change, one)) for one in ("a", "b")))
    assert sorted(tried) == ["a", "b"]


async def test_text_with_nul_is_kept_without_it(opened: Database) -> None:
    await opened.write(add_owner("a\0lice"))
    assert await opened.read(lambda c: c.execute(text("SELECT id FROM owners")).scalar_one()) == "alice"


async def test_an_error_inside_a_transaction_undoes_all_of_it(opened: Database) -> None:
    def half(connection: Connection) -> None:
        add_owner("half")(connection)
        raise LookupError("changed my mind")

    with pytest.raises(LookupError):
        await opened.write(half)
    assert await owner_count(opened) == 0


async def test_a_work_that_goes_on_after_its_statement_failed_stores_nothing_and_is_told(opened: Database) -> None:
    def careless(connection: Connection) -> None:
        add_owner("alice")(connection)
        with pytest.raises(Exception, match="nowhere"):
            connection.execute(text("SELECT * FROM nowhere"))

    with pytest.raises(StorageError):
        await opened.write(careless)
    assert await owner_count(opened) == 0


async def test_a_cancelled_caller_leaves_no_transaction_open(opened: Database) -> None:
    for number in range(20):
        writing = asyncio.ensure_future(opened.write(add_owner(str(number))))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait({writing})
    idle = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
    assert await opened.read(lambda c: c.execute(text(idle)).scalar_one()) == 0


async def test_a_closed_database_says_so(postgres: str) -> None:
    database = await Database.open(postgres)
    await database.aclose()
    with pytest.raises(StorageError, match="closed"):
        await owner_count(database)


# ---- the server goes away


def kill_connection(server: str, connection: Connection) -> None:
    pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    with psycopg.connect(server, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


async def test_a_connection_that_is_lost_before_the_end_costs_nothing(opened: Database, postgres: str) -> None:
    tries: list[int] = []

    def cut_off_once(connection: Connection) -> None:
        tries.append(1)
        add_owner("alice")(connection)
        if len(tries) == 1:
            kill_connection(postgres, connection)

    await opened.write(cut_off_once)
    assert (len(tries), await owner_count(opened)) == (2, 1)


async def test_a_server_that_is_restarted_in_the_middle_is_waited_for(own_postgres: PostgresServer) -> None:
    database = await Database.open(own_postgres.make("parlour"))
    await database.write(add_owner("before"))
    tries: list[int] = []
    loop = asyncio.get_running_loop()

    def restarted(connection: Connection) -> None:
        tries.append(1)
        add_owner("during")(connection)
        if len(tries) == 1:
            own_postgres.stop(signal.SIGINT)
            loop.call_soon_threadsafe(own_postgres.start)

    await database.write(restarted)
    assert len(tries) == 2
    assert await owner_count(database) == 2
    await database.aclose()


async def test_a_server_that_stays_away_is_a_sentence(
    own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "PATIENCE", 0.2)
    database = await Database.open(own_postgres.make("parlour"))
    own_postgres.stop()
    for asked in (owner_count(database), database.write(add_owner("alice"))):
        with pytest.raises(StorageError) as caught:
            await asked
        assert caught.value.words_key == "storage_gone"
    own_postgres.start()
    assert await owner_count(database) == 0
    await database.aclose()


async def test_a_connection_that_is_lost_at_the_very_end_is_never_told_as_stored(
    opened: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    say = postgres_database._say  # pyright: ignore[reportPrivateUsage]

    def cut_off(plain: psycopg.Connection[Any], statement: bytes, answer: bytes = b"") -> None:
        if answer == b"COMMIT":  # the answer is lost, whatever it was
            say(plain, statement, answer)
            plain.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        say(plain, statement, answer)

    with monkeypatch.context() as broken:
        broken.setattr(postgres_database, "_say", cut_off)
        with pytest.raises(StorageError) as caught:
            await opened.write(add_owner("alice"))
    assert caught.value.words_key == "storage_unsure"
    assert await owner_count(opened) == 1  # once, not twice


async def test_a_read_only_server_is_waited_for_and_then_named(
    opened: Database, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_database, "PATIENCE", 0.2)
    monkeypatch.setitem(postgres_engine._USUAL, "options", "-c default_transaction_read_only=on")  # pyright: ignore[reportPrivateUsage]
    standby = Database(PostgresDatabase(postgres))
    assert await owner_count(standby) == 0
    with pytest.raises(StorageError) as caught:
        await standby.write(add_owner("alice"))
    assert caught.value.words_key == "storage_read_only"
    await standby.aclose()


async def test_a_server_without_free_connections_is_waited_for_and_then_named(
    own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = own_postgres.make("parlour")
    bring_up_to_date(address)
    own_postgres.stop()
    own_postgres.start("max_connections=4", "superuser_reserved_connections=0")
    monkeypatch.setattr(postgres_database, "PATIENCE", 0.3)
    database = Database(PostgresDatabase(address))
    others = [psycopg.connect(address) for _ in range(4)]
    with pytest.raises(ConflictError) as caught:
        await owner_count(database)
    assert caught.value.words_key == "storage_crowded"
    for one in others:
        one.close()
    assert await owner_count(database) == 0
    await database.aclose()


async def test_a_parlour_with_another_secret_does_not_start(postgres: str, tmp_path: Path) -> None:
    async def started(name: str, secret: str) -> None:
        settings = Settings.load(database=postgres, secret=secret, home=tmp_path / name)
        async with Engine(settings, model=ScriptedModel()):
            pass

    await started("one", "a secret of some length")
    await started("two", "a secret of some length")
    with pytest.raises(SettingsError) as caught:
        await started("three", "another secret of some length")
    assert caught.value.words_key == "storage_secret"
    assert "PARLOUR_SECRET" in str(caught.value)


async def test_who_is_deleted_leaves_no_passages(postgres: str, tmp_path: Path) -> None:
    def counted() -> tuple[Any, ...] | None:
        with psycopg.connect(postgres) as connection:
            kept = "SELECT (SELECT count(*) FROM libraries.passages), (SELECT count(*) FROM libraries.shelves)"
            return connection.execute(kept).fetchone()

    shelves = PgShelves(postgres)
    piece = Piece(Document("tea", "tea", "text/plain", None, 1), [Chunk("Green tea.")], [])
    shelves.of("p-gone").put(piece, is_first=True)
    shelves.close()
    assert counted() == (1, 1)
    settings = Settings.load(database=postgres, secret="a secret of some length", home=tmp_path)
    async with Engine(settings, model=ScriptedModel()) as house:
        await house.belongings.delete("p-gone")
    assert counted() == (0, 0)


async def test_numbers_that_json_has_no_word_for_are_kept_as_null(opened: Database) -> None:
    await ConversationStore(opened, "alice").ensure_owner()
    settings = OwnerSettings(opened, "alice")
    await settings.change("odd", lambda _: {"a": [float("nan"), float("inf"), 1.5]})
    assert await settings.get("odd") == {"a": [None, None, 1.5]}


FULL = psycopg.errors.lookup("53100")("could not extend file: No space left on device")


async def test_a_full_disk_is_told_and_nothing_is_stored(opened: Database) -> None:
    def full(connection: Connection) -> None:
        add_owner("alice")(connection)
        raise FULL

    with pytest.raises(NoSpaceError):
        await opened.write(full)
    assert await owner_count(opened) == 0


async def test_what_the_settings_name_is_what_the_stores_use(postgres: str) -> None:
    assert Settings.load(database=postgres).database_in("unused") == postgres  # type: ignore[arg-type]
    with pytest.raises(SettingsError):
        await Database.open("postgresql//typo")


async def test_what_is_asked_of_a_run_that_is_gone_is_asked_of_nobody(opened: Database) -> None:
    talks = ConversationStore(opened, "alice")
    await talks.ensure_owner()
    talk = await talks.create("talk")
    run, _ = await AllRuns(opened).of("alice").create(talk.id, user=[Message("user", "q")], parent_id=None)
    requests = RunRequests(opened)
    assert await requests.ask(run, RunRequest(run.id, "one", "stop", {}))
    assert not await requests.ask(run, RunRequest(run.id, "one", "stop", {}))
    await talks.delete(talk.id)
    assert not await requests.ask(run, RunRequest(run.id, "two", "stop", {}))
