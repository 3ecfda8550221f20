"""What is the Responses protocol's own: nothing is stored there, thoughts go along encrypted, summaries."""

from __future__ import annotations

import json

import pytest

from core.errors import ModelUnavailableError
from core.messages.events import ReasoningDelta
from core.messages.message import SYSTEM, USER, Message
from core.testing.script import Reply, refusal
from tests.core.llm.backends.native.services import SERVICES, WEATHER

pytestmark = pytest.mark.anyio


@pytest.fixture
def native(serving):
    return serving(next(one for one in SERVICES if one.model_type == "openai_responses"))


async def test_nothing_is_stored_at_the_service(native):
    native.play(Reply(text="Hello!"))
    await native.events()
    assert native.body()["store"] is False
    assert native.body()["include"] == ["reasoning.encrypted_content"]


async def test_a_model_that_does_not_think_is_not_asked_to(native):
    native.play(Reply(text="Hello!"))
    await native.model("gpt-4o").achat([Message(USER, "q")])
    assert "reasoning" not in native.body()
    assert "include" not in native.body()


async def test_instructions_stand_apart(native):
    native.play(Reply(text="Hello!"))
    await native.events([Message(SYSTEM, "Be short."), Message(USER, "q")])
    assert native.body()["instructions"] == "Be short."
    assert [one["role"] for one in native.body()["input"]] == ["user"]


async def test_the_effort_and_a_summary_of_thoughts_are_asked_for(native):
    native.play(Reply(text="Hello!"))
    await native.events("q", reasoning_effort="high")
    assert native.body()["reasoning"] == {"effort": "high", "summary": "auto"}


async def test_an_account_that_gets_no_summaries_is_asked_without_from_then_on(native):
    said = "Your organization must be verified to generate reasoning summaries."
    native.play(refusal(400, said), Reply(text="Hello!"), Reply(text="Again!"))
    model = native.model()
    for _ in range(2):
        await model.achat([Message(USER, "q")], None, {"reasoning_effort": "low"})
    assert native.body()["reasoning"] == {"effort": "low"}
    assert len(native.server.requests) == 3


async def test_a_schema_stands_beside_its_type(native):
    wanted = {"name": "answer", "schema": {"type": "object"}, "strict": True}
    native.play(Reply(text="{}"))
    await native.events("q", response_format={"type": "json_schema", "json_schema": wanted})
    assert native.body()["text"]["format"] == {"type": "json_schema", **wanted}


async def test_a_reply_that_failed_is_an_error(native):
    failed = {"object": "response", "status": "failed", "output": []}
    error = {"code": "rate_limit_exceeded", "message": "Slow down."}
    event = {"type": "response.failed", "response": {**failed, "error": error}}
    native.play(Reply(body=f"event: response.failed\ndata: {json.dumps(event)}\n\n", content_type="text/event-stream"))
    with pytest.raises(ModelUnavailableError, match="Slow down") as caught:
        await native.events()
    assert caught.value.code == "429"


async def test_parts_of_a_summary_are_paragraphs(native):
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "hidden"}
    told = [
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "One."},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "Two."},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.output_text.delta", "output_index": 1, "delta": "Hello!"},
        {"type": "response.completed", "response": {"object": "response", "usage": None}},
    ]
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in told)
    native.play(Reply(body=body, content_type="text/event-stream"))
    events = await native.events()
    thought = [event for event in events if isinstance(event, ReasoningDelta)]
    assert "".join(event.text for event in thought) == "One.\n\nTwo."
    assert "hidden" in thought[-1].proof


async def test_calls_at_once_may_be_forbidden(native):
    native.play(Reply(text="Hello!"))
    await native.events("q", WEATHER, parallel_function_calls=False)
    assert native.body()["parallel_tool_calls"] is False
