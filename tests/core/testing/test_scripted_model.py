"""The scripted model: turns of every form, and what it remembers."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from core.errors import ModelUnavailableError
from core.llm.open_model import get_chat_model
from core.llm.request import ChatRequest
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import USER, Message, Usage
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel

pytestmark = pytest.mark.anyio
REQUEST = ChatRequest((Message(USER, "q"),))


async def events(model):
    async with aclosing(model.stream(REQUEST)) as stream:
        return [event async for event in stream]


async def test_turns_are_played_in_order_and_the_last_is_repeated():
    model = ScriptedModel("one", lambda request: request.messages[-1].get_text_content() + "!", Reply(text="three"))
    assert [(await model.achat([Message(USER, "q")]))[0].content for _ in range(4)] == ["one", "q!", "three", "three"]
    assert len(model.requests) == 4


async def test_events_are_played_as_they_are():
    script = (MessageStarted("Ann"), TextDelta("a"), MessageFinished("length", Usage(total_tokens=1)))
    assert await events(ScriptedModel(script)) == list(script)


async def test_a_reply_ends_with_its_usage():
    assert (await events(ScriptedModel(Reply(text="a", usage=(1, 2)))))[-1] == MessageFinished(
        "stop", Usage(prompt_tokens=1, completion_tokens=2, total_tokens=3)
    )


async def test_an_error_is_raised():
    with pytest.raises(ModelUnavailableError):
        await events(ScriptedModel(ModelUnavailableError(None, "503", "busy")))


async def test_leaving_early_is_counted():
    model = ScriptedModel(Reply(text="a b c"))
    async with aclosing(model.stream(REQUEST)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break
    assert model.closed == 1
    await events(model)
    assert model.closed == 1


async def test_settings_make_one_too():
    model = get_chat_model({"model": "m", "model_type": "scripted", "script": ["from settings"]})
    assert (await model.achat([Message(USER, "q")]))[0].content == "from settings"
    echo = get_chat_model({"model": "m", "model_type": "scripted"})
    assert (await echo.achat([Message(USER, "q")]))[0].content == "You said: q"


@pytest.mark.anyio
async def test_pictures_and_speech_are_items_of_the_reply():
    model = ScriptedModel(Reply(text="see", images=[b"png"], audio=b"wav", usage=(5, 4), reasoning_tokens=3))
    (said,) = await model.achat([{"role": "user", "content": "q"}])
    assert [item.type for item in said.items] == ["text", "image", "audio"]
    assert said.items[1].image == "data:image/png;base64,cG5n"
