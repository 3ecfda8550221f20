"""Which language what Parlour adds to a prompt is written in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from core.messages.message import SYSTEM, USER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.messages.message import Message

_CHINESE = re.compile("[\u4e00-\u9fff]")


def language_of(messages: Iterable[Message]) -> Literal["en", "zh"]:
    """Chinese where a person, or whoever set the model up, writes Chinese; what tools return decides nothing."""
    said = (message.get_text_content() for message in messages if message.role in {SYSTEM, USER})
    return "zh" if any(map(has_chinese, said)) else "en"


def has_chinese(text: str) -> bool:
    """Whether any character is a Chinese one (U+4E00 to U+9FFF)."""
    return not text.isascii() and _CHINESE.search(text) is not None
