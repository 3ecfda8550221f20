"""kill -9 in the middle of calls: the same reply goes on, questions still wait, and nothing is done twice in error."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.errors import ConflictError
from core.runs.log import ApprovalAsked, ApprovalGiven
from core.runs.manager import Runs
from core.runs.reply import CallBlock
from core.runs.resumable import ResumableRun
from core.runs.run import Run, RunOptions
from core.storage.base import Lease
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.runs import AllRuns
from core.storage.thoughts import ThoughtStore
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Decision, Policy
from tests.core.runs.note_tools import Note
from tests.core.stores import stores_over

pytestmark = pytest.mark.anyio

# Processes that write notes into a file. Each tells every event of its run, decides as it is told, and is then killed.
# They are forked from one that has loaded everything, has no thread and has opened nothing.
_PROGRAM = """
import asyncio, json, os, sys
from pathlib import Path
from core.agents.basic import FnCallAgent
from core.messages.message import Message
from core.runs.manager import Runs
from core.runs.run import RunOptions
from core.storage.base import Lease
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Decision, Policy
from core.tools.base import BaseTool

class Note(BaseTool):
    description, writes = "Writes.", True
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    def __init__(self, notes, name, idempotent, hangs):
        self.notes, self.name, self.idempotent, self.hangs = notes, name, idempotent, hangs
        super().__init__()
    async def call(self, params, **kwargs):
        with Path(self.notes).open("a") as file:
            print(self.name, json.loads(params)["text"], file=file)
        if self.hangs:
            print("began", flush=True)
            await asyncio.Event().wait()
        return "written"

async def main(told):
    database = await Database.open(Path(told["database"]))
    stores = Stores(database, Path(told["database"]).parent / "files", Sealer("secret"))
    talk = await stores.of("alice").conversations.create()
    notes = told["notes"]
    tools = [Note(notes, "quick", False, False), Note(notes, "write_note", told["idempotent"], True)]
    agent = FnCallAgent(tools, ScriptedModel(Reply(calls=[(name, {"text": name}) for name in told["calls"]])))
    question = Message("user", "Write!")
    runs = Runs(stores)
    terms = RunOptions(Policy(allow=tuple(told["allow"])))
    run = await runs.of("alice").start(talk.id, agent, user=question, parent_id=None, history=[question], terms=terms)
    async for one in run.log.follow():
        if one.event.kind == "approval_asked" and told["answer"] is not None:
            decision = Decision(**told["answer"])
            asyncio.create_task(runs.of("alice").decide(talk.id, one.event.call_id, decision))
        while not any(row.seq >= one.seq for row in await stores.of("alice").runs.events(run.id)):
            await asyncio.sleep(0.01)
        print(one.event.kind, flush=True)

for line in iter(sys.stdin.readline, ""):
    child = os.fork()
    if not child:
        asyncio.run(main(json.loads(line)))
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("dead", flush=True)
"""


@pytest.fixture(scope="module")
def nursery() -> Iterator[subprocess.Popen[str]]:
    """Forks a process for each line that it is told."""
    command = [sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.communicate()


@dataclass
class Place:
    """What a killed process left: its database, its notes, and the run that goes on with it."""

    folder: Path
    nursery: subprocess.Popen[str]
    notes: Note = field(default_factory=Note)
    database: Database | None = None
    runs: Runs | None = None
    run: Run | None = None
    talk_id: str = ""
    asked: list[Any] = field(default_factory=list)

    async def kill(self, at: set[str], calls: tuple[str, ...] = ("write_note",), **told: Any) -> None:
        """Start it, and kill it when all of these have happened."""
        usual = {"answer": None, "allow": [], "idempotent": False, "calls": calls}
        files = {"database": str(self.folder / "a.db"), "notes": str(self.folder / "notes")}
        entry, out = self.nursery.stdin, self.nursery.stdout
        assert entry is not None
        assert out is not None
        print(json.dumps({**usual, **files, **told}), file=entry, flush=True)
        child, line, left = 0, "", set(at)
        try:
            while left:
                line = (await asyncio.to_thread(out.readline)).strip()
                assert line not in {"", "dead"}, f"it ended before {left}"
                child = int(line) if line.isdigit() else child
                left.discard(line)
        finally:
            if child and line != "dead":
                os.kill(child, signal.SIGKILL)
            while line not in {"", "dead"}:
                line = (await asyncio.to_thread(out.readline)).strip()

    async def go_on(self, *turns: Any, idempotent: bool = False, policy: Policy | None = None) -> Run:
        """Pick up what is left, as the engine does at its start."""
        database = self.database = await Database.open(self.folder / "a.db")
        self.notes.idempotent = idempotent
        agent = FnCallAgent([self.notes], ScriptedModel(*turns))
        talks, self.runs = partial(ConversationStore, database), Runs(stores_over(database))
        (talk,) = await talks("alice").list()
        self.talk_id = talk.id

        async def resume(resumable: ResumableRun) -> None:
            assert self.runs is not None
            question = (await talks("alice").thread(talk.id))[0]
            history = [*question.parts, *resumable.messages()]
            self.run = await self.runs.of(resumable.record.owner_id).resume(
                resumable, agent, history=history, terms=RunOptions(policy or Policy())
            )

        assert await self.runs.recover(resume) == 1
        assert await self.runs.recover(resume) == 0
        assert self.run is not None
        model: Any = agent.llm
        self.asked = model.requests
        return self.run

    @property
    def written(self) -> list[str]:
        """By the killed process."""
        path = self.folder / "notes"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
async def place(
    tmp_path: Path, anyio_backend: str, migrated: Callable[[], bytes], nursery: subprocess.Popen[str]
) -> AsyncIterator[Place]:
    (tmp_path / "a.db").write_bytes(migrated())  # the process to be killed need not load what makes one
    place = Place(tmp_path, nursery)
    yield place
    if place.runs is not None:
        await place.runs.aclose()
    if place.database is not None:
        await place.database.aclose()


def calls(run: Run) -> list[CallBlock]:
    return [block for block in run.reply().blocks if isinstance(block, CallBlock)]


async def decided(place: Place, decision: Decision) -> CallBlock:
    """Answer the question that waits, as soon as it is there."""
    assert place.run is not None
    assert place.runs is not None
    (call,) = place.run.reply().asking
    await place.runs.of("alice").decide(place.talk_id, call.call_id, decision)
    return call


async def test_a_question_outlives_the_process_and_is_answered_in_the_same_reply(place: Place) -> None:  # case 14
    await place.kill({"approval_asked"})
    run = await place.go_on("Done.")
    (call,) = run.reply().asking
    assert call.asked is not None
    assert call.asked.until < time.time() + 600
    await decided(place, Decision(allowed=True, arguments={"text": "edited"}))
    assert await run.wait() == "complete"
    assert (place.written, place.notes.written) == ([], ["edited"])
    assert run.reply().text == "Done."
    assert [one.event.kind for one in run.log.since()].count("approval_asked") == 1
    assert place.database is not None
    stored = (await ConversationStore(place.database, "alice").thread(place.talk_id))[-1]
    assert stored.id == run.message_id
    again = await Runs(stores_over(place.database)).of("alice").reply(stored)
    assert [block.kind for block in again.blocks] == ["call", "text"]
    assert (again.text, again.status) == ("Done.", "complete")
    steps = await ThoughtStore(place.database, "alice").list(stored.id)
    assert [(one.position, one.tool_input, one.thought) for one in steps] == [
        (1, '{"text": "edited"}', ""),
        (2, None, "Done."),
    ]
    assert str(steps[0].observation).endswith("written: edited")


async def test_a_question_whose_time_is_over_is_refused_and_the_reply_goes_on(place: Place) -> None:
    await place.kill({"approval_asked"})
    with closing(sqlite3.connect(place.folder / "a.db")) as connection:
        over = "UPDATE run_events SET payload = json_set(payload, '$.until', 1e9) WHERE kind = 'approval_asked'"
        assert connection.execute(over).rowcount == 1
        connection.commit()
    run = await place.go_on("Then not.")
    assert await run.wait() == "complete"
    (given,) = [one.event for one in run.log.since() if isinstance(one.event, ApprovalGiven)]
    assert (given.allowed, given.why, place.notes.written) == (False, "timeout", [])
    assert (calls(run)[0].state, run.reply().text) == ("refused", "Then not.")


async def test_what_cannot_be_done_twice_is_not_done_again(place: Place) -> None:  # fault case 14
    await place.kill({"began", "approval_given"}, answer={"allowed": True})
    run = await place.go_on("I do not know whether it was written.")
    assert await run.wait() == "complete"
    assert (place.written, place.notes.written) == (["write_note write_note"], [])
    result = calls(run)[0].result
    assert result is not None
    assert (result.extra or {})["failed"] == "interrupted"
    assert "may or may not" in place.asked[0].messages[-1].get_text_content()


async def test_what_can_be_done_twice_is_with_the_arguments_that_were_agreed_to(place: Place) -> None:
    answer = {"allowed": True, "arguments": {"text": "edited"}}
    await place.kill({"began", "approval_given"}, answer=answer, idempotent=True)
    run = await place.go_on("Done.", idempotent=True)
    assert await run.wait() == "complete"
    assert (place.written, place.notes.written) == (["write_note edited"], ["edited"])
    assert sum(isinstance(one.event, ApprovalAsked) for one in run.log.since()) == 1
    (call,) = [message.function_call for message in place.asked[0].messages if message.function_call]
    assert json.loads(call.arguments) == {"text": "edited"}


async def test_the_results_that_are_there_are_used_and_only_the_rest_is_run(place: Place) -> None:
    await place.kill({"tool_finished", "approval_asked"}, ("quick", "write_note"), allow=["quick"])
    run = await place.go_on("Both done.")
    await decided(place, Decision(allowed=True))
    assert await run.wait() == "complete"
    assert (place.written, place.notes.written) == (["quick quick"], ["write_note"])
    assert [call.state for call in calls(run)] == ["done", "done"]
    assert [message.role for message in place.asked[0].messages[-4:]] == [
        "assistant",
        "assistant",
        "function",
        "function",
    ]


async def test_a_rule_made_meanwhile_decides_over_the_question(place: Place) -> None:
    await place.kill({"approval_asked"})
    run = await place.go_on("No.", policy=Policy(deny=("write_*",)))
    assert await run.wait() == "complete"
    assert (place.notes.written, calls(run)[0].state) == ([], "refused")


async def test_a_second_process_leaves_it_to_the_first(place: Place) -> None:
    await place.kill({"approval_asked"})
    run = await place.go_on("Done.")
    assert place.runs is not None
    assert place.database is not None
    resumable = ResumableRun(
        await stores_over(place.database).of("alice").runs.get(run.id), Lease("a dead process", 0.0), [], frozenset()
    )
    with pytest.raises(ConflictError):
        await place.runs.of(resumable.record.owner_id).resume(
            resumable, FnCallAgent([], ScriptedModel("x")), history=[]
        )


async def test_a_call_that_takes_the_process_with_it_is_not_tried_a_third_time(place: Place) -> None:
    await place.kill({"began", "tool_started"}, allow=["*"], idempotent=True)
    database = await Database.open(place.folder / "a.db")
    ((record, worker),) = await AllRuns(database).running()
    logged = await Runs(stores_over(database)).of("alice").events(record.id)
    first = ResumableRun.of(record, worker, logged)
    assert first is not None
    assert len([one for one in first.logged if one.event.kind == "tool_finished"]) == 0
    started = [one for one in logged if one.event.kind == "tool_started"]
    second = ResumableRun.of(record, worker, [*logged, *started])
    assert second is not None
    assert [one.event.kind for one in second.logged][-1] == "tool_finished"
    await database.aclose()
