"""What every back end with a protocol of its own promises beside the contract: one more is a line of `services.py`."""

from __future__ import annotations

import base64
import json
import logging

import httpx2
import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError
from core.llm.backends.native.service import Translator
from core.llm.ledger import LedgerCall, recorded_by
from core.messages.content import ContentItem
from core.messages.events import CallStarted, MessageFinished, ReasoningDelta, TextDelta
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.runs.call_stages import stages_of
from core.testing.script import Reply, refusal
from tests.core.llm.backends.native.services import KEY, PDF, SERVICES, WEATHER

pytestmark = pytest.mark.anyio

DOT = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
ASKED = Message(USER, "What is the weather in Oslo and in Rome?")


def answered(reply: list[Message]) -> list[Message]:
    """The conversation so far, every call answered."""
    calls = [one for one in reply if one.function_call]
    return [ASKED, *reply, *(Message(FUNCTION, "rain", name="weather", extra={**(call.extra or {})}) for call in calls)]


def text_of(events) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def test_a_thought_goes_back_with_the_calls_that_it_led_to(native):
    calls = [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]
    native.play(Reply(reasoning="Two cities.", text="One moment.", calls=calls), Reply(text="Rain."))
    model = native.model()
    generate = {"reasoning_effort": "low"}
    reply = await model.achat([ASKED], [WEATHER], generate)
    assert [one.reasoning_content for one in reply if one.reasoning_content] == ["Two cities."]
    assert "Two cities." not in "".join(one.get_text_content() for one in reply)
    signed = native.signed()
    assert signed
    await model.achat(answered(reply), [WEATHER], generate)
    assert all(one in native.sent() for one in signed)


async def test_a_thought_that_was_changed_is_left_out(native):
    native.play(Reply(reasoning="Two cities.", calls=[("weather", {"city": "Oslo"})]), Reply(text="Rain."))
    model = native.model()
    reply = await model.achat([ASKED], [WEATHER])
    changed = [
        one.model_copy(update={"reasoning_content": "Something else."}) if one.reasoning_content else one
        for one in reply
    ]
    assert (await model.achat(answered(changed), [WEATHER]))[-1].get_text_content() == "Rain."
    assert "Something else." not in native.sent()


async def test_a_thought_of_another_model_is_left_out(native):
    native.play(Reply(reasoning="Two cities.", calls=[("weather", {"city": "Oslo"})]), Reply(text="Rain."))
    reply = await native.model().achat([ASKED], [WEATHER])
    await native.model("another").achat(answered(reply), [WEATHER])
    assert native.signed()
    assert not any(one in native.sent() for one in native.signed())


async def test_every_call_has_its_result_under_its_id(native):
    calls = [("weather", {"city": city}) for city in ("Oslo", "Rome", "北京")]
    native.play(Reply(calls=calls), Reply(calls=calls[:1]), Reply(text="Rain."))
    model = native.model()
    said = [ASKED]
    for _ in range(2):
        reply = await model.achat(said, [WEATHER])
        said = [*said, *answered(reply)[1:]]
    assert (await model.achat(said, [WEATHER]))[-1].get_text_content() == "Rain."
    results = [one for one in native.server.requests[-1].messages if one["role"] == "tool"]
    assert len({one["tool_call_id"] for one in results}) == 4


async def test_a_call_that_another_service_made_can_be_told(native):
    native.play(Reply(text="Rain."))
    odd = {"function_id": "call:{1}/é"}
    call = Message(ASSISTANT, "", function_call={"name": "weather", "arguments": '{"city": "Oslo"}'}, extra=odd)
    result = Message(FUNCTION, "rain", name="weather", extra=odd)
    assert (await native.model().achat([ASKED, call, result], [WEATHER]))[-1].get_text_content() == "Rain."


async def test_a_picture_in_a_result_reaches_the_model(native):
    native.play(Reply(calls=[("weather", {"city": "Oslo"})]), Reply(text="A dot."))
    model = native.model(vision=True)
    reply = await model.achat([ASKED], [WEATHER])
    said = answered(reply)
    said[-1] = said[-1].model_copy(update={"content": [ContentItem(text="A map:"), ContentItem(image=DOT)]})
    await model.achat(said, [WEATHER])
    assert DOT.partition(",")[2] in native.sent()


async def test_a_document_is_sent_as_it_is(native, document):
    native.play(Reply(text="A plan."))
    asked = Message(USER, [ContentItem(text="What is it?"), ContentItem(file=document)])
    await native.model(documents=True).achat([asked])
    assert base64.b64encode(PDF).decode() in native.sent()
    assert any(kind in native.sent() for kind in ("application/pdf", '"format": "pdf"'))


async def test_a_document_is_named_where_it_is_not_taken(native, document):
    native.play(Reply(text="I cannot read it."))
    asked = Message(USER, [ContentItem(text="What is it?"), ContentItem(file=document)])
    await native.model(documents=False).achat([asked])
    assert "plan.pdf" in native.sent()
    assert "JVBERi0" not in native.sent()


async def test_what_is_no_document_is_refused_by_name(native, tmp_path):
    (tmp_path / "passwords.pdf").write_text("root:x:0:0")
    asked = Message(USER, [ContentItem(file=str(tmp_path / "passwords.pdf"))])
    with pytest.raises(ModelRefusedError, match=r"passwords\.pdf"):
        await native.model(documents=True).achat([asked])
    assert native.server.requests == []


async def test_an_answer_can_be_held_to_a_schema(native):
    native.play(Reply(text='{"city": "Oslo"}'))
    await native.events("Which city?", response_format=SCHEMA)
    assert '"additionalProperties": false' in native.sent()


async def test_a_schema_that_is_refused_is_left_out(native):
    name = {"anthropic": "output_config.format.schema"}.get(
        native.kind.model_type, "response_schema response_format text.format"
    )
    native.play(refusal(400, f"{name}: this schema is too complex."), Reply(text="Oslo"), Reply(text="Rome"))
    generate = {"response_format": SCHEMA, "if_taken": ["response_format"]}
    model = native.model()
    for _ in range(2):
        await model.achat([ASKED], None, generate)
        assert "additionalProperties" not in native.sent()
    assert len(native.server.requests) == 3
    assert "response_format" in model.left_out


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter"])
async def test_it_says_why_a_reply_ended(native, finish):
    native.play(Reply(text="one two", finish=finish))
    assert (await native.events())[-1].reason == finish


async def test_a_call_that_was_cut_off_is_not_whole(native):
    native.play(Reply(calls=[("weather", {"city": "Oslo"})], finish="length"))
    assert (await native.events("q", WEATHER))[-1].reason == "length"


async def test_text_may_come_apart_anywhere(native):
    native.play(Reply(text="Hello, 世界 😀!", reasoning="先想.", calls=[("weather", {"city": "北京"})], split=1))
    events = await native.events("q", WEATHER)
    assert text_of(events) == "Hello, 世界 😀!"
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "先想."


async def test_lines_may_end_as_windows_ends_them(native):
    native.play(Reply(text="Hello!", crlf=True, comments=True))
    assert text_of(await native.events()) == "Hello!"


async def test_a_reply_that_is_not_streamed_is_the_same(native):
    told = Reply(
        reasoning="Hm.", text="Hello!", calls=[("weather", {"city": "Oslo"})], usage=(50, 70), cached_tokens=20
    )
    native.play(told, told)
    streamed = await native.events("q", WEATHER)
    whole = await native.events("q", WEATHER, stream=False)
    assert text_of(whole) == text_of(streamed) == "Hello!"
    assert [event.name for event in whole if isinstance(event, CallStarted)] == ["weather"]
    assert [event.text for event in whole if isinstance(event, ReasoningDelta) and event.text] == ["Hm."]
    assert (whole[-1].reason, whole[-1].usage) == (streamed[-1].reason, streamed[-1].usage)


async def test_a_service_that_is_overloaded_says_so(native):
    status = 529 if native.kind.model_type == "anthropic" else 503
    native.play(refusal(status, "Overloaded", retry_after="3"))
    with pytest.raises(ModelUnavailableError) as caught:
        await native.events()
    assert (caught.value.words_key, caught.value.retry_after) == ("model_overloaded", 3.0)


async def test_an_error_within_a_reply_is_told(native):
    broken = {"error": {"message": "Slow down.", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}
    native.play(Reply(text="one two three", error=broken, error_after=2))
    with pytest.raises((ModelUnavailableError, ModelMisbehavedError), match="Slow down"):
        await native.events()


async def test_a_reply_that_breaks_off_keeps_what_had_come(native):
    native.play(Reply(text="one two three four five six", cut_after=5))
    with pytest.raises(ModelMisbehavedError) as caught:
        await native.model().achat([ASKED])
    assert caught.value.words_key == "model_cut_off"
    assert caught.value.extra is not None
    assert caught.value.extra["partial"][0]["content"].startswith("one")


async def test_a_code_of_strange_digits_is_told_as_an_error_without_a_status(native):
    error = {"type": "²²²", "status": "²²²", "code": "²²²", "message": "Odd."}
    body = {"type": "error", "error": error}  # as each of the protocols has it
    native.play(Reply(body=json.dumps(body)))
    with pytest.raises((ModelUnavailableError, ModelMisbehavedError)):
        await native.events()


def test_a_redirect_to_no_address_is_no_service():
    translator = Translator("Messages", "https://models.example.com", "k", "m", {})
    error = translator.refused(httpx2.Response(300, headers={"location": "http://[nowhere"}))
    assert error.words_key == "model_html"


async def test_a_web_page_is_no_service(native):
    native.play(Reply(body="<html><body>Welcome</body></html>", content_type="text/html"))
    with pytest.raises(ModelMisbehavedError) as caught:
        await native.events()
    assert caught.value.words_key == "model_html"


async def test_what_is_no_such_protocol_is_said_to_be_none(native):
    native.play(Reply(body='{"hello": "world"}'))
    with pytest.raises(ModelMisbehavedError, match="protocol"):
        await native.events()


async def test_a_conversation_that_is_too_long_is_told_apart(native):
    native.play(refusal(400, "prompt is too long: 210000 tokens > 200000 maximum"))
    with pytest.raises(Exception) as caught:
        await native.events()
    assert type(caught.value).__name__ == "ContextTooLongError"


async def test_no_key_is_shown_or_logged(native, caplog):
    caplog.set_level(logging.DEBUG)
    native.play(refusal(401, f"Incorrect API key provided: {KEY}.", code="invalid_api_key"), Reply(text="Hello!"))
    with pytest.raises(ModelRefusedError) as caught:
        await native.events()
    await native.events()
    error = caught.value
    assert KEY not in f"{error} {error.message} {error.details} {error.extra} {caplog.text}"
    assert error.words_key == "model_key_wrong"


async def test_without_a_key_nothing_is_asked(native):
    with pytest.raises(ModelRefusedError) as caught:
        await native.model(api_key=None).achat([ASKED])
    assert caught.value.words_key == "model_key_missing"
    assert native.server.requests == []


async def test_sampling_goes_where_the_service_has_it(native):
    native.play(Reply(text="Hello!"))
    given = {"temperature": 0.5, "top_p": 0.9, "max_tokens": 33, "seed": 7}
    await native.events("q", **{name: given[name] for name in native.kind.sampling})
    for name, place in native.kind.sampling.items():
        value = native.body()
        for key in place.split("."):
            value = value[key]
        assert value == given[name]


async def test_the_account_has_what_went_over_the_wire(native):
    class Ledger:
        def began(self, call: LedgerCall, spoke) -> None: ...
        def reads(self, call: LedgerCall, so_far) -> None: ...
        def ended(self, call: LedgerCall) -> None:
            self.call = call

    native.play(Reply(text="Hello!", usage=(50, 70), reasoning_tokens=30, cached_tokens=20))
    ledger = Ledger()
    with recorded_by(ledger):
        await native.events()
    (exchange,) = ledger.call.wire.exchanges
    assert json.loads(exchange.sent) == native.body()
    assert exchange.status == 200
    assert b"Hello!" in exchange.received.head
    thought = 30 if native.kind.counts_thoughts else 0
    assert ledger.call.usage is not None
    assert (ledger.call.usage.cached_tokens, ledger.call.usage.reasoning_tokens) == (20, thought)
    assert KEY in str(exchange.headers)
    assert KEY not in json.dumps(stages_of(ledger.call))


async def test_the_list_of_its_models_is_asked_when_it_is_warmed_up(native):
    model = native.model()
    await model.awarm_up()
    assert native.server.connections == 1


async def test_a_text_that_ends_with_the_assistant_is_gone_on_with(native):
    native.play(Reply(text=" two"))
    events = await native.events([Message(USER, "Count."), Message(ASSISTANT, "one")])
    assert text_of(events) == " two"
    assert isinstance(events[-1], MessageFinished)


def test_a_service_leaves_out_only_what_there_is_and_says_why():
    promises = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    for kind in SERVICES:
        assert set(kind.leaves_out) <= promises
        assert all(kind.leaves_out.values())
