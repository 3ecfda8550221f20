"""One pool of HTTP connections per event loop for the whole process, shared by all OpenAI-compatible models."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_CONNECT_SECONDS = 5.0


@dataclass(slots=True)
class _LoopClients:
    """What belongs to one loop: connections, a client per service, and the models that use them."""

    http: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]
    clients: dict[tuple[str | None, str | None], AsyncOpenAI] = field(
        default_factory=dict[tuple[str | None, str | None], AsyncOpenAI]
    )
    users: set[int] = field(default_factory=set[int])


class ClientPool:
    """Hands out clients. Connections cannot move between loops, so each loop has its own."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._loops: dict[asyncio.AbstractEventLoop, _LoopClients] = {}

    async def client(self, user: object, base_url: str | None, api_key: str | None) -> AsyncOpenAI:
        """The client of this loop for one service.

        Args:
            user: Who asks; connections stay open until every user of this loop was released.
            base_url: `None` leaves it to the SDK: `OPENAI_BASE_URL`, else OpenAI's own service.
            api_key: `None` leaves it to the SDK: `OPENAI_API_KEY`.

        Raises:
            OpenAIError: No key at all.
        """
        held = self._loops.get(asyncio.get_running_loop()) or await self._open()
        held.users.add(id(user))
        key = (base_url, api_key)
        if key not in held.clients:
            held.clients[key] = AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, http_client=held.http)
        return held.clients[key]

    async def release(self, user: object) -> None:
        """`user` needs its client no more; the last one of this loop closes the connections."""
        loop = asyncio.get_running_loop()
        held = self._loops.get(loop)
        if held is None:
            return
        held.users.discard(id(user))
        if not held.users:
            await held.keeper.aclose()

    async def _open(self) -> _LoopClients:
        loop = asyncio.get_running_loop()
        # Loopback addresses never go through a proxy, whatever the environment says.
        direct: dict[str, httpx2.AsyncBaseTransport | None] = {
            "all://localhost": None,
            "all://127.0.0.1": None,
            "all://[::1]": None,
        }
        http = DefaultAsyncHttpxClient(timeout=httpx2.Timeout(60.0, connect=_CONNECT_SECONDS), mounts=direct)
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
