"""The words of a refusal, without keys in them."""

from __future__ import annotations

import re
from typing import Final

_SECRETS: Final = re.compile(
    r"\b(?:sk|pk|rk|key|hf|gsk|xai)[-_][A-Za-z0-9*_.-]{6,}|(?<=Bearer )[^\s\"']{6,}|AIza[\w-]{20,}"
)
_SHORTEST_KEY: Final = 5
_LONGEST_MESSAGE: Final = 500


def without_keys(text: str, *keys: str) -> str:
    """The text, short and without `keys` and what looks like one; a key too short to be one is left alone."""
    for key in keys:
        if len(key) >= _SHORTEST_KEY:
            text = text.replace(key, "…")
    text = _SECRETS.sub("…", text)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"
