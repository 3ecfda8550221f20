"""Qwen-Agent's own tests of its models, pointed at a server of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from core.errors import ModelServiceError
from core.llm.base import BaseChatModel
from core.testing.model_server import ModelServer
from core.testing.script import Reply

Opened = Callable[..., BaseChatModel]
IMAGE_GEN: dict[str, Any] = {
    "name": "image_gen",
    "description": "AI painting: give a description, get the address of the picture.",
    "parameters": {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
}
WRITTEN_CALL = '<tool_call>\n{"name": "image_gen", "arguments": {"prompt": "a cat"}}\n</tool_call>'


def sent(server: ModelServer) -> list[dict[str, Any]]:
    return server.requests[-1].body["messages"]


@pytest.mark.parametrize("offered", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("delta_stream", [True, False])
def test_every_way_to_ask_gives_the_same(
    server: ModelServer, opened: Opened, offered: bool, stream: bool, delta_stream: bool
) -> None:
    model = opened(generate_cfg={"top_p": 0.8})
    assert model.max_retries == 0
    functions = [IMAGE_GEN] if offered else None
    messages = [{"role": "user", "content": "draw a cute cat"}]
    if offered and stream and delta_stream:
        with pytest.raises(NotImplementedError):
            model.chat(messages, functions, stream=True, delta_stream=True)
        return
    server.add(Reply(text=WRITTEN_CALL if offered else "Here it is."))
    answered: Any = model.chat(messages, functions, stream, delta_stream)
    if stream and delta_stream:
        assert "".join(piece[-1]["content"] for piece in answered) == "Here it is."
        return
    reply = list(answered)[-1] if stream else answered
    assert isinstance(reply[-1]["content"], str)
    if offered:
        assert reply[-1]["function_call"]["name"] == "image_gen"
    else:
        assert "function_call" not in reply[-1]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("offered", [True, False])
def test_an_answer_that_was_begun_is_continued(
    server: ModelServer, opened: Opened, stream: bool, offered: bool
) -> None:
    server.add(Reply(text="three, four"))
    messages = [{"role": "user", "content": "count"}, {"role": "assistant", "content": "one, two, "}]
    functions = [IMAGE_GEN] if offered else None
    answered: Any = opened().chat(messages, functions, stream)
    reply = list(answered)[-1] if stream else answered
    assert reply == [{"role": "assistant", "content": "three, four"}]
    last = sent(server)[-1]
    assert (last["role"], last["content"]) == ("user", "count\n\none, two, ")


@pytest.mark.parametrize("choice", ["auto", "none", "image_gen"])
@pytest.mark.parametrize("template", ["nous", "qwen"])
def test_a_tool_that_returned_nothing_is_no_reason_to_fail(
    server: ModelServer, opened: Opened, choice: str, template: str
) -> None:
    server.add(Reply(text="There it is."))
    call = {"name": "image_gen", "arguments": '{"prompt": "a cat"}'}
    messages = [
        {"role": "user", "content": "draw"},
        {"role": "assistant", "content": "", "function_call": call},
        {"role": "function", "name": "image_gen", "content": ""},
    ]
    generate = {"function_choice": choice, "fncall_prompt_type": template}
    reply: Any = opened().chat(messages, [IMAGE_GEN], stream=False, extra_generate_cfg=generate)
    if choice == "none":
        assert not any("function_call" in message for message in reply)
    assert "There it is." in str(reply)


@pytest.mark.parametrize("stream", [True, False])
def test_a_service_that_keeps_failing_is_asked_as_often_as_allowed(
    server: ModelServer, opened: Opened, stream: bool
) -> None:
    for _ in range(5):
        server.add(Reply(status=500, error=cast("Any", "busy"), headers={"Retry-After": "0"}))
    model = opened(generate_cfg={"max_retries": 3})
    assert model.max_retries == 3
    with pytest.raises(ModelServiceError):
        answered: Any = model.chat([{"role": "user", "content": "q"}], stream=stream)
        list(answered)
    assert len(server.requests) == 4


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("said", ["DataInspectionFailed", "inappropriate content", "maximum context length"])
def test_what_cannot_get_better_is_asked_once(server: ModelServer, opened: Opened, stream: bool, said: str) -> None:
    server.add(Reply(status=400, error=cast("Any", said)))
    with pytest.raises(ModelServiceError):
        answered: Any = opened(generate_cfg={"max_retries": 3}).chat([{"role": "user", "content": "q"}], stream=stream)
        list(answered)
    assert len(server.requests) == 1
