"""The test server's DashScope against the vendor's own SDK, and our requests against those that the SDK sends."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import dashscope
import pytest
from dashscope.api_entities.aio_session import close_shared_aio_session

from core.bridge.sync import run
from core.llm.open_model import get_chat_model
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, FunctionCall, Message
from core.testing.dashscope_dialect import DashScopeDialect
from core.testing.model_server import ModelServer
from core.testing.script import Reply, refusal

KEY = "sk-test-0123"
QUESTION = [{"role": "user", "content": "q"}]
WEATHER = {"name": "weather", "description": "d", "parameters": {"type": "object", "properties": {}}}
EVERYTHING = Reply(
    reasoning="Let me see.",
    text="你好 😀, all",
    calls=[("weather", {"城市": "北京"}), ("now", {})],
    usage=(5, 7),
    reasoning_tokens=3,
    cached_tokens=2,
    split=7,
)


@pytest.fixture
def server(monkeypatch) -> Iterator[ModelServer]:
    """A server that the SDK believes to be DashScope."""
    with ModelServer([]) as running:
        monkeypatch.setattr(dashscope, "base_http_api_url", running.dashscope_url)
        monkeypatch.setattr(dashscope, "api_key", KEY)
        yield running


def dialect_of(server: ModelServer) -> DashScopeDialect:
    return next(dialect for dialect in server.dialects if isinstance(dialect, DashScopeDialect))


def streamed(**more: Any) -> list[Any]:
    call = cast("Any", dashscope.Generation.call)
    return list(call(**{"model": "qwen-max", "messages": QUESTION, "result_format": "message", "stream": True, **more}))


def test_the_sdk_reads_a_stream_piece_by_piece(server):
    server.add(EVERYTHING)
    chunks = streamed(incremental_output=True)
    messages = [chunk.output.choices[0].message for chunk in chunks]
    assert "".join(m.content for m in messages) == "你好 😀, all"
    assert "".join(m.get("reasoning_content") or "" for m in messages) == "Let me see."
    pieces = [call for m in messages for call in m.get("tool_calls") or []]
    assert [call["function"]["name"] for call in pieces if call["function"].get("name")] == ["weather", "now"]
    assert "".join(c["function"]["arguments"] for c in pieces if c["index"] == 0) == '{"城市": "北京"}'
    assert chunks[-1].output.choices[0].finish_reason == "tool_calls"
    usage = chunks[-1].usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (5, 7, 12)
    assert usage.output_tokens_details["reasoning_tokens"] == 3
    assert usage.prompt_tokens_details["cached_tokens"] == 2


def test_without_increments_each_chunk_has_everything_so_far(server):
    server.add(EVERYTHING)
    last = streamed()[-1].output.choices[0].message
    assert (last.reasoning_content, last.content) == ("Let me see.", "你好 😀, all")
    assert [call["function"]["arguments"] for call in last.tool_calls] == ['{"城市": "北京"}', "{}"]


def test_the_sdk_reads_a_whole_reply(server):
    server.add(EVERYTHING)
    reply: Any = dashscope.Generation.call(model="qwen-max", messages=QUESTION, result_format="message")  # pyright: ignore[reportArgumentType]
    message = reply.output.choices[0].message
    assert (message.content, len(message.tool_calls)) == ("你好 😀, all", 2)


def test_the_multimodal_service_has_parts(server):
    server.add(Reply(text="a b", images=["https://h/a.png"]))
    asked: Any = [{"role": "user", "content": [{"text": "q"}]}]
    chunks: list[Any] = list(
        dashscope.MultiModalConversation.call(model="qwen-vl-max", messages=asked, stream=True, incremental_output=True)  # pyright: ignore[reportArgumentType]
    )
    parts = [part for chunk in chunks for part in chunk.output.choices[0].message.content]
    assert parts == [{"text": "a"}, {"text": " b"}, {"image": "https://h/a.png"}]
    assert server.requests[0].question["task"] == "multimodal"


@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        (refusal(401, "No.", code="invalid_api_key"), 401, "InvalidApiKey"),
        (refusal(429, "Slow down."), 429, "Throttling.RateQuota"),
        (refusal(400, "No.", code="DataInspectionFailed"), 400, "DataInspectionFailed"),
        (refusal(500), 500, "InternalError"),
    ],
)
def test_the_sdk_reads_a_refusal(server, reply, status, code):
    server.add(reply)
    (answer,) = streamed(incremental_output=True)
    assert (answer.status_code, answer.code) == (status, code)


def test_the_sdk_reads_an_error_in_mid_stream(server):
    error = {"error": {"message": "Too fast.", "code": "Throttling.RateQuota"}}
    server.add(Reply(text="one two three", error_after=2, error=error))
    *good, bad = streamed(incremental_output=True)
    assert [chunk.output.choices[0].message.content for chunk in good] == ["one", " two"]
    assert (bad.code, bad.message) == ("Throttling.RateQuota", "Too fast.")


def test_the_sdk_uploads_a_picture(server, tmp_path):
    path = tmp_path / "a b.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n and\r\nmore\r\n")
    server.add(Reply(text="seen"))
    asked: Any = [{"role": "user", "content": [{"image": f"file://{path}"}, {"text": "what?"}]}]
    dashscope.MultiModalConversation.call(model="qwen-vl-max", messages=asked)
    (upload,) = dialect_of(server).uploads
    assert upload.raw == path.read_bytes()
    assert server.requests[0].messages[0]["content"][0] == {"image": upload.address}
    assert server.requests[0].headers["x-dashscope-ossresourceresolve"] == "enable"


# -- ours beside the SDK's --------------------------------------------------------------------------------------------


HEADERS = (
    "authorization", "accept", "content-type", "x-dashscope-sse", "x-accel-buffering", "x-dashscope-ossresourceresolve",
)  # fmt: skip


def ours(server: ModelServer, model_type: str, messages: list[Message], *functions: Any, **generate: Any) -> Any:
    server.add(Reply(text="a"))
    address = server.dashscope_url
    cfg = {"model": "qwen-max", "model_type": model_type, "base_url": address, "api_key": KEY, "generate_cfg": generate}
    model = get_chat_model(cfg)
    model.chat(messages, functions=functions, stream=False)
    run(model.aclose())
    return server.requests[-1]


def same(mine: Any, theirs: Any) -> None:
    """What the service goes by is the same."""
    assert mine.path == theirs.path
    assert mine.body == theirs.body
    for name in HEADERS:
        assert mine.headers.get(name) == theirs.headers.get(name), name


def test_our_question_of_text_is_the_sdks(server):
    messages = [
        Message(SYSTEM, "s"),
        Message(USER, "q"),
        Message(ASSISTANT, "", function_call=FunctionCall("weather", "{}"), extra={"function_id": "c1"}),
        Message(FUNCTION, "sunny", name="weather", extra={"function_id": "c1"}),
    ]
    mine = ours(server, "qwen_dashscope", messages, WEATHER, temperature=0.5, stop=["x"], enable_thinking=False)
    server.add(Reply(text="a"))
    streamed(messages=mine.messages, incremental_output=True, temperature=0.5, stop=["x"], enable_thinking=False,
             tools=[{"type": "function", "function": WEATHER}], tool_choice="auto")  # fmt: skip
    same(mine, server.requests[-1])


def test_our_question_with_a_recording_is_the_sdks(server, tmp_path):
    recording = tmp_path / "a.wav"
    recording.write_bytes(b"RIFF\x24\x00\x00\x00WAVEfmt ")
    items = [ContentItem(audio=str(recording)), ContentItem(text="what?")]
    mine = ours(server, "qwenaudio_dashscope", [Message(USER, items)])
    server.add(Reply(text="a"))
    asked: Any = [{"role": "user", "content": [{"audio": f"file://{recording}"}, {"text": "what?"}]}]

    async def theirs() -> None:
        call = cast("Any", dashscope.AioMultiModalConversation.call)
        async for _ in await call(
            model="qwen-max", messages=asked, stream=True, incremental_output=True, result_format="message"
        ):
            pass
        await close_shared_aio_session()

    asyncio.run(theirs())
    first, second = dialect_of(server).uploads
    assert first.raw == second.raw == recording.read_bytes()
    by_chance = {"key": "", "x-oss-content-type": ""}  # we tell a type by the content, the SDK by the name
    assert {**first.form, **by_chance} == {**second.form, **by_chance}
    assert Path(first.form["key"]).suffix == Path(second.form["key"]).suffix == ".wav"
    server.requests[-1].body["input"]["messages"][0]["content"][0]["audio"] = first.address
    same(mine, server.requests[-1])


def test_a_picture_of_ours_travels_in_the_request(server, tmp_path):
    dot = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    picture = tmp_path / "a.png"
    picture.write_bytes(dot)
    items = [ContentItem(image=str(picture)), ContentItem(text="what?")]
    mine = ours(server, "qwenvl_dashscope", [Message(USER, items)])
    assert mine.messages[-1]["content"][0]["image"] == f"data:image/png;base64,{base64.b64encode(dot).decode()}"
    assert dialect_of(server).uploads == []
