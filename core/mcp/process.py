"""The process of a server: started without holding the loop up, and ended with all that it started itself."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.os.win32.utilities import close_process_job, create_windows_process, terminate_windows_process_tree

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import IO

    from core.mcp.commands import Resolved

GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)
_LEAVING, _KILLED = 2.0, 2.0  # seconds
_POLL = 0.01


class Source(Protocol):
    """What a process writes."""

    def receive(self, max_bytes: int = ..., /) -> Coroutine[Any, Any, bytes]:
        """What is there, at most so much. Raises one of `GONE` where nothing comes any more."""
        ...


class Sink(Protocol):
    """What a process reads."""

    def send(self, item: bytes, /) -> Coroutine[Any, Any, None]:
        """Raises one of `GONE` where nobody reads any more."""
        ...


class Process(Protocol):
    """A process that was started here."""

    @property
    def stdin(self) -> Sink | None:
        """What it reads."""
        ...

    @property
    def stdout(self) -> Source | None:
        """What it says."""
        ...

    @property
    def stderr(self) -> Source | None:
        """What it writes beside."""
        ...

    @property
    def returncode(self) -> int | None:
        """`None` while it runs."""
        ...


async def started(command: Resolved, environment: dict[str, str], cwd: str | None) -> Process:
    """A process that runs, in a group of its own.

    Raises:
        OSError: It cannot be started.
    """
    if sys.platform == "win32":
        process: Any = await create_windows_process(
            command.program, list(command.args), environment, cast("Any", subprocess.PIPE), cwd
        )
        return process
    return _Posix(command, environment, cwd)


async def ended(process: Process) -> None:
    """Close its input, wait a moment, then end it and whatever it started; every wait has an end."""
    one = cast("Any", process)  # the SDK wants only its number, and whether it has ended
    await _closed(process.stdin)
    if not await _exited(process, _LEAVING):
        if sys.platform == "win32":
            await terminate_windows_process_tree(one)
        else:
            await terminate_posix_process_tree(one, _KILLED)
        await _exited(process, _KILLED)
    elif sys.platform != "win32":
        await terminate_posix_process_tree(one, _KILLED)  # what it started and left behind
    close_process_job(one)
    await _closed(process.stdout)
    await _closed(process.stderr)
    # On Windows a process that got away may hold a pipe open, and then asyncio's side of it would stay too.
    transport: Any = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        try:
            transport.close()
        except PermissionError:  # it runs as somebody else by now
            pass


class _Posix:
    """A process and our ends of its pipes.

    The loops' own ways to start one copy this process's tables first, or watch for its end by a thread: twenty
    milliseconds, and two to five, that nothing else on the loop has. This takes half a millisecond.
    """

    def __init__(self, command: Resolved, environment: dict[str, str], cwd: str | None) -> None:
        self._popen = subprocess.Popen(  # noqa: S603 - the owner's own command, and no shell
            [command.program, *command.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd=cwd,
            start_new_session=True,  # a group of its own, so that whatever it starts can be ended with it
        )
        self.stdin, self.stdout, self.stderr = (
            _Pipe(cast("IO[bytes]", end)) for end in (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        return self._popen.poll()


class _Pipe:
    """Our end of a pipe."""

    def __init__(self, end: IO[bytes]) -> None:
        os.set_blocking(end.fileno(), False)
        self._end = end

    async def receive(self, max_bytes: int = 65536, /) -> bytes:
        chunk = None
        while chunk is None:
            await anyio.wait_readable(self._open())
            chunk = self._end.read(max_bytes)  # nothing, where it was not readable after all
        if not chunk:
            raise anyio.EndOfStream
        return chunk

    async def send(self, item: bytes, /) -> None:
        left = memoryview(item)
        while left:
            await anyio.wait_writable(self._open())
            left = left[self._written(left) :]

    async def aclose(self) -> None:
        if not self._end.closed:
            anyio.notify_closing(self._end)
            self._end.close()

    def _written(self, data: memoryview) -> int:
        try:
            return os.write(self._open(), data)
        except BlockingIOError:
            return 0

    def _open(self) -> int:
        if self._end.closed:
            raise anyio.ClosedResourceError
        return self._end.fileno()


async def _exited(process: Process, seconds: float) -> bool:
    """Whether it ends in time. `wait` would also wait for the ends of pipes that others may hold."""
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110 - there is no event that says only this
            await anyio.sleep(_POLL)
        return True
    return False


async def _closed(stream: Any) -> None:
    if stream is not None:
        try:
            await stream.aclose()
        except GONE:
            pass
