"""The bridge: plain calls over one loop, closed when left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from typing import Any

import pytest

from core.bridge import sync
from core.bridge.sync import iterate, on_loop, run, shared_loop


class Source:
    """An async generator that counts up, and knows when it was closed."""

    def __init__(self, items: int | None = None, error: Exception | None = None) -> None:
        self.items, self.error = items, error
        self.closed = threading.Event()
        self.thread = ""

    async def __call__(self):
        self.thread = threading.current_thread().name
        try:
            number = 0
            while self.items is None or number < self.items:
                yield number
                number += 1
                await asyncio.sleep(0)
            if self.error:
                raise self.error
        finally:
            self.closed.set()


def test_items_come_in_order_from_one_shared_loop():
    first, second = Source(100), Source(3)
    assert list(iterate(first)) == list(range(100))
    assert list(iterate(second)) == [0, 1, 2]
    assert first.thread == second.thread == "parlour-loop"


def test_closing_the_iterator_closes_the_source():
    source = Source()
    items = iterate(source)
    assert [next(items), next(items)] == [0, 1]
    items.close()
    assert source.closed.is_set()


def test_forgetting_the_iterator_closes_the_source():
    source = Source()
    items = iterate(source)
    next(items)
    del items
    assert source.closed.wait(60)


def test_an_iterator_that_was_never_started_opens_nothing():
    source = Source()
    iterate(source).close()
    assert source.thread == ""


def test_an_error_comes_through_after_the_items_before_it():
    items = iterate(Source(2, ValueError("broken")))
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_run_returns_what_the_coroutine_returns_or_raises():
    async def answer(value):
        if isinstance(value, Exception):
            raise value
        return value

    assert run(answer(3)) == 3
    assert run(answer(None)) is None
    with pytest.raises(LookupError):
        run(answer(LookupError("x")))


@pytest.mark.anyio
async def test_it_works_while_another_loop_runs_here():
    assert list(iterate(Source(3))) == [0, 1, 2]


def test_waiting_for_oneself_is_refused():
    async def nested():
        return list(iterate(Source(1)))

    with pytest.raises(RuntimeError, match="async form"):
        run(nested())


def test_context_variables_travel_with_the_call():
    variable: ContextVar[str] = ContextVar("variable", default="none")

    async def read():
        return variable.get()

    variable.set("mine")
    assert run(read()) == "mine"


def test_many_threads_share_the_loop():
    results: list[list[int]] = []
    threads = [threading.Thread(target=lambda: results.append(list(iterate(Source(50))))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [list(range(50))] * 16


def test_the_loop_is_the_same_every_time():
    assert shared_loop() is shared_loop()


def test_a_call_that_would_end_the_program_ends_nothing_else():
    """Raised on the loop, it would end the loop, and all that others wait for there."""
    loop, begun, exited, told = shared_loop(), threading.Event(), asyncio.Event(), list[int]()

    async def other() -> int:
        begun.set()
        await exited.wait()
        return 5

    async def leaves() -> None:
        raise SystemExit(3)

    thread = threading.Thread(target=lambda: told.append(run(other())), daemon=True)
    thread.start()
    assert begun.wait(10)
    with pytest.raises(SystemExit):
        run(leaves())
    assert shared_loop() is loop
    loop.call_soon_threadsafe(exited.set)
    thread.join(10)
    assert told == [5]


def test_an_interrupted_wait_cancels_what_runs():
    cancelled = threading.Event()

    async def for_ever():
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    items = iterate(for_ever)
    next(items)
    with pytest.raises(KeyboardInterrupt):
        items.throw(KeyboardInterrupt())
    assert cancelled.is_set()


def test_a_program_ends_at_once_and_quietly_with_an_iterator_left_open():
    program = (
        "import asyncio\n"
        "from core.bridge.sync import iterate\n"
        "async def for_ever():\n"
        "    try:\n"
        "        while True:\n"
        "            yield 1\n"
        "            await asyncio.sleep(0.01)\n"
        "    finally:\n"
        "        print('closed', flush=True)\n"
        "items = iterate(for_ever)\n"
        "print(next(items), flush=True)\n"
    )
    command = [sys.executable, "-W", "error", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, ["1", "closed"], "")


def test_of_many_that_come_at_once_each_begins_and_who_left_meanwhile_does_not():
    held, go = threading.Event(), threading.Event()
    shared_loop().call_soon_threadsafe(lambda: (held.set(), go.wait(10)))
    assert held.wait(10)
    begun: list[int] = []

    async def note(number: int) -> int:
        begun.append(number)
        return number

    inside: Any = sync  # the moment between a job's coming and its turn cannot be reached from outside
    queues = [SimpleQueue() for _ in range(6)]
    jobs = [inside._Job(lambda post, n=n: inside._answer(note(n), post), queue) for n, queue in enumerate(queues)]
    for job in jobs:
        inside._shared.thread().begin(job.start, copy_context())
    jobs[2].over = True
    go.set()
    for queue in queues:
        while not isinstance(queue.get(timeout=10), inside._End):
            pass
    assert begun == [0, 1, 3, 4, 5]


def test_without_uvloop_the_shared_loop_is_pythons_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = sync.new_loop()
    try:
        assert type(loop).__module__.startswith("asyncio.")
        assert loop.run_until_complete(asyncio.sleep(0, "ran")) == "ran"
    finally:
        loop.close()


async def _where() -> str:
    return threading.current_thread().name


def test_what_belongs_to_another_loop_is_awaited_there() -> None:
    async def elsewhere() -> str:
        return await on_loop(shared_loop(), _where)

    assert asyncio.run(elsewhere()) == "parlour-loop"


def test_a_loop_that_waits_for_a_call_is_not_waited_for_by_it() -> None:
    async def blocks() -> None:
        own = asyncio.get_running_loop()
        with pytest.raises(RuntimeError, match="waits for this call"):
            run(on_loop(own, _where))

    asyncio.run(blocks())


class Worse(BaseException):
    """No `Exception`: uvloop stops for it where Python's own loop does not."""


def raises(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), Worse()], ids=["exit", "interrupt", "worse"])
@pytest.mark.parametrize("kind", [sync.new_loop, asyncio.new_event_loop], ids=["quick", "python's own"])
def test_whatever_a_callback_or_a_task_raises_the_loop_goes_on(
    error: BaseException, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "new_loop", kind)
    thread = sync._LoopThread()  # pyright: ignore[reportPrivateUsage] - the shared one has its loop already
    thread.start()

    async def fails() -> None:
        raise error

    thread.loop.call_soon_threadsafe(raises, error)
    asyncio.run_coroutine_threadsafe(fails(), thread.loop)
    thread.loop.call_soon_threadsafe(thread.loop.stop)
    assert asyncio.run_coroutine_threadsafe(_where(), thread.loop).result(10) == "parlour-loop"
    thread.stop()
    assert not thread.is_alive()


@pytest.mark.parametrize("at_cancel", ["pass", "raise"], ids=["deaf", "listening"])
def test_who_waits_when_the_loop_ends_is_told_so_and_the_next_call_works(at_cancel: str) -> None:
    program = (
        "import asyncio, threading\n"
        "from core.bridge import sync\n"
        "from core.bridge.sync import LoopEndedError, run\n"
        "begun = threading.Event()\n"
        "async def deaf():\n"
        "    while True:\n"
        "        try:\n"
        "            begun.set()\n"
        "            await asyncio.sleep(3600)\n"
        "        except asyncio.CancelledError:\n"
        f"            {at_cancel}\n"
        "async def one(): return 1\n"
        "def wait():\n"
        "    try:\n"
        "        run(deaf())\n"
        "    except LoopEndedError as error:\n"
        "        print(error)\n"
        "waiting = threading.Thread(target=wait)\n"
        "waiting.start()\n"
        "begun.wait(10)\n"
        "sync._shared.thread().stop()\n"
        "waiting.join(20)\n"
        "print(run(one()))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    said = "The loop that makes the reply has ended, so it cannot come. Ask again."
    assert (ended.returncode, ended.stdout.splitlines()) == (0, [said, "1"])


def test_a_reply_that_was_begun_before_a_fork_is_told_to_have_ended_in_the_child() -> None:
    program = (
        "import asyncio, os, signal, sys\n"
        "from core.bridge.sync import LoopEndedError, iterate, run\n"
        "async def for_ever():\n"
        "    yield 1\n"
        "    await asyncio.Event().wait()\n"
        "async def one(): return 1\n"
        "items = iterate(for_ever)\n"
        "next(items)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(30)\n"
        "    try:\n"
        "        next(items)\n"
        "    except LoopEndedError:\n"
        "        os._exit(4 + run(one()))\n"
        "    os._exit(9)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (5, "")
