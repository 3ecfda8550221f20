"""Which addresses a stranger may make this machine call: those of the open internet, checked before each connection."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from core.errors import ModelUnavailableError, SettingsError

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]

PORTS = frozenset({80, 443, 8080, 8443})
_WITHIN = 5.0  # seconds for a name
_TRANSLATED = ip_network("64:ff9b::/96")  # IPv4 behind IPv6


def is_public(address: str) -> bool:
    """Whether an IP address is of the open internet, and not of this machine, its network or its cloud."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        inside = _carried(ip)
        if inside is not None:
            return is_public(str(inside))
        if ip.is_site_local:
            return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


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
        async with asyncio.timeout(_WITHIN):
            found = await (resolve or _resolved)(host, port)
    except (OSError, UnicodeError) as error:
        raise _unknown(host) from error
    if not found:
        raise _unknown(host)
    if not all(is_public(address) for address in found):
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


def _carried(ip: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for."""
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip.teredo is not None:
        return ip.teredo[1]
    return IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _TRANSLATED else None


async def _resolved(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))
