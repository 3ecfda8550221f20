"""What a service cites by itself reaches the reply, the log, the page and exports, whatever its protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.agents.basic import BasicAgent, FnCallAgent
from core.agents.reply import fold
from core.llm.reply_store import packed, unpacked
from core.llm.wire.cited import MOST_CITED, of_gemini, of_openai, of_page
from core.messages.content import ContentItem
from core.messages.events import SourceCited
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.runs.log import LoggedEvent
from core.runs.reply import Reply as Shown
from core.runs.rows import events_of, logged_of, rows_of
from core.testing.script import Reply, refusal
from core.tools.from_function import tool
from core.tools.results import ToolResult
from tests.core.llm.backends.native.services import SERVICES, WEATHER

pytestmark = pytest.mark.anyio

OSLO = {"url": "https://example.org/oslo", "title": "Oslo"}
RAIN = {"url": "https://example.net/rain?a=1&b=2", "title": "Rain in Norway"}
WORDS = ["Oslo is the capital.", " It rains — 雨.", " That is all."]


@pytest.fixture
def claude(serving):
    return serving(next(one for one in SERVICES if one.model_type == "anthropic"))


@tool
def look(place: str) -> ToolResult:
    """Look a place up.

    Args:
        place: Its name.
    """
    row = {"text": f"{place} is old.", "score": 1.0, "document": "guide.pdf", "document_id": "g", "number": 1}
    return ToolResult("[1] Old.", passages=(row,))


@tool
def search(query: str) -> str:
    """Search the web.

    Args:
        query: What for.
    """
    del query
    return json.dumps({"0": {**OSLO, "snippets": [["Oslo is the capital of Norway."]]}})


@pytest.mark.parametrize("stream", [True, False])
def test_a_page_that_a_service_cites_is_a_citation_of_the_reply(native, stream):
    native.play(Reply(text=WORDS, cites=[(0, OSLO), (1, RAIN), (1, OSLO)]))
    reply = BasicAgent(llm=native.model(generate_cfg={"stream": stream})).ask("Tell me of Oslo.")
    found = {one.mark: (one.passage.url, one.document) for one in reply.citations}
    assert found == {1: (OSLO["url"], "Oslo"), 2: (RAIN["url"], "Rain in Norway")}
    assert [one.document for one in reply.passages] == ["Oslo", "Rain in Norway"]
    assert reply.text == "Oslo is the capital. [1] It rains — 雨. [2] [1] That is all."
    assert [one.sentence for one in reply.citations] == ["Oslo is the capital.", "It rains — 雨."]


def test_a_document_that_a_service_cites_has_its_name_and_page(native):
    if native.kind.model_type in {"openai_responses", "mistral"}:
        native.play(Reply(text=WORDS, cites=[(0, {"document": "plan.pdf"})]))
    else:
        plan = {"document": "plan.pdf", "page": 3, "text": "The capital is Oslo."}
        native.play(Reply(text=WORDS, cites=[(0, plan)]))
    reply = BasicAgent(llm=native.model()).ask("What does the plan say?")
    if native.kind.model_type == "mistral":
        assert reply.citations == []  # its own tools cite pages alone
        return
    (one,) = reply.citations
    assert (one.mark, one.document) == (1, "plan.pdf")
    if native.kind.model_type != "openai_responses":
        assert (one.page, one.passage.text) == (3, "The capital is Oslo.")


async def test_a_model_without_an_agent_tells_its_sources_with_the_message(native):
    native.play(Reply(text=WORDS, cites=[(0, OSLO)]))
    reply = await native.model().achat([Message(USER, "Tell me of Oslo.")])
    assert reply[-1].get_text_content() == "".join(WORDS)
    (row,) = reply[-1].extra["passages"]
    assert (row["url"], row["document"]) == (OSLO["url"], "Oslo")


def test_marks_go_on_from_what_tools_found(native):
    native.play(Reply(calls=[("look", {"place": "Oslo"})]), Reply(text=["Oslo is old."], cites=[(0, OSLO)]))
    reply = FnCallAgent(llm=native.model(), function_list=[look]).ask("How old is Oslo?")
    assert [one.document for one in reply.passages] == ["guide.pdf", "Oslo"]
    assert "[2]" in reply.text
    assert reply.citations[-1].passage.url == OSLO["url"]


def test_an_answer_that_is_data_stays_data(native):
    native.play(Reply(text=['{"city":', ' "Oslo"}'], cites=[(0, OSLO)]))
    reply = BasicAgent(llm=native.model()).ask("Which city?", output_type=dict[str, str])
    assert reply.output == {"city": "Oslo"}


def test_a_source_that_no_browser_may_follow_is_left_out(native):
    bad = [{"url": url, "title": "x"} for url in ("javascript:alert(1)", "file:///etc/passwd", "http://[", "//host")]
    native.play(Reply(text=WORDS, cites=[(0, one) for one in bad]))
    reply = BasicAgent(llm=native.model()).ask("q")
    assert (reply.text, reply.passages) == ("".join(WORDS), [])


def test_more_sources_than_anybody_reads_are_left_out(native):
    pages = [(0, {"url": f"https://example.org/{at}", "title": "x" * 9_000}) for at in range(MOST_CITED + 9)]
    native.play(Reply(text=WORDS, cites=pages))
    reply = BasicAgent(llm=native.model()).ask("q")
    assert len(reply.passages) == MOST_CITED
    assert max(len(one.document) for one in reply.passages) < 1_000


def test_the_log_and_stored_replies_keep_what_was_cited(native):
    native.play(Reply(text=WORDS, cites=[(0, OSLO), (1, RAIN)]))
    reply = BasicAgent(llm=native.model()).ask("q")
    logged = [LoggedEvent(one.seq, one.at, one.event) for one in reply.log]
    again = logged_of(rows_of(logged))
    events: list[Any] = [one.event for one in again]
    assert list(fold(events).messages) == list(reply.messages)
    shown = Shown(again)
    assert [(one["number"], one["url"]) for one in shown.passages] == [(1, OSLO["url"]), (2, RAIN["url"])]
    assert Shown(LoggedEvent(n, 0.0, one) for n, one in enumerate(events_of(reply.messages), 1)).passages
    stored = packed(one.event for one in reply.log)
    assert fold(unpacked(json.loads(json.dumps(stored)))).passages == reply.passages


async def test_a_source_of_a_tool_is_named_by_its_id(serving):
    mistral = serving(next(one for one in SERVICES if one.model_type == "mistral"))
    mistral.play(
        Reply(calls=[("search", {"query": "Oslo"})]),
        Reply(text=WORDS, cites=[(0, {"id": 0}), (1, {"id": 7})]),
    )
    reply = FnCallAgent(llm=mistral.model(), function_list=[search]).ask("Tell me of Oslo.")
    (one,) = reply.citations
    assert (one.mark, one.passage.url, one.passage.text) == (1, OSLO["url"], "Oslo is the capital of Norway.")


def test_a_passage_of_ours_that_a_service_cites_keeps_its_number(serving):
    mistral = serving(next(one for one in SERVICES if one.model_type == "mistral"))
    mistral.play(Reply(calls=[("look", {"place": "Oslo"})]), Reply(text=WORDS, cites=[(0, {"id": 1})]))
    reply = FnCallAgent(llm=mistral.model(), function_list=[look]).ask("How old is Oslo?")
    assert reply.text.startswith("Oslo is the capital. [1]")
    assert [one.document for one in reply.passages] == ["guide.pdf"]


async def test_claude_is_asked_to_cite_the_documents_of_a_question(claude, document):
    claude.play(Reply(text="A plan."), Reply(text="{}"), Reply(text="A plan."))
    asked = Message(USER, [ContentItem(text="What is it?"), ContentItem(file=document)])
    await claude.model().achat([asked])
    block = next(one for one in claude.body()["messages"][0]["content"] if one["type"] == "document")
    assert (block["citations"], block["title"]) == ({"enabled": True}, "plan.pdf")
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
    await claude.model().achat([asked], None, {"response_format": schema})  # together they are refused
    assert "citations" not in claude.sent()
    await claude.model(citations=False).achat([asked])
    assert "citations" not in claude.sent()


async def test_documents_within_results_are_not_to_be_cited(claude, document):
    claude.play(Reply(text="A plan."))
    extra = {"function_id": "call_1"}
    call = Message(ASSISTANT, "", function_call={"name": "look", "arguments": "{}"}, extra=extra)
    result = Message(FUNCTION, [ContentItem(text="Here:"), ContentItem(file=document)], name="look", extra=extra)
    asked = Message(USER, [ContentItem(text="What is it?"), ContentItem(file=document)])
    await claude.model().achat([asked, call, result], [WEATHER])
    assert '"document"' in claude.sent()
    assert "citations" not in claude.sent()


async def test_a_claude_that_cannot_cite_is_asked_without(claude, document):
    claude.play(refusal(400, "citations are not supported on this model"), Reply(text="A."), Reply(text="B."))
    model = claude.model()
    asked = Message(USER, [ContentItem(text="What is it?"), ContentItem(file=document)])
    for answer in ("A.", "B."):
        assert (await model.achat([asked]))[-1].get_text_content() == answer
    assert len(claude.server.requests) == 3


def test_sources_in_every_form_of_a_service_are_read():
    assert of_gemini({"maps": {"uri": OSLO["url"], "title": "Oslo"}})[0]["url"] == OSLO["url"]
    kept = {"retrievedContext": {"uri": "gs://bucket/plan.pdf", "title": "plan.pdf", "text": "Oslo."}}
    assert (of_gemini(kept)[0]["document"], of_gemini(kept)[0]["text"]) == ("plan.pdf", "Oslo.")
    assert of_gemini({"unknown": {}}) == of_openai({"type": "file_path", "file_id": "f"}) == of_page(None) == []
    inner = {"type": "url_citation", "url_citation": {"url": OSLO["url"], "title": "Oslo"}}
    assert of_openai(inner)[0]["document"] == "Oslo"
    assert of_page("https://example.org/x", "")[0]["document"] == "example.org"


def test_a_sentence_about_a_page_that_nobody_has_read_is_not_called_unproven(native):
    if native.kind.model_type != "gemini":
        return
    native.play(Reply(text=WORDS, cites=[(0, OSLO)]))
    reply = BasicAgent(llm=native.model()).ask("q")
    assert reply.passages
    assert reply.claims == []


def test_an_event_of_sources_has_a_plain_form():
    event = SourceCited(tuple(of_page(OSLO["url"], "Oslo", "A city.")))
    (row,) = logged_of(rows_of([LoggedEvent(1, 0.0, event)]))
    assert row.event == event
