"""What a model takes besides text, as far as its name tells: services do not say it."""

from __future__ import annotations

import re
from typing import Final

_SEES: Final = re.compile(
    r"gpt-4o|gpt-4\.1|gpt-5|\bo[134]\b|vl\b|-vl|vision|gemma-?3|llava|pixtral|claude|gemini|qvq|omni|minicpm-v|internvl"
    r"|llama-?4",
    re.IGNORECASE,
)
_HEARS: Final = re.compile(r"gpt-4o(?:-mini)?-audio|gpt-audio|omni|voxtral|qwen\d?-audio|gemini", re.IGNORECASE)
_LONGEST: Final = 200  # letters of a name
_WATCHES: Final = re.compile(r"qwen.*vl|vl.*qwen|qvq|omni|minicpm-v|internvl|gemini", re.IGNORECASE)


def sees_by_name(model: str) -> bool:
    """Whether it takes pictures."""
    return bool(_SEES.search(model[:_LONGEST]))


def hears_by_name(model: str) -> bool:
    """Whether it takes recordings."""
    return bool(_HEARS.search(model[:_LONGEST]))


def watches_by_name(model: str) -> bool:
    """Whether it takes videos."""
    return bool(_WATCHES.search(model[:_LONGEST]))
