"""Talks with a server over the standard input and output of a process; nothing the process writes can do harm.

The reader takes lines of a bounded length, passes over what is not of the protocol, and slows a server down that
floods: its own pipe fills up, and nobody else waits.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
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

from core.mcp.lines import Lines, Meter, TooLong
from core.mcp.process import GONE, ended, started

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from core.mcp.commands import Resolved
    from core.mcp.journal import Journal
    from core.mcp.process import Process

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
    command: Resolved, environment: dict[str, str], cwd: str | None, journal: Journal, gone: Callable[[], None]
) -> AsyncGenerator[tuple[Any, Any]]:
    """Start a process and yield the two streams that the client reads from and writes to.

    Args:
        command: What to start.
        environment: All its variables.
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
        self, process: Process, journal: Journal, to_client: MemoryObjectSendStream[Any], gone: Callable[[], None]
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
                    self._journal.write(line.decode("utf-8", "replace"))
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
