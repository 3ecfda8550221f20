"""What a run of several model calls took."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from core.agents.basic import FnCallAgent
from core.messages.events import CallDelta, CallStarted, MessageFinished, MessageStarted, TextDelta
from core.messages.message import USER, Message, Usage
from core.messages.transcript import Transcript
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_usage_adds_up_over_the_calls_of_a_run():
    first = Usage(prompt_tokens=10, completion_tokens=5, total_tokens=15, reasoning_tokens=2, cost=0.25)
    second = Usage(prompt_tokens=20, completion_tokens=3, total_tokens=23, cached_tokens=8, cost=0.5)
    model = ScriptedModel(
        (
            MessageStarted(),
            CallStarted("1", "calculator"),
            CallDelta("1", '{"expression": "1+1"}'),
            MessageFinished("calls", first),
        ),
        (MessageStarted(), TextDelta("It is 2."), MessageFinished("stop", second)),
    )
    agent = FnCallAgent(llm=model, function_list=["calculator"])
    whole = Transcript()
    async with aclosing(agent.stream([Message(USER, "What is 1+1?")])) as events:
        async for event in events:
            whole.apply(event)
    assert whole.usage == Usage(
        prompt_tokens=30,
        completion_tokens=8,
        total_tokens=38,
        reasoning_tokens=2,
        cached_tokens=8,
        cost=0.75,
    )
