"""An article as a run: it pauses between its chapters, and is one text when it went on."""

from __future__ import annotations

from typing import Any

import pytest

from core.agents.compat.articles import ArticleAgent
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import Message, Usage
from core.runs.resume import events_to_continue
from core.runs.run import Beginning, RunOptions
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

PLAN = "# Harbours\n1. Stone\n2. Ships"
WHOLE = "# Harbours\n\n## Stone\n\nGranite it is.\n\n## Ships\n\nThey come."


def costing(text: str) -> Any:
    return [MessageStarted(), TextDelta(text), MessageFinished("stop", Usage(total_tokens=1, cost=1.0))]


async def gone_on(talk: Any, agent: ArticleAgent, terms: RunOptions) -> Any:
    """A run that goes on with the last reply, as the page does."""
    question, paused = await talk.thread()
    logged = await talk.runs.of("alice").events(paused.run_id)
    return await talk.runs.of("alice").start(
        talk.id,
        agent,
        user=None,
        parent_id=question.id,
        history=[*question.parts, *paused.parts],
        beginning=Beginning(events_to_continue(logged)),
        terms=terms,
    )


async def test_an_article_that_paused_for_its_price_becomes_one_text(talk: Any):
    model = ScriptedModel(costing(PLAN), costing("Granite it is."), costing("They come."))
    agent = ArticleAgent(llm=model, full_article=True)
    run = await talk.ask(agent, "Write about harbours.", terms=RunOptions(cost=2.0))
    assert await run.wait() == "paused"
    assert run.error["key"] == "cost_limit"
    again = await gone_on(talk, agent, RunOptions(cost=2.0))
    assert await again.wait() == "complete"
    assert [one.content for one in (await talk.last()).parts if one.content] == [WHOLE]
    assert len(model.requests) == 3


async def test_an_article_that_was_stopped_goes_on_in_the_middle_of_its_chapter(talk: Any):
    def rest(request: Any) -> str:
        last: Message = request.messages[-1]
        return "They come." if last.role == "user" else "That was stone."

    model = ScriptedModel(PLAN, Reply("Granite.\n\n" + "It lasts. " * 500, pace=0.01), rest)
    agent = ArticleAgent(llm=model, full_article=True)
    run = await talk.ask(agent, "Write about harbours.")
    async for one in run.log.follow():
        if isinstance(one.event, TextDelta) and "It lasts." in run.reply().text:
            break
    await run.stop()
    again = await gone_on(talk, agent, RunOptions())
    assert await again.wait() == "complete"
    text = "".join(one.get_text_content() for one in (await talk.last()).parts)
    assert text.startswith("# Harbours\n\n## Stone\n\nGranite.\n\nIt lasts.")
    assert text.endswith("That was stone.\n\n## Ships\n\nThey come.")
    assert (text.count("## "), text.count("# Harbours")) == (2, 1)
