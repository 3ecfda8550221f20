"""A question about a part of a document (pages, a chapter) is answered from that part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from core import Assistant, Message
from core.messages.transcript import Transcript
from core.rag.library import Library
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio

PAGES = 30
WORDS = (
    *("harbour", "lantern", "museum", "orchard", "tunnel", "castle", "merchant", "violin", "helmet", "anchor"),
    *("barrel", "candle", "needle", "ribbon", "saddle", "shovel", "thimble", "statue", "kettle", "turbine"),
    *("pigeon", "carpet", "painter", "station", "furnace", "island", "captain", "bridge", "letter", "garden"),
)


def long_document(path: Path) -> Path:
    """Thirty pages; every fifth begins a chapter, and each speaks of a word of its own."""
    document: Any = pymupdf.open()
    for number, word in enumerate(WORDS, 1):
        page = document.new_page()
        if number % 5 == 1:
            page.insert_text((60, 60), f"Chapter {number // 5 + 1}: About the {word}", fontsize=20)
        for line in range(12):
            page.insert_text((60, 110 + 20 * line), f"Line {line} tells what the {word} costs and who owns it.")
    document.save(path)
    return path


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("parts")
    with Library.open(folder / "library", {"retrieval_type": "keyword"}) as opened:
        opened.add(long_document(folder / "long.pdf"))
        yield opened


async def found(library: Library, question: str, **options: Any) -> dict[str, Any]:
    """What the search before the model gave for a question."""
    config = {"max_ref_token": 1_500, "retrieval_type": "keyword", "read_all": False, **options}
    model = ScriptedModel({"script": ["So."], "generate_cfg": {"max_input_tokens": 3_000}})
    agent = Assistant(llm=model, library=library, rag_cfg=config)
    events = [event async for event in agent.stream([Message("user", question)])]
    result = next(one for one in Transcript(events).messages() if one.role == "function")
    return result.extra or {}


def pages(extra: dict[str, Any]) -> list[int]:
    return sorted({one["page"] for one in extra["passages"]})


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Summarise pages 7 to 9.", [7, 8, 9]),
        ("What stands on page 12?", [12]),
        ("What do the last two pages say?", [29, 30]),
        ("第 14 页讲了什么？", [14]),
        ("Summarise chapter 3.", [11, 12, 13, 14, 15]),
        ("What is chapter 2 about?", [6, 7, 8, 9, 10]),
    ],
)
async def test_the_part_that_is_named_is_what_the_model_reads(
    library: Library, question: str, wanted: list[int]
) -> None:
    assert pages(await found(library, question)) == wanted


async def test_of_a_part_that_does_not_fit_the_model_and_the_reader_are_told_how_far_it_was_read(
    library: Library,
) -> None:
    extra = await found(library, "Summarise pages 5 to 20.", max_ref_token=600)
    (read,) = extra["read"]
    assert (read["of"], read["first"], read["total"]) == ("page", 5, 20)
    assert pages(extra) == list(range(5, read["last"] + 1))
    assert read["last"] < 20


@pytest.mark.parametrize(
    "question", ["What does the lantern of chapter 99 cost?", "What does the lantern on page 400 cost?"]
)
async def test_where_there_is_no_such_part_the_documents_are_searched(library: Library, question: str) -> None:
    assert 2 in pages(await found(library, question))


async def test_a_question_that_names_no_part_is_searched_as_before(library: Library) -> None:
    extra = await found(library, "What does the turbine cost?")
    assert extra["passages"][0]["page"] == 20
