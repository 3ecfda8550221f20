"""Clients of the OpenAI SDK upon the connections that all services share."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, TypeAlias

from core.llm.backends.http_clients import HttpPool, http_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import httpx2
    from openai import AsyncOpenAI

_NEEDED_LATER = ("openai.resources.chat.chat", "openai.resources.chat.completions.completions")  # at a first request

MOST_CLIENTS: Final = 256
"""Kept for each loop: on a shared page everybody brings a key of his own."""

Make: TypeAlias = "Callable[[httpx2.AsyncClient], AsyncOpenAI]"


class ClientPool:
    """Hands out clients: one for each service on each loop, as long as the loop's connections last.

    Args:
        connections: Those of this process by default.
    """

    def __init__(self, connections: HttpPool | None = None) -> None:
        self._loaded = False
        self._connections = connections or http_pool()
        self._clients: dict[httpx2.AsyncClient, dict[Hashable, AsyncOpenAI]] = {}

    async def prepare(self) -> None:
        """Load what the first request needs, in a thread: the loop goes on, and many first requests wait together."""
        await self._connections.prepare()
        if not self._loaded:
            await asyncio.get_running_loop().run_in_executor(None, self._load)

    async def client(self, user: object, service: Hashable, make: Make) -> AsyncOpenAI:
        """The client of this loop for one service.

        Args:
            user: Who asks; connections stay open until every user of this loop was released.
            service: Address, key and whatever else tells two clients apart.
            make: Makes the client upon these connections; its errors go to the caller.
        """
        await self.prepare()
        http = await self._connections.client()
        if http not in self._clients:
            self._clients = {known: kept for known, kept in tuple(self._clients.items()) if not known.is_closed}
        clients = self._clients.setdefault(http, {})
        found = clients[service] = clients.pop(service, None) or make(http)  # the last asked for stands last
        if len(clients) > MOST_CLIENTS:
            del clients[next(iter(clients))]  # whoever has it keeps it; its connections are everybody's
        await self._connections.client(user)
        return found

    async def release(self, user: object) -> None:
        """`user` needs its client no more; the last one of this loop closes the connections."""
        await self._connections.release(user)

    def _load(self) -> None:
        for name in _NEEDED_LATER:
            import_module(name)
        self._loaded = True


@cache
def client_pool() -> ClientPool:
    """The pool of this process, made when it is first asked for."""
    return ClientPool()
