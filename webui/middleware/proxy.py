"""What proxies say about a request: believed where a setting names the proxy, and never passed on.

A proxy that adds nothing to a request cannot be told from a browser, so no decision about who may do what rests on the
absence of these headers. Their presence does say that a request was relayed.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from webui.client_address import client_address, plain_address

if TYPE_CHECKING:
    from collections.abc import Sequence
    from ipaddress import IPv4Network, IPv6Network

    from starlette.types import ASGIApp, Receive, Scope, Send

Relayed: TypeAlias = Literal["no", "trusted", "unknown"]
"""In `scope["relayed"]`: whether a proxy passed the request on, and whether the settings name it."""

_FORWARDED = frozenset(
    {b"forwarded", b"via", b"x-real-ip", b"x-client-ip", b"x-original-host", b"cf-connecting-ip", b"true-client-ip"}
)
_NOT_FOR_GRADIO = frozenset({b"x-gradio-server"})  # it would write this address into the page


class ProxyMiddleware:
    """Puts the client's own address and scheme in place, says whether the request was relayed, drops the headers.

    Args:
        app: What comes next.
        trusted: Addresses and networks of proxies.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str] = ()) -> None:
        self.app = app
        self._trusted: list[IPv4Network | IPv6Network] = [ip_network(one, strict=False) for one in trusted]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self.app(self.seen(scope) if scope["type"] == "http" else scope, receive, send)

    def seen(self, scope: Scope) -> Scope:
        """The request as its client sent it, as far as a proxy that is trusted tells."""
        said: dict[bytes, list[str]] = {}
        kept: list[tuple[bytes, bytes]] = []
        for name, value in scope["headers"]:
            lower = name.lower()
            if lower in _FORWARDED or lower.startswith(b"x-forwarded-"):
                said.setdefault(lower, []).extend(part.strip() for part in value.decode("latin-1").split(","))
            elif lower not in _NOT_FOR_GRADIO:
                kept.append((name, value))
        if not said:
            return {**scope, "headers": kept, "relayed": "no"}
        if not self._is_trusted(client_address(scope)):
            return {**scope, "headers": kept, "relayed": "unknown"}
        return {**scope, **self._told(said, kept), "relayed": "trusted"}

    def _told(self, said: dict[bytes, list[str]], headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
        """What the proxy tells of the client; the last entry of each list is its own, those before may be anybody's."""
        told: dict[str, Any] = {"headers": headers}
        client = self._client(said.get(b"x-forwarded-for", []))
        if client:
            told["client"] = (client, 0)
        scheme = said.get(b"x-forwarded-proto", [""])[-1].lower()
        if scheme in {"http", "https"}:
            told["scheme"] = scheme
        host = said.get(b"x-forwarded-host", [""])[-1]
        if host:  # checked against the names that are known, as any other
            told["headers"] = [(b"host", host.encode("latin-1")), *(one for one in headers if one[0] != b"host")]
        return told

    def _client(self, hops: list[str]) -> str:
        """The nearest address that is no trusted proxy; where all are, the furthest."""
        found = ""
        for hop in reversed(hops):
            address = _without_port(hop)
            if not address:
                return found
            found = address
            if not self._is_trusted(address):
                return found
        return found

    def _is_trusted(self, address: str) -> bool:
        if not address:
            return False
        known = ip_address(address)
        return any(known in network for network in self._trusted)


def _without_port(hop: str) -> str:
    """The address of an entry, which some proxies write with a port."""
    hop = hop.strip().strip('"')
    if hop.startswith("["):
        return plain_address(hop[1:].partition("]")[0])
    return plain_address(hop) or plain_address(hop.partition(":")[0])
