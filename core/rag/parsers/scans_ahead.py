"""Recognises the scans of a PDF on several cores, some pages ahead of the one that is asked for."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from core.errors import DocumentError
from core.rag.parsers import ocr
from core.rag.parsers.base import MOST_THREADS
from core.resources import GROUP, free_memory, step_back

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

    from core.rag.parsers.pdf_page import RawPage, Runs, Source

_FIRST, _FURTHER = 1_500_000_000, 500_000_000  # bytes that must be free for one page, and for each more at once


def threads(free: Callable[[], int] | None = None) -> int:
    """How many pages are recognised at once: one for each core that this process may use, up to four.

    Args:
        free: Tells the bytes of memory that are free, by which they may be fewer; `free_memory` if left out.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    room = ((free or free_memory)() - _FIRST) // _FURTHER
    return max(1, min(cores, allowed_cores(), MOST_THREADS, 1 + room))


def allowed_cores(group: Path = GROUP) -> int:
    """How many cores the processor time is worth that a container is allowed; `MOST_THREADS` without a bound."""
    with suppress(OSError, ValueError):  # without a bound it says "max"
        quota, period = map(int, (group / "cpu.max").read_text().split())
        return max(1, -(-quota // period))
    return MOST_THREADS


class ScansAhead:
    """The pages of an open PDF, and what is recognised on those that are scans.

    Pages are read and drawn in the thread that asks, for libraries of PDFs bear no second one.

    Args:
        source: Where pages come from.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at_once = 0  # not known before there is a scan: most documents have none
        self._pool: ThreadPoolExecutor | None = None
        self._read: dict[int, RawPage | None] = {}
        self._begun: dict[int, Future[Runs]] = {}

    def page(self, number: int) -> RawPage | None:
        """A page that may have been read ahead; `None` where it cannot be read."""
        return self._read.pop(number) if number in self._read else self._source.page(number)

    def runs(self, number: int, scan: RawPage, most: int, known: Callable[[int], RawPage | None]) -> Runs:
        """The lines that are recognised on a scan. Raises MissingExtraError.

        Args:
            number: The page's.
            most: How many scans may be recognised, with this one.
            known: Pages that were read already, by their numbers.
        """
        if not self._at_once:
            self._at_once, self._pool = _prepared()
        if self._pool is None:
            return ocr.scanned_runs(scan, number)
        self._begin(number, scan)
        for ahead in range(number + 1, min(number + self._at_once, self._source.count) + 1):
            if len(self._begun) >= most or free_memory() < _FURTHER:  # other readers take some, too
                break
            page = known(ahead) or self._read_ahead(ahead)
            if page is not None and ocr.is_scan(page):
                with suppress(DocumentError):  # it is told when its turn comes
                    self._begin(ahead, page)
        return self._begun.pop(number).result()

    def close(self) -> None:
        """Begin no further page."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _begin(self, number: int, scan: RawPage) -> None:
        if self._pool is not None and number not in self._begun:
            self._begun[number] = self._pool.submit(ocr.to_recognise(scan, number))

    def _read_ahead(self, number: int) -> RawPage | None:
        if number not in self._read:
            self._read[number] = self._source.page(number)
        return self._read[number]


def _prepared() -> tuple[int, ThreadPoolExecutor | None]:
    """How many scans are recognised at once, and by what; `None` where who asks does it."""
    from concurrent.futures import ThreadPoolExecutor

    at_once = threads()
    return at_once, ThreadPoolExecutor(at_once, "scan", initializer=step_back) if at_once > 1 else None


@contextmanager
def scans_of(source: Source) -> Generator[ScansAhead]:
    """The scans of a PDF, recognised by as many threads as there are cores."""
    scans = ScansAhead(source)
    try:
        yield scans
    finally:
        scans.close()
