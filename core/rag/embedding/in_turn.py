"""A lock that whoever asks first gets first.

Somebody who asks again and again, as a library that is being filled does, would have a plain lock back before those who
wait have noticed that it is free.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


class InTurn:
    """Used with `with`, by one thread at a time, in the order in which they came."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._line: deque[object] = deque()

    def __enter__(self) -> None:
        mine = object()
        with self._change:
            self._line.append(mine)
            try:
                self._change.wait_for(lambda: self._line[0] is mine)
            except BaseException:
                self._line.remove(mine)
                self._change.notify_all()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._change:
            self._line.popleft()
            self._change.notify_all()
