"""Options of tools, read with one clear sentence for what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping


def whole_number(cfg: Mapping[str, object], name: str, usual: int, least: int, most: int) -> int:
    """An option that counts something.

    Args:
        cfg: The tool's options.
        name: Of the option.
        usual: Where it is left out.
        least: The smallest that it may be.
        most: The largest that it may be.

    Raises:
        SettingsError: It is no whole number within these bounds.
    """
    given = cfg.get(name)
    if given is None:
        return usual
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise SettingsError(f"The option {name!r} must be a whole number from {least} to {most}, not {given!r}.")
    return given
