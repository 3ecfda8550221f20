"""What a tool says while it works, brought to whoever follows the run, from whatever thread it is said in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeAlias

Follow: TypeAlias = Callable[[str, str, float | None, float | None], None]
Progress: TypeAlias = Callable[..., None]


class Told:
    """The `progress` of one call: `progress("Reading page 3", 3, 10)`; done and total may be left out.

    Args:
        call_id: The call.
        follow: Gets the call's id, the text, what is done and the total; always on the loop that runs the call.
    """

    def __init__(self, call_id: str, follow: Follow | None) -> None:
        self._call_id = call_id
        self._follow = follow
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._over = False

    def __call__(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Say how far it is; nothing where nobody follows, or after the end."""
        if self._follow is None or self._over:
            return
        if threading.get_ident() == self._thread:
            self._tell(text, done, total)
            return
        try:
            self._loop.call_soon_threadsafe(self._tell, text, done, total)
        except RuntimeError:  # the loop has ended: nobody follows any more
            self._over = True

    def end(self) -> None:
        """From now on nothing is told: a thread that was left behind may still talk."""
        self._over = True

    def _tell(self, text: str, done: float | None, total: float | None) -> None:
        if self._follow is not None and not self._over:
            self._follow(self._call_id, str(text), done, total)
