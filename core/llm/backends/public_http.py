"""HTTP to the open internet alone, for addresses that strangers typed; each is checked before every connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2

from core.errors import ModelUnavailableError, SettingsError
from core.llm.backends.http_clients import CONNECT_SECONDS, bounded
from core.net.addresses import PORTS, Resolve, is_own_server, is_public, system_addresses
from core.net.body import ASKED

if TYPE_CHECKING:
    import ssl

_LOOKUP_SECONDS = 5.0


async def public_address(host: str, port: int, resolve: Resolve | None = None) -> str:
    """The IP address to connect to, for a host that somebody typed.

    Args:
        host: A name, or an address in any form that the system understands.
        port: Where to connect.
        resolve: Finds the addresses of a name; the system's way if left out.

    Raises:
        SettingsError: key `address_private`: one of its addresses is not public, or the port is not one of services.
        ModelUnavailableError: key `model_unreachable`: the name is not known.
    """
    if port not in PORTS:
        raise refused(host)
    try:
        async with asyncio.timeout(_LOOKUP_SECONDS):
            found = await (resolve or system_addresses)(host, port)
    except (OSError, UnicodeError) as error:
        raise _unknown(host) from error
    if not found:
        raise _unknown(host)
    if not all(is_public(address) and not is_own_server(address, port) for address in found):
        raise refused(host)
    return found[0]


def refused(host: str) -> SettingsError:
    """The error for an address that only whoever runs Parlour may use."""
    hint = "On a shared page only public addresses can be used, on the usual ports."
    return SettingsError(f"{host} is not a public address.", hint=hint, key="address_private", host=host)


def _unknown(host: str) -> ModelUnavailableError:
    error = ModelUnavailableError(
        message=f"{host} cannot be found.", hint="Check the address.", key="model_unreachable"
    )
    error.details["host"] = host
    return error


class PublicTransport(httpx2.AsyncBaseTransport):
    """Connects to the very address that was checked, so that DNS rebinding gains nothing.

    Args:
        resolve: Finds the addresses of a name; the system's way if left out.
        trusted: The certificates to trust; they are read if left out.
    """

    def __init__(self, resolve: Resolve | None = None, trusted: ssl.SSLContext | None = None) -> None:
        self._resolve = resolve
        self._inner = httpx2.AsyncHTTPTransport(verify=trusted or True, trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the certificate must be the name's.

        Raises:
            ParlourError: The address is not public, or not known.
        """
        url = request.url
        address = await public_address(url.host, url.port or _port(url.scheme), self._resolve)
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        request.url = url.copy_with(host=address)  # the Host header is the name's already
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def public_client(trusted: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    """A client that calls the open internet alone. It follows no redirect, and no proxy of the environment."""
    timeout = httpx2.Timeout(60.0, connect=CONNECT_SECONDS)
    transport = PublicTransport(trusted=trusted)
    return httpx2.AsyncClient(
        transport=transport,
        timeout=timeout,
        follow_redirects=False,
        trust_env=False,
        headers=ASKED,
        event_hooks={"response": [bounded]},
    )


def _port(scheme: str) -> int:
    return 443 if scheme == "https" else 80
