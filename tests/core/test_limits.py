"""Places and rates of owners: given out in order, never more than there are, bounded in memory."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import TooManyRequestsError
from core.limits import Slots, TokenBuckets

anyio = pytest.mark.anyio


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def buckets(count: int | None, clock: Clock, *, keys: int = 100) -> TokenBuckets:
    return TokenBuckets(count, 60.0, error="too_many", message="Too many.", keys=keys, clock=clock)


def granted(rate: TokenBuckets, key: str = "a", count: int = 1) -> bool:
    try:
        rate.take_now(key, count)
    except TooManyRequestsError:
        return False
    return True


@anyio
async def test_a_key_has_so_many_places_and_further_ones_have_their_turn_in_order() -> None:
    slots = Slots(2)
    one, two, three, four = (slots.take("alice") for _ in range(4))
    assert [slot.granted for slot in (one, two, three, four)] == [True, True, False, False]
    two.release()
    assert (three.granted, four.granted) == (True, False)
    await asyncio.wait_for(three.wait(), 60)
    one.release()
    one.release()  # a second time gives nobody anything
    assert four.granted
    assert not slots.take("alice").granted


@anyio
async def test_one_key_takes_nothing_from_another() -> None:
    slots = Slots(1)
    slots.take("alice")
    assert not slots.take("alice").granted
    assert slots.take("bob").granted


@anyio
async def test_who_leaves_the_queue_has_no_turn_and_holds_up_nobody() -> None:
    slots = Slots(1)
    first, leaves, last = (slots.take("alice") for _ in range(3))
    leaves.release()
    first.release()
    assert (leaves.granted, last.granted) == (False, True)


@anyio
async def test_a_queue_has_an_end() -> None:
    slots = Slots(1, queue=2)
    held = [slots.take("alice") for _ in range(3)]
    with pytest.raises(TooManyRequestsError) as error:
        slots.take("alice")
    assert (error.value.words_key, error.value.details) == ("queue_full", {"waiting": 2})
    held[1].release()
    slots.take("alice")


@anyio
async def test_without_a_limit_nobody_waits() -> None:
    slots = Slots()
    assert all(slots.take("alice").granted for _ in range(100))


@anyio
@given(st.lists(st.one_of(st.none(), st.integers(0, 30)), max_size=60), st.integers(1, 3))
async def test_no_place_is_lost_and_none_is_given_twice(steps: list[int | None], limit: int) -> None:
    slots, held = Slots(limit, queue=100), list[object]()
    for step in steps:
        if step is None:
            held.append(slots.take("a"))
        elif held:
            slot = held.pop(step % len(held))
            slot.release()  # pyright: ignore[reportAttributeAccessIssue]
        have = [slot.granted for slot in held]  # pyright: ignore[reportAttributeAccessIssue]
        assert sum(have) == min(limit, len(held))
        assert have == sorted(have, reverse=True)  # in the order in which they were asked for


def test_so_many_in_a_period_and_then_it_says_when_to_come_again() -> None:
    clock = Clock()
    rate = buckets(3, clock)
    assert [granted(rate) for _ in range(4)] == [True, True, True, False]
    with pytest.raises(TooManyRequestsError) as error:
        rate.take_now("a")
    assert error.value.retry_after == 20
    clock.now = 19.0
    assert not granted(rate)
    clock.now = 20.0
    assert granted(rate)
    assert granted(rate, "b", 3)


def test_a_refusal_counts_for_nothing() -> None:
    clock = Clock()
    rate = buckets(2, clock)
    assert granted(rate, count=2)
    assert not any(granted(rate) for _ in range(50))
    clock.now = 60.0
    assert granted(rate, count=2)


def test_more_than_a_whole_period_holds_is_taken_once_and_counted_in_full() -> None:
    clock = Clock()
    rate = buckets(2, clock)
    assert granted(rate, count=6)
    clock.now = 119.0
    assert not granted(rate)
    clock.now = 150.0
    assert granted(rate)


def test_without_a_limit_everything_is_let_through() -> None:
    rate = buckets(None, Clock())
    assert all(granted(rate) for _ in range(1000))
    assert not len(rate)


def test_however_many_ask_only_so_many_are_remembered() -> None:
    rate = buckets(1, Clock(), keys=10)
    for number in range(1000):
        granted(rate, str(number))
    assert len(rate) == 10


@given(st.lists(st.tuples(st.floats(0, 50), st.integers(1, 3)), max_size=40), st.integers(3, 6))
def test_no_period_sees_more_than_twice_its_count(steps: list[tuple[float, int]], count: int) -> None:
    clock, taken = Clock(), list[tuple[float, int]]()
    rate = buckets(count, clock)
    for wait, number in steps:
        clock.now += wait
        if granted(rate, count=number):
            taken.append((clock.now, number))
        assert sum(one for at, one in taken if at > clock.now - 60) <= 2 * count
