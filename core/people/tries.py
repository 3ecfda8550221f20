"""Wrong passwords are counted, so that none is found by trying: neither at one name, nor one password at all names."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

from core.errors import TooManyRequestsError

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_KEYS: Final = 20_000
OF_BOTH, OF_ADDRESS, OF_NAME = 10, 30, 100
"""Wrong ones within the time: of one address at one name, of one address at all names, of all addresses at one name."""
WITHIN: Final = 300.0


class TryLimiter(Protocol):
    """Counts wrong passwords."""

    async def begin(self, name_key: str, address: str) -> None:
        """Another try, counted as wrong until it was right. Raises TooManyRequestsError."""
        ...

    async def was_right(self, name_key: str, address: str) -> None:
        """The last one was right, and does not count."""
        ...


class Tries:
    """Counts failures by name and by address, in this process.

    Who gives the right password is not counted, so that a whole office may sign in at once. A name that is tried from
    everywhere waits as well; the limit is high, for it keeps out the person, too.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: OrderedDict[tuple[str, ...], list[float]] = OrderedDict()

    async def begin(self, name_key: str, address: str) -> None:
        """Another try, counted as wrong until it was right: many at the same time are no more than one after another.

        Raises:
            TooManyRequestsError: key `sign_in_often`.
        """
        self.begin_now(name_key, address)

    def begin_now(self, name_key: str, address: str, *, share: int = 1) -> None:
        """As `begin`, without waiting.

        Args:
            share: Among how many processes what may be wrong is divided.

        Raises:
            TooManyRequestsError: key `sign_in_often`.
        """
        seconds = max(self._wait(key, max(1, most // share)) for key, most in counted(name_key, address))
        if seconds:
            raise too_often(seconds)

        now = self._clock()
        for key, _ in counted(name_key, address):
            self._wrong[key] = [*self._recent(key), now]
            self._wrong.move_to_end(key)
        while len(self._wrong) > _MOST_KEYS:
            self._wrong.popitem(last=False)

    async def was_right(self, name_key: str, address: str) -> None:
        """The last one was right, and does not count."""
        self.was_right_now(name_key, address)

    def was_right_now(self, name_key: str, address: str) -> None:
        """As `was_right`, without waiting."""
        for key, _ in counted(name_key, address):
            if recent := self._recent(key)[:-1]:
                self._wrong[key] = recent
            else:
                self._wrong.pop(key, None)

    def _recent(self, key: tuple[str, ...]) -> list[float]:
        since = self._clock() - WITHIN
        return [at for at in self._wrong.get(key, []) if at > since]

    def _wait(self, key: tuple[str, ...], most: int) -> int:
        recent = self._recent(key)
        return max(1, math.ceil(WITHIN - (self._clock() - recent[0]))) if len(recent) >= most else 0


def too_often(seconds: int) -> TooManyRequestsError:
    """The error for who has to wait so long."""
    return TooManyRequestsError(
        "Too many wrong passwords.",
        hint=f"Try again in {seconds} seconds.",
        key="sign_in_often",
        retry_after=seconds,
        seconds=seconds,
    )


def counted(name_key: str, address: str) -> tuple[tuple[tuple[str, ...], int], ...]:
    """What is counted, and up to how many; of an address that nobody has to themselves the name alone."""
    if not address:
        return ((("name", name_key), OF_NAME),)
    return (("both", name_key, address), OF_BOTH), (("address", address), OF_ADDRESS), (("name", name_key), OF_NAME)
