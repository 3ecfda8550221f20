"""kill -9 in the middle of a reply: nothing acknowledged is lost, and the reply can go on."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.runs.lease import standing, this_worker, worker_of
from core.runs.manager import Runs
from core.runs.resume import events_to_continue
from core.runs.run import Beginning
from core.storage.base import EventRow
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio

_ANSWERS = """
import asyncio, sys
from tests.core.runs.slow_reply import begun

async def main():
    *_, run = await begun(sys.argv[1])
    async for one in run.log.follow():
        print(one.seq, flush=True)

asyncio.run(main())
"""


def words_stored(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT payload FROM run_events WHERE kind = 'text_delta'").fetchall()
    return str(rows).count("word")


@pytest.mark.parametrize("words", [1, 5, 80])
async def test_after_a_kill_the_question_and_the_partial_reply_are_there(
    tmp_path: Path, speaker: Any, words: int, migrated: Callable[[], bytes]
) -> None:
    path = tmp_path / "parlour.db"
    path.write_bytes(migrated())  # the process to be killed need not load what makes one
    child = subprocess.Popen([sys.executable, "-c", _ANSWERS, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    talk_id = (await asyncio.to_thread(child.stdout.readline)).strip()
    while int((await asyncio.to_thread(child.stdout.readline)) or words) < words:
        pass
    child.send_signal(signal.SIGKILL)
    await asyncio.to_thread(child.communicate)

    stored = words_stored(path)
    database = await Database.open(path)
    talks, runs = partial(ConversationStore, database), Runs(stores_over(database))
    assert await runs.recover() == 1
    assert await runs.recover() == 0
    question, reply = await talks("alice").thread(talk_id)
    assert question.parts[0].get_text_content() == "Count!"
    assert reply.status == "interrupted"
    said = "".join(part.get_text_content() for part in reply.parts)
    assert said == "".join(f"word{number} " for number in range(stored))
    shown = await runs.of("alice").reply(reply)
    assert (shown.text, shown.status) == (said, "interrupted")
    assert stored >= words - 80  # 5 ms a word: at most 250 ms and some are lost

    agent = speaker("and on.")
    again = await runs.of("alice").start(
        talk_id,
        agent,
        user=None,
        parent_id=question.id,
        history=[*question.parts, *reply.parts],
        beginning=Beginning(events_to_continue(await runs.of("alice").events(again_id(reply.run_id)))),
    )
    assert await again.wait() == "complete"
    assert again.reply().text == said + "and on."
    assert (await talks("alice").thread(talk_id))[-1].parts[-1].get_text_content() == said + "and on."
    assert [turn.status for turn in await talks("alice").siblings(reply.id)] == ["interrupted", "complete"]
    await runs.aclose()
    await database.aclose()


def again_id(run_id: str | None) -> str:
    assert run_id is not None
    return run_id


async def test_what_a_living_process_answers_is_left_alone(talk: Any) -> None:
    await talk.store.create(talk.id, user=[], parent_id=None, worker=this_worker())
    assert await Runs(talk.stores, worker="another").recover() == 0
    assert await Runs(talk.stores, worker=this_worker()).recover() == 1  # this very process, but not its living runs


async def test_a_run_with_events_that_cannot_be_read_is_picked_up_without_them(talk: Any) -> None:
    record, _ = await talk.store.create(talk.id, user=[], parent_id=None, worker=this_worker())
    rows = [
        EventRow(1, 0.0, "message_started", {"name": None}),
        EventRow(2, 0.1, "text_delta", {"text": "Herons "}),
        EventRow(3, 0.2, "from_the_future", {"text": "?"}),
        EventRow(4, 0.3, "text_delta", {"nonsense": 1}),
        EventRow(5, 0.4, "tool_finished", {"call_id": "a", "message": {"role": "nobody"}}),
        EventRow(6, 0.5, "text_delta", {"text": "fish."}),
    ]
    await talk.store.append(record.id, rows, epoch=record.epoch)
    runs = Runs(talk.stores, worker=this_worker())
    assert await runs.recover() == 1
    reply = await runs.of("alice").reply(await talk.last())
    assert (reply.status, reply.text) == ("interrupted", "Herons fish.")


def test_a_process_that_is_gone_here_is_proved_dead() -> None:
    place, _, process = this_worker().rpartition("/")
    number = process.partition("@")[0]
    assert standing(this_worker()) == "alive"
    assert standing(f"{place}/999999999@1") == "dead"
    assert standing(f"{place}/{number}@1") == "dead"  # its number was given to another one


def test_a_process_that_ended_but_was_not_waited_for_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        worker = worker_of(child.pid)
        assert standing(worker) == "alive"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert standing(worker) == "dead"


@pytest.mark.parametrize("worker", ["", "nobody", "1@0.00", "999999999@1.00", "another-machine/999999999@1", "/1@"])
def test_of_a_process_of_elsewhere_nothing_is_proved(worker: str) -> None:
    assert standing(worker) == "unknown"
