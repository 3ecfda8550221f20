"""The thread that makes what searches need beside the words of a library: vectors, and a quicker index."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Protocol

from core.errors import ParlourError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_log = logging.getLogger(__name__)


class Fillable(Protocol):
    """Something that follows the chunks of a library."""

    def fill(self, stop: threading.Event) -> bool:
        """Do what is missing, until nothing is or `stop` is set; whether nothing is missing now.

        Raises:
            ParlourError: It cannot be done now.
        """
        ...


class Filling:
    """Fills what follows a library, one after the other, whenever there is more to do.

    Args:
        what: The quick one first, so that there is something to compare soon.
        name: What to call the thread.
        then: Called in that thread whenever it is done, or cannot be done now.
    """

    def __init__(
        self, what: Sequence[Fillable], name: str = "library-vectors", then: Callable[[], None] | None = None
    ) -> None:
        self._all = what
        self._then = then
        self._change = threading.Condition()
        self._asked = 1  # for what came before this process
        self._done = 0
        self._whole = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
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

    @property
    def settled(self) -> bool:
        """Whether all that was asked for was tried, or it is closed: nothing more comes until there is more to do."""
        with self._change:
            return self._done >= self._asked or self._stop.is_set()

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
            filled = [self._filled(one) for one in self._all]  # every one, also after one that failed
            with self._change:
                self._done, self._whole = asked, all(filled)
                self._change.notify_all()
            if self._then is not None and not self._stop.is_set():
                self._then()

    def _filled(self, one: Fillable) -> bool:
        try:
            return one.fill(self._stop)
        except ParlourError as error:  # words find without it; the next document tries again
            _log.warning("%s: nothing could be made: %s", self._thread.name, error)
            return False
        except Exception:  # noqa: BLE001 - the thread goes on: whoever waits must hear that nothing comes now
            _log.exception("%s: nothing could be made.", self._thread.name)
            return False
