"""English for the versions of a question or reply; part of `en.py`."""

from __future__ import annotations

VERSIONS: dict[str, str] = {
    "versions.which": "Version {number} of {total}",
    "versions.older": "Previous version",
    "versions.newer": "Next version",
}
