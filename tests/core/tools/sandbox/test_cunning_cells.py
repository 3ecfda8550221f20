"""Cells that look for what nobody counts, and calls that meet a kernel while it ends, stops or starts."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import ToolError
from core.tools.sandbox.box import Box, Limits
from core.tools.sandbox.kernel import Channels
from core.tools.sandbox.work_folder import WorkFolder
from tests.core.tools.sandbox.below import kernels_below

pytestmark = pytest.mark.anyio

_HIDDEN = "for i in range(4):\n    open(f'.{i}', 'wb').write(bytes(12 << 20))"
_DEEP = f"import os\nfor _ in range(8):\n    os.mkdir('d')\n    os.chdir('d')\n{_HIDDEN.replace('.{i}', '{i}')}"
_DELETED = (
    "import os\nopened = []\nfor i in range(4):\n    opened.append(open(str(i), 'wb', buffering=0))\n"
    "    opened[-1].write(bytes(12 << 20))\n    os.unlink(str(i))"
)


@pytest.mark.parametrize("code", [_HIDDEN, _DEEP, _DELETED], ids=["hidden", "deep", "deleted"])
async def test_c20_files_that_are_hidden_deep_or_deleted_take_room_too(
    driver: str, opened: Callable[..., Any], small: Limits, code: str
) -> None:
    async with opened(driver, limits=small) as kernels:
        if kernels is None:
            return
        result = await kernels.run("a", f"{code}\nimport time\ntime.sleep(20)")
        assert "No space left on device" in result.text or "its files took more than 24 MB" in result.text


def test_c20_empty_files_and_closed_folders_count(tmp_path: Path) -> None:
    folder = WorkFolder(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY), None)
    for number in range(10):
        (tmp_path / str(number)).touch()
    assert folder.size() == 10 * 4096
    (tmp_path / "deep").mkdir()
    at = tmp_path / "deep"
    for _ in range(70):
        at = at / "d"
        at.mkdir()
    assert folder.size() > 1 << 50
    folder.close()


async def test_c21_a_process_whose_parent_ended_still_counts(opened: Callable[..., Any]) -> None:
    async with opened("landlock", limits=Limits(memory=1 << 30)) as kernels:
        if kernels is None:
            return
        hungry = (
            "import os, time\nfor _ in range(8):\n    child = os.fork()\n    if not child:\n"
            "        if os.fork():\n            os._exit(0)\n        x = bytearray(b'x' * (180 << 20))\n"
            "        time.sleep(60)\n    os.waitpid(child, 0)\ntime.sleep(20)"
        )
        result = await kernels.run("a", hungry)
        assert "it used more than 1 GB of memory" in result.text


async def test_a_call_that_waited_while_the_one_before_ended_the_kernel_runs_in_the_next(
    opened: Callable[..., Any], of_others: set[int]
) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        await kernels.run("a", "x = 1")
        ending = asyncio.create_task(kernels.run("a", "import os\nos._exit(1)"))
        waiting = [asyncio.create_task(kernels.run("a", f"n = {n}\nprint('n' in dir(), {n})")) for n in range(3)]
        assert "The interpreter ended" in (await ending).text
        said = [(await one).text for one in waiting]
        assert [text.rpartition("\n")[2] for text in said] == ["True 0", "True 1", "True 2"]
        assert "fresh interpreter" in said[0]
        after = await kernels.run("a", "n")
        assert (after.text, after.failed) == ("2", False)  # the kernel that they used was closed by nobody
        assert len(kernels_below(of_others)) == 1


async def test_a_call_that_waited_while_the_one_before_was_stopped_does_not_wait_for_it(
    opened: Callable[..., Any],
) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        begun = asyncio.Event()
        endless = "import time\nprint('now', flush=True)\nwhile True:\n    time.sleep(0.1)"
        first = asyncio.create_task(kernels.run("a", endless, progress=lambda *_: begun.set()))
        await begun.wait()
        second = asyncio.create_task(kernels.run("a", "print('second')", timeout=10))
        await asyncio.wait({second}, timeout=0.05)
        first.cancel()
        result = await second
        assert (result.text, result.failed) == ("second", False)


async def test_c28_what_fails_or_is_given_up_while_it_starts_leaves_no_folder(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        root: Path = kernels._root
        before = set(root.iterdir())

        def no_process(*_: object) -> None:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

        def no_folder(_: object) -> None:
            raise OSError("The process ended.")

        for name, broken in (("SandboxProcess", no_process), ("SandboxProcess.work_folder", no_folder)):
            with monkeypatch.context() as patched:
                patched.setattr(f"core.tools.sandbox.kernel.{name}", broken)
                with pytest.raises(ToolError, match="does not start"):
                    await kernels.run("a", "1")
            assert set(root.iterdir()) == before
        making, go_on = threading.Event(), threading.Event()
        make = Box.make

        def slowly(*of: Any) -> Box:
            making.set()
            go_on.wait()
            return make(*of)

        monkeypatch.setattr("core.tools.sandbox.kernels.Box.make", slowly)
        given_up = asyncio.create_task(kernels.run("a", "1"))
        await asyncio.to_thread(making.wait)
        forgetting = asyncio.create_task(kernels.forget("a"))
        await asyncio.wait({forgetting}, timeout=0.05)
        go_on.set()
        await forgetting
        with pytest.raises(ToolError, match="closed while it started"):
            await given_up
        assert set(root.iterdir()) == before
        await kernels.aclose()
        with pytest.raises(ToolError, match="is closed"):
            await kernels.run("a", "1")


@pytest.mark.parametrize("code", ["'x' * 20_000_000", "raise ValueError('x' * 20_000_000)"], ids=["value", "error"])
async def test_c23_a_value_or_error_of_many_megabytes_is_cut_and_loses_nothing(
    opened: Callable[..., Any], code: str
) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        await kernels.run("a", "kept = 41")
        result = await kernels.run("a", code, timeout=20)
        assert not result.lost
        assert 200_000 < len(result.text) < 300_000
        assert (await kernels.run("a", "kept + 1")).text == "42"


async def test_c23_a_flood_of_messages_lets_others_have_their_turn(tmp_path: Path) -> None:
    channels = Channels(None, tmp_path)  # pyright: ignore[reportArgumentType] - no socket is opened
    session = channels._session  # pyright: ignore[reportPrivateUsage]
    foreign = session.serialize(session.msg("stream", {"text": "x"}))

    class Flood:
        """Always has the next message, as a socket whose queue is full; at last it gives up."""

        left = 5000

        async def send_multipart(self, _: object) -> None:
            pass

        async def recv_multipart(self) -> list[bytes]:
            self.left -= 1
            session.digest_history.clear()
            if not self.left:
                raise AssertionError("Nobody else had a turn.")
            return list(foreign)

    channels._sockets.update(shell=Flood(), iopub=Flood())  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            async for _ in channels.execute("1"):
                pass
