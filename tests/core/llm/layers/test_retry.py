"""Asking again: only when it may help, and never after the first word."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from core.errors import (
    ContextTooLongError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    ModelUnavailableError,
)
from core.llm.layers.retry import FAILURES, MOST_KNOWN, REST_SECONDS, WITHIN_SECONDS, Breaker, Breakers, Pauses, retry
from core.llm.request import CallNotes, ChatRequest
from core.llm.service import Service, service_of
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


class Served:
    """A model at an address."""

    model = "m"
    model_type = "openai"

    def __init__(self, key: str = "sk-one", address: str = "https://one.example/v1") -> None:
        self.cfg: dict[str, Any] = {"api_key": key, "base_url": address}

    @property
    def service(self) -> Service:
        return service_of(self.cfg, self.model_type)

    def count_tokens(self, text: str) -> int:
        return len(text)

    async def account(self) -> str:
        return "mine"


QUESTION = (Message(USER, "q"),)


async def ask(below, retries=3, waits: Waits | None = None, *, known=None, model=None, notes=None):
    waits = Waits() if waits is None else waits
    request = ChatRequest(QUESTION, generate={"max_retries": retries}, notes=notes)
    layer = retry(model or Served(), Pauses(waits.sleep, lambda: 1.0), known or Breakers())
    async with aclosing(layer(request, below)) as events:
        return [event async for event in events]


async def test_a_busy_service_is_asked_again_and_the_reader_hears_of_one_reply():
    below, waits, notes = Flaky(busy(), busy()), Waits(), CallNotes()
    assert await ask(below, waits=waits, notes=notes) == [
        MessageStarted(),
        TextDelta("answer"),
        MessageFinished("stop"),
    ]
    assert (below.attempts, waits, notes.retries) == (3, [0.5, 1.0], 2)


async def test_four_attempts_are_three_retries_and_the_last_error_is_raised():
    below = Flaky(*(busy() for _ in range(9)))
    with pytest.raises(ModelServiceError, match="busy"):
        await ask(below)
    assert below.attempts == 4


class Inside(Served):
    """A model in this process."""

    model_type = "llama_cpp"

    def __init__(self) -> None:
        self.cfg = {}

    @property
    def service(self) -> Service:
        return Service(self.model_type, self.model_type, here=True)


@pytest.mark.parametrize(("model", "generate"), [(Inside(), {}), (Served(), {"circuit_breaker": False})])
async def test_without_retries_and_a_breaker_the_layer_is_not_there(model, generate):
    below = Flaky()
    stream = retry(model)(ChatRequest(QUESTION, generate=generate), below)
    assert getattr(stream, "ag_code") is Flaky.__call__.__code__  # noqa: B009 - generators are typed without it
    await stream.aclose()
    with pytest.raises(ModelUnavailableError):
        await ask(Flaky(busy()), retries=0)


def slow() -> ModelServiceError:
    return ModelUnavailableError(None, None, "It took too long to answer.", key="model_slow")


@pytest.mark.parametrize(("seconds", "attempts"), [(20.0, 3), (59.0, 2), (60.0, 1), (600.0, 1)])
async def test_a_service_that_says_nothing_is_given_up_after_a_minute_not_after_a_minute_for_each_attempt(
    seconds: float, attempts: int
) -> None:
    passed, below, waits = [0.0], Flaky(*(slow() for _ in range(9))), Waits()

    class Silent(Flaky):
        async def __call__(self, request: ChatRequest):
            passed[0] += seconds
            async for event in below(request):
                yield event

    layer = retry(Served(), Pauses(waits.sleep, lambda: 0.0, lambda: passed[0]), Breakers())
    request = ChatRequest(QUESTION, generate={"max_retries": 3})
    with pytest.raises(ModelUnavailableError):
        async with aclosing(layer(request, Silent())) as events:
            [event async for event in events]
    assert below.attempts == attempts


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
        ModelRefusedError(None, "403", "not yours"),
        ModelRefusedError(None, "404", "no such model"),
        ModelServiceError(None, "400", "bad"),
        ModelServiceError(None, "DataInspectionFailed", "no"),
        ModelServiceError(None, None, "something else"),
        ModelRefusedError(None, "429", "insufficient_quota", key="model_quota"),
        ContextTooLongError(None, "400", "too long"),
        ModelMisbehavedError(None, None, "html"),
        ModelUnavailableError(None, "DataInspectionFailed", "no"),
        ModelUnavailableError(None, "500", "DataInspectionFailed"),
        ModelUnavailableError(None, "500", "Output data may contain Inappropriate Content."),
        ModelUnavailableError(None, "500", "This model's maximum context length is 4096"),
        RuntimeError("a mistake of ours"),
    ],
)
async def test_what_cannot_help_is_not_tried(error):
    below = Flaky(error)
    with pytest.raises(type(error)):
        await ask(below)
    assert below.attempts == 1


@pytest.mark.parametrize(
    "error",
    [
        *(ModelServiceError(None, code, "Qwen-Agent's own") for code in ("408", "409", "429", "500", "503", "529")),
        ModelRefusedError(None, "409", "conflict"),
        ModelServiceError(ConnectionResetError("gone")),
        ModelServiceError(TimeoutError("slow")),
        ModelUnavailableError(None, None, "cannot be reached"),
    ],
)
async def test_what_may_help_is_tried(error):
    below = Flaky(error)
    await ask(below)
    assert below.attempts == 2


async def test_the_service_says_how_long_to_wait_up_to_a_minute():
    waits = Waits()
    await ask(Flaky(busy(retry_after=7.0), busy(retry_after=60.0), busy(retry_after=-1.0)), waits=waits)
    assert waits == [7.0, 60.0, 0.0]


async def test_a_service_that_asks_for_more_than_a_minute_is_not_waited_for():
    below, waits = Flaky(busy(retry_after=3600.0)), Waits()
    with pytest.raises(ModelUnavailableError) as raised:
        await ask(below, waits=waits)
    assert (below.attempts, waits, raised.value.retry_after) == (1, [], 3600.0)


async def test_no_pause_goes_past_the_end_of_the_turn():
    now = asyncio.get_running_loop().time()
    below, waits = Flaky(busy(retry_after=7.0)), Waits()
    with pytest.raises(ModelUnavailableError):
        await ask(below, waits=waits, notes=CallNotes(deadline=now + 5.0))
    assert (below.attempts, waits) == (1, [])


def test_pauses_double_are_spread_and_have_an_end():
    longest = Pauses(chance=lambda: 1.0)
    assert [longest.length(attempt, None) for attempt in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert Pauses(chance=lambda: 0.0).length(5, None) == 0


async def test_leaving_stops_the_attempt_below():
    left: list[str] = []

    async def below(request: ChatRequest):
        try:
            yield MessageStarted()
            yield TextDelta("a")
            yield TextDelta("b")
        finally:
            left.append("closed")

    request = ChatRequest(QUESTION, generate={"max_retries": 1})
    async with aclosing(retry(Served(), known=Breakers())(request, below)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert left == ["closed"]


# -- the circuit breaker ----------------------------------------------------------------------------------------------


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_five_failures_in_half_a_minute_open_the_breaker_and_one_call_may_try_later():
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        assert breaker.admit() is None
        breaker.failed()
    assert breaker.admit() == REST_SECONDS
    clock.now += REST_SECONDS
    assert breaker.admit() is None
    assert breaker.admit() is not None, "one call at a time finds out"
    breaker.failed()
    assert breaker.admit() == REST_SECONDS
    clock.now += REST_SECONDS
    assert breaker.admit() is None
    breaker.abandoned()
    assert breaker.admit() is None, "a call that was given up leaves its place"
    breaker.succeeded()
    assert breaker.admit() is None
    assert breaker.admit() is None


def test_failures_far_apart_or_with_a_success_between_do_not_open_it():
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES * 2):
        breaker.failed()
        assert breaker.admit() is None  # now, not when an open one would have closed again
        clock.now += WITHIN_SECONDS
    for number in range(FAILURES * 2):
        breaker.failed()
        if number % 2:
            breaker.succeeded()
    assert breaker.admit() is None


@pytest.mark.parametrize(("between", "opens"), [(0.25, True), (0.26, False)])
def test_as_many_failures_open_it_within_the_window_and_not_over_a_longer_time(between: float, opens: bool):
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        breaker.failed()
        clock.now += WITHIN_SECONDS * between
    assert (breaker.admit() is not None) is opens


async def fail(known: Breakers, model: Served, error: Exception, times: int = FAILURES, *, retries: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(type(error)):
            await ask(Flaky(error, error), retries, known=known, model=model)


@pytest.mark.parametrize("retries", [0, 1])
async def test_a_service_that_is_down_is_left_alone_with_its_key_and_nobody_else(retries):
    known, below = Breakers(), Flaky()
    await fail(known, Served(), busy(), retries=retries)
    with pytest.raises(ModelUnavailableError, match="left alone for 30 s") as raised:
        await ask(below, retries, known=known)
    assert (below.attempts, raised.value.words_key) == (0, "model_resting")
    assert raised.value.details["host"] == "one.example"
    assert raised.value.details["seconds"] == 30
    await ask(below, known=known, model=Served(key="sk-two"))
    await ask(below, known=known, model=Served(address="https://two.example/v1"))
    assert below.attempts == 2


@pytest.mark.parametrize(
    "error",
    [
        ModelRefusedError(None, "401", "key"),
        ModelUnavailableError(None, "429", "busy"),
        ModelUnavailableError(None, "Throttling.RateQuota", "busy", key="model_overloaded"),
        KeyError("ours"),
    ],
)
async def test_a_service_that_answers_at_all_is_not_down(error):
    known, below = Breakers(), Flaky()
    await fail(known, Served(), error)
    await ask(below, known=known)
    assert below.attempts == 1


class One(Breakers):
    """The same breaker for everybody: its service has rested, and may be tried."""

    def __init__(self) -> None:
        super().__init__()
        clock = Clock()
        self.opened = Breaker(clock)
        for _ in range(FAILURES):
            self.opened.failed()
        clock.now += REST_SECONDS

    def of(self, key) -> Breaker:
        return self.opened


async def test_a_service_that_is_back_is_asked_as_before():
    below, known = Flaky(), One()
    await ask(below, known=known)
    await ask(below, known=known)
    assert below.attempts == 2


async def test_a_try_that_was_left_before_the_first_word_lets_another_one_try():
    below, known = Flaky(), One()
    async with aclosing(retry(Served(), known=known)(ChatRequest(QUESTION), below)) as events:
        assert await anext(events) == MessageStarted()
    await ask(below, known=known)
    assert below.attempts == 2


def test_keys_without_end_do_not_fill_the_memory():
    known = Breakers()
    down = known.of("down")
    for _ in range(FAILURES):
        down.failed()
    first = known.of("first")
    assert known.of("first") is first
    for number in range(MOST_KNOWN):
        known.of(number)
        assert known.of("down") is down, "what is asked about stays"
    assert known.of("first") is not first
