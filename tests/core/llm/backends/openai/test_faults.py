"""What networks and servers do to a reply: it comes out whole, or as far as it came with one clear error."""

from __future__ import annotations

import zlib

import pytest

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.messages.message import USER, Message
from core.testing.script import Reply, html_page, refusal

WEATHER = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}
WHOLE = {"reasoning": "先想 a little", "text": "你好, all 😀 is well.", "calls": [("weather", {"城市": "北京 😀"})]}


def asked(model) -> tuple[str, str, list[tuple[str, str]]]:
    """Thought, text and calls of one reply."""
    said = model.chat([Message(USER, "q")], functions=[WEATHER], stream=False)
    calls = [(m.function_call.name, m.function_call.arguments) for m in said if m.function_call]
    return "".join(m.reasoning_content or "" for m in said), "".join(m.get_text_content() for m in said), calls


@pytest.mark.parametrize("split", [0, 1, 2, 3, 7, 64])
@pytest.mark.parametrize(
    "fault", [{}, {"crlf": True}, {"comments": True}, {"done": False}, {"crlf": True, "comments": True, "done": False}]
)
def test_however_the_bytes_come_the_reply_is_whole(server, opened, fault, split):
    server.add(Reply(**WHOLE, split=split, **fault))
    assert asked(opened(generate_cfg={"use_raw_api": True})) == (
        WHOLE["reasoning"],
        WHOLE["text"],
        [("weather", '{"城市": "北京 😀"}')],
    )


def test_a_pause_within_the_limit_does_no_harm(server, opened):
    server.add(Reply(text="one two three", stall_after=2, stall=0.15))
    assert opened(generate_cfg={"request_timeout": 5}).quick_chat("q") == "one two three"


@pytest.mark.parametrize(
    ("fault", "kind", "key"),
    [
        ({"stall_after": 3, "stall": 5.0}, ModelUnavailableError, "model_slow"),
        ({"hang_after": 3}, ModelUnavailableError, "model_slow"),
        ({"reset_after": 3}, ModelMisbehavedError, "model_cut_off"),
        ({"cut_after": 3}, ModelMisbehavedError, "model_cut_off"),
        ({"error_after": 3, "error": {"error": {"message": "The engine died.", "code": "server_error"}}},
         ModelUnavailableError, "model_unavailable"),
        ({"error_after": 3, "error": {"error": {"message": "Something."}}}, ModelMisbehavedError, "model_misbehaved"),
        (
            {"error_after": 3, "error": {"error": {"message": "Odd.", "code": "\u00b2\u00b2\u00b2"}}},
            ModelMisbehavedError,
            "model_misbehaved",
        ),
    ],
)  # fmt: skip
def test_what_had_come_before_a_fault_is_kept(server, opened, fault, kind, key):
    server.add(Reply(text="one two three four", pace=0.01, **fault), Reply(text="fine"))
    model = opened(generate_cfg={"request_timeout": 2.0})
    seen = []
    with pytest.raises(ModelServiceError) as caught:
        seen.extend(model.chat([{"role": "user", "content": "q"}]))
    assert seen[-1][0]["content"] == "one two"
    assert (type(caught.value), caught.value.words_key) == (kind, key)
    assert caught.value.hint
    assert model.quick_chat("the next question works") == "fine"


@pytest.mark.parametrize(
    ("reply", "kind", "key"),
    [
        (Reply(silent=True), ModelUnavailableError, "model_unreachable"),
        (Reply(text="a", reset_after=0), ModelUnavailableError, "model_unreachable"),
        (Reply(text="a", cut_after=0), ModelUnavailableError, "model_unreachable"),
        (html_page(), ModelMisbehavedError, "model_html"),
        (Reply(body='{"version": "0.9"}'), ModelMisbehavedError, "model_misbehaved"),
        (Reply(body="[]"), ModelMisbehavedError, "model_misbehaved"),
        (Reply(body="Ollama is running", content_type="text/plain"), ModelMisbehavedError, "model_misbehaved"),
        (Reply(body='data: {"choices": [{"delta": 5}]}\n\n', content_type="text/event-stream"),
         ModelMisbehavedError, "model_misbehaved"),
        (Reply(body='data: {"choices": 5}\n\n', content_type="text/event-stream"),
         ModelMisbehavedError, "model_misbehaved"),
        (Reply(body="data: \xff\xfe\n\n".encode("latin-1"), content_type="text/event-stream"),
         ModelMisbehavedError, "model_misbehaved"),
    ],
)  # fmt: skip
def test_what_is_no_reply_is_said_to_be_none(server, opened, reply, kind, key):
    server.add(reply, Reply(text="fine"))
    model = opened()
    with pytest.raises(ModelServiceError) as caught:
        model.quick_chat("q")
    assert (type(caught.value), caught.value.words_key) == (kind, key)
    assert caught.value.hint
    assert model.quick_chat("the next question works") == "fine"


def test_a_wrong_key_is_known_by_the_words_of_a_service_that_answers_with_a_list(server, opened):
    body = '[{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "X"}}]'
    server.add(Reply(status=400, body=body, content_type="application/json"))
    with pytest.raises(ModelRefusedError) as caught:
        opened().quick_chat("q")
    assert caught.value.words_key == "model_key_wrong"
    assert caught.value.message == "API key not valid. Please pass a valid API key."


# -- what a service turns out not to take -----------------------------------------------------------------------------


def test_a_model_that_does_not_stream_is_asked_for_the_whole(server, opened):
    refused = refusal(400, "Your organization must be verified to stream this model.")
    server.add(refused, Reply(text="a", reasoning="hm"), Reply(text="b"))
    model = opened()
    assert (model.quick_chat("q"), model.quick_chat("q")) == ("a", "b")
    assert [request.body["stream"] for request in server.requests] == [True, False, False]
    assert "stream_options" not in server.requests[1].body


def test_a_model_that_calls_its_limit_by_another_name_gets_it_so(server, opened):
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    server.add(refusal(400, said), Reply(text="a"), Reply(text="b"))
    model = opened(generate_cfg={"max_tokens": 9})
    assert (model.quick_chat("q"), model.quick_chat("q")) == ("a", "b")
    limits = [
        (request.body.get("max_tokens"), request.body.get("max_completion_tokens")) for request in server.requests
    ]
    assert limits == [(9, None), (None, 9), (None, 9)]


def test_a_model_that_cannot_be_told_about_parallel_calls_is_not_told(server, opened):
    server.add(refusal(400, "Unsupported parameter: 'parallel_tool_calls'"), Reply(text="a"))
    model = opened(generate_cfg={"use_raw_api": True, "parallel_function_calls": True})
    assert model.chat([Message(USER, "q")], functions=[WEATHER], stream=False)[0].content == "a"
    assert ["parallel_tool_calls" in request.body for request in server.requests] == [True, False]


def test_a_parameter_that_the_service_refuses_is_left_out_as_long_as_it_has_that_value(server, opened):
    server.add(refusal(400, "Unsupported value: 'temperature' does not support 0.6 with this model."))
    server.add(*(Reply(text="a") for _ in range(3)))
    model = opened()
    for temperature in (0.6, 0.6, 1):
        chosen = {"temperature": temperature, "seed": 3, "if_taken": ["temperature", "seed"]}
        assert model.chat([Message(USER, "q")], extra_generate_cfg=chosen, stream=False)[0].content == "a"
    sent = [(request.body.get("temperature"), request.body["seed"]) for request in server.requests]
    assert sent == [(0.6, 3), (None, 3), (None, 3), (1, 3)]
    assert model.left_out == {"temperature": 0.6}
    assert all("if_taken" not in request.body for request in server.requests)


def test_a_parameter_of_the_installation_that_the_service_refuses_is_said_and_not_left_out(server, opened):
    server.add(refusal(400, "Unsupported value: 'temperature' does not support 0.6 with this model."))
    with pytest.raises(ModelRefusedError):
        opened(generate_cfg={"temperature": 0.6}).quick_chat("q")
    assert len(server.requests) == 1


def test_a_service_that_refuses_again_and_again_is_not_asked_for_ever(server, opened):
    server.add(*(refusal(422, "stream_options: extra inputs are not permitted") for _ in range(9)))
    with pytest.raises(ModelServiceError):
        opened().quick_chat("q")
    assert len(server.requests) == 2


def test_a_service_that_regrets_its_calls_in_mid_reply_is_not_asked_again(server, opened):
    error = {"error": {"message": "This model does not support tools.", "code": 400}}
    server.add(Reply(text="one two three", error_after=3, error=error), Reply(text="four"))
    with pytest.raises(ModelServiceError) as caught:
        asked(opened(generate_cfg={"use_raw_api": True}))
    assert (caught.value.extra or {})["partial"][0]["content"].startswith("one")
    assert len(server.requests) == 1


@pytest.mark.parametrize("delta", ['{"role": "assistant", "content": ""}', '{"content": ""}', '{"role": "assistant"}'])
def test_a_service_that_ends_after_a_first_empty_chunk_is_asked_again(server, opened, delta):
    begun = f'data: {{"choices": [{{"index": 0, "delta": {delta}}}]}}\n\n'
    server.add(Reply(body=begun, content_type="text/event-stream"), Reply(text="fine"))
    assert opened(generate_cfg={"max_retries": 1}).quick_chat("q") == "fine"


def _packed(line: bytes, times: int, end: bytes = b"") -> bytes:
    """So many lines as gzip, made piece by piece."""
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    many = line * 10_000
    return b"".join([*(packing.compress(many) for _ in range(times // 10_000)), packing.compress(end), packing.flush()])


DONE = b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
GZIP = {"content-encoding": "gzip"}
EVENTS = "text/event-stream"


def test_a_packed_answer_is_unpacked(server, opened):
    server.add(Reply(body=_packed(b": waiting\n\n", 20_000, DONE), content_type=EVENTS, headers=GZIP))
    assert opened().quick_chat("q") == "hi"


@pytest.mark.parametrize("line", [b": nothing but a comment\n", b'data: {"choices": [{"delta": {"content": ""}}]}\n\n'])
def test_a_stream_that_says_nothing_for_ever_is_given_up(server, opened, line):
    body = _packed(line, 4_000_000 if line[:1] == b":" else 2_000_000, DONE)
    server.add(Reply(body=body, content_type=EVENTS, headers=GZIP))
    with pytest.raises(ModelMisbehavedError, match="no end"):
        opened().quick_chat("q")


def test_a_whole_answer_that_unpacks_to_more_than_any_answer_has_is_not_taken_in(server, opened):
    server.add(Reply(body=_packed(b" " * 100, 800_000, b"{}"), content_type="application/json", headers=GZIP))
    with pytest.raises(ModelServiceError):
        opened(generate_cfg={"max_retries": 0}).quick_chat("q")


@pytest.mark.parametrize("packed", [True, False])
def test_of_a_long_refusal_the_beginning_is_read(server, opened, packed):
    said = b'{"error": {"message": "No.' + b" " * 100
    body = _packed(b"x" * 100, 500_000, b"") if packed else said + b"x" * 5_000_000
    server.add(Reply(status=400, body=body, content_type="text/plain", headers=GZIP if packed else {}))
    with pytest.raises(ModelRefusedError) as caught:
        opened().quick_chat("q")
    assert len(str(caught.value)) < 1_000


def test_an_answer_packed_in_a_way_that_was_not_asked_for_is_an_error(server, opened):
    server.add(Reply(body=b"\x1b\x03", content_type=EVENTS, headers={"content-encoding": "br"}))
    with pytest.raises(ModelServiceError):
        opened(generate_cfg={"max_retries": 0}).quick_chat("q")
    assert server.requests[0].headers["accept-encoding"] == "gzip"
