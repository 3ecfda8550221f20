"""What people get wrong: each gives one typed error with a hint and without a key, or simply works."""

from __future__ import annotations

import socket
import ssl
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from core.bridge.sync import run
from core.errors import (
    BadMessagesError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    ModelUnavailableError,
    SettingsError,
)
from core.llm.open_model import get_chat_model
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, FunctionCall, Message
from core.testing.script import Reply, refusal

KEY = "sk-test-0123"
NATIVE = {"use_raw_api": True}
SCHEMA = {"type": "object", "properties": {}}


def tool(name="weather", parameters=SCHEMA, **more):
    return {"name": name, "description": "", "parameters": parameters, **more}


# -- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["", "   ", None])
def test_an_empty_key_is_no_key(server, opened, key):
    with pytest.raises(ModelRefusedError) as caught:
        get_chat_model({"model": "gpt-5-mini", "model_type": "openai", "api_key": key}).quick_chat("q")
    assert caught.value.words_key == "model_key_missing"
    assert caught.value.hint
    server.add(Reply(text="a"))
    assert opened(api_key=key).quick_chat("a server of one's own wants none") == "a"


def test_a_key_with_a_line_end_is_meant_without_it(server, opened):
    server.add(Reply(text="a"))
    opened(api_key=f" {KEY}\n").quick_chat("q")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("key", ["sk-пароль-0123", "sk-test 0123", "sk-test\r\nX-Evil: 1", "sk-\x00-0123"])
def test_what_cannot_be_a_key_is_said_and_not_shown(opened, key):
    with pytest.raises(SettingsError, match="api_key") as caught:
        opened(api_key=key)
    assert caught.value.hint
    assert key not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "headers", [{"X-Team": "команда"}, {"X Team": "a"}, {"X-Team": "a\r\nX-Evil: 1"}, {"": "a"}, "a"]
)
def test_a_header_that_cannot_be_sent_is_said(opened, headers):
    with pytest.raises(SettingsError, match="default_headers"):
        opened(default_headers=headers)


@pytest.mark.parametrize("key", ["sk-test-0123", "my own word", "0123456789abcdef"])
@pytest.mark.parametrize("words", ["Incorrect API key provided: {}.", '{{"key": "{}"}}', "Bearer {} is unknown"])
def test_a_service_that_echoes_the_key_shows_it_to_nobody(server, opened, key, words):
    key = key.replace(" ", "-")
    server.add(refusal(401, words.format(key)))
    with pytest.raises(ModelRefusedError) as caught:
        opened(api_key=key).quick_chat("q")
    error = caught.value
    everything = f"{error} {error.message} {error.details} {error.extra} {error!r}"
    assert key not in everything + "".join(traceback.format_exception(error))
    assert error.words_key == "model_key_wrong"


# -- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["http://", "http://[::1", "http://exa mple/v1", "ftp://example.org", "http://host:99999/v1", "http://host:port",
     "https:///v1", "http://host:0/v1", "http://host/\nv1", "file:///etc/passwd"],
)  # fmt: skip
def test_what_is_no_address_is_said_when_the_model_is_made(address):
    with pytest.raises(SettingsError, match="address") as caught:
        get_chat_model({"model": "m", "base_url": address, "api_key": KEY})
    assert "http" in caught.value.hint


def test_an_address_with_a_password_does_not_show_it():
    with pytest.raises(SettingsError) as caught:
        get_chat_model({"model": "m", "base_url": "ftp://me:secret@host/v1", "api_key": KEY})
    assert "secret" not in str(caught.value)
    assert "secret" not in get_chat_model({"model": "m", "base_url": "http://me:secret@host/v1"}).label


@pytest.fixture
def foreign() -> Iterator[list[bytes]]:
    """A server of some other protocol: the test says what it greets with; its port comes first."""
    greeting: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        greeting.append(str(listening.getsockname()[1]).encode())
        done = threading.Event()

        def serve() -> None:
            while not done.is_set():
                try:
                    plug, _ = listening.accept()
                except TimeoutError:
                    continue
                with plug:
                    plug.recv(65536)
                    plug.sendall(greeting[-1])

        thread = threading.Thread(target=serve)
        thread.start()
        yield greeting
        done.set()
        thread.join()


@pytest.mark.parametrize(
    ("greeting", "kind"),
    [
        (b"SSH-2.0-OpenSSH_9.7\r\n\r\n", ModelMisbehavedError),
        (b"\x15\x03\x01\x00\x02\x02\x50\r\n\r\n", ModelMisbehavedError),
        (b"220 mail ESMTP ready\r\n", ModelUnavailableError),
        (b"-ERR unknown command\r\n", ModelUnavailableError),
    ],
    ids=["ssh", "tls", "mail", "redis"],
)
def test_a_server_of_another_protocol_is_one_clear_error(foreign, greeting, kind):
    foreign.append(greeting)
    model = get_chat_model({"model": "m", "base_url": f"http://127.0.0.1:{foreign[0].decode()}/v1", "api_key": KEY})
    with pytest.raises(kind, match=r"not as a model service|cannot be reached") as caught:
        model.quick_chat("q")
    run(model.aclose())
    assert "address" in caught.value.hint


def test_tls_where_none_is_spoken_is_said(server, monkeypatch):
    monkeypatch.setattr("core.llm.backends.openai.model.CONNECT_SECONDS", 0.3)
    model = get_chat_model({"model": "m", "base_url": f"https://127.0.0.1:{server.port}/v1", "api_key": KEY})
    with pytest.raises(ModelServiceError) as caught:
        model.quick_chat("q")
    run(model.aclose())
    assert caught.value.words_key == "model_unreachable"
    assert caught.value.hint


@pytest.fixture
def untrusted(tmp_path) -> Iterator[int]:
    """The port of a server that speaks TLS with a certificate of its own making."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    file = tmp_path / "own.pem"
    file.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + made.sign(key, SHA256()).public_bytes(Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            plug, _ = listening.accept()
            with plug, suppress(ssl.SSLError, OSError):
                context.wrap_socket(plug, server_side=True).close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_a_certificate_that_nobody_vouches_for_is_said(untrusted):
    model = get_chat_model({"model": "m", "base_url": f"https://127.0.0.1:{untrusted}/v1", "api_key": KEY})
    with pytest.raises(ModelRefusedError, match="certificate") as caught:
        model.quick_chat("q")
    run(model.aclose())
    assert "SSL_CERT_FILE" in caught.value.hint


def test_a_path_that_is_not_there_is_no_traceback(server, opened):
    server.add(Reply(status=404, body="404 page not found", content_type="text/plain"))
    with pytest.raises(ModelRefusedError) as caught:
        opened(base_url=f"http://127.0.0.1:{server.port}/").quick_chat("q")
    assert caught.value.words_key == "model_unknown"
    assert "address" in caught.value.hint


# -- tools ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ([{"description": "x"}], "Tool 1 has no name"),
        ([tool(), {"name": ""}], "Tool 2 has no name"),
        ([tool(), "weather"], "Tool 2 has no name"),
        ([tool(), tool()], "Two tools are named 'weather'"),
        ([tool(parameters="text")], "'weather' is not an object"),
        ([tool(parameters={"type": "string"})], "'weather' has the type 'string'"),
        ([tool(parameters={"type": "object", "properties": ["a"]})], "'weather' has properties"),
        ([tool(parameters={"type": "object", "properties": {"a": {"enum": {1, 2}}}})], "'weather' cannot be written"),
        ([tool(parameters=[{"type": "string"}])], "'weather' is a list"),
    ],
)
def test_a_broken_tool_is_refused_by_name_before_anything_is_sent(server, opened, functions, said):
    with pytest.raises(ModelRefusedError, match=said) as caught:
        opened(generate_cfg=NATIVE).chat([Message(USER, "q")], functions=functions, stream=False)
    assert caught.value.code == "400"
    assert caught.value.hint
    assert server.requests == []


@pytest.mark.parametrize(
    ("function", "schema"),
    [
        ({"name": "f"}, SCHEMA),
        ({"name": "f", "parameters": {}}, SCHEMA),
        ({"name": "f", "parameters": None}, SCHEMA),
        ({"name": "f", "parameters": {"properties": {"a": {}}}}, {"type": "object", "properties": {"a": {}}}),
        ({"type": "function", "function": {"name": "f", "parameters": SCHEMA}}, SCHEMA),
        (
            {"name": "f", "parameters": [{"name": "a", "type": "string", "required": True}, {"name": "b"}]},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
        ),
    ],
)
def test_a_sparse_tool_is_completed(server, opened, function, schema):
    server.add(Reply(text="a"))
    before = str(function)
    opened(generate_cfg=NATIVE).chat([Message(USER, "q")], functions=[function], stream=False)
    (sent,) = server.requests[0].body["tools"]
    assert (sent["type"], sent["function"]["name"], sent["function"]["parameters"]) == ("function", "f", schema)
    assert str(function) == before


def test_a_tool_may_have_any_name_and_keeps_it(server, opened):
    names = ["find my files", "find_my_files", "天气", "气温", "x" * 80, "x" * 79 + "y"]
    server.add(lambda request: Reply(calls=[(each["function"]["name"], {}) for each in request["tools"]]))
    server.add(Reply(text="done"))
    model = opened(generate_cfg=NATIVE)
    functions = [tool(name) for name in names]
    said = model.chat([Message(USER, "q")], functions=functions, stream=False)
    assert [message.function_call.name for message in said] == names
    sent = [each["function"]["name"] for each in server.requests[0].body["tools"]]
    assert len(set(sent)) == len(names)
    assert all(name.isascii() and len(name) <= 64 and " " not in name for name in sent)
    results = [Message(FUNCTION, "r", name=m.function_call.name, extra=m.extra) for m in said]
    model.chat([Message(USER, "q"), *said, *results], functions=functions, stream=False,
               extra_generate_cfg={"function_choice": "天气"})  # fmt: skip
    again = server.requests[1].body
    assert [call["function"]["name"] for call in again["messages"][1]["tool_calls"]] == sent
    assert again["tool_choice"] == {"type": "function", "function": {"name": sent[2]}}


def test_a_choice_that_is_not_on_offer_names_the_near_ones(opened):
    with pytest.raises(SettingsError, match="wether") as caught:
        opened(generate_cfg={**NATIVE, "function_choice": "wether"}).chat([Message(USER, "q")], [tool()], stream=False)
    assert "'weather'" in caught.value.hint


@pytest.mark.parametrize(
    ("cfg", "fields"),
    [
        ({}, {"tool_choice": "auto"}),
        ({"function_choice": "none"}, {"tool_choice": "none"}),
        ({"function_choice": "weather"}, {"tool_choice": {"type": "function", "function": {"name": "weather"}}}),
        ({"parallel_function_calls": True}, {"tool_choice": "auto", "parallel_tool_calls": True}),
        ({"parallel_function_calls": "false"}, {"tool_choice": "auto", "parallel_tool_calls": False}),
    ],
)
def test_the_choice_of_calls_goes_to_the_service(server, opened, cfg, fields):
    server.add(Reply(text="a"))
    opened(generate_cfg={**NATIVE, **cfg}).chat([Message(USER, "q")], [tool()], stream=False)
    sent = server.requests[0].body
    assert {key: sent[key] for key in ("tool_choice", "parallel_tool_calls") if key in sent} == fields


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "request_timeout"])
@pytest.mark.parametrize("value", [-1, 0, "-5"])
def test_a_negative_limit_is_said_by_name(server, opened, name, value):
    server.add(Reply(text="a"))
    with pytest.raises(SettingsError, match=name) as caught:
        opened(generate_cfg={name: value}).quick_chat("q")
    assert caught.value.hint
    assert server.requests == []


# -- conversations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [Message(SYSTEM, "Be kind."), Message(SYSTEM, "Be brief."), Message(USER, "q")],
        [Message(ASSISTANT, "Hello!"), Message(USER, "q")],
        [Message(FUNCTION, "found", name="weather"), Message(USER, "q")],
    ],
)
def test_a_conversation_that_cannot_be_asked_is_refused_with_a_hint(server, opened, messages):
    model = opened()
    with pytest.raises(BadMessagesError) as caught:
        model.chat(messages, stream=False)
    assert (caught.value.code, bool(caught.value.hint), server.requests) == ("400", True, [])


def test_a_call_that_was_never_answered_and_a_result_without_a_call_are_mended(server, opened):
    server.add(Reply(text="a"))
    lost = Message(FUNCTION, "found", name="weather", extra={"function_id": "gone"})
    call = Message(ASSISTANT, "", function_call=FunctionCall("weather", "{}"), extra={"function_id": "1"})
    opened(generate_cfg=NATIVE).chat([Message(USER, "q"), lost, call, Message(USER, "r")], [tool()], stream=False)
    roles = [message["role"] for message in server.requests[0].messages]
    assert roles == ["user", "user", "assistant", "tool", "user"]


@pytest.mark.parametrize("functions", [None, [tool()]])
def test_half_a_character_in_a_message_does_no_harm(server, opened, functions):
    server.add(Reply(text="a"))
    half = "a \ud83d b 😀"  # as from a text that somebody cut in the middle of a character
    opened(generate_cfg=NATIVE).chat([Message(USER, half)], functions, stream=False)
    assert server.requests[0].messages[-1]["content"] == "a ? b 😀"


@pytest.mark.parametrize(
    "cfg", [{"metadata": object()}, {"metadata": {"a": float("nan")}}, {"extra_headers": {"x-a": 1}}]
)
def test_a_setting_that_cannot_be_sent_is_said(server, opened, cfg):
    with pytest.raises(SettingsError, match="cannot be sent") as caught:
        opened(generate_cfg=cfg).quick_chat("q")
    assert caught.value.hint
    assert server.requests == []
