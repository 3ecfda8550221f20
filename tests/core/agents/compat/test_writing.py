"""The agents that write: a plan, chapters, what comes next, and articles from documents."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from core.agents.compat.articles import LONGEST_CHAPTER, ArticleAgent, WriteFromScratch
from core.agents.compat.outline import how_far
from core.agents.compat.writing_steps import ContinueWriting, ExpandWriting, OutlineWriting
from core.agents.limits import Budget
from core.agents.mapping import Answer
from core.errors import LimitReachedError, ModelServiceError
from core.messages.content import ContentItem
from core.messages.events import Event, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.message import Message, Usage
from core.messages.transcript import Transcript
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy

ASKED = [Message("user", "Write about harbours.")]
PLAN = "# Harbours\n\n1. Stone\n- what they are made of\n2. **Ships**\n   1. a point"


def told(model: ScriptedModel, turn: int = -1) -> str:
    return model.requests[turn].messages[-1].get_text_content()


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "harbour.txt").write_text("The harbour is made of granite.")
    return [str(tmp_path / "harbour.txt")]


def test_a_plan_is_asked_for_with_the_request_and_the_material():
    model = ScriptedModel("# A\n1. B")
    reply = OutlineWriting(llm=model).run_nonstream(ASKED, knowledge="Granite lasts.")
    assert reply[-1].content == "# A\n1. B"
    assert "Plan the text" in told(model)
    assert "Granite lasts." in told(model)
    assert told(model).endswith("Write about harbours.")


def test_a_chapter_is_written_with_its_place_in_the_plan():
    model = ScriptedModel("Stone lasts.")
    place: dict[str, Any] = {
        "outline": PLAN,
        "chapter": "Stone",
        "index": 1,
        "chapters": 2,
        "written": "Before. " * 500,
    }
    ExpandWriting(llm=model).run_nonstream(ASKED, **place)
    assert "chapter 1 of 2, “Stone”" in told(model)
    assert PLAN in told(model)
    assert 100 < told(model).count("Before.") < 200, "the end of it"


def test_a_text_goes_on_where_it_ends_and_pictures_stay():
    model = ScriptedModel("And then.")
    model.support_multimodal_input = True
    picture = ContentItem(image="data:image/png;base64,iVBORw0KGgo=")
    ContinueWriting(llm=model).run_nonstream([Message("user", [ContentItem(text="Once {upon}"), picture])])
    assert "Go on with the text" in told(model)
    assert "Once {upon}" in told(model)
    assert [item.type for item in model.requests[0].messages[-1].items] == ["text", "image"]


@pytest.mark.parametrize("kind", [OutlineWriting, ExpandWriting, ContinueWriting, WriteFromScratch, ArticleAgent])
def test_a_chinese_request_gets_chinese_words(kind: Any):
    model = ScriptedModel("好。")
    kind(llm=model).run_nonstream([Message("user", "请写一篇关于港口的文章。")])
    assert all("Write" not in message.get_text_content() for request in model.requests for message in request.messages)
    assert any("请" in message.get_text_content().partition("请写")[0] for message in model.requests[0].messages)


def test_from_scratch_the_plan_is_a_thought_and_each_chapter_is_written_in_turn():
    model = ScriptedModel(PLAN, "Granite it is.", "Ships come.")
    reply = WriteFromScratch(llm=model, name="Ann").run_nonstream(ASKED)
    assert [message.reasoning_content for message in reply] == [PLAN, None]
    assert reply[1].content == "# Harbours\n\n## Stone\n\nGranite it is.\n\n## Ships\n\nShips come."
    assert {message.name for message in reply} == {"Ann"}
    assert len(model.requests) == 3
    assert "…# Harbours\n\n## Stone\n\nGranite it is." in told(model)


@pytest.mark.parametrize("heading", ["# Stone", "## 1. Stone", "1. Stone", "**Stone**", "Stone:"])
def test_a_heading_that_a_model_writes_all_the_same_is_there_once(heading: str):
    model = ScriptedModel("1. Stone", f"{heading}\n\nGranite it is.")
    reply = WriteFromScratch(llm=model).run_nonstream(ASKED)
    assert reply[-1].content == "## Stone\n\nGranite it is."


@pytest.mark.parametrize(
    "text",
    [
        "Stone is hard.\nIt lasts.",
        "### Granite\n\nIt lasts.",
        "#1 of all is granite.\nIt lasts.",
        "# " + "Granite lasts. " * 30,
    ],
)
def test_a_first_line_that_is_not_its_heading_stays(text: str):
    model = ScriptedModel("1. Stone", text)
    assert WriteFromScratch(llm=model).run_nonstream(ASKED)[-1].content == f"## Stone\n\n{text}"


@pytest.mark.parametrize(
    ("plan", "headings"),
    [
        ("一、石头\n二、船只", ["石头", "船只"]),
        ("第一章 石头\n第二章：船只", ["石头", "船只"]),
        ("I. Stone\nII. Ships", ["Stone", "Ships"]),
        ("## Stone\n## Ships", ["Stone", "Ships"]),
        ("## 1. Stone\n### 1.1 Granite", ["Stone"]),
        ("# Title: Harbours\n\n## Chapter 1: Stone\n### 1.1 Granite\n## Chapter 2: Ships", ["Stone", "Ships"]),
        ("We could write of much.", []),
    ],
)
def test_plans_are_read_as_models_write_them(plan: str, headings: list[str]):
    text = str(WriteFromScratch(llm=ScriptedModel(plan, "Text.")).run_nonstream(ASKED)[-1].content)
    assert [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")] == headings
    assert text.count("Text.") == max(1, len(headings))
    assert "Title" not in text


def test_a_plan_of_many_chapters_is_cut_and_what_all_of_it_cost_is_told():
    plan = Reply("\n".join(f"{number}. Part {number}" for number in range(1, 40)), usage=(5, 5))
    model = ScriptedModel(plan, Reply("Text.", usage=(10, 1)))
    agent = WriteFromScratch(llm=model, most_chapters=3)
    (answer,) = agent.map(["Write!"])
    assert len(model.requests) == 4
    assert isinstance(answer, Answer)
    assert answer.usage is not None
    assert answer.usage.total_tokens == 10 + 3 * 11


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("plan", "written"),
    [
        ("# A\n\n1. One\n- a point\n2. Two\n3. Three\n- of three", "# A\n\n1. One\n- a point\n2. Two\n"),
        ("## One\n## Two\n## Three", "## One\n## Two\n"),
        ("## Parts\n## Of it\n## Are\n1. One\n2. Two", "## Parts\n## Of it\n## Are\n1. One\n2. Two"),
    ],
)
async def test_the_plan_that_is_shown_has_the_chapters_that_are_written_and_no_others(plan: str, written: str):
    parts = [MessageStarted(), ReasoningDelta("Hm."), *map(TextDelta, plan), MessageFinished("stop")]
    model = ScriptedModel(parts, "Text.")
    events = [event async for event in WriteFromScratch(llm=model, most_chapters=2).stream(ASKED)]
    shown = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    assert shown == f"Hm.{written}"
    assert all(
        "Three" not in message.get_text_content() for request in model.requests[1:] for message in request.messages
    )
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert how_far(written, text) == (2, 2)


@pytest.mark.anyio
async def test_a_text_of_which_a_chapter_was_cut_off_says_so():
    cut = [MessageStarted(), TextDelta("Granite"), MessageFinished("length")]
    agent = WriteFromScratch(llm=ScriptedModel(PLAN, cut, "Ships come."))
    events = [event async for event in agent.stream(ASKED)]
    assert isinstance(events[-1], MessageFinished)
    assert events[-1].reason == "length"
    assert sum(isinstance(event, MessageFinished) for event in events) == 1


def without_end(event: type[TextDelta | ReasoningDelta]) -> list[Event]:
    """A model that runs away: far longer than anybody reads, and it never says that it has finished."""
    return [MessageStarted(), *(event("and so on ") for _ in range(20_000))]


@pytest.mark.anyio
@pytest.mark.parametrize("event", [TextDelta, ReasoningDelta])
async def test_a_chapter_without_end_is_ended_and_the_next_one_is_written(event: type[TextDelta | ReasoningDelta]):
    model = ScriptedModel(PLAN, without_end(event), "Ships come.")
    told = Transcript()
    async for each in WriteFromScratch(llm=model).stream(ASKED):
        told.apply(each)
    text = "".join(message.get_text_content() for message in told.messages())
    assert text.endswith("\n\n## Ships\n\nShips come.")
    assert len(text) < LONGEST_CHAPTER + 200
    assert (told.reason, model.closed) == ("length", 1)
    assert told.usage is not None
    assert told.usage.estimated
    assert told.usage.completion_tokens > 1000, "what was written without end is counted too"


@pytest.mark.anyio
async def test_a_plan_without_end_is_ended_and_what_it_has_of_chapters_is_written():
    plan = [MessageStarted(), TextDelta(f"{PLAN}\n"), *without_end(TextDelta)[1:]]
    model = ScriptedModel(plan, "Granite.", "Ships come.")
    events = [event async for event in WriteFromScratch(llm=model).stream(ASKED)]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).endswith("Ships come.")
    assert model.closed == 1


@pytest.mark.anyio
async def test_a_chapter_without_end_costs_what_it_is_worth(monkeypatch: pytest.MonkeyPatch):
    async def dear(usage: Usage, *_: object) -> float:
        return float(usage.completion_tokens)

    monkeypatch.setattr("core.agents.compat.articles.cost_of", dear)
    budget, model = Budget(1000.0), ScriptedModel(PLAN, without_end(TextDelta))
    with pytest.raises(LimitReachedError) as paused:
        async for _ in WriteFromScratch(llm=model).stream(ASKED, budget=budget):
            pass
    assert (paused.value.words_key, len(model.requests)) == ("cost_limit", 2)


def test_a_chapter_that_fails_ends_the_text_with_its_error():
    failing = ModelServiceError(code="500", message="The service is tired.")
    with pytest.raises(ModelServiceError, match="tired"):
        WriteFromScratch(llm=ScriptedModel(PLAN, "Granite.", failing)).run_nonstream(ASKED)


def test_an_article_goes_on_with_what_the_documents_say_and_cites_it(files: list[str]):
    model = ScriptedModel("The harbour is made of granite.")
    call, result, answer = ArticleAgent(llm=model, files=files).run_nonstream([Message("user", "The harbour is")])
    assert call.function_call is not None
    assert call.function_call.name == "ask_documents"
    assert (result.extra or {})["passages"][0]["document"] == "harbour.txt"
    assert answer.content == "The harbour is made of granite. [1]"
    assert "Go on with the text" in told(model)
    assert "made of granite" in told(model)
    assert [message.role for message in model.requests[0].messages] == ["system", "user"]
    assert model.requests[0].functions == ()


def test_a_full_article_is_planned_and_written_from_the_documents(files: list[str]):
    model = ScriptedModel("# Harbours\n1. Stone", "The harbour is made of granite.")
    reply = ArticleAgent(llm=model, files=files).run_nonstream(ASKED, full_article=True)
    assert reply[2].reasoning_content == "# Harbours\n1. Stone"
    assert reply[3].content == "# Harbours\n\n## Stone\n\nThe harbour is made of granite. [1]"
    assert all("made of granite" in told(model, turn) for turn in range(2))


def test_without_documents_an_article_is_written_without_and_as_long_as_it_was_made_to_be():
    model = ScriptedModel("1. A\n2. B\n3. C", "Text.")
    reply = ArticleAgent(llm=model, full_article=True, max_iteration=2).run_nonstream(ASKED)
    assert reply[-1].content == "## A\n\nText.\n\n## B\n\nText."
    again = ScriptedModel("It goes on.")
    answer = ArticleAgent(llm=again, full_article=True).run_nonstream(ASKED, full_article=False)
    assert [message.content for message in answer] == ["It goes on."]


def test_documents_that_may_not_be_searched_are_not(files: list[str]):
    model = ScriptedModel("It goes on.")
    ArticleAgent(llm=model, files=files).run_nonstream(ASKED, approval=Policy(deny=("ask_documents",)))
    assert "granite" not in told(model)


@pytest.mark.anyio
async def test_leaving_early_stops_the_chapter_that_is_being_written(files: list[str]):
    model = ScriptedModel("1. Stone", Reply("granite and more granite in many words " * 50, pace=0.001))
    agent = ArticleAgent(llm=model, files=files, full_article=True)
    async with aclosing(agent.stream(ASKED)) as events:
        async for event in events:
            if isinstance(event, TextDelta) and "granite" in event.text:
                break
    assert model.closed == 1
