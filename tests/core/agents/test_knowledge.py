"""`knowledge=` of an assistant: in the prompt, in Qwen-Agent's form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.agents.assistant import Assistant, knowledge_text
from core.errors import SettingsError
from core.messages.message import Message
from core.testing.scripted_model import ScriptedModel
from core.tools.approval import Policy
from tests.core.runs.note_tools import Note, writes

ASKED: list[Any] = [{"role": "user", "content": "How long does tea take?"}]
TEA = "Tea is ready after four minutes."
TOLD = f"# Knowledge Base\n\n## The content from the uploaded documents:\n\n```\n{TEA}\n```"
LISTED = [{"url": "/home/ann/a%20b.md", "text": ["One.", "Two."]}]


def system_of(model: ScriptedModel) -> str:
    return model.requests[0].messages[0].get_text_content()


def test_a_text_joins_the_system_message() -> None:
    model = ScriptedModel("Four minutes.")
    reply = Assistant(llm=model, system_message="Be brief.").run_nonstream(ASKED, knowledge=TEA)
    assert reply[-1]["content"] == "Four minutes."
    assert system_of(model) == f"Be brief.\n\n{TOLD}"


def test_it_stands_in_for_the_search_of_files(tmp_path: Path) -> None:
    (tmp_path / "herons.txt").write_text("Herons eat fish.", encoding="utf-8")
    model = ScriptedModel("Four minutes.")
    reply = Assistant(llm=model, files=[str(tmp_path / "herons.txt")]).run_nonstream(ASKED, knowledge=TEA)
    assert [message["role"] for message in reply] == ["assistant"]
    assert TOLD in system_of(model)


@pytest.mark.parametrize("way", ["stream", "run", "map"])
def test_every_way_to_ask_takes_it(way: str) -> None:
    model = ScriptedModel("Four minutes.")
    agent = Assistant(llm=model)
    if way == "run":
        list(agent.run(ASKED, knowledge=TEA))
    elif way == "map":
        agent.map(["How long?"], knowledge=TEA)
    else:
        from core.bridge.sync import iterate

        list(iterate(lambda: agent.stream([Message("user", "How long?")], knowledge=TEA)))
    assert TOLD in system_of(model)


def test_an_override_of_run_may_bring_its_own_and_call_super() -> None:
    class Own(Assistant):
        def _run(
            self, messages: list[Message], lang: Any = "en", knowledge: str = "", **kwargs: Any
        ) -> Iterator[list[Message]]:
            yield from super()._run(messages=messages, lang=lang, knowledge=f"{knowledge}{TEA}", **kwargs)

    model = ScriptedModel("Four minutes.")
    assert Own(llm=model).run_nonstream(ASKED, knowledge="Black. ")[-1]["content"] == "Four minutes."
    assert f"Black. {TEA}" in system_of(model)


@pytest.mark.parametrize("given", [LISTED, tuple(LISTED), json.dumps(LISTED), iter(LISTED)])
def test_what_memory_answers_is_told_by_document(given: Any) -> None:
    assert knowledge_text(given, "zh") == "# 知识库\n\n## 来自 [文件](a b.md) 的内容：\n\n```\nOne.\n\n...\n\nTwo.\n```"


@pytest.mark.parametrize("given", ["", "  ", None, [], "[]"])
def test_nothing_is_told_of_nothing(given: Any) -> None:
    assert knowledge_text(given, "en") == ""


def test_a_text_that_only_begins_as_a_list_is_a_text() -> None:
    assert "[1] A footnote." in knowledge_text("[1] A footnote.", "en")
    assert '["a", "b"]' in knowledge_text('["a", "b"]', "en")


@pytest.mark.parametrize("given", [7, b"x", {"url": "a", "text": "b"}, ["x"], [{"url": "a"}]])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(SettingsError, match=r"knowledge cannot be .*Give a text, or a list"):
        Assistant(llm=ScriptedModel("x")).run_nonstream(ASKED, knowledge=given)


def test_whoever_decides_about_calls_knows_that_something_private_was_read() -> None:
    class Reaches(Note):
        reaches_out = True
        writes = False

        def addresses(self, arguments: Any) -> tuple[str, ...]:
            return ("https://example.org/x",)

    def run_with(**kwargs: Any) -> list[str]:
        note = Reaches()
        Assistant([note], ScriptedModel(writes("x"), "after")).run_nonstream(ASKED, approval=Policy(), **kwargs)
        return note.written

    assert (run_with(), run_with(knowledge=TEA)) == (["x"], [])
