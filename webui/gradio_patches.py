"""What Parlour changes in Gradio: its environment, its import, and its queue of events."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from collections import OrderedDict
from contextlib import contextmanager, nullcontext
from functools import partial, wraps
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path
    from types import ModuleType


def prepare(uploads: Path) -> None:
    """Set Gradio's variables for this process.

    Gradio has no arguments for these. `GRADIO_TEMP_DIR` is where it accepts uploaded files from: inside the data
    folder, never a shared one. The statistics it keeps of each event are recomputed rarely instead of always.
    Nothing is reported to anybody, no Node server is started, no run is recorded, no call is served to programs.
    """
    os.environ.update(  # noqa: TID251 - Gradio's settings are written here, Parlour's are never read
        GRADIO_TEMP_DIR=str(uploads),
        GRADIO_ANALYTICS_ENABLED="False",
        GRADIO_ANALYTICS_CACHE_FREQUENCY="1000000",
        GRADIO_SSR_MODE="False",
        GRADIO_MCP_SERVER="False",
        GRADIO_RUN_HISTORY="False",
        HF_HUB_DISABLE_TELEMETRY="1",
    )


@contextmanager
def lean_import() -> Generator[None, None, None]:
    """Inside, Gradio's import takes half the time, and writes nothing; afterwards its calls bring nothing along.

    For each component it parses its own source, and writes a stub for editors beside it, into the installed package;
    that is a third of the work. Another sixth is the collector, which looks in vain for rubbish among fresh modules.
    And it imports the `mcp` package, if there is one, for a server that the page does not have.

    In every call it imports matplotlib and turns its drawing into files, twice: the first call would hold up everybody
    for a second. No handler of the page draws.
    """
    finder = LeanFinder()
    sys.meta_path.insert(0, finder)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        sys.meta_path.remove(finder)
    utils: Any = sys.modules["gradio.utils"]
    utils.MatplotlibBackendMananger = nullcontext


class LeanFinder(MetaPathFinder):
    """Finds the module that writes the stubs, and takes the writing out of it; hides `mcp` from the one of servers."""

    def __init__(self) -> None:
        self._hidden_from = threading.local()  # other threads may import `mcp` meanwhile

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module as it is found anyway, with a loader that changes it."""
        del target
        if fullname == "mcp" and getattr(self._hidden_from, "here", False):
            raise ModuleNotFoundError("Gradio's own MCP server is not used.", name="mcp")
        run = {"gradio.component_meta": self._without_stubs, "gradio.mcp": self._without_mcp}.get(fullname)
        spec = PathFinder.find_spec(fullname, path) if run is not None else None
        if run is not None and spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            loader.exec_module = partial(run, loader.exec_module)
        return spec

    @staticmethod
    def _without_stubs(run: Callable[[ModuleType], None], module: Any) -> None:
        run(module)
        module.create_or_modify_pyi = _no_stub

    def _without_mcp(self, run: Callable[[ModuleType], None], module: ModuleType) -> None:
        self._hidden_from.here = True
        try:
            run(module)
        finally:
            self._hidden_from.here = False


def _no_stub(*_: object) -> None:
    return None


SESSIONS = 100
"""Tabs of which Gradio keeps the components that were made anew for them; nothing here makes any."""
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
    gradio: Any = import_module("gradio.utils")  # imported by now; the environment is prepared before that
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

    def __delitem__(self, session: str) -> None:
        """Also of a session that was forgotten: Gradio deletes without a look when the stream of a tab breaks off."""
        if session in self:
            super().__delitem__(session)


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


def keep_no_settings(page: Any) -> None:
    """Let Gradio keep no copy of a page's settings for each tab; other pages of the process stay as they are.

    It makes one when a tab first asks for something (15 ms, a quarter of a megabyte) and writes each value of each
    frame into it, so that a link to the page as somebody sees it can be made. Here the address names a conversation.

    Args:
        page: Gradio's, before its app is made.
    """
    page.keeps_no_settings = True
    holder: Any = import_module("gradio.state_holder")
    session = holder.SessionState
    if hasattr(session, "keeps_none"):
        return

    class Session(session):
        keeps_none = False

        def __init__(self, page: Any) -> None:
            self.keeps_none = hasattr(page, "keeps_no_settings")
            begin: Any = session.__init__
            begin(self, SimpleNamespace(default_config=page.default_config, blocks=()) if self.keeps_none else page)

        def _update_config(self, key: int) -> None:
            if not self.keeps_none:
                session._update_config(self, key)  # noqa: SLF001

        def _update_value_in_config(self, key: int, value: Any) -> None:
            if not self.keeps_none:
                session._update_value_in_config(self, key, value)  # noqa: SLF001

    for name in ("gradio.state_holder", "gradio.blocks", "gradio.route_utils"):
        module: Any = import_module(name)
        module.SessionState = Session


def skip_cheaply() -> None:
    """Let Gradio do nothing for a component that a handler leaves as it is; once is enough, before its app is made.

    It makes the component anew with all its settings, which costs more than most values do.
    """
    blocks: Any = import_module("gradio.blocks")
    make = blocks.Blocks.postprocess_data
    if hasattr(make, "__wrapped__"):
        return
    nothing, skip = blocks.components._Keywords.FINISHED_ITERATING, blocks.skip()  # noqa: SLF001

    @wraps(make)
    async def making(page: Any, function: Any, values: Any, state: Any) -> list[Any]:
        if not isinstance(values, (list, tuple)) or len(function.outputs) < 2:
            return await make(page, function, values, state)
        given = cast("Sequence[Any]", values)  # of too many, Gradio warns
        skipped = [isinstance(one, dict) and one == skip for one in given]
        made = await make(
            page, function, [nothing if one else value for value, one in zip(given, skipped, strict=True)], state
        )
        return [dict(skip) if one else value for value, one in zip(made, skipped, strict=False)]

    blocks.Blocks.postprocess_data = making


def send_objects_whole() -> None:
    """Let Gradio send an object whole where it has other keys than the one before; once is enough.

    Its client changes in place what it was sent before. On a slow machine that is not looked at by then: an empty
    composer, and the answer that leaves it alone, come together, and the composer would be left as it was.
    """
    utils: Any = import_module("gradio.utils")
    compare = utils.diff
    if hasattr(compare, "__wrapped__"):
        return

    @wraps(compare)
    def differing(old: Any, new: Any) -> Any:
        if isinstance(old, dict) and isinstance(new, dict):
            before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
            if before.keys() != after.keys():
                return [["replace", [], after]]
        return compare(old, new)

    utils.diff = differing


_QUEUE = ("/gradio_api/queue/join", "/gradio_api/queue/data")


def queue_first(app: Any) -> None:
    """Let the two routes by which the page's script asks and hears be looked at before Gradio's sixty others.

    Routes are compared with an address one after another, and twice; each question and each frame's stream is such an
    address. Neither of the two has a part that varies, so none of the others ever meant them.

    Args:
        app: With Gradio's mounted in it, before its first request.
    """
    mounted: list[Any] = [route for mount in app.routes for route in getattr(mount, "routes", None) or ()]
    for router in (getattr(route, "original_router", None) for route in mounted):
        if router is not None:
            router.routes.sort(key=_is_other)  # the others stay as they are


def _is_other(route: Any) -> bool:
    return getattr(route, "path", "") not in _QUEUE
