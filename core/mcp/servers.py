"""The MCP servers of an application's owners: each with a state; one that fails hurts nobody else.

>>> servers = Servers(changed=tell_the_page)
>>> time = servers.of("owner").server("time", settings, approved=kept)
>>> await servers.tools_of([time])
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from core.bridge.sync import shared_loop
from core.errors import McpError, SignInNeededError
from core.mcp.results import messages_of
from core.mcp.session import Backoff, Session
from core.mcp.settings import resolve_command
from core.mcp.sign_in import NOBODY
from core.mcp.tools import MCPTool, resource_tools, tools_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from mcp_types import Prompt

    from core.mcp.forms import Elicit
    from core.mcp.journal import LogLine
    from core.mcp.settings import Resolved, ServerSettings
    from core.mcp.sign_in import SignIn
    from core.messages.message import Message
    from core.net.addresses import Reach
    from core.tools.base import BaseTool
    from core.tools.through import Through

_IDLE = 30 * 60.0  # seconds
_FORGOTTEN = 48  # times as long
_LOOKS = 4  # at who is idle, in that time
_TRIES = 8  # so often a server that has ended is started again, within some two minutes

State: TypeAlias = Literal["off", "connecting", "ready", "failed"]


class Server:
    """One server of one owner. It may be used from any loop; `OwnerServers.server` makes it.

    Args:
        settings: How to reach it.
        trusted: Whether what it says of its tools is believed.
        approved: Fingerprints of tools as the owner agreed to them, by the server's own names. Where there are none
            yet, the tools count as agreed to as they are listed first.
        reach: How far HTTP may go.
        elicit: Asks the user what the server wants to know; `None` forbids it to ask.
        sign_in: Who can be asked to sign in, and where tokens are kept.
        changed: Called on the shared loop, and told nothing, when anything here changes.
        through: What each use of it passes, see `Session`.
    """

    def __init__(  # noqa: PLR0913 - two that say which it is, the rest by name
        self,
        name: str,
        settings: ServerSettings,
        *,
        trusted: bool = False,
        approved: Mapping[str, str] | None = None,
        reach: Reach | None = None,
        elicit: Elicit | None = None,
        sign_in: SignIn = NOBODY,
        changed: Callable[[], None] | None = None,
        through: Through | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.trusted = trusted
        self.state: State = "off"
        self.error = ""
        self.failure: McpError | None = None
        self._approved: dict[str, str] | None = dict(approved) if approved else None
        self._tell = changed or (lambda: None)
        self._session = Session(
            name,
            settings,
            reach=reach,
            elicit=elicit,
            sign_in=sign_in,
            changed=self._session_changed,
            through=through,
        )
        self.asks = self._session.asks
        self._tools: list[BaseTool] = []
        self._work: asyncio.Task[None] | None = None
        self._recovery: asyncio.Task[None] | None = None
        self._backoff = Backoff()

    @property
    def tools(self) -> list[BaseTool]:
        """Its tools; those of a server that is being started again stay, for a call waits for it."""
        return list(self._tools) if self.state in {"ready", "connecting"} else []

    @property
    def needs_sign_in(self) -> bool:
        """Whether it failed because its owner must sign in; it is not tried again by itself then."""
        return isinstance(self.failure, SignInNeededError)

    @property
    def fingerprints(self) -> dict[str, str]:
        """What it says of each tool now, by its own names: what to keep when the owner agrees."""
        return {tool.own_name: tool.fingerprint for tool in self._tools if isinstance(tool, MCPTool)}

    @property
    def log(self) -> tuple[LogLine, ...]:
        """The last lines that it wrote beside its answers, without keys."""
        return self._session.journal.lines

    def hide(self, *secrets: str) -> None:
        """Let its log, its progress and what is said of its failures repeat none of these, besides its own."""
        self._session.journal.hide(*secrets)

    def resolved(self) -> Resolved | None:
        """The command with its whole path, to be shown before the first start; `None` for an address.

        Raises:
            ServerUnreachableError: There is no such program.
        """
        return resolve_command(self.settings) if self.settings.type == "stdio" else None

    def approve(self, fingerprints: Mapping[str, str]) -> None:
        """The owner agrees to tools as they are now; from here on they are asked for as any others."""
        if self._approved is None:
            self._approved = dict(fingerprints)
            self._list()
        else:
            self._approved.update(fingerprints)  # the tools look at it before each call

    async def start(self) -> None:
        """Connect, or wait for whoever does; afterwards the state is `ready` or `failed`. Raises nothing of its own."""
        await _on_shared_loop(self._started)

    async def health(self) -> float:
        """Seconds that it takes to answer.

        Raises:
            McpError: It does not answer; the state says so too.
        """
        if self.state != "ready":
            await self.start()
        if self.failure is not None:
            raise self.failure
        try:
            return await self._session.health()
        except McpError as error:
            failure = error
        await _on_shared_loop(lambda: self._failed(failure))
        raise failure

    async def prompts(self) -> list[Prompt]:
        """The prompts it offers. Raises McpError."""
        return await self._session.prompts()

    async def prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> list[Message]:
        """A prompt, filled in, as messages of users and assistants. Raises McpError."""
        return messages_of(await self._session.prompt(name, dict(arguments or {})))

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now: one that rests is ready without."""
        return self._session.is_open

    @property
    def idle_for(self) -> float:
        """Seconds since one of its tools was called, or it was started."""
        return self._session.idle_for

    async def rest(self) -> None:
        """End the connection, and the process; its tools stay, and the next call of one starts it again."""
        if self.state == "ready":
            await self._session.rest()

    async def aclose(self) -> None:
        """End it, and the process that was started for it; the state is `off` then."""
        await _on_shared_loop(self._closed)

    # -- on the shared loop

    async def _started(self) -> None:
        if self.state == "ready" and self._session.is_open:
            return
        recovers = self._recovery is not None and not self._recovery.done()
        if self._recovery is not None:
            self._recovery.cancel()  # whoever asks does not wait for its turn
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._connect(), name=f"connecting the MCP server {self.name}")
        work, me = self._work, asyncio.current_task()
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            if not work.cancelled() or (me is not None and me.cancelling()):
                raise
            return  # it was closed meanwhile, which cancels no one who only waits for it
        if recovers and self.state == "failed" and not self.needs_sign_in:
            self._recover_later()

    async def _connect(self) -> None:
        self._say("connecting")
        try:
            await self._session.open()
        except McpError as error:
            await self._failed(error)
            return
        self._list()
        self._say("ready")

    async def _failed(self, error: McpError) -> None:
        self.failure, self.error = error, str(error)
        self._say("failed")

    async def _closed(self) -> None:
        self.state = "off"  # first, so that losing the connection starts nothing
        working = [task for task in (self._work, self._recovery) if task is not None and not task.done()]
        for task in working:
            task.cancel()
        if working:
            await asyncio.wait(working, timeout=1.0)
        self._work = self._recovery = None
        await self._session.aclose()
        self._tools = []
        self._say("off")

    def _session_changed(self) -> None:
        """The tools are other ones, or the connection is lost: then it is started again."""
        if self._session.is_open:
            self._list()
            self._tell()
        elif self.state == "ready":
            self._recover_later()

    def _recover_later(self) -> None:
        if self._recovery is None or self._recovery.done() or self._recovery.cancelling():
            self._recovery = asyncio.create_task(self._recover(), name=f"starting the MCP server {self.name} again")

    async def _recover(self) -> None:
        """At once the first time, then after growing waits, until it is there again, closed, or tried often enough."""
        for _ in range(_TRIES):
            self._backoff.failed()
            if (seconds := self._backoff.wait) > 0:
                self.error = f"The MCP server {self.name!r} has ended; it is started again in {seconds:.0f} seconds."
                self._say("failed")
                await asyncio.sleep(seconds)
            self._backoff.call_started()
            await self._connect()
            if self.state == "ready" or self.needs_sign_in:
                return

    def _list(self) -> None:
        if self._approved is None and self._session.tools:
            self._approved = {tool.name: self._session.print_of(tool.name) for tool in self._session.tools}
        own = tools_of(self._session, trusted=self.trusted, approved=self._approved)
        self._tools = [*own, *resource_tools(self._session, trusted=self.trusted)]

    def _say(self, state: State) -> None:
        if state in {"ready", "off", "connecting"}:
            self.failure, self.error = None, ""
        self.state = state
        self._tell()


class Servers:
    """The servers of all owners: `of` hands out those of one.

    They are not closed with what else an owner has open: one that nobody calls is only disconnected, and stays known
    with its tools and what was agreed to, so that the next call connects it again.

    Args:
        elicit: Asks the owner what a server wants to know; `None` forbids asking.
        changed: Called on the shared loop with (owner, name) when a server's state or tools change.
        idle: Seconds after which one that nobody calls is disconnected; the next call connects it again. One that
            nobody has called for many times as long is forgotten.
    """

    def __init__(
        self,
        *,
        idle: float = _IDLE,
        elicit: Elicit | None = None,
        changed: Callable[[str, str], None] | None = None,
    ) -> None:
        self.elicit = elicit
        self._changed = changed
        self._servers: dict[tuple[str, str], Server] = {}
        self._old: set[asyncio.Task[None]] = set()
        self._idle = idle
        self._timer: asyncio.TimerHandle | None = None

    def of(self, owner: str) -> OwnerServers:
        """Those of one owner."""
        return OwnerServers(self, owner)

    async def tools_of(self, servers: Iterable[Server]) -> list[BaseTool]:
        """The tools of servers, in order; those that do not run yet are started at the same time.

        A server that fails has none, and says why in `error`.
        """
        wanted = list(servers)
        # One that failed is tried again by whoever asks for it, or by itself: not by each question of a chat.
        await asyncio.gather(*(server.start() for server in wanted if server.state in {"off", "connecting"}))
        return [tool for server in wanted for tool in server.tools]

    async def aclose(self) -> None:
        """End all of them."""
        servers, self._servers = list(self._servers.values()), {}
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*(server.aclose() for server in servers), *self._old)

    # -- for `OwnerServers`; a key is the owner and the server's name

    def known(self, key: tuple[str, str]) -> Server | None:
        """One that was made already."""
        return self._servers.get(key)

    def put(self, key: tuple[str, str], server: Server) -> None:
        """Keep one, and end the one that it replaces."""
        if (before := self._servers.get(key)) is not None:
            self._let_go(before)
        self._servers[key] = server
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._idle / _LOOKS, self._tidy)

    def forget(self, key: tuple[str, str]) -> Server | None:
        """Take one out; it goes on until it is closed."""
        return self._servers.pop(key, None)

    def tell(self, key: tuple[str, str]) -> None:
        """One has changed."""
        if self._changed is not None:
            self._changed(*key)

    # -- inside

    def _tidy(self) -> None:
        """Disconnect what nobody uses, and look again later."""
        for key, server in list(self._servers.items()):
            if server.idle_for > self._idle * _FORGOTTEN:
                self._let_go(self._servers.pop(key))
            elif server.idle_for > self._idle and server.is_connected:
                self._later(server.rest())
        self._timer = None
        if self._servers:
            self._timer = asyncio.get_running_loop().call_later(self._idle / _LOOKS, self._tidy)

    def _let_go(self, server: Server) -> None:
        self._later(server.aclose())

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._old.add(task)
        task.add_done_callback(self._old.discard)


class OwnerServers:
    """The servers of one owner, by name; it cannot name another's."""

    def __init__(self, servers: Servers, owner: str) -> None:
        self._servers = servers
        self._owner = owner

    def server(  # noqa: PLR0913 - the name, the rest by name
        self,
        name: str,
        settings: ServerSettings,
        *,
        trusted: bool = False,
        approved: Mapping[str, str] | None = None,
        reach: Reach | None = None,
        asks: bool = True,
        sign_in: SignIn = NOBODY,
        through: Through | None = None,
    ) -> Server:
        """One of them: the one that runs already where it is reached in the same way. Nothing is started.

        Args:
            settings: How to reach it.
            trusted: Whether what it says of its tools is believed.
            approved: Fingerprints of tools as the owner agreed to them.
            reach: How far HTTP may go: `Reach()` for the open internet alone, `None` for anywhere.
            asks: Whether it may ask the owner things, where anything may.
            sign_in: Who can be asked to sign in, and where tokens are kept; of one that runs already it stays.
            through: What each use of it passes; the server is known by the name that this has for rules, then.
        """
        key = self._owner, through.rules if through is not None else name
        known = self._servers.known(key)
        elicit = self._servers.elicit if asks else None
        wanted = settings, trusted, elicit is not None
        if known is not None and (known.settings, known.trusted, known.asks) == wanted:
            if approved:
                known.approve(approved)
            return known
        server = Server(
            name,
            settings,
            trusted=trusted,
            approved=approved,
            reach=reach,
            elicit=elicit,
            sign_in=sign_in,
            changed=partial(self._servers.tell, key),
            through=through,
        )
        self._servers.put(key, server)
        return server

    def known(self, name: str) -> Server | None:
        """One that was made already."""
        return self._servers.known((self._owner, name))

    async def end(self, name: str) -> None:
        """End a server, and forget it."""
        server = self._servers.forget((self._owner, name))
        if server is not None:
            await server.aclose()


async def _on_shared_loop(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop = shared_loop()
    if asyncio.get_running_loop() is loop:
        await make()
    else:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), loop))
