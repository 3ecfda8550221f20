"""What a sandbox keeps has an end: of whoever proves nothing, and of the files that a conversation gave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from core.tools.sandbox import wire
from core.tools.sandbox.kernels import Kernels
from webui.sandbox_role import app as app_module
from webui.sandbox_role import given as given_here
from webui.sandbox_role.app import Owners, SandboxApp
from webui.sandbox_role.given import GivenHere

pytestmark = pytest.mark.anyio

HALF = (4 << 20).to_bytes(wire.LENGTH, "big") + bytes(1000)


class Asking:
    """A question whose manifest never comes to its end, until it does.

    Args:
        app: What is asked.
    """

    def __init__(self, app: SandboxApp) -> None:
        self.statuses: list[int] = []
        self.reads = 0
        self._more = asyncio.Event()
        scope = {"type": "http", "method": "POST", "path": wire.STATE, "headers": []}
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def left(self) -> None:
        """Whoever asks leaves."""
        self._more.set()
        await self.task

    async def _receive(self) -> Any:
        self.reads += 1
        if self.reads == 1:
            return {"type": "http.request", "body": HALF, "more_body": True}
        await self._more.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.statuses.append(message["status"])


@pytest.fixture
def app(tmp_path: Path) -> SandboxApp:
    return SandboxApp(cast("Kernels", None), Owners(), GivenHere(tmp_path), b"k" * 32, 1)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_of_who_proves_nothing_yet_sixteen_are_read_some_wait_and_the_others_are_sent_away(
    app: SandboxApp,
) -> None:
    asking = [Asking(app) for _ in range(100)]
    await settled()
    assert [one.reads > 0 for one in asking] == [True] * 16 + [False] * 84, "no more than sixteen are held"
    assert [one.statuses for one in asking[16:]] == [[]] * 64 + [[503]] * 20
    await asking[0].left()
    await settled()
    assert asking[16].reads, "the one that has waited longest is next"
    await asyncio.gather(*(one.left() for one in asking))
    last = Asking(app)
    await settled()
    assert last.reads, "there is room again"
    await last.left()


async def test_a_manifest_that_does_not_come_in_time_is_not_waited_for(
    app: SandboxApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_UNPROVED_SECONDS", 0.05)
    asking = [Asking(app) for _ in range(20)]
    await asyncio.wait_for(asyncio.gather(*(one.task for one in asking)), 60)
    assert {one.statuses[0] for one in asking} <= {408, 503}
    assert [one.statuses for one in asking[:16]] == [[408]] * 16


def named(*contents: bytes) -> list[wire.SentFile]:
    return [wire.SentFile(name=f"{one!r}", digest=sha256(one).hexdigest(), size=len(one)) for one in contents]


async def taken(files: GivenHere, key: str, content: bytes) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield content

    await files.take(key, sha256(content).hexdigest(), pieces())


async def test_files_that_the_last_cell_was_not_to_find_are_deleted_behind_it_unless_another_one_runs(
    tmp_path: Path,
) -> None:
    files, (first, second) = GivenHere(tmp_path), named(b"first", b"second")
    with files.used("k", [first.digest]):
        await taken(files, "k", b"first")
    assert files.lacking("k", [first]) == []
    with files.used("k", [first.digest]):
        with files.used("k", [second.digest]):
            await taken(files, "k", b"second")
        assert files.lacking("k", [first, second]) == [], "the other cell may not have copied it yet"
    assert files.lacking("k", [first, second]) == [second.digest]
    with files.used("never had a folder", [first.digest]):
        pass


async def test_conversations_that_are_over_leave_nothing_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given_here, "_SPARED", -1.0)
    files = GivenHere(tmp_path)
    for number in range(100):
        with files.used(str(number), ()):
            pass
    with files.used("has one", [named(b"x")[0].digest]):
        await taken(files, "has one", b"x")
    await files.tidy({"has one"})
    assert list(files._used) == ["has one"]  # pyright: ignore[reportPrivateUsage]
    await files.tidy(())
    assert files._used == {}  # pyright: ignore[reportPrivateUsage]
    assert list(tmp_path.iterdir()) == []
