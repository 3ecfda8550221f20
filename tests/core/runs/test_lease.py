"""Who holds a run: its lease is renewed, a holder that stops doing so loses it, and can write no more."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from core.errors import ConflictError, LeaseLostError, NoSpaceError, StorageError
from core.messages.events import MessageStarted, TextDelta
from core.messages.message import Message
from core.runs.lease import Renewing, this_worker
from core.runs.log import LoggedEvent, Queued
from core.runs.manager import Runs
from core.runs.picking_up import begin, pick_up
from core.runs.resumable import ResumableRun
from core.runs.rows import rows_of
from core.storage.base import QUEUED, WAITING, EventRow, Lease, RunRecord
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.runs import RunStore
from core.tools.approval import Decision
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio

ELSEWHERE = "another-container/1@100"
ROW = EventRow(1, 0.1, "text_delta", {"text": "so far"})


class Endless:
    """Answers until it is stopped."""

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncIterator[Any]:
        yield MessageStarted()
        yield TextDelta("so far")
        await asyncio.Event().wait()


async def left_elsewhere(talk: Any, *, until: float | None = 0.0) -> RunRecord:
    """A run of a process that cannot be seen from here."""
    record, _ = await talk.store.create(talk.id, user=[], parent_id=None, worker=ELSEWHERE)
    await set_lease(talk, until)
    return record


async def set_lease(talk: Any, until: float | None) -> None:
    await talk.database.write(lambda c: c.exec_driver_sql("UPDATE runs SET lease_until = ?", (until,)).rowcount)


async def lease_of(talk: Any) -> float | None:
    return await talk.database.read(lambda c: c.exec_driver_sql("SELECT lease_until FROM runs").scalar_one())


@pytest.mark.parametrize("clock", [-3600.0, 0.0, 3600.0])
async def test_a_lease_that_is_renewed_is_never_taken_whatever_the_clocks_say(talk: Any, clock: float) -> None:
    await left_elsewhere(talk)
    here = Runs(talk.stores, worker="here")
    for beat in range(100):
        await set_lease(talk, time.time() + clock + beat)
        assert await here.recover() == 0
    assert (await talk.last()).status == "running"


async def test_a_lease_that_nobody_renews_is_taken_after_a_while_and_not_before(talk: Any) -> None:
    await left_elsewhere(talk, until=time.time() - 1e6)
    here = Runs(talk.stores, worker="here")
    assert [await here.recover() for _ in range(6)] == [0, 0, 0, 0, 0, 1]
    assert (await talk.last()).status == "interrupted"


async def test_a_process_that_lives_here_but_does_not_renew_keeps_its_runs_much_longer(talk: Any) -> None:
    await talk.store.create(talk.id, user=[], parent_id=None, worker=this_worker())
    here = Runs(talk.stores, worker="here")
    assert sum([await here.recover() for _ in range(39)]) == 0
    assert await here.recover() == 1


async def test_a_run_whose_process_is_proved_dead_is_picked_up_at_once(talk: Any) -> None:
    worker = f"{this_worker().rpartition('/')[0]}/999999999@1"
    await talk.store.create(talk.id, user=[], parent_id=None, worker=worker)
    assert await Runs(talk.stores).recover() == 1


async def test_a_run_that_was_given_up_is_picked_up_at_once(talk: Any) -> None:
    record = await left_elsewhere(talk, until=time.time() + 3600)
    await talk.store.append(record.id, [], epoch=record.epoch, leave=True)
    assert await Runs(talk.stores, worker="here").recover() == 1


@pytest.mark.parametrize("waits", [True, False])
async def test_a_run_that_cannot_go_on_for_a_reason_nobody_foresaw_ends_and_is_not_tried_for_ever(
    talk: Any,
    waits: bool,
) -> None:
    record, _ = await talk.store.create(talk.id, user=[], parent_id=None, worker=QUEUED if waits else ELSEWHERE)
    await talk.store.append(record.id, rows_of([LoggedEvent(1, 0.0, Queued())]), epoch=1, durable=True, leave=not waits)
    ((_, lease),) = await talk.stores.runs.running()

    async def fails(_: object) -> None:
        raise ValueError("a fault")

    if waits:
        await begin(talk.stores, record, lease, "here", fails, lasts=20.0)
    else:
        assert await pick_up(talk.stores, record, lease, "here", fails, shared=True)
    assert (await talk.last()).status == "interrupted"


async def test_a_run_that_the_database_kept_from_going_on_is_left_for_the_next_look_and_takes_no_other_along(
    talk: Any,
) -> None:
    record = await left_elsewhere(talk)
    await talk.store.append(record.id, rows_of([LoggedEvent(1, 0.0, Queued())]), epoch=1)
    other = await ConversationStore(talk.database, "alice").create("another")
    await talk.store.create(other.id, user=[], parent_id=None, worker=ELSEWHERE)
    await set_lease(talk, None)
    away, agent = [StorageError("The database failed.")], cast("Any", Endless())

    async def resume(left: ResumableRun) -> None:
        if away:
            raise away.pop()
        await here.of("alice").resume(left, agent, history=[])

    here = Runs(talk.stores, worker="here")
    await here.recover(resume)
    assert not away
    assert ((await talk.store.get(record.id)).status, (await talk.store.running(other.id))) == ("running", None)
    await here.recover(resume)
    assert here.live(talk.id) is not None
    await here.aclose()


async def test_a_renewal_between_the_look_and_the_take_over_keeps_the_run(talk: Any) -> None:
    record = await left_elsewhere(talk)
    ((_, lease),) = await talk.stores.runs.running()
    assert await talk.stores.runs.renew({record.id: record.epoch}) == set()
    with pytest.raises(ConflictError):
        await talk.stores.runs.take_over(record, lease, "here")
    assert (await talk.store.get(record.id)).epoch == 1


async def test_of_two_that_take_a_run_over_one_gets_it(talk: Any) -> None:
    record = await left_elsewhere(talk)
    ((_, lease),) = await talk.stores.runs.running()
    takers = (talk.stores.runs.take_over(record, lease, worker) for worker in ("one", "other"))
    results = await asyncio.gather(*takers, return_exceptions=True)
    assert [type(result) for result in results if isinstance(result, Exception)] == [ConflictError]


async def test_what_a_late_writer_still_writes_changes_nothing(talk: Any) -> None:
    record = await left_elsewhere(talk)
    ((_, lease),) = await talk.stores.runs.running()
    taken = await talk.stores.runs.take_over(record, lease, "here")
    late = [
        talk.store.append(record.id, [ROW], epoch=record.epoch),
        talk.store.append(record.id, [], epoch=record.epoch, leave=True),
        talk.store.finish(record.id, "complete", epoch=record.epoch, parts=[Message("assistant", "late")]),
    ]
    for write in late:
        with pytest.raises(LeaseLostError):
            await write
    assert await talk.stores.runs.renew({record.id: record.epoch}) == {record.id}
    assert await talk.store.events(record.id) == []
    await talk.store.finish(record.id, "complete", epoch=taken.epoch, parts=[Message("assistant", "new")])
    with pytest.raises(LeaseLostError):  # it is over
        await talk.store.append(record.id, [ROW], epoch=taken.epoch)
    assert [part.content for part in (await talk.last()).parts] == ["new"]


async def test_a_run_that_was_taken_over_ends_here_and_leaves_the_others_alone(talk: Any) -> None:
    run = await talk.ask(Endless())
    (found,) = await talk.stores.runs.running()
    await talk.stores.runs.take_over(*found, "another")
    renewing: Any = Renewing(talk.stores.runs, talk.runs._held, talk.runs._lost)
    await renewing.renew()
    with anyio.fail_after(10):
        assert await run.wait() == "interrupted"
    assert talk.runs.live(talk.id) is None
    assert (await talk.last()).status == "running"  # as the one that holds it now says
    assert run.stored


async def test_a_checkpoint_notices_that_the_run_is_another_processes(talk: Any) -> None:
    told = asyncio.Event()

    class Speaks(Endless):
        async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncIterator[Any]:
            yield MessageStarted()
            await told.wait()
            yield TextDelta("too late")
            await asyncio.Event().wait()

    run = await talk.ask(Speaks())
    (found,) = await talk.stores.runs.running()
    await talk.stores.runs.take_over(*found, "another")
    told.set()
    with anyio.fail_after(10):
        assert await run.wait() == "interrupted"
    rows = await talk.store.events(run.id)
    assert "too late" not in str(rows)


async def test_the_leases_of_live_runs_are_renewed_until_they_end(talk: Any) -> None:
    run = await talk.ask(Endless())
    renewing: Any = Renewing(talk.stores.runs, talk.runs._held, talk.runs._lost, beat=0.01)
    before = await lease_of(talk)
    renewing.begin()
    with anyio.fail_after(10):
        while await lease_of(talk) == before:
            await anyio.lowlevel.checkpoint()
        await run.stop()
        assert renewing._task is not None
        await renewing._task
    assert (await talk.last()).status == "stopped"


async def test_a_run_that_is_just_being_stored_is_not_taken_for_one_that_was_left(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, go_on, create = asyncio.Event(), asyncio.Event(), RunStore.create

    async def slow(*args: Any, **kwargs: Any) -> Any:
        result = await create(*args, **kwargs)
        stored.set()
        await go_on.wait()
        return result

    monkeypatch.setattr(RunStore, "create", slow)
    asking = asyncio.create_task(talk.ask(Endless()))
    with anyio.fail_after(10):
        await stored.wait()
        assert await talk.runs.recover() == 0
        go_on.set()
        await (await asking).stop()
    assert (await talk.last()).status == "stopped"


async def test_a_run_whose_end_is_not_stored_yet_is_not_taken_for_one_that_was_left(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish, full = RunStore.finish, asyncio.Event()

    async def fails(*args: Any, **kwargs: Any) -> None:
        if not full.is_set():
            raise NoSpaceError("The disk is full.")
        await finish(*args, **kwargs)

    monkeypatch.setattr(RunStore, "finish", fails)
    monkeypatch.setattr("core.runs.run._TRY_AGAIN_AFTER", 0.05)
    run = await talk.ask(Endless())
    await run.stop()
    assert await talk.runs.recover() == 0
    full.set()
    await run.settle()
    assert (await talk.last()).status != "interrupted"


async def words(database: Database) -> str:
    return str(await database.read(lambda c: c.exec_driver_sql("SELECT payload FROM run_events").all()))


_WRITES = """
import asyncio, sys
from core.runs import lease
lease._place = lambda: "another-container"
from core.runs.lease import Renewing
from tests.core.runs.slow_reply import begun

async def main():
    _, stores, runs, run = await begun(sys.argv[1])
    Renewing(stores.runs, runs._held, runs._lost, beat=0.01).begin()
    async for one in run.log.follow():
        print(one.seq, flush=True)

asyncio.run(main())
"""


async def test_a_live_reply_of_another_container_is_left_alone_until_that_one_is_killed(
    tmp_path: Path, migrated: Callable[[], bytes]
) -> None:
    path = tmp_path / "parlour.db"
    path.write_bytes(migrated())  # the process to be killed need not load what makes one
    with subprocess.Popen([sys.executable, "-c", _WRITES, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        await asyncio.to_thread(child.stdout.readline)
        database = await Database.open(path)
        stores = stores_over(database)
        here, seen = Runs(stores), set[float | None]()
        with anyio.fail_after(180):
            while len(seen) < 20 or "word0" not in await words(
                database
            ):  # it renews; each look that finds the same lease again would count against it
                await asyncio.to_thread(child.stdout.readline)
                ((_, lease),) = await stores.runs.running()
                if lease.until not in seen:
                    seen.add(lease.until)
                    assert await here.recover() == 0
        child.send_signal(signal.SIGKILL)
        await asyncio.to_thread(child.communicate)
    found = [await here.recover() for _ in range(7)]
    assert sum(found) == 1
    (talk,) = await ConversationStore(database, "alice").list()
    reply = (await ConversationStore(database, "alice").thread(talk.id))[-1]
    assert reply.status == "interrupted"
    assert reply.parts[0].get_text_content().startswith("word0 word1 ")
    await database.aclose()


async def test_looking_for_runs_does_not_read_those_that_are_over(talk: Any) -> None:
    query = "EXPLAIN QUERY PLAN SELECT * FROM runs WHERE runs.status = 'running' ORDER BY runs.started_at"
    plan = await talk.database.read(lambda c: str(c.exec_driver_sql(query).all()))
    assert "ix_runs_one_live" in plan


async def test_who_takes_a_run_over_has_its_events_as_they_are_numbered_now(talk: Any) -> None:
    left = await left_elsewhere(talk)
    rows = [EventRow(at, 0.1, "text_delta", {"text": f"as it was {at}"}) for at in (1, 2, 3)]
    await talk.store.append(left.id, rows, epoch=left.epoch)
    taken = await talk.stores.runs.take_over(left, Lease(ELSEWHERE, 0.0), "here", [ROW])
    assert await talk.store.events(left.id) == [ROW]
    await talk.store.append(left.id, [EventRow(2, 0.2, "text_delta", {"text": "more"})], epoch=taken.epoch)
    assert [row.payload["text"] for row in await talk.store.events(left.id)] == ["so far", "more"]


async def test_a_process_that_does_not_answer_is_said_to_be_so_and_what_was_asked_stays_asked(talk: Any) -> None:
    record = await left_elsewhere(talk, until=0.0)  # its lease is over
    with pytest.raises(ConflictError) as refused:
        await talk.runs.of("alice").stop(talk.id)
    assert refused.value.words_key == "elsewhere"
    await talk.runs.of("bob").stop(talk.id)  # to whom it does not exist
    assert [one.kind for one in await talk.stores.run_requests.open(ELSEWHERE)] == ["stop"]
    await talk.store.append(record.id, [], epoch=record.epoch, leave=True)
    assert await talk.runs.recover() == 1
    await talk.runs.of("alice").stop(talk.id)  # it is over
    with pytest.raises(ConflictError) as late:
        await talk.runs.of("alice").decide(talk.id, "call", Decision(allowed=True))
    assert late.value.words_key == "already_decided"


async def test_what_is_asked_of_a_resting_run_during_a_look_is_looked_at_once_more(
    talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk.store.create(talk.id, user=[], parent_id=None, worker=WAITING)
    here, looks, again = Runs(talk.stores, worker="here"), list[str](), asyncio.Event()

    async def asked(worker: str) -> list[Any]:
        looks.append(worker)
        if len(looks) == 1:
            here.elsewhere.answered.set()  # too late for this look
        else:
            again.set()
        return []

    await here.watch(every=3600)
    try:
        monkeypatch.setattr(talk.stores.run_requests, "open", asked)
        here.elsewhere.answered.set()
        async with asyncio.timeout(60):
            await again.wait()
    finally:
        await here.aclose()


@pytest.mark.parametrize("turns", range(6))
async def test_watching_ends_whatever_comes_at_the_same_moment(talk: Any, turns: int) -> None:
    here = Runs(talk.stores, worker="here")
    await here.watch(every=3600)
    for _ in range(3):
        await asyncio.sleep(0)  # it waits by now
    here.elsewhere.answered.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await here.aclose()
