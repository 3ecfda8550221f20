"""A turn is handed out whatever stands in it: results without calls, calls without results, bytes in messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.export.html_page import HtmlWriter
from core.export.markdown import MarkdownWriter
from core.export.redaction import Redaction
from core.export.schema import ExportedTurn
from core.export.shared_turns import SharedTurns
from core.export.turns import turn_of
from core.messages.content import ContentItem
from core.messages.events import Event, MessageFinished, MessageStarted, TextDelta
from core.messages.message import Message
from core.rag.claims.omission import LeftOut
from core.rag.claims.rules import Reason
from core.runs.log import (
    Checked,
    ClaimsChecked,
    ClaimsJudged,
    Judged,
    LoggedEvent,
    MoreSaid,
    NestedEvent,
    RunEvent,
    Uncounted,
)
from core.runs.rows import rows_of
from core.storage.base import AgentThought, RunRecord, StoredMessage
from core.storage.whole_conversations import WholeTurn
from tests.tries import tries

PASSAGE = {"text": "t", "score": 1, "document": "d", "document_id": "x", "page": None, "heading": "", "chunk_id": 1}
MEDIA = [
    ContentItem(video=["data:a/b;base64,AAAA", "http://x/y"]),
    ContentItem(audio={"data": "A" * 400, "format": "wav"}),
    ContentItem(file="data:,hi"),
    ContentItem(text=""),
]


def message(kind: str, tie: str | None, found: bool, failed: str) -> Message:
    extra: dict[str, Any] = {} if tie is None else {"function_id": tie}
    extra |= {"passages": [PASSAGE, {**PASSAGE, "number": 1}, {**PASSAGE, "chunk_id": 2}]} if found else {}
    extra |= {"failed": failed} if failed else {}
    call: Any = {"name": "t", "arguments": json.dumps(["x", {"a": None}])}
    made = {
        "call": lambda: Message("assistant", "", function_call=call, extra=extra),
        "result": lambda: Message("function", [ContentItem(text="r"), *MEDIA], name="t", extra=extra),
        "odd": lambda: Message("function", "", name="t", function_call=call),
        "media": lambda: Message("assistant", MEDIA),
        "said": lambda: Message("assistant", "hello [1] [2] [3]", reasoning_content="hm"),
    }
    return made[kind]()


MESSAGES = st.builds(
    message,
    st.sampled_from(["call", "result", "odd", "media", "said"]),
    st.sampled_from([None, "a", "b", ""]),
    st.booleans(),
    st.sampled_from(["", "stopped", "refused", "tool_timeout"]),
)


@settings(max_examples=tries(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(MESSAGES, max_size=6),
    st.sampled_from(["running", "complete", "stopped", "error"]),
    st.sampled_from(["user", "assistant"]),
)
def test_any_turn_can_be_handed_out_and_read_back(parts: list[Message], status: Any, role: Any) -> None:
    stored = StoredMessage("m", "c", None, role, tuple(parts), None, status, 1.0)
    turn = turn_of(WholeTurn(stored), Redaction(), shown=True)
    text = turn.model_dump_json()
    assert ExportedTurn.model_validate_json(text) == turn
    assert "base64" not in text
    calls = [one for one in parts if one.role == "assistant" and one.function_call]
    assert len(turn.calls) == len(calls)
    assert MarkdownWriter({}).turn(turn).count("<summary>t · ") == len(calls)


def test_what_was_done_in_a_call_is_tied_to_it_whatever_the_call_is_named() -> None:
    name = "sk-abcdefgh12345678\ud800"
    call: Any = {"name": "ada", "arguments": "{}"}
    parts = (Message("assistant", "", function_call=call, extra={"function_id": name}),)
    inside: list[Event] = [MessageStarted(), TextDelta("I do."), MessageFinished("stop")]
    log = [LoggedEvent(seq, 0.1, NestedEvent((name,), event)) for seq, event in enumerate(inside, start=1)]
    stored = StoredMessage("m", "c", None, "assistant", parts, None, "complete", 1.0)
    turn = turn_of(WholeTurn(stored, within=tuple(rows_of(log))), Redaction(), shown=True)
    assert turn.inner[0].calls == (turn.calls[0].id,)
    assert ExportedTurn.model_validate_json(turn.model_dump_json()) == turn
    assert "I do." in MarkdownWriter({}).turn(turn)


def test_marks_that_only_the_check_of_claims_found_go_along() -> None:
    said = "Fire is insured. Water is, too. And theft [2]."
    call: Any = {"name": "ask_documents", "arguments": "{}"}
    places = [PASSAGE, {**PASSAGE, "chunk_id": 2}]
    parts = (
        Message("assistant", "", function_call=call, extra={"function_id": "a"}),
        Message("function", "[1] t", name="ask_documents", extra={"function_id": "a", "passages": places}),
        Message("assistant", said),
    )
    claims = (
        Checked(1, said.index(" Water"), "supported", (1,)),
        Checked(1, said.index(" And"), "unsupported", (1,)),
        Checked(1, len(said), "supported", (1,)),
        Checked(1, 3, "supported", (1,)),  # in the middle of a word: of another text than this one
        Checked(7, 16, "supported", (1,)),
    )
    rows = tuple(rows_of([LoggedEvent(9, 0.1, ClaimsChecked(claims))]))
    stored = StoredMessage("m", "c", None, "assistant", parts, None, "complete", 1.0)
    turn = turn_of(WholeTurn(stored, checked=rows), Redaction(), shown=True)
    assert turn.messages[2].content == "Fire is insured. [1] Water is, too. And theft [2]."
    assert [one.cited for one in turn.citations] == [True, True]
    assert turn_of(WholeTurn(stored), Redaction(), shown=True).messages[2].content == said


def test_who_judged_the_sentences_and_what_they_leave_out_go_along() -> None:
    said = "Fire is insured. Water is, too."
    call: Any = {"name": "ask_documents", "arguments": "{}"}
    parts = (
        Message("assistant", "", function_call=call, extra={"function_id": "a"}),
        Message("function", "[1] t", name="ask_documents", extra={"function_id": "a", "passages": [PASSAGE]}),
        Message("assistant", said),
    )
    end = said.index(" Water")
    events: list[RunEvent] = [
        ClaimsChecked((Checked(1, end, "weak", (1,)), Checked(1, len(said), "supported", (1,)))),
        MoreSaid((LeftOut(1, 0, 9, "Not arson."),)),
        ClaimsJudged("Qwen", (Judged(1, end, borne_out=True), Judged(1, len(said), borne_out=False))),
    ]
    rows = tuple(rows_of(LoggedEvent(seq, 0.1, one) for seq, one in enumerate(events, 9)))
    stored = StoredMessage("m", "c", None, "assistant", parts, None, "complete", 1.0)
    turn = turn_of(WholeTurn(stored, checked=rows), Redaction(), shown=True)
    assert turn.messages[2].content == "Fire is insured. [1] Water is, too."
    assert (turn.judged_by, turn.left_out) == ("Qwen", ("Not arson.",))
    assert ExportedTurn.model_validate_json(turn.model_dump_json()) == turn
    written = MarkdownWriter({}).turn(turn)
    assert "sentences judged by Qwen" in written
    assert "the passage says more: Not arson." in written


@pytest.mark.parametrize(
    ("reason", "english", "chinese"),
    [
        ((), "doubtful: The fee is 99 dollars.", "存疑：The fee is 99 dollars."),
        (
            (Reason("amount", "99 dollars", "89 dollars", 1),),
            "The fee is 99 dollars. (here “99 dollars”, there “89 dollars”)",
            "（此处为“99 dollars”，原文为“89 dollars”）",
        ),
        (
            (Reason("name", "fee"), Reason("amount", "99 dollars", "89 dollars", 1)),
            "The fee is 99 dollars. (here “99 dollars”, there “89 dollars”)",
            "（此处为“99 dollars”，原文为“89 dollars”）",
        ),
        (
            (Reason("amount", "99 dollars"),),
            "The fee is 99 dollars. (“99 dollars” was not found)",
            "（未找到“99 dollars”）",
        ),
    ],
)
def test_what_the_check_doubts_is_named_in_every_form(reason: tuple[Reason, ...], english: str, chinese: str) -> None:
    said = "Fire is insured. The fee is 99 dollars."
    call: Any = {"name": "ask_documents", "arguments": "{}"}
    parts = (
        Message("assistant", "", function_call=call, extra={"function_id": "a"}),
        Message("function", "[1] t", name="ask_documents", extra={"function_id": "a", "passages": [PASSAGE]}),
        Message("assistant", said),
    )
    end = said.index(" The")
    claims = (Checked(1, end, "supported", (1,)), Checked(1, len(said), "unsupported", (), reason))
    checked = tuple(rows_of([LoggedEvent(9, 0.1, ClaimsChecked(claims))]))
    stored = StoredMessage("m", "c", None, "assistant", parts, None, "complete", 1.0)
    turn = turn_of(WholeTurn(stored, checked=checked), Redaction(), shown=True)
    assert ExportedTurn.model_validate_json(turn.model_dump_json()) == turn
    for written in (MarkdownWriter({}).turn(turn), HtmlWriter({}, "en").turns([turn])):
        assert "1 of 2 sentences resemble what was found" in written
        assert english in written
    assert chinese in MarkdownWriter({}, "zh").turn(turn)


def test_what_was_counted_by_program_goes_along_where_the_reply_says_another_number() -> None:
    call: Any = {"name": "ask_documents", "arguments": "{}"}
    row = {**PASSAGE, "text": "10 of 40 rows fulfil Status = open.", "computed": "10"}
    for said, computed in (("40 rows are open. [1]", (row["text"],)), ("There are 10. [1]", ())):
        parts = (
            Message("assistant", "", function_call=call, extra={"function_id": "a"}),
            Message("function", "[1] t", name="ask_documents", extra={"function_id": "a", "passages": [row]}),
            Message("assistant", said),
        )
        stored = StoredMessage("m", "c", None, "assistant", parts, None, "complete", 1.0)
        turn = turn_of(WholeTurn(stored), Redaction(), shown=True)
        assert turn.computed == computed
        assert ExportedTurn.model_validate_json(turn.model_dump_json()) == turn
        english, chinese = MarkdownWriter({}).turn(turn), MarkdownWriter({}, "zh").turn(turn)
        assert ("counted by program: 10 of 40 rows fulfil Status = open." in english) is bool(computed)
        assert ("由程序计算：10 of 40 rows" in chinese) is bool(computed)
        assert ("counted by program: 10 of 40" in HtmlWriter({}, "en").turns([turn])) is bool(computed)
        copy = json.dumps(SharedTurns([turn], str).rows)
        assert "computed" not in copy, "a copy is no place where anything was counted"


@pytest.mark.parametrize("uncounted", [True, False])
def test_that_no_program_counted_the_figures_goes_along(uncounted: bool) -> None:
    checked = tuple(rows_of([LoggedEvent(9, 0.1, ClaimsChecked((), "", (Uncounted(1, 9),) if uncounted else ()))]))
    stored = StoredMessage("m", "c", None, "assistant", (Message("assistant", "18 units"),), None, "complete", 1.0)
    turn = turn_of(WholeTurn(stored, checked=checked), Redaction(), shown=True)
    assert ExportedTurn.model_validate_json(turn.model_dump_json()) == turn
    assert ("no program counted this" in MarkdownWriter({}).turn(turn)) is uncounted
    assert ("没有程序统计过" in MarkdownWriter({}, "zh").turn(turn)) is uncounted


def test_a_key_is_in_no_field_of_a_turn() -> None:
    key = "correct-horse-battery"
    place = {**PASSAGE, "text": key, "document": key, "heading": key, "url": f"https://x.org/{key}"}
    call: Any = {"name": key, "arguments": json.dumps({key: [key, {"a": key}]})}
    other: Any = {"name": "t", "arguments": json.dumps(key)}
    tied = {"function_id": key, "more": {key: [key]}}
    parts = (
        Message("assistant", key, reasoning_content=key, name=key),
        Message("assistant", "", function_call=call, extra=tied),
        Message("function", f"[1] {key}", name=key, extra={**tied, "passages": [place], "failed": key}),
        Message("assistant", "", function_call=other, extra={"function_id": "b"}),
        Message("function", [ContentItem(text=key), ContentItem(file=key)], name="t", extra={"function_id": "b"}),
        Message("assistant", [ContentItem(image=f"https://x.org/{key}"), ContentItem(text=f"{key} [1]")]),
    )
    error = {"key": key, "message": key, "hint": key, "details": {"why": key}}
    run = RunRecord("r", "o", "c", "m", "error", error, key, None, 1.0, 2.0)
    steps = (
        AgentThought(
            "s", "m", thought=key, tool_name=key, tool_input=json.dumps({"a": key}), observation=key, position=1
        ),
    )
    inside: list[Event] = [MessageStarted(key), TextDelta(key), MessageFinished("stop")]
    log = [LoggedEvent(seq, 0.1, NestedEvent((key,), event)) for seq, event in enumerate(inside, start=1)]
    stored = StoredMessage("m", "c", None, "assistant", parts, "r", "error", 1.0)
    whole = WholeTurn(stored, run, thoughts=steps, within=tuple(rows_of(log)))
    turn = turn_of(whole, Redaction([key]), shown=True)
    assert len(turn.citations) == len(turn.thoughts) == len(turn.inner) == 1
    assert key not in turn.model_dump_json()
    assert key not in MarkdownWriter({}).turn(turn)
