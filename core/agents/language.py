"""Which of Parlour's two languages a conversation is in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.messages.message import USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import Lang
    from core.messages.message import Message

_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_CHINESE = re.compile(r"[\u3400-\u9fff]")


def language_of(messages: Sequence[Message]) -> Lang:
    """The language of the last thing a user said in words."""
    for message in reversed(messages):
        if message.role == USER and (text := message.get_text_content().strip()):
            return "zh" if _is_chinese(text[:4000]) else "en"
    return "en"


def _is_chinese(text: str) -> bool:
    """Whether Chinese characters outnumber the words beside them: a term in the other language is no switch."""
    return len(_CHINESE.findall(text)) > len(_LATIN_WORD.findall(text))
