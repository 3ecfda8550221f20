"""The price of a reply is that of all that is asked in it, whoever asks."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from core.agents.base import Agent
from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.group_chat import GroupChat
from core.agents.limits import Budget
from core.agents.router import Router
from core.agents.tool_loop import OpeningCall, ToolLoop
from core.errors import LimitReachedError
from core.llm.request import Stream
from core.messages.events import CallDelta, CallStarted, Event, MessageFinished, MessageStarted, TextDelta
from core.messages.message import Message, Usage
from core.testing.scripted_model import ScriptedModel
from core.tools.base import BaseTool, ToolResult

pytestmark = pytest.mark.anyio

ASKED = [Message("user", "Speak!")]
SPENT = Usage(total_tokens=1, cost=1.0)


def says(text: str) -> list[Event]:
    return [MessageStarted(), TextDelta(text), MessageFinished("stop", SPENT)]


CALLS: list[Event] = [
    MessageStarted(),
    CallStarted("c1", "dear"),
    CallDelta("c1", "{}"),
    MessageFinished("calls", SPENT),
]


class Dear(BaseTool):
    """A tool that asks a model."""

    name = "dear"
    description = "Costs."
    parameters = {"type": "object", "properties": {}}

    def call(self, params: str | dict[str, Any], **kwargs: Any) -> ToolResult:
        return ToolResult("dear", extra={"spent": SPENT.model_dump()})


async def paused(events: Stream) -> LimitReachedError | None:
    try:
        async with aclosing(events) as reply:
            async for _ in reply:
                pass
    except LimitReachedError as error:
        return error
    return None


def members(kind: Any = BasicAgent) -> list[Agent]:
    return [kind(llm=ScriptedModel(says(name)), name=name) for name in ("Ann", "Bob", "Cat")]


@pytest.mark.parametrize("kind", [BasicAgent, FnCallAgent])
async def test_a_group_pauses_where_its_members_have_cost_enough_together(kind: Any):
    budget = Budget(2.0)
    error = await paused(GroupChat(members(kind), "round_robin").stream(ASKED, budget=budget))
    assert error is not None
    assert (error.words_key, budget.spent) == ("cost_limit", 2.0)
    assert await paused(GroupChat(members(kind), "round_robin").stream(ASKED, budget=Budget(3.5))) is None


async def test_whoever_picks_the_next_speaker_is_paid_too():
    budget = Budget(2.0)
    group = GroupChat(members(), "auto", llm=ScriptedModel(says("Bob")))
    assert await paused(group.stream(ASKED, budget=budget)) is not None
    assert budget.spent == 2.0


async def test_an_agent_that_was_picked_has_what_its_router_left():
    model = ScriptedModel(CALLS, CALLS, says("Done."))
    ann = FnCallAgent([Dear()], model, name="Ann")
    error = await paused(Router(ScriptedModel(says("Call: Ann")), [ann]).stream(ASKED, budget=Budget(3.0)))
    assert error is not None
    assert len(model.requests) == 1, "one for the router, one for Ann, one for her tool"


async def test_what_is_spent_before_the_model_is_asked_counts():
    loop, budget = ToolLoop(ScriptedModel(CALLS, says("Done.")), {"dear": Dear()}), Budget(2.5)
    error = await paused(loop.reply(ASKED, lang="en", opening=OpeningCall("dear", {}), budget=budget))
    assert error is not None
    assert budget.spent == 3.0
