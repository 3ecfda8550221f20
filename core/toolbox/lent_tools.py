"""MCP servers and web services that others share with an owner: used as their owners set them up, by her alone.

A server holds a session for each of whom it is shared with, with its owner's settings and secrets: what one of them
does in it, no other sees. What is shared is offered to models once its borrower switched it on.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast
from weakref import WeakSet

from core.errors import NotFoundError, ParlourError, StorageError
from core.mcp.settings import ServerSettings
from core.mcp.sign_in import KeptTokens, SignIn
from core.net.addresses import Reach
from core.toolbox.loans import Loan
from core.toolbox.server_form import found_command, offered_tools, refusal
from core.toolbox.user_openapi import with_given

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.bridge.pool import Listeners
    from core.mcp.servers import Server, Servers
    from core.storage.lending import LentServer, LentService
    from core.storage.stores import OwnerStores
    from core.toolbox.code_interpreter import GivenFiles
    from core.toolbox.user_openapi import OwnerOpenApi
    from core.tools.base import BaseTool
    from core.tools.openapi.as_tools import ApiTool

ON: Final = "lent_tools"
"""The owner's setting that names what of others she uses, by its mark."""
_PATIENCE: Final = 4.0  # seconds that a question waits for servers that are being started
_LOOKS: Final = 15.0  # seconds between two looks whether a server that nobody calls is shared still
_REST: Final = 60.0  # seconds between two tries of one that failed

State: TypeAlias = Literal["off", "waits", "connecting", "ready", "failed"]


@dataclass(frozen=True, slots=True)
class LentTools:
    """A server or a service of somebody else, as its borrower sees it: nothing of how it is reached, and no log.

    Args:
        mark: Names it among what is shared.
        name: As its owner calls it.
        on: Whether the borrower uses it.
        state: `waits`: its owner has something to do before it can be used.
        tools: What it offers; of a server that is not used nothing is known.
        shown: What it is called among the borrower's tools.
        rules: What stands for it in the names of its tools.
    """

    kind: Literal["server", "service"]
    mark: str
    name: str
    lender: str
    on: bool
    state: State
    tools: tuple[BaseTool, ...]
    shown: str
    rules: str


class _Held(NamedTuple):
    """A session that somebody has with a lent server, and who ends it with the loan."""

    server: LentServer
    loan: Loan
    watching: asyncio.Task[None]


class RunningLent:
    """The sessions with lent servers, of all who use them; each ends with its loan.

    Args:
        standing: Told when who may use what has changed.
    """

    def __init__(self, standing: Listeners[[]]) -> None:
        self._servers: Servers | None = None
        self._held: dict[tuple[str, str], _Held] = {}
        self._tried: dict[tuple[str, str], float] = {}
        self._loans = WeakSet[Loan]()
        standing.add(self.look_again)

    @property
    def servers(self) -> Servers:
        """Made when there is one at all: the package it needs is not small."""
        from core.mcp.servers import Servers
        from core.toolbox.server_form import nobody

        if self._servers is None:
            self._servers = Servers(elicit=nobody)
        return self._servers

    def look_again(self) -> None:
        """Whether what is used now is shared still is looked at now."""
        for loan in tuple(self._loans):
            loan.look_again()

    def note(self, loan: Loan) -> None:
        """Tell this loan, too, while there is anybody who uses it."""
        self._loans.add(loan)

    def of(self, borrower: str) -> BorrowersSessions:
        """Those of one of them."""
        return BorrowersSessions(self, borrower)

    def loan(self, key: tuple[str, str], server: LentServer, make: Callable[[], Loan]) -> Loan:
        """The loan that a session is used by; where it ends, so does the session."""
        held = self._held.get(key)
        if held is not None and server.is_as(held.server):
            return held.loan
        if held is not None:  # its owner changed it a moment ago
            held.watching.cancel()
        loan = make()
        self.note(loan)
        watching = asyncio.create_task(self._watched(key, loan), name=f"watching whether {loan.rules} is shared")
        self._held[key] = _Held(server, loan, watching)
        return loan

    def is_due(self, key: tuple[str, str]) -> bool:
        """Whether one that failed may be tried again by now; then it is."""
        now = time.monotonic()
        if now - self._tried.get(key, -_REST) < _REST:
            return False
        self._tried[key] = now
        return True

    async def end(self, key: tuple[str, str]) -> None:
        """End a session."""
        held = self._held.pop(key, None)
        self._tried.pop(key, None)
        if held is not None and held.watching is not asyncio.current_task():
            held.watching.cancel()
        if self._servers is not None:
            borrower, rules = key
            await self._servers.of(borrower).end(rules)

    async def aclose(self) -> None:
        """End all."""
        for held in self._held.values():
            held.watching.cancel()
        self._held.clear()
        if self._servers is not None:
            await self._servers.aclose()

    async def _watched(self, key: tuple[str, str], loan: Loan) -> None:
        await loan.ended(every=_LOOKS)
        await self.end(key)


class BorrowersSessions:
    """The sessions of one borrower, by the names that rules know; she cannot name another's."""

    def __init__(self, running: RunningLent, borrower: str) -> None:
        self._running = running
        self._borrower = borrower

    def server(self, lent: LentServer, rules: str, make: Callable[[], Loan], **given: Any) -> Server:
        """One of them, with a loan that is made where there is no session yet. Nothing is started."""
        through = self._running.loan((self._borrower, rules), lent, make)
        shown = _shown(lent.kept.name, lent.lender)
        return self._running.servers.of(self._borrower).server(shown, through=through, **given)

    def note(self, loan: Loan) -> None:
        """Tell a loan that is used without a session, too, when something changed."""
        self._running.note(loan)

    def is_due(self, rules: str) -> bool:
        """Whether one that failed may be tried again by now."""
        return self._running.is_due((self._borrower, rules))

    async def end(self, rules: str) -> None:
        """End one."""
        await self._running.end((self._borrower, rules))


class OwnerLentTools:
    """What others share with one owner.

    Args:
        stores: Of the owner.
        running: The sessions of all borrowers.
        services: The web services of whoever shares one.
        given: The files of the owner's conversations.
    """

    def __init__(
        self,
        stores: OwnerStores,
        running: RunningLent,
        services: Callable[[LentService], OwnerOpenApi],
        given: GivenFiles | None = None,
    ) -> None:
        self._lent = stores.lent
        self._settings = stores.settings
        self._sessions = running.of(stores.owner)
        self._services_of = services
        self._given = given

    async def list(self) -> list[LentTools]:
        """All that others share now; servers that are used and do not run are being started. Raises StorageError."""
        on = await self._on()
        servers = [one for one in await self._lent.servers() if one.kept.enabled]
        found = [await self._server(one, on=one.mark in on) for one in servers]
        return [*found, *[one for each in await self._lent.services() if (one := await self._service(each, on))]]

    async def tools(self, conversation_id: str = "") -> list[BaseTool]:
        """What it offers of what is used. A server that fails, or takes too long, has none now. Raises StorageError."""
        on = await self._on()
        if not on:
            return []
        servers = [one for one in await self._lent.servers() if one.kept.enabled and one.mark in on]
        standing = [await self._server(one, on=True) for one in servers]
        if any(one.state == "connecting" for one in standing):
            ready = [asyncio.create_task(live.start()) for live in [await self._live(one) for one in servers] if live]
            if ready:
                await asyncio.wait(ready, timeout=_PATIENCE)
            standing = [await self._server(one, on=True) for one in servers]
        services = [one for each in await self._lent.services() if (one := await self._service(each, on)) and one.on]
        apis = [tool for one in services for tool in one.tools]
        given = await with_given(cast("list[ApiTool]", apis), self._given, conversation_id)
        return [*[tool for one in standing for tool in one.tools], *given]

    async def use(self, mark: str, *, on: bool) -> None:
        """Let models use something of it from the next question on, or no more.

        Raises:
            NotFoundError: It is not shared with the owner.
            StorageError: The database failed.
        """
        known = {one.mark: one for one in await self.list()}
        if mark not in known:
            raise NotFoundError("Nothing such is shared with you.", key="not_lent")

        def changed(kept: object) -> list[str] | None:
            others = _marks(kept) - {mark}
            return sorted(others | {mark} if on else others) or None

        await self._settings.change(ON, changed)
        if not on:
            await self._sessions.end(known[mark].rules)

    async def secrets(self) -> list[str]:
        """Every key that it is used with, for whoever must not repeat them. Raises StorageError."""
        on = await self._on()
        if not on:
            return []
        found = [
            key for one in await self._lent.servers() for key in await self._lent.store_of(one).secrets_of(one.kept)
        ]
        for each in await self._lent.services():
            found += await self._services_of(each).secrets_of(each.service_id)
        return found

    # ---- inside

    async def _on(self) -> set[str]:
        return _marks(await self._settings.get(ON))

    async def _server(self, one: LentServer, *, on: bool) -> LentTools:
        """A server as it stands; it is started only where it is used."""
        shown, rules = _shown(one.kept.name, one.lender), _rules(one.kept.name, one.lender, one.mark)

        def told(state: State, tools: Sequence[BaseTool] = ()) -> LentTools:
            return LentTools("server", one.mark, one.kept.name, one.lender, on, state, tuple(tools), shown, rules)

        if not on:
            return told("off")
        server = await self._live(one)
        if server is None:
            return told("waits")
        due = self._sessions.is_due(rules)
        if server.state == "off" or (server.state == "failed" and due):
            _begin(server)
        if server.state == "ready":
            offered = await offered_tools(self._lent.store_of(one), one.kept, server)
            return told("ready", [each.tool for each in offered if each.on and not each.mark])
        waits = server.state == "failed" and server.needs_sign_in
        return told("waits" if waits else "failed" if server.state == "failed" else "connecting")

    async def _live(self, one: LentServer) -> Server | None:
        """The owner's session with a server; `None` where its owner has something to do first."""
        store = self._lent.store_of(one)
        try:
            settings = ServerSettings.model_validate(store.settings_of(one.kept))
        except (StorageError, ValueError):
            return None
        _, seen, trouble = await asyncio.to_thread(found_command, settings)
        trouble = trouble or refusal(settings, local=one.keeps)
        if trouble is not None or (seen and seen != one.kept.confirmed):
            return None
        shown, rules = _shown(one.kept.name, one.lender), _rules(one.kept.name, one.lender, one.mark)
        still, secrets = partial(self._is_lent, one), partial(store.secrets_of, one.kept)
        server = self._sessions.server(
            one,
            rules,
            partial(Loan, rules, shown, one.lender, still=still, secrets=secrets),
            settings=settings,
            approved=dict(one.kept.approved) or None,
            reach=None if one.keeps else Reach(),
            asks=one.kept.asks,
            sign_in=SignIn(None, storage=lambda url: self._tokens(one, url)),
        )
        server.hide(*await store.secrets_of(one.kept))
        return server

    async def _is_lent(self, before: LentServer) -> bool:
        now = await self._lent.server(before.kept.id)
        return now is not None and now.is_as(before)

    def _tokens(self, one: LentServer, url: str) -> KeptTokens:
        """The tokens of the server's owner, who alone signs in; those of one address go to no other."""
        store = self._lent.store_of(one)

        async def read() -> Mapping[str, Any]:
            with suppress(NotFoundError, StorageError):
                kept = await store.sign_in(one.kept.id)
                return kept if kept.get("url") == url else {}
            return {}

        async def write(name: str, value: Mapping[str, Any]) -> None:
            with suppress(NotFoundError):
                await store.keep_sign_in(one.kept.id, url, {name: value})

        return KeptTokens(read, write)

    async def _service(self, one: LentService, on: set[str]) -> LentTools | None:
        theirs = self._services_of(one)
        try:
            standing = await theirs.standing(one.service_id)
        except ParlourError:
            return None
        if standing is None:
            return None
        shown, rules = _shown(standing.name, one.lender), _rules(standing.name, one.lender, one.mark)
        loan = Loan(
            rules,
            shown,
            one.lender,
            still=partial(self._is_lent_service, one),
            secrets=partial(theirs.secrets_of, one.service_id),
        )
        self._sessions.note(loan)
        tools = [
            tool.lent(f"{tool.title} · {one.lender}", loan)
            for tool in standing.tools
            if tool.operation.name not in standing.off
        ]
        state: State = "ready" if standing.error is None else "waits"
        uses = one.mark in on
        return LentTools("service", one.mark, standing.name, one.lender, uses, state, tuple(tools), shown, rules)

    async def _is_lent_service(self, before: LentService) -> bool:
        return before in await self._lent.services()


def _begin(server: Server) -> None:
    task = asyncio.create_task(server.start(), name=f"starting the lent MCP server {server.name}")
    _STARTING.add(task)
    task.add_done_callback(_STARTING.discard)


_STARTING: Final[set[asyncio.Task[None]]] = set()


def _shown(name: str, lender: str) -> str:
    return f"{name} · {lender}"


def _rules(name: str, lender: str, mark: str) -> str:
    """What stands for it in rules: no name that its owner chose makes it one that a rule of the borrower's allows."""
    return f"@{lender}/{name}#{mark}".replace(":", "-").replace("*", "-")


def _marks(kept: object) -> set[str]:
    return {str(one) for one in cast("list[object]", kept)} if isinstance(kept, list) else set()
