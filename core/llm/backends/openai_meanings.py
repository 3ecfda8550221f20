"""What a refusal means to a user: the service's words say more than its status, so they are looked at first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.llm.backends import meanings

if TYPE_CHECKING:
    from core.llm.backends.meanings import Meaning

NO_CALLS: Final = re.compile(
    r"does not support (?:tool|function)|auto.{0,3} tool choice requires|tools? param requires|support tool use"
    r"|tool.?call(?:ing|s)?['\"`]* (?:is |are )?not supported|tools['\"`]* (?:is|are) not supported"
    r"|argument supplied: tools",
    re.IGNORECASE,
)
"""How services without calls of their own say so."""

TOO_LONG: Final = re.compile(
    r"context_length_exceeded|maximum context length|context (?:length|size|window)|prompt is too long|too many tokens"
    r"|range of input length",
    re.IGNORECASE,
)
INSPECTED: Final = re.compile(
    r"data_?inspection_?failed|inappropriate content|content_filter|content_policy", re.IGNORECASE
)
_BLIND: Final = re.compile(
    r"(?:image|vision|multi.?modal)\w{0,30}(?: \w{1,30})? (?:is|are) not supported"
    r"|not support (?:image|vision|multi.?modal)|not a (?:multi.?modal|vision) model|unknown variant .?image_url",
    re.IGNORECASE,
)
_DEAF: Final = re.compile(
    r"audio\w{0,30}(?: \w{1,30})? (?:is|are) not supported|not support audio|unknown variant .?input_audio",
    re.IGNORECASE,
)
_USED_UP: Final = re.compile(r"insufficient_quota")
_WRONG_KEY: Final = re.compile(r"api.?key (?:is )?(?:not valid|invalid)|invalid.?api.?key", re.IGNORECASE)


# Some services call these an error of their own, with a status of 500, which would be tried again.
_WORDS: Final = (
    (INSPECTED, meanings.INSPECTED),
    (NO_CALLS, meanings.NO_CALLS),
    (_BLIND, meanings.BLIND),
    (_DEAF, meanings.DEAF),
)


def meaning(status: int, about: str) -> Meaning:
    """What a status from 400 on means, together with the service's code and words."""
    for words, said in _WORDS:
        if words.search(about):
            return said
    if status in {400, 422} and TOO_LONG.search(about):
        return meanings.TOO_LONG
    if status == 400 and _WRONG_KEY.search(about):
        return meanings.KEY
    if _USED_UP.search(about):
        return meanings.USED_UP
    return meanings.by_status(status)
