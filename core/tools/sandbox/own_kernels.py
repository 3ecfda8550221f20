"""Kernels for a program that uses the library: one set for the process, on the shared loop, gone when it ends."""

from __future__ import annotations

import asyncio
import atexit
from functools import cache
from typing import TYPE_CHECKING

from core.bridge.sync import run, shared_loop
from core.tools.sandbox.kernels import Kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from core.tools.sandbox.results import CodeResult


async def run_here(
    key: str, code: str, files: Mapping[str, Path], timeout: float, progress: Callable[..., None] | None
) -> CodeResult:
    """Run code in this process's own kernels, from any loop. Raises ToolError."""
    work = _kernels().run(key, code, files=files, timeout=timeout, progress=progress)
    loop = shared_loop()
    if asyncio.get_running_loop() is loop:
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


@cache
def _kernels() -> Kernels:
    made = Kernels()
    shared_loop()  # it ends at exit as well: what is registered later ends sooner
    atexit.register(_close, made)
    return made


def _close(kernels: Kernels) -> None:
    run(kernels.aclose())
