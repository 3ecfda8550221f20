"""Room on the disk of the data folder."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_LEAST_FREE = 16 * 1024 * 1024  # bytes; below it neither a reply nor an uploaded file can be counted on to be kept


def told(home: Path) -> dict[str, Any]:
    """What `/readyz` says: whether there is room, and how many bytes are free; `None` where the system does not say."""
    try:
        free = shutil.disk_usage(home).free
    except OSError:
        return {"ready": home.is_dir(), "free": None}
    return {"ready": free >= _LEAST_FREE, "free": free}
