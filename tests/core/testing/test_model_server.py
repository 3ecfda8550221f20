"""The model server: what the tests of everything else rest upon."""

from __future__ import annotations

import base64
import gc
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from openai import APIConnectionError, APIError, AuthenticationError, AzureOpenAI, OpenAI, RateLimitError
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCallFunction

from core.testing.behaviour import behave, many_chunks, script_from_file
from core.testing.model_server import ModelServer
from core.testing.script import Reply, refusal, reply_from

QUESTION: list = [{"role": "user", "content": "q"}]


def client(server: ModelServer, key: str = "any") -> OpenAI:
    return OpenAI(base_url=server.base_url, api_key=key, max_retries=0)


def streamed(server: ModelServer, text: str = "q", **more):
    """Asks through the vendor's own client; the reply's text, reasoning, calls and last usage."""
    said, thought, calls, usage = "", "", {}, None
    with client(server) as opened:
        messages: list = [{"role": "user", "content": text}]
        for chunk in opened.chat.completions.create(model="m", messages=messages, stream=True, **more):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                said += choice.delta.content or ""
                thought += getattr(choice.delta, "reasoning_content", None) or ""
                for call in choice.delta.tool_calls or ():
                    name, arguments = calls.get(call.index, ("", ""))
                    function = call.function or ChoiceDeltaToolCallFunction()
                    calls[call.index] = (name + (function.name or ""), arguments + (function.arguments or ""))
    return said, thought, list(calls.values()), usage


def test_the_vendors_own_client_understands_it():
    reply = Reply(text="你好 all", reasoning="hm hm", calls=[("f", {"城市": "北京"})], usage=(3, 4))
    with ModelServer(reply) as server:
        said, thought, calls, usage = streamed(server, stream_options={"include_usage": True})
    assert (said, thought, calls) == ("你好 all", "hm hm", [("f", '{"城市": "北京"}')])
    assert usage
    assert usage.total_tokens == 7


def test_without_a_stream_the_answer_is_one_object():
    with ModelServer(Reply(text="a b", calls=[("f", "{}")])) as server, client(server) as opened:
        made = opened.chat.completions.create(model="m", messages=QUESTION)
    assert (made.choices[0].message.content, made.choices[0].finish_reason) == ("a b", "tool_calls")


def test_two_calls_over_one_connection_have_ids_of_their_own():
    with ModelServer(Reply(calls=[("f", "{}")])) as server, client(server) as opened:
        said = [opened.chat.completions.create(model="m", messages=QUESTION) for _ in range(2)]
        assert server.connections == 1
    calls = [one.choices[0].message.tool_calls or [] for one in said]
    assert len({made[0].id for made in calls}) == 2


@pytest.mark.parametrize("split", [1, 2, 7, 1000])
def test_bytes_may_come_apart_anywhere(split):
    with ModelServer(Reply(text="你好 😀", calls=[("f", {"a": "😀"})], split=split)) as server:
        said, _, calls, _ = streamed(server)
    assert (said, calls) == ("你好 😀", [("f", '{"a": "😀"}')])


def test_replies_are_taken_one_by_one_and_requests_are_recorded():
    with ModelServer([Reply(text="1"), lambda request: Reply(text=request["model"])]) as server:
        assert [streamed(server)[0], streamed(server)[0]] == ["1", "m"]
        with pytest.raises(APIError, match="no more replies"):
            streamed(server)
        server.add(Reply(text="3"))
        assert streamed(server, "last")[0] == "3"
    assert [exchange.messages[-1]["content"] for exchange in server.requests] == ["q", "q", "q", "last"]


def test_refusals_carry_their_headers_and_a_wrong_key_is_refused():
    with ModelServer(refusal(429, "slow down", retry_after="3")) as server:
        with pytest.raises(RateLimitError, match="slow down") as caught:
            streamed(server)
        assert caught.value.response.headers["retry-after"] == "3"
    with ModelServer(Reply(text="a"), api_key="right") as server:
        with pytest.raises(AuthenticationError):
            streamed(server)
        with client(server, "right") as opened:
            assert opened.chat.completions.create(model="m", messages=QUESTION).choices[0].message.content == "a"


def test_a_cut_connection_is_a_broken_reply():
    with ModelServer(Reply(text="a b c d", cut_after=3)) as server, pytest.raises(APIConnectionError):
        streamed(server)


def test_a_paced_reply_takes_its_time():
    with ModelServer(Reply(text="a b c d", pace=0.02, delay=0.05)) as server:
        start = time.monotonic()
        assert streamed(server)[0] == "a b c d"
    assert time.monotonic() - start > 0.12


def test_leaving_is_noticed_and_stopping_leaves_nobody_hanging():
    with ModelServer([many_chunks(1000, pace=0.01), Reply(hang=True)]) as server:
        with client(server) as opened:
            stream = opened.chat.completions.create(model="m", messages=QUESTION, stream=True)
            next(iter(stream))
            stream.close()
        assert server.requests[0].ended.wait(60)
        assert server.requests[0].left_early
        with client(server) as opened, pytest.raises(APIConnectionError):
            opened.with_options(timeout=0.2).chat.completions.create(model="m", messages=QUESTION)


def test_models_are_listed_and_other_paths_are_404():
    with ModelServer(Reply(), models=("a", "b")) as server, client(server) as opened:
        assert [model.id for model in opened.models.list()] == ["a", "b"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(server.base_url + "/nothing")


def test_a_taken_port_is_an_error_not_a_wait():
    with ModelServer(Reply()) as server, pytest.raises(OSError, match="in use"):
        ModelServer(Reply(), port=server.port).start()


def test_a_script_may_be_a_file(tmp_path):
    queue, choice = tmp_path / "queue.json", tmp_path / "choice.json"
    queue.write_text(json.dumps([{"text": "1", "calls": [{"name": "f", "arguments": {"a": 1}}]}]))
    choice.write_text(json.dumps({"weather": {"text": "sunny"}, "": {"text": "what?"}}))
    with ModelServer(script_from_file(queue)) as server:
        assert streamed(server)[2] == [("f", '{"a": 1}')]
    with ModelServer(script_from_file(choice)) as server:
        assert [streamed(server, "the weather")[0], streamed(server, "hm")[0]] == ["sunny", "what?"]
    with pytest.raises(TypeError):
        reply_from({"txet": "a"})


@pytest.mark.parametrize(
    ("question", "means"),
    [
        ("hello", lambda said, calls: said == "You said: hello"),
        (
            "please use the calculator for 12 * (3+4)",
            lambda said, calls: calls == [("calculator", '{"expression": "12 * (3+4)"}')],
        ),
        ("draw a picture", lambda said, calls: said == "Here it is:"),
        ("say it aloud", lambda said, calls: said == "You hear a tone."),
        ("two tools", lambda said, calls: [name for name, _ in calls] == ["calculator", "current_time"]),
        ("markdown", lambda said, calls: "```python" in said and "$a^2" in said),
    ],
)
def test_words_choose_the_behaviour(question, means):
    with ModelServer(behave) as server:
        said, _, calls, _ = streamed(server, question, tools=[{"type": "function", "function": {"name": "calculator"}}])
    assert means(said, calls)


def test_without_tools_in_the_request_calls_are_written_in_the_text():
    with ModelServer(behave) as server:
        assert streamed(server, "use the calculator 1+1")[0].startswith("<tool_call>\n{")


def test_after_a_tools_result_it_answers_from_it():
    for result in (
        {"role": "tool", "content": "42"},
        {"role": "user", "content": "<tool_response>\n42\n</tool_response>"},
    ):
        assert (
            behave({"messages": [{"role": "user", "content": "use the calculator"}, result]}).text == "The result: 42."
        )


def test_failures_can_be_asked_for():
    assert behave({"messages": [{"role": "user", "content": "please fail 503 now"}]}).status == 503
    assert behave({"messages": [{"role": "user", "content": "cut off"}]}).cut_after == 4
    assert behave({"messages": [{"role": "user", "content": "html"}]}).content_type.startswith("text/html")


def test_passages_before_the_model_are_quoted_with_their_mark():
    prompt = "Answer from these.\n[1] (a.pdf, page 3)\nThe training took 3.5 days.\n[2] (b.pdf)\nOther."
    said = behave({"messages": [{"role": "system", "content": prompt}, {"role": "user", "content": "how long?"}]}).text
    assert said == "The document says: The training took 3.5 days. [1]."


def test_it_runs_as_a_process():
    command = [sys.executable, "-m", "core.testing.model_server", "--chunks", "5"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        address = process.stdout.readline().split()[-1]
        with OpenAI(base_url=address, api_key="any") as opened:
            chunks = list(opened.chat.completions.create(model="m", messages=QUESTION, stream=True))
        process.terminate()
    assert sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in chunks) == 5


# -- dialects and faults ----------------------------------------------------------------------------------------------


def test_azures_own_client_understands_it():
    with (
        ModelServer(lambda asked: Reply(text=f"from {asked['deployment']}"), api_key="right") as server,
        AzureOpenAI(
            azure_endpoint=f"http://127.0.0.1:{server.port}", api_version="2024-10-21", api_key="right", max_retries=0
        ) as opened,
    ):
        made = opened.chat.completions.create(model="mine", messages=QUESTION)
        chunks = list(opened.chat.completions.create(model="mine", messages=QUESTION, stream=True))
    assert made.choices[0].message.content == "from mine"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "from mine"
    assert chunks[0].choices == []
    assert [(exchange.key, exchange.query) for exchange in server.requests] == [("right", "api-version=2024-10-21")] * 2


def test_the_vendors_client_gets_pictures_sound_and_detailed_usage():
    reply = Reply(
        text="a", images=[b"png", "https://example.org/b.png"], audio=b"x" * 2000, usage=(9, 9),
        reasoning_tokens=4, cached_tokens=3,
    )  # fmt: skip
    with ModelServer(reply) as server, client(server) as opened:
        message = opened.chat.completions.create(model="m", messages=QUESTION)
        chunks = list(
            opened.chat.completions.create(
                model="m", messages=QUESTION, stream=True, stream_options={"include_usage": True}
            )
        )
    deltas: list[dict] = [chunk.choices[0].delta.to_dict() for chunk in chunks if chunk.choices]
    pictures = [part["image_url"]["url"] for delta in deltas for part in delta.get("images", [])]
    spoken = "".join(delta["audio"]["data"] for delta in deltas if "audio" in delta)
    assert pictures == ["data:image/png;base64,cG5n", "https://example.org/b.png"]
    assert base64.b64decode(spoken) == b"x" * 2000
    whole: dict = message.choices[0].message.to_dict()
    assert whole["audio"]["data"] == spoken
    for usage in (message.usage, chunks[-1].usage):
        assert usage
        assert usage.completion_tokens_details
        assert usage.prompt_tokens_details
        assert usage.completion_tokens_details.reasoning_tokens == 4
        assert usage.prompt_tokens_details.cached_tokens == 3


@pytest.mark.parametrize(
    "fault", [{"crlf": True}, {"comments": True}, {"done": False}, {"stall_after": 2, "stall": 0.05}, {"split": 3}]
)
def test_faults_that_the_vendors_client_survives(fault):
    with ModelServer(Reply(text="你好 all 😀", **fault)) as server:
        assert streamed(server)[0] == "你好 all 😀"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"silent": True}, APIConnectionError),
        ({"reset_after": 2}, APIConnectionError),
        ({"error_after": 2, "error": {"error": {"message": "The engine died."}}}, APIError),
    ],
)
def test_faults_that_end_a_reply(fault, error):
    with ModelServer(Reply(text="a b c", pace=0.01, **fault)) as server, pytest.raises(error):
        streamed(server)


def raw_reply(server: ModelServer) -> bytes:
    body = json.dumps({"messages": QUESTION, "stream": True}).encode()
    asked = urllib.request.Request(f"{server.base_url}/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        return answer.read()


def test_what_the_faults_look_like_on_the_wire():
    with ModelServer([Reply(text="a", crlf=True, comments=True), Reply(text="a", done=False)]) as server:
        odd, endless = raw_reply(server), raw_reply(server)
    assert odd.startswith(b": keep-alive\r\n\r\nevent: message\r\ndata: {")
    assert b"\n" not in odd.replace(b"\r\n", b"")
    assert odd.endswith(b"data: [DONE]\r\n\r\n")
    assert b"[DONE]" not in endless


def test_a_large_request_is_read_whole():
    with ModelServer(Reply(text="a")) as server:
        assert streamed(server, "x" * 3_000_000)[0] == "a"
        assert len(server.requests[0].messages[0]["content"]) == 3_000_000


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_a_server_that_stops_ends_the_connections_that_came_in_that_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: left.append(str(told.exc_value)))
    for many in range(1, 21):
        server = ModelServer([]).start()
        lines = [socket.socket() for _ in range(many)]
        for line in lines:
            line.setblocking(False)
            line.connect_ex((server.host, server.port))
        server.stop()
        for line in lines:
            line.close()
    gc.collect()
    assert not left
