"""A conversation as the page shows it: questions, thoughts, calls, answers with marks, and how replies end."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest

from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message
from core.runs.log import LoggedEvent, RunEvent, RunFinished
from core.runs.reply import Reply
from core.storage.base import DocumentRecord, StoredMessage
from webui.render.conversation import Rendered, conversation_entries
from webui.render.entries import Entry
from webui.words import Words

EN, ZH = Words("en"), Words("zh")
PASSAGE = {
    "text": "The deductible is 300 dollars.",
    "document": "policy.pdf",
    "document_id": "d",
    "page": 2,
    "chunk_id": 7,
}
START, STOP, OVER = MessageStarted(), MessageFinished("stop"), RunFinished("complete")


def reply_of(*events: tuple[float, RunEvent]) -> Reply:
    return Reply(LoggedEvent(seq, at, event) for seq, (at, event) in enumerate(events, start=1))


def turn(message_id: str, role: str, parts: tuple[Message, ...] = (), status: str = "complete") -> StoredMessage:
    return StoredMessage(message_id, "c", None, role, parts, None, status, 0.0)  # pyright: ignore[reportArgumentType]


def question(text: str = "Why?", message_id: str = "q", **extra: Any) -> StoredMessage:
    return turn(message_id, "user", (Message("user", text, **extra),))


def call(
    call_id: str, at: float, name: str = "calculator", arguments: str = '{"expression": "1+1"}'
) -> list[tuple[float, Event]]:
    return [(at, CallStarted(call_id, name)), (at, CallDelta(call_id, arguments))]


def result(call_id: str, text: str = "2", **extra: Any) -> ToolFinished:
    return ToolFinished(call_id, Message("function", text, name="calculator", extra={"function_id": call_id, **extra}))


def entries_of(reply: Reply, words: Words = EN) -> list[Entry]:
    entries, _ = conversation_entries([question(), turn("r-1_x", "assistant")], {"r-1_x": reply}, words=words)
    return entries[1:]


def text_of(entry: Entry) -> str:
    return entry["content"][0]["text"]


def title_of(entry: Entry) -> str:
    return re.sub(r"<[^>]*>", "", entry["metadata"]["title"])


def test_a_question_is_shown_with_its_files_above_it_and_a_way_to_change_it() -> None:
    items = [ContentItem(text="What is *in* it?"), ContentItem(file="/files/f1")]
    extra = {"files": [{"id": "f1", "name": "po<li>cy.pdf"}]}
    stored = turn("q1", "user", (Message("user", items, extra=extra),))
    [entry], owners = conversation_entries([stored], {}, words=EN)
    text = text_of(entry)
    assert owners == ["q1"]
    assert entry["role"] == "user"
    assert unescape(text).index("./files/f1?download=1") < unescape(text).index("What is *in* it?")
    assert "&#60;li&#62;" in text
    assert "<li>" not in text
    assert 'href="#do-edit-q1"' in text


def test_a_document_that_cannot_be_read_says_so_beside_its_name() -> None:
    items = [ContentItem(text="?"), ContentItem(file="/files/f1")]
    stored = turn("q1", "user", (Message("user", items, extra={"files": [{"id": "f1", "name": "a.pdf"}]}),))
    document = DocumentRecord("d", "o", "c", "f1", "a.pdf", None, "failed", {}, None, 0.0)
    [entry], _ = conversation_entries([stored], {}, words=EN, documents=[document])
    assert "could not be read" in text_of(entry)


def test_a_damaged_document_that_was_read_all_the_same_is_said_to_be() -> None:
    items = [ContentItem(text="?"), ContentItem(file="/files/f1")]
    stored = turn("q1", "user", (Message("user", items, extra={"files": [{"id": "f1", "name": "a.pdf"}]}),))
    noted = {"key": "document_damaged", "message": "", "hint": "", "details": {"name": "a.pdf"}}
    document = DocumentRecord("d", "o", "c", "f1", "a.pdf", "l", "ready", noted, 3, 0.0)
    [entry], _ = conversation_entries([stored], {}, words=EN, documents=[document])
    assert "a.pdf is damaged; some of it may be missing. Send a whole copy" in unescape(text_of(entry))
    [entry], _ = conversation_entries([stored], {}, words=ZH, documents=[document])
    assert "a.pdf 已损坏，可能缺少部分内容。" in unescape(text_of(entry))


def test_a_picture_that_was_read_for_a_model_that_does_not_see_is_said_to_be_and_one_without_words_too() -> None:
    items = [ContentItem(text="?"), ContentItem(image="/files/f1")]
    stored = turn("q1", "user", (Message("user", items, extra={"files": [{"id": "f1", "name": "a.png"}]}),))
    read = DocumentRecord("d", "o", "c", "f1", "a.png", "l", "ready", None, 1, 0.0)
    [entry], _ = conversation_entries([stored], {}, words=EN, documents=[read])
    assert "of a.png it was given the text that was recognised in it" in unescape(text_of(entry))
    assert 'src="./files/f1"' in unescape(text_of(entry))
    assert "p-doc-ready" in unescape(text_of(entry))
    [entry], _ = conversation_entries([stored], {}, words=ZH, documents=[read])
    assert "模型看不到图片：对于 a.png，交给它的是从中识别出的文字。" in unescape(text_of(entry))
    none = {"key": "document_no_text", "message": "", "hint": "", "details": {"name": "a.png"}}
    empty = DocumentRecord("d", "o", "c", "f1", "a.png", None, "failed", none, None, 0.0)
    [entry], _ = conversation_entries([stored], {}, words=EN, documents=[empty])
    assert "in a.png no text was recognised: it knows the name alone" in unescape(text_of(entry))
    assert "holds no text" not in unescape(text_of(entry))  # it is said once
    [entry], _ = conversation_entries([stored], {}, words=EN)
    assert "p-note" not in unescape(text_of(entry))


def test_pictures_and_sounds_of_a_question_are_shown_from_the_store() -> None:
    items = [
        ContentItem(image="/files/p"),
        ContentItem(audio="/files/s"),
        ContentItem(image="http://evil.example/x.png"),
    ]
    [entry], _ = conversation_entries([turn("q", "user", (Message("user", items),))], {}, words=EN)
    text = text_of(entry)
    assert '<img src="./files/p"' in text
    assert '<audio controls preload="metadata" src="./files/s"' in text
    assert "evil" not in text


def test_a_very_long_question_is_cut_and_says_how_long_it_is() -> None:
    [entry], _ = conversation_entries([question("x" * 1_000_000)], {}, words=EN)
    assert len(text_of(entry)) < 30_000
    assert "1000000" in text_of(entry)
    assert "do-edit" not in text_of(entry)


def test_thinking_is_open_while_it_lasts_and_closed_with_its_time_after() -> None:
    thinking = reply_of((0, START), (0.5, ReasoningDelta("Let me <b>see</b>.")))
    [bubble] = entries_of(thinking)
    assert (title_of(bubble), bubble["metadata"]["status"]) == ("Thinking", "pending")
    assert "&lt;b>" in text_of(bubble)
    thought = reply_of((0, START), (0.5, ReasoningDelta("See.")), (3.6, TextDelta("So.")), (4, STOP), (4, OVER))
    bubble = entries_of(thought)[0]
    assert (title_of(bubble), bubble["metadata"]["status"]) == ("Thought for 3 s", "done")
    assert title_of(entries_of(thought, ZH)[0]) == "思考了 3 秒"


def test_a_call_shows_its_state_in_shape_and_words_with_what_went_in_and_came_back() -> None:
    running = reply_of((0, START), *call("a", 0), (0.1, MessageFinished("calls")), (0.1, ToolStarted("a")))
    [bubble] = entries_of(running)
    assert bubble["metadata"]["status"] == "pending"
    assert 'class="p-st p-run"' in bubble["metadata"]["title"]
    assert "running" in title_of(bubble)
    done = reply_of(
        (0, START),
        *call("a", 0),
        (0.1, MessageFinished("calls")),
        (0.1, ToolStarted("a")),
        (0.5, result("a")),
        (1, OVER),
    )
    bubble = entries_of(done)[0]
    assert bubble["metadata"]["status"] == "done"
    assert 'class="p-st p-ok"' in bubble["metadata"]["title"]
    assert "0&#46;4 s" in title_of(bubble)
    assert '```json\n{"expression": "1+1"}\n```' in text_of(bubble)
    assert "Result" in text_of(bubble)
    assert "```\n2\n```" in text_of(bubble)


def test_the_source_of_a_passage_stands_before_its_words_which_the_page_alone_cuts_off() -> None:
    text = "We pay for loss and damage by fire, lightning, explosion and burglary. " * 8
    found = {"text": text, "document": "policy.pdf", "document_id": "d", "page": 2, "chunk_id": 1, "score": 1.0}
    told = Message("function", "…", name="ask_documents", extra={"function_id": "a", "passages": [found]})
    reply = reply_of((0, START), *call("a", 0), (0.1, ToolStarted("a")), (0.5, ToolFinished("a", told)))
    shown = unescape(text_of(entries_of(reply)[0]))
    assert "policy.pdf, page 2</span><br><span>We pay for loss" in shown
    assert shown.index("…") - shown.index("We pay for loss") > 380  # beyond the two lines of it that are shown


def test_a_failed_call_says_why_in_its_title() -> None:
    failed = reply_of(
        (0, START), *call("a", 0), (0.1, ToolStarted("a")), (0.5, result("a", "no", failed="tool_timeout"))
    )
    bubble = entries_of(failed)[0]
    assert 'class="p-st p-bad"' in bubble["metadata"]["title"]
    assert "took too long" in title_of(bubble)
    assert "Failed" in text_of(bubble)


def test_hostile_names_arguments_and_results_stay_text() -> None:
    evil = "</code><style>x</style>\n```\n<img src=x>\n"
    reply = reply_of((0, START), *call("a", 0, evil, evil), (0.1, ToolStarted("a")), (0.5, result("a", evil)))
    bubble = entries_of(reply)[0]
    assert "<style" not in bubble["metadata"]["title"]
    assert "````" in text_of(bubble)


def test_calls_made_at_once_stand_under_one_bubble_in_order() -> None:
    events = [(0.0, START), *call("a", 0, "one"), *call("b", 0, "two"), (0.1, MessageFinished("calls"))]
    begun = [(0.2, ToolStarted("a")), (0.2, ToolStarted("b")), (0.7, result("b", failed="tool_failed"))]
    parent, *children = entries_of(reply_of(*events, *begun))
    assert title_of(parent) == "2 tools at once"
    assert parent["metadata"]["status"] == "pending"
    assert [child["metadata"]["parent_id"] for child in children[:2]] == [parent["metadata"]["id"]] * 2
    assert [re.sub(r" .*", "", title_of(child)) for child in children[:2]] == ["one", "two"]
    done = [*begun, (2.3, result("a"))]
    assert entries_of(reply_of(*events, *done))[0]["metadata"]["status"] == "pending"
    parent = entries_of(reply_of(*events, *done, (3, TextDelta("So."))))[0]
    assert title_of(parent) == "Used 2 tools, 2&#46;1 s, 1 failed"
    assert parent["metadata"]["status"] == "done"


FIRST = [*call("a", 0), (0.1, ToolStarted("a")), (0.5, result("a"))]
SECOND = [*call("b", 1), (1.1, ToolStarted("b")), (1.5, result("b"))]


def test_calls_made_one_after_another_stand_together_until_something_is_said() -> None:
    thought = (0.7, ReasoningDelta("And now the other."))
    parent, *inside = entries_of(reply_of((0, START), *FIRST, thought, *SECOND, (2, TextDelta("So."))))
    assert title_of(parent) == "Used 2 tools, 0&#46;8 s"
    assert [entry["metadata"]["parent_id"] for entry in inside[:3]] == [parent["metadata"]["id"]] * 3
    assert title_of(inside[1]) == "Thought"
    apart = entries_of(reply_of((0, START), *FIRST, (0.7, TextDelta("First.")), *SECOND, (2, OVER)))
    assert not [entry for entry in apart if "parent_id" in entry.get("metadata", {})]


def test_a_row_of_calls_that_goes_on_stays_open() -> None:
    begun = [*call("b", 1), (1.1, ToolStarted("b"))]
    parent = entries_of(reply_of((0, START), *FIRST, *begun))[0]
    assert (title_of(parent), parent["metadata"]["status"]) == ("Using 2 tools", "pending")
    thinking = entries_of(reply_of((0, START), *FIRST, *SECOND, (1.7, ReasoningDelta("Hm"))))[0]
    assert thinking["metadata"]["status"] == "pending"


def found_reply(text: str) -> Reply:
    return reply_of(
        (0, START), *call("a", 0, "ask_documents", '{"query": "deductible"}'), (0.1, ToolStarted("a")),
        (0.2, result("a", "…", passages=[PASSAGE])), (0.3, START), (0.4, TextDelta(text)), (0.5, STOP), (0.5, OVER),
    )  # fmt: skip


def test_a_mark_leads_to_its_passage_and_names_file_and_page() -> None:
    entries = entries_of(found_reply("You pay 300 dollars [1]. Or not [2]."))
    href = "#cite-r&#45;1&#95;x-1"
    text = text_of(entries[1])
    assert f'dollars\u2060<sup><a href="{href}" class="cite" title="policy&#46;pdf, page 2">1</a></sup>.' in text
    assert "[2]" not in text
    assert href in text_of(entries[0])


def test_marks_in_a_reply_without_passages_are_text() -> None:
    entries = entries_of(reply_of((0, START), (0.1, TextDelta("See [1].")), (0.2, STOP), (0.2, OVER)))
    assert text_of(entries[0]) == "See [1]."


def test_a_failed_run_speaks_where_the_reply_would_be_and_keeps_what_came() -> None:
    error = {"key": "model_unavailable", "message": "ConnectError(111)", "hint": "", "details": {}}
    entries = entries_of(reply_of((0, START), (0.1, TextDelta("Well")), (0.3, RunFinished("error", error))))
    texts = [text_of(entry) for entry in entries]
    assert texts[0] == "Well"
    assert "The model server did not answer" in texts[1]
    assert "ConnectError" not in "".join(texts)
    assert "#do-regenerate-" in texts[2]


@pytest.mark.parametrize(("status", "note"), [("stopped", "You stopped"), ("interrupted", "was interrupted")])
def test_a_reply_that_was_cut_off_can_be_continued_or_written_anew(status: Any, note: str) -> None:
    foot = text_of(entries_of(reply_of((0, START), (0.1, TextDelta("Half a")), (0.3, RunFinished(status))))[-1])
    assert note in foot
    assert "#do-continue-" in foot
    assert "#do-regenerate-" in foot


def test_where_nothing_of_a_reply_came_there_is_nothing_to_continue() -> None:
    error = {"key": "model_unreachable", "message": "", "hint": "", "details": {"host": "h"}}
    looked_up = [*call("a", 0.1, "ask_documents"), (0.2, result("a", "1 passage"))]
    for begun in ([(0.1, TextDelta(" "))], [(0.1, ReasoningDelta("Hm"))], looked_up):
        foot = text_of(entries_of(reply_of((0, START), *begun, (0.3, RunFinished("error", error))))[-1])
        assert "#do-continue-" not in foot
        assert "#do-regenerate-" in foot
    worked = [*call("a", 0.1), (0.1, ToolStarted("a")), (0.2, result("a"))]
    foot = text_of(entries_of(reply_of((0, START), *worked, (0.3, RunFinished("error", error))))[-1])
    assert "#do-continue-" in foot


def test_of_a_reply_without_a_word_nothing_is_said_to_be_kept() -> None:
    foot = text_of(entries_of(reply_of((0, START), (0.3, RunFinished("interrupted"))))[-1])
    assert "Parlour closed before this reply had any words" in foot
    assert "kept" not in foot


def test_every_reply_can_be_written_anew_and_begin_a_conversation_of_its_own() -> None:
    thread = [question(), turn("r1", "assistant"), question(message_id="q2"), turn("r2", "assistant")]
    replies = {name: reply_of((0, START), (0.1, TextDelta("x")), (0.3, OVER)) for name in ("r1", "r2")}
    entries, owners = conversation_entries(thread, replies, words=EN)
    by_owner = {owner: text_of(entry) for entry, owner in zip(entries, owners, strict=True)}
    for act in ("regenerate", "fork", "speak"):
        assert [f"#do-{act}-{one}" in by_owner[one] for one in ("r1", "r2")] == [True, True]


def test_a_reply_that_has_not_begun_shows_that_it_is_on_its_way() -> None:
    assert "p-wait" in text_of(entries_of(reply_of())[0])
    assert "p-wait" not in json.dumps(entries_of(reply_of((0, START), (0.1, TextDelta("x")))))


def test_an_empty_reply_says_so() -> None:
    assert "empty reply" in text_of(entries_of(reply_of((0, START), (0.2, STOP), (0.2, OVER)))[0])


def test_a_reply_of_which_only_the_text_is_known_is_shown() -> None:
    stored = turn("r", "assistant", (Message("assistant", "Kept <b>text</b>."),))
    entries, _ = conversation_entries([question(), stored], {}, words=EN)
    assert text_of(entries[1]) == "Kept &lt;b>text&lt;/b>."


def long_thread(turns: int) -> list[StoredMessage]:
    return [question(f"Question {n}", f"q{n}") if n % 2 == 0 else turn(f"r{n}", "assistant") for n in range(turns)]


def test_a_long_conversation_shows_its_end_and_offers_the_rest() -> None:
    entries, owners = conversation_entries(long_thread(200), {}, words=EN, window=40)
    assert "#do-earlier" in text_of(entries[0])
    assert owners[0] == ""
    assert owners[1] == "q160"
    assert len(entries) == len(owners)


def test_the_window_begins_at_its_anchor_however_the_conversation_grows() -> None:
    for turns in (100, 101, 120):
        _, owners = conversation_entries(long_thread(turns), {}, words=EN, window=40, anchor="q60")
        assert owners[1] == "q60"


def test_finished_messages_are_rendered_once() -> None:
    rendered = Rendered()
    thread = [question(), turn("r1", "assistant"), question(message_id="q2"), turn("r2", "assistant")]
    done = reply_of((0, START), (0.1, TextDelta("x")), (0.3, OVER))
    live = reply_of((0, START), (0.1, TextDelta("y")))
    first, _ = conversation_entries(thread, {"r1": done, "r2": live}, words=EN, rendered=rendered)
    live.apply(LoggedEvent(3, 0.2, TextDelta(" and z")))
    second, _ = conversation_entries(thread, {"r1": done, "r2": live}, words=EN, rendered=rendered)
    assert all(one is other for one, other in zip(first[:4], second[:4], strict=True))
    assert text_of(second[4]) == "y and z"
    chinese, _ = conversation_entries(thread, {"r1": done, "r2": live}, words=ZH, rendered=rendered)
    assert "编辑" in text_of(chinese[0])


def test_what_is_kept_of_rendered_messages_does_not_grow_for_ever() -> None:
    rendered = Rendered(most=3)
    for n in range(10):
        conversation_entries([question(message_id=f"q{n}")], {}, words=EN, rendered=rendered)
    kept = [rendered.get((f"q{n}", "en", (), "", False, ())) is not None for n in range(10)]
    assert kept == [False] * 7 + [True] * 3


def test_an_article_says_which_chapter_is_being_written() -> None:
    plan = (0.0, ReasoningDelta("# Harbours\n\n1. Stone\n2. Ships\n3. Storms"))
    begun = ((0.0, START), plan, (0.1, START), (0.2, TextDelta("# Harbours\n\n## Stone\n\nGranite.\n\n## Ships\n\n")))
    assert "Writing chapter 2 of 3" in text_of(entries_of(reply_of(*begun))[-1])
    assert "正在写第 2 章，共 3 章" in text_of(entries_of(reply_of(*begun), ZH)[-1])
    assert "chapter" not in text_of(entries_of(reply_of(*begun, (0.3, STOP), (0.3, OVER)))[-1])


@pytest.mark.parametrize("text", ["A word.", "## Other\n\nA heading of no plan.", "Stone and ## Stone"])
def test_a_text_that_follows_no_plan_has_no_chapters(text: str) -> None:
    running = reply_of((0.0, START), (0.0, ReasoningDelta("1. Stone\n2. Ships")), (0.1, TextDelta(text)))
    assert "p-wait" not in text_of(entries_of(running)[-1])
