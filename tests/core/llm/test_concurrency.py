"""Many questions at once, and what is done before the first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from core.errors import ModelMisbehavedError, ModelUnavailableError, ParlourError, SettingsError
from core.llm.base import BaseChatModel
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import USER, Message

pytestmark = pytest.mark.anyio


class Counting(BaseChatModel):
    """Repeats the question, the first ones last; counts how many it answers at the same time."""

    model_type = "counting"

    def __init__(self, cfg: dict[str, Any] | None = None) -> None:
        super().__init__(cfg)
        self.now = self.most = self.asked = self.left = 0

    async def _stream(self, request):
        self.now, self.asked = self.now + 1, self.asked + 1
        self.most = max(self.most, self.now)
        text = request.messages[-1].get_text_content()
        try:
            yield MessageStarted()
            for _ in range(20 - self.asked % 20):
                await asyncio.sleep(0)
            if text.startswith("fail"):
                raise ModelUnavailableError(None, "503", text)
            if text.startswith("hang"):
                await asyncio.Event().wait()
            yield TextDelta(text)
            yield MessageFinished("stop")
        except (asyncio.CancelledError, GeneratorExit):
            self.left += 1
            raise
        finally:
            self.now -= 1


def questions(*texts: str) -> list[list[Message]]:
    return [[Message(USER, text)] for text in texts]


def texts(replies: list[Any]) -> list[str]:
    return [str(reply) if isinstance(reply, ParlourError) else reply[0]["content"] for reply in replies]


@pytest.mark.parametrize("concurrency", [1, 3, 100])
async def test_the_replies_come_in_the_order_of_the_questions_under_one_limit(concurrency: int):
    model, asked = Counting(), [f"question {number}" for number in range(30)]
    assert texts(await model.abatch(questions(*asked), concurrency=concurrency)) == asked
    assert model.most == min(concurrency, 30)


def test_synchronous_code_has_it_too_and_dicts_come_back_as_dicts():
    replies = Counting().batch([[{"role": "user", "content": "a"}], [Message(USER, "b")]], concurrency=2)
    assert isinstance(replies[0], list)
    assert isinstance(replies[1], list)
    assert type(replies[0][0]) is dict
    assert type(replies[1][0]) is Message
    assert texts(replies) == ["a", "b"]


async def test_the_first_error_ends_all():
    model = Counting()
    with pytest.raises(ModelUnavailableError, match="fail"):
        await model.abatch(questions("hang", "fail", *"abcdef"), concurrency=2)
    assert (model.now, model.left) == (0, 1)


async def test_errors_may_take_the_place_of_their_replies():
    replies = await Counting().abatch(questions("a", "fail", "b"), keep_errors=True)
    assert isinstance(replies[1], ModelUnavailableError)
    assert texts([replies[0], replies[2]]) == ["a", "b"]


async def test_leaving_stops_all_that_runs():
    model = Counting()
    task = asyncio.create_task(model.abatch(questions("hang", "hang", "hang"), concurrency=2))
    while model.now < 2:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (model.now, model.left, model.asked) == (0, 2, 2)


async def test_nothing_to_ask_is_answered_with_nothing():
    assert await Counting().abatch([]) == []


@pytest.mark.parametrize("concurrency", [0, -1])
async def test_a_limit_below_one_is_refused(concurrency: int):
    with pytest.raises(SettingsError, match="at least 1"):
        await Counting().abatch(questions("a"), concurrency=concurrency)


async def test_settings_of_one_batch_reach_every_question():
    class Seen(Counting):
        seen: list[Any] = []

        async def _stream(self, request):
            self.seen.append((request.generate.get("temperature"), len(request.functions)))
            yield MessageStarted()
            yield MessageFinished("stop")

    model = Seen()
    model.native_calls = True
    await model.abatch(questions("a", "b"), [{"name": "f"}], extra_generate_cfg={"temperature": 0.5})
    assert model.seen == [(0.5, 1)] * 2


async def test_what_had_come_of_a_whole_reply_is_in_its_error():
    class Cut(BaseChatModel):
        async def _stream(self, request):
            yield MessageStarted()
            yield TextDelta("The weather in")
            raise ModelMisbehavedError(None, None, "cut off", {"host": "h"})

    with pytest.raises(ModelMisbehavedError) as raised:
        await Cut().achat([{"role": "user", "content": "q"}])
    assert raised.value.extra == {"host": "h", "partial": [{"role": "assistant", "content": "The weather in"}]}


def test_warming_up_prepares_then_connects():
    class Slow(Counting):
        done: list[str] = []

        async def prepare(self, progress=None):
            self.done.append("prepared")

        async def _connect(self):
            self.done.append("connected")

    model = Slow()
    model.warm_up()
    assert model.done == ["prepared", "connected"]
    Counting().warm_up()


@pytest.mark.parametrize("concurrency", ["8", 2.5, None, float("nan"), 0, True])
def test_a_concurrency_that_is_no_whole_number_is_refused(concurrency: Any):
    with pytest.raises(SettingsError) as caught:
        Counting().batch(questions("one"), concurrency=concurrency)
    assert caught.value.hint


@pytest.mark.parametrize("keep_errors", [True, False])
def test_questions_may_come_from_a_generator(keep_errors: bool):
    asked = ([{"role": "user", "content": text}] for text in ("one", "two"))
    assert texts(Counting().batch(asked, keep_errors=keep_errors)) == ["one", "two"]


@pytest.mark.parametrize("extra", [[1], "max_tokens", 5])
def test_settings_of_a_call_that_are_no_dict_are_refused(extra: Any):
    with pytest.raises(SettingsError, match="extra_generate_cfg"):
        Counting().batch(questions("one"), extra_generate_cfg=extra)
    with pytest.raises(SettingsError, match="extra_generate_cfg"):
        Counting().chat(questions("one")[0], extra_generate_cfg=extra)
