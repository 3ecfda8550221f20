"""HTTP for MCP servers: within reach, within limits and to one origin; and the transport that settings ask for.

The SDK follows a redirect only within the origin.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from core.mcp.settings import environment_of
from core.mcp.stdio import LONGEST_MESSAGE, Meter, process_transport
from core.net.addresses import is_own_server, mark_header, system_addresses
from core.net.body import ASKED
from core.net.unpacking import unpack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    from core.mcp.journal import ServerLog
    from core.mcp.settings import Resolved, ServerSettings
    from core.net.addresses import Reach


_TIMES = httpx2.Timeout(30.0, connect=10.0, read=300.0)  # a server may hold a stream of events open
_SHORT = httpx2.Timeout(15.0, connect=10.0)
_EVENTS_A_SECOND, _EVENTS_AT_ONCE = 500, 1000
_REFUSALS = frozenset({401, 402, 403, 407, 429, *range(500, 600)})
_MOST_TRIED = 3  # of the addresses of a name
_DEFAULT_PORTS = {"http": 80, "https": 443}


class OutOfReachError(httpx2.ConnectError):
    """The address is of this machine or its network, and may not be called."""

    whose = "of this machine or its network"
    key = ""


class OwnServerError(OutOfReachError):
    """The address is one that this process itself serves people at."""

    whose = "Parlour's own"
    key = "mcp_own"


class TooLargeAnswerError(httpx2.ReadError):
    """An answer, or one event of a stream, is longer than any message may be."""


def http_client(
    headers: Mapping[str, str], reach: Reach | None, journal: ServerLog, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """A client for one server.

    Args:
        headers: Sent with every request.
        reach: How far requests may go; anywhere where it is `None`, as for a program's own servers.
        journal: Is told where the server refuses.
        auth: Signs the requests.
    """

    async def refused(response: httpx2.Response) -> None:
        journal.status = response.status_code if response.status_code in _REFUSALS else 0

    hooks: dict[str, list[Any]] = {"request": [_marked], "response": [_bound, refused]}
    if reach is None:
        hooks["request"].append(_elsewhere)
        return httpx2.AsyncClient(headers=dict(headers), timeout=_TIMES, event_hooks=hooks, auth=auth)
    # Neither proxies nor passwords of the environment: what was checked is what is called.
    checked = _Checked(reach)
    return httpx2.AsyncClient(
        headers=dict(headers), timeout=_TIMES, event_hooks=hooks, transport=checked, trust_env=False, auth=auth
    )


def guarded_client(reach: Reach) -> httpx2.AsyncClient:
    """A client for short answers of whoever a server leads to; it follows no redirect by itself."""
    return httpx2.AsyncClient(
        timeout=_SHORT,
        event_hooks={"request": [_marked], "response": [_bound]},
        transport=_Checked(reach),
        trust_env=False,
    )


async def _marked(request: httpx2.Request) -> None:
    request.headers.update({**mark_header(), **ASKED})


async def _elsewhere(request: httpx2.Request) -> None:
    """Refuse a request to this very process, where the connection is not made by `_Checked`, which looks as well."""
    url = request.url
    port = url.port or _DEFAULT_PORTS.get(url.scheme, 0)
    try:
        addresses = await system_addresses(url.raw_host.decode("ascii"), port)
    except (OSError, UnicodeError):
        return  # a proxy of the environment may know the name; where there is none, connecting fails by itself
    if any(is_own_server(address, port) for address in addresses):
        raise OwnServerError(f"{url.host} is Parlour's own address", request=request)


async def _bound(response: httpx2.Response) -> None:
    is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    unpack(response, None)  # first: what is counted is what comes out
    response.stream = _Bounded(response.stream, is_stream=is_stream)


class _Checked(httpx2.AsyncBaseTransport):
    """Calls checked addresses alone."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._inner = httpx2.AsyncHTTPTransport(verify=reach.trusted or True, trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request to a checked address of the host and no other.

        A name that changes its mind in between gains nothing.
        """
        reach, url = self._reach, request.url
        host = url.raw_host.decode("ascii")
        port = url.port or _DEFAULT_PORTS[url.scheme]
        try:
            addresses = await reach.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(f"{url.host} cannot be found") from error
        if not addresses:
            raise httpx2.ConnectError(f"{url.host} cannot be found")
        if not all(reach.allows(address, port) for address in addresses):
            raise OutOfReachError(f"{url.host} is not an address of the open internet")
        if any(is_own_server(address, port) for address in addresses):
            raise OwnServerError(f"{url.host} is Parlour's own address")
        last: httpx2.TransportError | None = None
        for address in addresses[:_MOST_TRIED]:
            # The certificate must be the name's, whatever the address; the Host header holds the name already.
            request.extensions = {**request.extensions, "sni_hostname": host}
            request.url = url.copy_with(host=address)
            try:
                return await self._inner.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                last = error
            finally:
                request.url = url
        raise last or httpx2.ConnectError(f"{url.host} cannot be reached")

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A body that may be so long; of a stream of events, each event."""

    def __init__(self, inner: Any, *, is_stream: bool) -> None:
        self._inner = inner
        self._is_stream = is_stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        meter = Meter(_EVENTS_A_SECOND, _EVENTS_AT_ONCE)
        async for chunk in self._inner:
            size += len(chunk)
            events = chunk.count(b"\n\n") + chunk.count(b"\r\n\r\n") if self._is_stream else 0
            if events:
                size = 0
            late = sum(not meter.take() for _ in range(events))
            if late:  # a flood waits in its own connection
                await anyio.sleep(min(late / _EVENTS_A_SECOND, 1.0))
            if size > LONGEST_MESSAGE:
                raise TooLargeAnswerError(f"the answer is larger than {LONGEST_MESSAGE // 1024 // 1024} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def opened_transport(
    settings: ServerSettings,
    command: Resolved | None,
    *,
    reach: Reach | None,
    journal: ServerLog,
    gone: Callable[[], None],
    auth: httpx2.Auth | None,
) -> AsyncGenerator[tuple[Any, Any]]:
    """Two streams to a server, closed at the end.

    Args:
        settings: How to reach it.
        command: What to start, for a server on standard input and output.
        reach: How far HTTP may go; anywhere where it is `None`.
        journal: Takes what the server says beside its answers.
        gone: Called when a process has ended by itself.
        auth: Signs what is sent to an address.
    """
    if command is not None:
        environment = environment_of(settings)
        async with process_transport(command, environment, settings.cwd, journal, gone) as streams:
            yield streams
        return
    given, url, signs = settings.revealed("headers"), settings.url or "", auth
    if settings.type == "sse":

        def make(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
            del headers, timeout, auth  # the SDK's; ours are in the client
            return http_client(given, reach, journal, signs)

        async with sse_client(url, httpx_client_factory=make) as streams:
            yield streams
        return
    async with (
        http_client(given, reach, journal, auth) as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams[0], streams[1]
