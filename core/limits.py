"""How much one owner or address may do: places that are given out in order, rates, and pages that are waited for.

Those of this file keep their counts in this process and are bounded in memory. Whoever uses them knows only the
protocols: `core.shared_limits` has rates that all Parlours of an installation count together, and
`core.runs.shared_slots` places that they give out together.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from core.errors import TooManyRequestsError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

LONGEST_QUEUE = 20
"""Replies of one owner that may wait for their turn."""
_MOST_KEYS = 10_000
_LATER = "Try again later."


class Slot(Protocol):
    """One place among those that a key may have at once."""

    @property
    def granted(self) -> bool:
        """Whether its turn has come."""
        ...

    async def of_run(self, run_id: str) -> None:
        """It is the place of a run from now on, for as long as that is written, in whichever process."""
        ...

    async def wait(self) -> None:
        """Wait until its turn has come. It may be waited for by one task at a time, and again after a cancellation."""
        ...

    def release(self) -> None:
        """Give it back, or leave the queue; the next in the queue has its turn. May be called more than once."""
        ...


class ConcurrencyLimiter(Protocol):
    """Limits how many things a key does at once."""

    def take(self, key: str) -> Slot:
        """A place, or a place in the queue.

        Raises:
            TooManyRequestsError: key `queue_full`: the queue is full as well.
        """
        ...

    async def aclose(self) -> None:
        """Give back what other processes wait for."""
        ...


class RateLimiter(Protocol):
    """Limits how often a key may do something."""

    async def take(self, key: str, count: int = 1) -> None:
        """Count `count` of them.

        Raises:
            TooManyRequestsError: It was too often; nothing is counted.
        """
        ...


class Limits(Protocol):
    """Makes rates; what is right to the last cent, such as quotas, is counted in the database."""

    def rate(
        self, name: str, count: int | None, period: float, *, error: str, message: str, hint: str = _LATER
    ) -> RateLimiter:
        """A rate for each key: `count` at once, and as many again in each `period`.

        Args:
            name: What is counted, the same in each Parlour.
            count: How many in a period; `None` for no limit.
            period: Seconds.
            error: The key of the error's sentence.
            message: What the error says, in English.
            hint: What to do about it, in English.
        """
        ...


class Presence(Protocol):
    """Which Parlours of an installation are there."""

    async def beat(self) -> None:
        """Say that this one is there."""
        ...

    @property
    def parlours(self) -> int:
        """How many were there when it was last heard; one at least."""
        ...


class SharedCounts(Limits, Presence, Protocol):
    """What the Parlours of an installation count together."""

    async def aclose(self) -> None:
        """This Parlour ends."""
        ...


class MemoryLimits:
    """Rates of this process alone, which is the only Parlour there is."""

    parlours = 1

    def rate(
        self, name: str, count: int | None, period: float, *, error: str, message: str, hint: str = _LATER
    ) -> RateLimiter:
        """A rate for each key."""
        del name
        return TokenBuckets(count, period, error=error, message=message, hint=hint)

    async def beat(self) -> None:
        """There is nobody to tell."""

    async def aclose(self) -> None:
        """Nothing is open."""


class Slots:
    """Places of each key in this process, given out in the order in which they were asked for.

    Args:
        limit: Places of each key at once; `None` for no limit.
        queue: How many may wait for each key.
    """

    def __init__(self, limit: int | None = None, *, queue: int = LONGEST_QUEUE) -> None:
        self._limit = limit
        self._longest = queue
        self._taken: dict[str, set[_Slot]] = {}
        self._queues: dict[str, deque[_Slot]] = {}

    def take(self, key: str) -> Slot:
        """A place, or a place in the queue. Raises TooManyRequestsError."""
        slot = _Slot(key, self._release)
        if self._limit is None:
            slot.grant()
            return slot
        taken = self._taken.setdefault(key, set())
        if len(taken) < self._limit:
            taken.add(slot)
            slot.grant()
            return slot
        queue = self._queues.setdefault(key, deque())
        if len(queue) >= self._longest:
            raise queue_full(len(queue))
        queue.append(slot)
        return slot

    async def aclose(self) -> None:
        """Nobody else waits for these."""

    def _release(self, slot: _Slot) -> None:
        key = slot.key
        taken, queue = self._taken.get(key, set[_Slot]()), self._queues.get(key, deque[_Slot]())
        with suppress(ValueError):
            queue.remove(slot)
        taken.discard(slot)
        while queue and (self._limit is None or len(taken) < self._limit):
            following = queue.popleft()
            taken.add(following)
            following.grant()
        if not queue:
            self._queues.pop(key, None)
        if not taken:
            self._taken.pop(key, None)


def queue_full(waiting: int) -> TooManyRequestsError:
    """The error for whose queue is full, with so many in it."""
    message, hint = f"{waiting} replies are waiting already.", "Wait until one of them is finished, or stop one."
    return TooManyRequestsError(message, hint=hint, key="queue_full", waiting=waiting)


class _Slot:
    def __init__(self, key: str, release: Callable[[_Slot], None]) -> None:
        self.key = key
        self._release = release
        self._granted = asyncio.Event()

    @property
    def granted(self) -> bool:
        return self._granted.is_set()

    async def of_run(self, run_id: str) -> None:
        """Nothing: the run is written here, where the place is."""

    async def wait(self) -> None:
        await self._granted.wait()

    def grant(self) -> None:
        self._granted.set()

    def release(self) -> None:
        self._release(self)


class TokenBuckets:
    """A rate for each key in this process: `count` at once, and as many again in each `period`.

    At most `keys` keys are remembered; beyond that the one that was used longest ago is forgotten. Not for several
    threads.

    Args:
        count: How many in a period; `None` for no limit.
        period: Seconds.
        error: The key of the error's sentence.
        message: What the error says, in English.
        hint: What to do about it, in English.
        keys: How many keys are remembered.
        clock: Seconds that never go back.
    """

    def __init__(  # noqa: PLR0913 - each by name
        self,
        count: int | None,
        period: float,
        *,
        error: str,
        message: str,
        hint: str = _LATER,
        keys: int = _MOST_KEYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._count = count
        self._period = period
        self._error, self._message, self._hint = error, message, hint
        self._most = keys
        self._clock = clock
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is used up, and when that was so

    def __len__(self) -> int:
        return len(self._used)

    async def take(self, key: str, count: int = 1) -> None:
        """Count `count` of them; more than fit into one period are let through when nothing else was.

        Raises:
            TooManyRequestsError: It was too often; nothing is counted.
        """
        self.take_now(key, count)

    def take_now(self, key: str, count: int = 1, *, share: int = 1) -> None:
        """As `take`, without waiting.

        Args:
            share: Among how many processes the rate is divided.

        Raises:
            TooManyRequestsError: It was too often; nothing is counted.
        """
        if self._count is None:
            return
        most = max(1, self._count // share)
        now, each = self._clock(), self._period / most
        used, at = self._used.pop(key, (0.0, now))
        used = max(0.0, used - (now - at) / each)
        over = used + min(count, most) - most
        granted = over <= 1e-9
        self._used[key] = (used + count if granted else used, now)
        while len(self._used) > self._most:
            self._used.popitem(last=False)
        if not granted:
            raise self.refusal(over * each)

    def refusal(self, seconds: float) -> TooManyRequestsError:
        """The error for who has to wait so long."""
        rounded = max(1, math.ceil(seconds))
        return TooManyRequestsError(
            self._message,
            hint=self._hint,
            key=self._error,
            retry_after=rounded,
            seconds=rounded,
            minutes=math.ceil(rounded / 60),
            limit=self._count or 0,
        )


FEW_ARRIVALS: Final = 4
"""Pages that wait to be painted, up to which a reply begins at once."""
ARRIVES_WITHIN: Final = 2.0
"""Seconds after which a page is not waited for any more: nobody may be looking at it."""


class Arrivals:
    """The pages that have sent a question and do not show it yet.

    To begin a reply takes the event loop as long as to show its question does. Were each begun at once, the last of
    fifty pages would wait for both of all others before it shows anything.

    Args:
        of_each: How many pages of one key count, so that nobody holds up all others by never looking; no limit if left
            out.
    """

    def __init__(self, of_each: int | None = None) -> None:
        self._of_each = of_each
        self._awaited: dict[tuple[str, Hashable], asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()

    @property
    def are_many(self) -> bool:
        """Whether a reply that begins now would hold up others."""
        return len(self._awaited) > FEW_ARRIVALS

    def expect(self, key: str, page: Hashable) -> None:
        """A question of this page is on its way."""
        self.shown(key, page)
        if self._of_each is None or sum(one == key for one, _ in self._awaited) < self._of_each:
            ends = asyncio.get_running_loop().call_later(ARRIVES_WITHIN, self.shown, key, page)
            self._awaited[key, page] = ends

    def shown(self, key: str, page: Hashable) -> None:
        """The page shows it, or it was refused."""
        timer = self._awaited.pop((key, page), None)
        if timer is not None:
            timer.cancel()
            self._changed.set()

    async def settled(self) -> None:
        """Wait until few are left, or as long as pages are waited for."""
        if not self.are_many:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(ARRIVES_WITHIN):
                while self.are_many:
                    self._changed.clear()
                    await self._changed.wait()
