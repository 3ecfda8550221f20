"""Recognises the scans of a PDF on several cores, some pages ahead of the one that is asked for."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from core.errors import DocumentError
from core.rag.parsers import ocr
from core.resources import GROUP, free_memory, step_back

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from concurrent.futures import Future
    from pathlib import Path

    from core.rag.parsers.pdf_page import RawPage, Runs, Source

MOST_THREADS: Final = 4
"""More need more memory than a reader of documents is allowed."""
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
        pool: Recognises them; left out, who asks does so.
        at_once: Pages that are recognised at the same time.
    """

    def __init__(self, source: Source, pool: ThreadPoolExecutor | None = None, at_once: int = 1) -> None:
        self._source = source
        self._pool = pool
        self._at_once = at_once
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

    def _begin(self, number: int, scan: RawPage) -> None:
        if self._pool is not None and number not in self._begun:
            self._begun[number] = self._pool.submit(ocr.to_recognise(scan, number))

    def _read_ahead(self, number: int) -> RawPage | None:
        if number not in self._read:
            self._read[number] = self._source.page(number)
        return self._read[number]


@contextmanager
def scans_of(source: Source) -> Generator[ScansAhead]:
    """The scans of a PDF, recognised by as many threads as there are cores."""
    at_once = threads()
    if at_once < 2:
        yield ScansAhead(source)
        return
    pool = ThreadPoolExecutor(at_once, "scan", initializer=step_back)
    try:
        yield ScansAhead(source, pool, at_once)
    finally:
        pool.shutdown(cancel_futures=True)
