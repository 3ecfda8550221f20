"""What a model is given of documents: all of them where they fit, else the best; and what it says where none fits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.agents.assistant import Assistant
from core.messages.events import Event, ToolFinished
from core.messages.message import Message
from core.messages.transcript import Transcript
from core.rag.library import Library
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

FILLER = [f"Paragraph {number} tells of harbours, ropes and the tide of day {number}." for number in range(12)]
HERON = "The heron eats 17 fish a day."


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", {"chunk_size": 32}) as opened:
        opened.add_text("\n\n".join([*FILLER, HERON]), name="notes.txt")
        yield opened


async def events_of(library: Library, model: ScriptedModel, question: str, **config: Any) -> list[Event]:
    agent = Assistant(llm=model, library=library, rag_cfg=config)
    return [event async for event in agent.stream([Message("user", question)])]


def results(events: list[Event]) -> list[Message]:
    return [event.message for event in events if isinstance(event, ToolFinished)]


def texts(message: Message) -> list[str]:
    return [passage["text"] for passage in (message.extra or {})["passages"]]


async def test_documents_that_fit_are_given_whole_and_in_order_and_marks_still_work(library: Library) -> None:
    model = ScriptedModel("The heron eats 17 fish a day.")
    events = await events_of(library, model, "What does the heron eat?")
    (result,) = results(events)
    said = "\n".join(texts(result))
    assert [said.index(part) for part in [*FILLER, HERON]] == sorted(said.index(part) for part in [*FILLER, HERON])
    number = next(at for at, text in enumerate(texts(result), 1) if HERON in text)
    assert Transcript(events).messages()[-1].get_text_content() == f"The heron eats 17 fish a day. [{number}]"


@pytest.mark.parametrize("config", [{"whole_documents": False}, {"max_ref_token": 100}])
async def test_else_the_best_passages_are(library: Library, config: dict[str, Any]) -> None:
    (result,) = results(await events_of(library, ScriptedModel("ok"), "What does the heron eat?", top_k=2, **config))
    assert HERON in texts(result)[0]
    assert len("\n".join(texts(result))) < 400


async def test_neighbours_that_were_found_are_one_passage(library: Library) -> None:
    config = {"whole_documents": False, "top_k": 13}
    (result,) = results(await events_of(library, ScriptedModel("ok"), "harbours ropes tide heron", **config))
    said = "\n".join(texts(result))
    assert len(texts(result)) < 13
    assert all(said.count(part) == 1 for part in FILLER)


async def test_after_the_whole_a_model_that_searches_again_gets_what_it_searches_for(library: Library) -> None:
    model = ScriptedModel(Reply(calls=[("ask_documents", {"query": "heron"})]), "17 fish.")
    first, second = results(await events_of(library, model, "What does the heron eat?"))
    assert len(texts(first)) > 1
    assert HERON in texts(second)[0]
    assert len(texts(second)) == 1


async def test_a_greeting_brings_no_documents(library: Library) -> None:
    model = ScriptedModel("Hello!")
    assert results(await events_of(library, model, "Hello!")) == []
    assert [message.role for message in model.requests[0].messages] == ["system", "user"]


@pytest.mark.parametrize(
    ("question", "rule", "told"),
    [
        ("What does the heron eat?", "say that the documents do not contain it", "the documents do not contain it"),
        ("苍鹭 heron 每天吃多少鱼？", "请说明文档中没有相关内容", "请说明文档中没有相关内容"),
    ],
)
async def test_the_model_is_told_what_to_say_where_the_passages_hold_no_answer(
    library: Library, question: str, rule: str, told: str
) -> None:
    model = ScriptedModel("ok")
    (result,) = results(await events_of(library, model, question, whole_documents=False))
    system, *_, passages = model.requests[0].messages
    assert rule in system.get_text_content()
    assert told in passages.get_text_content().split("<passages>")[0]
    assert (result.extra or {}).get("nothing_found") is None


@pytest.mark.parametrize("question", ["Who wrote the constitution?", "谁写了宪法？"])
async def test_where_nothing_is_found_the_result_says_so_in_words_and_in_form(library: Library, question: str) -> None:
    model = ScriptedModel("The documents do not contain it.")
    (result,) = results(await events_of(library, model, question, whole_documents=False))
    assert (result.extra or {})["nothing_found"] is True
    assert "passages" not in (result.extra or {})
    said = model.requests[0].messages[-1].get_text_content()
    assert "do not contain it" in said or "没有相关内容" in said
