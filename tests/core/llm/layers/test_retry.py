"""Asking again: only when it may help, and never after the first word."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from core.errors import (
    ContextTooLongError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    ModelUnavailableError,
)
from core.llm.layers.retry import LONGEST_ASKED_PAUSE, Pauses, retry
from core.llm.request import ChatRequest
from core.messages.events import MessageFinished, MessageStarted, TextDelta
from core.messages.message import USER, Message

pytestmark = pytest.mark.anyio


class Flaky:
    """Fails with each error in turn, then answers."""

    def __init__(self, *errors: Exception, words_first: int = 0) -> None:
        self.errors, self.words_first = list(errors), words_first
        self.attempts = 0

    async def __call__(self, request: ChatRequest):
        self.attempts += 1
        yield MessageStarted()
        for number in range(self.words_first):
            yield TextDelta(str(number))
        if self.errors:
            raise self.errors.pop(0)
        yield TextDelta("answer")
        yield MessageFinished("stop")


class Waits(list[float]):
    """Takes the place of sleeping, and notes how long it would have been."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)


def busy(**more) -> ModelUnavailableError:
    return ModelUnavailableError(None, "503", "busy", **more)


async def ask(below, retries=3, waits: Waits | None = None):
    waits = Waits() if waits is None else waits
    request = ChatRequest((Message(USER, "q"),), generate={"max_retries": retries})
    async with aclosing(retry(request, below, Pauses(waits.sleep, lambda: 1.0))) as events:
        return [event async for event in events]


async def test_a_busy_service_is_asked_again_and_the_reader_hears_of_one_reply():
    below = Flaky(busy(), busy())
    waits = Waits()
    assert await ask(below, waits=waits) == [MessageStarted(), TextDelta("answer"), MessageFinished("stop")]
    assert (below.attempts, waits) == (3, [0.5, 1.0])


async def test_four_attempts_are_three_retries_and_the_last_error_is_raised():
    below = Flaky(*(busy() for _ in range(9)))
    with pytest.raises(ModelServiceError, match="busy"):
        await ask(below)
    assert below.attempts == 4


async def test_without_retries_the_layer_is_not_there():
    below = Flaky()
    request = ChatRequest((Message(USER, "q"),))
    stream = retry(request, below)
    assert getattr(stream, "ag_code") is Flaky.__call__.__code__  # noqa: B009 - generators are typed without it
    await stream.aclose()
    with pytest.raises(ModelUnavailableError):
        await ask(Flaky(busy()), retries=0)


async def test_after_the_first_word_nothing_is_asked_again():
    below = Flaky(busy(), words_first=1)
    with pytest.raises(ModelUnavailableError):
        await ask(below)
    assert below.attempts == 1


@pytest.mark.parametrize(
    "error",
    [
        ModelRefusedError(None, "400", "bad"),
        ModelRefusedError(None, "401", "key"),
        ContextTooLongError(None, "400", "too long"),
        ModelMisbehavedError(None, None, "html"),
        ModelUnavailableError(None, "500", "DataInspectionFailed"),
        ModelUnavailableError(None, "500", "inappropriate content"),
        ModelUnavailableError(None, "500", "This model's maximum context length is 4096"),
        RuntimeError("a mistake of ours"),
    ],
)
async def test_what_cannot_help_is_not_tried(error):
    below = Flaky(error)
    with pytest.raises(type(error)):
        await ask(below)
    assert below.attempts == 1


async def test_the_service_says_how_long_to_wait_up_to_a_minute():
    waits = Waits()
    await ask(Flaky(busy(retry_after=7.0), busy(retry_after=3600.0), busy(retry_after=-1.0)), waits=waits)
    assert waits == [7.0, LONGEST_ASKED_PAUSE, 0.0]


def test_pauses_double_are_spread_and_have_an_end():
    longest = Pauses(chance=lambda: 1.0)
    assert [longest.length(attempt, None) for attempt in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert Pauses(chance=lambda: 0.0).length(5, None) == 0


async def test_leaving_stops_the_attempt_below():
    below = Flaky()
    async with aclosing(retry(ChatRequest((Message(USER, "q"),), generate={"max_retries": 1}), below)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert below.attempts == 1
