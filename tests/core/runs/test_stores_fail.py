"""Replies while the servers that Parlours share fail: a Redis that is slow, emptied, full or killed, a PostgreSQL that
fell back to an older state; and what two processes do to one reply at the same moment."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from core.engine import Engine
from core.errors import ConflictError, NotFoundError
from core.messages.message import Message
from core.runs.manager import Runs
from core.runs.redis_feed import RedisFeed
from core.runs.run import Run
from core.settings import Settings
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Decision
from tests.core.runs.test_elsewhere import Says, asking, followed, question, text_of, there, until
from tests.core.stores import stores_over
from tests.core.talks import asked_here
from tests.grown_postgres import PostgresServer
from tests.grown_servers import Served
from tests.slow_line import SlowLine

__all__ = ["there"]
pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def often(talk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All look at the tables more often than in use."""
    monkeypatch.setattr("core.runs.redis_feed._LOOKS", 0.2)
    monkeypatch.setattr("core.runs.redis_feed._BESIDE", 0.05)
    talk.runs._heeding._every = talk.runs._renewing._beat = 0.02


@pytest.fixture
async def pair(talk: Any) -> AsyncIterator[Callable[[str], tuple[Runs, Runs]]]:
    """Makes two that share the database and a Redis: one that writes, and one that reads."""
    made: list[Runs] = []

    def make(address: str) -> tuple[Runs, Runs]:
        made.extend(
            Runs(talk.stores, worker=f"process {number}", feed=RedisFeed(talk.stores.run_news, address))
            for number in range(2)
        )
        return made[0], made[1]

    yield make
    for runs in reversed(made):
        await runs.aclose()


async def asked(talk: Any, runs: Runs, agent: Any) -> Any:
    hello = Message("user", "Well?")
    return await runs.of("alice").start(talk.id, agent, user=hello, parent_id=None, history=[hello])


async def shown(runs: Runs, conversation_id: str, text: str) -> None:
    """Wait until another process shows so much, as its readers would look."""
    with anyio.fail_after(20):
        while text_of(await followed(runs, conversation_id)) != text:
            await asyncio.sleep(0.01)  # between two looks


def tell(port: int, *words: str) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        line.sendall(" ".join(words).encode() + b"\r\n")
        assert line.recv(64).startswith(b"+OK")


async def test_a_reply_goes_on_and_is_followed_whatever_becomes_of_redis(
    talk: Any, pair: Callable[[str], tuple[Runs, Runs]], own_redis: Served
) -> None:
    writes, reads = pair(f"redis://127.0.0.1:{own_redis.port}/0")
    says = Says()
    run = await asked(talk, writes, says)
    said = ""

    async def says_on(more: str) -> None:
        nonlocal said
        said += more
        says.given.put_nowait(more)
        await shown(reads, talk.id, said)

    await says_on("As ever, ")
    tell(own_redis.port, "FLUSHALL")
    await says_on("emptied, ")
    tell(own_redis.port, "CONFIG", "SET", "maxmemory", "1")
    await says_on("full, ")
    own_redis.kill()
    await says_on("killed, ")
    own_redis.start()
    await says_on("and there again.")
    seen = await followed(reads, talk.id)
    says.given.put_nowait(None)
    with anyio.fail_after(10):
        assert (await run.wait(), await seen.wait()) == ("complete", "complete")
    assert (await talk.last()).parts[-1].get_text_content() == said


async def test_a_redis_that_is_slow_or_says_nothing_holds_no_reply_up(
    talk: Any, pair: Callable[[str], tuple[Runs, Runs]], redis: str
) -> None:
    async with SlowLine(int(redis.rpartition(":")[2].partition("/")[0])) as line:
        writes, reads = pair(f"redis://127.0.0.1:{line.port}/0")
        says = Says()
        run = await asked(talk, writes, says)
        line.seconds = 0.2
        says.given.put_nowait("slow, ")
        await shown(reads, talk.id, "slow, ")
        line.held = True
        says.given.put_nowait("silent")
        await shown(reads, talk.id, "slow, silent")
        seen = await followed(reads, talk.id)
        says.given.put_nowait(None)
        with anyio.fail_after(10):
            assert (await run.wait(), await seen.wait()) == ("complete", "complete")
        line.held = False


async def test_stop_in_one_process_and_the_end_in_another_at_the_same_moment_give_one_end(
    talk: Any, there: Runs
) -> None:
    for number in range(3):
        says = Says()
        run = await talk.ask(says)
        says.given.put_nowait("as far as it came")
        await until(await followed(there, talk.id), "as far as it came")
        with anyio.fail_after(20):
            stopping = asyncio.create_task(there.of("alice").stop(talk.id))
            for _ in range(number * 3):
                await anyio.lowlevel.checkpoint()
            says.given.put_nowait(None)
            await stopping
            status = await run.wait()
        last = await talk.last()
        assert status in {"stopped", "complete"}
        assert (last.status, last.parts[-1].get_text_content()) == (status, "as far as it came")
        assert not await talk.stores.runs.running()


async def test_of_a_yes_and_a_deletion_in_two_processes_neither_fails_and_nothing_is_left(
    talk: Any, there: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    run, note = await asking(talk)
    call_id = await question(there, talk.id)
    with anyio.fail_after(20):
        said = await asyncio.gather(
            there.of("alice").decide(talk.id, call_id, Decision(allowed=True)),
            talk.talks.delete(talk.id),
            return_exceptions=True,
        )
        await run.wait()
        while there.of("alice").live_conversations():  # until it looks the next time
            await asyncio.sleep(0.01)
    assert all(isinstance(one, ConflictError | NotFoundError) for one in said if isinstance(one, BaseException))
    assert note.written in (["hi"], [])
    assert not await talk.stores.runs.running()
    assert not [one for one in caplog.records if one.levelname in {"ERROR", "CRITICAL"}]


async def test_a_conversation_that_two_processes_delete_is_gone_once(talk: Any, there: Runs) -> None:
    run = await talk.ask(Says())
    other = await Database.open(talk.database.place)
    stores = stores_over(other)
    with anyio.fail_after(20):
        said = await asyncio.gather(
            talk.talks.delete(talk.id), stores.of("alice").conversations.delete(talk.id), return_exceptions=True
        )
        assert await run.wait() in {"stopped", "interrupted"}  # whoever notices it first
    assert all(isinstance(one, NotFoundError) for one in said if isinstance(one, BaseException))
    await other.aclose()


async def test_who_is_deleted_at_one_parlour_while_another_writes_to_her_leaves_nothing(
    postgres: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writes, deletes = (
        Settings.load(database=postgres, secret="a secret of some length", home=tmp_path / name, retrieval="keyword")
        for name in ("writes", "deletes")
    )
    slowly = ScriptedModel(Reply("word " * 2_000, pace=0.02))
    async with Engine(writes, model=slowly) as here, Engine(deletes, model=ScriptedModel()) as elsewhere:
        talk = await here.stores.of("p-gone").conversations.create("hers")
        run = await asked_here(here, "p-gone", talk.id, "Count!")
        with anyio.fail_after(20):
            while "word" not in str(await here.stores.of("p-gone").runs.events(run.id)):
                await asyncio.sleep(0.01)  # between two looks
            await elsewhere.belongings.delete("p-gone")
            assert await run.wait() == "stopped"
    database = await Database.open(postgres)
    for table in ("conversations", "messages", "runs", "run_events", "run_requests"):
        count = f"SELECT count(*) FROM {table} WHERE owner_id = 'p-gone'"
        assert await database.read(lambda c, count=count: c.exec_driver_sql(count).scalar_one()) == 0, table
    await database.aclose()
    assert not [one for one in caplog.records if one.levelname in {"ERROR", "CRITICAL"}]


async def test_what_the_table_lost_of_a_reply_while_it_was_written_is_there_again_at_its_end(
    talk: Any, there: Runs
) -> None:
    says = Says()
    run = await talk.ask(says)
    says.given.put_nowait("Before, ")
    await until(await followed(there, talk.id), "Before, ")
    kept = len(await talk.store.events(run.id))
    says.given.put_nowait("meanwhile, ")
    await until(await followed(there, talk.id), "Before, meanwhile, ")
    await talk.database.write(
        lambda c: c.exec_driver_sql("DELETE FROM run_events WHERE seq > ?", (kept,))  # a server that fell back
    )
    says.given.put_nowait("and after.")
    says.given.put_nowait(None)
    with anyio.fail_after(10):
        assert await run.wait() == "complete"
    last = await talk.last()
    assert (await Runs(talk.stores, worker="another").of("alice").reply(last)).text == "Before, meanwhile, and after."


# ---- a PostgreSQL that fell back: another server took over, and the last commits are lost


class Fallen:
    """A PostgreSQL whose state can be kept, and put back later."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.server, self.kept = server, folder / "kept"

    def keep(self) -> None:
        self.server.stop(signal.SIGINT)
        subprocess.run(["cp", "-a", self.server.folder, self.kept], check=True)  # with whose files they are
        self.server.start()

    def fall_back(self) -> None:
        self.server.stop()
        shutil.rmtree(self.server.folder)
        subprocess.run(["cp", "-a", self.kept, self.server.folder], check=True)
        self.server.start()


@pytest.fixture
async def fallen(own_postgres: PostgresServer, tmp_path: Path) -> Fallen:
    own_postgres.make("parlour")
    return Fallen(own_postgres, tmp_path)


async def stored(stores: Stores, run_id: str, text: str) -> None:
    """Wait until so much of a reply is in the table."""
    with anyio.fail_after(20):
        while text not in str(await stores.of("alice").runs.events(run_id)):
            await anyio.lowlevel.checkpoint()


async def test_a_postgresql_that_fell_back_loses_its_last_commits_and_nothing_else(
    fallen: Fallen, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = await Database.open(fallen.server.address("parlour"))
    stores = Stores(database, tmp_path / "files", Sealer("secret"))
    alice, runs = stores.of("alice"), Runs(stores, worker="here")
    mine = runs.of("alice")
    await alice.conversations.ensure_owner()
    kept, hello = await alice.conversations.create("kept"), Message("user", "Well?")

    async def ask(talk: str, says: Says) -> Run:
        return await mine.start(talk, says, user=hello, parent_id=None, history=[hello])

    says, lost_says = Says(), Says()
    run = await ask(kept.id, says)
    says.given.put_nowait("Before, ")
    await stored(stores, run.id, "Before, ")
    fallen.keep()
    says.given.put_nowait("meanwhile, ")
    await stored(stores, run.id, "meanwhile, ")
    lost = await alice.conversations.create("lost")
    lost_run = await ask(lost.id, lost_says)
    lost_says.given.put_nowait("Nobody ")
    await stored(stores, lost_run.id, "Nobody ")
    fallen.fall_back()
    says.given.put_nowait("and after.")
    lost_says.given.put_nowait("hears this.")
    says.given.put_nowait(None)
    with anyio.fail_after(30):
        assert await run.wait() == "complete"
        assert await lost_run.wait() in {"stopped", "interrupted"}  # as one whose conversation was deleted
    with pytest.raises(NotFoundError):
        await alice.conversations.get(lost.id)
    last = (await alice.conversations.thread(kept.id))[-1]
    assert last.parts[-1].get_text_content() == "Before, meanwhile, and after."
    assert (await Runs(stores, worker="another").of("alice").reply(last)).text == "Before, meanwhile, and after."
    again = Says()
    talk = await alice.conversations.create("again")
    assert talk.id not in {kept.id, lost.id}
    again.given.put_nowait(None)
    assert await (await ask(talk.id, again)).wait() == "complete"
    assert not [one for one in caplog.records if one.levelname in {"ERROR", "CRITICAL"}]
    await runs.aclose()
    await database.aclose()


async def test_a_postgresql_that_is_older_than_a_parlour_remembers_is_told_on_the_page(
    fallen: Fallen, tmp_path: Path
) -> None:
    settings = Settings.load(database=fallen.server.address("parlour"), secret="a secret", home=tmp_path / "home")
    async with Engine(settings, model=ScriptedModel()) as engine:
        await engine.stores.of("alice").conversations.ensure_owner()
    fallen.keep()
    for behind in (False, False):
        async with Engine(settings, model=ScriptedModel()) as engine:
            assert ("database_behind" in engine.readiness.notes) is behind
    fallen.fall_back()
    async with Engine(settings, model=ScriptedModel()) as engine:
        assert engine.readiness.notes["database_behind"]["conversations"] == 0
        assert engine.intake.keeps_unneeded
