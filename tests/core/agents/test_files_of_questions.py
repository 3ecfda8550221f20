"""What a question names is there and can be read, or one sentence says which is not, before any model is asked."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core import Assistant, BasicAgent, FnCallAgent, Memory
from core.errors import BrokenDocumentError, UnsupportedFormatError
from core.messages.content import ContentItem
from core.messages.message import Message
from core.testing.scripted_model import ScriptedModel

TEA = "Tea is ready after four minutes."
QUESTION = "When is tea ready?"
Ask = Callable[[Any, Any], object]

WAYS: dict[str, Ask] = {
    "files of ask": lambda agent, path: agent.ask(QUESTION, files=[path]),
    "a file of a message": lambda agent, path: agent.ask(
        {"role": "user", "content": [{"text": QUESTION}, {"file": str(path)}]}
    ),
    "a picture of a message": lambda agent, path: agent.ask(
        Message("user", [ContentItem(text=QUESTION), ContentItem(image=str(path))])
    ),
    "a question of a session": lambda agent, path: agent.session().ask(QUESTION, files=[path]),
    "a question of map": lambda agent, path: agent.map(
        [[Message("user", [ContentItem(text=QUESTION), ContentItem(file=str(path))])]]
    ),
}


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "inside").mkdir(parents=True)
    (tmp_path / "docs" / "tea.md").write_text(TEA, encoding="utf-8")
    (tmp_path / "docs" / "inside" / "soup.md").write_text("Soup takes an hour.", encoding="utf-8")
    (tmp_path / "docs" / ".hidden.md").write_text("Nobody reads this.", encoding="utf-8")
    return tmp_path / "docs"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    shutil.copyfile("/bin/true", tmp_path / "bin.exe")
    return tmp_path / "bin.exe"


def read_by(agent: Assistant, model: ScriptedModel) -> set[str]:
    """The names of the documents that passages of the reply are of."""
    results = [one for one in model.requests[-1].messages if one.role == "function"]
    return {one["document"] for result in results for one in (result.extra or {})["passages"]}


@pytest.mark.parametrize("kind", [Assistant, BasicAgent, FnCallAgent])
@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_not_there_is_told_and_no_model_is_asked(way: str, kind: Any, tmp_path: Path):
    model = ScriptedModel("I cannot know.")
    with pytest.raises(BrokenDocumentError, match=rf"There is no file 'nope.pdf' in '{tmp_path}'"):
        WAYS[way](kind(llm=model), tmp_path / "nope.pdf")
    assert not model.requests


@pytest.mark.parametrize("way", ["run", "run_nonstream"])
@pytest.mark.parametrize("kind", ["file", "image", "audio", "video"])
def test_what_a_message_holds_and_is_not_there_is_told_before_a_model_that_cannot_see_it_hears_it_came(
    kind: str, way: str, tmp_path: Path
):
    model = ScriptedModel("I see it.")
    asked = [{"role": "user", "content": [{"text": "What is in it?"}, {kind: str(tmp_path / "nope.png")}]}]
    with pytest.raises(BrokenDocumentError, match=rf"There is no file 'nope.png' in '{tmp_path}'"):
        getattr(BasicAgent(llm=model), way)(asked)
    assert not model.requests


@pytest.mark.parametrize("name", ["a" * 400, "a\0b"])
@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_no_file_can_have_is_one_of_none(way: str, name: str, tmp_path: Path):
    model = ScriptedModel("I cannot know.")
    with pytest.raises(BrokenDocumentError, match=r"There is no file 'a[a\\]"):
        WAYS[way](BasicAgent(llm=model), tmp_path / name)
    assert not model.requests


def test_a_folder_in_a_question_is_read_as_one_of_the_constructor(shelf: Path):
    (shelf / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")
    (shelf / "photo.exe").write_bytes(Path("/bin/true").read_bytes())
    model = ScriptedModel("After four minutes.")
    Assistant(llm=model).ask(QUESTION, files=[str(shelf)])
    assert read_by(Assistant(), model) == {"tea.md", "soup.md"}


def test_a_pattern_in_a_question_is_read_as_one_of_the_constructor(shelf: Path):
    model = ScriptedModel("After four minutes.")
    Assistant(llm=model).ask(QUESTION, files=[shelf / "*.md"])
    assert read_by(Assistant(), model) == {"tea.md"}


@pytest.mark.parametrize(("named", "said"), [("empty", "has no files"), ("docs/*.pdf", "No file matches")])
def test_a_folder_or_pattern_without_files_is_told(named: str, said: str, shelf: Path):
    (shelf.parent / "empty").mkdir()
    model = ScriptedModel("I cannot know.")
    with pytest.raises(BrokenDocumentError, match=said):
        Assistant(llm=model).ask(QUESTION, files=[str(shelf.parent / named)])
    assert not model.requests


@pytest.mark.parametrize("kind", [Assistant, BasicAgent, FnCallAgent])
@pytest.mark.parametrize("way", ["files of ask", "a file of a message", "a question of a session"])
def test_a_file_that_nothing_can_read_is_told(way: str, kind: Any, odd: Path):
    model = ScriptedModel("I cannot know.")
    with pytest.raises(UnsupportedFormatError, match=r"bin\.exe"):
        WAYS[way](kind(llm=model), odd)
    assert not model.requests


@pytest.mark.parametrize("kind", [Assistant, FnCallAgent])
def test_a_file_that_nothing_can_read_is_for_the_tools_that_take_files(kind: Any, odd: Path):
    agent = kind(["code_interpreter"], ScriptedModel("It is a program."))
    assert agent.ask("What is it?", files=[odd]).text == "It is a program."


def test_a_file_that_nothing_can_read_is_for_a_model_that_takes_documents(odd: Path):
    model = ScriptedModel("It is a program.")
    model.support_document_input = True
    assert BasicAgent(llm=model).ask("What is it?", files=[odd]).text == "It is a program."


def test_what_a_folder_brings_beside_others_and_nothing_can_read_is_passed_over(shelf: Path, odd: Path):
    (shelf / "bin.exe").write_bytes(odd.read_bytes())
    assert BasicAgent(llm=ScriptedModel("Fine.")).ask("What is there?", files=[shelf]).text == "Fine."


def test_a_file_of_an_earlier_question_may_be_gone(shelf: Path):
    agent = Assistant(llm=ScriptedModel("After four minutes.", "An hour."))
    first = agent.ask(QUESTION, files=[shelf / "tea.md"])
    (shelf / "tea.md").unlink()
    assert agent.ask("And soup?", history=first).text == "An hour."


@pytest.mark.parametrize("address", ["https://example.org/a.pdf", "data:text/plain,Tea", "oss://bucket/a.pdf"])
def test_what_is_no_path_is_not_looked_for_on_this_machine(address: str):
    assert BasicAgent(llm=ScriptedModel("Yes.")).ask(QUESTION, files=[address]).text == "Yes."


def test_files_of_memory_are_looked_for_too(tmp_path: Path, shelf: Path):
    with pytest.raises(BrokenDocumentError, match=r"There is no file 'nope.pdf'"):
        Memory().ask(QUESTION, files=[tmp_path / "nope.pdf"])
    assert TEA in Memory().ask(QUESTION, files=[shelf]).text
