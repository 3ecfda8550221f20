"""Rates that all Parlours of an installation count together, in a Redis or Valkey.

Each is a token bucket in one call of a script, by Redis' own clock. While Redis is away each Parlour lets through its
share by itself: a rate keeps out those who try too much, and nothing that must be right hangs on it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import secrets
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from core.errors import MissingExtraError, SettingsError
from core.limits import MemoryLimits, RateLimiter, SharedCounts, TokenBuckets

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

_log = logging.getLogger(__name__)

PREFIX: Final = "{parlour}:"  # what stands in braces keeps the keys of a script on one node of a cluster
_THERE: Final = PREFIX + "there"
_PATIENCE: Final = 0.3  # seconds that an answer of Redis may take
_AWAY: Final = 2.0  # seconds until one that was away is asked again
_EACH: Final = 10.0  # seconds between two words of a Parlour that it is there
_GONE: Final = 30  # seconds after which a Parlour that said nothing is not there any more

BEAT: Final = """
local now = redis.call('TIME')
now = tonumber(now[1]) + tonumber(now[2]) / 1000000
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('EXPIRE', KEYS[1], ARGV[2])
"""

_TAKE: Final = (
    BEAT
    + """
local most, each, wanted = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local kept = redis.call('HMGET', KEYS[2], 'used', 'at')
local used, at = tonumber(kept[1] or 0), tonumber(kept[2] or now)
used = math.max(0, used - math.max(0, now - at) / each)
local over = used + math.min(wanted, most) - most
local granted = over <= 1e-9
if granted then used = used + wanted end
redis.call('HSET', KEYS[2], 'used', string.format('%.9f', used), 'at', string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[2], math.ceil(used * each * 1000) + 1000)
return {redis.call('ZCARD', KEYS[1]), granted and '0' or string.format('%.6f', over * each)}
"""
)
_THERE_NOW: Final = BEAT + "return {redis.call('ZCARD', KEYS[1])}"


def limits_of(redis: str) -> SharedCounts:
    """What counts for an installation.

    Args:
        redis: The address of a Redis that its Parlours share; "" for one Parlour alone.

    Raises:
        MissingExtraError: The extra `grown` is not installed.
        SettingsError: It is no address of a Redis.
    """
    return RedisLimits(redis) if redis else MemoryLimits()


_OF_THIS_PROCESS: Final = secrets.token_hex(8)


def _me() -> str:
    """This process; one that was forked is another."""
    return f"{_OF_THIS_PROCESS}-{os.getpid()}"


@asynccontextmanager
async def beating(limits: SharedCounts) -> AsyncGenerator[None]:
    """Say every ten seconds that this Parlour is there, until the end of this."""
    if not isinstance(limits, RedisLimits):
        yield
        return

    async def beat() -> None:
        while True:
            await limits.beat()
            await asyncio.sleep(_EACH)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        await limits.aclose()


class RedisLimits:
    """Rates that all Parlours count together, and who of them is there.

    Args:
        address: Of a Redis or Valkey: `redis://host:6379/0`, or `rediss://` over TLS.
        clock: Seconds that never go back.

    Raises:
        MissingExtraError: The extra `grown` is not installed.
        SettingsError: It is no address of a Redis.
    """

    def __init__(self, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            from redis import asyncio as redis
        except ImportError as error:
            raise MissingExtraError("PARLOUR_REDIS", "redis", "grown") from error
        options = {"socket_timeout": _PATIENCE, "socket_connect_timeout": _PATIENCE, "decode_responses": True}
        try:
            self._redis: Any = cast("Any", redis.Redis).from_url(address, **options)
        except ValueError:
            raise SettingsError(
                "PARLOUR_REDIS is no address of a Redis.",
                hint="Write it as redis://host:6379/0, with %2F for a / in the password.",
            ) from None  # which may tell the password
        self._clock = clock
        self._away_until = float("-inf")
        self._parlours = 1

    @property
    def parlours(self) -> int:
        """How many were there when it was last heard; one at least."""
        return self._parlours

    async def beat(self) -> None:
        """Say that this one is there, at least every half minute."""
        heard = await self.heard(_THERE_NOW, (), ())
        if heard is not None:
            self._parlours = max(1, int(heard[0]))

    def rate(
        self, name: str, count: int | None, period: float, *, error: str, message: str, hint: str = "Try again later."
    ) -> RateLimiter:
        """A rate for each key."""
        local = TokenBuckets(count, period, error=error, message=message, hint=hint)
        return local if count is None else RedisRate(self, name, (count, period), local)

    async def take(self, name: str, key: str, most: int, period: float, wanted: int) -> float | None:
        """Count `wanted` of a key in Redis; seconds to wait, 0 where it was granted, `None` where Redis is away."""
        print_of_key = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:32]  # no address stands there
        heard = await self.heard(_TAKE, (f"{PREFIX}rate:{name}:{print_of_key}",), (most, period / most, wanted))
        if heard is None:
            return None
        self._parlours = max(1, int(heard[0]))
        return float(heard[1])

    async def heard(self, script: str, keys: Sequence[str], given: Sequence[float | str]) -> list[Any] | None:
        """What Redis answers to a script that begins with a beat; `None` where it is away."""
        if self._clock() < self._away_until:
            return None
        from redis.exceptions import RedisError

        try:
            asked = [_THERE, *keys, _me(), _GONE, *given]
            answer = await self._redis.eval(script, 1 + len(keys), *asked)
        except (RedisError, OSError, TimeoutError) as error:
            if self._away_until == float("-inf"):
                _log.warning("Redis is away, and each Parlour counts its share by itself: %s", type(error).__name__)
            self._away_until = self._clock() + _AWAY
            return None
        if self._away_until != float("-inf"):
            _log.warning("Redis is there again.")
            self._away_until = float("-inf")
        return cast("list[Any]", answer)

    async def aclose(self) -> None:
        """Say that this one is gone, and close the connections."""
        from redis.exceptions import RedisError

        try:
            await self._redis.zrem(_THERE, _me())
        except (RedisError, OSError, TimeoutError):
            _log.debug("Redis was not told that this Parlour ends.")
        await self._redis.aclose()


class RedisRate:
    """A rate that is counted in Redis, and by a share of it in this process while Redis is away."""

    def __init__(self, limits: RedisLimits, name: str, rate: tuple[int, float], local: TokenBuckets) -> None:
        self._limits = limits
        self._name = name
        self._count, self._period = rate
        self._local = local

    async def take(self, key: str, count: int = 1) -> None:
        """Count `count` of them. Raises TooManyRequestsError."""
        seconds = await self._limits.take(self._name, key, self._count, self._period, count)
        if seconds is None:
            self._local.take_now(key, count, share=self._limits.parlours)
        elif seconds > 0:
            raise self._local.refusal(seconds)
