"""Rates and counted passwords, kept in this process and in a Redis: the same promises."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from core.errors import SettingsError, TooManyRequestsError
from core.limits import MemoryLimits, RateLimiter, SharedCounts
from core.people.shared_tries import tries_of
from core.people.tries import OF_ADDRESS, OF_BOTH, OF_NAME, WITHIN
from core.shared_limits import RedisLimits, beating, limits_of
from tests.grown_servers import Served

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does other things as well takes its time; how long is waited is one test's subject alone."""
    if "says_nothing" not in request.node.name:
        monkeypatch.setattr("core.shared_limits._PATIENCE", 60)


@pytest.fixture(params=["memory", "redis"])
async def limits(request: pytest.FixtureRequest) -> AsyncIterator[SharedCounts]:
    made = MemoryLimits() if request.param == "memory" else limits_of(request.getfixturevalue("redis"))
    yield made
    await made.aclose()


def rate_of(limits: SharedCounts, count: int | None, period: float, name: str = "uploads") -> RateLimiter:
    return limits.rate(name, count, period, error="too_many_uploads", message="Too many.")


async def granted(rate: RateLimiter, key: str = "a", count: int = 1) -> bool:
    try:
        await rate.take(key, count)
    except TooManyRequestsError:
        return False
    return True


async def until_granted(rate: RateLimiter) -> float:
    """Seconds until it is granted again."""
    began = time.monotonic()
    while not await granted(rate):
        assert time.monotonic() - began < 60, "It never came to be."
        await asyncio.sleep(0.01)  # between two looks, not for luck
    return time.monotonic() - began


async def test_so_many_at_once_and_as_many_again_in_each_period(limits: SharedCounts) -> None:
    rate = rate_of(limits, 3, 3600.0)
    assert [await granted(rate) for _ in range(4)] == [True, True, True, False]
    assert await granted(rate, "b", 3)
    with pytest.raises(TooManyRequestsError) as refused:
        await rate.take("a")
    assert refused.value.words_key == "too_many_uploads"
    assert 1100 < refused.value.retry_after <= 1200
    assert refused.value.details["limit"] == 3
    quick = rate_of(limits, 2, 0.2, "quick")
    assert await granted(quick, count=2)
    assert await until_granted(quick) < 30


async def test_what_is_refused_is_not_counted_and_more_than_a_period_holds_passes_alone(limits: SharedCounts) -> None:
    rate = rate_of(limits, 3, 3600.0)
    assert await granted(rate, count=2)
    assert not await granted(rate, count=2)
    assert await granted(rate)
    assert await granted(rate, "b", 5)
    assert not await granted(rate, "b")


async def test_without_a_limit_everything_is_granted(limits: SharedCounts) -> None:
    rate = rate_of(limits, None, 3600.0)
    assert all([await granted(rate, count=1000) for _ in range(3)])


async def test_wrong_passwords_are_counted_and_right_ones_are_not(limits: SharedCounts) -> None:
    tries = tries_of(limits)

    async def fails(names: list[str], addresses: list[str]) -> None:
        for name, address in zip(names, addresses, strict=True):
            await tries.begin(name, address)

    await fails(["jan"] * OF_BOTH, ["a"] * OF_BOTH)
    with pytest.raises(TooManyRequestsError) as refused:
        await tries.begin("jan", "a")
    assert 0 < refused.value.retry_after <= WITHIN
    for _ in range(OF_ADDRESS + 1):
        await tries.begin("mara", "b")
        await tries.was_right("mara", "b")
    await fails([f"name {number}" for number in range(OF_ADDRESS)], ["sprays"] * OF_ADDRESS)
    with pytest.raises(TooManyRequestsError):
        await tries.begin("mara", "sprays")
    await fails(["tom"] * OF_NAME, [f"from {number}" for number in range(OF_NAME)])
    with pytest.raises(TooManyRequestsError):
        await tries.begin("tom", "another")


async def test_a_parlour_alone_is_one(limits: SharedCounts) -> None:
    await limits.beat()
    assert limits.parlours == 1


# What Redis alone promises.


async def test_two_parlours_count_together_and_know_of_each_other(redis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = RedisLimits(redis), RedisLimits(redis)
    assert await granted(rate_of(one, 2, 3600.0))
    monkeypatch.setattr("core.shared_limits._OF_THIS_PROCESS", "another")
    assert await granted(rate_of(two, 2, 3600.0))
    assert not await granted(rate_of(two, 2, 3600.0))
    assert two.parlours == 2
    await two.aclose()
    monkeypatch.undo()
    await one.beat()
    assert one.parlours == 1
    await one.aclose()


async def test_many_at_the_same_moment_are_counted_each(redis: str) -> None:
    both = [RedisLimits(redis) for _ in range(2)]
    rates = [rate_of(one, 20, 3600.0) for one in both]
    assert sum(await asyncio.gather(*(granted(rates[number % 2]) for number in range(60)))) == 20
    for one in both:
        await one.aclose()


async def test_neither_names_nor_addresses_stand_in_redis_and_nothing_stays_for_good(redis: str) -> None:
    limits = RedisLimits(redis)
    await rate_of(limits, 5, 60.0).take("203.0.113.9")
    await tries_of(limits).begin("jan", "203.0.113.9")
    async with Redis.from_url(redis, decode_responses=True) as looked:
        keys = [key async for key in looked.scan_iter()]
        assert len(keys) == 5
        assert not [key for key in keys if "203" in key or "jan" in key]
        lives = {key.rsplit(":", 1)[0]: await looked.pttl(key) for key in keys}
    assert lives.keys() == {"{parlour}:rate:uploads", "{parlour}:tries", "{parlour}"}
    assert all(0 < life <= WITHIN * 1000 for life in lives.values())
    await limits.aclose()


async def test_while_redis_is_away_each_lets_its_share_through_and_then_all_count_together_again(
    own_redis: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    limits = RedisLimits(f"redis://127.0.0.1:{own_redis.port}", lambda: now[0])
    rate, tries = rate_of(limits, 4, 3600.0), tries_of(limits)
    monkeypatch.setattr("core.shared_limits._OF_THIS_PROCESS", "another")
    await limits.beat()
    monkeypatch.undo()
    await limits.beat()
    assert limits.parlours == 2
    own_redis.kill()
    assert [await granted(rate) for _ in range(3)] == [True, True, False]
    for _ in range(OF_BOTH // 2):
        await tries.begin("jan", "a")
    with pytest.raises(TooManyRequestsError):
        await tries.begin("jan", "a")
    await tries.was_right("jan", "a")
    own_redis.start()
    now[0] = 10.0
    assert [await granted(rate) for _ in range(5)] == [True, True, True, True, False]
    await limits.aclose()


async def test_a_redis_that_says_nothing_holds_nobody_up(free_port: int) -> None:
    silent: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, to: silent.append(to), "127.0.0.1", free_port):
        limits = RedisLimits(f"redis://127.0.0.1:{free_port}")
        rate = rate_of(limits, 1, 3600.0)
        began = time.monotonic()
        assert [await granted(rate) for _ in range(3)] == [True, False, False]
        assert time.monotonic() - began < 5
        await limits.aclose()
        for one in silent:
            one.close()


async def test_a_parlour_says_that_it_is_there_until_it_ends(redis: str) -> None:
    limits = limits_of(redis)
    async with beating(limits), Redis.from_url(redis) as looked:
        while not await looked.zcard("{parlour}:there"):
            await asyncio.sleep(0.01)  # between two looks, not for luck
    async with Redis.from_url(redis) as looked:
        assert await looked.zcard("{parlour}:there") == 0


@pytest.mark.parametrize("address", ["localhost:6379", "http://127.0.0.1", "redis://host:port", "redis://:hid/den@x"])
def test_what_is_no_address_of_a_redis_is_said_in_a_sentence(address: str) -> None:
    with pytest.raises(SettingsError, match="PARLOUR_REDIS is no address of a Redis") as told:
        limits_of(address)
    assert "hid" not in "".join(traceback.format_exception(told.value))  # a password with a sign that parts addresses
