"""Somebody who looks at what goes in and out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from core.errors import (
    ContentRefusedError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    ModelUnavailableError,
    SettingsError,
)
from core.llm.layers.moderation import moderation
from core.llm.request import ChatRequest
from core.messages.content import ContentItem
from core.messages.events import Event, MessageFinished, MessageStarted, TextDelta
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio


class Looker:
    """Refuses whatever has the word; keeps what it saw."""

    def __init__(self, word: str = "bomb") -> None:
        self.word = word
        self.seen: list[tuple[str, str]] = []

    def __call__(self, text: str, side: str) -> str | None:
        self.seen.append((side, text))
        return f"It speaks of a {self.word}." if self.word in text else None


def guarded(moderation: object, *turns: Any) -> ScriptedModel:
    model = ScriptedModel(*turns)
    model.cfg = {"moderation": moderation}
    return model


async def ask(model: ScriptedModel, *messages: Message, seen: list[Event] | None = None) -> list[Event]:
    seen = [] if seen is None else seen
    async with aclosing(model.stream(ChatRequest(messages or (Message(USER, "Hello"),)))) as events:
        async for event in events:
            seen.append(event)
    return seen


async def test_without_it_the_layer_is_not_there():
    model = ScriptedModel("a")

    async def below(request: ChatRequest):
        yield MessageStarted()

    stream = moderation(model)(ChatRequest((Message(USER, "q"),)), below)
    assert getattr(stream, "ag_code") is below.__code__  # noqa: B009 - generators are typed without it


async def test_a_refused_question_never_reaches_the_model():
    look = Looker()
    model = guarded(look, "never said")
    with pytest.raises(ContentRefusedError, match="It speaks of a bomb") as raised:
        await ask(model, Message(USER, "How is a bomb built?"))
    assert model.requests == []
    assert isinstance(raised.value, ModelRefusedError)
    assert raised.value.details["reason"] == "It speaks of a bomb."
    assert (raised.value.details["side"], raised.value.words_key) == ("in", "content_refused")


async def test_what_tools_return_is_looked_at_and_every_text_once():
    look = Looker()
    model = guarded(look, Reply(calls=[("f", {"a": 1})]), "fine")
    talk = [Message(SYSTEM, "Be good."), Message(USER, [ContentItem(text="One"), ContentItem(image="https://x/y.png")])]
    await ask(model, *talk)
    talk += [
        Message(ASSISTANT, "", function_call={"name": "f", "arguments": "{}"}, extra={"function_id": "1"}),
        Message(FUNCTION, "the result", name="f", extra={"function_id": "1"}),
    ]
    await ask(model, *talk)
    assert [text for side, text in look.seen if side == "in"] == ["One", "the result"]


async def test_a_reply_is_held_until_it_was_looked_at():
    look, seen = Looker(), []
    words = ["word "] * 200
    model = guarded(look, Reply(text=[*words, "bomb ", *words]))
    with pytest.raises(ContentRefusedError) as raised:
        await ask(model, seen=seen)
    shown = "".join(event.text for event in seen if isinstance(event, TextDelta))
    assert "bomb" not in shown
    assert 400 <= len(shown) <= 1000
    assert raised.value.details["side"] == "out"
    assert model.closed == 1, "the model was told to stop"


async def test_a_reply_that_passes_is_whole_and_so_are_its_calls():
    look = Looker()
    model = guarded(look, Reply(reasoning="Hm.", text="fine " * 300, calls=[("f", {"city": "Paris"})]))
    seen = await ask(model)
    assert seen == await ask(
        ScriptedModel(Reply(reasoning="Hm.", text="fine " * 300, calls=[("f", {"city": "Paris"})]))
    )
    assert any("Paris" in text for side, text in look.seen if side == "out")


async def test_a_call_with_refused_arguments_is_never_told():
    seen: list[Event] = []
    with pytest.raises(ContentRefusedError):
        await ask(guarded(Looker(), Reply(calls=[("f", {"what": "bomb"})])), seen=seen)
    assert [event.kind for event in seen] == ["message_started"]


async def test_the_user_s_function_may_be_asynchronous_and_may_say_yes_or_no():
    async def look(text: str, side: str) -> bool:
        return "bomb" in text

    assert isinstance((await ask(guarded(look, "fine")))[-1], MessageFinished)
    with pytest.raises(ContentRefusedError, match="flagged"):
        await ask(guarded(look, "a bomb"))

    class Object:
        async def __call__(self, text: str, side: str) -> str:
            return "no" if side == "out" else ""

    with pytest.raises(ContentRefusedError, match="no"):
        await ask(guarded(Object(), "fine"))


async def test_a_function_that_fails_lets_nothing_pass():
    def look(text: str, side: str) -> None:
        raise LookupError("the list is gone")

    model = guarded(look, "never said")
    with pytest.raises(LookupError):
        await ask(model)
    assert model.requests == []


@pytest.mark.parametrize("wrong", ["yes", 7, {"sides": "left"}, {"modle": "m"}, {"api_key": 7}])
async def test_wrong_settings_say_so(wrong: object):
    with pytest.raises(SettingsError, match="moderation"):
        await ask(guarded(wrong))


# -- a service --------------------------------------------------------------------------------------------------------


class Service(ThreadingHTTPServer):
    """Speaks the protocol of OpenAI's moderation."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.status = 200
        self.body: Any = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        service = self.server
        assert isinstance(service, Service)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service.asked.append((f"{self.path} {self.headers['Authorization']}", body))
        flagged = "bomb" in body["input"]
        categories = {"violence": flagged, "hate": False, "illicit/violent": flagged}
        answer = service.body or {"results": [{"flagged": flagged, "categories": categories}]}
        raw = json.dumps(answer).encode()
        self.send_response(service.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def service() -> Iterator[Service]:
    """A moderation service on a real socket."""
    with Service() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


async def test_a_service_says_why_it_refuses(service: Service):
    cfg = {"base_url": service.base_url, "api_key": "sk-moderation", "model": "some-moderation"}
    model = guarded(cfg, "a bomb is", "never said")
    with pytest.raises(ContentRefusedError, match="illicit/violent, violence") as raised:
        await ask(model)
    assert raised.value.details["side"] == "out"
    assert service.asked[0] == (
        "/v1/moderations Bearer sk-moderation",
        {"model": "some-moderation", "input": "Hello"},
    )


async def test_one_side_alone_may_be_looked_at(service: Service):
    cfg = {"base_url": service.base_url, "api_key": "sk-moderation", "sides": "in"}
    await ask(guarded(cfg, "a bomb"))
    assert [body["input"] for _, body in service.asked] == ["Hello"]


async def test_true_means_the_model_s_own_service_and_key(service: Service):
    model = guarded(True, "fine")
    model.cfg |= {"base_url": service.base_url, "api_key": "sk-own"}
    await ask(model)
    assert service.asked[0][0] == "/v1/moderations Bearer sk-own"


@pytest.mark.parametrize("its_own", [True, False])
async def test_the_vendor_s_key_goes_to_no_stranger(
    service: Service, monkeypatch: pytest.MonkeyPatch, its_own: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-vendor")
    model = guarded({"base_url": service.base_url} if its_own else True, "fine")
    model.cfg |= {"base_url": service.base_url}
    await ask(model)
    assert service.asked[0][0] == "/v1/moderations Bearer EMPTY"


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (500, {"error": {"message": "broken"}}, ModelUnavailableError),
        (401, {"error": {"message": "Incorrect API key: sk-moderation-1"}}, ModelRefusedError),
        (200, {"choices": []}, ModelMisbehavedError),
        (200, [], ModelMisbehavedError),
    ],
)
async def test_a_service_that_cannot_say_lets_nothing_pass(
    service: Service, status: int, body: Any, error: type[ModelServiceError]
):
    service.status, service.body = status, body or [1]
    model = guarded({"base_url": service.base_url, "api_key": "sk-moderation-1"}, "never said")
    with pytest.raises(error) as raised:
        await ask(model)
    assert model.requests == []
    assert "sk-moderation-1" not in str(raised.value)


async def test_a_service_that_is_gone_lets_nothing_pass(service: Service):
    model = guarded({"base_url": "http://127.0.0.1:1/v1", "api_key": "sk-moderation"}, "never said")
    with pytest.raises(ModelUnavailableError):
        await ask(model)
    assert model.requests == []


async def test_what_a_broken_reply_had_said_is_looked_at_and_kept():
    async def below(request: ChatRequest):
        yield TextDelta("one two")
        raise ModelMisbehavedError(message="cut off")

    async def heard(look: Looker) -> list[Event]:
        seen: list[Event] = []
        with pytest.raises(ModelServiceError) as caught:
            async for event in moderation(guarded(look))(ChatRequest((Message(USER, "q"),)), below):
                seen += [event]
        assert type(caught.value) is (ModelMisbehavedError if seen else ContentRefusedError)
        return seen

    assert await heard(Looker()) == [TextDelta("one two")]
    assert await heard(Looker("one")) == []
