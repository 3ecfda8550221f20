"""One pool of HTTP connections per event loop, shared by all models that speak HTTP without a vendor's client."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Final

import httpx2

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

CONNECT_SECONDS: Final = 5.0
_CONNECTIONS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)


@dataclass(slots=True)
class _LoopClient:
    """What belongs to one loop: its connections, and the models that use them."""

    http: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]
    users: set[int] = field(default_factory=set[int])


class HttpPool:
    """Hands out clients. Connections cannot move between loops, so each loop has its own."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._trusting = Lock()
        self._trusted: ssl.SSLContext | None = None
        self._loops: dict[asyncio.AbstractEventLoop, _LoopClient] = {}

    async def prepare(self) -> None:
        """Read the certificates in a thread: the loop goes on, and many first requests wait for the same."""
        if self._trusted is None:
            await asyncio.to_thread(self._trust)

    async def client(self, user: object) -> httpx2.AsyncClient:
        """The client of this loop; connections stay open until every user of this loop was released."""
        await self.prepare()
        held = self._loops.get(asyncio.get_running_loop()) or await self._open()
        held.users.add(id(user))
        return held.http

    async def release(self, user: object) -> None:
        """`user` needs its client no more; the last one of this loop closes the connections."""
        held = self._loops.get(asyncio.get_running_loop())
        if held is None:
            return
        held.users.discard(id(user))
        if not held.users:
            await held.keeper.aclose()

    def _trust(self) -> None:
        with self._trusting:
            if self._trusted is None:
                self._trusted = httpx2.create_ssl_context()

    async def _open(self) -> _LoopClient:
        loop = asyncio.get_running_loop()
        # Loopback addresses never go through a proxy, whatever the environment says.
        direct: dict[str, httpx2.AsyncBaseTransport | None] = {
            "all://localhost": None,
            "all://127.0.0.1": None,
            "all://[::1]": None,
        }
        http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(60.0, connect=CONNECT_SECONDS),
            limits=_CONNECTIONS,
            mounts=direct,
            verify=self._trusted or True,
        )
        held = _LoopClient(http, self._keep(loop, http))
        with self._guard:
            self._loops = {known: kept for known, kept in self._loops.items() if not known.is_closed()}
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
def http_pool() -> HttpPool:
    """The pool of this process, made when it is first asked for."""
    return HttpPool()
