"""One pool of HTTP connections per event loop for the whole process, shared by all OpenAI-compatible models."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import anyio
import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable, Hashable

_CONNECT_SECONDS = 5.0
_NEEDED_LATER = ("openai.resources.chat.chat", "openai.resources.chat.completions.completions")  # at a first request

Make: TypeAlias = "Callable[[httpx2.AsyncClient], AsyncOpenAI]"


@dataclass(slots=True)
class _LoopClients:
    """What belongs to one loop: connections, a client per service, and the models that use them."""

    http: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]
    clients: dict[Hashable, AsyncOpenAI] = field(default_factory=dict["Hashable", AsyncOpenAI])
    users: set[int] = field(default_factory=set[int])


class ClientPool:
    """Hands out clients. Connections cannot move between loops, so each loop has its own."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._loading = Lock()
        self._trusted: ssl.SSLContext | None = None
        self._loops: dict[asyncio.AbstractEventLoop, _LoopClients] = {}

    async def prepare(self) -> None:
        """Load what the first request needs, in a thread: the loop goes on, and many first requests wait together."""
        if self._trusted is None:
            # `asyncio.to_thread` would take the context along, in which a loop runs already.
            await asyncio.get_running_loop().run_in_executor(None, self._load)

    async def client(self, user: object, service: Hashable, make: Make) -> AsyncOpenAI:
        """The client of this loop for one service.

        Args:
            user: Who asks; connections stay open until every user of this loop was released.
            service: Address, key and whatever else tells two clients apart.
            make: Makes the client upon these connections; its errors go to the caller.
        """
        await self.prepare()
        held = self._loops.get(asyncio.get_running_loop()) or await self._open()
        if service not in held.clients:
            held.clients[service] = make(held.http)
        held.users.add(id(user))
        return held.clients[service]

    async def release(self, user: object) -> None:
        """`user` needs its client no more; the last one of this loop closes the connections."""
        loop = asyncio.get_running_loop()
        held = self._loops.get(loop)
        if held is None:
            return
        held.users.discard(id(user))
        if not held.users:
            await held.keeper.aclose()

    def _load(self) -> None:
        with self._loading:
            if self._trusted is None:
                for name in _NEEDED_LATER:
                    import_module(name)
                anyio.run(anyio.sleep, 0)  # its back end is imported when something runs on it
                self._trusted = httpx2.create_ssl_context()

    async def _open(self) -> _LoopClients:
        loop = asyncio.get_running_loop()
        # Loopback addresses never go through a proxy, whatever the environment says.
        direct: dict[str, httpx2.AsyncBaseTransport | None] = {
            "all://localhost": None,
            "all://127.0.0.1": None,
            "all://[::1]": None,
        }
        http = DefaultAsyncHttpxClient(
            timeout=httpx2.Timeout(60.0, connect=_CONNECT_SECONDS), mounts=direct, verify=self._trusted or True
        )
        held = _LoopClients(http, self._keep(loop, http))
        with self._guard:
            self._loops = {known: clients for known, clients in self._loops.items() if not known.is_closed()}
            self._loops[loop] = held
        # A loop that shuts down closes its generators first, and this one closes the connections with it.
        await anext(held.keeper)
        return held

    async def _keep(self, loop: asyncio.AbstractEventLoop, http: httpx2.AsyncClient) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            with self._guard:
                self._loops.pop(loop, None)
            await http.aclose()


@cache
def client_pool() -> ClientPool:
    """The pool of this process, made when it is first asked for."""
    return ClientPool()
