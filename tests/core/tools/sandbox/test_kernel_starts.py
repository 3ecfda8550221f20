"""The start of a kernel: threads are made as its channels make them, and what fails in passing is tried once more."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import ToolError
from core.tools.sandbox import kernels as module
from core.tools.sandbox import surroundings
from core.tools.sandbox.box import Box, Limits
from core.tools.sandbox.kernel import Kernel

pytestmark = pytest.mark.anyio

_THREAD = """
import ctypes, threading
libc, said = ctypes.CDLL(None), []
libc.pthread_self.restype = ctypes.c_void_p

def set_own():
    me, policy, priority = ctypes.c_void_p(libc.pthread_self()), ctypes.c_int(), ctypes.c_int()
    said.append(libc.pthread_getschedparam(me, ctypes.byref(policy), ctypes.byref(priority)))
    said.append(libc.pthread_setschedparam(me, policy, ctypes.byref(priority)))

thread = threading.Thread(target=set_own)
thread.start()
thread.join()
said
"""


async def test_a_thread_inside_sets_its_own_turn(driver: str, opened: Callable[..., Any]) -> None:
    async with opened(driver) as kernels:
        if kernels is not None:
            assert (await kernels.run("a", _THREAD)).text == "[0, 0]"


def _ended(monkeypatch: pytest.MonkeyPatch, times: int) -> list[Kernel]:
    """So many kernels end while they start."""
    begun: list[Kernel] = []
    start = Kernel.start

    async def ending(self: Kernel) -> None:
        begun.append(self)
        if len(begun) <= times:
            psutil.Process(self.process.pid).kill()
        await start(self)

    monkeypatch.setattr(Kernel, "start", ending)
    return begun


async def test_a_kernel_that_ends_while_it_starts_is_tried_once_more(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        begun = _ended(monkeypatch, 1)
        assert (await kernels.run("a", "6 * 7")).text == "42", "and nothing is said of a fresh interpreter"
        assert len(begun) == 2
        assert begun[0].process.ended.is_set()


async def test_a_kernel_that_never_starts_is_tried_twice_and_then_said(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        begun = _ended(monkeypatch, 9)
        with pytest.raises(ToolError, match="does not start"):
            await kernels.run("a", "6 * 7")
        assert len(begun) == 2
        assert all(one.process.ended.is_set() for one in begun)


async def test_a_start_that_took_long_is_not_tried_again(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened("auto") as kernels:
        if kernels is None:
            return
        begun = _ended(monkeypatch, 9)
        monkeypatch.setattr(module, "_SOON", 0.0)
        with pytest.raises(ToolError, match="does not start"):
            await kernels.run("a", "6 * 7")
        assert len(begun) == 1


def test_sandboxes_that_are_made_at_the_same_time_have_users_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of processes is counted by user, and users' signals reach each other."""
    monkeypatch.setattr(surroundings.os, "urandom", bytes)  # whoever draws, draws the same
    (tmp_path / "share").mkdir()
    users = [Box.make(tmp_path, tmp_path / "share", Limits()).user for _ in range(3)]
    assert len(set(users)) == 3 if os.geteuid() == 0 else set(users) == {None}


@pytest.mark.parametrize("moment", ["looked at", "locked"])
def test_what_a_killed_process_left_may_go_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    inside: Any = module
    left = tmp_path / "parlour-code-left"
    left.mkdir()
    (left / "in-use").touch()

    def after_another(real: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def called(folder: Path) -> Any:
            if folder == left:
                shutil.rmtree(left, ignore_errors=True)
            return real(folder)

        return called

    if moment == "locked":
        monkeypatch.setattr(module, "_locked", after_another(inside._locked))
    else:
        monkeypatch.setattr(Path, "lstat", after_another(Path.lstat))
    inside._remove_abandoned(tmp_path)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
