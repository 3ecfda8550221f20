"""The transcript: joins events into messages, late and once."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import ASSISTANT, FUNCTION, FunctionCall, Message, Usage
from core.messages.transcript import Transcript, call_message


def result(call_id: str, text: str = "result") -> ToolFinished:
    return ToolFinished(call_id, Message(FUNCTION, text, name="f", extra={"function_id": call_id}))


def turn(*events: Event) -> list[Event]:
    calls = any(isinstance(event, CallStarted) for event in events)
    return [MessageStarted(), *events, MessageFinished("calls" if calls else "stop")]


def call(call_id: str, arguments: str = "{}") -> list[Event]:
    return [CallStarted(call_id, "f"), CallDelta(call_id, arguments)]


def arguments(message: Message) -> str:
    assert message.function_call
    return message.function_call.arguments


def test_reasoning_text_and_calls_are_messages_of_their_own_in_order():
    messages = Transcript(turn(ReasoningDelta("hm"), TextDelta("I "), TextDelta("call"), *call("1"))).messages()
    assert [(m.reasoning_content, m.content, m.function_call and m.function_call.name) for m in messages] == [
        ("hm", "", None),
        (None, "I call", None),
        (None, "", "f"),
    ]


def test_results_follow_in_the_order_of_their_calls_whichever_ends_first():
    transcript = Transcript(turn(*call("1"), *call("2")))
    for event in (ToolStarted("1"), ToolStarted("2"), result("2", "second")):
        transcript.apply(event)
    assert [m.get_text_content() for m in transcript.messages() if m.role == FUNCTION] == ["second"]
    transcript.apply(result("1", "first"))
    assert [m.get_text_content() for m in transcript.messages() if m.role == FUNCTION] == ["first", "second"]


def test_a_call_appears_once_its_arguments_are_whole():
    transcript = Transcript([MessageStarted(), CallStarted("1", "f"), CallDelta("1", '{"a"')])
    assert transcript.messages() == []
    transcript.apply(CallDelta("1", ": 1}"))
    transcript.apply(MessageFinished("calls"))
    assert [arguments(m) for m in transcript.messages()] == ['{"a": 1}']
    assert transcript.unanswered() == transcript.messages()
    transcript.apply(result("1"))
    assert transcript.unanswered() == []


def test_unreadable_arguments_are_kept_whole_as_a_json_string():
    message = call_message("1", "f", '{"a": ')
    assert json.loads(arguments(message)) == '{"a": '
    assert message.extra == {"function_id": "1", "unreadable": True}
    assert arguments(call_message("1", "f", "  ")) == "{}"


def test_the_speaker_signs_every_message():
    events = [MessageStarted("Ann"), TextDelta("hi"), MessageFinished("stop"), MessageStarted("Bob"), TextDelta("ho")]
    assert [(m.name, m.content) for m in Transcript(events).messages()] == [("Ann", "hi"), ("Bob", "ho")]


def test_items_stand_beside_the_text():
    (message,) = Transcript(turn(TextDelta("look"), ItemAdded(ContentItem(image="a.png")))).messages()
    assert [item.type for item in message.items] == ["text", "image"]


def test_usage_of_all_turns_adds_up():
    transcript = Transcript(
        [
            *turn(TextDelta("a"))[:-1],
            MessageFinished("stop", Usage(prompt_tokens=1, total_tokens=1)),
            MessageStarted(),
            MessageFinished("length", Usage(prompt_tokens=2, total_tokens=2)),
        ]
    )
    assert transcript.usage == Usage(prompt_tokens=3, total_tokens=3)
    assert transcript.reason == "length"


def test_what_has_not_grown_is_the_same_object_and_not_joined_again():
    transcript = Transcript([MessageStarted(), ReasoningDelta("hm"), TextDelta("a"), TextDelta("b")])
    before = transcript.messages()
    assert all(old is new for old, new in zip(before, transcript.messages(), strict=True))
    transcript.apply(TextDelta("c"))
    after = transcript.messages()
    assert after[0] is before[0]
    assert (before[1].content, after[1].content) == ("ab", "abc")


def test_a_finished_turn_is_shared_by_all_later_snapshots():
    transcript = Transcript([*turn(TextDelta("one")), MessageStarted(), TextDelta("two")])
    first = transcript.messages()[0]
    transcript.apply(TextDelta("!"))
    assert transcript.messages()[0] is first


def test_more_of_a_call_that_never_began_is_a_mistake_of_ours():
    with pytest.raises(ValueError, match="no call 'x'"):
        Transcript([MessageStarted(), CallDelta("x", "{}")])


def test_a_result_without_its_call_is_shown_all_the_same():
    assert [m.content for m in Transcript([result("lost", "here")]).messages()] == ["here"]


words = st.text(max_size=5)
call_ids = st.sampled_from(["1", "2", "3"])


@st.composite
def replies(draw: st.DrawFn) -> list[Event]:
    """One to three turns; calls of a turn are answered, in any order, before the next."""
    events: list[Event] = []
    for number in range(draw(st.integers(1, 3))):
        said = draw(
            st.lists(
                st.one_of(
                    st.builds(TextDelta, words),
                    st.builds(ReasoningDelta, words),
                    st.just(ItemAdded(ContentItem(image="a.png"))),
                ),
                max_size=6,
            )
        )
        asked = [f"{number}-{index}" for index in range(draw(st.integers(0, 3)))]
        calls = [event for call_id in asked for event in call(call_id)]
        events += turn(*said, *calls)
        events += [ToolStarted(call_id) for call_id in asked]
        events += [result(call_id, call_id) for call_id in draw(st.permutations(asked))]
    return events


def key(message: Message) -> tuple[object, ...]:
    return (message.role, str(message.content), str(message.reasoning_content), str(message.function_call))


@given(replies())
def test_reading_in_between_changes_nothing(events):
    read_often = Transcript()
    for event in events:
        read_often.apply(event)
        read_often.messages()
    assert [key(m) for m in read_often.messages()] == [key(m) for m in Transcript(events).messages()]


@given(replies())
def test_a_snapshot_never_changes_and_the_next_extends_it(events):
    transcript = Transcript()
    snapshots: list[tuple[list[Message], list[tuple[object, ...]]]] = []
    for event in events:
        transcript.apply(event)
        messages = transcript.messages()
        snapshots.append((messages, [key(m) for m in messages]))
    for messages, keys in snapshots:
        assert [key(m) for m in messages] == keys
    for (before, _), (after, _) in pairwise(snapshots):
        assert len("".join(m.get_text_content() for m in after)) >= len("".join(m.get_text_content() for m in before))


@given(replies())
def test_no_text_is_lost_and_every_call_has_its_result(events):
    messages = Transcript(events).messages()
    said = [m for m in messages if m.role == ASSISTANT]
    assert "".join(m.get_text_content() for m in said) == "".join(e.text for e in events if isinstance(e, TextDelta))
    asked = [m.extra["function_id"] for m in messages if m.function_call and m.extra]
    answered = [m.extra["function_id"] for m in messages if m.role == FUNCTION and m.extra]
    assert asked == answered


@given(st.lists(words, max_size=20), st.data())
def test_any_cut_of_the_text_gives_the_same_message(texts, data):
    whole = "".join(texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    other = [whole[start:end] for start, end in pairwise([0, *cuts, len(whole)])]
    left = Transcript(turn(*map(TextDelta, texts))).messages()
    right = Transcript(turn(*map(TextDelta, other))).messages()
    assert [m.content for m in left] == [m.content for m in right]


@pytest.mark.parametrize("arguments", ['{"a": ' + "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_arguments_that_no_reader_survives_are_kept_as_text(arguments: str) -> None:
    call = call_message("1", "tool", arguments)
    assert call.function_call is not None
    assert call.function_call.get_parsed_arguments() == arguments
    assert (call.extra or {})["unreadable"]
    with pytest.raises(ValidationError):
        FunctionCall("tool", arguments)


def test_arguments_that_are_nearly_json_are_mended_but_not_those_of_a_reply_that_was_cut_off():
    written = [CallStarted("1", "f"), CallDelta("1", "{'a': None,")]
    (mended,) = Transcript([*written, MessageFinished("calls")]).messages()
    assert (arguments(mended), mended.extra) == ('{"a": null}', {"function_id": "1"})
    (cut,) = Transcript([*written, MessageFinished("length")]).messages()
    assert (json.loads(arguments(cut)), (cut.extra or {})["unreadable"]) == ("{'a': None,", True)
    (lost,) = Transcript([CallStarted("1", "f"), CallDelta("1", "two"), MessageFinished("calls")]).messages()
    assert (lost.extra or {})["unreadable"]
