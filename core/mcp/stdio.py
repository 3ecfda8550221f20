"""Talks with a server over a process's standard input and output; nothing the process writes can do harm.

Lines are read in linear time and bounded length; a flood fills the server's own pipe, and nobody else waits.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.os.win32.utilities import close_process_job, create_windows_process, terminate_windows_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
    from typing import IO

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from core.mcp.journal import ServerLog
    from core.mcp.settings import Resolved


_SHOWN = 256  # bytes kept of a line that is too long


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line that was given up: what it began with."""

    head: bytes


class Lines:
    """Cuts a stream into lines.

    Args:
        most: Bytes of a line; of a longer one only the head is given, at once, and the rest is passed over.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_passing = False  # over the rest of a line that is too long

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that are whole with this chunk, without their ends."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            yield from self._add(piece)
            if not self.is_passing:
                yield b"".join(self._pieces).removesuffix(b"\r")
            self._begin()
        if rest:
            yield from self._add(rest)

    def _add(self, piece: bytes) -> Iterator[TooLong]:
        if self.is_passing:
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self._most:
            head = b"".join(self._pieces)[:_SHOWN]
            self._begin()
            self.is_passing = True
            yield TooLong(head)

    def _begin(self) -> None:
        self._pieces, self._size, self.is_passing = [], 0, False


class Meter:
    """Lets through so many in a second, and a heap of them at once now and then.

    Args:
        rate: How many in a second, for ever.
        heap: How many at once after a silence.
        clock: Gives seconds.
    """

    def __init__(self, rate: float, heap: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._heap, self._clock = rate, heap, clock
        self._left, self._when = heap, clock()

    def take(self) -> bool:
        """Whether one more may pass."""
        now = self._clock()
        self._left = min(self._heap, self._left + (now - self._when) * self._rate)
        self._when = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


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


LONGEST_MESSAGE = 16 * 1024 * 1024  # bytes: a picture of ten megabytes fits
_TOO_LARGE = -32603
_UNREADABLE = -32700
_HEAD = 256  # bytes of a line that cannot be read
_CHUNK = 64 * 1024
_UNASKED_A_SECOND, _UNASKED_AT_ONCE = 200, 400  # notifications and questions of the server
_MOST_UNWANTED = 500  # lines passed over before the reader rests
_MOST_CHUNKS = 16  # of a line that is too long, before it rests: a megabyte
_REST = 0.02  # seconds
_FLUSHED = 0.5  # seconds
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")')


@asynccontextmanager
async def process_transport(
    command: Resolved, environment: dict[str, str], cwd: str | None, journal: ServerLog, gone: Callable[[], None]
) -> AsyncGenerator[tuple[Any, Any]]:
    """Start a process and yield the two streams that the client reads from and writes to.

    Args:
        cwd: The folder that it starts in.
        journal: Takes what it writes on its error output, and what it writes by mistake on the other.
        gone: Called when the process says no more.

    Raises:
        OSError: It cannot be started.
    """
    process = await started(command, environment, cwd)
    # Nothing is awaited until the task group is entered: being cancelled in between would leave the process alone.
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    talk = _Talk(process, journal, to_client, gone)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.read)
        tasks.start_soon(talk.write, from_client)
        tasks.start_soon(talk.note)
        try:
            yield from_server, to_server
        finally:
            with anyio.CancelScope(shield=True):  # it must end, or the process would stay
                from_server.close()
                to_server.close()
                with anyio.move_on_after(_FLUSHED):
                    await talk.written.wait()
                await ended(process)
            tasks.cancel_scope.cancel()
    to_client.close()
    from_client.close()


class _Talk:
    """Both directions of one process."""

    def __init__(
        self, process: Process, journal: ServerLog, to_client: MemoryObjectSendStream[Any], gone: Callable[[], None]
    ) -> None:
        self._process = process
        self._gone = gone
        self._journal = journal
        self._to_client = to_client
        self._asked: set[str | int] = set()
        self._meter = Meter(_UNASKED_A_SECOND, _UNASKED_AT_ONCE)
        self._unwanted = 0
        self._told = False
        self.written = anyio.Event()

    async def read(self) -> None:
        """Pass on what the server says until it says no more; afterwards only empty the pipe, so that it can end."""
        stdout = self._process.stdout
        if stdout is None:
            return
        lines = Lines(LONGEST_MESSAGE)
        listens = True
        try:
            while True:
                chunk = await stdout.receive(_CHUNK)
                if not listens:
                    continue
                for line in lines.feed(chunk):
                    message = self._message(line)
                    if message is not None and not await self._passed(message):
                        listens = False
                        break
                if lines.is_passing:
                    self._unwanted += 1
                if self._unwanted >= (_MOST_CHUNKS if lines.is_passing else _MOST_UNWANTED):
                    self._unwanted = 0
                    await anyio.sleep(_REST)
        except GONE:
            pass
        finally:
            self._to_client.close()
            self._gone()

    async def write(self, from_client: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Pass on what the client says."""
        stdin = self._process.stdin
        try:
            async with from_client:
                async for outgoing in from_client:
                    message = outgoing.message
                    if isinstance(message, JSONRPCRequest):
                        self._asked.add(message.id)
                    elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
                        self._asked.discard((message.params or {}).get("requestId", ""))
                    data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                    if stdin is not None:
                        await stdin.send(data)
        except GONE:
            self._to_client.close()  # the client hears that the connection is over, instead of waiting
        finally:
            self.written.set()

    async def note(self) -> None:
        """Keep the last lines of the error output."""
        stderr = self._process.stderr
        if stderr is None:
            return
        lines = Lines(_CHUNK)
        try:
            while True:
                chunk = await stderr.receive(_CHUNK)
                found = [line.head if isinstance(line, TooLong) else line for line in lines.feed(chunk)]
                for line in found[-100:]:
                    self._journal.write(line.decode("utf-8", "replace"), is_error=True)
                if len(chunk) == _CHUNK:
                    await anyio.sleep(_REST)
        except GONE:
            return

    async def _passed(self, message: JSONRPCMessage) -> bool:
        try:
            await self._to_client.send(SessionMessage(message))
        except GONE:
            return False
        return True

    def _message(self, line: bytes | TooLong) -> JSONRPCMessage | None:
        """What a line says; `None` where nobody wants to hear it."""
        if isinstance(line, TooLong):
            return self._given_up(line.head)
        if not line.strip():
            return None
        if b'"id"' not in line and not self._meter.take():  # a flood is not even read
            return self._passed_over("It sends more notifications than can be read; most are passed over.")
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValueError, RecursionError) as error:
            return self._unread(line, error)
        match message:
            case JSONRPCResponse() | JSONRPCError():
                if message.id not in self._asked:  # nobody asked, or it was answered already
                    self._unwanted += 1
                    return None
                self._asked.discard(message.id)
            case JSONRPCRequest():
                if not self._meter.take():
                    return self._passed_over("It asks more than can be answered; most is passed over.")
            case JSONRPCNotification():
                pass
        return message

    def _passed_over(self, why: str) -> None:
        self._unwanted += 1
        if not self._told:
            self._told = True
            self._journal.note(why)

    def _unread(self, line: bytes, error: Exception) -> JSONRPCMessage | None:
        head = line[:_HEAD]
        if "recursion" in str(error) and _ID.search(head) and (number := self._answered(head)) is not None:
            return _failed(number, _UNREADABLE, "the answer is nested too deep")
        self._journal.write(line[:1000].decode("utf-8", "replace"))  # often a greeting: it belongs among the logs
        self._unwanted += 1
        return None

    def _given_up(self, head: bytes) -> JSONRPCMessage | None:
        """An answer that is too large fails its call, where it can be seen which one it answers."""
        limit = LONGEST_MESSAGE // 1024 // 1024
        self._journal.note(f"It sent more than {limit} MB at once, which was not read.")
        number = self._answered(head)
        return None if number is None else _failed(number, _TOO_LARGE, f"the answer is larger than {limit} MB")

    def _answered(self, head: bytes) -> str | int | None:
        """Which question is answered by a line that cannot be read, by what it begins with; it is then no longer open.

        `None` where that cannot be seen, or nobody asked.
        """
        found = _ID.search(head)
        if found is None:
            number = next(iter(self._asked)) if len(self._asked) == 1 else None
        else:
            number = int(found[1]) if found[1].isdigit() else found[1][1:-1].decode("utf-8", "replace")
        if number is None or number not in self._asked:
            return None
        self._asked.discard(number)
        return number


def _failed(number: str | int, code: int, why: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=why))
