"""One MCP server: a task of its own opens, uses and closes the client, and reopens it after growing waits."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from mcp import Client, MCPError
from mcp_types import Implementation, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from core.bridge.sync import shared_loop
from core.errors import ServerMisbehavedError, ServerUnreachableError
from core.mcp.authorization import Authorization
from core.mcp.complaints import FAILURES, ErrorTranslator, is_forgotten
from core.mcp.forms import Asker
from core.mcp.journal import ServerLog
from core.mcp.results import has_resources, listed_prompts, listed_resources, listed_tools
from core.mcp.settings import fingerprint, resolve_command
from core.mcp.sign_in import NOBODY
from core.mcp.web import opened_transport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from mcp_types import CallToolResult, GetPromptResult, Prompt, ReadResourceResult, Resource, ResourceTemplate, Tool

    from core.mcp.forms import Caller, Elicit
    from core.mcp.settings import ServerSettings
    from core.mcp.sign_in import SignIn
    from core.net.addresses import Reach
    from core.tools.through import Through


_FIRST, _LONGEST = 1.0, 60.0  # seconds
_STEADY = 60.0  # seconds alive after which a server counts as healthy again


class Backoff:
    """Counts the deaths of one server.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._deaths = 0
        self._begun = self._next = clock()

    def call_started(self) -> None:
        """The server is started now."""
        self._begun = self._clock()

    def failed(self) -> None:
        """It could not be started, or has died."""
        now = self._clock()
        self._deaths = 1 if now - self._begun > _STEADY else self._deaths + 1
        self._next = now + (0 if self._deaths == 1 else min(_FIRST * 2 ** min(self._deaths - 2, 10), _LONGEST))

    @property
    def wait(self) -> float:
        """Seconds until it may be started again; 0 for at once."""
        return max(0.0, self._next - self._clock())


_APART = 0.5  # seconds between two lists: a server that says "changed" without end is not listed without end


class Changes:
    """Follows one connection.

    Args:
        refresh: Lists the tools anew.
    """

    def __init__(self, refresh: Callable[[], Awaitable[None]]) -> None:
        self._refresh = refresh
        self._heard = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def heard(self, message: object) -> None:
        """Takes every notification of the server."""
        if isinstance(message, ToolListChangedNotification):
            self._heard.set()

    def follow(self, client: Client) -> None:
        """Begin; newer servers want to be asked for such news."""
        self._tasks.append(asyncio.create_task(self._listing()))
        tools = client.server_capabilities.tools
        if tools is not None and tools.list_changed and client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            self._tasks.append(asyncio.create_task(self._listening(client)))

    async def aclose(self) -> None:
        """Follow no more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    async def _listing(self) -> None:
        while True:
            await self._heard.wait()
            self._heard.clear()
            await self._refresh()
            await asyncio.sleep(_APART)

    async def _listening(self, client: Client) -> None:
        try:
            subscription: Any
            async with client.listen(tools_list_changed=True) as subscription:
                async for _ in subscription:
                    self._heard.set()
        except (MCPError, RuntimeError, OSError, TimeoutError):
            return  # it does not tell after all, or is gone, which shows at the next call


T = TypeVar("T")

_CLOSING_SECONDS = 8.0
_WE = Implementation(name="parlour", version="1")


class Session:
    """A connection to one server. Everything happens on the shared loop; callers may be on any thread or loop.

    Sampling and roots are never offered to a server. Elicitation is where `elicit` is given; without it the capability
    is not announced, and a server that asks all the same is refused.

    Args:
        name: The server's name, for messages.
        settings: How to reach it.
        reach: How far HTTP may go; anywhere if left out, as for a program's own servers.
        elicit: Asks the user for what a server wants to know: `await elicit(server, message, schema)` gives the values
            by name, or `None` for a no. It is called on the shared loop; meanwhile no call of this server runs out of
            time. The schema is a flat JSON Schema of an object.
        sign_in: Who can be asked to sign in, and where tokens are kept; meanwhile no time runs out.
        changed: Called on the shared loop when the tools are other ones, and when the connection is lost.
        through: What each use of the server passes; nothing if left out.
    """

    def __init__(  # noqa: PLR0913 - which it is, the rest by name
        self,
        name: str,
        settings: ServerSettings,
        *,
        reach: Reach | None = None,
        elicit: Elicit | None = None,
        sign_in: SignIn = NOBODY,
        changed: Callable[[], None] | None = None,
        through: Through | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self._through = through
        self._tools: tuple[Tool, ...] = ()
        self._by_name: dict[str, Tool] = {}
        self._prints: dict[str, str] = {}
        self.has_resources = self.has_prompts = False
        self.journal = ServerLog(settings.secrets)
        self.asks = elicit is not None
        self._reach = reach
        self._complaints = ErrorTranslator(name, settings, self.journal)
        self._asker = Asker(name, elicit, self.journal.hidden if through is not None else None)
        self._sign_in = sign_in
        self._changed = changed or (lambda: None)
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._closings = 0  # what was to be opened before one of them is not opened after it
        self._leave, self._gone = asyncio.Event(), asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        self._backoff = Backoff()
        self._wanted = False  # opened once, and not closed since: a call may open it again
        self._asking = 0
        self._used = time.monotonic()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """As the server listed them last."""
        return self._tools

    @tools.setter
    def tools(self, found: tuple[Tool, ...]) -> None:
        self._tools, self._by_name = found, {tool.name: tool for tool in found}
        self._prints = {tool.name: fingerprint(tool) for tool in found}

    @property
    def rules(self) -> str:
        """What stands for the server in the names of its tools that rules know."""
        return self.name if self._through is None else self._through.rules

    @property
    def is_open(self) -> bool:
        """Whether the client is there."""
        return self._client is not None

    def tool(self, own_name: str) -> Tool | None:
        """A tool as the server lists it now."""
        return self._by_name.get(own_name)

    def print_of(self, own_name: str) -> str:
        """The fingerprint of a tool as the server lists it now; "" where it lists none."""
        return self._prints.get(own_name, "")

    @property
    def keep_alive(self) -> bool:
        """Whether it was opened, and not closed since: where the server has died, the next call starts it again."""
        return self._wanted

    async def open(self) -> None:
        """Start or reach the server and list its tools.

        Raises:
            ServerUnreachableError: It cannot be started or reached, or does not answer in time.
            ServerMisbehavedError: It answers, but not in the protocol.
        """
        await self._on_loop(self._open)
        self._wanted = True

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        progress: Callable[..., None] | None = None,
        again: bool = False,
        agreed: str = "",
        caller: Caller | None = None,
    ) -> CallToolResult:
        """Run a tool. The call is cancelled on the server when the caller is.

        Args:
            tool: The server's own name for it.
            arguments: For the tool.
            progress: Told how far it is: text, done, total.
            again: Whether the call may be made a second time where the server dies during it.
            agreed: The tool's fingerprint when the call was agreed to: a server that was started again meanwhile, and
                now says something else of it, is not called.
            caller: Whom the server may ask during the call, where it may ask at all; else `elicit` is called.

        Raises:
            ServerUnreachableError: The server has died, and cannot be had again, or may not be asked twice.
            ServerMisbehavedError: The answer breaks the protocol, comes too late, or is an error of the server; the
                tool is not what was agreed to.
        """
        tell = progress

        async def told(progress: float, total: float | None, message: str | None) -> None:  # the SDK's names
            if tell is not None:
                tell(self.journal.clean(message or ""), progress, total)

        def send(client: Client) -> Awaitable[CallToolResult]:
            if agreed and self.print_of(tool) not in {agreed, ""}:
                raise ServerMisbehavedError(
                    f"The MCP server {self.name!r} has changed this tool meanwhile; call it again.", name=self.name
                )
            return client.call_tool(tool, arguments, progress_callback=told if tell is not None else None)

        return await self._passed(lambda: self._asked(send, again=again, caller=caller))

    async def resources(self) -> list[Resource | ResourceTemplate]:
        """What can be read, and what by a pattern of addresses. Raises as `call`."""
        if not self.has_resources:
            return []
        return await self._passed(lambda: self._asked(listed_resources, again=True))

    async def read(self, uri: str) -> ReadResourceResult:
        """A resource. Raises as `call`."""
        return await self._passed(lambda: self._asked(lambda client: client.read_resource(uri), again=True))

    async def prompts(self) -> list[Prompt]:
        """The prompts it offers. Raises as `call`."""
        if not self.has_prompts:
            return []
        return await self._passed(lambda: self._asked(listed_prompts, again=True))

    async def prompt(self, name: str, arguments: dict[str, str]) -> GetPromptResult:
        """A prompt, filled in. Raises as `call`."""
        return await self._passed(lambda: self._asked(lambda client: client.get_prompt(name, arguments), again=True))

    async def health(self) -> float:
        """Seconds that the server takes to answer the simplest question. Raises as `call`."""
        before = time.perf_counter()
        await self._on_loop(lambda: self._asked(lambda client: client.list_tools(cache_mode="bypass"), again=True))
        return time.perf_counter() - before

    @property
    def idle_for(self) -> float:
        """Seconds since it was asked anything; 0 while it is."""
        return 0.0 if self._asking else time.monotonic() - self._used

    async def rest(self) -> None:
        """End the connection until somebody asks again, as after the server has died; nothing while it is asked."""
        await self._on_loop(self._rested)

    async def aclose(self) -> None:
        """End the connection, and the process that was started for it."""
        self._wanted = False
        await self._on_loop(self._ended)

    # -- on the shared loop ---------------------------------------------------------------------------------------

    async def _open(self) -> None:
        """Open, or wait for whoever opens it already."""
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(
                self._opened(self._closings), name=f"opening the MCP server {self.name}"
            )
            self._opening.add_done_callback(lambda task: task.cancelled() or task.exception())  # somebody may not wait
        await asyncio.shield(self._opening)

    async def _rested(self) -> None:
        if self._asking or self._client is None:
            return
        self._client = None  # first: who asks from now on opens another, once this one is closed
        self._gone.set()
        await self._close()

    async def _opened(self, closings: int) -> None:
        if self._client is not None:
            return
        self._used = time.monotonic()
        await self._close()
        closed = self._complaints.unreachable("was closed before it was there")
        if closings != self._closings:
            raise closed
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ready.add_done_callback(lambda future: future.cancelled() or future.exception())  # nobody may wait any more
        self._leave, self._gone, self._scope = asyncio.Event(), asyncio.Event(), anyio.CancelScope()
        self._backoff.call_started()
        self._owner = asyncio.create_task(self._own(ready), name=f"MCP server {self.name}")
        self._owner.add_done_callback(lambda task: _pass_on(task, ready, closed))
        try:
            async with asyncio.timeout(self.settings.connect_timeout) as clock:
                with self._asker.during(clock, None):
                    await asyncio.shield(ready)
        except TimeoutError:
            raise self._complaints.late() from None
        finally:
            if not ready.done() or ready.cancelled() or ready.exception() is not None:
                self._backoff.failed()
                await self._close()

    async def _own(self, ready: asyncio.Future[None]) -> None:
        """Open the client, wait until it is to go, close it: in one task, as its cancel scopes demand."""
        with self._scope or anyio.CancelScope():
            try:
                async with AsyncExitStack() as opened:
                    self._client = await self._connected(opened)
                    if not ready.done():
                        ready.set_result(None)
                    await _first(self._leave.wait(), self._gone.wait())
                    if self._gone.is_set():
                        self._lost()
                    self._client = None
            except FAILURES as error:
                if ready.done():
                    self._lost()
                else:
                    ready.set_exception(self._complaints.translated(error, starting=True))
            finally:
                self._client = None

    def _lost(self) -> None:
        """The server has died, or forgotten us: noted once, at whichever place shows it first."""
        if self._client is None or self._leave.is_set():
            return
        self._client = None
        self._gone.set()  # the owner closes what is left
        self._backoff.failed()
        self._changed()

    async def _connected(self, opened: AsyncExitStack) -> Client:
        """A client that `opened` closes, with the server's tools listed."""
        command = resolve_command(self.settings) if self.settings.type == "stdio" else None
        transport = opened_transport(
            self.settings, command, reach=self._reach, journal=self.journal, gone=self._gone.set, auth=self._auth()
        )
        changes = Changes(self._refresh)
        client = await opened.enter_async_context(
            Client(
                transport,
                client_info=_WE,
                elicitation_callback=self._asker.answer if self.asks else None,
                logging_callback=self._noted,
                message_handler=changes.heard,
            )
        )
        offered = client.server_capabilities
        self.has_prompts = offered.prompts is not None
        self.has_resources = await has_resources(client, self.journal)
        self.tools = await listed_tools(client)
        opened.push_async_callback(changes.aclose)
        changes.follow(client)
        return client

    def _auth(self) -> Authorization | None:
        if not self.settings.may_sign_in:
            return None
        return Authorization(
            self.name,
            self.settings,
            sign_in=self._sign_in,
            reach=self._reach,
            journal=self.journal,
            waiting=self._asker.standing,
        )

    async def _refresh(self) -> None:
        """List the tools anew, because the server says that they are other ones."""
        if self._client is None:
            return
        try:
            async with asyncio.timeout(self.settings.timeout):
                found = await listed_tools(self._client)
        except (*FAILURES, TimeoutError) as error:
            self.journal.note(f"Its changed list of tools cannot be read: {error}")
            return
        if found != self.tools:
            self.tools = found
            self._changed()

    async def _asked(self, send: Callable[[Client], Awaitable[T]], *, again: bool, caller: Caller | None = None) -> T:
        """Ask the server, within its time; where it died before or has forgotten us, once more after opening anew."""
        self._asking += 1
        try:
            return await self._asked_once_or_twice(send, again=again, caller=caller)
        finally:
            self._asking -= 1
            self._used = time.monotonic()

    async def _asked_once_or_twice(
        self, send: Callable[[Client], Awaitable[T]], *, again: bool, caller: Caller | None
    ) -> T:
        for is_last in (not again, True):
            client = await self._alive()
            try:
                async with asyncio.timeout(self.settings.timeout) as clock:
                    with self._asker.during(clock, caller):
                        return await send(client)
            except TimeoutError:
                seconds = f"{self.settings.timeout:g} seconds"
                raise ServerMisbehavedError(
                    f"The MCP server {self.name!r} did not answer in {seconds}.", name=self.name
                ) from None
            except FAILURES as error:
                failure = self._complaints.translated(error)
                if isinstance(failure, ServerUnreachableError):
                    if client is self._client:  # nobody has opened it anew meanwhile
                        self._lost()
                    if not is_last or is_forgotten(error):
                        continue
                raise failure from error
        raise self._complaints.unreachable("has ended or cannot be reached")

    async def _alive(self) -> Client:
        """The client; where the server has died it is started again, at once the first time, then less and less."""
        if self._client is None:
            if not self._wanted:
                raise self._complaints.unreachable("is not connected")
            if (seconds := self._backoff.wait) > 0:
                raise self._complaints.unreachable(f"has ended, and is started again in {seconds:.0f} seconds")
            await self._open()
            self._changed()  # it may list other tools than before
        if self._client is None:
            raise self._complaints.unreachable("has ended or cannot be reached")
        return self._client

    async def _ended(self) -> None:
        self._closings += 1
        await self._close()

    async def _close(self) -> None:
        owner = self._owner
        if owner is None or owner is asyncio.current_task():
            return
        connected = self._client is not None
        self._leave.set()
        if connected or self._gone.is_set():
            await asyncio.wait({owner}, timeout=_CLOSING_SECONDS)
        if not owner.done() and self._scope is not None:
            self._scope.cancel()
            await asyncio.wait({owner}, timeout=_CLOSING_SECONDS)

    # -- inside ---------------------------------------------------------------------------------------------------

    async def _passed(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._through is None:
            return await self._on_loop(make)
        return await self._through(lambda: self._on_loop(make))

    async def _on_loop(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        loop = shared_loop()
        if asyncio.get_running_loop() is loop:
            return await make()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))

    async def _noted(self, params: Any) -> None:
        self.journal.write(f"{params.level}: {params.data}")


async def _first(*waiting: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of them is done; the others are cancelled."""
    tasks = [asyncio.ensure_future(one) for one in waiting]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _pass_on(owner: asyncio.Task[None], ready: asyncio.Future[None], closed: Exception) -> None:
    """Whoever waits for the server hears of an owner that ended before it was ready."""
    error = None if owner.cancelled() else owner.exception()
    if not ready.done():
        ready.set_exception(error or closed)
