"""Documents that came with a question: how far their reading is, what can be done, what a reply says of them."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from core.messages.content import ContentItem
from core.messages.events import CallStarted, MessageStarted, TextDelta, ToolFinished, ToolStarted
from core.messages.message import Message
from core.rag.document import ReadingProgress
from core.rag.grown.makers import HeldUp
from core.runs.log import LoggedEvent, RunFinished
from core.runs.reply import Reply
from core.storage.base import DocumentRecord, StoredMessage
from webui.render.conversation import Rendered, conversation_entries
from webui.render.documents import held_as
from webui.words import Words

EN, ZH = Words("en"), Words("zh")
LONG = DocumentRecord("d1", "o", "c", "f1", "long.pdf", None, "reading", None, None, 0.0)
HALF = ReadingProgress("hash", pages=12, total=40, scanned=3, tables=1, chunks=34, seconds=12.4)
FACTS = {"pages": 40, "total": 40, "scanned": 1, "tables": 2, "chunks": 97, "seconds": 31.2}


def turn(name: str, role: Any, *parts: Message) -> StoredMessage:
    return StoredMessage(name, "c", None, role, parts, None, "complete", 0.0)


def question(*names: str) -> StoredMessage:
    files = [{"id": f"f{n}", "name": name} for n, name in enumerate(names, 1)]
    items = [ContentItem(text="What is in it?"), *(ContentItem(file=f"/files/{file['id']}") for file in files)]
    return turn("q1", "user", Message("user", items, extra={"files": files}))


def card(document: DocumentRecord, progress: ReadingProgress | None = None, words: Words = EN) -> str:
    readings = {document.id: progress} if progress else {}
    [entry], _ = conversation_entries(
        [question(document.name)], {}, words=words, documents=[document], readings=readings
    )
    return unescape(entry["content"][0]["text"])


def reply_of(*events: Any) -> Reply:
    return Reply(LoggedEvent(seq, float(seq), event) for seq, event in enumerate(events, start=1))


def failed(key: str, name: str = "long.pdf") -> DocumentRecord:
    return replace(LONG, name=name, status="failed", error={"key": key, "details": {"name": name}})


def test_a_long_sheet_says_at_which_row_of_how_many_it_is() -> None:
    sheet = replace(LONG, name="sales.xlsx")
    come = ReadingProgress("hash", pages=1, total=2, tables=1, chunks=900, seconds=4.0, row=250_000, rows=1_000_000)
    text = card(sheet, come)
    assert "sheet 1 of 2 · row 250,000 of 1,000,000 (25%) · 1 table" in text
    assert "p-bar p-b60" in text, "the first of two sheets is read, and a quarter of the second"
    lines = card(replace(sheet, name="sales.csv"), replace(come, pages=0, total=None))
    assert "row 250,000 of 1,000,000 (25%)" in lines
    assert "p-bar p-b25" in lines
    assert "第 250,000 行，共 1,000,000 行（25%）" in card(sheet, come, ZH)


def test_a_document_that_is_read_says_how_far_it_is_and_can_be_called_off() -> None:
    text = card(LONG, HALF)
    assert "page 12 of 40 · text recognised on 3 pages · 1 table · 34 passages · 12 s" in text
    assert 'href="#do-cancel-d1" title="Stop reading long.pdf"' in text
    assert "p-bar p-b30" in text
    assert "第 12 页，共 40 页 · 识别了 3 页文字 · 1 个表格 · 34 个段落 · 12 秒" in card(LONG, HALF, ZH)
    assert "page 1 of 40" in card(LONG, replace(HALF, pages=0))  # it is at the first one
    assert "queued" in card(LONG)


def test_a_document_that_was_stopped_says_how_far_and_its_rest_can_be_read_or_it_be_let_go() -> None:
    facts = {**FACTS, "pages": 12, "chunks": 30}
    stopped = replace(LONG, status="cancelled", library_id="hash", facts=facts)
    text = card(stopped)
    assert "stopped after 12 of 40 pages · text recognised on 1 page · 2 tables · 30 passages" in text
    assert 'href="#do-reread-d1" title="Go on reading long.pdf where it was stopped">Read the rest</a>' in text
    assert 'href="#do-forget-d1" title="Remove long.pdf from answers">Remove</a>' in text
    chinese = card(stopped, words=ZH)
    assert "已停止，读了 12 页，共 40 页" in chinese
    assert ">读完其余部分</a>" in chinese
    assert ">移除</a>" in chinese
    assert "stopped early" in card(replace(stopped, name="a.md", facts={"pages": 0, "total": None}))
    assert "stopped after 2 of 9 slides" in card(replace(stopped, name="a.pptx", facts={"pages": 2, "total": 9}))
    in_vain = card(replace(stopped, error={"key": "document_broken", "details": {"name": "long.pdf"}}))
    assert "stopped after 12 of 40 pages" in in_vain
    assert "long.pdf is damaged and cannot be read." in in_vain


def test_slides_and_sheets_are_called_so() -> None:
    assert "slide 12 of 40" in card(replace(LONG, name="talk.pptx"), HALF)
    assert "sheet 12 of 40" in card(replace(LONG, name="sums.xlsx"), HALF)
    called_otherwise = replace(LONG, name="sums.csv", status="ready", library_id="hash", pages=2, facts=None)
    assert "2 sheets" in card(called_otherwise)


def test_a_document_that_was_read_tells_what_was_found() -> None:
    ready = replace(LONG, status="ready", library_id="hash", pages=40, facts=FACTS)
    assert "40 pages · text recognised on 1 page · 2 tables · 97 passages · 31 s" in card(ready)
    assert "#do-cancel-" not in card(ready)
    known = card(replace(ready, facts={**FACTS, "scanned": 0, "tables": 0, "known": True}))
    assert "40 pages · 97 passages · read before" in known
    assert "3 pages" in card(replace(ready, pages=3, facts=None))  # of an earlier version


@pytest.mark.parametrize(
    ("document", "said", "act"),
    [
        (failed("document_password_asked"), "long.pdf is protected by a password.", "#do-unlock-d1"),
        (failed("document_password_wrong"), "That is not the password of long.pdf.", "#do-unlock-d1"),
        (failed("document_broken"), "long.pdf is damaged and cannot be read.", "#do-reread-d1"),
        (failed("document_locked", "a.xlsx"), "Save a copy without the password", "#do-reread-d1"),
        (replace(LONG, status="failed", error={}), "could not be read", "#do-reread-d1"),
        (replace(LONG, status="cancelled"), "reading was cancelled", "#do-reread-d1"),
        (replace(LONG, status="cancelled", facts={**FACTS, "pages": 12}), "cancelled · page 12 of 40", "#do-reread-d1"),
    ],
)
def test_what_went_wrong_is_a_sentence_with_what_can_be_done(document: DocumentRecord, said: str, act: str) -> None:
    text = card(document)
    assert said in text
    assert act in text
    acts = list(dict.fromkeys(re.findall(r"#do-[a-z]+", text)))
    assert acts[1:] == ["#do-edit", "#do-copy", "#do-fork"]  # that, and what is done with the question


@pytest.mark.parametrize("key", ["document_password_asked", "document_password_wrong"])
def test_the_name_of_a_file_that_asks_for_its_password_asks_for_it_too(key: str) -> None:
    text = card(failed(key))
    name = '<a class="p-do p-chip" role="button" href="#do-unlock-d1" title="Enter the password of long.pdf">'
    assert f'{name}<span class="p-name">long.pdf</span></a>' in text
    assert "?download=1" not in text
    assert '<a class="p-chip" href="./files/f1?download=1"' in card(failed("document_broken"))


@pytest.mark.parametrize("key", ["document_empty", "document_protected", "fetch_private"])
def test_what_would_end_the_same_way_is_not_offered_again(key: str) -> None:
    assert "#do-reread" not in card(failed(key))


def test_a_page_of_the_web_says_that_it_is_being_fetched_and_can_be_called_off() -> None:
    said = card(replace(LONG, name="birds.example · heron"), ReadingProgress("", fetching=True))
    assert "downloading" in said
    assert "#do-cancel-d1" in said
    refused = {"key": "fetch_refused", "details": {"host": "birds.example", "status": 403}}
    said = card(replace(LONG, status="failed", error=refused))
    assert "birds.example refuses to serve this page (status 403)." in said
    assert "#do-reread-d1" in said


def test_a_document_that_waits_for_its_vectors_says_so() -> None:
    ready = replace(LONG, status="ready", library_id="hash", facts=FACTS)

    def told(done: int, words: Words = EN) -> str:
        preparing = {"d1": (done, 5_000)}
        [entry], _ = conversation_entries(
            [question("long.pdf")], {}, words=words, documents=[ready], preparing=preparing
        )
        return unescape(entry["content"][0]["text"])

    assert "31 s · search by meaning is being prepared" in told(0)
    assert "31 s · 1,200 of 5,000 passages searchable by meaning" in told(1_200)
    assert "语义搜索已就绪 1,200／5,000 个段落" in told(1_200, Words("zh"))
    assert "being prepared" not in card(ready)


@pytest.mark.parametrize(
    ("why", "keeps", "said", "act"),
    [
        ("failed", False, "could not be prepared; it is tried again by itself", "#do-reread-d1"),
        ("nobody", False, "search by meaning waits for a worker", ""),
        ("nobody", True, "no worker runs, start one with PARLOUR_ROLE=worker", ""),
        ("differs", False, "waits for an administrator", ""),
        ("differs", True, "Parlours are set to different embedding models", ""),
    ],
)
def test_vectors_that_nobody_makes_are_told_with_what_can_be_done(
    why: HeldUp, keeps: bool, said: str, act: str
) -> None:
    ready = replace(LONG, status="ready", library_id="hash", facts=FACTS)
    asked, made = [question("long.pdf")], {"d1": (3, 5_000)}
    for words in (EN, Words("zh")):
        held_up = held_as(why, keeps=keeps)
        [entry], _ = conversation_entries(asked, {}, words=words, documents=[ready], preparing=made, held_up=held_up)
        text = unescape(entry["content"][0]["text"])
        assert (said in text) is (words is EN)
        assert ("#do-reread-d1" in text) is bool(act)
    [entry], _ = conversation_entries(asked, {}, words=EN, documents=[ready], held_up="failed")
    assert "by meaning" not in entry["content"][0]["text"], "all are made of this one"


def test_names_and_errors_of_documents_are_no_markup() -> None:
    evil = replace(LONG, name="<b>[x](#do-delete-1)</b>.pdf")
    [entry], _ = conversation_entries([question(evil.name)], {}, words=EN, documents=[evil], readings={"d1": HALF})
    text = entry["content"][0]["text"]
    assert "<b>" not in text
    assert "[x](" not in text


def test_only_the_question_whose_document_moves_is_drawn_anew() -> None:
    other = replace(LONG, id="d2", file_id="f9")
    still = turn("q0", "user", Message("user", "Hello"))
    rendered = Rendered()

    def drawn(progress: ReadingProgress) -> list[Any]:
        readings = {"d1": progress, "d2": progress}
        thread = [still, question("long.pdf")]
        entries, _ = conversation_entries(
            thread, {}, words=EN, documents=[LONG, other], readings=readings, rendered=rendered
        )
        return entries

    first, again = drawn(HALF), drawn(replace(HALF, seconds=12.1))
    moved = drawn(replace(HALF, pages=13))
    assert first[1] is again[1]
    assert moved[0] is first[0]
    assert moved[1] is not first[1]
    assert "page 13 of 40" in moved[1]["content"][0]["text"]


def waiting(*documents: DocumentRecord) -> str:
    asked = question(*(document.name for document in documents))
    reply = reply_of(MessageStarted())
    entries, _ = conversation_entries([asked, turn("r1", "assistant")], {"r1": reply}, words=EN, documents=documents)
    return unescape(entries[-1]["content"][0]["text"])


def test_a_reply_that_waits_says_so_and_need_not_wait_once_something_can_be_searched() -> None:
    second = replace(LONG, id="d2", file_id="f2", name="more.pdf")
    assert "Waiting until long.pdf is read" in waiting(LONG)
    assert "#do-asknow" not in waiting(LONG)
    assert "Waiting until 2 documents are read" in waiting(LONG, second)
    assert 'href="#do-asknow-r1">Ask now with what is ready' in waiting(replace(LONG, library_id="hash"))
    ready = replace(second, status="ready", library_id="other")
    assert "Waiting until long.pdf is read" in waiting(LONG, ready)
    assert "#do-asknow-r1" in waiting(LONG, ready)
    assert "Waiting until" not in waiting(ready)


def test_an_answer_says_once_what_it_did_not_know() -> None:
    missing = [
        {"name": "cut.pdf", "status": "failed", "pages": 0, "total": None},
        {"name": "off.pdf", "status": "cancelled", "pages": 0, "total": None},
        {"name": "long.pdf", "status": "reading", "pages": 12, "total": 40},
        {"name": "notes.txt", "status": "reading", "pages": 0, "total": None},
        {"name": "half.pdf", "status": "cancelled", "found": True, "pages": 9, "total": 40},
    ]
    events: list[Any] = [MessageStarted()]
    for call in ("a", "b"):
        result = Message("function", "…", name="ask_documents", extra={"function_id": call, "left_out": missing})
        events += [CallStarted(call, "ask_documents"), ToolStarted(call), ToolFinished(call, result)]
    reply = reply_of(*events, TextDelta("Herons."), RunFinished("complete"))
    entries, _ = conversation_entries([question(), turn("r1", "assistant")], {"r1": reply}, words=EN)
    text = unescape(str([entry["content"][0]["text"] for entry in entries]))
    assert text.count("Answered without cut.pdf, which could not be read.") == 1
    assert "Answered without off.pdf: reading it was cancelled." in text
    assert "long.pdf was still being read: only 12 of its 40 pages were available." in text
    assert "notes.txt was not read completely: only its beginning was available." in text
    assert "Reading half.pdf was stopped: only 9 of its 40 pages were available." in text
    assert text.index("Answered without") < text.index("Herons.")


def reply_after(**extra: Any) -> str:
    """What a reply shows whose search says this besides its passages."""
    result = Message("function", "…", name="ask_documents", extra={"function_id": "a", **extra})
    call = (CallStarted("a", "ask_documents"), ToolStarted("a"), ToolFinished("a", result))
    reply = reply_of(MessageStarted(), *call, TextDelta("Herons."), RunFinished("complete"))
    entries, _ = conversation_entries([question(), turn("r1", "assistant")], {"r1": reply}, words=EN)
    return unescape(str([entry["content"][0]["text"] for entry in entries]))


def test_an_answer_says_what_was_read_of_long_documents() -> None:
    text = reply_after(
        read=[
            {"name": "topology.pdf", "of": "page", "first": 1, "last": 2, "total": 117},
            {"name": "talk.pptx", "of": "slide", "first": 1, "last": 1, "total": 20},
            {"name": "notes.md", "of": "passage", "first": 1, "last": 5, "total": 300},
        ]
    )
    assert "Read for this answer: pages 1–2 of 117 of topology.pdf." in text
    assert "Read for this answer: slide 1 of 20 of talk.pptx." in text
    assert "Read for this answer: the first 5 of 300 passages of notes.md." in text
    assert text.index("Read for this answer") < text.index("Herons.")


def test_an_answer_says_of_which_documents_nothing_was_read() -> None:
    bare = [{"name": f"{name}.pdf", "of": "passage", "first": 0, "last": 0, "total": 9} for name in "abcde"]
    assert "Not read for this answer: a.pdf, b.pdf." in reply_after(read=bare[:2])
    assert "Not read for this answer: a.pdf, b.pdf, c.pdf, and 2 more." in reply_after(read=bare)


def test_an_answer_says_once_that_it_rests_on_the_files_alone_that_its_question_names() -> None:
    text = reply_after(only=["notes.md", "report.pdf"])
    assert text.count("Searched in notes.md, report.pdf alone, which the question is about.") == 1
    assert text.index("Searched in notes.md") < text.index("Herons.")
    assert "which the question is about" not in reply_after()


def test_an_answer_says_that_search_by_meaning_was_not_finished() -> None:
    text = reply_after(left_out=[{"name": "notes.md", "status": "preparing", "pages": 0, "total": 71}])
    assert "Search by meaning is not ready yet: it covered 0 of the 71 passages of notes.md." in text


@pytest.mark.parametrize(("words", "said"), [(EN, "14 invisible characters removed"), (ZH, "已去除 14 个不可见字符")])
def test_what_was_hidden_in_a_document_is_told_beside_it(words: Words, said: str) -> None:
    ready = replace(LONG, status="ready", library_id="hash", facts={**FACTS, "invisible": 14})
    assert said in card(ready, words=words)
    assert said in card(LONG, replace(HALF, invisible=14), words)
    assert "invisible" not in card(replace(ready, facts=FACTS))
