"""DashScope's chunks to events, however the bytes come."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ModelMisbehavedError
from core.llm.wire.dashscope import DashScopeReader
from core.messages.events import (
    CallDelta,
    CallStarted,
    ItemAdded,
    MessageFinished,
    ReasoningDelta,
    TextDelta,
)
from core.messages.transcript import Transcript
from core.testing.dashscope_dialect import DashScopeDialect
from core.testing.script import Reply

BODY = {"model": "qwen-max", "input": {"messages": []}, "parameters": {"incremental_output": True}}
EVERYTHING = Reply(
    reasoning="Let me 想想.",
    text="你好 😀, all",
    calls=[("weather", {"城市": "北京"}), ("now", {})],
    usage=(5, 7),
    reasoning_tokens=3,
    cached_tokens=2,
)


def wire(reply: Reply, body=BODY) -> bytes:
    return b"".join(DashScopeDialect().events(reply, body, "r"))


def event(message: dict | None = None, reason: str = "null", **more) -> bytes:
    output = {"choices": [{"message": message, "finish_reason": reason}]} if message is not None else None
    said = {"output": output, "request_id": "r1", **more} if output else more
    return b"id:1\nevent:result\n:HTTP_STATUS/200\ndata:" + json.dumps(said).encode() + b"\n\n"


def read(raw: bytes, *sizes: int) -> tuple[list, DashScopeReader]:
    reader = DashScopeReader()
    events, at = [], 0
    for size in sizes:
        events += reader.feed(raw[at : at + size])
        at += size
    events += reader.feed(raw[at:])
    return events + reader.close(), reader


def messages(events) -> list:
    transcript = Transcript()
    for one in events:
        transcript.apply(one)
    return [message.model_dump() for message in transcript.messages()]


def test_a_reply_with_everything_in_it():
    events, reader = read(wire(EVERYTHING))
    thought, text, weather, now = messages(events)
    assert (thought["reasoning_content"], text["content"]) == ("Let me 想想.", "你好 😀, all")
    assert weather["function_call"] == {"name": "weather", "arguments": '{"城市": "北京"}'}
    assert now["function_call"] == {"name": "now", "arguments": "{}"}
    assert isinstance(events[-1], MessageFinished)
    assert events[-1].reason == "calls"
    usage = events[-1].usage
    assert usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cached_tokens) == (5, 7, 3, 2)
    assert reader.request_id == "r"


@given(sizes=st.lists(st.integers(1, 400), max_size=60), crlf=st.booleans())
def test_any_split_gives_the_same_reply(sizes, crlf):
    raw = wire(EVERYTHING)
    raw = raw.replace(b"\n", b"\r\n") if crlf else raw
    assert messages(read(raw, *sizes)[0]) == messages(read(wire(EVERYTHING))[0])


def test_the_texts_of_one_piece_are_one_event():
    events, _ = read(wire(Reply(text="a b c d e f")))
    assert [type(e) for e in events] == [TextDelta, MessageFinished]


def test_the_multimodal_service_sends_parts_and_pictures():
    body = {**BODY, "input": {"messages": [{"role": "user", "content": [{"text": "q"}]}]}}
    events, _ = read(wire(Reply(text="a b", images=["https://h/a.png"]), body))
    assert [type(e) for e in events] == [TextDelta, ItemAdded, MessageFinished]
    assert events[1].item.image == "https://h/a.png"


def test_a_service_that_ignores_the_format_is_read_all_the_same():
    raw = b'data:{"output":{"text":"whole","finish_reason":"stop"},"usage":{"input_tokens":1,"output_tokens":2}}\n\n'
    events, _ = read(raw)
    assert events[0] == TextDelta("whole")
    assert (events[1].reason, events[1].usage.total_tokens) == ("stop", 3)


def test_later_pieces_of_a_call_may_lack_id_name_and_index():
    first = {"id": "c1", "function": {"name": "a", "arguments": '{"x"'}}
    raw = event({"tool_calls": [first]}) + event({"tool_calls": [{"function": {"arguments": ": 1}"}}]}, "tool_calls")
    events, _ = read(raw)
    assert events[:3] == [CallStarted("c1", "a"), CallDelta("c1", '{"x"'), CallDelta("c1", ": 1}")]


def test_an_id_of_the_conversation_is_not_used_again():
    reader = DashScopeReader({"c1"})
    (started,) = (
        reader.feed(event({"tool_calls": [{"id": "c1", "index": 0, "function": {"name": "a"}}]}, "tool_calls"))
        or [*reader.close()][:1]
    )
    assert isinstance(started, CallStarted)
    assert started.call_id not in {"c1", ""}


def test_halves_of_a_character_are_put_together():
    raw = b'data:{"output":{"choices":[{"message":{"content":"a\\ud83d"},"finish_reason":"null"}]}}\n\n'
    raw += b'data:{"output":{"choices":[{"message":{"content":"\\ude00b"},"finish_reason":"stop"}]}}\n\n'
    for sizes in ((), (90,)):
        assert "".join(e.text for e in read(raw, *sizes)[0] if isinstance(e, TextDelta)) == "a😀b"


@pytest.mark.parametrize("status", [b":HTTP_STATUS/429", b"status:429", b"status: 429"])
@pytest.mark.parametrize("split", [0, 3, 25])
def test_an_error_in_the_stream_is_kept_with_its_status(status, split):
    raw = wire(Reply(text="one two")).partition(b"id:2")[0]
    raw += b'id:9\nevent:error\n%b\ndata:{"code":"Throttling","message":"slow","request_id":"r9"}\n\n' % status
    reader = DashScopeReader()
    for at in range(0, len(raw), split or len(raw)):
        reader.feed(raw[at : at + (split or len(raw))])
    assert reader.error == {"status": 429, "code": "Throttling", "message": "slow", "request_id": "r9"}
    assert reader.spoke
    assert not any(isinstance(e, MessageFinished) for e in reader.close())


def test_a_reply_without_an_end_is_not_finished():
    whole = DashScopeDialect().events(Reply(text="one two"), BODY, "r")
    events, reader = read(b"".join(whole[:-1]))
    assert [type(e) for e in events] == [TextDelta]
    assert reader.reason is None


def test_the_last_event_counts_without_its_blank_line():
    events, _ = read(wire(Reply(text="one")).rstrip(b"\n"))
    assert isinstance(events[-1], MessageFinished)


def test_thought_in_pieces_is_joined():
    events, _ = read(wire(Reply(reasoning="a b c", text="d")))
    assert events[0] == ReasoningDelta("a b c")


@pytest.mark.parametrize(
    "raw",
    [
        b"data:oops\n\n",
        b'data:{"choices":[{"delta":{"content":"a"}}]}\n\n',
        b'data:{"output":{"choices":[7]}}\n\n',
        b'data:{"output":[1]}\n\n',
        b'data:{"output":{"choices":[{"message":{"content":5,"tool_calls":[3]}}]}}\n\n',
        b"data:{}\n\n",
        b"data:" + b"[" * 100_000 + b"\n\n",
    ],
)
def test_chunks_of_another_form_are_one_clear_error(raw):
    with pytest.raises(ModelMisbehavedError) as caught:
        read(raw)
    assert caught.value.hint


@given(st.binary(max_size=300))
def test_no_bytes_at_all_raise_anything_else(raw):
    try:
        read(b"data:" + raw + b"\n\n")
    except ModelMisbehavedError:
        pass
