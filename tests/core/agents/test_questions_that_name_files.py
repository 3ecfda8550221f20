"""A question that names files is answered from those alone, and where the answer is not there that is said of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from core import Assistant, Message
from core.messages.content import ContentItem
from core.messages.transcript import Transcript
from core.rag.attached import Attached
from core.rag.library import Library
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

FILLING = "\n\n".join(f"Clause {number} is about the tower and its {number} steps." for number in range(200))
GATE = "The gate of the harbour closes at nine."
REPORT = f"# Hail\n\nThe deductible for hail is four hundred euros.\n\n{FILLING}\n\n{GATE}"
NOTES = f"# Hail\n\nThe deductible for hail is nine hundred euros.\n\n{FILLING}"
SHEET = "Kind,Deductible\nHail,400\nWater,90\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("named")
    with Library.open(folder / "library", {"retrieval_type": "keyword"}) as opened:
        for name, text in (("report.md", REPORT), ("notes.md", NOTES), ("rules.csv", SHEET)):
            Path(folder, name).write_text(text, "utf-8")
            opened.add(folder / name)
        yield opened


async def asked(
    library: Library, question: str, *said: Any, before: Sequence[Message] = (), **more: Any
) -> tuple[Any, Any]:
    """What the search before the model gave, and the model."""
    config = {"retrieval_type": "keyword", "read_all": False, "max_ref_token": 1_000}
    model = ScriptedModel({"script": list(said) or ["So."], "generate_cfg": {"max_input_tokens": 8_000}})
    agent = Assistant(llm=model, library=library, rag_cfg=config, **more)
    events = [event async for event in agent.stream([*before, Message("user", question)])]
    results = [one for one in Transcript(events).messages() if one.role == "function"]
    return results, model


def documents(result: Any) -> set[str]:
    return {one["document"] for one in (result.extra or {}).get("passages") or ()}


async def test_the_named_file_alone_is_searched_and_the_model_is_told_so(library: Library) -> None:
    (result,), model = await asked(library, "What does report.md say is the deductible for hail?")
    assert documents(result) == {"report.md"}
    assert result.extra["only"] == ["report.md"]
    told = model.requests[0].messages[-1].get_text_content()
    assert "four hundred" in told
    assert "nine hundred" not in told
    assert "The question is about report.md, so nothing else was searched." in told


async def test_a_question_that_names_none_or_compares_with_others_is_asked_of_all(library: Library) -> None:
    for question in ("What is the deductible for hail?", "Compare the hail deductible of report.md with the others."):
        (result,), _ = await asked(library, question)
        assert documents(result) >= {"report.md", "notes.md"}, question
        assert "only" not in result.extra


async def test_what_a_file_says_about_something_is_looked_for_in_all_of_it_and_not_at_its_beginning_alone(
    library: Library,
) -> None:
    for question in (
        "What does report.md say about the gate of the harbour?",
        "What does the report say about the gate?",
    ):
        (result,), model = await asked(library, question)
        assert "read" not in result.extra, question
        assert GATE in model.requests[0].messages[-1].get_text_content(), question
    (result,), _ = await asked(library, "What is the report about?")
    assert {one["name"] for one in result.extra["read"] if one["last"]} == {"report.md", "notes.md"}
    assert [one["name"] for one in result.extra["read"] if not one["last"]] == ["rules.csv"]


async def test_several_that_are_named_are_searched_together(library: Library) -> None:
    (result,), _ = await asked(library, "Is the deductible for hail in report.md the same as in notes.md?")
    assert documents(result) == {"report.md", "notes.md"}
    assert result.extra["only"] == ["notes.md", "report.md"]


def turns(*questions: str) -> list[Message]:
    return [one for asked in questions for one in (Message("user", asked), Message("assistant", "So."))]


async def test_a_question_that_only_goes_on_from_one_that_names_a_file_stays_with_that_file(library: Library) -> None:
    before = turns("What does report.md say is the deductible for hail?", "And since when?")
    (result,), model = await asked(library, "And about hail that melts?", before=before)
    assert documents(result) == {"report.md"}
    assert result.extra["only"] == ["report.md"]
    assert "The question is about report.md, so" in model.requests[0].messages[-1].get_text_content()


@pytest.mark.parametrize(
    "question", ["What is the deductible for hail?", "And in the others?", "And about the notes?", "Thanks!"]
)
async def test_a_later_question_that_stands_on_its_own_or_may_be_about_others_is_asked_of_all(
    library: Library, question: str
) -> None:
    results, _ = await asked(library, question, before=turns("What does report.md say is the deductible for hail?"))
    assert all("only" not in (one.extra or {}) for one in results)


async def test_a_question_that_brings_a_file_is_not_about_the_one_that_was_named_before(
    library: Library, tmp_path: Path
) -> None:
    config = {"retrieval_type": "keyword", "read_all": False, "max_ref_token": 1_000}
    for brings in (False, True):
        model = ScriptedModel("So.")
        files = [ContentItem(file=str(tmp_path / "new.md"))] if brings else []
        last = Message("user", [ContentItem(text="And about hail?"), *files])
        told = [*turns("What does report.md say about the tower?"), last]
        agent = Assistant(llm=model, library=library, rag_cfg=config)
        messages = Transcript([event async for event in agent.stream(told)]).messages()
        (result,) = [one for one in messages if one.role == "function"]
        assert ("only" in (result.extra or {})) is not brings


async def test_where_follow_ups_are_searched_for_alone_they_are_asked_of_all(library: Library) -> None:
    model = ScriptedModel("So.")
    agent = Assistant(llm=model, library=library, rag_cfg={"retrieval_type": "keyword", "follow_up": "off"})
    told = [*turns("What does report.md say about the tower?"), Message("user", "And about hail?")]
    messages = Transcript([event async for event in agent.stream(told)]).messages()
    assert not any("only" in (one.extra or {}) for one in messages)


@pytest.mark.parametrize(
    ("question", "sentence", "small"),
    [
        ("Does report.md mention zeppelins?", "say that it is not in report.md", False),
        ("report.md里提到飞艇了吗？", "请说明 report.md 中没有相关内容", False),
        ("report.md里提到飞艇了吗？", "请说明 report.md 中没有相关内容", True),
    ],
)
async def test_where_nothing_is_found_in_it_the_model_is_told_that_it_is_not_in_that_file(
    tmp_path: Path, question: str, sentence: str, small: bool
) -> None:
    with Library.open(tmp_path / "library", {"retrieval_type": "keyword"}) as library:
        library.add_text("猫。", name="report.md")
        library.add_text("The zeppelins rose at noon. 飞艇 zeppelins.", name="notes.md")
        model = ScriptedModel("So.")
        model.small = small
        agent = Assistant(llm=model, library=library, rag_cfg={"retrieval_type": "keyword", "whole_documents": False})
        async for _ in agent.stream([Message("user", question)]):
            pass
    told = model.requests[0].messages[-1].get_text_content()
    assert sentence in told
    assert "rose at noon" not in told


async def test_a_search_of_the_models_own_and_its_tables_stay_within_the_named_file(library: Library) -> None:
    calls = Reply(calls=[("ask_documents", {"query": "deductible hail nine hundred"})])
    results, model = await asked(library, "What does notes.md say about hail?", calls, "So.")
    assert [documents(one) for one in results] == [{"notes.md"}, {"notes.md"}]
    assert "ask_tables" not in {one["name"] for one in model.requests[0].functions}
    _, other = await asked(library, "What does rules.csv say about hail?")
    assert "ask_tables" in {one["name"] for one in other.requests[0].functions}


async def test_of_a_named_file_that_could_not_be_read_that_is_said_and_nothing_else_is_searched(
    library: Library,
) -> None:
    there = {one.name: one for one in library.documents()}

    async def attached() -> list[Attached]:
        read = [Attached(one.name, "ready", library_id=one.id) for one in there.values()]
        return [*read, Attached("broken.pdf", "failed")]

    (result,), _ = await asked(library, "What does broken.pdf say about hail?", attached=attached)
    assert documents(result) == set()
    assert result.extra["nothing_found"]
    assert [one["name"] for one in result.extra["unsearched"]] == ["broken.pdf"]
    assert "broken.pdf (PDF, could not be read)" in result.get_text_content()


async def test_a_program_that_gives_files_of_its_own_is_answered_from_the_one_that_is_named(tmp_path: Path) -> None:
    for name, text in (("report.md", REPORT), ("notes.md", NOTES)):
        (tmp_path / name).write_text(text, "utf-8")
    model = ScriptedModel({"script": ["So."]})
    files = [str(tmp_path / name) for name in ("report.md", "notes.md")]
    agent = Assistant(llm=model, files=files, rag_cfg={"retrieval_type": "keyword", "index_path": str(tmp_path / "i")})
    async for _ in agent.stream([Message("user", "What does notes.md say is the deductible for hail?")]):
        pass
    told = model.requests[0].messages[-1].get_text_content()
    assert "nine hundred" in told
    assert "four hundred" not in told
