"""A program is told of a document that holds no text, in the page's sentence: its answers rest on the others alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymupdf
import pytest

from core.agents.assistant import Assistant
from core.agents.compat.parallel_doc_qa import ParallelDocQA
from core.agents.compat.virtual_memory import VirtualMemoryAgent
from core.extras import install_command, install_hint
from core.messages.events import ToolFinished
from core.rag.attached import Attached, without_text
from core.testing.script import Reply as Say
from core.testing.scripted_model import ScriptedModel
from webui.words import Words

SAID = "scan.pdf has pages but no text: it is a scan. Send a copy with recognised text, or "


@pytest.fixture
def scan(tmp_path: Path) -> str:
    with pymupdf.open() as pdf:
        pdf.new_page()
        pdf.save(tmp_path / "scan.pdf")
    return str(tmp_path / "scan.pdf")


@pytest.fixture
def tea(tmp_path: Path) -> str:
    (tmp_path / "tea.txt").write_text("Tea is ready after four minutes.", encoding="utf-8")
    return str(tmp_path / "tea.txt")


ASKED: dict[str, tuple[str, bool]] = {
    "and nothing is found in it": ("When is tea ready?", False),
    "and something is found in another": ("When is tea ready?", True),
    "and all of them are asked about": ("Summarize the documents.", True),
}


@pytest.mark.parametrize("what", ASKED)
def test_a_reply_names_the_document_that_holds_no_text(what: str, scan: str, tea: str) -> None:
    question, has_tea = ASKED[what]
    files = [scan, tea] if has_tea else [scan]
    reply = Assistant(llm=ScriptedModel("After four minutes."), files=files).ask(question)
    assert len(reply.unread) == 1
    assert reply.unread[0].startswith(SAID)
    finished = [one.event for one in reply.log if isinstance(one.event, ToolFinished)]
    assert (finished[0].message.extra or {})["unread"] == reply.unread


def test_an_agent_that_searches_when_its_model_calls_says_it_too(scan: str) -> None:
    model = ScriptedModel(Say(calls=[("ask_documents", {"query": "tea"})]), "I do not know.")
    assert VirtualMemoryAgent(llm=model, files=[scan]).ask("When is tea ready?").unread[0].startswith(SAID)


def test_an_agent_that_reads_all_in_parts_says_it_too(scan: str, tea: str) -> None:
    reply = ParallelDocQA(llm=ScriptedModel("Four minutes [1].", "After four minutes."), files=[scan, tea]).ask("When?")
    assert reply.unread[0].startswith(SAID)


def test_where_all_can_be_read_nothing_is_said(tea: str) -> None:
    assert Assistant(llm=ScriptedModel("Soon."), files=[tea]).ask("When is tea ready?").unread == []


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("note", ["document_scanned", "document_no_text"])
def test_it_is_the_sentence_of_the_page(lang: Any, note: str) -> None:
    words = Words(lang)
    install = {"en": install_hint("ocr"), "zh": f"请运行：{install_command('ocr')}"}[lang]
    page = words.line(words(f"error.{note}", name="scan.pdf"), words(f"error.{note}.do", install=install))
    assert without_text([Attached("scan.pdf", "failed", note=note)], lang) == [page]
