"""What refusals mean, by the words of services: those of the OpenAI protocol and of others that word them alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.llm.backends import errors

if TYPE_CHECKING:
    from core.llm.backends.errors import Meaning

NO_CALLS: Final = re.compile(
    r"does not support (?:tool|function)|auto.{0,3} tool choice requires|tools? param requires|support tool use"
    r"|tool.?call(?:ing|s)?['\"`]* (?:is |are )?not supported|tools['\"`]* (?:is|are) not supported"
    r"|argument supplied: tools",
    re.IGNORECASE,
)
"""Refusals by services that have no tool calling."""

_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|maximum context length|context (?:length|size|window)|prompt is too long|too many tokens"
    r"|range of input length|input (?:token count|is too long)|too large for model",
    re.IGNORECASE,
)
_INSPECTED: Final = re.compile(
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
_USED_UP: Final = re.compile(r"insufficient_quota|credit balance is too low", re.IGNORECASE)
_WRONG_KEY: Final = re.compile(r"api.?key (?:is )?(?:not valid|invalid)|invalid.?api.?key", re.IGNORECASE)


# Looked for before the status: some services send these with a 500, which would be retried.
_WORDS: Final = (
    (_INSPECTED, errors.INSPECTED),
    (NO_CALLS, errors.NO_CALLS),
    (_BLIND, errors.BLIND),
    (_DEAF, errors.DEAF),
)


def says_why(about: str) -> bool:
    """Whether a message tells by itself what is wrong: with the content, or with its length."""
    return bool(_INSPECTED.search(about) or _TOO_LONG.search(about))


def meaning(status: int, about: str) -> Meaning:
    """What a status of 400 or more means, given the service's code and message."""
    for words, said in _WORDS:
        if words.search(about):
            return said
    if status in {400, 422} and _TOO_LONG.search(about):
        return errors.TOO_LONG
    if status == 400 and _WRONG_KEY.search(about):
        return errors.KEY
    if _USED_UP.search(about):
        return errors.USED_UP
    return errors.by_status(status)


_OF_LLAMA_CPP: Final = re.compile(r"(?:Field '(?P<field>[^']*)': )?\[json\.exception\.[\w.]+\] (?P<why>.*)", re.DOTALL)
_WRONG_KIND: Final = re.compile(r"type must be (?P<wanted>\w+), but is (?P<given>\w+)")
_KINDS: Final = {
    "array": "a list",
    "boolean": "true or false",
    "null": "nothing",
    "number": "a number",
    "object": "a dict",
    "string": "a text",
}


def in_words(message: str) -> str:
    """What llama.cpp says about a setting, as a sentence; it shows the exception of its JSON library as it is."""
    found = _OF_LLAMA_CPP.search(message)
    if found is None:
        return message
    field = f"{found['field']} of generate_cfg" if found["field"] else "A setting of generate_cfg"
    kinds = _WRONG_KIND.search(found["why"])
    if kinds is None:
        return f"{field} is wrong: {found['why']}"
    wanted, given = (_KINDS.get(kinds[name], kinds[name]) for name in ("wanted", "given"))
    return f"{field} must be {wanted}, not {given}."
