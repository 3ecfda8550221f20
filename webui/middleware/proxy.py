"""What proxies say about a request: believed where a setting names the proxy, and never passed on.

A proxy that adds nothing to a request cannot be told from a browser, so no decision about who may do what rests on the
absence of these headers. Their presence does say that a request was relayed.
"""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from ipaddress import IPv4Network

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

"""In `scope["relayed"]`: whether a proxy passed the request on, and whether the settings name it."""

_FORWARDED = frozenset(
    {b"forwarded", b"via", b"x-real-ip", b"x-client-ip", b"x-original-host", b"cf-connecting-ip", b"true-client-ip"}
)
_NOT_FOR_GRADIO = frozenset({b"x-gradio-server"})  # it would write this address into the page


class ProxyMiddleware:
    """Puts the client's own address and scheme in place, says whether the request was relayed, drops the headers.

    Args:
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


def client_address(asked: Request | Mapping[str, Any]) -> str:
    """The IP address of whoever asks, one spelling for each address; "" where it is not known.

    Behind a proxy that `PARLOUR_TRUSTED_PROXIES` names it is the address that the proxy tells, behind any other proxy
    the proxy's own. `ProxyMiddleware` has seen to that before anything else looks at the request.

    Args:
        asked: A request, or its ASGI scope.
    """
    scope = cast("Mapping[str, Any]", getattr(asked, "scope", asked))
    client = scope.get("client")
    return plain_address(str(client[0])) if client else ""


def counted_as(address: str) -> str:
    """What an address is counted as: of IPv6 the network of 64 bits, which one client has to itself."""
    if ":" not in address:
        return address
    return str(IPv6Network((address, 64), strict=False))


def plain_address(text: str) -> str:
    """An IP address without its zone, an IPv4 one out of IPv6; "" where it is none."""
    try:
        address = ip_address(text.strip().partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
