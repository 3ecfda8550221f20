"""What is Mistral's own: ids of nine letters, a word after a result, text that it goes on with, documents."""

from __future__ import annotations

import json

import pytest

from core.errors import ModelRefusedError
from core.llm.wire.mistral import short_id
from core.messages.content import ContentItem
from core.messages.events import ReasoningDelta, TextDelta
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.testing.script import Reply
from tests.core.llm.backends.native.services import SERVICES, WEATHER

pytestmark = pytest.mark.anyio


@pytest.fixture
def native(serving):
    return serving(next(one for one in SERVICES if one.model_type == "mistral"))


def test_an_id_is_as_the_service_takes_it_and_stays_where_it_is():
    assert short_id("m00010002") == "m00010002"
    assert len(short_id("call_1")) == 9
    assert short_id("call_1") == short_id("call_1") != short_id("call_2")


async def test_a_text_is_gone_on_with_as_the_service_has_it(native):
    native.play(Reply(text=" two"))
    await native.events([Message(USER, "Count."), Message(ASSISTANT, "one")])
    assert native.body()["messages"][-1] == {"role": "assistant", "content": "one", "prefix": True}


async def test_a_question_right_after_a_result_has_a_word_between(native):
    extra = {"function_id": "call_1"}
    call = Message(ASSISTANT, "", function_call={"name": "weather", "arguments": "{}"}, extra=extra)
    result = Message(FUNCTION, "rain", name="weather", extra=extra)
    native.play(Reply(text="Rain."))
    await native.events([Message(USER, "q"), call, result, Message(USER, "And now?")], WEATHER)
    assert [one["role"] for one in native.body()["messages"]] == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_document_has_its_name(native, document):
    native.play(Reply(text="A plan."))
    await native.events([Message(USER, [ContentItem(text="What is it?"), ContentItem(file=document)])])
    (chunk,) = (one for one in native.body()["messages"][0]["content"] if one["type"] == "document_url")
    assert chunk["document_url"].startswith("data:application/pdf;base64,")
    assert chunk["document_name"].endswith(".pdf")


async def test_what_the_service_does_not_know_is_not_sent_unasked(native):
    native.play(Reply(text="Hello!"))
    await native.events("q", seed=7)
    assert native.body().keys() == {"model", "messages", "stream", "random_seed"}


async def test_a_refusal_is_read_in_its_own_form(native):
    native.play(Reply(status=422, body=json.dumps({"detail": [{"loc": ["body", "n"], "msg": "Input should be less"}]})))
    with pytest.raises(ModelRefusedError, match="Input should be less"):
        await native.events()


async def test_a_thought_ends_where_plain_text_begins(native):
    chunks = [
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]},
        {"content": "Hello!"},
    ]
    told = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in chunks]
    told.append({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]})
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in told) + "data: [DONE]\n\n"
    native.play(Reply(body=body, content_type="text/event-stream"))
    said = [event for event in await native.events() if isinstance(event, TextDelta | ReasoningDelta)]
    assert "".join(one.text for one in said) == "Hm.Hello!"
    assert [bool(one.proof) for one in said if isinstance(one, ReasoningDelta)][-1]
    assert isinstance(said[-1], TextDelta)
