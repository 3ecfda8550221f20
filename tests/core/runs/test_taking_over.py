"""What one of several Parlours leaves, another one goes on with: killed, held up, or with a clock of its own."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from core.messages.events import TextDelta
from core.messages.message import Message
from core.runs.followed import FollowedRun
from core.runs.log import LoggedEvent, ModelCalled, TakenOver
from core.runs.manager import Runs
from core.runs.reply import CallBlock
from core.runs.resumable import ResumableRun, Said
from core.runs.run import Run, RunOptions
from core.storage.base import StoredMessage
from core.storage.stores import Stores
from core.tools.approval import Decision, Policy
from tests.core.runs.shared_parlours import SHORT, Nursery, Told, agent_of, here, nurseries

pytestmark = pytest.mark.anyio
WORDS = " ".join(f"word{number}" for number in range(500))


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    yield from nurseries()


@dataclass
class Shared:
    """A database, a process that writes a reply there, and this one, which goes on with what that leaves."""

    database: str
    folder: Path
    nursery: Nursery
    stores: Stores
    runs: Runs
    turns: list[Any] = field(default_factory=list)
    policy: Policy = field(default_factory=Policy)
    asked: list[Any] = field(default_factory=list)
    run: Run | None = None

    def told(self, **more: Any) -> Told:
        return Told(self.database, str(self.folder / "notes"), **more)

    async def resume(self, left: ResumableRun) -> None:
        """Go on with what was left, as the engine does."""
        agent = agent_of(str(self.folder / "notes"), *self.turns)
        history = [Message("user", "Write!"), *left.messages()]
        terms = RunOptions(self.policy)
        answerer: Any = Said() if left.whole else agent
        self.run = await self.runs.of("alice").resume(left, answerer, history=history, terms=terms)
        model: Any = agent.llm
        self.asked = model.requests

    async def taken_over(self, *turns: Any) -> Run:
        """Look until it is, as often as the engine does; that it was is this process's alone to say."""
        self.turns = [*turns]
        with anyio.fail_after(30):
            while self.run is None:
                await self.runs.recover(self.resume)
        return self.run

    async def followed(self) -> FollowedRun:
        found = await self.runs.of("alice").found(self.nursery.talk)
        assert isinstance(found, FollowedRun)
        return found

    async def last(self) -> StoredMessage:
        return (await self.stores.of("alice").conversations.thread(self.nursery.talk))[-1]

    @property
    def notes(self) -> list[str]:
        path = self.folder / "notes"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
async def shared(postgres: str, tmp_path: Path, nursery: Nursery) -> AsyncIterator[Shared]:
    async with here(postgres, tmp_path) as (stores, runs):
        yield Shared(postgres, tmp_path, nursery, stores, runs)
    await nursery.kill()


def outcomes(logged: list[LoggedEvent]) -> list[str]:
    return [one.event.outcome for one in logged if isinstance(one.event, ModelCalled)]


async def test_a_reply_whose_process_is_killed_in_the_middle_of_a_sentence_is_written_to_its_end_by_another(
    shared: Shared,
) -> None:
    await shared.nursery.begin(shared.told(text=WORDS))
    await shared.nursery.until("text_delta")
    seen = await shared.followed()
    with anyio.fail_after(30):
        while "word5" not in seen.reply().text:
            await anyio.sleep(0.01)  # between two looks
    await shared.nursery.kill()
    run = await shared.taken_over("All of it.")
    with anyio.fail_after(30):
        assert await run.wait() == "complete"
        assert await seen.wait() == "complete"  # who followed it is told the end
    message = await shared.last()
    assert (message.status, [part.get_text_content() for part in message.parts]) == ("complete", ["All of it."])
    assert message.id == run.message_id == seen.message_id
    stored = await shared.runs.of("alice").events(run.id)
    assert "".join(one.event.text for one in stored if isinstance(one.event, TextDelta)) == "All of it."
    assert [one.seq for one in run.log.since()] == list(range(1, len(run.log) + 1))
    assert outcomes(stored) == ["interrupted", "finished"]  # what the lost call cost nobody knows, and it is said
    (lost, *_) = [one.event for one in stored if isinstance(one.event, ModelCalled)]
    assert lost.usage is None
    assert sum(isinstance(one.event, TakenOver) for one in stored) == 1
    again = await Runs(shared.stores, worker="a third").of("alice").reply(message)
    assert (again.text, again.status) == ("All of it.", "complete")


async def test_what_was_called_and_found_before_the_sentence_is_neither_lost_nor_done_again(shared: Shared) -> None:
    await shared.nursery.begin(shared.told(calls=2, text=WORDS))
    await shared.nursery.until("text_delta", 20)
    await shared.nursery.kill()
    run = await shared.taken_over("Both are written.")
    with anyio.fail_after(30):
        assert await run.wait() == "complete"
    assert shared.notes == ["note 0", "note 1"]
    assert [block.kind for block in run.reply().blocks] == ["call", "call", "text"]
    assert run.reply().text == "Both are written."
    (asked,) = shared.asked
    assert [one.role for one in asked.messages][-4:] == ["assistant", "function", "assistant", "function"]
    parts = [part.get_text_content() for part in (await shared.last()).parts]
    assert parts == ["", "written", "", "written", "Both are written."]


async def test_a_call_that_had_begun_is_not_made_again_and_the_model_is_told(shared: Shared) -> None:
    await shared.nursery.begin(shared.told(calls=1, hangs=True))
    await shared.nursery.until("began")
    await shared.nursery.kill()  # at once: only what was stored before the call is known
    run = await shared.taken_over("It may be written.")
    with anyio.fail_after(30):
        assert await run.wait() == "complete"
    assert shared.notes == ["note 0"]
    (call,) = [block for block in run.reply().blocks if isinstance(block, CallBlock)]
    assert call.result is not None
    assert (call.result.extra or {})["failed"] == "interrupted"
    assert "may or may not" in shared.asked[0].messages[-1].get_text_content()


async def test_a_question_to_the_user_goes_on_waiting_in_another_process(shared: Shared) -> None:
    await shared.nursery.begin(shared.told(calls=1, asks=True))
    await shared.nursery.until("approval_asked")
    await shared.followed()
    with anyio.fail_after(30):
        while not (await shared.followed()).reply().asking:
            await anyio.sleep(0.01)  # between two looks: it is in the table then
    await shared.nursery.kill()
    run = await shared.taken_over("Done.")
    (call,) = run.reply().asking
    assert shared.notes == []
    await shared.runs.of("alice").decide(shared.nursery.talk, call.call_id, Decision(allowed=True))
    with anyio.fail_after(30):
        assert await run.wait() == "complete"
    assert shared.notes == ["note 0"]
    assert not any(isinstance(one.event, TakenOver) for one in run.log.since())  # it was not at work


async def test_a_reply_that_was_whole_before_its_end_was_stored_is_not_written_again(shared: Shared) -> None:
    await shared.nursery.begin(shared.told(text="All of it.", holds="end"))
    await shared.nursery.until("about to end")
    await shared.nursery.kill()
    # What the last checkpoint had is all that is known; where it had the end of the message, no model is asked.
    (record, _), *_ = await shared.stores.runs.running()
    is_whole = "message_finished" in [row.kind for row in await shared.stores.of("alice").runs.events(record.id)]
    run = await shared.taken_over("Said anew.")
    with anyio.fail_after(30):
        assert await run.wait() == "complete"
    assert run.reply().text == ("All of it." if is_whole else "Said anew.")
    assert is_whole  # the end of a message is stored at once
    assert shared.asked == []
    assert (await shared.last()).parts[-1].get_text_content() == "All of it."


async def test_an_end_that_was_stored_and_not_told_is_known_to_who_follows(shared: Shared, redis: str) -> None:
    told = shared.told(text=WORDS[:200], holds="news", redis=redis)
    await shared.nursery.begin(told)
    await shared.nursery.until("text_delta")
    seen = await shared.followed()
    await shared.nursery.until("run_finished")
    await shared.nursery.kill()
    with anyio.fail_after(30):
        assert await seen.wait() == "complete"
    assert (seen.reply().text, await shared.runs.recover(shared.resume)) == (told.text, 0)


async def test_of_a_machine_that_cannot_be_seen_the_lease_tells_and_it_is_not_taken_before(shared: Shared) -> None:
    await shared.nursery.begin(shared.told(text=WORDS, place="another-machine"))
    await shared.nursery.until("text_delta", 50)  # a second: some leases long, and renewed
    assert [await shared.runs.recover(shared.resume) for _ in range(20)] == [0] * 20
    await shared.nursery.kill()
    run = await shared.taken_over("All of it.")
    assert await run.wait() == "complete"


@pytest.mark.parametrize("clock", [-300.0, 300.0])
async def test_clocks_that_differ_by_minutes_neither_take_a_living_reply_nor_keep_a_dead_one(
    shared: Shared, clock: float
) -> None:
    await shared.nursery.begin(shared.told(text=WORDS, place="another-machine", clock=clock))
    await shared.nursery.until("text_delta", 40)
    assert [await shared.runs.recover(shared.resume) for _ in range(20)] == [0] * 20
    ((_, lease),) = await shared.stores.runs.running()
    now = await shared.stores.database.read(
        lambda c: float(c.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one())
    )
    assert lease.until is not None
    assert abs(lease.until - now) < 2 * SHORT.lease + 5
    await shared.nursery.kill()
    run = await shared.taken_over("All of it.")
    assert await run.wait() == "complete"


async def test_after_all_were_gone_the_first_that_comes_goes_on_with_what_they_left(
    postgres: str, tmp_path: Path, nursery: Nursery
) -> None:
    told = Told(postgres, str(tmp_path / "notes"), text=WORDS, place="another-machine")
    await nursery.begin(told)
    await nursery.until("text_delta", 20)
    await nursery.kill()
    async with here(postgres, tmp_path) as (stores, runs):
        # A minute later, as the clock of the database has it: nobody has to wait for that here.
        long_ago = "UPDATE runs SET lease_until = lease_until - 60 WHERE status = 'running'"
        assert await stores.database.write(lambda c: c.exec_driver_sql(long_ago).rowcount) == 1
        left = Shared(postgres, tmp_path, nursery, stores, runs, ["All of it."])
        assert [await runs.recover(left.resume) for _ in range(2)] == [0, 1]
        assert left.run is not None
        assert await left.run.wait() == "complete"
        assert (await left.last()).status == "complete"


async def test_a_process_that_was_only_held_up_wakes_and_changes_nothing_and_calls_nothing(shared: Shared) -> None:
    await shared.nursery.begin(shared.told(calls=0, text=WORDS))
    await shared.nursery.until("text_delta", 20)
    in_the_middle = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
    shared.nursery.hold_up()
    while await shared.stores.database.read(lambda c: c.exec_driver_sql(in_the_middle.replace("%", "%%")).scalar_one()):
        shared.nursery.hold_up(signal.SIGCONT)  # let it finish what it writes: what is locked nobody can take
        shared.nursery.hold_up()
    run = await shared.taken_over("All of it.")
    assert await run.wait() == "complete"
    await run.ledger.settled()  # what is stored behind the end is there
    before = await shared.last(), await shared.stores.of("alice").runs.events(run.id)
    shared.nursery.hold_up(signal.SIGCONT)
    with anyio.fail_after(30):
        await shared.nursery.gone()
    assert shared.nursery.said[-2:] == ["interrupted", "gone"]
    assert (await shared.last(), await shared.stores.of("alice").runs.events(run.id)) == before
    assert before[0].status == "complete"


async def test_a_reply_that_ends_each_process_that_writes_it_is_left_alone_after_two(shared: Shared) -> None:
    await shared.nursery.begin(shared.told(text=WORDS))
    await shared.nursery.until("text_delta", 20)
    await shared.nursery.kill()
    ((record, lease),) = await shared.stores.runs.running()
    for number in range(2):  # each dies while it writes
        left = ResumableRun.of(record, lease, await shared.runs.of("alice").events(record.id), shared=True)
        assert left is not None
        others = Runs(shared.stores, sharing=SHORT, worker=f"{lease.worker.partition('@')[0]}@{number}")
        await others.take_over(left)
        ((record, lease),) = await shared.stores.runs.running()
    assert await shared.runs.recover(shared.resume) == 1
    assert shared.run is None
    message = await shared.last()
    assert message.status == "interrupted"
    reply = await shared.runs.of("alice").reply(message)
    assert (reply.error or {})["key"] == "taken_over"
    assert await shared.runs.recover(shared.resume) == 0
