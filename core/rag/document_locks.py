"""Locks by document: one reader at a time, among all threads and processes that use a library."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import StorageError
from core.rag.parsers.process import cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from core.rag.document import ReadingProgress
    from core.rag.shelf import Lock

_POLL = 0.1  # seconds between two reports, and between two looks at whether it is our turn
_END_TIMEOUT = 10.0  # seconds in which a reading that is stopped ends


@dataclass(frozen=True, slots=True, eq=False)
class ReadRequest:
    """A request to read a document.

    Args:
        progress: Called at most ten times a second, and once at the end.
        stops: Any of them, once set, cancels the reading.
        again: Whether to read it even if it was read already.
        enough: Once set, stops the reading; what was read is kept.
    """

    progress: Callable[[ReadingProgress], None] | None = None
    stops: tuple[threading.Event, ...] = ()
    again: bool = False
    enough: threading.Event | None = None

    def is_stopped(self) -> bool:
        """Whether reading has to end, cancelled or stopped."""
        return self.is_cancelled() or (self.enough is not None and self.enough.is_set())

    def is_cancelled(self) -> bool:
        """Whether it is cancelled: nothing of it is kept."""
        return any(stop.is_set() for stop in self.stops)

    def report(self, said: ReadingProgress) -> None:
        """Report progress, if there is a callback."""
        if self.progress is not None:
            self.progress(said)


class Job:
    """The reading of a document by this process."""

    def __init__(self, request: ReadRequest, closing: threading.Event) -> None:
        self._request, self._closing = request, closing
        self._removed = threading.Event()
        self._told = 0.0
        self.last_progress: ReadingProgress | None = None
        """The last report; others who wait for the same document pass it on."""
        self._thread = threading.current_thread()
        self.done = threading.Event()

    def remove(self) -> None:
        """End the reading: the document is being removed."""
        self._removed.set()

    def wait(self) -> bool:
        """Wait for its end; false in the reading thread itself, as in a progress callback."""
        if self._thread is threading.current_thread():
            return False
        self.done.wait(_END_TIMEOUT)
        return True

    def stopped(self) -> bool:
        """Whether reading has to end."""
        return self._is_cancelled() or self._request.is_stopped()

    def keeps_partial(self) -> bool:
        """Whether reading has to end, but what was read is kept."""
        return self._request.is_stopped() and not self._is_cancelled()

    def _is_cancelled(self) -> bool:
        return self._removed.is_set() or self._closing.is_set() or self._request.is_cancelled()

    def check(self) -> None:
        """Raise if the reading is cancelled.

        Raises:
            DocumentError: It was taken out, or is not wanted any more (key `document_cancelled`).
            StorageError: The library is closed.
        """
        if self._closing.is_set():
            raise StorageError("The library is closed.", key="library_closed")
        if self._is_cancelled():
            raise cancelled()

    def report(self, progress: Callable[[], ReadingProgress], *, always: bool = False) -> None:
        """Report progress, unless the last report was just now."""
        now = time.monotonic()
        if not always and now - self._told < _POLL:
            return
        self._told = now
        self.last_progress = progress()
        self._request.report(self.last_progress)


class DocumentLocks:
    """The documents of a library that are being read.

    Args:
        lock: Gives the lock of a document, which holds among all that use the library.
    """

    def __init__(self, lock: Callable[[str], Lock]) -> None:
        self._lock = lock
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self._jobs: dict[str, Job] = {}

    @contextmanager
    def exclusive(self, document_id: str, request: ReadRequest) -> Generator[Job]:
        """Hold the document's lock. While waiting for it, progress of the other reader is passed on.

        Raises:
            DocumentError: It is not wanted any more (key `document_cancelled`).
            StorageError: The library is closed, or its folder cannot be used.
        """
        job = Job(request, self._closing)
        lock = self._lock(document_id)
        while not lock.acquire():
            _check_wanted(job)
            self._follow(document_id, request)
        try:
            _check_wanted(job)
            with self._guard:
                self._jobs[document_id] = job
            yield job
        finally:
            with self._guard:
                self._jobs.pop(document_id, None)
            lock.release()
            job.done.set()

    @contextmanager
    def removing(self, document_id: str) -> Generator[None]:
        """Hold the document's lock to remove it; a reading of it in this process is ended."""
        lock = self._lock(document_id)
        until = time.monotonic() + _END_TIMEOUT
        while True:
            is_within = self._stop(document_id)
            is_ours = not is_within and lock.acquire()
            # Otherwise the holder, this very reading or a sleeping process, will find the document gone.
            if is_ours or is_within or time.monotonic() > until:
                break
            time.sleep(_POLL / 2)
        try:
            yield
        finally:
            if is_ours:
                lock.release()

    def is_reading(self, document_id: str) -> bool:
        """Whether this process is reading it."""
        with self._guard:
            return document_id in self._jobs

    def _stop(self, document_id: str) -> bool:
        """End its reading; whether this was called from within that reading."""
        with self._guard:
            job = self._jobs.get(document_id)
        if job is None:
            return False
        job.remove()
        return not job.wait()

    def close(self) -> None:
        """End all locks."""
        self._closing.set()
        with self._guard:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.wait()

    def _follow(self, document_id: str, request: ReadRequest) -> None:
        with self._guard:
            other = self._jobs.get(document_id)
        if other is None:
            self._closing.wait(_POLL / 2)
            return
        told = None
        while not (other.done.wait(_POLL) or request.is_stopped() or self._closing.is_set()):
            if other.last_progress is not None and other.last_progress is not told:
                told = other.last_progress
                request.report(told)


def _check_wanted(job: Job) -> None:
    """Raise if the request is over: before anything was read, stopping is cancelling."""
    job.check()
    if job.stopped():
        raise cancelled()
