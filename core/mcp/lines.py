"""Lines out of pieces, in time that grows with the text alone, and never more of one line than is allowed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SHOWN = 256  # bytes kept of a line that is too long


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line that was given up: what it began with."""

    head: bytes


class Lines:
    """Cuts a stream into lines.

    Args:
        most: Bytes of a line; of a longer one only the head is given, at once, and the rest is passed over.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_passing = False  # over the rest of a line that is too long

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that are whole with this chunk, without their ends."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            yield from self._add(piece)
            if not self.is_passing:
                yield b"".join(self._pieces).removesuffix(b"\r")
            self._begin()
        if rest:
            yield from self._add(rest)

    def _add(self, piece: bytes) -> Iterator[TooLong]:
        if self.is_passing:
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self._most:
            head = b"".join(self._pieces)[:_SHOWN]
            self._begin()
            self.is_passing = True
            yield TooLong(head)

    def _begin(self) -> None:
        self._pieces, self._size, self.is_passing = [], 0, False


class Meter:
    """Lets through so many in a second, and a heap of them at once now and then.

    Args:
        rate: How many in a second, for ever.
        heap: How many at once after a silence.
        clock: Gives seconds.
    """

    def __init__(self, rate: float, heap: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._heap, self._clock = rate, heap, clock
        self._left, self._when = heap, clock()

    def take(self) -> bool:
        """Whether one more may pass."""
        now = self._clock()
        self._left = min(self._heap, self._left + (now - self._when) * self._rate)
        self._when = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
