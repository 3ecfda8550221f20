"""Many people at one house: who only chats costs nothing that stays, and nobody waits for what others have read."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.engine import Engine
from core.rag.search.stored_vectors import Vectors
from core.settings import Settings
from core.storage.base import folder_name
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import talk_of, world_of

pytestmark = pytest.mark.anyio

WAITING = 20


class Counted(ThreadPoolExecutor):
    """Threads, few as on a small machine, and how much work they have now."""

    def __init__(self) -> None:
        super().__init__(4)
        self.at_work = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.at_work += 1
        work = super().submit(fn, *args, **kwargs)
        work.add_done_callback(self._done)
        return work

    def _done(self, _: Future[Any]) -> None:
        self.at_work -= 1


def house(tmp_path: Path, retrieval: str = "keyword") -> Engine:
    return Engine(Settings.load(home=tmp_path / "home", retrieval=retrieval), model=ScriptedModel("Hello."))


async def chatted(engine: Engine, owner: str, *files: str) -> None:
    talk = await engine.stores.of(owner).conversations.create()
    run = await talk_of(engine, owner, talk.id).ask("hi", files)
    assert await run.wait() == "complete", run.error


async def with_document(engine: Engine, owner: str) -> None:
    file = await engine.stores.of(owner).files.put("facts.md", f"# Facts\n\n{owner} lives in a red house.".encode())
    await chatted(engine, owner, file.id)


def costs() -> tuple[int, int]:
    """Descriptors and threads of this process."""
    process = psutil.Process()
    opened = process.num_fds() if sys.platform != "win32" else process.num_handles()
    return opened, threading.active_count()


@pytest.mark.parametrize("retrieval", ["keyword", "hybrid"])
async def test_sixty_people_who_only_chat_leave_no_descriptor_no_thread_and_no_folder(
    tmp_path: Path, retrieval: str
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(4))
    async with house(tmp_path, retrieval) as engine:
        # All threads that there may be are there, and each of those that read the database has its connection.
        four, two = threading.Barrier(4), threading.Barrier(2)
        await asyncio.gather(*(asyncio.to_thread(four.wait, 60) for _ in range(4)))
        await asyncio.gather(*(engine.stores.database.read(lambda _: two.wait(60)) for _ in range(2)))
        for number in range(10):
            await chatted(engine, f"early {number}")
        descriptors, threads = costs()
        for number in range(60):
            await chatted(engine, f"visitor {number}")
        now = costs()
        assert now[0] <= descriptors + 3
        assert now[1] <= threads + 1
        assert not (tmp_path / "home" / "libraries" / folder_name("visitor 1")).exists()


async def test_nobody_waits_for_a_thread_while_the_documents_of_many_others_are_made_into_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Counted()
    asyncio.get_running_loop().set_default_executor(threads)

    def never_done(_: Vectors, __: object, stop: threading.Event) -> None:
        stop.wait()

    monkeypatch.setattr(Vectors, "make", never_done)
    async with house(tmp_path, "hybrid") as engine:
        owners = [f"owner {number}" for number in range(WAITING)]
        for owner in owners:
            await with_document(engine, owner)
        assert all(world_of(engine, owner).intake.preparing() for owner in owners)
        await chatted(engine, "somebody else")
        assert all(world_of(engine, owner).intake.preparing() for owner in owners)
        async with asyncio.timeout(10):
            while threads.at_work:  # what waits holds none of them
                await asyncio.sleep(0)
