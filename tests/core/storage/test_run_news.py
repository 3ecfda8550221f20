"""What processes ask of each other's runs is kept as long as it is needed, in every form of the database."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from core.messages.message import Message
from core.storage.base import EventRow, RunRecord
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.run_news import News, RunNews, RunRequest, RunRequests
from core.storage.runs import AllRuns

pytestmark = pytest.mark.anyio


async def begun(database: Database, worker: str = "here") -> RunRecord:
    talk = await ConversationStore(database, "alice").create()
    said = [Message("user", "Well?")]
    return (await AllRuns(database).of("alice").create(talk.id, user=said, parent_id=None, worker=worker))[0]


async def test_what_was_typed_for_a_tool_is_not_kept_where_its_reply_ends_before_it_is_delivered(
    database: Database,
) -> None:
    run, requests = await begun(database), RunRequests(database)
    assert await requests.ask(run, RunRequest(run.id, "give 1", "give", {"values": {"name": "hidden-word"}}))
    assert [one.payload["values"] for one in await requests.open("here")] == [{"name": "hidden-word"}]
    await AllRuns(database).of("alice").finish(run.id, "stopped", epoch=1, parts=[])
    kept = await database.read(lambda c: str(c.execute(text("SELECT * FROM run_requests")).all()))
    assert "hidden-word" not in kept
    assert await requests.open("here") == [], "nobody looks at what is over again and again"
    assert not await requests.ask(run, RunRequest(run.id, "give 1", "give", {})), "the first one counted all the same"


async def test_a_process_renews_its_own_runs_and_no_others(database: Database) -> None:
    mine, ended, theirs = await begun(database), await begun(database), await begun(database, "there")
    store = AllRuns(database)
    await store.of("alice").finish(ended.id, "complete", epoch=1, parts=[])
    await database.write(lambda c: c.execute(text("UPDATE runs SET lease_until = 1.0")).rowcount)
    assert await store.renew({mine.id: 1, ended.id: 1, "gone": 1}) == {ended.id, "gone"}
    leases = {record.id: lease.until for record, lease in await store.running()}
    assert (leases[theirs.id], leases[mine.id] != 1.0) == (1.0, True)
    assert await store.renew({mine.id: 7}) == {mine.id}


async def test_of_each_run_what_is_new_is_told_in_order_with_its_state_and_one_that_is_gone_is_left_out(
    database: Database,
) -> None:
    news, store = RunNews(database), AllRuns(database).of("alice")
    said, silent, ended = await begun(database), await begun(database), await begun(database)
    rows = [EventRow(seq, 0.5, "text_delta", {"text": f'{seq} \\ "'}) for seq in (1, 2, 10, 11)]
    await store.append(said.id, rows, epoch=1)
    await store.append(ended.id, rows[:2], epoch=1)
    await store.finish(ended.id, "error", epoch=1, parts=[], error={"message": "It broke."})
    found = await news.of({said.id: 2, silent.id: 0, ended.id: 0, "gone": 0})
    assert found == {
        said.id: News(1, "running", None, rows[2:]),
        silent.id: News(1, "running", None, []),
        ended.id: News(1, "error", {"message": "It broke."}, rows[:2]),
    }
    assert await news.of({}) == {}
    assert (await news.of({said.id: 11}))[said.id].rows == []


async def test_many_runs_are_renewed_together(database: Database) -> None:
    store = AllRuns(database)
    held = {(await begun(database)).id: 1 for _ in range(5)}
    await database.write(lambda c: c.execute(text("UPDATE runs SET lease_until = 1.0")).rowcount)
    assert await store.renew(held) == set()
    assert all(lease.until not in {None, 1.0} for _, lease in await store.running())
