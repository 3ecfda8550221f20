"""A PostgreSQL that takes over from another: replies that are being written, and what comes after."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import anyio
import psycopg
import pytest

from core.messages.message import Message
from core.runs.manager import Runs
from core.runs.run import Run
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from tests.core.runs.test_elsewhere import Says
from tests.core.runs.test_stores_fail import stored
from tests.grown_postgres import PostgresServer, standby_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def primary(own_postgres: PostgresServer) -> PostgresServer:
    own_postgres.make("parlour")
    return own_postgres


@pytest.fixture
def standby(primary: PostgresServer) -> Iterator[PostgresServer]:
    with standby_of(primary) as server:
        yield server


async def followed(primary: PostgresServer, standby: PostgresServer) -> None:
    """Wait until a standby has all that was committed."""
    (last,) = primary.admin.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
    reached = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
    with anyio.fail_after(60):
        while not standby.admin.execute(reached, [str(last)]).fetchone()[0]:
            await asyncio.sleep(0.01)  # between two looks


async def test_a_standby_that_takes_over_gets_the_replies_that_were_being_written_and_all_that_follow(
    primary: PostgresServer, standby: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{primary.port}/parlour"
    database, another = await Database.open(both), await Database.open(both)
    stores, seen = (Stores(one, tmp_path / "files", Sealer("secret")) for one in (database, another))
    alice, runs, looking = stores.of("alice"), Runs(stores, worker="here"), Runs(seen, worker="there")
    await alice.conversations.ensure_owner()
    talk, hello, says = await alice.conversations.create("kept"), Message("user", "Well?"), Says()

    async def ask(where: str, agent: Says) -> Run:
        return await runs.of("alice").start(where, agent, user=hello, parent_id=None, history=[hello])

    run = await ask(talk.id, says)
    says.given.put_nowait("Before, ")
    await stored(stores, run.id, "Before, ")
    await followed(primary, standby)
    primary.stop()
    says.given.put_nowait("meanwhile, ")
    standby.admin.execute("SELECT pg_promote()")
    says.given.put_nowait("and after.")
    says.given.put_nowait(None)
    with anyio.fail_after(60):
        assert await run.wait() == "complete"
    last = (await seen.of("alice").conversations.thread(talk.id))[-1]
    assert (await looking.of("alice").reply(last)).text == "Before, meanwhile, and after."
    again = Says()
    again.given.put_nowait(None)
    assert await (await ask((await alice.conversations.create("new")).id, again)).wait() == "complete"
    with psycopg.connect(standby.address("parlour")) as connection:
        assert connection.execute("SELECT count(*) FROM conversations").fetchone() == (2,)
    assert not [one for one in caplog.records if one.levelname in {"ERROR", "CRITICAL"}]
    for one in (looking, runs):
        await one.aclose()
    for each in (another, database):
        await each.aclose()
