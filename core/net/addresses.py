"""Which addresses may be called: those of the open internet; those of the owner's own network only where that is said.

Names are looked up here, and every address of a name must be allowed. The ports at which this process serves people are
never called.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

import psutil

if TYPE_CHECKING:
    import ssl
    from collections.abc import Generator, Mapping


Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]

PORTS = frozenset({80, 443, 8080, 8443})
_TRANSLATED = ip_network("64:ff9b::/96")  # IPv4 behind IPv6
_OWN = tuple(map(ip_network, ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")))
_CLOUD = frozenset(
    map(ip_address, ("169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254"))
)


def is_public(address: str) -> bool:
    """Whether an IP address is of the open internet, and not of this machine, its network or its cloud."""
    ip = plain_address(address)
    if ip is None or ip in _CLOUD or (isinstance(ip, IPv6Address) and ip.is_site_local):
        return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


def is_own(address: str) -> bool:
    """Whether an IP address is of this machine or its network; what a cloud tells its machines about is of neither."""
    ip = plain_address(address)
    return ip is not None and ip not in _CLOUD and any(ip in network for network in _OWN)


def open_internet(address: str, port: int) -> bool:
    """Public addresses, on the ports that pages and files are served from."""
    return port in PORTS and is_public(address)


def open_internet_and_own_network(address: str, port: int) -> bool:
    """The same, and whatever runs on this machine and its network."""
    return open_internet(address, port) or is_own(address)


async def system_addresses(host: str, port: int) -> list[str]:
    """The addresses of a name as this machine knows them. Raises OSError or UnicodeError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a fetch may go.

    Args:
        allows: Whether an IP address and port may be called.
        resolve: Finds the addresses of a name.
        trusted: The certificates to trust; those that the web trusts if left out.
    """

    allows: Callable[[str, int], bool] = open_internet
    resolve: Resolve = system_addresses
    trusted: ssl.SSLContext | None = None


def plain_address(address: str) -> IPv4Address | IPv6Address | None:
    """The address; the IPv4 one that an IPv6 one stands for; `None` where it is none."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(ip, IPv4Address):
        return ip
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip.teredo is not None:
        return ip.teredo[1]
    return IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _TRANSLATED else ip


MARK_HEADER = "parlour-request"

_HERE: tuple[IPv4Network | IPv6Network, ...] = tuple(map(ip_network, ("127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128")))
_served: list[tuple[int, str]] = []


@contextmanager
def serving(port: int, secret: str) -> Generator[None]:
    """Inside, this process serves people at `port`.

    Args:
        port: Where it listens, at whatever address.
        secret: Makes what goes along with a call as `MARK_HEADER`; the same for all processes of one installation.
    """
    entry = (port, secret)
    _served.append(entry)
    try:
        yield
    finally:
        _served.remove(entry)


def is_own_server(address: str, port: int) -> bool:
    """Whether an IP address and port are those of this process, in whatever spelling and at whichever of its addresses.

    Another program that listens at the same port of another address of this machine counts as this process, too.
    """
    return any(port == own for own, _ in _served) and _is_this_machine(address)


def mark_header() -> Mapping[str, str]:
    """What goes along with a request that a tool, a link or a server of tools makes."""
    return {MARK_HEADER: _mark(_served[-1][1], secrets.token_hex(8))} if _served else {}


def is_own_request(mark: str) -> bool:
    """Whether a request that carries this mark comes from this installation itself."""
    number = mark.partition(".")[0]
    return any(hmac.compare_digest(mark.encode(), _mark(secret, number).encode()) for _, secret in _served)


def _mark(secret: str, number: str) -> str:
    return f"{number}.{hmac.new(secret.encode(), f'parlour.request.{number}'.encode(), 'sha256').hexdigest()[:32]}"


def _is_this_machine(address: str) -> bool:
    ip = plain_address(address)
    if ip is None:
        return False
    if any(ip in network for network in _HERE):
        return True
    return any(plain_address(one.address) == ip for addresses in psutil.net_if_addrs().values() for one in addresses)
