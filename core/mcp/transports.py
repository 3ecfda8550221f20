"""The way to a server that its settings ask for."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from core.mcp.commands import environment_of
from core.mcp.stdio import process_transport
from core.mcp.web import http_client

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import httpx2

    from core.mcp.commands import Resolved
    from core.mcp.journal import Journal
    from core.mcp.settings import ServerSettings
    from core.net.addresses import Reach


@asynccontextmanager
async def opened_transport(
    settings: ServerSettings,
    command: Resolved | None,
    *,
    reach: Reach | None,
    journal: Journal,
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
