"""Work that is done whole: whoever is cancelled hears of it at its end, and nobody spins meanwhile."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from core.bridge.cancellation import result_for_all, run_shielded, run_to_end

pytestmark = pytest.mark.anyio


class Work:
    """Goes on until it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.begun, self.go_on, self.error = asyncio.Event(), asyncio.Event(), error
        self.done = False

    async def __call__(self) -> str:
        self.begun.set()
        await self.go_on.wait()
        self.done = True
        if self.error is not None:
            raise self.error
        return "done"


class Turns:
    """Counts how often somebody begins to wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waits, wait = 0, asyncio.wait

        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.waits += 1
            return await wait(*args, **kwargs)

        monkeypatch.setattr(asyncio, "wait", counted)


async def turn_the_loop(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


async def test_under_a_cancelled_scope_nobody_spins_and_the_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    work, turns, after = Work(), Turns(monkeypatch), list[str]()

    async def stop(scope: anyio.CancelScope) -> None:
        await work.begun.wait()
        scope.cancel()
        await turn_the_loop(200)
        work.go_on.set()

    scope = anyio.CancelScope()
    stopping = asyncio.create_task(stop(scope))
    with scope:
        await run_to_end(work())
        after.append("not reached")
    await stopping
    assert (work.done, after) == (True, [])
    assert turns.waits <= 3


@pytest.mark.parametrize("work_of", [run_to_end, run_shielded])
async def test_a_cancelled_task_lets_the_work_end_first(work_of: Callable[[Any], Awaitable[str]]) -> None:
    work = Work()

    async def asks() -> str:
        return await work_of(work())

    asking = asyncio.create_task(asks())
    await work.begun.wait()
    for _ in range(3):
        asking.cancel()
        await turn_the_loop(3)
    assert not asking.done()
    work.go_on.set()
    if work_of is run_shielded:
        assert await asking == "done"
    else:
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert work.done


async def test_what_is_kept_is_given_to_whoever_was_cancelled_by_a_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    work, turns, given = Work(), Turns(monkeypatch), list[str]()
    scope = anyio.CancelScope()

    async def stop() -> None:
        await work.begun.wait()
        scope.cancel()
        await turn_the_loop(200)
        work.go_on.set()

    stopping = asyncio.create_task(stop())
    with scope:
        given.append(await run_shielded(work()))
    await stopping
    assert given == ["done"]
    assert turns.waits <= 3


async def test_the_result_and_the_error_come_through() -> None:
    fine, broken = Work(), Work(ValueError("no"))
    fine.go_on.set()
    broken.go_on.set()
    assert await run_to_end(fine()) == "done"
    with pytest.raises(ValueError, match="no"):
        await run_to_end(broken())


class Reported:
    """What the loop reports as forgotten."""

    def __init__(self) -> None:
        self._said: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: self._said.append(context["message"]))

    async def all(self) -> list[str]:
        await turn_the_loop(3)
        gc.collect()
        return self._said


@pytest.mark.parametrize("work_of", [run_to_end, lambda work: result_for_all(asyncio.ensure_future(work))])
async def test_the_failure_of_work_whose_caller_was_cancelled_is_not_reported_as_forgotten(work_of: Any) -> None:
    reported, work = Reported(), Work(ValueError("no"))

    async def asks() -> str:
        return str(await work_of(work()))

    asking = asyncio.create_task(asks())
    await work.begun.wait()
    asking.cancel()
    await turn_the_loop(3)
    work.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asking
    del asking
    assert await reported.all() == []


async def test_who_is_cancelled_takes_a_result_from_no_one_else_and_a_failure_is_heard_by_all_who_wait() -> None:
    for work in (Work(), Work(ValueError("no"))):
        task = asyncio.create_task(work())
        asking = [asyncio.create_task(result_for_all(task)) for _ in range(3)]
        await work.begun.wait()
        asking[0].cancel()
        await turn_the_loop(3)
        work.go_on.set()
        gone, *heard = await asyncio.gather(*asking, return_exceptions=True)
        assert isinstance(gone, asyncio.CancelledError)
        assert heard == [work.error or "done"] * 2
