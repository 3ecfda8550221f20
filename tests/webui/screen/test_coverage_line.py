"""How much of the documents a reply rests on stands under it, and what was not read with the reason."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from core.messages.events import (
    CallDelta,
    CallStarted,
    MessageFinished,
    MessageStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Message
from core.rag.coverage import Coverage, DocumentCoverage
from core.runs.log import LoggedEvent, RunFinished, ToolProgress
from core.runs.reply import Reply
from core.storage.base import StoredMessage
from webui.render.reply import reply_entries
from webui.words import Words

ALL = Coverage((DocumentCoverage("a.pdf", "page", 115, 117, 2, ((1, 115),)),))


def shown(coverage: Coverage | None, lang: str = "en") -> str:
    extra: dict[str, Any] = {"function_id": "c"}
    if coverage is not None:
        extra["coverage"] = coverage.as_dict()
    result = Message("function", "Notes.", name="read_documents", extra=extra)
    events = [
        MessageStarted(),
        CallStarted("c", "read_documents"),
        CallDelta("c", '{"question": "?"}'),
        MessageFinished("calls"),
        ToolStarted("c"),
        ToolFinished("c", result),
        MessageStarted(),
        TextDelta("So it is."),
        MessageFinished("stop"),
        RunFinished("complete"),
    ]
    reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1))
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "complete", 0.0)
    markup = str(reply_entries(turn, reply, Words(lang), last=True)[-1]["content"])
    assert "<b>" not in markup
    return unescape(markup)


def test_all_that_was_read_is_said_quietly_with_what_holds_no_text() -> None:
    line = shown(ALL)
    assert "Read 115 of 117 pages; 2 hold no text" in line
    assert line.count("p-full") == 6
    assert "p-covered p-doubt" not in line
    assert "p-uncovered" not in line
    assert "已读 115 / 117 页" in shown(ALL, "zh")


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("failed", "because the model failed"),
        ("cost_limit", "because the cost limit was reached"),
        ("too_long", "because there is so much"),
        ("enough", "because you wanted the answer at once"),
        ("", "Not read:"),
    ],
)
def test_what_was_not_read_is_named_with_the_reason(why: Any, reason: str) -> None:
    part = DocumentCoverage("<b>a.pdf", "page", 100, 117, 0, ((1, 40), (58, 117)), ((41, 56), (57, 57)))
    line = shown(Coverage((part,), why=why))
    assert "Read 100 of 117 pages" in line
    assert "p-covered p-doubt" in line
    assert line.count("p-full") == 5
    assert reason in line
    assert "pages 41–56 of <b>a.pdf, page 57 of <b>a.pdf" in line


def test_of_a_count_from_passages_it_is_said_that_it_may_not_be_all() -> None:
    searched = Coverage(
        (DocumentCoverage("a.pdf", "passage", 4, 9), DocumentCoverage("", "passage", 0, 60)), why="searched"
    )
    line = shown(searched)
    assert "Read 4 of 69 passages" in line
    assert "p-covered p-doubt" in line
    assert "what is counted or listed may not be all" in line
    assert "计数或列举可能不完整" in shown(searched, "zh")


def test_a_file_that_was_not_read_at_all_is_named_too() -> None:
    unread = ({"name": "locked.pdf", "status": "failed"},)
    line = shown(Coverage((DocumentCoverage("a.pdf", "page", 2, 2, 0, ((1, 2),)),), unread=unread))
    assert "Read 2 of 2 pages" in line
    assert "Not read: locked.pdf." in line


def test_a_part_is_not_called_the_whole() -> None:
    line = shown(Coverage((DocumentCoverage("a.pdf", "page", 3, 117, 0, ((7, 9),)),), part=True))
    assert "Read the part asked about: 3 of 117 pages" in line
    assert "p-covered p-doubt" not in line


def test_a_reply_whose_documents_were_only_searched_says_nothing_of_it() -> None:
    assert "p-covered" not in shown(None)


def test_while_all_is_read_the_answer_can_be_had_with_what_is_read() -> None:
    def running(name: str) -> str:
        events = [
            MessageStarted(),
            CallStarted("c", name),
            CallDelta("c", '{"question": "?"}'),
            MessageFinished("calls"),
            ToolStarted("c"),
            ToolProgress("c", "7 / 40 pages", 1.0, 6.0),
        ]
        reply = Reply(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(events, 1))
        turn = StoredMessage("m", "c", "q", "assistant", (), "r", "running", 0.0)
        return unescape(str(reply_entries(turn, reply, Words("en"), last=True)))

    assert "#do-asknow-m" in running("read_documents")
    assert "Answer with what is read" in running("read_documents")
    assert "#do-asknow-m" not in running("calculator")


def test_a_damaged_record_is_left_aside() -> None:
    result = Message("function", "x", name="read_documents", extra={"coverage": {"documents": [{"name": 1}]}})
    reply = Reply([LoggedEvent(1, 0.0, ToolFinished("c", result)), LoggedEvent(2, 0.0, RunFinished("complete"))])
    turn = StoredMessage("m", "c", "q", "assistant", (), "r", "complete", 0.0)
    assert "p-covered" not in str(reply_entries(turn, reply, Words("en"), last=True))


def test_a_document_that_is_read_into_the_library_in_part_is_named_with_its_rest() -> None:
    begun = {"name": "big.txt", "status": "reading", "begun": True}
    half = Coverage((DocumentCoverage("big.txt", "passage", 20, 20),), unread=(begun,))
    assert "Not read: the rest of big.txt." in shown(half)
    assert "big.txt 的其余部分" in shown(half, "zh")
    assert "p-doubt" in shown(half)


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("failed", "the model failed to put its notes together"),
        ("cost_limit", "the cost limit was reached before"),
        ("too_long", "the notes stayed too long"),
    ],
)
def test_notes_that_were_cut_and_not_put_together_are_told_beside_the_counts(why: Any, reason: str) -> None:
    line = shown(replace(ALL, shortened=why))
    assert "Read 115 of 117 pages; 2 hold no text; notes on it were cut short" in line
    assert "p-covered p-doubt" in line
    assert f"Details may be missing: {reason}" in line
    assert "可能缺少细节" in shown(replace(ALL, shortened=why), "zh")


def test_a_record_that_was_kept_before_notes_could_be_said_to_be_cut_is_read() -> None:
    kept = ALL.as_dict()
    del kept["shortened"]
    assert Coverage.from_dict(kept) == ALL
