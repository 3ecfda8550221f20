"""Who reads a document, of each kind of database: held by a lease, taken over, called off, and forgotten at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from core.errors import ConflictError, LeaseLostError, NotFoundError, TooManyRequestsError
from core.storage.base import QUEUED, DocumentRecord, Lease
from core.storage.database import Database
from core.storage.files import AllFiles
from core.storage.reading_rows import Hold
from core.storage.readings import Unread
from core.storage.sealing import Sealer
from core.storage.stores import Stores

pytestmark = pytest.mark.anyio
ONE, OTHER = "one/1@1", "other/2@2"


@pytest.fixture
def stores(database: Database, tmp_path: Path) -> Stores:
    return Stores(database, tmp_path / "files", Sealer("secret"))


async def to_read(stores: Stores, name: str, hold: Hold | None, owner: str = "alice") -> tuple[DocumentRecord, int]:
    mine = stores.of(owner)
    file = await mine.files.put(name, name.encode())
    talk = await mine.conversations.create(name)
    return await mine.documents.add_to_read(talk.id, file.id, name, hold)


async def unread(stores: Stores) -> dict[str, Unread]:
    return {one.record.name: one for one in await stores.readings.unread(100)}


async def rows(stores: Stores) -> int:
    return await stores.database.read(lambda c: c.execute(text("SELECT count(*) FROM readings")).scalar_one())


async def test_a_document_is_read_by_whoever_added_it_and_its_end_leaves_nothing(stores: Stores) -> None:
    record, epoch = await to_read(stores, "a.txt", Hold(ONE, 20.0, password="sealed"))
    found = (await unread(stores))["a.txt"]
    assert (found.record, found.epoch, found.lease.worker, found.lease.over) == (record, epoch, ONE, False)
    mine = stores.of("alice").documents
    assert (await mine.update(record.id, "ready", library_id="abc", epoch=epoch)).status == "ready"
    assert (await rows(stores), await unread(stores)) == (0, {})


async def test_what_nobody_holds_is_taken_by_one_and_the_other_hears_that_it_came_late(stores: Stores) -> None:
    await to_read(stores, "a.txt", None)
    await to_read(stores, "b.txt", Hold(QUEUED))
    found = await unread(stores)
    assert [found[name].lease for name in ("a.txt", "b.txt")] == [Lease("", None), Lease(QUEUED, None)]
    for one in found.values():
        taken = await stores.readings.take(one, ONE, lasts=20.0)
        assert taken.unread.lease.worker == ONE
        assert taken.unread.epoch != one.epoch
        with pytest.raises(ConflictError) as caught:
            await stores.readings.take(one, OTHER, lasts=20.0)
        assert caught.value.words_key == "busy"


async def test_a_reader_that_was_taken_for_dead_writes_nothing_any_more(stores: Stores) -> None:
    record, epoch = await to_read(stores, "a.txt", Hold(ONE, -1.0))
    left = (await unread(stores))["a.txt"]
    assert left.lease.over
    await stores.readings.put_back(left, died=True)
    (waits,) = await stores.readings.waiting(1)
    taken = await stores.readings.take(waits, OTHER, lasts=20.0)
    assert (taken.unread.lost, taken.unread.lease.worker) == (1, OTHER)
    mine = stores.of("alice").documents
    for status in ("reading", "ready", "failed"):
        with pytest.raises(LeaseLostError):
            await mine.update(record.id, status, library_id="late", epoch=epoch)
    assert await stores.readings.tell({record.id: epoch}, {record.id: {"pages": 9}}) == {}
    assert await stores.readings.renew({record.id: epoch}, 20.0) == {record.id}
    now = (await unread(stores))["a.txt"]
    assert (now.record.library_id, now.progress, now.epoch) == (None, None, taken.unread.epoch)


async def test_a_lease_that_is_renewed_holds_and_how_far_a_reader_is_is_seen(stores: Stores) -> None:
    record, epoch = await to_read(stores, "a.txt", Hold(ONE, -1.0))
    held = {record.id: epoch}
    assert await stores.readings.renew(held, 20.0) == set()
    assert await stores.readings.tell(held, {record.id: {"pages": 3}}) == {record.id: None}
    found = (await unread(stores))["a.txt"]
    assert (found.lease.over, found.progress) == (False, {"pages": 3})


async def test_what_is_called_off_is_asked_of_its_reader_or_done_at_once(stores: Stores) -> None:
    held, epoch = await to_read(stores, "a.txt", Hold(ONE, 20.0))
    waits, _ = await to_read(stores, "b.txt", Hold(QUEUED))
    mine = stores.of("alice").documents
    assert await mine.call_off(held.id)
    assert await stores.readings.tell({held.id: epoch}, {}) == {held.id: "stop"}
    assert not await mine.call_off(waits.id)
    assert [(await mine.get(one.id)).status for one in (held, waits)] == ["reading", "cancelled"]
    assert await rows(stores) == 1
    with pytest.raises(NotFoundError):
        await stores.of("bob").documents.call_off(held.id)


async def test_what_is_read_anew_is_as_before_where_that_is_called_off(stores: Stores) -> None:
    record, _ = await to_read(stores, "a.txt", None)
    mine = stores.of("alice").documents
    was = await mine.update(record.id, "ready", library_id="abc", pages=7, facts={"chunks": 3})
    now, epoch = await mine.begin(was.id, Hold(QUEUED), ("ready",), library_id="abc", facts=was.facts, anew=True)
    assert now.status == "reading"
    (waits,) = await stores.readings.waiting(1)
    assert waits.epoch == epoch
    assert (await stores.readings.take(waits, ONE, lasts=20.0)).before == was
    (left,) = await stores.readings.unread(9)
    await stores.readings.put_back(left)
    assert not await mine.call_off(was.id)
    assert await mine.get(was.id) == was
    assert (await mine.begin(was.id, Hold(ONE), ("failed",)))[1] == 0


async def test_of_each_owner_those_come_that_are_due_first(stores: Stores) -> None:
    for name, due, owner in (("a", 3.0, "alice"), ("b", 1.0, "alice"), ("c", 2.0, "alice"), ("d", 9.0, "bob")):
        await to_read(stores, name, Hold(QUEUED, due=due), owner)
    assert [one.record.name for one in await stores.readings.waiting(2)] == ["b", "c", "d"]


async def test_what_is_given_up_waits_for_anybody_at_once(stores: Stores) -> None:
    record, epoch = await to_read(stores, "a.txt", Hold(ONE, 20.0))
    await stores.readings.give_up({record.id: epoch - 1}, queue=True)
    assert (await unread(stores))["a.txt"].lease.worker == ONE
    await stores.readings.give_up({record.id: epoch}, queue=True)
    assert [one.id for one in await stores.readings.waiting(1)] == [record.id]


async def test_a_deleted_conversation_takes_along_who_reads_its_documents(stores: Stores) -> None:
    record, epoch = await to_read(stores, "a.txt", Hold(ONE, 20.0, password="sealed"))
    await stores.of("alice").conversations.delete(str(record.conversation_id))
    assert await stores.readings.tell({record.id: epoch}, {}) == {}
    assert await rows(stores) == 0


async def test_an_empty_library_is_deleted_in_one_step_and_one_with_a_document_stays(stores: Stores) -> None:
    mine = stores.of("alice")
    empty, full = await mine.libraries.create("empty"), await mine.libraries.create("full")
    file = await AllFiles(stores.database, stores.blobs).of("alice").put("a.txt", b"a")
    await mine.documents.add(None, file.id, file.name, collection_id=full.id)
    assert not await stores.of("bob").libraries.delete_empty(empty.id)
    assert [await mine.libraries.delete_empty(one.id) for one in (empty, full)] == [True, False]
    assert [one.name for one in await mine.libraries.list()] == ["full"]


async def test_rows_that_an_older_program_left_take_nobodys_turn_and_go_with_their_reader(stores: Stores) -> None:
    mine = stores.of("alice").documents
    for name in ("a", "b"):
        read, _ = await to_read(stores, name, Hold(QUEUED, due=1.0))
        await stores.database.write(  # as one does that knows nothing of readings
            lambda c, which=read.id: c.execute(
                text("UPDATE documents SET status = 'ready' WHERE id = :id"), {"id": which}
            )
        )
    held, epoch = await to_read(stores, "c", Hold(ONE, 20.0))
    await to_read(stores, "d", Hold(QUEUED, due=2.0))
    assert [one.record.name for one in await stores.readings.waiting(1)] == ["d"]
    await stores.database.write(
        lambda c: c.execute(text("UPDATE documents SET status = 'cancelled' WHERE id = :id"), {"id": held.id})
    )
    before = await rows(stores)
    assert (await mine.update(held.id, "ready", only_if=("reading",), epoch=epoch)).status == "cancelled"
    assert await rows(stores) == before - 1
    assert await stores.readings.of(held.id) is None


async def test_no_more_documents_of_an_owner_wait_than_may_and_nothing_is_kept_of_what_is_refused(
    stores: Stores,
) -> None:
    (first, epoch), _ = [await to_read(stores, name, Hold(ONE, 20.0, most=2)) for name in ("a.txt", "b.txt")]
    with pytest.raises(TooManyRequestsError) as refused:
        await to_read(stores, "c.txt", Hold(QUEUED, most=2))
    error = refused.value
    assert (error.words_key, error.details) == ("reading_full", {"waiting": "2", "limit": "2"})
    assert error.retry_after > 0
    mine = stores.of("alice").documents
    assert (await rows(stores), await mine.waiting(), sorted(await unread(stores))) == (2, 2, ["a.txt", "b.txt"])
    await to_read(stores, "c.txt", Hold(QUEUED, most=2), owner="bob")
    await mine.update(first.id, "ready", library_id="abc", epoch=epoch)
    again, _ = await to_read(stores, "d.txt", Hold(QUEUED, most=2))
    with pytest.raises(TooManyRequestsError):
        await mine.begin(first.id, Hold(QUEUED, most=2), ("ready",))
    assert (await mine.get(first.id)).status == "ready"
    await mine.call_off(again.id)
    assert (await mine.begin(first.id, Hold(QUEUED, most=2), ("ready",)))[0].status == "reading"


async def test_of_many_that_come_at_the_same_moment_no_more_wait_than_may(stores: Stores) -> None:
    holds = [to_read(stores, f"{n}.txt", Hold(QUEUED, most=3)) for n in range(8)]
    ended = await asyncio.gather(*holds, return_exceptions=True)
    refused = [one for one in ended if isinstance(one, BaseException)]
    assert {type(one) for one in refused} == {TooManyRequestsError}
    assert (len(refused), await stores.of("alice").documents.waiting(), await rows(stores)) == (5, 3, 3)
