"""What a service wants back with a thought or a call stays with it: in rows of the log, messages, stored replies."""

from __future__ import annotations

from core.llm.reply_store import packed, unpacked
from core.llm.wire.proofs import is_from, opened, sealed
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
)
from core.messages.transcript import Transcript
from core.runs.log import LoggedEvent
from core.runs.reply import ReasoningBlock, Reply
from core.runs.rows import events_of, logged_of, rows_of

EVENTS: list[Event] = [
    MessageStarted(),
    ReasoningDelta("One "),
    ReasoningDelta("thought."),
    ReasoningDelta("", "proof 1"),
    ReasoningDelta("Another.", "proof 2"),
    TextDelta("Hello"),
    CallStarted("c1", "weather", "proof 3"),
    CallDelta("c1", '{"city": "Oslo"}'),
    MessageFinished("calls", model="b"),
]
KEPT = [("One thought.", "proof 1"), ("Another.", "proof 2"), (None, None), (None, "proof 3")]


def of(events) -> list[tuple]:
    messages = Transcript(events).messages()
    return [(one.reasoning_content, (one.extra or {}).get("proof")) for one in messages]


def logged() -> list[LoggedEvent]:
    return [LoggedEvent(seq, seq / 10, event) for seq, event in enumerate(EVENTS, 1)]


def test_each_thought_is_a_message_with_its_own_proof():
    assert of(EVENTS) == KEPT


def test_rows_keep_them_and_join_no_two_thoughts():
    rows = rows_of(logged())
    assert [row.kind for row in rows].count("reasoning_delta") == 2
    read = [one.event for one in logged_of(rows)]
    assert of(read) == KEPT
    assert read[-1] == MessageFinished("calls", model="b")


def test_rows_without_them_are_as_earlier_versions_wrote_and_read_them():
    plain = [MessageStarted(), ReasoningDelta("Hm."), CallStarted("c", "a"), MessageFinished("stop")]
    rows = rows_of(LoggedEvent(seq, 0.0, event) for seq, event in enumerate(plain, 1))
    assert [sorted(row.payload) for row in rows] == [["name"], ["text"], ["call_id", "name"], ["reason", "usage"]]


def test_messages_become_events_with_them():
    made = events_of(Transcript(EVENTS).messages())
    assert of([*made, MessageFinished("calls")]) == KEPT


def test_a_stored_reply_has_them():
    stored = packed([*EVENTS[:-1], MessageFinished("calls")])
    assert of(unpacked(stored)) == KEPT


def test_a_reader_sees_the_thoughts_and_no_proof():
    reply = Reply()
    for one in logged():
        reply.apply(one)
    thought = [block for block in reply.blocks if isinstance(block, ReasoningBlock)]
    assert "".join(piece for block in thought for piece in block.pieces) == "One thought.\n\nAnother."


def test_a_proof_alone_shows_nothing():
    reply = Reply()
    for seq, event in enumerate([MessageStarted(), ReasoningDelta("", "proof"), TextDelta("Hello")], 1):
        reply.apply(LoggedEvent(seq, 0.0, event))
    assert not any(isinstance(block, ReasoningBlock) for block in reply.blocks)


def test_a_proof_is_of_its_model_and_of_its_text_alone():
    proof = sealed("anthropic", "claude", {"signature": "s"}, "A thought.")
    assert is_from(proof, "anthropic", "claude")
    assert not is_from(proof, "anthropic", "other")
    assert not is_from(proof, "gemini", "claude")
    assert opened(proof, "A thought.") == {"signature": "s"}
    assert opened(proof, "Another.") == {}
    assert opened("no proof at all", "") == {}
    assert not is_from("[1]", "anthropic", "claude")
