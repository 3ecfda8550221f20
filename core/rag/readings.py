"""Who is reading what: each document is read by one at a time, among all threads and processes that use the library."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import StorageError
from core.rag.index_file import translated
from core.rag.parsers.process import cancelled

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from filelock import BaseFileLock

    from core.rag.progress import ReadingProgress

_log = logging.getLogger(__name__)

_OFTEN = 0.1  # seconds between two reports, and between two looks at whether it is our turn
_LONGEST_END = 10.0  # seconds in which a reading that is stopped ends


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """Somebody who wants a document to be read.

    Args:
        progress: Told how far it is, ten times a second at most and once at the end.
        stops: Any of them set means that it is not wanted any more.
        again: It is to be read even if it was read already.
        enough: Set, it means that no more of it is wanted than was read.
    """

    progress: Callable[[ReadingProgress], None] | None = None
    stops: tuple[threading.Event, ...] = ()
    again: bool = False
    enough: threading.Event | None = None

    def is_over(self) -> bool:
        """Whether nothing is wanted any more that is not read."""
        return self.is_given_up() or (self.enough is not None and self.enough.is_set())

    def is_given_up(self) -> bool:
        """Whether it is not wanted any more, nor what was read of it."""
        return any(stop.is_set() for stop in self.stops)

    def tell(self, said: ReadingProgress) -> None:
        """Say how far it is, if that is wanted."""
        if self.progress is not None:
            self.progress(said)


class Job:
    """A document that this process reads."""

    def __init__(self, wish: Wish, closing: threading.Event) -> None:
        self._wish, self._closing = wish, closing
        self._removed = threading.Event()
        self._told = 0.0
        self.said: ReadingProgress | None = None
        """What was told last; who waits for the same document passes it on."""
        self._thread = threading.current_thread()
        self.done = threading.Event()

    def remove(self) -> None:
        """The document is taken out of the library."""
        self._removed.set()

    def wait(self) -> bool:
        """Wait for its end; false where somebody who is told of progress asks, within the reading itself."""
        if self._thread is threading.current_thread():
            return False
        self.done.wait(_LONGEST_END)
        return True

    def stopped(self) -> bool:
        """Whether reading has to end."""
        return self._is_given_up() or self._wish.is_over()

    def keeps(self) -> bool:
        """Whether it has to end, but what was read stays."""
        return self._wish.is_over() and not self._is_given_up()

    def _is_given_up(self) -> bool:
        return self._removed.is_set() or self._closing.is_set() or self._wish.is_given_up()

    def check(self) -> None:
        """Go on only while the document is wanted, or what was read of it.

        Raises:
            DocumentError: It was taken out, or is not wanted any more (key `document_cancelled`).
            StorageError: The library is closed.
        """
        if self._closing.is_set():
            raise StorageError("The library is closed.", key="library_closed")
        if self._is_given_up():
            raise cancelled()

    def tell(self, progress: Callable[[], ReadingProgress], *, always: bool = False) -> None:
        """Say how far reading is, if that was not said just now."""
        now = time.monotonic()
        if not always and now - self._told < _OFTEN:
            return
        self._told = now
        self.said = progress()
        self._wish.tell(self.said)


class Readings:
    """The documents of a library that are being read.

    Args:
        folder: For lock files, one for each document at work; made when the first is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self._jobs: dict[str, Job] = {}

    @contextmanager
    def alone(self, document_id: str, wish: Wish) -> Generator[Job]:
        """Wait until nobody else reads the document, then have it alone. Who waits hears of the other's progress.

        Raises:
            DocumentError: It is not wanted any more (key `document_cancelled`).
            StorageError: The library is closed, or its folder cannot be used.
        """
        job = Job(wish, self._closing)
        lock = self._lock(document_id)
        while not _acquired(lock):
            _begins(job)
            self._follow(document_id, wish)
        try:
            _begins(job)
            with self._guard:
                self._jobs[document_id] = job
            yield job
        finally:
            with self._guard:
                self._jobs.pop(document_id, None)
            _let_go(lock)
            job.done.set()

    @contextmanager
    def removing(self, document_id: str) -> Generator[None]:
        """End the reading of a document, if this process is at it, and have it alone."""
        lock = self._lock(document_id)
        until = time.monotonic() + _LONGEST_END
        while True:
            is_within = self._stop(document_id)
            is_ours = not is_within and _acquired(lock)
            # Whoever has it then, this very reading or another process that sleeps, will find the document gone.
            if is_ours or is_within or time.monotonic() > until:
                break
            time.sleep(_OFTEN / 2)
        try:
            yield
        finally:
            if is_ours:
                _let_go(lock)

    def is_reading(self, document_id: str) -> bool:
        """Whether this process reads it."""
        with self._guard:
            return document_id in self._jobs

    def _stop(self, document_id: str) -> bool:
        """End its reading; whether that is where this is asked from."""
        with self._guard:
            job = self._jobs.get(document_id)
        if job is None:
            return False
        job.remove()
        return not job.wait()

    def close(self) -> None:
        """End all readings."""
        self._closing.set()
        with self._guard:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.wait()

    def _follow(self, document_id: str, wish: Wish) -> None:
        with self._guard:
            other = self._jobs.get(document_id)
        if other is None:
            self._closing.wait(_OFTEN / 2)
            return
        told = None
        while not (other.done.wait(_OFTEN) or wish.is_over() or self._closing.is_set()):
            if other.said is not None and other.said is not told:
                told = other.said
                wish.tell(told)

    def _lock(self, document_id: str) -> BaseFileLock:
        from filelock import FileLock

        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise translated(error) from error
        return FileLock(self._folder / f"{document_id}.lock", thread_local=False)


def _begins(job: Job) -> None:
    """Before there is anything to keep, who wants no more wants nothing."""
    job.check()
    if job.stopped():
        raise cancelled()


def _acquired(lock: BaseFileLock) -> bool:
    from filelock import Timeout

    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as error:
        raise translated(error) from error
    return True


def _let_go(lock: BaseFileLock) -> None:
    """The file goes too: whoever waits for it notices, and makes another."""
    from pathlib import Path

    try:
        Path(lock.lock_file).unlink(missing_ok=True)
    except OSError:
        _log.debug("A lock file stays: this system deletes none that is open.")
    lock.release()
