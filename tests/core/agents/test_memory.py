"""Files in, passages out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core import ContentItem, Memory, Message
from core.errors import DocumentError
from core.messages.events import MessageFinished, MessageStarted
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "boats.md": "# Boats\n\nThe ferry to Lund leaves at nine.\n",
        "trains.md": "# Trains\n\nThe train to Oslo has a dining car.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def asked(text: str, *paths: Path) -> list[Message]:
    return [Message("user", [ContentItem(text=text), *(ContentItem(file=str(path)) for path in paths)])]


def found(reply: list[Any]) -> list[dict[str, Any]]:
    return json.loads(reply[-1]["content"])


def test_without_a_model_a_file_of_the_conversation_gives_a_list_of_its_passages(files: dict[str, Path]) -> None:  # A5
    *_, last = Memory(llm=None).run(asked("When does the ferry leave?", files["boats.md"]))
    (document,) = found(last)
    assert document["url"] == str(files["boats.md"])
    assert "leaves at nine" in " ".join(document["text"])
    assert (last[-1].role, last[-1].name) == ("assistant", "memory")


def test_its_own_files_are_searched_and_the_best_comes_first(files: dict[str, Path]) -> None:
    memory = Memory(files=[str(path) for path in files.values()], rag_cfg={"whole_documents": False})
    first = found(memory.run_nonstream([{"role": "user", "content": "Which train has a dining car?"}]))[0]
    assert first["url"] == str(files["trains.md"])


def test_no_document_and_no_question_are_an_empty_list(files: dict[str, Path]) -> None:
    assert found(Memory().run_nonstream(asked("Anything?"))) == []
    silent = [Message("user", [ContentItem(file=str(files["boats.md"]))])]
    assert found(Memory().run_nonstream(silent)) == []


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"gone\.pdf"):
        Memory(files=[str(tmp_path / "gone.pdf")]).run_nonstream(asked("What does it say?"))


def test_a_model_is_asked_for_words_where_that_is_wished_and_never_answers(files: dict[str, Path]) -> None:
    model = ScriptedModel('{"words": ["ferry", "渡轮"]}')
    options = {"rag_keygen_strategy": "keywords", "whole_documents": False}
    memory = Memory(llm=model, files=[str(path) for path in files.values()], rag_cfg=options)
    assert found(memory.run_nonstream(asked("How do I get across the water?")))[0]["url"] == str(files["boats.md"])
    assert len(model.requests) == 1


async def test_passages_keep_their_addresses_and_events_are_whole(files: dict[str, Path]) -> None:
    memory = Memory(files=[str(files["boats.md"])])
    (passage,) = await memory.find(asked("When does the ferry leave?"))
    assert (passage.document, passage.heading) == ("boats.md", "Boats")
    events = [event async for event in memory.stream(asked("When does the ferry leave?"))]
    assert isinstance(events[0], MessageStarted)
    assert isinstance(events[-1], MessageFinished)
