"""One pool of HTTP connections per event loop for the whole process, shared by all services."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import httpx2

from core.net.body import ASKED
from core.net.unpacking import unpack

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Callable, Mapping

CONNECT_SECONDS: Final = 5.0
_CONNECTIONS: Final = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)


DIRECT: Final[Mapping[str, httpx2.AsyncBaseTransport | None]] = MappingProxyType(
    {"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None}
)
"""Loopback addresses never go through a proxy, whatever the environment says."""

_LONGEST_WHOLE: Final = 64 << 20
_LONGEST_REFUSAL: Final = 256 << 10

Make: TypeAlias = "Callable[[ssl.SSLContext | None], httpx2.AsyncClient]"


async def bounded(response: httpx2.Response) -> None:
    """Response hook: bound how much a compressed answer may unpack to; a stream is bounded by whoever reads it."""
    if response.status_code >= 400:
        unpack(response, _LONGEST_REFUSAL, cut=True)
        return
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    unpack(response, None if is_stream else _LONGEST_WHOLE)


def _usual(trusted: ssl.SSLContext | None) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(60.0, connect=CONNECT_SECONDS),
        limits=_CONNECTIONS,
        follow_redirects=False,  # a key in a vendor's own header would go along
        mounts=DIRECT,
        verify=trusted or True,
        headers=ASKED,
        event_hooks={"response": [bounded]},
    )


@dataclass(slots=True)
class _LoopClient:
    """The connections of one loop, and the models that use them."""

    http: httpx2.AsyncClient
    keeper: AsyncGenerator[None, None]
    users: set[int] = field(default_factory=set[int])


class HttpPool:
    """Hands out clients. Connections cannot move between loops, so each loop has its own.

    Args:
        make: Makes the client of a loop, given the trusted certificates.
    """

    def __init__(self, make: Make | None = None) -> None:
        self._make = make or _usual
        self._guard = Lock()
        self._loading = Lock()
        self._trusted: ssl.SSLContext | None = None
        self._loops: dict[asyncio.AbstractEventLoop, _LoopClient] = {}

    async def prepare(self) -> None:
        """Load what the first request needs, in a thread: the loop goes on, and many first requests wait together."""
        if self._trusted is None:
            # `asyncio.to_thread` would copy the context, in which a loop is running.
            await asyncio.get_running_loop().run_in_executor(None, self._load)

    async def client(self, user: object | None = None) -> httpx2.AsyncClient:
        """The client of this loop.

        Args:
            user: Holds the connections open until it is released; `None` holds nothing.
        """
        await self.prepare()
        held = self._loops.get(asyncio.get_running_loop()) or await self._open()
        if user is not None:
            held.users.add(id(user))
        return held.http

    async def release(self, user: object) -> None:
        """Release `user`'s hold; the last one on this loop closes the connections."""
        held = self._loops.get(asyncio.get_running_loop())
        if held is None:
            return
        held.users.discard(id(user))
        if not held.users:
            await held.keeper.aclose()

    def _load(self) -> None:
        with self._loading:
            if self._trusted is None:
                anyio.run(anyio.sleep, 0)  # imports its back end
                self._trusted = httpx2.create_ssl_context()

    async def _open(self) -> _LoopClient:
        loop = asyncio.get_running_loop()
        http = self._make(self._trusted)
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
    """The pool of this process."""
    return HttpPool()
