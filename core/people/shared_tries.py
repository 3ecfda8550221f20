"""Wrong passwords, counted by all Parlours of an installation together in a Redis."""

from __future__ import annotations

import hashlib
import math
import secrets
from typing import TYPE_CHECKING, Final

from core.people.tries import WITHIN, Tries, TryLimiter, counted, too_often
from core.shared_limits import BEAT, PREFIX, RedisLimits

if TYPE_CHECKING:
    from core.limits import SharedCounts

_BEGIN: Final = (
    BEAT
    + """
local within, wait = tonumber(ARGV[3]), 0
for place = 2, #KEYS do
  redis.call('ZREMRANGEBYSCORE', KEYS[place], '-inf', now - within)
  if redis.call('ZCARD', KEYS[place]) >= tonumber(ARGV[3 + place]) then
    local first = redis.call('ZRANGE', KEYS[place], 0, 0, 'WITHSCORES')
    wait = math.max(wait, within - (now - tonumber(first[2])), 1)
  end
end
if wait == 0 then
  for place = 2, #KEYS do
    redis.call('ZADD', KEYS[place], now, ARGV[4])
    redis.call('PEXPIRE', KEYS[place], within * 1000)
  end
end
return {string.format('%.6f', wait)}
"""
)
_RIGHT: Final = BEAT + "for place = 2, #KEYS do redis.call('ZPOPMAX', KEYS[place]) end return {1}"


def tries_of(limits: SharedCounts) -> TryLimiter:
    """What counts wrong passwords for an installation."""
    return SharedTries(limits) if isinstance(limits, RedisLimits) else Tries()


class SharedTries:
    """As `Tries`, for all Parlours; while Redis is away each lets its share be wrong."""

    def __init__(self, limits: RedisLimits) -> None:
        self._limits = limits
        self._local = Tries()

    async def begin(self, name_key: str, address: str) -> None:
        """Another try, counted as wrong until it was right.

        Raises:
            TooManyRequestsError: key `sign_in_often`.
        """
        rules = counted(name_key, address)
        given = [WITHIN, secrets.token_hex(8), *(most for _, most in rules)]
        heard = await self._limits.heard(_BEGIN, [_place(key) for key, _ in rules], given)
        if heard is None:
            self._local.begin_now(name_key, address, share=self._limits.parlours)
        elif (seconds := math.ceil(float(heard[0]))) > 0:
            raise too_often(seconds)

    async def was_right(self, name_key: str, address: str) -> None:
        """The last one was right, and does not count."""
        keys = [_place(key) for key, _ in counted(name_key, address)]
        if await self._limits.heard(_RIGHT, keys, ()) is None:
            await self._local.was_right(name_key, address)


def _place(key: tuple[str, ...]) -> str:
    """Where a key is counted; neither a name nor an address stands there."""
    return f"{PREFIX}tries:{hashlib.sha256(repr(key).encode(errors='surrogatepass')).hexdigest()[:32]}"
