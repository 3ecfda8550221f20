"""What is Converse's own: frames, signatures, kept prompts, and requests that Amazon's own description of it takes."""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from core.errors import (
    MissingExtraError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelUnavailableError,
    SettingsError,
)
from core.llm.backends.amazon import AccessKey, signed_headers
from core.llm.open_model import get_chat_model
from core.llm.wire.event_frames import MOST_FRAME, EventFrames
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, USER, Message
from core.testing.converse_dialect import event_frame, frame
from core.testing.script import Reply, refusal
from tests.core.llm.backends.native.services import KEY, SERVICES, WEATHER
from tests.core.llm.backends.native.test_promises import DOT, SCHEMA

pytestmark = pytest.mark.anyio

NOVA = "amazon.nova-lite-v1:0"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")
SERVICE = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))


@pytest.fixture
def native(serving):
    return serving(next(one for one in SERVICES if one.model_type == "bedrock_converse"))


@pytest.fixture(autouse=True)
def no_account(monkeypatch):
    for name in (*VARIABLES, "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def as_parameters(value: Any, shape: Any) -> Any:
    """A body as botocore is given it: bytes where it has base64."""
    match shape.type_name:
        case "structure" if not getattr(shape, "is_document_type", False):
            return {name: as_parameters(one, shape.members[name]) for name, one in value.items()}
        case "list":
            return [as_parameters(one, shape.member) for one in value]
        case "blob":
            return base64.b64decode(value, validate=True)
        case _:
            return value


def faults(body: dict[str, Any]) -> str:
    """What Amazon's description of the protocol says of a request."""
    shape = SERVICE.operation_model("ConverseStream").input_shape
    given = as_parameters({"modelId": "m", **body}, shape)
    return ParamValidator().validate(given, shape).generate_report()


async def test_requests_are_as_amazon_describes_them(native, document):
    native.play(
        Reply(reasoning="Two.", text="I look.", calls=[("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]),
        Reply(text="Rain."),
    )
    model = native.model()
    items = [ContentItem(text="See."), ContentItem(image=DOT), ContentItem(file=document), ContentItem(file=document)]
    generate = {
        "reasoning_effort": "low",
        "stop": ["END"],
        "top_k": 5,
        "max_tokens": 9000,
        "requestMetadata": {"a": "b"},
    }
    asked = [Message("system", "Be brief."), Message(USER, items)]
    said = await model.achat(asked, [WEATHER], generate)
    assert faults(native.body()) == ""
    results = [Message(FUNCTION, "rain", name="weather", extra=one.extra) for one in said if one.function_call]
    results[0] = results[0].model_copy(update={"content": [ContentItem(text="A map:"), ContentItem(image=DOT)]})
    await model.achat([*asked, *said, *results], [WEATHER], {**generate, "response_format": SCHEMA})
    assert faults(native.body()) == ""
    assert native.body()["additionalModelRequestFields"]["thinking"]["type"] == "enabled"
    assert native.server.requests[-1].path.endswith(
        "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"
    )


async def test_amazons_own_client_reads_what_the_test_server_says(native):
    told = Reply(reasoning="Hm.", text="Hello, 世界!", calls=[("weather", {"city": "Oslo"})], usage=(9, 3))
    native.play(told, told)
    address = f"http://{native.server.host}:{native.server.port}"
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=address,
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key=SECRET,
        config=Config(proxies={}, retries={"max_attempts": 0}),
    )
    tools = [{"toolSpec": {"name": "weather", "inputSchema": {"json": {"type": "object"}}}}]
    asked = {
        "modelId": NOVA,
        "messages": [{"role": "user", "content": [{"text": "Hi"}]}],
        "toolConfig": {"tools": tools},
    }
    events = list(client.converse_stream(**asked)["stream"])
    text = "".join(one["contentBlockDelta"]["delta"].get("text", "") for one in events if "contentBlockDelta" in one)
    assert text == "Hello, 世界!"
    assert events[-1]["metadata"]["usage"]["inputTokens"] == 9
    assert client.converse(**asked)["output"]["message"]["content"][-1]["toolUse"]["input"] == {"city": "Oslo"}


@pytest.mark.parametrize("token", ["", "session=="])
async def test_requests_are_signed_as_amazon_signs_them(token):
    address = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse-stream"
    now = datetime.now(UTC)
    ours = signed_headers(AccessKey("AKIDEXAMPLE", SECRET, token), "eu-west-1", address, b'{"a": 1}', now)
    theirs = AWSRequest("POST", address, data=b'{"a": 1}', headers={"Content-Type": "application/json"})
    signer = SigV4Auth(Credentials("AKIDEXAMPLE", SECRET, token or None), "bedrock", "eu-west-1")
    theirs.context["timestamp"] = ours["X-Amz-Date"]
    theirs.headers["X-Amz-Date"] = ours["X-Amz-Date"]
    if token:
        theirs.headers["X-Amz-Security-Token"] = token
    asked = signer.canonical_request(theirs)
    expected = signer.signature(signer.string_to_sign(theirs, asked), theirs)
    assert ours["Authorization"].endswith(f"Signature={expected}")
    assert ours.get("X-Amz-Security-Token", "") == token


async def test_a_signed_request_reaches_the_service_and_its_secret_does_not(native, caplog):
    native.play(Reply(text="Hello!"), refusal(403, f"The key {SECRET} is wrong."))
    keys = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": SECRET, "aws_session_token": "tok-en-1234"}
    model = native.model(api_key=None, region="us-east-1", **keys)
    assert (await model.achat([Message(USER, "Hi")]))[-1].get_text_content() == "Hello!"
    headers = native.server.requests[-1].headers
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert headers["x-amz-security-token"] == "tok-en-1234"
    with pytest.raises(ModelRefusedError) as caught:
        await model.achat([Message(USER, "Hi")])
    assert SECRET not in f"{headers} {caught.value} {caught.value.details} {caplog.text} {model!r} {model._http!r}"


async def test_keys_of_a_profile_are_found_by_botocore(native, monkeypatch, tmp_path):
    file = tmp_path / "credentials"
    file.write_text(f"[work]\naws_access_key_id = AKIDOFWORK\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    native.play(Reply(text="Hello!"))
    model = native.model(api_key=None, region="us-east-1", profile="work")
    await model.achat([Message(USER, "Hi")])
    assert "Credential=AKIDOFWORK/" in native.server.requests[-1].headers["authorization"]
    with pytest.raises(SettingsError, match=r"No keys of Amazon's can be had: .*nobody"):
        await native.model(api_key=None, region="us-east-1", profile="nobody").achat([Message(USER, "Hi")])


async def test_a_sign_in_that_is_over_is_told_in_a_sentence(native, monkeypatch, tmp_path):
    file = tmp_path / "config"
    session = "[sso-session s]\nsso_start_url = https://a.example/start\nsso_region = us-east-1\n"
    profile = "sso_session = s\nsso_account_id = 123456789012\nsso_role_name = Reader\nregion = us-east-1\n"
    file.write_text(f"[profile work]\n{profile}{session}")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    model = native.model(api_key=None, region="us-east-1", profile="work")
    with pytest.raises(SettingsError, match=r"No keys of Amazon's can be had: .*SSO Token[^\n]*[^.]\. Sign in with"):
        await model.achat([Message(USER, "Hi")])


async def test_without_the_package_a_profile_is_told_how_to_get_it(native, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "botocore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(MissingExtraError, match="bedrock"):
        await native.model(api_key=None, region="us-east-1", profile=True).achat([Message(USER, "Hi")])


def test_keys_of_variables_go_to_amazons_own_addresses_alone(monkeypatch):
    for name in VARIABLES:
        monkeypatch.setenv(name, f"secret-{name}")
    here = get_chat_model({"model": NOVA, "model_type": "bedrock_converse", "base_url": "https://example.org"})
    assert (vars(here)["_key"], vars(here)["_access"]) == ("", None)
    there = get_chat_model({"model": NOVA, "model_type": "bedrock_converse", "region": "eu-west-1"})
    assert vars(there)["_http"].address == "https://bedrock-runtime.eu-west-1.amazonaws.com"
    assert vars(there)["_http"].headers["Authorization"] == "Bearer secret-AWS_BEARER_TOKEN_BEDROCK"


@pytest.mark.parametrize(
    ("cfg", "said"),
    [
        ({}, "needs a region"),
        ({"region": "Oslo"}, "'Oslo' is none of Amazon's"),
        ({"region": "us-east-1", "aws_access_key_id": "AKID"}, "aws_secret_access_key is missing"),
        ({"base_url": "http://127.0.0.1", "aws_access_key_id": "A", "aws_secret_access_key": "B"}, "needs a region"),
        ({"region": "us-east-1", "prompt_caching": "2h"}, "prompt_caching cannot be '2h'"),
    ],
)
def test_a_wrong_setting_is_told_by_name(cfg, said):
    with pytest.raises(SettingsError, match=said):
        get_chat_model({"model": NOVA, "model_type": "bedrock_converse", **cfg})


async def test_beginnings_of_prompts_are_kept_where_the_model_can(native):
    native.play(*[Reply(text="Hello!")] * 4)
    asked = [Message("system", "Be brief."), Message(USER, "Hi")]
    await native.model().achat(asked, [WEATHER])
    body, point = native.body(), {"cachePoint": {"type": "default"}}
    assert body["toolConfig"]["tools"][-1] == body["system"][-1] == body["messages"][-1]["content"][-1] == point
    await native.model(prompt_caching="1h").achat(asked)
    assert native.body()["system"][-1] == {"cachePoint": {"type": "default", "ttl": "1h"}}
    await native.model("meta.llama3-3-70b-instruct-v1:0").achat(asked)
    assert "cachePoint" not in native.sent()
    await native.model(prompt_caching=False).achat(asked)
    assert "cachePoint" not in native.sent()


async def test_a_model_that_keeps_nothing_is_asked_without_marks(native):
    native.play(Reply(text="never said"), Reply(text="Hello!"), Reply(text="Hello!"))
    model = native.model("meta.llama3-3-70b-instruct-v1:0", prompt_caching="5m")
    for _ in range(2):
        assert (await model.achat([Message(USER, "Hi")]))[-1].get_text_content() == "Hello!"
    assert len(native.server.requests) == 3


async def test_calls_of_a_conversation_whose_tools_are_gone_are_still_told(native):
    native.play(Reply(text="Rain."))
    extra = {"function_id": "call/1"}
    call = Message(ASSISTANT, "", function_call={"name": "weather", "arguments": "{}"}, extra=extra)
    await native.model().achat([Message(USER, "q"), call, Message(FUNCTION, "rain", name="weather", extra=extra)])
    assert [one["toolSpec"]["name"] for one in native.body()["toolConfig"]["tools"] if "toolSpec" in one] == ["weather"]
    assert faults(native.body()) == ""


async def test_each_document_has_a_name_that_the_service_takes(native, tmp_path, document):
    odd = tmp_path / "plan: «2026»/x_y.pdf".replace("/", "_")
    odd.write_bytes(Path(document).read_bytes())
    native.play(Reply(text="Plans."))
    await native.model().achat([Message(USER, [ContentItem(file=str(odd)), *[ContentItem(file=document)] * 2])])
    names = [one["document"]["name"] for one in native.body()["messages"][0]["content"] if "document" in one]
    assert names == ["plan 2026 x y", "plan", "plan (2)"]


async def test_a_picture_of_the_web_is_named_as_the_service_fetches_nothing(native):
    native.play(Reply(text="I cannot see it."))
    await native.model().achat([Message(USER, [ContentItem(image="https://example.org/sky.png")])])
    assert "sky.png" in native.sent()
    assert '"image"' not in native.sent()


@pytest.mark.parametrize(
    ("model", "effort", "fields"),
    [
        (NOVA, "high", None),
        ("us.amazon.nova-2-lite-v1:0", "high", {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        ("openai.gpt-oss-120b-1:0", "low", {"reasoning_effort": "low"}),
    ],
)
async def test_each_family_is_told_to_think_in_its_own_words(native, model, effort, fields):
    native.play(Reply(text="Hello!"))
    await native.model(model).achat([Message(USER, "Hi")], None, {"reasoning_effort": effort})
    assert native.body().get("additionalModelRequestFields") == fields


async def test_a_call_that_the_service_cannot_read_is_an_error(native):
    whole = {
        "output": {"message": {"role": "assistant", "content": []}},
        "stopReason": "malformed_tool_use",
        "usage": {},
    }
    native.play(Reply(body=json.dumps(whole)))
    with pytest.raises(Exception, match="cannot read"):
        await native.events()


FRAMES = [
    event_frame("messageStart", {"role": "assistant"}),
    event_frame("contentBlockDelta", {"delta": {"text": "Four minutes."}, "contentBlockIndex": 0}),
    event_frame("contentBlockStop", {"contentBlockIndex": 0}),
    event_frame("messageStop", {"stopReason": "end_turn"}),
    event_frame("metadata", {"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}}),
]
STOP = sum(map(len, FRAMES[:4]))


@pytest.mark.parametrize("at", [*(sum(map(len, FRAMES[:n])) for n in (1, 2, 3)), STOP - 1])
async def test_a_stream_that_ends_without_its_message_stop_is_cut_off(native, at):
    native.play(Reply(body=b"".join(FRAMES)[:at], content_type="application/vnd.amazon.eventstream"))
    with pytest.raises((ModelMisbehavedError, ModelUnavailableError)) as caught:
        await native.events()
    assert caught.value.words_key == "model_cut_off"


async def test_a_stream_that_ends_before_it_says_anything_is_asked_again(native):
    begun = Reply(body=FRAMES[0], content_type="application/vnd.amazon.eventstream")
    native.play(begun, Reply(text="Four minutes."))
    (said,) = await native.model(generate_cfg={"max_retries": 1}).achat([Message(USER, "How long?")])
    assert said.get_text_content() == "Four minutes."


async def test_a_stream_that_ends_between_its_message_stop_and_what_it_used_is_whole(native):
    native.play(Reply(body=b"".join(FRAMES)[: STOP + 1], content_type="application/vnd.amazon.eventstream"))
    *_, last = await native.events()
    assert (last.reason, last.usage.estimated) == ("stop", True)


def test_frames_come_apart_anywhere():
    told = event_frame("contentBlockDelta", {"delta": {"text": "世界"}}) + event_frame(
        "messageStop", {"stopReason": "x"}
    )
    frames = EventFrames()
    found = [one for at in range(len(told)) for one in frames.feed(told[at : at + 1])]
    assert [json.loads(one) for one in found] == [
        {"contentBlockDelta": {"delta": {"text": "世界"}}},
        {"messageStop": {"stopReason": "x"}},
    ]
    assert frames.close() == []


def test_frames_that_were_changed_are_no_reply():
    good = event_frame("messageStart", {"role": "assistant"})
    bad = [good[:-1] + b"\0", good[:9] + b"\xff" + good[10:], good[:4] + b"\0\xff\xff\xff" + good[8:]]
    for one in bad:
        with pytest.raises(ModelMisbehavedError):
            EventFrames().feed(one)


def test_a_frame_of_any_length_is_not_waited_for():
    prelude = struct.pack(">II", MOST_FRAME + 1, 0)
    with pytest.raises(ModelMisbehavedError):
        EventFrames().feed(prelude + struct.pack(">I", zlib.crc32(prelude)) + b"\0" * 8)


def test_headers_of_every_kind_are_passed_over():
    raw = (
        b"\x01a\x00" + b"\x01b\x04\0\0\0\1" + b"\x01c\x08" + b"\0" * 8 + b"\x01d\x09" + b"\0" * 16 + b"\x01e\x06\0\2ab"
    )
    plain = frame({":message-type": "event", ":event-type": "messageStart"}, b"{}")
    size = struct.unpack(">I", plain[4:8])[0]
    told = raw + plain[12 : 12 + size]
    prelude = struct.pack(">II", 16 + len(told) + 2, len(told))
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + told + b"{}"
    assert EventFrames().feed(begun + struct.pack(">I", zlib.crc32(begun))) == [b'{"messageStart": {}}']


async def test_an_exception_that_is_no_json_is_told(native):
    headers = {":message-type": "error", ":error-code": "InternalError", ":error-message": "Went away."}
    native.play(Reply(body=frame(headers, b""), content_type="application/vnd.amazon.eventstream"))
    with pytest.raises(Exception, match="Went away"):
        await native.events()
    assert KEY not in native.sent()
