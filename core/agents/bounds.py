"""Whole numbers that an agent is given."""

from __future__ import annotations

from core.errors import SettingsError


def whole(field: str, given: object, least: int, most: int | None = None) -> int:
    """The number, where it is one and lies within its bounds, which belong to it.

    Raises:
        SettingsError: It is no whole number, or beyond them.
    """
    if type(given) is int and least <= given and (most is None or given <= most):
        return given
    bounds = f"{least} or more" if most is None else f"{least} to {most}"
    raise SettingsError(f"{field} must be {bounds}, as a whole number, not {given!r}.")
