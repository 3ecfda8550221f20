"""Which addresses a stranger may make this machine call: those of the open internet, checked before each connection."""

from __future__ import annotations

import asyncio

from core.errors import ModelUnavailableError, SettingsError
from core.net.addresses import PORTS, Resolve, is_public, system_addresses
from core.net.own_server import is_own_server

_WITHIN = 5.0  # seconds for a name


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
