"""Whether an address is one of a PostgreSQL database, which is asked before anything that speaks to one is needed."""

from __future__ import annotations

from typing import Final

from core.errors import SettingsError

KINDS: Final = frozenset({"postgresql", "postgres"})
"""What such an address begins with, before `://`."""


def check_kind(address: str) -> None:
    """Check what an address begins with. Raises SettingsError (key `storage_address`)."""
    kind, apart, _ = address.partition("://")
    if not apart or kind not in KINDS:
        raise wrong_address()


def wrong_address() -> SettingsError:
    """What is said of an address that is none of a PostgreSQL database; it shows nothing of it."""
    return SettingsError(
        "PARLOUR_DATABASE must be the address of a PostgreSQL database.",
        hint="Write it as postgresql://name:password@host:5432/database, with %40 for an @ in the password.",
        key="storage_address",
    )
