"""What a program gives as a path."""

from __future__ import annotations

from os import PathLike, fspath
from typing import Any, cast

from core.errors import SettingsError


def path_given(given: object, what: str, hint: str = "Give its path.") -> str:
    """The path as text.

    Args:
        given: What should be one.
        what: What it is the path of, for the error.
        hint: What to give instead.

    Raises:
        SettingsError: It is no path: `None`, or bytes for example.
    """
    if isinstance(given, str | PathLike):
        path: object = fspath(cast("str | PathLike[Any]", given))
        if isinstance(path, str):
            return path
    kind = "None" if given is None else type(cast("object", given)).__name__
    raise SettingsError(f"{what} cannot be given as {kind}.", hint=hint)
