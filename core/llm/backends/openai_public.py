"""An OpenAI-compatible service whose address a stranger typed: only the open internet is called."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import httpx2

from core.llm.backends.http_clients import CONNECT_SECONDS, HttpPool, bounded
from core.llm.backends.openai import NO_KEY, OpenAIModel
from core.llm.backends.openai_clients import ClientPool
from core.llm.public_addresses import public_address
from core.net.unpacked import ASKED

if TYPE_CHECKING:
    import ssl

    from core.llm.public_addresses import Resolve


class PublicTransport(httpx2.AsyncBaseTransport):
    """Connects to the address that was checked, and to no other: a name that changes its mind in between gains nothing.

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


@cache
def public_pool() -> ClientPool:
    """The pool of this process for such services, made when it is first asked for."""
    return ClientPool(HttpPool(public_client))


class PublicOpenAIModel(OpenAIModel):
    """As `openai`, for an address that was typed by somebody who must not reach this machine's network."""

    model_type = "openai_public"

    pool = staticmethod(public_pool)

    def _usual_key(self) -> str | None:
        """None of this machine's: whoever typed the address would get it."""
        return NO_KEY


def _port(scheme: str) -> int:
    return 443 if scheme == "https" else 80
