"""The ports that this process itself serves people at: nothing that a tool, a link or a server names may call them.

Whoever serves says so with `serving`. There are two bars: an address of this machine with such a port is not called at
all, and whatever is called gets a mark along that the own server refuses, for a name or a forwarded port may lead back
here by ways that cannot be seen from inside. Each mark is another one: two sites cannot tell by them that the same
installation asked.
"""

from __future__ import annotations

import hmac
import secrets
from contextlib import contextmanager
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TYPE_CHECKING

import psutil

from core.net.addresses import plain_address

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

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
