"""Rules of a batch: read anew at each call, where they are those of a guard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.batch.job import AnswerFile, Tally, run_batch
from core.batch.questions import BatchQuestion, mark_of
from core.messages.message import USER, Message
from core.tools.approval import Guard, Policy
from tests.core.runs.note_tools import Note, agent_of, writes

pytestmark = pytest.mark.anyio


class Withdrawn(Guard):
    """Lets the first call run, and no other."""

    def __init__(self, note: Note) -> None:
        super().__init__(Policy())
        self._note = note

    async def rules(self) -> Policy:
        return Policy(deny=(self._note.name,)) if self._note.written else Policy(allow=(self._note.name,))


async def test_a_rule_that_is_set_while_a_batch_runs_holds_for_its_next_call(tmp_path: Path) -> None:
    note = Note()
    agent = agent_of(note, writes("1"), writes("2"), "Done.")
    messages = [Message(USER, "Write.")]
    questions = [BatchQuestion("a", mark_of(messages), messages, 1)]
    with AnswerFile(tmp_path / "out.jsonl") as file:
        left = file.left(questions)
        await run_batch(agent, left, file, Tally(total=1), concurrency=1, policy=Withdrawn(note))
    assert note.written == ["1"]
    assert json.loads((tmp_path / "out.jsonl").read_text("utf-8"))["refused"] == [note.name]
