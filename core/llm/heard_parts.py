"""Parts of recordings that a service has heard already: who asks again after a failure pays for the others alone."""

from __future__ import annotations

import time
from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.llm.transcription import Heard

_MOST: Final = 4_000_000  # characters, of all parts together
_KEPT: Final = 3600.0  # seconds


class HeardParts:
    """What was heard of recordings that did not get to their end, in memory, for an hour."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[float, Heard]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, mark: bytes) -> Heard | None:
        """What was heard of a part; `None` where it was not heard lately."""
        with self._lock:
            self._expire()
            found = self._kept.get(mark)
            return found[1] if found is not None else None

    def put(self, mark: bytes, heard: Heard) -> None:
        """Keep what was heard of a part; the oldest ones go where there is no room."""
        with self._lock:
            self._expire()
            self._drop(mark)
            self._kept[mark] = time.monotonic(), heard
            self._size += _size(heard)
            while self._size > _MOST:
                self._drop(next(iter(self._kept)))

    def drop(self, marks: list[bytes]) -> None:
        """Forget parts: the recording is heard to its end."""
        with self._lock:
            for mark in marks:
                self._drop(mark)

    def _expire(self) -> None:
        old = time.monotonic() - _KEPT
        while self._kept and next(iter(self._kept.values()))[0] < old:
            self._drop(next(iter(self._kept)))

    def _drop(self, mark: bytes) -> None:
        if (found := self._kept.pop(mark, None)) is not None:
            self._size -= _size(found[1])


def mark_of(asked: tuple[str, ...], sound: bytes) -> bytes:
    """By what a part is known: the service, the key and the model that it goes to, and its bytes."""
    digest = sha256(sound)
    for one in asked:
        digest.update(b"\0" + one.encode("utf-8", "surrogatepass"))
    return digest.digest()


def _size(heard: Heard) -> int:
    return len(heard.text) + sum(len(cue.text) + 100 for cue in heard.cues) + 100
