"""How services that speak the OpenAI protocol differ on the wire, played through a real socket, byte by byte."""
# ruff: noqa: E501 - what services send is kept as it is

from __future__ import annotations

import pytest

from core.bridge.sync import run
from core.llm.open_model import get_chat_model
from core.testing.model_server import ModelServer
from core.testing.script import Reply

TOOL = {"name": "weather", "description": "", "parameters": {"type": "object", "properties": {}}}

OPENAI = """\
data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"gpt","service_tier":"default","choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_A","type":"function","function":{"name":"weather","arguments":""}}],"refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\":"}}]},"finish_reason":null}],"usage":null}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"北京\\"}"}}]},"finish_reason":null}],"usage":null}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":0}}}

data: [DONE]

"""

REASONING = """\
: keep-alive

data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"先想"},"finish_reason":null}]}

: keep-alive

data: {"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"一想"},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":"好","reasoning_content":null},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}

data: [DONE]

"""

# Whole calls in one chunk, no index, the reason says "stop", Windows line ends.
LOCAL = """\
data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"name":"weather","arguments":"{}"}},{"id":"call_2","function":{"name":"weather","arguments":"{\\"city\\":\\"Oslo\\"}"}}]},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}

data: [DONE]

""".replace("\n", "\r\n")

# Thought in tags, no `[DONE]`, the content as parts.
SPARSE = """\
data:{"choices":[{"delta":{"content":"<think>\\nhm"}}]}

data:{"choices":[{"delta":{"content":[{"type":"text","text":"</think>\\n\\nyes"}]}}]}

data:{"choices":[{"delta":{},"finish_reason":"eos"}]}

"""

DIALECTS = {
    "openai": (OPENAI, [("call_A", "weather", '{"city":"北京"}')], "", ""),
    "reasoning": (REASONING, [], "先想一想", "好"),
    "local": (LOCAL, [("call_1", "weather", "{}"), ("call_2", "weather", '{"city":"Oslo"}')], "", ""),
    "sparse": (SPARSE, [], "hm", "yes"),
}


@pytest.mark.parametrize("split", [1, 5, 4096])
@pytest.mark.parametrize("name", DIALECTS)
def test_every_dialect_gives_the_same_kind_of_messages(name, split):
    stream, calls, reasoning, text = DIALECTS[name]
    with ModelServer(Reply(body=stream, content_type="text/event-stream", split=split)) as server:
        model = get_chat_model(
            {"model": "m", "base_url": server.base_url, "api_key": "any", "generate_cfg": {"use_raw_api": True}}
        )
        said = model.chat([{"role": "user", "content": "q"}], functions=[TOOL], stream=False)
        run(model.aclose())
    called = [(m["extra"]["function_id"], m["function_call"]) for m in said if "function_call" in m]
    assert [(call_id, call["name"], call["arguments"]) for call_id, call in called] == calls
    assert "".join(m.get("reasoning_content", "") for m in said) == reasoning
    assert "".join(m["content"] for m in said) == text
