"""A reply that another process writes is seen, followed, stopped and decided here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from core.errors import BadArgumentsError, ConflictError, NotFoundError, StorageError
from core.messages.events import MessageStarted, TextDelta
from core.messages.message import Message
from core.runs.followed import FollowedRun, Following
from core.runs.log import ApprovalAsked, InputAsked, RunFinished
from core.runs.manager import Runs
from core.runs.redis_feed import RedisFeed
from core.runs.reply import TextBlock
from core.runs.resumable import ResumableRun
from core.runs.run import Run
from core.storage.base import EventRow
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.tools.approval import Decision
from tests.core.runs.note_tools import Note, agent_of, writes
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio


class Says:
    """Says what it is given, one piece after the other, until it is given the end."""

    def __init__(self) -> None:
        self.given: asyncio.Queue[str | None] = asyncio.Queue()

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Any, None]:
        yield MessageStarted()
        while (text := await self.given.get()) is not None:
            yield TextDelta(text)


@pytest.fixture
async def there(talk: Any) -> AsyncIterator[Runs]:
    """The runs of another process on the same data: another one opens the same file."""
    database = await Database.open(talk.database.place)
    runs = Runs(stores_over(database), worker="there")
    looking: Any = runs.elsewhere
    looking._every = 0.02
    runs.elsewhere.begin()
    yield runs
    await runs.aclose()
    await database.aclose()


async def followed(runs: Runs, conversation_id: str) -> FollowedRun:
    found = await runs.of("alice").found(conversation_id)
    assert isinstance(found, FollowedRun)
    return found


def text_of(run: FollowedRun) -> str:
    return "".join(block.text for block in run.reply().blocks if isinstance(block, TextBlock))


async def until(run: FollowedRun, text: str) -> None:
    """Wait until so much of it is known."""
    with anyio.fail_after(10):
        grown = asyncio.Event()
        leave = run.log.watch(lambda _: grown.set())
        while text not in text_of(run):
            grown.clear()
            await grown.wait()
        leave()


async def test_a_reply_of_another_process_is_followed_from_its_beginning_to_its_end(talk: Any, there: Runs) -> None:
    says = Says()
    run = await talk.ask(says)
    says.given.put_nowait("It began ")
    while "began" not in str(await talk.store.events(run.id)):
        await anyio.lowlevel.checkpoint()
    seen = await followed(there, talk.id)
    assert text_of(seen) == "It began "
    assert there.of("alice").live_conversations() == {talk.id}
    assert (await there.of("alice").reply(await talk.last())) is seen.reply()
    says.given.put_nowait("and went on")
    await until(seen, "It began and went on")
    says.given.put_nowait(None)
    with anyio.fail_after(10):
        assert await seen.wait() == "complete"
    assert seen.log.since()[-1].event == RunFinished("complete")
    assert there.of("alice").live_conversations() == set()
    assert await there.of("alice").found(talk.id) is None


async def test_that_a_reply_begins_and_ends_elsewhere_is_news_here(talk: Any, there: Runs) -> None:
    told: asyncio.Queue[bool] = asyncio.Queue()
    there.on_change(lambda owner, which: told.put_nowait(there.is_answered(which)))
    says = Says()
    await talk.ask(says)
    with anyio.fail_after(10):
        assert await told.get()
        says.given.put_nowait(None)
        assert not await told.get()


async def test_a_reply_is_stopped_from_another_process(talk: Any, there: Runs) -> None:
    run = await talk.ask(Says())
    with anyio.fail_after(10):
        await there.of("alice").stop(talk.id)
        assert (await talk.last()).status == "stopped"
        assert await run.wait() == "stopped"  # its own process may know a moment after the tables


async def test_what_is_asked_of_it_is_its_owners_alone(talk: Any, there: Runs) -> None:
    run = await talk.ask(Says())
    await there.of("bob").stop(talk.id)
    assert await there.of("bob").found(talk.id) is None
    with pytest.raises(NotFoundError):
        await there.of("bob").get(run.id)
    assert (await there.of("alice").get(run.id)).id == run.id
    assert run.status == "running"


async def asking(talk: Any) -> tuple[Run, Note]:
    """A reply that waits for its user's word on a call."""
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), "Done."))
    with anyio.fail_after(10):
        async for one in run.log.follow():
            if isinstance(one.event, ApprovalAsked):
                break
    return run, note


async def question(runs: Runs, conversation_id: str) -> str:
    """The call that waits for the user, as another process sees it."""
    with anyio.fail_after(10):
        while not (waiting := (await followed(runs, conversation_id)).reply().asking):
            await anyio.lowlevel.checkpoint()
    return waiting[0].call_id


async def test_a_call_is_let_run_from_another_process_and_made_once(talk: Any, there: Runs) -> None:
    run, note = await asking(talk)
    call_id = await question(there, talk.id)
    with anyio.fail_after(10):
        asked = await there.of("alice").decide(talk.id, call_id, Decision(allowed=True, arguments={"text": "ho"}))
        assert await run.wait() == "complete"
    assert (asked.call_id, asked.name, asked.arguments) == (call_id, "write_note", {"text": "hi"})
    assert note.written == ["ho"]


async def test_arguments_that_do_not_fit_are_told_to_another_process_and_the_call_waits_on(
    talk: Any, there: Runs
) -> None:
    run, note = await asking(talk)
    call_id, decide = await question(there, talk.id), there.of("alice").decide
    with anyio.fail_after(10):
        for _ in range(2):
            with pytest.raises(BadArgumentsError, match="'text' must be text, not 5") as refused:
                await decide(talk.id, call_id, Decision(allowed=True, arguments={"text": 5}))
            assert refused.value.details == {"field": "text", "named": "text", "kind": "string"}
        await decide(talk.id, call_id, Decision(allowed=True, arguments={"text": "ho"}))
        assert await run.wait() == "complete"
    assert note.written == ["ho"]


def _nested() -> list[Any]:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("found", "told"),
    [(Path("ha"), "ha"), ({(1, 2): 3}, "{(1, 2): 3}"), (_nested(), "a list")],
    ids=["a path", "a key that is no text", "lists in each other"],
)
async def test_what_no_json_holds_of_arguments_that_do_not_fit_is_told_as_text(
    talk: Any, there: Runs, monkeypatch: pytest.MonkeyPatch, found: object, told: str
) -> None:
    def verify(_: Note, arguments: dict[str, Any]) -> None:
        if arguments["text"] == "hu":
            raise BadArgumentsError("It is none.", key="no_note", field="text", found=found)

    monkeypatch.setattr(Note, "verify", verify)
    run, note = await asking(talk)
    call_id, decide = await question(there, talk.id), there.of("alice").decide
    with anyio.fail_after(10):
        with pytest.raises(BadArgumentsError, match="It is none") as refused:
            await decide(talk.id, call_id, Decision(allowed=True, arguments={"text": "hu"}))
        assert refused.value.details == {"field": "text", "found": told}
        await decide(talk.id, call_id, Decision(allowed=True, arguments={"text": "ho"}))
        assert await run.wait() == "complete"
    assert note.written == ["ho"]


async def test_of_two_processes_that_decide_the_first_counts_and_the_other_is_told(talk: Any, there: Runs) -> None:
    run, note = await asking(talk)
    call_id = await question(there, talk.id)
    here, other = talk.runs.of("alice"), there.of("alice")
    with anyio.fail_after(20):
        said = await asyncio.gather(
            other.decide(talk.id, call_id, Decision(allowed=False)),
            other.decide(talk.id, call_id, Decision(allowed=True)),
            here.decide(talk.id, call_id, Decision(allowed=True)),
            return_exceptions=True,
        )
        await run.wait()
    refused = [one for one in said if isinstance(one, ConflictError)]
    assert [one.words_key for one in refused] == ["already_decided"] * 2
    assert note.written == ["hi"] * (run.status == "complete" and not isinstance(said[2], ConflictError))


async def test_what_a_server_wants_to_know_is_answered_from_another_process_and_not_kept(
    talk: Any, there: Runs
) -> None:
    run = await talk.ask(Says())
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    waits = asyncio.create_task(run.inputs.ask("c1", "Server", "Your name?", schema))
    with anyio.fail_after(10):
        while not (asked := [one.event for one in run.log.since() if isinstance(one.event, InputAsked)]):
            await anyio.lowlevel.checkpoint()
        await there.of("alice").give(talk.id, asked[0].input_id, {"name": "Secret"})
        assert await waits == {"name": "Secret"}
    with pytest.raises(ConflictError):
        await there.of("alice").give(talk.id, asked[0].input_id, {"name": "Late"})
    rows = await talk.database.read(lambda c: str(c.exec_driver_sql("SELECT * FROM run_requests").all()))
    assert "Secret" not in rows


async def test_what_was_done_and_could_not_be_told_is_told_later_and_not_done_again(
    talk: Any, there: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: Any = talk.runs._heeding._requests
    settle, failed = requests.settle, list[object]()

    async def fails_once(request: Any, answer: Any) -> None:
        if not failed:
            failed.append(answer)
            raise StorageError("The database is away.")
        await settle(request, answer)

    monkeypatch.setattr(requests, "settle", fails_once)
    note = Note()
    run = await talk.ask(agent_of(note, writes("hi"), writes("ho"), "Done."))
    with anyio.fail_after(20):
        call_id = await question(there, talk.id)
        asked = await there.of("alice").decide(talk.id, call_id, Decision(allowed=True))
        assert (asked.call_id, len(failed), note.written) == (call_id, 1, ["hi"])
        await run.stop()


class _Silent:
    """A feed that never says anything."""

    tells = False

    async def follow(self, run_id: str, after: int = 0) -> AsyncGenerator[Any, None]:
        await asyncio.Event().wait()
        yield []


async def test_who_waits_for_a_reply_that_is_followed_no_more_waits_no_longer(talk: Any) -> None:
    record, _ = await talk.store.create(talk.id, user=[], parent_id=None, worker="elsewhere")
    feed: Any = _Silent()
    following = Following(FollowedRun(record), feed, lambda _: None, lambda _: None)
    waits = asyncio.create_task(following.run.ready())
    await asyncio.sleep(0)
    following.close()
    with anyio.fail_after(60):
        await waits


async def test_a_second_question_from_another_process_is_busy(talk: Any, there: Runs) -> None:
    run = await talk.ask(Says())
    mine, question = there.of("alice"), Message("user", "And?")
    with pytest.raises(ConflictError) as refused:
        await mine.start(talk.id, Says(), user=question, parent_id=run.message_id, history=[question])
    assert refused.value.words_key == "busy"
    await followed(there, talk.id)
    await run.stop()
    again = await mine.start(talk.id, Says(), user=question, parent_id=run.message_id, history=[question])
    await again.stop()  # what was known of the one before holds nobody up


async def test_a_conversation_that_is_deleted_elsewhere_ends_its_reply_quietly(
    talk: Any, there: Runs, caplog: pytest.LogCaptureFixture
) -> None:
    says = Says()
    run = await talk.ask(says)
    seen = await followed(there, talk.id)
    await ConversationStore(talk.database, "alice").delete(talk.id)
    says.given.put_nowait("too late")
    with anyio.fail_after(10):
        assert await run.wait() == "stopped"
        assert await seen.wait() == "stopped"
    assert there.of("alice").live_conversations() == set()
    assert not [one for one in caplog.records if one.levelname in {"ERROR", "CRITICAL"}]


async def test_a_reply_that_another_process_goes_on_with_is_followed_anew(talk: Any, there: Runs) -> None:
    says = Says()
    run = await talk.ask(says)
    says.given.put_nowait("as it was")
    seen = await followed(there, talk.id)
    await until(seen, "as it was")
    (found,) = await talk.stores.runs.running()
    rows = [EventRow(1, 0.1, "text_delta", {"text": "as it is now"})]
    taken = await talk.stores.runs.take_over(*found, "a third", rows)
    with anyio.fail_after(10):
        while (now := await followed(there, talk.id)) is seen or "now" not in text_of(now):
            await anyio.lowlevel.checkpoint()
        assert text_of(now) == "as it is now"
        await talk.store.finish(run.id, "complete", epoch=taken.epoch, parts=[Message("assistant", "as it is now")])
        assert await seen.wait() == "complete"  # who waits for what it was is told the end


async def test_what_there_was_of_a_text_that_is_written_anew_stays_until_there_is_some_of_the_new(
    talk: Any, there: Runs
) -> None:
    says = Says()
    run = await talk.ask(says)
    says.given.put_nowait("as it was")
    seen = await followed(there, talk.id)
    await until(seen, "as it was")
    (found,) = await talk.stores.runs.running()
    taken = await talk.stores.runs.take_over(*found, "a third", [EventRow(1, 0.1, "taken_over", {})])
    with anyio.fail_after(10):
        while (now := await followed(there, talk.id)) is seen:
            assert text_of(now) == "as it was"
            await anyio.lowlevel.checkpoint()
        assert text_of(now) == "as it was"
        await talk.store.append(run.id, [EventRow(2, 0.2, "text_delta", {"text": "new"})], epoch=taken.epoch)
        while text_of(await followed(there, talk.id)) == "as it was":
            await anyio.lowlevel.checkpoint()
        assert text_of(await followed(there, talk.id)) == "new"
        await talk.store.finish(run.id, "complete", epoch=taken.epoch, parts=[Message("assistant", "new")])
        assert await seen.wait() == "complete"


async def test_with_a_redis_a_reply_is_followed_before_it_is_stored(
    talk: Any, redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.runs.rows._CHECKPOINT_EVERY", 3600.0)
    feeds = [RedisFeed(talk.stores.run_news, redis) for _ in range(2)]
    writes, reads = (Runs(talk.stores, worker=f"{number}", feed=feed) for number, feed in enumerate(feeds))
    says, question = Says(), Message("user", "Well?")
    run = await writes.of("alice").start(talk.id, says, user=question, parent_id=None, history=[question])
    seen = await followed(reads, talk.id)
    says.given.put_nowait("so far")
    await until(seen, "so far")
    assert "so far" not in str(await talk.store.events(run.id))
    says.given.put_nowait(None)
    with anyio.fail_after(10):
        assert await seen.wait() == "complete"
    assert text_of(seen) == "so far"
    for runs in (reads, writes):
        await runs.aclose()


async def resting(talk: Any, there: Runs, note: Note) -> Run:
    """A reply that waited for its user for so long that its process let it go; another process watches."""
    talk.runs._rests_after = 0.05

    async def resume(left: ResumableRun) -> Run:
        given = [Message("user", "Hello?"), *left.messages()]
        return await there.of("alice").resume(left, agent_of(note, "Done."), history=given)

    await there.watch(resume)
    run: Run = await talk.ask(agent_of(note, writes("hi"), "Never said here."))
    with anyio.fail_after(10):
        assert await run.wait() == "interrupted"
    return run


async def test_a_reply_that_waits_long_for_its_user_holds_no_process_and_goes_on_in_another(
    talk: Any, there: Runs
) -> None:
    note = Note()
    run = await resting(talk, there, note)
    ((record, lease),) = await talk.stores.runs.running()
    assert (record.status, lease.worker) == ("running", "waiting")
    assert talk.runs.live(talk.id) is None
    assert talk.runs.of("alice").live_conversations() == {talk.id}  # it is being answered all the same
    assert [await Runs(talk.stores).recover() for _ in range(50)] == [0] * 50  # nobody takes it for left behind
    call_id = await question(talk.runs, talk.id)
    with anyio.fail_after(20):
        decision = Decision(allowed=True, arguments={"text": "ho"})
        asked = await talk.runs.of("alice").decide(talk.id, call_id, decision)
        while (await talk.last()).status == "running":
            await anyio.lowlevel.checkpoint()
    assert asked.call_id == call_id
    assert note.written == ["ho"]
    assert (await talk.last()).run_id == run.id
    assert (await talk.last()).parts[-1].get_text_content() == "Done."


async def test_a_reply_that_waits_without_a_process_can_be_stopped(talk: Any, there: Runs) -> None:
    note = Note()
    await resting(talk, there, note)
    with anyio.fail_after(20):
        await talk.runs.of("alice").stop(talk.id)
    assert (await talk.last()).status == "stopped"
    assert note.written == []


async def test_a_tool_that_was_let_run_again_meanwhile_is_asked_for_anew_each_time_it_is_taken_back(
    talk: Any, there: Runs
) -> None:
    run, _ = await asking(talk)
    await question(there, talk.id)
    again = asyncio.Queue[str]()
    run.questions.ask_again = again.put_nowait
    for _ in range(2):
        await there.of("alice").ask_again(talk.id, "note")
        with anyio.fail_after(10):
            assert await again.get() == "note"


@pytest.mark.parametrize("from_here", [True, False])
@pytest.mark.parametrize("told", ["stop", "decide"])
async def test_what_is_said_to_a_reply_while_its_process_lets_it_go_is_done_by_the_next_one(
    talk: Any, there: Runs, *, told: str, from_here: bool
) -> None:
    note, leaves, left = Note(), asyncio.Event(), asyncio.Event()
    rest = talk.store.rest

    async def rests(*given: Any, **more: Any) -> None:
        leaves.set()
        await left.wait()
        await rest(*given, **more)

    async def resume(record: ResumableRun) -> Run:
        given = [Message("user", "Hello?"), *record.messages()]
        return await there.of("alice").resume(record, agent_of(note, "Done."), history=given)

    talk.runs._rests_after = 0.05
    await there.watch(resume)
    run: Run = await talk.ask(agent_of(note, writes("hi"), "Never said here."))
    run._store = SimpleNamespace(rest=rests, append=run._store.append)
    call_id = await question(there, talk.id)
    with anyio.fail_after(20):
        await leaves.wait()
        runs = (talk.runs if from_here else there).of("alice")
        said = runs.stop(talk.id) if told == "stop" else runs.decide(talk.id, call_id, Decision(allowed=True))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: said)
            await anyio.wait_all_tasks_blocked()
            while not from_here and not await talk.stores.run_requests.open(talk.runs.worker):
                await anyio.lowlevel.checkpoint()
            await talk.runs._heeding.look()
            left.set()
        while (await talk.last()).status == "running":
            await anyio.lowlevel.checkpoint()
    assert (await talk.last()).status == ("stopped" if told == "stop" else "complete")
    assert note.written == ([] if told == "stop" else ["hi"])


async def test_a_reply_that_waits_without_a_process_is_taken_up_when_its_time_is_over(talk: Any, there: Runs) -> None:
    note = Note()
    await resting(talk, there, note)
    await talk.database.write(lambda c: c.exec_driver_sql("UPDATE runs SET lease_until = 1.0").rowcount)
    with anyio.fail_after(20):
        ((record, lease),) = await talk.stores.runs.running()
        assert lease.until == 1.0
        await there.recover(None)
    assert (await talk.store.get(record.id)).status == "interrupted"
