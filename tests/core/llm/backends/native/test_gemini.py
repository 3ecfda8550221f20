"""What is Gemini's own: thinking by the generation of a model, signatures, what is blocked, addresses of media."""

from __future__ import annotations

import json

import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError
from core.llm.open_model import get_chat_model
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.testing.script import Reply
from tests.core.llm.backends.native.services import SERVICES, WEATHER

pytestmark = pytest.mark.anyio

EARLIER, LATER = "gemini-2.5-flash", "gemini-3-pro-preview"


@pytest.fixture
def native(serving):
    return serving(next(one for one in SERVICES if one.model_type == "gemini"))


async def asked(native, model: str, messages=None, functions=(), **generate):
    native.play(Reply(text="Hello!"))
    await native.model(model, generate_cfg=generate).achat(messages or [Message(USER, "q")], list(functions))
    return native.body()


async def test_how_long_it_thinks_is_said_as_its_generation_takes_it(native):
    earlier = await asked(native, EARLIER, reasoning_effort="high")
    assert earlier["generationConfig"]["thinkingConfig"] == {"includeThoughts": True, "thinkingBudget": 24_576}
    later = await asked(native, LATER, reasoning_effort="low")
    assert later["generationConfig"]["thinkingConfig"] == {"includeThoughts": True, "thinkingLevel": "low"}
    off = await asked(native, EARLIER, reasoning_effort="none")
    assert off["generationConfig"]["thinkingConfig"] == {"thinkingBudget": 0}


async def test_its_thoughts_are_asked_for_where_it_thinks(native):
    assert (await asked(native, LATER))["generationConfig"]["thinkingConfig"] == {"includeThoughts": True}
    assert "generationConfig" not in await asked(native, "gemini-2.0-flash")
    assert "generationConfig" not in await asked(native, "gemini-2.5-flash-image")


async def test_calls_of_another_model_are_marked_as_unsigned_for_one_that_looks(native):
    extra = {"function_id": "call_1"}
    call = Message(ASSISTANT, "", function_call={"name": "weather", "arguments": "{}"}, extra=extra)
    said = [Message(USER, "q"), call, Message(FUNCTION, "rain", name="weather", extra=extra)]
    body = await asked(native, LATER, said, [WEATHER])
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"
    body = await asked(native, EARLIER, said, [WEATHER])
    assert "thoughtSignature" not in body["contents"][1]["parts"][0]


async def test_of_calls_that_are_made_at_once_only_the_first_is_signed(native):
    native.play(Reply(calls=[("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]), Reply(text="Rain."))
    model = native.model(LATER)
    calls = await model.achat([Message(USER, "q")], [WEATHER])
    results = [Message(FUNCTION, "rain", name="weather", extra=dict(one.extra)) for one in calls]
    await model.achat([Message(USER, "q"), *calls, *results], [WEATHER])
    said = native.body()["contents"]
    assert [("thoughtSignature" in part) for part in said[1]["parts"]] == [True, False]
    assert [part["functionResponse"]["id"] for part in said[2]["parts"]] == [
        part["functionCall"]["id"] for part in said[1]["parts"]
    ]


async def test_a_forced_tool_is_the_only_one_that_may_be_called(native):
    body = await asked(native, LATER, None, [WEATHER], function_choice="weather")
    how = body["toolConfig"]["functionCallingConfig"]
    assert how == {"mode": "ANY", "allowedFunctionNames": ["weather"]}


async def test_a_question_that_is_blocked_is_refused(native):
    native.play(Reply(body=json.dumps({"promptFeedback": {"blockReason": "SAFETY"}})))
    with pytest.raises(ModelRefusedError) as caught:
        await native.events()
    assert caught.value.words_key == "model_content_refused"


async def test_a_call_that_cannot_be_read_is_an_error(native):
    candidate = {"content": {"parts": []}, "finishReason": "MALFORMED_FUNCTION_CALL"}
    native.play(Reply(body=json.dumps({"candidates": [candidate]})))
    with pytest.raises((ModelMisbehavedError, ModelUnavailableError), match="cannot read"):
        await native.events("q", WEATHER)


async def test_the_pause_among_an_errors_details_is_kept(native):
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]
    error = {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED", "details": details}
    native.play(Reply(status=429, body=json.dumps({"error": error})))
    with pytest.raises(ModelUnavailableError) as caught:
        await native.events()
    assert caught.value.retry_after == 7.0


async def test_media_elsewhere_are_told_by_their_addresses(native):
    items = [
        ContentItem(text="What is it?"),
        ContentItem(image="https://example.org/a.png"),
        ContentItem(file="https://example.org/plan.pdf"),
        ContentItem(video="https://example.org/a.mp4"),
    ]
    body = await asked(native, LATER, [Message(USER, items)])
    files = [part["fileData"] for part in body["contents"][0]["parts"] if "fileData" in part]
    assert [one["mimeType"] for one in files] == ["image/png", "application/pdf", "video/mp4"]


async def test_a_picture_that_it_draws_is_part_of_the_reply(native):
    native.play(Reply(text="A dot.", images=[b"\x89PNG\r\n\x1a\nmore"]))
    reply = await native.model().achat([Message(USER, "Draw a dot.")])
    assert reply[-1].items[-1].image.startswith("data:image/png;base64,")


def test_an_address_may_be_the_one_for_openais_protocol():
    for given in (
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        "generativelanguage.googleapis.com/v1beta",
    ):
        model = get_chat_model({"model_type": "gemini", "base_url": given, "api_key": "k"})
        assert model.service.address == "https://generativelanguage.googleapis.com"
        assert model.service.provider == "gcp.gemini"


def test_it_says_how_long_it_can_think():
    def efforts(name):
        return set(get_chat_model({"model_type": "gemini", "model": name}).efforts)

    assert efforts(EARLIER) == {"off", "short", "long"}
    assert efforts(LATER) == efforts("gemini-2.5-pro") == {"short", "long"}
    assert efforts("gemini-2.0-flash") == set()


async def test_what_signs_an_answer_goes_back_with_it(native):
    native.play(Reply(text="Oslo."), Reply(text="Rome."))
    model = native.model(LATER)
    asked = [Message(USER, "Which city?")]
    said = await model.achat(asked)
    assert said[-1].get_text_content() == "Oslo."
    await model.achat([*asked, *said, Message(USER, "And in Italy?")])
    (signature,) = [one for one in native.server.dialects[1].signed if one in native.sent()]
    assert native.body()["contents"][1]["parts"] == [{"text": "Oslo.", "thoughtSignature": signature}]


async def test_what_signs_an_answer_is_not_for_another_model(native):
    native.play(Reply(text="Oslo."), Reply(text="Rome."))
    asked = [Message(USER, "Which city?")]
    said = await native.model(LATER).achat(asked)
    await native.model(EARLIER).achat([*asked, *said, Message(USER, "And in Italy?")])
    assert "thoughtSignature" not in native.sent()


async def test_a_signature_before_calls_stays_with_its_text(native):
    parts = [
        {"text": "I look."},
        {"text": "", "thoughtSignature": "c2lnbmVk"},
        {"functionCall": {"id": "fc_1", "name": "weather", "args": {"city": "Oslo"}}},
    ]
    native.server.dialects[1].signed["c2lnbmVk"] = ""
    whole = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    native.play(Reply(body=json.dumps(whole)), Reply(text="Rain."))
    model = native.model(LATER)
    asked = [Message(USER, "q")]
    said = await model.achat(asked, [WEATHER])
    result = Message(FUNCTION, "rain", name="weather", extra={"function_id": "fc_1"})
    await model.achat([*asked, *said, result], [WEATHER])
    told = native.body()["contents"][1]["parts"]
    assert told[0] == {"text": "I look.", "thoughtSignature": "c2lnbmVk"}
