"""Leases of runs: which process answers a run, renewing those of this one, and telling which ones nobody renews."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeAlias, TypeVar

import psutil

from core.errors import StorageError
from core.storage.base import QUEUED
from core.storage.runs import LEASE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from core.storage.base import Lease


Standing: TypeAlias = Literal["alive", "dead", "unknown"]

_PROC = Path("/proc")


def this_worker() -> str:
    """The name of this process."""
    return worker_of(os.getpid())


def worker_of(number: int) -> str:
    """The name of a process: where it runs, its number there and when it began, since numbers are used again."""
    return f"{_place()}/{number}@{_began(number)}"


def standing(worker: str) -> Standing:
    """Whether a process lives, as far as it can be proved.

    Process numbers mean something only where they were given: a process of another machine, of another container or of
    before the last start of the machine is `unknown`, never `dead`.
    """
    place, _, process = worker.rpartition("/")
    number, _, began = process.partition("@")
    if place != _place() or not number.isdecimal() or not began:
        return "unknown"
    return "alive" if _began(int(number)) == began else "dead"


@cache
def _place() -> str:
    """The space in which this process has its number; one of its own where that cannot be told."""
    if platform.system() != "Linux":
        return f"{platform.node()}-{uuid.getnode():x}"
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        namespace = (_PROC / "self/ns/pid").readlink().name
    except OSError:
        return uuid.uuid4().hex
    return f"{boot}-{''.join(filter(str.isdigit, namespace))}"


def _began(number: int) -> str:
    """When a process began; empty where there is none. Setting the machine's clock does not change it."""
    if platform.system() == "Linux":
        try:
            fields = (_PROC / str(number) / "stat").read_bytes().rpartition(b")")[2].split()
            return "" if fields[0] in {b"Z", b"X"} else fields[19].decode("ascii")  # in ticks since the machine started
        except (OSError, IndexError):
            return ""
    try:
        return f"{psutil.Process(number).create_time():.2f}"
    except (psutil.Error, ValueError, OverflowError):
        return ""


_LOG = logging.getLogger(__name__)

# Seconds between two renewals, and between two looks at the leases of others.
BEAT = 4.0
_LEASE_LOOKS = 2  # that find a lease over by the database's clock: where that was away, its holder gets a moment
_LOOKS = 6  # of a process that cannot be seen from here
_PATIENT_LOOKS = 40  # of one that is alive, but does not renew: it may be stopped, or very busy


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the processes on one PostgreSQL database share replies: what one leaves, another one goes on with.

    Args:
        lease: Seconds for which a process holds a reply whose lease it does not renew, by the database's clock.
        beat: Seconds between two renewals, and between two looks at what others hold.
        writes: Whether this process writes replies; one that does not leaves what is asked there to others.
        most: How many it writes at the same time of those that were asked for elsewhere.
        each: How many of one owner all processes write at the same time of these; no limit if left out.
    """

    lease: float = 8.0
    beat: float = 2.0
    writes: bool = True
    most: int = 50
    each: int | None = None


class Renewable(Protocol):
    """Keeps leases: those of runs, or of documents that are read."""

    async def renew(self, held: Mapping[str, int], lasts: float) -> set[str]:
        """As of `AllRuns`."""
        ...


class Renewing:
    """Renews the leases of a process, all of one kind in one transaction, as long as there are any.

    Args:
        held: The runs, or documents, to renew, each with its epoch.
        lost: Called with those that another process has taken over.
        beat: Seconds between two renewals.
        lasts: Seconds of a lease.
    """

    def __init__(
        self,
        store: Renewable,
        held: Callable[[], Mapping[str, int]],
        lost: Callable[[Iterable[str]], None],
        *,
        beat: float = BEAT,
        lasts: float = LEASE_SECONDS,
    ) -> None:
        self._store = store
        self._held = held
        self._lost = lost
        self._beat = beat
        self._lasts = lasts
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Renew from now on, until nothing is held."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._renew(), name="renew leases")

    async def aclose(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def renew(self) -> None:
        """Renew once. Raises StorageError."""
        held = dict(self._held())
        if held:
            self._lost(await self._store.renew(held, self._lasts))

    async def _renew(self) -> None:
        while self._held():
            await asyncio.sleep(self._beat)
            try:
                await self.renew()
            except StorageError as error:  # nobody can take over what cannot be written either
                _LOG.warning("Leases could not be renewed: %s", error)


@dataclass(frozen=True, slots=True)
class _Seen:
    epoch: int
    lease: Lease
    looks: int


class Leased(Protocol):
    """What a process holds by a lease: a run, or a document that it reads."""

    @property
    def id(self) -> str:
        """The one of its row."""
        ...

    @property
    def epoch(self) -> int:
        """How often it was taken."""
        ...


Held = TypeVar("Held", bound=Leased)


class LeaseWatch(Generic[Held]):
    """Tells what other processes have left behind, by looking at it again and again.

    A lease is over when it has not changed in several looks, which lie some seconds apart. What the clock says does not
    count: it may be set forwards or back, here or there. That the process is proved dead makes the wait needless.

    Args:
        by_clock: Go by the clock of the database instead, which is the same for all, whether a process seems to live or
            not; only looks that find a lease over count.
    """

    def __init__(self, *, by_clock: bool = False) -> None:
        self._by_clock = by_clock
        self._seen: dict[str, _Seen] = {}

    def look(self, found: Iterable[tuple[Held, Lease]]) -> list[tuple[Held, Lease]]:
        """Those whose holder has left them.

        Args:
            found: All that is held by other processes, as it is now.
        """
        before, self._seen = self._seen, {}
        left: list[tuple[Held, Lease]] = []
        for record, lease in found:
            if self._by_clock and not self._is_over(lease):
                continue
            seen = before.get(record.id)
            same = seen is not None and (seen.epoch, seen.lease) == (record.epoch, lease)
            now = self._seen[record.id] = _Seen(record.epoch, lease, seen.looks + 1 if seen and same else 1)
            if lease.until is None or now.looks >= self._enough(lease):
                left.append((record, lease))
        return left

    @staticmethod
    def _is_over(lease: Lease) -> bool:
        return lease.until is None or lease.over or standing(lease.worker) == "dead"

    def _enough(self, lease: Lease) -> int:
        """How many looks without a renewal show that a lease is over."""
        state = standing(lease.worker)
        if self._by_clock and state != "dead":
            return _LEASE_LOOKS
        return {"dead": 1, "unknown": _LOOKS, "alive": _PATIENT_LOOKS}[state]


def seems_held(lease: Lease) -> bool:
    """Whether somebody seems to be answering, as far as one look tells: to show it, or where a person waits.

    It goes by the clock of the database; whoever takes a run over by it is safe by the epoch of the run.
    """
    if lease.until is None:
        return False
    if lease.worker == QUEUED:  # it is nobody's yet, and lost by nobody
        return True
    state = standing(lease.worker)
    return state == "alive" or (state == "unknown" and not lease.over)
