"""The MCP servers of owners at work: what may be started, what was agreed to, who signs in, and their tools."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from core.bridge.pool import BoundedDict
from core.errors import NotFoundError, SettingsError, StorageError
from core.mcp.journal import rule_name
from core.mcp.settings import ServerSettings
from core.mcp.sign_in import KeptTokens, SignIn
from core.net.addresses import Reach
from core.storage.base import LOCAL_OWNER
from core.storage.mcp_servers import reached
from core.toolbox.server_form import (
    OwnServer,
    checked,
    found_command,
    is_same_place,
    nobody,
    not_here,
    offered_tools,
    pasted,
    refusal,
    running_as,
    state_of,
    trouble_of,
    why_failed,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from core.mcp.servers import OwnerServers, Server, Servers
    from core.mcp.sign_in import Ask
    from core.settings import Settings
    from core.storage.mcp_servers import McpServer, McpServerStore
    from core.storage.stores import OwnerStores, Stores
    from core.toolbox.server_form import ServerDraft, State, Trouble
    from core.tools.base import BaseTool

_LOG = logging.getLogger(__name__)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class PendingSignIn:
    """One sign-in that is under way.

    Args:
        server_id: To which server.
    """

    def __init__(self, owner: str, server_id: str, redirect_uri: str) -> None:
        self.owner = owner
        self.server_id = server_id
        self.redirect_uri = redirect_uri
        self.address: Future[str] = Future()  # of the page to sign in on; set on the shared loop
        self.answer: Future[str] = Future()  # where the browser was sent back to; set on the page's loop

    @property
    def state(self) -> str:
        """Names the question; "" before there is one, and after its answer."""
        if not self.address.done() or self.answer.done():
            return ""
        return next(iter(parse_qs(urlsplit(self.address.result()).query).get("state", [])), "")

    async def address_or(self, started: asyncio.Task[None]) -> str:
        """The address, as soon as there is one; "" where the server was started, or not, without it."""
        asked = asyncio.wrap_future(self.address)
        await asyncio.wait({started, asked}, return_when=asyncio.FIRST_COMPLETED)
        return asked.result() if asked.done() else ""

    async def ask(self, address: str) -> str:
        """Tell the page the address, and wait for the answer."""
        self.address.set_result(address)
        return await asyncio.wrap_future(self.answer)


class SignIns:
    """The sign-ins of one owner that are under way, at most one for each server.

    Args:
        under_way: Those of all owners, by the server's id; each ends when its answer came, or the server stops waiting.
    """

    def __init__(self, owner: str, store: McpServerStore, under_way: dict[str, PendingSignIn]) -> None:
        self._owner = owner
        self._store = store
        self._under_way = under_way

    def of(self, server_id: str) -> SignIn:
        """Who can be asked to sign in to a server: its owner, while they do."""
        return _OwnersSignIn(self, server_id)

    def begin(self, server_id: str, redirect_uri: str) -> PendingSignIn:
        """From now on the owner can be asked; an older question is none any more.

        Raises:
            SettingsError: key `sign_in_plain`: others could read the answer on its way.
        """
        parts = urlsplit(redirect_uri)
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            hint = "Open it over https, or at 127.0.0.1 on its own machine."
            raise SettingsError("The page is reached without encryption.", hint=hint, key="sign_in_plain")
        self._under_way[server_id] = signing = PendingSignIn(self._owner, server_id, redirect_uri)
        return signing

    def under_way(self, server_id: str) -> PendingSignIn | None:
        """The sign-in to a server, if there is one."""
        signing = self._under_way.get(server_id)
        return signing if signing is not None and signing.owner == self._owner else None

    def address(self, server_id: str) -> str:
        """Where the owner signs in to a server now; "" where no answer is waited for."""
        signing = self.under_way(server_id)
        return signing.address.result() if signing is not None and signing.state else ""

    def answered(self, query: str) -> str:
        """Take an answer that the owner's browser brings; gives the server's id.

        Args:
            query: Of the address to which that was sent.

        Raises:
            NotFoundError: key `sign_in_unknown`: nobody of this name asked, it is too late, or it came before.
        """
        state = next(iter(parse_qs(query).get("state", [])), "")
        for signing in list(self._under_way.values()):
            if state and signing.owner == self._owner and signing.state == state:
                signing.answer.set_result(f"{signing.redirect_uri}?{query}")
                return signing.server_id
        hint = "Go back to Parlour, and press Sign in again."
        raise NotFoundError("Nobody waits for this sign-in.", hint=hint, key="sign_in_unknown")

    def ended(self, signing: PendingSignIn) -> None:
        """Nobody waits for it any more."""
        if self._under_way.get(signing.server_id) is signing:
            del self._under_way[signing.server_id]

    def tokens(self, server_id: str, url: str) -> KeptTokens:
        """Where the tokens of a server are kept. Those of one address go to no other."""

        async def read() -> Mapping[str, Any]:
            with suppress(NotFoundError, StorageError):
                kept = await self._store.sign_in(server_id)
                return kept if kept.get("url") == url else {}
            return {}

        async def write(name: str, value: Mapping[str, Any]) -> None:
            with suppress(NotFoundError):  # it was removed meanwhile
                await self._store.keep_sign_in(server_id, url, {name: value})

        return KeptTokens(read, write)


class _OwnersSignIn(SignIn):
    def __init__(self, sign_ins: SignIns, server_id: str) -> None:
        super().__init__(None, storage=lambda url: sign_ins.tokens(server_id, url))
        self._sign_ins = sign_ins
        self._server_id = server_id

    @property
    def somebody_is_there(self) -> bool:
        """Whether the owner has pressed the button."""
        signing = self._sign_ins.under_way(self._server_id)
        return signing is not None and not signing.address.done()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[tuple[str, Ask]]:
        """The route of the page."""
        signing = self._sign_ins.under_way(self._server_id)
        if signing is None:
            raise RuntimeError("nobody is there to be asked")
        try:
            yield signing.redirect_uri, signing.ask
        finally:
            self._sign_ins.ended(signing)


_REMEMBERED = 2_000  # owners or servers of which a state is known; of the others it is found out again
_MOST = 60  # servers of one owner
_REST = 60.0  # seconds, at least, between two tries of a server that failed; each time twice as many
_TRIES = 5  # so often a server that failed is tried again unasked
_PATIENCE = 4.0  # seconds that a question waits for servers that are being started
_COMES_OF_IT = 30.0  # seconds that the tab which comes back from a sign-in waits: it says whether that was refused


class AllMcpServers:
    """What the MCP servers of all owners share: those that run or are being started, and what is known of them.

    Args:
        settings: Whether the page is for this machine alone.
        stores: What owners set up, and which tools run unasked in their conversations.

    Attributes:
        turn: How often a server was set up otherwise: what was read before that is not what is.
        starting: What is being started.
        troubles: Of an owner's servers, when they were last looked at.
        tried: When a server was last started, by its id.
        failing: How often those were tried again that failed and have not been there since: nobody waits for them.
        signing: The sign-ins that are under way, by the server's id.
        standing: Told when one is set up otherwise, or used no more: it may be shared.
    """

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self._settings = settings
        self._stores = stores
        self.standing = stores.standing
        self._running: Servers | None = None
        self.turn = 0
        self.starting: dict[asyncio.Task[None], Server] = {}
        self.troubles = BoundedDict[str, "Trouble"](_REMEMBERED)
        self.tried = BoundedDict[str, float](_REMEMBERED)
        self.failing = BoundedDict[str, int](_REMEMBERED)
        self.signing: dict[str, PendingSignIn] = {}

    def of(self, owner: str) -> OwnerMcpServers:
        """Those of one owner."""
        keeps = owner in self._stores.people.keepers
        programs = keeps and (owner != LOCAL_OWNER or self._settings.bound_to_this_machine)
        return OwnerMcpServers(self, self._stores.of(owner), may_start_programs=programs)

    async def wake(self) -> None:
        """Begin to start the servers of the owner of the machine, so that the first question need not wait for them."""
        try:
            await self.of(LOCAL_OWNER).list()
        except StorageError as error:
            _LOG.warning("The MCP servers cannot be started: %s", error)

    @property
    def running(self) -> Servers:
        """Made when there is a server at all: the package it needs is not small."""
        from core.mcp.servers import Servers

        if self._running is None:
            self._running = Servers(elicit=nobody)
        return self._running

    def start(self, server: Server) -> asyncio.Task[None]:
        """Begin to start a server."""
        task = asyncio.create_task(server.start(), name=f"starting the MCP server {server.name}")
        self.starting[task] = server
        task.add_done_callback(self.starting.pop)
        return task

    async def aclose(self) -> None:
        """End all servers."""
        for task in self.starting:
            task.cancel()
        if self._running is not None:
            await self._running.aclose()


class OwnerMcpServers:
    """The servers of one owner. What is somebody else's does not exist.

    Args:
        shared: What runs of all owners.
        stores: What their owner set up.
        may_start_programs: Whether it is the owner of the machine, at a page that nobody else can reach, or a person
            who looks after the house.
    """

    def __init__(self, shared: AllMcpServers, stores: OwnerStores, *, may_start_programs: bool) -> None:
        self._shared = shared
        self._owner = stores.owner
        self._store = stores.mcp_servers
        self._allowances = stores.allowances
        self._sign_ins = SignIns(self._owner, self._store, shared.signing)
        self.may_start_programs = may_start_programs

    async def list(self) -> list[OwnServer]:
        """All of the owner's, as they stand; those that may run and do not yet are being started from now on."""
        turn = self._shared.turn
        standing = [await self._standing(kept, start=True, turn=turn) for kept in await self._store.list()]
        self._note(standing)
        return standing

    @property
    def trouble(self) -> Trouble:
        """Whether a server of the owner's had `failed`, or waits for a yes, when they were last looked at."""
        return self._shared.troubles.get(self._owner, "")

    async def secrets(self) -> list[str]:
        """The values of the owner's variables and headers, for whoever must not repeat them."""
        return await self._store.secrets()

    async def tools(self) -> list[BaseTool]:
        """The tools that the owner's servers offer. A server that fails, or takes too long, has none now."""
        turn = self._shared.turn
        kept = [one for one in await self._store.list() if one.enabled]
        if not kept:
            return []
        standing = [await self._standing(one, start=True, turn=turn) for one in kept]
        hopeful = [
            one.kept for one in standing if one.state == "connecting" and one.kept.id not in self._shared.failing
        ]
        known = [running_as(self._servers, one) for one in hopeful]
        waited = {self._shared.start(server) for server in known if server is not None}
        if waited:
            await asyncio.wait(waited, timeout=_PATIENCE)
            standing = [await self._standing(one, start=False, turn=turn) for one in kept]
        self._note(standing)
        self._try_again(standing)
        offered = [tool for one in standing for tool in one.tools]
        return [one.tool for one in offered if one.on and not one.mark]

    # ---- setting them up

    async def paste(self, text: str) -> list[McpServer]:
        """Add the servers of pasted JSON, all of them or none.

        Raises:
            SettingsError: As `server_form.pasted`; key `server_not_here` or `server_address` where the owner may not.
            ConflictError: key `server_name_taken`.
        """
        drafts = pasted(text)
        for draft in drafts:
            self._refuse(draft)
        await self._refuse_too_many(len(drafts))
        added = await self._store.add({draft.name: draft.settings for draft in drafts})
        for one, draft in zip(added, drafts, strict=True):
            if not draft.enabled:
                await self._store.set(one.id, enabled=False)
        return added

    async def add(self, name: str, entry: Mapping[str, Any]) -> McpServer:
        """Add one. Raises as `paste`."""
        draft = checked(name, entry)
        self._refuse(draft)
        await self._refuse_too_many(1)
        return (await self._store.add({draft.name: draft.settings}))[0]

    async def change(self, server_id: str, name: str, entry: Mapping[str, Any]) -> None:
        """Another name or other settings; variables and headers whose value is `None` keep theirs.

        Raises:
            NotFoundError: There is none such of this owner.
            SettingsError: As `add`.
        """
        old = await self._store.get(server_id)
        another = old.name != name.strip()

        def make(before: dict[str, Any]) -> Mapping[str, Any]:
            nonlocal another
            # What the form does not show stays.
            rest = {key: before[key] for key in ("timeout", "connect_timeout", "include", "exclude") if key in before}
            kind = {"type": before["type"]} if before.get("url") and before.get("url") == entry.get("url") else {}
            whom = {"oauth": before["oauth"]} if "oauth" in before and is_same_place(before, entry) else {}
            draft = checked(name, {**rest, **kind, **whom, **entry}, before)
            self._refuse(draft)
            another = another or reached(before) != reached(draft.settings)
            return draft.settings

        await self._store.change(server_id, name.strip(), make)
        await self._end(old, forget=another)

    async def remove(self, server_id: str) -> None:
        """End it and forget it. Raises NotFoundError."""
        kept = await self._store.get(server_id)
        await self._store.delete(server_id)
        await self._end(kept, forget=True)

    async def confirm(self, server_id: str, seen: str) -> None:
        """Allow the command that was seen.

        Raises:
            NotFoundError: There is none such of this owner.
            SettingsError: key `server_not_here`: programs are not started for this owner; `server_unconfirmed`: the
                command is another one now.
        """
        one = await self._standing(await self._store.get(server_id), start=False)
        if not self.may_start_programs:
            raise not_here()
        if not one.print or one.print != seen:
            hint = "Look at it once more."
            raise SettingsError("The command is another one than was seen.", hint=hint, key="server_unconfirmed")
        await self._standing(await self._store.set(server_id, confirmed=seen), start=True)

    async def enable(self, server_id: str, *, on: bool) -> None:
        """Use it, or no more. Raises NotFoundError."""
        kept = await self._store.set(server_id, enabled=on)
        if not on:
            await self._end(kept)

    async def trust(self, server_id: str, *, on: bool) -> None:
        """Believe what it says of its tools, or no more. Raises NotFoundError."""
        await self._store.set(server_id, trusted=on)

    async def let_ask(self, server_id: str, *, on: bool) -> None:
        """Let it ask the owner things while one of its tools runs, or no more. Raises NotFoundError."""
        await self._store.set(server_id, asks=on)

    async def switch(self, server_id: str, tool: str, *, on: bool) -> None:
        """Offer one of its tools, or no more. Raises NotFoundError."""
        known = {one.name for one in (await self._one(server_id)).tools}
        if tool not in known:
            raise NotFoundError("There is no such tool.", key="tool_unknown")
        await self._store.switch(server_id, [tool], on=on)

    async def approve(self, server_id: str, prints: Mapping[str, str]) -> None:
        """Agree to tools as they were seen; one that has changed again since stays marked. Raises NotFoundError."""
        now = {one.name: one.print for one in (await self._one(server_id)).tools}
        agreed = {name: seen for name, seen in prints.items() if seen and now.get(name) == seen}
        kept = await self._store.set(server_id, approved=agreed)
        server = running_as(self._servers, kept)
        if server is not None:
            server.approve(agreed)

    async def connect(self, server_id: str) -> None:
        """Try again to start or reach it; returns at once. Raises NotFoundError."""
        kept = await self._store.get(server_id)
        await self._end(kept)
        await self._standing(kept, start=True)

    async def sign_in(self, server_id: str, redirect_uri: str) -> str:
        """Begin to sign in to a server: gives the address of the page to do so on; "" where it is there without.

        Args:
            server_id: Which one.
            redirect_uri: Where the service sends the owner's browser back to; `signed_in` takes that.

        Raises:
            NotFoundError: There is none such of this owner, or it may not run.
            SettingsError: key `sign_in_plain`: the page is reached without encryption.
            McpError: The server offers no sign-in, or cannot be reached.
        """
        kept = await self._store.get(server_id)
        signing = self._sign_ins.begin(server_id, redirect_uri)
        try:
            await self._end(kept)
            await self._standing(kept, start=True)
            server = running_as(self._servers, kept)
            if server is None:
                raise NotFoundError("The server does not run.", kind="server")
            address = await signing.address_or(self._shared.start(server))
        finally:
            if not signing.address.done():
                self._sign_ins.ended(signing)
        if not address and (failure := why_failed(server)) is not None:
            raise failure
        return address

    async def signed_in(self, query: str) -> OwnServer:
        """Take the answer that the owner's browser brings, once; gives the server as it stands then.

        Raises:
            NotFoundError: key `sign_in_unknown`: it is no answer to a question of this owner, or came too late.
        """
        server_id = self._sign_ins.answered(query)
        kept = await self._store.get(server_id)
        started = {task for task, one in self._shared.starting.items() if one is running_as(self._servers, kept)}
        if started:
            await asyncio.wait(started, timeout=_COMES_OF_IT)
        return await self._one(server_id)

    async def sign_out(self, server_id: str) -> None:
        """Forget the owner's tokens for a server, and end it. Raises NotFoundError."""
        await self._store.forget_sign_in(server_id)
        await self._end(await self._store.get(server_id))
        await self._store.forget_sign_in(server_id)  # a token may have been renewed meanwhile

    async def check(self, server_id: str) -> tuple[float, int]:
        """Seconds until it answered, and how many tools it has.

        Raises:
            NotFoundError: There is none such of this owner, or it does not run.
            McpError: It does not answer.
        """
        server = running_as(self._servers, await self._store.get(server_id))
        if server is None:
            raise NotFoundError("The server does not run.", kind="server")
        begun = time.perf_counter()
        await server.health()
        return time.perf_counter() - begun, len(server.tools)

    # ---- inside

    @property
    def _servers(self) -> OwnerServers:
        return self._shared.running.of(self._owner)

    async def _one(self, server_id: str) -> OwnServer:
        return await self._standing(await self._store.get(server_id), start=False)

    async def _end(self, kept: McpServer, *, forget: bool = False) -> None:
        """End what runs of a server; `forget` also what its tools may do unasked, which no other is to inherit."""
        self._shared.turn += 1
        self._shared.failing.pop(kept.id, None)
        self._shared.standing()
        await self._servers.end(kept.name)
        if forget:
            await self._allowances.forget(rule_name(kept.name, ""))

    async def _standing(self, kept: McpServer, *, start: bool, turn: int = -1) -> OwnServer:
        """A server as it stands. It is started only where it is used, allowed, and `start` says so.

        Args:
            start: Whether to start it.
            turn: The turn before it was read.
        """
        try:
            settings = ServerSettings.model_validate(self._store.settings_of(kept))
        except (StorageError, ValueError) as error:
            trouble = error if isinstance(error, StorageError) else SettingsError("They are wrong.", key="mcp_settings")
            return OwnServer(kept, None, "failed", trouble)
        command, seen, trouble = await asyncio.to_thread(found_command, settings)
        trouble = refusal(settings, local=self.may_start_programs) or trouble
        state: State = "failed" if trouble is not None else "confirm" if seen and seen != kept.confirmed else "off"
        if not kept.enabled or state != "off":
            return OwnServer(kept, settings, state if kept.enabled else "off", trouble, command, seen)
        if turn != self._shared.turn:  # it may be gone, or another one, since it was read
            turn = self._shared.turn
            try:
                now = await self._store.get(kept.id)
            except NotFoundError:
                return OwnServer(kept, settings, "off", None, command, seen)
            if now != kept or turn != self._shared.turn:
                return await self._standing(now, start=start, turn=turn)
        server = self._live(kept, settings)
        if start and server.state == "off":
            self._shared.tried[kept.id] = time.monotonic()
            self._shared.start(server)
        if server.state == "ready":
            self._shared.failing.pop(kept.id, None)
        tools = await offered_tools(self._store, kept, server)
        log = tuple(line.text for line in server.log)
        begins = (
            server.state in {"off", "failed"} and server in self._shared.starting.values()
        )  # as it says a moment later
        page = self._sign_ins.address(kept.id)
        state, why = ("connecting", None) if begins else (state_of(server, page), why_failed(server))
        return OwnServer(kept, settings, state, why, command, seen, tools, log, page)

    def _live(self, kept: McpServer, settings: ServerSettings) -> Server:
        reach = None if self.may_start_programs else Reach()
        approved = dict(kept.approved) or None
        return self._servers.server(
            kept.name,
            settings,
            trusted=kept.trusted,
            approved=approved,
            reach=reach,
            asks=kept.asks,
            sign_in=self._sign_ins.of(kept.id),
        )

    def _note(self, standing: Sequence[OwnServer]) -> None:
        if trouble := trouble_of(standing):
            self._shared.troubles[self._owner] = trouble
        else:
            self._shared.troubles.pop(self._owner, None)

    def _try_again(self, standing: Sequence[OwnServer]) -> None:
        """Start anew what failed a while ago; the question does not wait for it, the next one may have it."""
        now = time.monotonic()
        for one in standing:
            server = running_as(self._servers, one.kept) if one.state == "failed" and one.settings is not None else None
            tries = self._shared.failing.get(one.kept.id, 0)
            rest = _REST * (1 << tries)
            if server is not None and tries < _TRIES and now - self._shared.tried.get(one.kept.id, -rest) >= rest:
                self._shared.tried[one.kept.id] = now
                self._shared.failing[one.kept.id] = tries + 1
                self._shared.start(server)

    def _refuse(self, draft: ServerDraft) -> None:
        """What the owner may not set up, wherever it comes from."""
        error = refusal(ServerSettings.model_validate(draft.settings), local=self.may_start_programs)
        if error is not None:
            raise error

    async def _refuse_too_many(self, more: int) -> None:
        known = len(await self._store.list())
        if known + more > _MOST:
            raise SettingsError("There are too many servers.", hint="Remove one.", key="server_many", n=known)
