"""A question that counts or lists, and is answered from passages: model and reader are told that these are not all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core import Assistant, Message
from core.agents.retrieval import Finder, NoModel
from core.messages.transcript import Transcript
from core.rag.config import RAGConfig
from core.rag.coverage import Coverage, DocumentCoverage, coverage_in, searched
from core.rag.document import Document, Passage
from core.rag.library import Library
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

LETTERS = 16
CONFIG = {"retrieval_type": "keyword"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("letters")
    with Library.open(folder / "library", CONFIG) as opened:
        for number in range(LETTERS):
            letter = folder / f"letter-{number}.txt"
            said = " ".join(f"Line {line} of letter {number} tells of weather and of the road." for line in range(40))
            letter.write_text(f"The ferryman of day {number} named a price for the crossing. {said}", encoding="utf-8")
            opened.add(letter)
        yield opened


async def found(
    library: Library, question: str, lang: str = "en", **config: Any
) -> tuple[str, Coverage | None, list[Message]]:
    """What the search before the model says, and the record of the reply."""
    model = ScriptedModel({"script": [Reply(text="So it is.")], "generate_cfg": {"max_input_tokens": 20_000}})
    agent = Assistant(llm=model, library=library, rag_cfg={**CONFIG, **config})
    events = [event async for event in agent.stream([Message("user", question)], lang=lang)]
    messages = Transcript(events).messages()
    assert messages[0].function_call is not None
    assert messages[0].function_call.name == "ask_documents"
    return messages[1].get_text_content(), coverage_in(messages), messages


async def test_the_model_hears_how_many_passages_fit_best_and_which_tool_reads_all(library: Library) -> None:
    said, coverage, messages = await found(library, "How many prices did the ferryman name for the crossing?")
    given = len((messages[1].extra or {})["passages"])
    assert f"These are the {given} passages that fit best, and not all there is." in said
    assert "call read_documents, which reads all of it." in said
    assert coverage is not None
    assert coverage.why == "searched"
    assert not coverage.complete
    assert coverage.counts() == {"passage": (given, sum(one.chunks for one in library.documents()), 0)}
    assert len(coverage.documents) == given + 1, "all that were not read are one row"


async def test_in_chinese_it_is_told_in_chinese(library: Library) -> None:
    said, _, _ = await found(library, "the ferryman named a price: 船夫有几位？", "zh")
    assert "并非全部内容" in said
    assert "请调用 read_documents 通读全部。" in said


async def test_where_no_tool_reads_all_none_is_named_and_the_answer_is_to_say_so(library: Library) -> None:
    said, coverage, _ = await found(library, "How many prices did the ferryman name for the crossing?", read_all=False)
    assert "say that it may not be complete." in said
    assert "read_documents" not in said
    assert coverage is not None
    assert coverage.why == "searched"


@pytest.mark.parametrize(
    "question",
    [
        "What price did the ferryman of day 7 name for the crossing?",
        "How many days is the crossing by the ferryman of day 7?",
    ],
)
async def test_a_question_for_one_figure_is_told_nothing_of_the_kind(library: Library, question: str) -> None:
    said, coverage, _ = await found(library, question)
    assert "passages that fit best" not in said
    assert coverage is None


async def test_a_list_of_what_stands_in_a_long_sheet_is_left_to_a_query_over_it(tmp_path: Path) -> None:
    rows = "\n".join(f"Customer {at},{'yes' if at % 3 else 'no'},{at * 7}" for at in range(900))
    (tmp_path / "customers.csv").write_text(f"Customer,Answered,Amount\n{rows}", encoding="utf-8")
    with Library.open(tmp_path / "library", CONFIG) as sheets:
        sheets.add(tmp_path / "customers.csv")
        said, coverage, _ = await found(sheets, "Which customers have not replied?")
    assert "call ask_tables, which reads all of it." in said
    assert coverage is not None
    assert coverage.why == "searched"


def test_a_search_beside_a_reading_takes_nothing_away_from_what_was_read() -> None:
    read = Coverage((DocumentCoverage("a.pdf", "page", 9, 9),))
    only = Coverage((DocumentCoverage("a.pdf", "passage", 2, 40),), why="searched")

    def result(one: Coverage) -> Message:
        return Message("function", "…", name="a_tool", extra={"coverage": one.as_dict()})

    assert coverage_in([result(only)]) == only
    assert coverage_in([result(read), result(only)]) == read
    assert coverage_in([result(only), result(read)]) == read
    table = Message("function", "3", name="ask_tables", extra={"computed": {"query": "SELECT 3"}})
    assert coverage_in([result(only), table]) is None, "all rows were counted"
    assert coverage_in([result(read), table]) == read


def test_of_several_searches_all_that_was_read_counts_and_a_passage_that_two_found_counts_once() -> None:
    documents = [Document(name, f"{name}.txt", "text/plain", None, 100) for name in ("a", "b", "c")]

    def search(*found: tuple[str, int]) -> Message:
        given = [Passage("one", 1.0, f"{name}.txt", name, None, chunk_id=at) for name, at in found]
        return Message("function", "…", name="x", extra={"coverage": searched(given, documents).as_dict()})

    searches = [search(*(("a", at) for at in range(0, 40, 2))), search(("a", 2), ("b", 7)), search(("b", 8), ("a", 99))]
    coverage = coverage_in(searches)
    assert coverage is not None
    assert coverage.counts() == {"passage": (23, 300, 0)}
    assert [(one.name, one.read, one.total) for one in coverage.documents] == [
        ("a.txt", 21, 100),
        ("b.txt", 2, 100),
        ("", 0, 100),
    ]
    assert coverage.why == "searched"


async def test_where_there_is_no_document_nothing_is_left_to_a_query_over_tables(tmp_path: Path) -> None:
    with Library.open(tmp_path / "library", CONFIG) as empty:
        finder = Finder(empty, [], NoModel(), RAGConfig.of(CONFIG), question="How many invoices are overdue?")
        assert not await finder.is_for_tables()


def test_a_search_that_gives_every_passage_is_no_partial_one() -> None:
    document = Document("a", "a.txt", "text/plain", None, 2)
    given = [Passage("one", 1.0, "a.txt", "a", None, chunk_id=at) for at in (1, 2)]
    assert searched(given, [document]).complete
    assert searched(given[:1], [document]).why == "searched"
