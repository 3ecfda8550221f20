"""The thread that makes missing vectors while words are searched already."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from core.errors import ParlourError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.rag.vectors import Vectors

_log = logging.getLogger(__name__)


class Filling:
    """Fills the vectors of a library, model after model, whenever there is more to do.

    Args:
        all_vectors: The quick model first, so that there is something to compare soon.
    """

    def __init__(self, all_vectors: Sequence[Vectors]) -> None:
        self._all = all_vectors
        self._change = threading.Condition()
        self._asked = 1  # for what came before this process
        self._done = 0
        self._whole = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="library-vectors", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There are new chunks."""
        with self._change:
            self._asked += 1
            self._change.notify_all()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until what was asked for is done; whether every chunk has its vectors then."""
        with self._change:
            done = self._change.wait_for(lambda: self._done >= self._asked or self._stop.is_set(), seconds)
            return done and self._whole

    def close(self) -> None:
        """Stop after the batch at hand."""
        self._stop.set()
        with self._change:
            self._change.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._done < self._asked or self._stop.is_set())
                asked = self._asked
            if self._stop.is_set():
                return
            filled = [self._filled(vectors) for vectors in self._all]  # every one, also after one that failed
            with self._change:
                self._done, self._whole = asked, all(filled)
                self._change.notify_all()

    def _filled(self, vectors: Vectors) -> bool:
        try:
            return vectors.fill(self._stop)
        except ParlourError as error:  # words find without it; the next document tries again
            _log.warning("No vectors could be made: %s", error)
            return False
