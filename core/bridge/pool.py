"""What many share: things that are opened when they are needed and closed when idle, and news for all who listen."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeVar

from core.bridge.cancellation import result_for_all

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable


_K = TypeVar("_K")
_V = TypeVar("_V")
_P = ParamSpec("_P")


class BoundedDict(OrderedDict[_K, _V]):
    """At most so many entries; where there is one too many, the one that was set longest ago goes.

    Args:
        most: How many.
        evicted: Called with each value that goes for another, and with none that is taken out.
    """

    def __init__(self, most: int, evicted: Callable[[_V], None] | None = None) -> None:
        super().__init__()
        self._most = most
        self._evicted = evicted

    def __setitem__(self, key: _K, value: _V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._most:
            _, gone = self.popitem(last=False)
            if self._evicted is not None:
                self._evicted(gone)


_LOG = logging.getLogger(__name__)

_T = TypeVar("_T")


@dataclass(eq=False)
class _Entry(Generic[_T]):
    opening: asyncio.Task[_T]
    users: int = 0
    idle_since: float = 0.0

    @property
    def failed(self) -> bool:
        return self.opening.done() and (self.opening.cancelled() or self.opening.exception() is not None)


class Pool(Generic[_T]):
    """One thing for each key, with a count of who uses it. It belongs to one event loop, and closes with `aclose`.

    What nobody uses stays open for a while, for who asks once mostly asks again. It is closed after `idle` seconds, or
    earlier where more than `most` of them stay open unused: the one that was used least recently goes first. What is
    in use is never evicted.

    Args:
        make: Opens the thing of a key; what it raises is raised to everybody who waits for it, and the next use tries
            again.
        end: Closes one.
        intact: Whether one that is open can still be used; where it says no, that one is closed, whoever uses it, and
            another is opened in its place.
        kept: Whether one that nobody uses any more is worth keeping; where it says no, it is closed at once.
        idle: Seconds that one stays open unused.
        most: How many stay open unused.
    """

    def __init__(
        self,
        make: Callable[[str], Awaitable[_T]],
        end: Callable[[_T], Awaitable[None]],
        *,
        intact: Callable[[_T], bool] = lambda _: True,
        kept: Callable[[_T], bool] = lambda _: True,
        idle: float,
        most: int,
    ) -> None:
        self._make = make
        self._end = end
        self._intact = intact
        self._kept = kept
        self._idle = idle
        self._most = most
        self._entries: dict[str, _Entry[_T]] = {}
        self._unused: OrderedDict[str, _Entry[_T]] = OrderedDict()  # the one unused for longest first
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    @asynccontextmanager
    async def use(self, key: str) -> AsyncGenerator[_T]:
        """The thing of a key, opened if it is not; it stays open to the end of the block.

        Raises:
            RuntimeError: The pool is closed.
        """
        entry = self._entered(key)
        try:
            yield await result_for_all(entry.opening)
        finally:
            self._left(key, entry)

    async def drop(self, key: str) -> None:
        """Close the thing of a key now, unless somebody uses it; one that is being closed is waited for."""
        if key in self._unused:
            self._close(key)
        if (closing := self._closing.get(key)) is not None:
            await asyncio.wait({closing})

    async def aclose(self) -> None:
        """Close all, also what is in use; nothing is opened any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for key in list(self._entries):
            self._close(key)
        while self._closing:
            await asyncio.wait(set(self._closing.values()))

    # ---- inside

    def _entered(self, key: str) -> _Entry[_T]:
        if self._is_closed:
            raise RuntimeError("The pool is closed.")
        entry = self._entries.get(key)
        if entry is not None and (entry.failed or not self._is_intact(entry)):
            self._close(key)
            entry = None
        if entry is None:
            opening = asyncio.create_task(self._opened(key, self._closing.get(key)), name=f"opening for {key}")
            entry = self._entries[key] = _Entry(opening)
        entry.users += 1
        self._unused.pop(key, None)
        return entry

    def _is_intact(self, entry: _Entry[_T]) -> bool:
        return not entry.opening.done() or self._intact(entry.opening.result())

    async def _opened(self, key: str, before: asyncio.Task[None] | None) -> _T:
        # Never two of one key, for they may share files. What begins to close later waits for this opening itself.
        if before is not None:
            await asyncio.wait({before})
        return await self._make(key)

    def _left(self, key: str, entry: _Entry[_T]) -> None:
        entry.users -= 1
        if entry.users or self._entries.get(key) is not entry:
            return
        if entry.failed:
            del self._entries[key]
            return
        if entry.opening.done() and not self._kept(entry.opening.result()):
            self._close(key)
            return
        entry.idle_since = asyncio.get_running_loop().time()
        self._unused[key] = entry
        self._evict()

    def _evict(self) -> None:
        """Close what was unused for too long, and what is too much; look again when the next one is due."""
        loop = asyncio.get_running_loop()
        while self._unused:
            key, entry = next(iter(self._unused.items()))
            if len(self._unused) <= self._most and loop.time() - entry.idle_since < self._idle:
                break
            self._close(key)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._unused and not self._is_closed:
            first = next(iter(self._unused.values()))
            self._timer = loop.call_at(first.idle_since + self._idle, self._evict)

    def _close(self, key: str) -> None:
        entry = self._entries.pop(key)
        self._unused.pop(key, None)
        before = self._closing.get(key)
        task = asyncio.create_task(self._ended(key, entry, before), name=f"closing for {key}")
        self._closing[key] = task
        task.add_done_callback(lambda ended: self._closed(key, ended))

    async def _ended(self, key: str, entry: _Entry[_T], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        await asyncio.wait({entry.opening})
        if not entry.failed:
            try:
                await self._end(entry.opening.result())
            except Exception:  # noqa: BLE001 - said in the log; the others are closed all the same
                _LOG.exception("What was open for %s could not be closed.", key)

    def _closed(self, key: str, task: asyncio.Task[None]) -> None:
        if self._closing.get(key) is task:
            del self._closing[key]


class Listeners(Generic[_P]):
    """Callbacks that are told of each change, in the order they came; calling this tells them."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[_P, object]] = []

    def add(self, callback: Callable[_P, object]) -> Callable[[], None]:
        """Tell one more from now on; returns what ends this."""
        self._callbacks.append(callback)

        def leave() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return leave

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> None:
        """Tell all of them; who leaves meanwhile may be told once more."""
        for callback in tuple(self._callbacks):
            callback(*args, **kwargs)
