"""Hooks of a model of one's own get what they name, in every signature that Qwen-Agent's subclasses have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.agents.basic import FnCallAgent
from core.llm.base import BaseChatModel
from core.llm.sync_hooks import by_name
from core.messages.message import Message
from core.tools.base import BaseTool

ASKED: list[Any] = [Message("user", "q")]
FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}


def described(messages: Any, delta_stream: Any, generate_cfg: Any) -> list[Message]:
    heard = messages[-1].get_text_content()
    return [Message("assistant", f"{heard} {delta_stream} {type(generate_cfg).__name__}")]


def seed_order(messages, delta_stream, generate_cfg):
    yield described(messages, delta_stream, generate_cfg)


def other_order(messages, generate_cfg, delta_stream=False):
    yield described(messages, delta_stream, generate_cfg)


def keywords_only(messages, *, generate_cfg, delta_stream):
    yield described(messages, delta_stream, generate_cfg)


def rest_by_name(messages, delta_stream=False, **kwargs):
    yield described(messages, delta_stream, kwargs["generate_cfg"])


def all_by_name(**kwargs):
    yield described(kwargs["messages"], kwargs["delta_stream"], kwargs["generate_cfg"])


def own_names(history, delta, cfg):
    yield described(history, delta, cfg)


def own_defaults(messages, delta_stream=True, generate_cfg=None, retries=3):
    assert retries == 3
    yield described(messages, delta_stream, generate_cfg)


def positions_only(messages, delta_stream, generate_cfg, /):
    yield described(messages, delta_stream, generate_cfg)


def no_settings(messages, delta_stream=False):
    yield described(messages, delta_stream, {})


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "hook",
    [
        seed_order,
        other_order,
        keywords_only,
        rest_by_name,
        all_by_name,
        own_names,
        own_defaults,
        positions_only,
        no_settings,
    ],
)
def test_the_streaming_hook_gets_what_it_names(hook: Any, stream: bool) -> None:
    model: Any = BaseChatModel({"model": "own"})
    model._chat_stream = hook
    reply = model.chat(ASKED, stream=stream)
    assert (list(reply)[-1] if stream else reply) == [Message("assistant", "q False dict")]


@pytest.mark.parametrize(
    "hook",
    [
        lambda messages, generate_cfg: described(messages, False, generate_cfg),
        lambda messages, **kwargs: described(messages, False, kwargs["generate_cfg"]),
        lambda generate_cfg, messages: described(messages, False, generate_cfg),
        lambda history, cfg: described(history, False, cfg),
        lambda messages: described(messages, False, {}),
    ],
)
def test_the_whole_hook_gets_what_it_names(hook: Any) -> None:
    model: Any = BaseChatModel({"model": "own"})
    model._chat_no_stream = hook
    assert model.chat(ASKED, stream=False) == [Message("assistant", "q False dict")]


def test_what_a_function_has_no_parameter_for_is_left_out() -> None:
    assert by_name(lambda *_: "none", a=1) == "none"
    assert by_name(lambda b, a=0: (a, b), a=1, b=2, c=3) == (1, 2)


class Calls(BaseChatModel):
    """Calls in a way of its own."""

    seen: dict[str, Any]

    def _chat_with_functions(self, messages, functions, stream, delta_stream, generate_cfg, lang):
        self.seen = {"functions": functions, "stream": stream, "delta_stream": delta_stream, "lang": lang}
        if any(message.role == "function" for message in messages):
            return iter([[Message("assistant", "done")]])
        return [Message("assistant", "", function_call={"name": functions[0]["name"], "arguments": "{}"})]

    def _chat_stream(self, messages, delta_stream, generate_cfg) -> Iterator[list[Message]]:
        yield [Message("assistant", f"plain {sorted(generate_cfg)}")]


def test_a_model_that_calls_in_its_own_way_is_asked_for_calls_by_that_hook_alone() -> None:
    model = Calls({"model": "own"})
    (reply,) = model.chat(ASKED, functions=[FUNCTION], stream=False)
    assert reply["function_call"]["name"] == "f"
    assert model.seen == {"functions": [FUNCTION], "stream": True, "delta_stream": False, "lang": "en"}
    assert model.chat(ASKED, stream=False) == [Message("assistant", "plain []")]


def test_an_agent_runs_the_tools_that_such_a_model_calls() -> None:
    class Tool(BaseTool):
        name = "f"
        description = "d"

        def call(self, params: str | dict[str, Any], **kwargs: Any) -> str:
            return "ran"

    reply = FnCallAgent([Tool()], Calls({"model": "own"})).run_nonstream(ASKED)
    assert [one["content"] for one in reply] == ["", "ran", "done"]


def test_without_that_hook_functions_are_written_into_the_prompt() -> None:
    class Reads(BaseChatModel):
        def _chat_stream(self, messages, delta_stream, generate_cfg):
            assert "functions" not in generate_cfg
            yield [Message("assistant", "f" if '"name": "f"' in messages[0].get_text_content() else "nothing")]

    assert Reads({"model": "own"}).chat(ASKED, functions=[FUNCTION], stream=False)[0]["content"] == "f"


def test_a_model_without_hooks_says_what_to_define() -> None:
    class Silent(BaseChatModel):
        """Answers nothing."""

    with pytest.raises(NotImplementedError, match="Silent answers nothing: it must define _stream, _chat_stream or"):
        Silent({"model": "own"}).chat(ASKED, stream=False)


def test_a_stream_of_messages_where_events_belong_says_what_to_yield() -> None:
    class Mixed(BaseChatModel):
        async def _stream(self, request):  # pyright: ignore[reportIncompatibleMethodOverride]
            yield [Message("assistant", "x")]

    with pytest.raises(TypeError, match=r"gave list instead of an event: `_stream`.*yield events"):
        Mixed({"model": "own"}).chat(ASKED, stream=False)
