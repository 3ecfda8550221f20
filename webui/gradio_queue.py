"""Two mends of Gradio's queue: it is woken by what comes, and forgets the sessions that were used longest ago."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any

from gradio import utils

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 20_000

# Progress bars, which the page does not have, are looked for at this pace.
_PROGRESS_LOOKS = 3600.0


def wake_by_events(queue: Any) -> None:
    """Let a queue wait until it is given something to do, or a place becomes free.

    Gradio asks its queue a thousand times a second whether something is there: four per cent of a core of an idle
    server, and a machine that never sleeps.

    Args:
        queue: Gradio's, before it is started.
    """
    woken = asyncio.Event()
    push, close = queue.push, queue.close

    async def pushing(*args: Any, **kwargs: Any) -> Any:
        try:
            return await push(*args, **kwargs)
        finally:
            woken.set()

    def closing() -> None:
        close()
        woken.set()

    queue.push, queue.close = pushing, closing
    queue.start_processing = partial(_process, queue, woken)
    queue.progress_update_sleep_when_free = _PROGRESS_LOOKS


async def _process(queue: Any, woken: asyncio.Event) -> None:
    """What Gradio does for each event, until the queue is closed."""
    try:
        while not queue.stopped:
            woken.clear()
            found = queue.get_events() if None in queue.active_jobs else None
            if found is None:
                await woken.wait()
            else:
                _start(queue, *found).add_done_callback(lambda _: woken.set())
    finally:
        queue.stopped = True
        queue._cancel_asyncio_tasks()  # noqa: SLF001 - as Gradio's own does


def _start(queue: Any, events: list[Any], batch: bool, concurrency_id: str) -> asyncio.Task[Any]:  # noqa: FBT001 - Gradio's
    first, now = events[0], time.time()
    queue.active_jobs[queue.active_jobs.index(None)] = events
    waiting = queue.event_queue_per_concurrency_id[concurrency_id]
    waiting.current_concurrency += 1
    waiting.start_times_per_fn[first.fn].add(now)
    for event in events:
        if (seen := queue.event_analytics.get(event._id)) is not None:  # noqa: SLF001
            seen["status"] = "processing"
    gradio: Any = utils  # its types are only partly known
    task: asyncio.Task[Any] = gradio.run_coro_in_background(queue.process_events, events, batch, now, first.fn)
    gradio.set_task_name(task, first.session_hash, first.fn._id, first._id, batch)  # noqa: SLF001
    queue._asyncio_tasks.add(task)  # noqa: SLF001
    task.add_done_callback(queue._asyncio_tasks.discard)  # noqa: SLF001
    if queue.live_updates:
        queue.broadcast_estimations(concurrency_id)
    return task


class PendingMessages(OrderedDict[str, Any]):
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


def keep_recent(queue: Any) -> Callable[[str], None]:
    """Let a queue forget the sessions that were used longest ago; what comes back forgets one of them at once.

    Gradio itself throws out the session that came first, so whoever names many would cut off the streams of everybody
    else.

    Args:
        queue: Gradio's, before it is started.
    """
    pending = queue.pending_messages_per_session = PendingMessages()

    def forget(session: str) -> None:
        if session in pending:
            del pending[session]
        queue.pending_event_ids_session.pop(session, None)

    return forget
