"""Several Parlours on one PostgreSQL at the same moment: none is held up in vain, and what was promised holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from core.errors import ConflictError, LeaseLostError, NotFoundError, TooManyRequestsError
from core.messages.message import ContentItem, Message, Usage
from core.storage import postgres_database
from core.storage.base import FILE_ADDRESS, AgentThought, EventRow, Lease, RunRecord, StoredMessage, new_id
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.files import AllFiles
from core.storage.owner_settings import OwnerSettings
from core.storage.queued_messages import QueuedMessages
from core.storage.run_news import RunRequest, RunRequests
from core.storage.runs import AllRuns
from core.storage.thoughts import ThoughtStore
from core.storage.use import Limits, UsualLimits

pytestmark = pytest.mark.anyio
T = TypeVar("T")
USUAL = UsualLimits(guest=Limits(messages=3))
WHO = "b-guest"


@pytest.fixture
async def parlours(postgres: str, anyio_backend: str) -> AsyncIterator[list[Database]]:
    """Three on one database."""
    opened = [await Database.open(postgres) for _ in range(3)]
    yield opened
    for one in opened:
        await one.aclose()


@pytest.fixture
async def talk(parlours: list[Database]) -> str:
    return (await ConversationStore(parlours[0], WHO).create("talk")).id


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """What PostgreSQL refused because of another transaction, and was to run again."""
    found: list[BaseException] = []
    is_conflict = postgres_database.is_conflict

    def noting(error: BaseException) -> bool:
        found.extend([error] if is_conflict(error) else [])
        return is_conflict(error)

    monkeypatch.setattr(postgres_database, "is_conflict", noting)
    return found


async def after_another(address: str, others: list[tuple[str, dict[str, Any]]], asked: Callable[[], Awaitable[T]]) -> T:
    """What comes of something that is asked while the transaction of another Parlour has these changes open."""
    async with await psycopg.AsyncConnection.connect(address) as other:
        for statement, values in others:
            await other.execute(statement.encode(), values)
        task = asyncio.ensure_future(asked())
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as looking:
            while (await (await looking.execute(waits)).fetchone()) == (0,) and not task.done():
                pass  # each look waits for the server
        assert not task.done(), "it did not wait for the other one"
        await other.commit()
        return await task


async def test_many_replies_that_begin_and_end_at_the_same_moment_are_refused_nothing(
    parlours: list[Database], refused: list[BaseException]
) -> None:
    runs = [AllRuns(one, UsualLimits(guest=Limits(messages=1000))) for one in parlours]

    async def answered(number: int) -> None:
        here, owner = number % 3, f"b-guest-{number % 4}"
        store = runs[here].of(owner)
        talks, queue = ConversationStore(parlours[here], owner), QueuedMessages(parlours[here], owner)
        talk = await talks.create("")
        await talks.configure(talk.id, lambda chosen: {**chosen, "model": "a"})
        run, _ = await store.create(talk.id, user=[Message("user", "Why?")], parent_id=None, worker="w", title="Why?")
        await store.append(run.id, [EventRow(1, 0.0, "text", {"text": "So"})], epoch=1)
        assert await runs[here].renew({run.id: 1}) == set()
        await queue.add(talk.id, "And then?")
        await talks.rename(talk.id, "Named by a person")
        usage = Usage(total_tokens=10, cost=0.5)
        await store.finish(run.id, "complete", epoch=1, parts=[Message("assistant", "So.")], usage=usage)

    await asyncio.gather(*map(answered, range(15)))
    assert refused == []


async def test_many_replies_with_steps_that_end_or_are_kept_whole_at_the_same_moment_are_refused_nothing(
    parlours: list[Database], refused: list[BaseException]
) -> None:
    runs = [AllRuns(one, UsualLimits(guest=Limits(messages=1000))) for one in parlours]

    async def written(number: int) -> str:
        here, owner = number % 3, f"b-guest-{number % 7}"
        store = runs[here].of(owner)
        talk = await ConversationStore(parlours[here], owner).create("")
        if number % 2:
            run, place = await store.create(talk.id, user=[Message("user", "Why?")], parent_id=None, worker="w")
            await store.finish(
                run.id, "complete", epoch=1, parts=[Message("assistant", "So.")], thoughts=steps(place.id)
            )
            return place.id
        place = StoredMessage(new_id(), talk.id, None, "assistant", (), new_id(), "complete", 1.0)
        record = RunRecord(str(place.run_id), owner, talk.id, place.id, "complete", None, "", None, 1.0, 1.0)
        await store.add_whole(record, place, [], steps(place.id))
        return place.id

    def steps(reply: str) -> list[AgentThought]:
        return [AgentThought(new_id(), reply, "Hm.", "look_up", "{}", "It is so.", at, None) for at in range(1, 5)]

    replies = await asyncio.gather(*map(written, range(30)))
    assert refused == []
    kept = [await ThoughtStore(parlours[0], f"b-guest-{at % 7}").list(reply) for at, reply in enumerate(replies)]
    assert [[one.position for one in some] for some in kept] == [[1, 2, 3, 4]] * 30


async def test_a_whole_reply_is_not_kept_in_a_conversation_in_which_one_begins_at_that_moment(
    postgres: str, parlours: list[Database], talk: str
) -> None:
    first = await ConversationStore(parlours[0], WHO).add_message(talk, "user", [Message("user", "Why?")], None)
    names = {"talk": talk, "owner": WHO, "message": first.id}
    held = "SELECT id FROM conversations WHERE id = %(talk)s FOR NO KEY UPDATE"
    columns = "id, owner_id, conversation_id, message_id, status, model, worker, started_at"
    begun = f"INSERT INTO runs ({columns}) VALUES ('r', %(owner)s, %(talk)s, %(message)s, 'running', '', 'w', 1)"
    place = StoredMessage(new_id(), talk, first.id, "assistant", (), new_id(), "complete", 1.0)
    whole = RunRecord(str(place.run_id), WHO, talk, place.id, "complete", None, "", None, 1.0, 1.0)
    store = AllRuns(parlours[0]).of(WHO)
    with pytest.raises(ConflictError) as caught:
        await after_another(postgres, [(held, names), (begun, names)], lambda: store.add_whole(whole, place, [], []))
    assert caught.value.words_key == "busy"


async def test_what_several_parlours_note_for_one_owner_at_the_same_moment_is_all_there_and_refused_nothing(
    parlours: list[Database], refused: list[BaseException]
) -> None:
    def note(number: int) -> Awaitable[Any]:
        settings = OwnerSettings(parlours[number % 3], WHO)
        return settings.change("unread", lambda kept: [*(kept or ()), number], alone=True)

    await asyncio.gather(*map(note, range(24)))
    assert sorted(await OwnerSettings(parlours[0], WHO).get("unread")) == [*range(24)]
    assert refused == []


async def test_of_questions_at_the_same_moment_at_several_parlours_no_more_pass_than_a_limit_says(
    parlours: list[Database],
) -> None:
    talks = [(await ConversationStore(parlours[0], WHO).create("")).id for _ in range(12)]
    stores = [AllRuns(one, USUAL).of(WHO) for one in parlours]
    asked = (
        stores[number % 3].create(talk, user=[Message("user", "Why?")], parent_id=None)
        for number, talk in enumerate(talks)
    )
    told = await asyncio.gather(*asked, return_exceptions=True)
    refused = [one.words_key for one in told if isinstance(one, TooManyRequestsError)]
    assert (len(told) - len(refused), {*refused}) == (3, {"quota_messages"})


async def test_a_question_to_a_conversation_that_is_being_deleted_finds_none(
    postgres: str, parlours: list[Database], talk: str
) -> None:
    store = AllRuns(parlours[0]).of(WHO)
    with pytest.raises(NotFoundError):
        await after_another(
            postgres,
            [("DELETE FROM conversations WHERE id = %(talk)s", {"talk": talk})],
            lambda: store.create(talk, user=[Message("user", "Why?")], parent_id=None),
        )


async def test_a_file_that_goes_at_the_moment_in_which_a_question_names_it_is_passed_over(
    postgres: str, parlours: list[Database], talk: str, tmp_path: Path
) -> None:
    file = await AllFiles(parlours[0], tmp_path).of(WHO).put("notes.txt", b"words")
    question = Message("user", [ContentItem(file=f"{FILE_ADDRESS}{file.id}")])
    store = AllRuns(parlours[0]).of(WHO)
    run, _ = await after_another(
        postgres,
        [("DELETE FROM files WHERE id = %(file)s", {"file": file.id})],
        lambda: store.create(talk, user=[question], parent_id=None),
    )
    assert run.status == "running"


async def test_a_file_that_a_question_comes_to_need_is_not_swept_away_at_that_moment(
    postgres: str, parlours: list[Database], talk: str, tmp_path: Path
) -> None:
    every = AllFiles(parlours[0], tmp_path)
    file = await every.of(WHO).put("notes.txt", b"words")
    names = {"file": file.id, "talk": talk, "owner": WHO}
    swept = await after_another(
        postgres,
        [
            ("SELECT id FROM files WHERE id = %(file)s FOR KEY SHARE", names),
            (
                "INSERT INTO file_uses (file_id, conversation_id, owner_id) VALUES (%(file)s, %(talk)s, %(owner)s)",
                names,
            ),
        ],
        lambda: every.delete_unused(file.created_at + 60.0),
    )
    assert swept == 0
    assert (await every.of(WHO).record(file.id)).name == "notes.txt"


async def test_a_waiting_message_that_is_changed_at_the_moment_in_which_it_is_sent_is_not_sent_as_it_was(
    postgres: str, parlours: list[Database], talk: str
) -> None:
    queue, store = QueuedMessages(parlours[0], WHO), AllRuns(parlours[0]).of(WHO)
    waiting = await queue.add(talk, "Why?")
    with pytest.raises(ConflictError) as caught:
        await after_another(
            postgres,
            [("UPDATE queued_messages SET text = 'When?' WHERE id = %(id)s", {"id": waiting.id})],
            lambda: store.create(talk, user=[Message("user", "Why?")], parent_id=None, queued=waiting),
        )
    assert caught.value.words_key == "queue_changed"
    assert [one.text for one in await queue.list(talk)] == ["When?"]


async def begun(database: Database, talk: str) -> tuple[RunRecord, Lease]:
    store = AllRuns(database).of(WHO)
    await store.create(talk, user=[Message("user", "Why?")], parent_id=None, worker="w")
    found = await store.running(talk)
    assert found is not None
    return found


async def test_what_is_written_at_the_moment_of_a_take_over_is_not_lost_with_it(
    postgres: str, parlours: list[Database], talk: str
) -> None:
    record, lease = await begun(parlours[0], talk)
    names = {"run": record.id, "owner": WHO}
    columns = "run_id, owner_id, seq, at, kind, payload"
    event = f"INSERT INTO run_events ({columns}) VALUES (%(run)s, %(owner)s, 1, 0, 'text', '{{}}')"
    with pytest.raises(ConflictError):
        await after_another(
            postgres,
            [("SELECT id FROM runs WHERE id = %(run)s FOR NO KEY UPDATE", names), (event, names)],
            lambda: AllRuns(parlours[0]).take_over(record, lease, "another", [], seen=0),
        )
    assert [one.seq for one in await AllRuns(parlours[0]).of(WHO).events(record.id)] == [1]


async def test_who_writes_at_the_moment_of_a_take_over_writes_nothing(
    postgres: str, parlours: list[Database], talk: str
) -> None:
    record, _ = await begun(parlours[0], talk)
    store = AllRuns(parlours[0]).of(WHO)
    rows = [EventRow(1, 0.0, "text", {"text": "So"})]
    for epoch, write in enumerate(
        (
            lambda: store.append(record.id, rows, epoch=1),
            lambda: store.append(record.id, rows, epoch=2, durable=True),
            lambda: store.finish(record.id, "complete", epoch=3, parts=[], rows=rows),
        ),
        start=2,
    ):
        taken = ("UPDATE runs SET epoch = %(epoch)s WHERE id = %(run)s", {"run": record.id, "epoch": epoch})
        with pytest.raises(LeaseLostError):
            await after_another(postgres, [taken], write)
    assert await store.events(record.id) == []


async def test_what_is_asked_of_a_reply_that_ends_at_that_moment_is_not_kept(
    postgres: str, parlours: list[Database], talk: str
) -> None:
    record, _ = await begun(parlours[0], talk)
    typed = RunRequest(record.id, "give 1", "give", {"values": {"word": "typed"}})
    ended = ("UPDATE runs SET status = 'complete' WHERE id = %(run)s", {"run": record.id})
    assert not await after_another(postgres, [ended], lambda: RunRequests(parlours[0]).ask(record, typed))
    assert await parlours[0].read(lambda c: c.exec_driver_sql("SELECT count(*) FROM run_requests").scalar()) == 0


async def test_of_two_changes_of_what_is_chosen_at_the_same_moment_none_is_lost(
    postgres: str, parlours: list[Database], talk: str
) -> None:
    talks = ConversationStore(parlours[0], WHO)
    chosen = ('UPDATE conversations SET settings = \'{"model": "a"}\' WHERE id = %(talk)s', {"talk": talk})
    await after_another(postgres, [chosen], lambda: talks.configure(talk, lambda kept: {**kept, "tools": []}))
    assert await talks.settings(talk) == {"model": "a", "tools": []}


async def test_a_branch_is_not_turned_to_at_the_moment_in_which_a_reply_begins(
    postgres: str, parlours: list[Database], talk: str
) -> None:
    talks = ConversationStore(parlours[0], WHO)
    first = await talks.add_message(talk, "user", [Message("user", "Why?")], None)
    names = {"talk": talk, "owner": WHO, "message": first.id}
    held = "SELECT id FROM conversations WHERE id = %(talk)s FOR NO KEY UPDATE"
    columns = "id, owner_id, conversation_id, message_id, status, model, worker, started_at"
    begun = f"INSERT INTO runs ({columns}) VALUES ('r', %(owner)s, %(talk)s, %(message)s, 'running', '', 'w', 1)"
    with pytest.raises(ConflictError):
        await after_another(postgres, [(held, names), (begun, names)], lambda: talks.turn_to(talk, first.id))


async def test_a_conversation_of_an_owner_who_goes_at_that_moment_is_begun_with_the_owner_known_anew(
    postgres: str, parlours: list[Database]
) -> None:
    talks = ConversationStore(parlours[0], WHO)
    await talks.ensure_owner()
    gone = ("DELETE FROM owners WHERE id = %(owner)s", {"owner": WHO})
    begun = await after_another(postgres, [gone], lambda: talks.create("talk"))
    assert [one.id for one in await talks.list()] == [begun.id]
