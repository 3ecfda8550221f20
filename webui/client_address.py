"""Which address a request came from: the one function to ask, wherever something counts by address."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request


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
