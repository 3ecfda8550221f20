"""Asking first in a run whose agent hands over to another one of itself, in a thread, and passes nothing on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from core.agents.base import Agent
from core.messages.message import Message
from core.runs.reply import CallBlock
from core.runs.run import Run
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Decision
from tests.core.runs.note_tools import Note, agent_of, writes

pytestmark = pytest.mark.anyio

YES, NO = Decision(allowed=True), Decision(allowed=False)


class Boss(Agent):
    """Shows nothing of what its helper does but its last words."""

    def __init__(self, helper: Agent) -> None:
        super().__init__(name="Boss")
        self.helper = helper

    def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
        yield [self.helper.run_nonstream(messages)[-1]]


async def asked(run: Run) -> CallBlock:
    async with asyncio.timeout(20):
        async for _ in run.log.follow():
            if run.reply().asking:
                return run.reply().asking[0]
    raise AssertionError(run.reply().blocks)


async def test_the_user_is_asked_about_what_a_helper_calls_though_the_reply_does_not_show_it(talk: Any) -> None:
    note = Note()
    run = await talk.ask(Boss(agent_of(note, writes("hi"), "It is written.")))
    call = await asked(run)
    assert (call.name, call.arguments, note.written) == (note.name, '{"text": "hi"}', [])
    await talk.runs.of("alice").decide(talk.id, call.call_id, YES)
    assert await run.wait() == "complete"
    assert (note.written, run.reply().text) == (["hi"], "It is written.")
    states = [block.state for block in run.reply().blocks if isinstance(block, CallBlock)]
    assert states == ["done"]


async def test_what_a_helper_is_not_allowed_is_not_done(talk: Any) -> None:
    note = Note()
    run = await talk.ask(Boss(agent_of(note, writes("hi"), "I may not.")))
    await talk.runs.of("alice").decide(talk.id, (await asked(run)).call_id, NO)
    assert await run.wait() == "complete"
    states = [block.state for block in run.reply().blocks if isinstance(block, CallBlock)]
    assert (note.written, states) == ([], ["refused"])


async def test_two_calls_at_once_of_a_helper_are_asked_one_after_the_other(talk: Any) -> None:
    note = Note()
    run = await talk.ask(Boss(agent_of(note, writes("a", "b"), "Done.")))
    for _ in range(2):
        await talk.runs.of("alice").decide(talk.id, (await asked(run)).call_id, YES)
    assert await run.wait() == "complete"
    assert sorted(note.written) == ["a", "b"]


async def test_a_tool_called_by_hand_twice_is_asked_about_twice(talk: Any) -> None:
    from core.agents.basic import FnCallAgent

    class Hand(FnCallAgent):
        def _run(self, messages: list[Message], **kwargs: Any) -> Iterator[list[Message]]:
            texts = [str(self._call_tool("write_note", {"text": text})) for text in "ab"]
            yield [Message("assistant", " ".join(texts))]

    note = Note()
    run = await talk.ask(Hand([note], ScriptedModel("x")))
    for _ in range(2):
        await talk.runs.of("alice").decide(talk.id, (await asked(run)).call_id, YES)
    assert await run.wait() == "complete"
    assert run.reply().text == "written: a written: b"
