"""Whose vectors are made next: the shortest documents come first, and the one that waits longest is not forgotten.

This is decided anew before each batch, so a page that comes while a book is at work waits for one batch, not for the
book. What is made is stored batch by batch, and nothing else is kept of the order: whoever goes on elsewhere, or after
a restart, finds it again in the library.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from core.errors import ParlourError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, MutableMapping, Sequence

_log = logging.getLogger(__name__)

EACH: Final = 4
"""Of so many batches one goes to the document that waits longest, however many shorter ones come."""

Row: TypeAlias = tuple[int, int, str, str, str, str]
"""A chunk: its id, its place in the document, the document's title and name, the heading and the text."""
Found: TypeAlias = tuple[str, int, int]
"""A document with chunks that have no vector: its id, that of the first such chunk, and how many chunks it has."""


class LeftOffError(Exception):
    """Vectors are not to be made here any more, for now; the other models leave off, too."""


class Makes(Protocol):
    """Makes the vectors of one model: `MadeVectors`."""

    @property
    def failed(self) -> MutableMapping[str, int]:
        """As of `MadeVectors`."""
        ...

    @property
    def size_of_batch(self) -> int:
        """As of `MadeVectors`."""
        ...

    def can_make(self) -> bool | None:
        """As of `MadeVectors`."""
        ...

    def newest(self) -> int:
        """As of `MadeVectors`."""
        ...

    def lacking(self, after: int) -> Sequence[Found]:
        """As of `MadeVectors`."""
        ...

    def missing(self, document: str, after: int, most: int) -> Sequence[Row]:
        """As of `MadeVectors`."""
        ...

    def make(self, batch: Mapping[str, Sequence[Row]], stop: threading.Event) -> None:
        """As of `MadeVectors`."""
        ...


@dataclass(slots=True)
class _Waiting:
    rank: tuple[int, int]
    after: int = -1  # the place of the last chunk that was taken


class Line:
    """The documents that wait for the vectors of one model.

    A document counts by all chunks that it has by now, not by those that lack a vector: a scan that is read page by
    page never lacks many.

    Args:
        failed: How often the model failed in batches of a document. Such a document comes after those in which it
            failed less often, and in batches of its own, so that it does not spoil those of others.
    """

    def __init__(self, failed: Mapping[str, int]) -> None:
        self._failed = dict(failed)
        self._waiting: dict[str, _Waiting] = {}  # who waits longest comes first
        self._by_rank: list[tuple[tuple[int, int], int, str]] = []
        self._batches = 0

    def add(self, found: Sequence[Found]) -> None:
        """Let documents wait; one that waits already may have grown."""
        for document, first, size in sorted(found, key=lambda one: (self._failed.get(one[0], 0), one[1])):
            rank = (self._failed.get(document, 0), size)
            self._waiting.setdefault(document, _Waiting(rank)).rank = rank
            heappush(self._by_rank, (rank, first, document))

    def batch(self, most: int, missing: Callable[[str, int, int], Sequence[Row]]) -> dict[str, Sequence[Row]]:
        """The chunks that come next, by documents; empty where none waits.

        Args:
            most: How many.
            missing: Gives chunks of a document, after a place in it, so many at most.
        """
        self._batches += 1
        is_turn = self._batches % EACH == 0
        document = self._longest_waiting() if is_turn else self._shortest()
        taken: dict[str, Sequence[Row]] = {}
        room = most
        while document is not None and room and not (taken and self._failed.keys() & {document, *taken}):
            waiting = self._waiting[document]
            rows = missing(document, waiting.after, room)
            if rows:
                taken[document], waiting.after = rows, rows[-1][1]
            if len(rows) < room:
                del self._waiting[document]
            room -= len(rows)
            document = self._shortest()
        return taken

    def _longest_waiting(self) -> str | None:
        """Of those in which the model failed least often: a failure ends the round, and others would wait for ever."""
        if not self._failed:
            return next(iter(self._waiting), None)
        return min(self._waiting, key=lambda one: self._failed.get(one, 0), default=None)

    def _shortest(self) -> str | None:
        while self._by_rank:
            rank, _, document = self._by_rank[0]
            waiting = self._waiting.get(document)
            if waiting is not None and waiting.rank == rank:
                return document
            heappop(self._by_rank)  # it has its vectors, or has grown
        return None


class Round:
    """Makes what one model lacks, batch by batch.

    Attributes:
        is_whole: Whether nothing was missing at the last step that found nothing to do.
    """

    def __init__(self, vectors: Makes) -> None:
        self._vectors = vectors
        self._line = Line(vectors.failed)
        self._seen = 0  # the newest chunk that was looked at
        self._is_looked_at = True  # from the beginning, since the last batch
        self._is_over = False
        self.is_whole = False

    def step(self, stop: threading.Event) -> bool:
        """Make the next batch, unless `stop` is set; whether there was one. Raises what the model raises."""
        vectors = self._vectors
        can_make = vectors.can_make()
        if not can_make:
            self.is_whole = can_make is None
            return False
        newest = vectors.newest()
        if newest > self._seen:
            self._look(self._seen)
            self._seen = newest
        elif not newest:
            vectors.failed.clear()
        batch = self._line.batch(vectors.size_of_batch, vectors.missing)
        if not batch and not self._is_looked_at:  # others may have been at it too
            self._is_looked_at = True
            self._look(0)
            batch = self._line.batch(vectors.size_of_batch, vectors.missing)
        if not batch:
            self.is_whole = True
            return False
        self._is_looked_at = False
        vectors.make(batch, stop)
        return True

    def _look(self, after: int) -> None:
        """Let the documents wait that lack vectors behind a chunk."""
        found = self._vectors.lacking(after)
        if not after:  # the others are gone, or somebody else has made theirs
            failed = self._vectors.failed
            for document in failed.keys() - {one[0] for one in found}:
                del failed[document]
        self._line.add(found)

    def try_step(self, stop: threading.Event) -> bool:
        """As `step`; a model that failed is over for this round. Raises LeftOffError."""
        if self._is_over:
            return False
        try:
            return self.step(stop)
        except LeftOffError:
            raise
        except ParlourError as error:  # words find without it, and the other models may run
            _log.warning("Vectors of a library could not be made: %s", error)
        except Exception:  # noqa: BLE001 - the other models go on, and whoever waits must hear that nothing comes
            _log.exception("Vectors of a library could not be made.")
        self._is_over, self.is_whole = True, False
        return False


class InTurns:
    """Makes the vectors of several models: between two batches of one, those before it get what came meanwhile.

    Args:
        models: The first has all its vectors before the next begins: the quick one.
    """

    def __init__(self, models: Sequence[Makes]) -> None:
        self._models = models

    def fill(self, stop: threading.Event) -> bool:
        """As of `Derived`; what models raise is logged.

        Raises:
            LeftOffError: They are not to be made here any more.
        """
        rounds = [Round(one) for one in self._models]
        while not stop.is_set():
            if not any(one.try_step(stop) for one in rounds):
                return all(one.is_whole for one in rounds)
        return False
