"""Paths as people and messages write them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def user_path(given: str | Path) -> Path:
    """A path with `~` as the user's home; one of a user whom nobody knows stays as it is."""
    try:
        return Path(given).expanduser()
    except RuntimeError:
        return Path(given)


def path_of(address: str) -> Path:
    """The file that a path or a `file:` URL names."""
    try:
        return Path(url2pathname(urlsplit(address).path) if address.startswith("file:") else address)
    except ValueError:  # a host that is none
        return Path(address)
