"""Texts of several chapters within a budget: they pause between two model calls, and go on where they were."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from core.agents.base import Agent
from core.agents.compat.articles import ArticleAgent, WriteFromScratch
from core.agents.limits import Budget
from core.errors import LimitReachedError
from core.messages.events import Event, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import Message, Usage
from core.messages.transcript import Transcript
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

ASKED = [Message("user", "Write about harbours.")]
PLAN = "# Harbours\n\n1. Stone\n2. Ships\n3. Storms"
WHOLE = "# Harbours\n\n## Stone\n\nGranite.\n\n## Ships\n\nThey come.\n\n## Storms\n\nWinds blow."


def costing(text: str, cost: float = 1.0) -> list[Event]:
    return [MessageStarted(), TextDelta(text), MessageFinished("stop", Usage(total_tokens=1, cost=cost))]


def told(model: ScriptedModel, turn: int = -1) -> list[tuple[str, str]]:
    return [(one.role, one.get_text_content()) for one in model.requests[turn].messages]


async def replied(agent: Agent, messages: list[Message], **how: Any) -> tuple[Transcript, LimitReachedError | None]:
    """The reply, and what it pauses with."""
    reply = Transcript()
    try:
        async with aclosing(agent.stream(messages, **how)) as events:
            async for event in events:
                reply.apply(event)
    except LimitReachedError as error:
        return reply, error
    return reply, None


def text_of(*replies: Transcript) -> str:
    return "".join(one.get_text_content() for reply in replies for one in reply.messages() if one.role == "assistant")


async def test_an_article_pauses_after_so_many_model_calls_and_goes_on_with_its_next_chapter():
    model = ScriptedModel(PLAN, "Granite.", "They come.", "Winds blow.")
    agent = ArticleAgent(llm=model, full_article=True, max_iteration=3)
    first, paused = await replied(agent, ASKED, budget=Budget())
    assert paused is not None
    assert (paused.words_key, len(model.requests)) == ("call_limit", 3)
    assert text_of(first) == WHOLE.removesuffix("Winds blow.")
    second, paused = await replied(agent, [*ASKED, *first.messages()], budget=Budget())
    assert (paused, len(model.requests)) == (None, 4)
    assert text_of(first, second) == WHOLE
    ((role, asked),) = told(model)
    assert role == "user"
    assert "chapter 3 of 3, “Storms”" in asked
    assert "They come." in asked


async def test_an_article_pauses_where_it_has_cost_enough_and_what_it_has_cost_is_told():
    model = ScriptedModel(costing(PLAN), costing("Granite."), costing("They come."), costing("Winds blow."))
    reply, paused = await replied(WriteFromScratch(llm=model), ASKED, budget=Budget(2.0))
    assert paused is not None
    assert (paused.words_key, paused.details["cost"], len(model.requests)) == ("cost_limit", 2.0, 2)
    assert reply.usage is not None
    assert reply.usage.cost == 2.0
    _, paused = await replied(WriteFromScratch(llm=model), [*ASKED, *reply.messages()], budget=Budget(0.5))
    assert paused is not None, "a reply that goes on has a budget of its own: enough for one call"
    assert len(model.requests) == 3


async def test_without_a_budget_or_within_it_nothing_pauses():
    for how in ({}, {"budget": Budget(100.0)}):
        model = ScriptedModel(PLAN, "Granite.", "They come.", "Winds blow.")
        reply, paused = await replied(ArticleAgent(llm=model, full_article=True), ASKED, **how)
        assert (paused, text_of(reply)) == (None, WHOLE)


@pytest.mark.parametrize("end", [len(WHOLE) - 5, WHOLE.index("come"), WHOLE.index("anite"), len("# Harbours")])
async def test_a_text_that_was_cut_off_anywhere_goes_on_there(end: int):
    there = [Message("assistant", "", reasoning_content=PLAN), Message("assistant", WHOLE[:end])]
    rest = {"Storms": "Winds blow.", "Ships": "They come.", "Stone": "Granite."}

    def goes_on(request: Any) -> str:
        *_, last = request.messages
        if last.role == "user":
            return next(text for name, text in rest.items() if f"“{name}”" in last.get_text_content())
        begun = last.get_text_content()
        return next(text.removeprefix(begun) for text in rest.values() if begun and text.startswith(begun))

    model = ScriptedModel(goes_on)
    reply, _ = await replied(WriteFromScratch(llm=model), [*ASKED, *there])
    assert WHOLE[:end] + text_of(reply) == WHOLE
    assert not any("Plan the text" in text for turn in range(len(model.requests)) for _, text in told(model, turn))


async def test_a_text_without_chapters_goes_on_too():
    there = [Message("assistant", "", reasoning_content="Of much."), Message("assistant", "Harbours are")]
    model = ScriptedModel(" old.")
    reply, _ = await replied(WriteFromScratch(llm=model), [*ASKED, *there])
    assert text_of(reply) == " old."
    assert told(model)[-1] == ("assistant", "Harbours are")


async def test_a_plan_that_was_cut_off_is_made_anew():
    model = ScriptedModel(PLAN, "Granite.", "They come.", "Winds blow.")
    reply, _ = await replied(WriteFromScratch(llm=model), [*ASKED, Message("assistant", "", reasoning_content="# Har")])
    assert text_of(reply) == WHOLE


async def test_what_a_model_thinks_before_its_plan_is_not_taken_for_the_plan():
    thinks = [MessageStarted(), ReasoningDelta("1. First I think."), TextDelta(PLAN), MessageFinished("stop")]
    model = ScriptedModel(thinks, "Granite.", "They come.", "Winds blow.")
    agent = ArticleAgent(llm=model, full_article=True, max_iteration=3)
    first, paused = await replied(agent, ASKED, budget=Budget())
    assert paused is not None
    assert [one.reasoning_content for one in first.messages()][:2] == ["1. First I think.", PLAN]
    second, _ = await replied(agent, [*ASKED, *first.messages()], budget=Budget())
    assert text_of(first, second) == WHOLE


@pytest.mark.parametrize("stone", ["Stone", "Stone [9]", "[1] Stone", "【9】Stone"])
async def test_an_article_from_documents_searches_again_and_goes_on(tmp_path: Path, stone: str):
    """A mark in the name of a chapter is none of ours, and need not be in its heading."""
    (tmp_path / "harbour.txt").write_text("The harbour is made of granite.")
    model = ScriptedModel(f"1. {stone}\n2. Ships", "The harbour is made of granite.", "They come.")
    agent = ArticleAgent(llm=model, files=[str(tmp_path / "harbour.txt")], full_article=True, max_iteration=2)
    first, paused = await replied(agent, ASKED, budget=Budget())
    assert paused is not None
    end = "" if stone.startswith("[1]") else " [1]"  # where a model sets marks itself, none are added
    assert text_of(first).endswith(f"\n\nThe harbour is made of granite.{end}\n\n## Ships\n\n")
    second, paused = await replied(agent, [*ASKED, *first.messages()], budget=Budget())
    assert (paused, text_of(second), len(model.requests)) == (None, "They come.", 3)
    asked = told(model)[-1][1]
    assert asked.count("made of granite") == 2, "as material, and as what was written"
