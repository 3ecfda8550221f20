"""A group whose reply broke off: what the next one says is not put into the mouth of the one before."""

from __future__ import annotations

from typing import Any

import pytest

from core.agents.basic import BasicAgent
from core.agents.group_chat import GroupChat
from core.runs.resume import events_to_continue
from core.runs.run import Beginning
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_the_next_speaker_of_a_reply_that_goes_on_has_a_message_of_its_own(talk: Any):
    ann = BasicAgent(llm=ScriptedModel(Reply("I count. " * 500, pace=0.01)), name="Ann")
    bob = BasicAgent(llm=ScriptedModel("I draw."), name="Bob")
    group = GroupChat([ann, bob], "round_robin")
    run = await talk.ask(group)
    async for _ in run.log.follow():
        if "I count." in run.reply().text:
            break
    await run.stop()
    question, stopped = await talk.thread()
    logged = await talk.runs.of("alice").events(stopped.run_id)
    again = await talk.runs.of("alice").start(
        talk.id,
        group,
        user=None,
        parent_id=question.id,
        history=[*question.parts, *stopped.parts],
        beginning=Beginning(events_to_continue(logged)),
    )
    async for _ in again.log.follow():
        if "I draw." in again.reply().text:
            break
    await again.stop()
    first, second, *_ = (await talk.last()).parts
    assert (first.name, second.name, second.content) == ("Ann", "Bob", "I draw.")
