"""Chunks to events: every kind of service, any cut of the bytes."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ModelMisbehavedError
from core.llm.wire.openai import ChunkReader
from core.messages.events import CallDelta, CallStarted, ItemAdded, MessageFinished, ReasoningDelta, TextDelta
from core.messages.message import Usage
from core.messages.transcript import Transcript


def chunk(delta=None, finish=None, **more) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps({"choices": choices, **more}).encode() + b"\n\n"


def piece(index=None, call_id=None, name=None, arguments=None):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    said = {"index": index, "id": call_id, "function": function}
    return {"tool_calls": [{key: value for key, value in said.items() if value is not None}]}


DONE = b"data: [DONE]\n\n"


def read(*pieces: bytes, reader: ChunkReader | None = None):
    reader = reader or ChunkReader()
    events = [event for one in pieces for event in reader.feed(one)]
    return [*events, *reader.close()]


def calls(events):
    made = [message.model_dump() for message in Transcript(events).messages()]
    called = [(message["extra"]["function_id"], message["function_call"]) for message in made if message.get("extra")]
    return [(call_id, call["name"], call["arguments"]) for call_id, call in called]


def test_texts_of_one_read_are_joined_and_nothing_waits_for_the_next():
    reader = ChunkReader()
    first = chunk({"role": "assistant", "content": ""}) + chunk({"content": "Hel"}) + chunk({"content": "lo"})
    assert reader.feed(first) == [TextDelta("Hello")]
    assert reader.feed(chunk({"content": "!"})) == [TextDelta("!")]


def test_usage_comes_in_a_last_chunk_without_choices():
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    events = read(chunk({"content": "a"}), chunk({}, "stop"), chunk(usage=usage), DONE)
    assert events == [
        TextDelta("a"),
        MessageFinished("stop", Usage(prompt_tokens=3, completion_tokens=4, total_tokens=7)),
    ]


@pytest.mark.parametrize(
    ("said", "means"), [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("eos", "stop")]
)
def test_the_finish_reason_is_translated(said, means):
    assert read(chunk({"content": "a"}), chunk({}, said))[-1] == MessageFinished(means)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_comes_before_the_text_and_is_joined(field):
    events = read(chunk({field: "a"}) + chunk({field: "b", "content": None}) + chunk({"content": "c"}), DONE)
    assert events[:2] == [ReasoningDelta("ab"), TextDelta("c")]


def test_a_call_whose_arguments_come_in_pieces():
    events = read(
        chunk(piece(0, "c1", "add", "")), chunk(piece(0, arguments='{"a"')), chunk(piece(0, arguments=": 1}")), DONE
    )
    assert events == [
        CallStarted("c1", "add"),
        CallDelta("c1", '{"a"'),
        CallDelta("c1", ": 1}"),
        MessageFinished("calls"),
    ]


def test_calls_that_arrive_by_turns_are_told_apart_by_their_index():
    events = read(
        chunk(piece(0, "c1", "f", "{")), chunk(piece(1, "c2", "g", "{")), chunk(piece(0, arguments="}")),
        chunk(piece(1, arguments="}")), DONE,
    )  # fmt: skip
    assert calls(events) == [("c1", "f", "{}"), ("c2", "g", "{}")]


def test_a_service_without_indexes_is_understood_by_its_ids():
    whole = [piece(call_id="c1", name="f", arguments="{}"), piece(call_id="c2", name="g", arguments="{}")]
    assert calls(read(*map(chunk, whole), DONE)) == [("c1", "f", "{}"), ("c2", "g", "{}")]
    parts = [piece(call_id="c1", name="f"), piece(arguments='{"a":'), piece(call_id="c1", arguments="1}")]
    assert calls(read(*map(chunk, parts), DONE)) == [("c1", "f", '{"a":1}')]


def test_a_call_without_an_id_gets_one_of_its_own():
    (first, *_), (second, *_) = (calls(read(chunk(piece(0, name="f", arguments="{}")), DONE))[0] for _ in range(2))
    assert first.startswith("call_")
    assert first != second


def test_an_id_that_the_conversation_holds_already_is_replaced():
    reader = ChunkReader({"call_0"})
    ((call_id, name, _),) = calls(read(chunk(piece(0, "call_0", "f", "{}")), DONE, reader=reader))
    assert (call_id != "call_0", name) == (True, "f")


def test_a_name_that_is_repeated_or_comes_in_pieces_is_one_name():
    repeated = [piece(0, "c", "add"), piece(0, "c", "add", "{"), piece(0, "c", "add", "}")]
    assert calls(read(*map(chunk, repeated), DONE)) == [("c", "add", "{}")]
    pieces = [piece(0, "c", "calc"), piece(0, None, "ulator"), piece(0, None, None, "{}")]
    assert calls(read(*map(chunk, pieces), DONE)) == [("c", "calculator", "{}")]


def test_a_call_without_arguments_is_announced_at_the_end():
    assert calls(read(chunk(piece(0, "c", "now", "")), DONE)) == [("c", "now", "{}")]


def test_arguments_that_come_as_an_object_are_text():
    assert calls(read(chunk(piece(0, "c", "f", {"a": "你"})), DONE)) == [("c", "f", '{"a": "你"}')]


def test_calls_end_the_turn_even_where_the_service_says_stop():
    assert read(chunk(piece(0, "c", "f", "{}")), chunk({}, "stop"))[-1] == MessageFinished("calls")


def test_a_stream_that_ends_without_a_word_of_its_end_is_not_done():
    reader = ChunkReader()
    events = read(chunk({"content": "half"}), b'data: {"choices": [{"del', reader=reader)
    assert events == [TextDelta("half")]
    assert (reader.done, reader.spoke) == (False, True)


def test_a_finish_reason_is_an_end_even_without_done():
    reader = ChunkReader()
    assert read(chunk({"content": "a"}), chunk({}, "stop"), reader=reader)[-1] == MessageFinished("stop")
    assert reader.done


def test_an_error_in_the_stream_is_kept_for_the_back_end():
    reader = ChunkReader()
    reader.feed(b'data: {"error": {"message": "overloaded", "code": 503}}\n\n')
    assert (reader.error, reader.over) == ({"message": "overloaded", "code": 503}, True)
    reader = ChunkReader()
    reader.feed(b'data: {"error": "no"}\n\n')
    assert reader.error == {"message": "no"}


def test_a_whole_completion_is_read_as_one_chunk():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "I call", "reasoning_content": "hm", "tool_calls": [call]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 1}}
    events = read(b"data: " + json.dumps(body).encode() + b"\n\n")
    assert [type(event).__name__ for event in events] == [
        "ReasoningDelta",
        "TextDelta",
        "CallStarted",
        "CallDelta",
        "MessageFinished",
    ]


def test_content_that_comes_as_parts_is_text():
    assert read(chunk({"content": [{"type": "text", "text": "a"}, {"type": "other"}]}), DONE)[0] == TextDelta("a")


def test_something_that_is_not_json_is_an_error_that_shows_its_beginning():
    with pytest.raises(ModelMisbehavedError, match="not JSON: 'Internal"):
        ChunkReader().feed(b"data: Internal Server Error\n\n")


@pytest.mark.parametrize(
    "odd", [{"choices": [7]}, {"choices": {"a": 1}}, {"choices": [{"delta": {"tool_calls": [3]}}]}]
)
def test_json_of_an_unknown_form_is_an_error_too(odd):
    with pytest.raises(ModelMisbehavedError, match="unknown form"):
        ChunkReader().feed(b"data: " + json.dumps(odd).encode() + b"\n\n")


def test_chunks_that_say_nothing_are_passed_over():
    assert read(b"data: null\n\n", b"data: []\n\n", b"data:\n\n", chunk({}), b'data: {"choices": null}\n\n', DONE) == [
        MessageFinished("stop")
    ]


def test_the_two_halves_of_a_character_find_each_other():
    halves = (
        b'data: {"choices": [{"delta": {"content": "a\\ud83d"}}]}\n\n',
        (b'data: {"choices": [{"delta": {"content": "\\ude00b"}}]}\n\n'),
    )
    assert "".join(e.text for e in read(*halves, DONE) if isinstance(e, TextDelta)) == "a😀b"
    assert "".join(e.text for e in read(halves[0] + halves[1], DONE) if isinstance(e, TextDelta)) == "a😀b"
    lonely = b'data: {"choices": [{"delta": {"content": "\\ude00b"}}]}\n\n'
    assert read(lonely, DONE)[0] == TextDelta("\ufffdb")


TEXTS = ["你", "好 ", "a", "😀", " ", '"', "\n", "data: x\n\n"]


@given(
    st.lists(st.sampled_from(TEXTS), max_size=8),
    st.lists(st.text(max_size=6), max_size=3),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_any_cut_of_the_bytes_gives_the_same_reply(texts, arguments, cuts):
    deltas = [{"content": text} for text in texts]
    deltas += [piece(0, "c1", "f", "")] + [piece(0, arguments=text) for text in arguments]
    stream = b"".join(map(chunk, deltas)) + chunk({}, "tool_calls") + DONE
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    cut_up = read(*(stream[start:end] for start, end in pairwise(edges)))
    assert [m.model_dump() for m in Transcript(cut_up).messages()] == [
        m.model_dump() for m in Transcript(read(stream)).messages()
    ]
    assert "".join(e.text for e in cut_up if isinstance(e, TextDelta)) == "".join(texts)
    assert "".join(e.arguments for e in cut_up if isinstance(e, CallDelta)) == "".join(arguments)


# -- fields that services differ in -----------------------------------------------------------------------------------


def line(delta: dict, **more) -> bytes:
    return f"data: {json.dumps({'choices': [{'delta': delta, **more}]})}\n\n".encode()


END = line({}, finish_reason="stop") + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"thinking": "hm"},
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning": None, "reasoning_content": "hm"},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "h"}, {"text": "m"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
        {"content": [{"type": "thinking", "thinking": "hm"}]},
    ],
)
def test_thought_is_read_from_whichever_field_holds_it(delta):
    reader = ChunkReader()
    events = [*reader.feed(line(delta) + line({"content": "yes"}) + END), *reader.close()]
    assert events == [ReasoningDelta("hm"), TextDelta("yes"), MessageFinished("stop")]


def test_a_models_own_refusal_is_text():
    reader = ChunkReader()
    events = [*reader.feed(line({"content": None, "refusal": "I will "}) + line({"refusal": "not."}) + END)]
    assert events == [TextDelta("I will not.")]


def test_pictures_come_as_parts_or_beside_the_text():
    part = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    reader = ChunkReader()
    raw = line({"content": [{"type": "text", "text": "see"}, part]}) + line({"images": [part, "b.png", {}]}) + END
    assert [event.item.image for event in reader.feed(raw) if isinstance(event, ItemAdded)] == [
        "https://example.org/a.png",
        "https://example.org/a.png",
        "b.png",
    ]


@pytest.mark.parametrize("piece", [{"data": "AAAA"}, {"data": "!"}, {"data": None, "transcript": "hi"}, {}])
def test_odd_pieces_of_speech_do_no_harm(piece):
    reader = ChunkReader()
    events = [*reader.feed(line({"audio": piece}) + line({"content": "yes"}) + END), *reader.close()]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).endswith("yes")
    assert isinstance(events[-1], MessageFinished)


def test_calls_of_the_older_form_are_understood():
    reader = ChunkReader()
    raw = line({"function_call": {"name": "f", "arguments": ""}}) + line({"function_call": {"arguments": "{}"}})
    events = [*reader.feed(raw + line({}, finish_reason="function_call")), *reader.close()]
    assert [call[1:] for call in calls(events)] == [("f", "{}")]
    assert events[-1] == MessageFinished("calls")


def test_errors_of_the_older_form_are_understood():
    reader = ChunkReader()
    assert reader.feed(b'data: {"object": "error", "message": "boom", "code": 400}\n\n') == []
    assert reader.error
    assert (reader.error["message"], reader.over) == ("boom", True)


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_a_byte_order_mark_before_the_first_event_loses_nothing(size: int):
    raw = b"\xef\xbb\xbf" + chunk({"content": "Hé"}) + chunk({"content": "llo"}) + DONE
    events = read(*(raw[at : at + size] for at in range(0, len(raw), size)))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Héllo"


def test_bytes_that_are_no_utf_8_are_told_and_never_become_another_letter():
    with pytest.raises(ModelMisbehavedError, match="not UTF-8"):
        read(b'data: {"choices": [{"delta": {"content": "caf\xe9"}}]}\n\n')
