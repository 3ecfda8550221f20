"""What waits in Gradio's queue for each session to read it: Gradio itself throws out the one that came first.

So whoever names many sessions would cut off the streams of everybody else.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 20_000


class Waiting(OrderedDict[str, Any]):
    """Messages by session; the session whose messages nobody has read or written for longest goes first.

    Args:
        most: Sessions.
    """

    def __init__(self, most: int = _MOST) -> None:
        super().__init__()
        self._most = most

    def __getitem__(self, session: str) -> Any:
        found = super().__getitem__(session)
        self.move_to_end(session)
        return found

    def __setitem__(self, session: str, messages: Any) -> None:
        if session not in self and len(self) >= self._most:
            del self[next(iter(self))]
        super().__setitem__(session, messages)


def forgetting(queue: Any) -> Callable[[str], None]:
    """Let Gradio's queue keep what waits in the order of use; what comes back forgets a session."""
    waiting = queue.pending_messages_per_session = Waiting()

    def forget(session: str) -> None:
        if session in waiting:
            del waiting[session]
        queue.pending_event_ids_session.pop(session, None)

    return forget
