"""What every model of the catalog promises, asked of each that can run here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import aclosing

import pytest

from core.bridge.sync import run
from core.llm.base import BaseChatModel
from core.llm.catalog import LLM_REGISTRY
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import USER, Message
from core.testing.behaviour import many_chunks
from core.testing.model_server import ModelServer

pytestmark = pytest.mark.anyio

HELLO = ChatRequest((Message(USER, "Say hello."),))
TALK = ChatRequest((Message(USER, "Tell me a long story."),), generate={"max_tokens": 60})

_ADDRESSES = {
    "mistral": ("base_url", "/mistral/v1"),
    "azure": ("azure_endpoint", ""),
    "dashscope": ("base_http_api_url", "/api/v1"),
}
_ELSEWHERE = {"llama_cpp", "transformers", "zerogpu"}  # weights are for the tests marked so
_ELSEWHERE |= {"openai_public"}  # calls the open internet alone, and no test does


def _settings(name: str, server: ModelServer) -> dict:
    if name == "scripted":
        return {"model": "m", "model_type": name}
    if name == "fallback":
        return {"model_type": name, "models": [_settings("openai", server), _settings("scripted", server)]}
    address, path = _ADDRESSES.get(name.rpartition("_")[2], ("base_url", "/v1"))
    return {"model": "m", "model_type": name, address: f"http://127.0.0.1:{server.port}{path}", "api_key": "any"}


@pytest.fixture
def opened() -> Iterator[Callable[[str], BaseChatModel]]:
    models: list[BaseChatModel] = []
    with ModelServer(many_chunks(40, pace=0.001)) as server:

        def open_one(name: str) -> BaseChatModel:
            models.append(get_chat_model(_settings(name, server)))
            return models[-1]

        yield open_one
        for model in models:
            run(model.aclose())


NAMES = [name for name in LLM_REGISTRY if name not in _ELSEWHERE]


@pytest.mark.parametrize("name", NAMES)
class TestEveryModel:
    async def test_a_reply_begins_and_ends_once(self, opened, name):
        model = opened(name)
        async with aclosing(model.stream(HELLO)) as stream:
            kinds = [type(event) async for event in stream]
        await model.aclose()
        assert kinds[0] is MessageStarted
        assert kinds[-1] is MessageFinished
        assert (kinds.count(MessageStarted), kinds.count(MessageFinished)) == (1, 1)
        assert TextDelta in kinds

    async def test_leaving_early_leaves_the_next_question_unharmed(self, opened, name):
        model = opened(name)
        async with aclosing(model.stream(TALK)) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        reply = await model.achat(HELLO.messages)
        await model.aclose()
        assert reply[-1].get_text_content()

    def test_dicts_and_messages_come_back_as_they_came(self, opened, name):
        model = opened(name)
        dicts = [{"role": "user", "content": "Say hello."}]
        assert isinstance(model.chat(dicts, stream=False)[0], dict)
        assert isinstance(model.chat([Message(USER, "Say hello.")], stream=False)[0], Message)
        assert dicts == [{"role": "user", "content": "Say hello."}]

    def test_snapshots_grow_to_the_whole(self, opened, name):
        shown = [snapshot[-1]["content"] for snapshot in opened(name).chat([{"role": "user", "content": "Say hello."}])]
        assert shown
        assert all(shown[-1].startswith(text) for text in shown)

    async def test_preparing_twice_and_closing_twice_do_no_harm(self, opened, name):
        model = opened(name)
        await model.prepare()
        await model.prepare()
        await model.aclose()
        await model.aclose()

    def test_it_says_who_it_is_and_counts_tokens(self, opened, name):
        model = opened(name)
        assert model.label
        assert model.count_tokens("") == 0
        assert 0 < model.count_tokens("one two three") < model.count_tokens("one two three " * 20)
