"""The assistant: documents before the first model call, marks in the answer, and no detour where there are none."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from core.agents.assistant import Assistant
from core.errors import BrokenDocumentError
from core.llm.calling.json_schema import JsonSchemaTemplate
from core.messages.content import ContentItem
from core.messages.events import Event, TextDelta, ToolFinished
from core.messages.message import Message
from core.messages.transcript import Transcript, call_message
from core.rag.document import Document, Passage
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

_SKY = Passage("The sky is green on Tuesdays because of 17 kinds of copper dust.", 2.0, "sky.pdf", "d1", 3, chunk_id=1)
_SEA = Passage("The sea tastes of lemon near the old harbour.", 1.0, "sea.pdf", "d2", 1, chunk_id=2)


class Shelf:
    """A library of two passages that remembers what it was asked."""

    def __init__(self, *passages: Passage) -> None:
        self.passages = list(passages)
        self.asked: list[tuple[str, int, Collection[str] | None]] = []
        self.context = self.retriever = self.tables = self.figures = self

    def headings(self, documents: Collection[str]) -> dict[str, list[Any]]:
        return {}

    def letters(self, documents: Collection[str]) -> int:
        return sum(len(one.text) for one in self.passages)

    def full_text(self, documents: Collection[str], most_tokens: int) -> list[Passage] | None:
        return None

    def of(self, documents: Collection[str], stopped: Any = None) -> list[Any]:
        """Tables: it has none."""
        return []

    def named(self, question: str, documents: Collection[str]) -> list[Any]:
        """Figures: none either."""
        return []

    def merged(self, passages: list[Passage]) -> list[Passage]:
        return passages

    def documents(self) -> list[Document]:
        return [Document(p.document_id, p.document, "text/plain", None, 1) for p in self.passages]

    def vector_progress(self, documents: Collection[str]) -> dict[str, tuple[int, int]]:
        return {}

    async def afind(
        self, question: str, k: int, retrieval_type: str | None = None, *, documents: Collection[str] | None = None
    ) -> list[Passage]:
        self.asked.append((question, k, documents))
        return [p for p in self.passages if documents is None or p.document_id in documents][:k]

    async def abeginnings(self, k: int, *, documents: Collection[str] | None = None) -> list[Passage]:
        self.asked.append(("(beginnings)", k, documents))
        return self.passages[:k]


def assistant(model: ScriptedModel, shelf: Any, **options: Any) -> Assistant:
    return Assistant(llm=model, library=shelf, **options)


async def events_of(agent: Assistant, *messages: Message) -> list[Event]:
    return [event async for event in agent.stream(messages)]


async def test_passages_are_found_before_the_model_is_asked_and_shown_as_an_ordinary_call():
    model, shelf = ScriptedModel("The sky is green on Tuesdays because of copper dust."), Shelf(_SKY, _SEA)
    events = await events_of(assistant(model, shelf), Message("user", "What colour is the sky?"))
    assert [event.kind for event in events[:6]] == [
        "message_started",
        "call_started",
        "call_delta",
        "message_finished",
        "tool_started",
        "tool_finished",
    ]
    reply = Transcript(events).messages()
    assert reply[0].function_call is not None
    assert reply[0].function_call.name == "ask_documents"
    assert reply[0].function_call.get_parsed_arguments() == {"query": "What colour is the sky?"}
    passages = (reply[1].extra or {})["passages"]
    assert [(p["document"], p["page"], p["number"]) for p in passages] == [("sky.pdf", 3, 1), ("sea.pdf", 1, 2)]
    assert "[1] (sky.pdf, page 3)" in reply[1].get_text_content()
    assert [m.role for m in model.requests[0].messages] == ["system", "user", "assistant", "function"]


async def test_the_answer_carries_marks_though_the_model_writes_none():
    model = ScriptedModel("The sky is green on Tuesdays because of copper dust.")
    events = await events_of(assistant(model, Shelf(_SKY)), Message("user", "What colour is the sky?"))
    assert Transcript(events).messages()[-1].get_text_content().endswith("copper dust. [1]")


async def test_the_model_is_told_to_cite_and_who_it_is():
    model = ScriptedModel("ok")
    await events_of(assistant(model, Shelf(_SKY)), Message("user", "What colour is the sky?"))
    system = model.requests[0].messages[0].get_text_content()
    assert system.startswith("You are Parlour")
    assert "like this [1]" in system


async def test_a_chinese_question_gets_a_chinese_prompt():
    model = ScriptedModel("好")
    await events_of(assistant(model, Shelf(_SKY)), Message("user", "天空是什么颜色？"))
    assert model.requests[0].messages[0].get_text_content().startswith("你是 Parlour")
    assert model.requests[0].lang == "zh"
    assert "以下段落" in model.requests[0].messages[-1].get_text_content()


async def test_only_the_chosen_documents_are_searched():
    shelf = Shelf(_SKY, _SEA)
    await events_of(assistant(ScriptedModel("ok"), shelf, documents=["d2"]), Message("user", "What is it?"))
    assert shelf.asked == [("What is it?", 5, ["d2"])]


@pytest.mark.parametrize("options", [{"library": Shelf()}, {"library": Shelf(_SKY), "documents": []}, {}])
async def test_without_documents_nothing_is_searched(options: dict[str, Any]):
    model = ScriptedModel("Hello!")
    events = [event async for event in Assistant(llm=model, **options).stream([Message("user", "What is it?")])]
    assert [event.kind for event in events] == ["message_started", "text_delta", "message_finished"]
    assert not model.requests[0].functions


async def test_when_nothing_is_found_the_model_is_told_so():
    model, shelf = ScriptedModel("I do not know."), Shelf(_SKY)
    shelf_of_nothing = _Empty(shelf)
    events = await events_of(assistant(model, shelf_of_nothing), Message("user", "Who wrote the constitution?"))
    results = [event.message for event in events if isinstance(event, ToolFinished)]
    assert results[0].get_text_content().startswith("No passage of the documents matches.")


class _Empty(Shelf):
    def __init__(self, full: Shelf) -> None:
        super().__init__(*full.passages)

    async def afind(self, question: str, k: int, retrieval_type: str | None = None, **_: Any) -> list[Passage]:
        return []


@pytest.mark.parametrize("greeting", ["Hello!", "thanks a lot", "你好", "谢谢你！"])
async def test_small_talk_shows_no_search_when_nothing_was_found(greeting: str):
    model = ScriptedModel("Hello!")
    events = await events_of(assistant(model, _Empty(Shelf(_SKY))), Message("user", greeting))
    assert [event.kind for event in events] == ["message_started", "text_delta", "message_finished"]
    assert [m.role for m in model.requests[0].messages] == ["system", "user"]


async def test_a_small_model_gets_at_most_600_tokens_of_passages_and_no_search_tool():
    model = ScriptedModel("ok")
    model.small = True
    long = [Passage("word " * 250 + str(n), 1.0, "long.txt", "d1", chunk_id=n) for n in range(5)]
    agent = assistant(model, Shelf(*long), function_list=["calculator"])
    events = await events_of(agent, Message("user", "Is there a word?"))
    passages = next(e.message.extra["passages"] for e in events if isinstance(e, ToolFinished) and e.message.extra)
    assert 0 < sum(model.count_tokens(p["text"]) for p in passages) <= 600
    assert [f["name"] for f in model.requests[0].functions] == ["calculator"]


async def test_a_small_model_gets_the_best_passage_whole_and_of_others_what_fits_the_question():
    model = ScriptedModel("ok")
    model.small = True
    texts = [" ".join(f"Boat {n} leaves at {at}." for at in range(14, 40)) for n in range(4)]
    boats = [Passage(text, 1.0, "boats.txt", "d1", chunk_id=n) for n, text in enumerate(texts)]
    events = await events_of(assistant(model, Shelf(*boats)), Message("user", "Which boat leaves at 33?"))
    first, *others = next(
        e.message.extra["passages"] for e in events if isinstance(e, ToolFinished) and e.message.extra
    )
    assert first["text"] == texts[0]
    assert others
    assert all("leaves at 33." in one["text"] and model.count_tokens(one["text"]) <= 60 for one in others)


async def test_a_small_model_is_told_pages_and_files_only_where_it_is_asked_about_them():
    told: dict[str, str] = {}
    for question in ("Why is the sky green on Tuesdays?", "On which page is the sky green on Tuesdays?"):
        model = ScriptedModel("ok")
        model.small = True
        await events_of(assistant(model, Shelf(_SKY)), Message("user", question))
        told[question] = "\n".join(one.get_text_content() for one in model.requests[0].messages)
    plain, of_pages = told.values()
    assert "(sky.pdf)" in plain
    assert "page" not in plain
    assert "The user's files" not in plain
    assert "(sky.pdf, page 3)" in of_pages
    assert "The user's files: sky.pdf" in of_pages


async def test_a_small_model_gets_two_passages_though_the_first_takes_the_room():
    model = ScriptedModel("ok")
    model.small = True
    texts = [" ".join(f"Boat {n} leaves at {at}." for at in range(60)) for n in range(4)]
    boats = [Passage(text, 1.0, "boats.txt", "d1", chunk_id=n) for n, text in enumerate(texts)]
    events = await events_of(assistant(model, Shelf(*boats)), Message("user", "Which boat leaves at 33?"))
    given = next(e.message.extra["passages"] for e in events if isinstance(e, ToolFinished) and e.message.extra)
    assert len(given) == 2


async def test_one_passage_beyond_the_budget_is_cut_rather_than_lost():
    model = ScriptedModel("ok")
    model.small = True
    huge = Passage("word " * 5000, 1.0, "long.txt", "d1")
    events = await events_of(assistant(model, Shelf(huge)), Message("user", "Is there a word?"))
    passages = next(e.message.extra["passages"] for e in events if isinstance(e, ToolFinished) and e.message.extra)
    assert 400 < model.count_tokens(passages[0]["text"]) <= 600


async def test_another_model_may_search_again_and_the_numbers_go_on():
    shelf = Shelf(_SKY, _SEA)
    model = ScriptedModel(
        Reply(calls=[("ask_documents", {"query": "sea taste"})]),
        "The sea tastes of lemon near the old harbour [4].",
    )
    events = await events_of(assistant(model, shelf), Message("user", "What colour is the sky?"))
    numbers = [
        [p["number"] for p in (e.message.extra or {})["passages"]] for e in events if isinstance(e, ToolFinished)
    ]
    assert numbers == [[1, 2], [3, 4]]
    assert "[4] (sea.pdf" in model.requests[1].messages[-1].get_text_content()
    assert Transcript(events).messages()[-1].get_text_content() == "The sea tastes of lemon near the old harbour [4]."


@pytest.mark.parametrize("question", ["Summarize this document", "What is this paper about?", "这份文档讲了什么？"])
async def test_a_summary_is_made_from_the_beginnings(question: str):
    shelf = Shelf(_SKY, _SEA)
    await events_of(assistant(ScriptedModel("ok"), shelf), Message("user", question))
    assert [asked[0] for asked in shelf.asked] == ["(beginnings)"]


_SUMS = ("What is 17*23?", "What is 17.5% of 2480?", "17乘以23是多少？")


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("question", _SUMS)
async def test_a_sum_searches_no_documents(question: str, *, small: bool):
    model, shelf = ScriptedModel("391"), Shelf(Passage("17 boats left at 23 o'clock.", 1.0, "boats.txt", "d1"))
    model.small = small
    events = await events_of(assistant(model, shelf, function_list=["calculator"]), Message("user", question))
    assert shelf.asked == []
    assert not any(isinstance(event, ToolFinished) for event in events)
    assert [m.role for m in model.requests[0].messages] == ["system", "user"]
    assert "calculator" in [f["name"] for f in model.requests[0].functions]


@pytest.mark.parametrize("question", _SUMS)
async def test_a_small_model_gets_a_sum_as_it_does_without_documents(question: str):
    without, over = ScriptedModel("391"), ScriptedModel("391")
    without.small = over.small = True
    await events_of(Assistant(["calculator"], without), Message("user", question))
    await events_of(assistant(over, Shelf(_SKY), function_list=["calculator"]), Message("user", question))
    asked, told = (prepared(model) for model in (without, over))
    assert told == asked
    assert "calculator" in asked[-1][1]


def prepared(model: ScriptedModel) -> list[tuple[str, str]]:
    """What a model with the template of small ones reads."""
    request = JsonSchemaTemplate().prepare(model.requests[0])
    return [(one.role, one.get_text_content()) for one in request.messages]


@pytest.mark.parametrize(
    "question", ["What is 3*4 in the table of tides?", "Who wrote on 2024-03-01?", "What is 9/11?"]
)
async def test_a_question_that_holds_more_than_a_sum_is_searched_for(question: str):
    shelf = Shelf(_SKY)
    await events_of(assistant(ScriptedModel("ok"), shelf), Message("user", question))
    assert shelf.asked


async def test_a_small_model_is_not_given_passages_that_miss_the_question_and_keeps_its_tools():
    model = ScriptedModel("434")
    model.small = True
    agent = assistant(model, Shelf(_SKY), function_list=["calculator"])
    events = await events_of(agent, Message("user", "What is 17.5% of 2480 dollars?"))
    results = [event.message for event in events if isinstance(event, ToolFinished)]
    assert results[0].get_text_content().startswith("No passage of the documents matches.")
    assert [m.role for m in model.requests[0].messages] == ["system", "user"]
    assert [f["name"] for f in model.requests[0].functions] == ["calculator"]


@pytest.mark.parametrize("question", ["Which hardware was used?", "这篇写了什么？", "停水从几点到几点？"])
async def test_a_question_in_other_words_than_the_document_uses_is_answered_from_its_beginning(question: str):
    model, shelf = ScriptedModel("ok"), Shelf(_SKY)
    model.small = True
    events = await events_of(assistant(model, shelf), Message("user", question))
    results = [event.message for event in events if isinstance(event, ToolFinished)]
    assert _SKY.text in results[0].get_text_content()
    assert len((results[0].extra or {})["passages"]) == 1
    assert "(beginnings)" in [asked[0] for asked in shelf.asked]


async def test_searches_of_earlier_turns_are_left_out():
    model = ScriptedModel("ok")
    history = [
        Message("user", "What colour is the sky?"),
        call_message("c1", "ask_documents", '{"query": "sky"}'),
        Message("function", "[1] old", name="ask_documents", extra={"function_id": "c1"}),
        Message("assistant", "Green. [1]"),
        Message("user", "And what does the sea taste of?"),
    ]
    await events_of(assistant(model, Shelf(_SEA)), *history)
    sent = model.requests[0].messages
    assert [m.role for m in sent] == ["system", "user", "assistant", "user", "assistant", "function"]
    assert len(history) == 5


async def test_a_failing_search_is_a_failed_call_and_the_model_still_answers():
    class Broken(Shelf):
        async def afind(self, *_: Any, **__: Any) -> list[Passage]:
            raise OSError("disk on fire")

    events = await events_of(assistant(ScriptedModel("Sorry."), Broken(_SKY)), Message("user", "What colour is it?"))
    results = [event.message for event in events if isinstance(event, ToolFinished)]
    assert (results[0].extra or {})["failed"] == "tool_failed"
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Sorry."]


async def test_files_given_in_python_are_read_and_found(tmp_path: Path):
    file = tmp_path / "sky.txt"
    file.write_text("The sky over Ghent is green on Tuesdays.\n\nNobody knows why.")
    agent = Assistant(llm=ScriptedModel("The sky over Ghent is green on Tuesdays."), files=[str(file)])
    events = await events_of(agent, Message("user", "When is the sky over Ghent green?"))
    reply = Transcript(events).messages()
    assert (reply[1].extra or {})["passages"][0]["document"] == "sky.txt"
    assert reply[-1].get_text_content().endswith("[1]")


async def test_the_best_passage_is_given_to_a_small_model_though_its_neighbours_stand_before_it(tmp_path: Path):
    rows = ["city,population,mayor", *(f"City{n},{n * 1000},Mayor {n}" for n in range(200)), "Turin,841600,Lo Russo"]
    path = tmp_path / "city.csv"
    path.write_text("\n".join(rows))
    model = ScriptedModel("841600")
    model.small = True
    agent = Assistant(llm=model, files=[str(path)], rag_cfg={"retrieval_type": "keyword"})
    events = await events_of(agent, Message("user", "What is the population of Turin?"))
    passages = next(e.message.extra["passages"] for e in events if isinstance(e, ToolFinished) and e.message.extra)
    assert "Turin" in passages[0]["text"]
    assert "841600" in model.requests[0].messages[-1].get_text_content()


async def test_a_file_in_a_message_is_read_too(tmp_path: Path):
    file = tmp_path / "sky.txt"
    file.write_text("The sky over Ghent is green on Tuesdays.")
    question = [ContentItem(text="When is the sky over Ghent green?"), ContentItem(file=str(file))]
    events = await events_of(Assistant(llm=ScriptedModel("ok")), Message("user", question))
    assert any(isinstance(event, ToolFinished) for event in events)


@pytest.mark.parametrize("given", ["gone.pdf", "/nowhere/gone.pdf"])
async def test_a_missing_file_is_one_clear_error_that_says_where_it_was_sought(given: str):
    with pytest.raises(BrokenDocumentError, match=rf"There is no file 'gone.pdf' in '{Path(given).absolute().parent}'"):
        Assistant(llm=ScriptedModel("ok"), files=[given])


async def test_a_file_that_goes_after_its_assistant_was_made_is_the_same_error_at_the_question(tmp_path: Path):
    (tmp_path / "gone.pdf").write_text("here")
    agent = Assistant(llm=ScriptedModel("ok"), files=[str(tmp_path / "gone.pdf")])
    (tmp_path / "gone.pdf").unlink()
    with pytest.raises(BrokenDocumentError, match=rf"There is no file 'gone.pdf' in '{tmp_path}'"):
        await events_of(agent, Message("user", "What is it?"))
