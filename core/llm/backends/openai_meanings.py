"""What a refusal means to a user: the service's words say more than its status, so they are looked at first."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from core.errors import ContextTooLongError, ModelRefusedError, ModelServiceError, ModelUnavailableError

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
    r"(?:image|vision|multi.?modal)\w*(?: \w+)? (?:is|are) not supported|not support (?:image|vision|multi.?modal)"
    r"|not a (?:multi.?modal|vision) model|unknown variant .?image_url",
    re.IGNORECASE,
)
_DEAF: Final = re.compile(
    r"audio\w*(?: \w+)? (?:is|are) not supported|not support audio|unknown variant .?input_audio", re.IGNORECASE
)
_USED_UP: Final = re.compile(r"insufficient_quota")


class Meaning(NamedTuple):
    """The class of the error, the key of the page's sentence, and what to do next."""

    kind: type[ModelServiceError]
    key: str
    hint: str


_LONG: Final = Meaning(ContextTooLongError, "", "Start a new conversation, or shorten the message.")
_KEY: Final = Meaning(ModelRefusedError, "model_key_wrong", "Check the API key and what it may use.")
_QUOTA: Final = Meaning(ModelRefusedError, "model_quota", "Check the account's balance with the service.")
_BUSY: Final = Meaning(ModelUnavailableError, "model_overloaded", "Wait a little and ask again.")
_DOWN: Final = Meaning(ModelUnavailableError, "", "Wait a little and ask again.")
_REFUSED: Final = Meaning(ModelRefusedError, "", "Change what it names: the messages, the tools, or generate_cfg.")

# Some services call these an error of their own, with a status of 500, which would be tried again.
_WORDS: Final = (
    (INSPECTED, Meaning(ModelRefusedError, "model_content_refused", "Rephrase the question.")),
    (NO_CALLS, Meaning(ModelRefusedError, "", "Leave use_raw_api out: the tools go into the prompt then.")),
    (_BLIND, Meaning(ModelRefusedError, "picture_not_taken", "Ask a model that sees, or set vision: false.")),
    (_DEAF, Meaning(ModelRefusedError, "sound_not_taken", "Ask a model that hears, or set audio: false.")),
)
_STATUSES: Final = {
    401: _KEY,
    402: _QUOTA,
    403: _KEY,
    404: Meaning(ModelRefusedError, "model_unknown", "Check the model's name and the service's address."),
    408: _DOWN,
    413: _LONG,
    429: _BUSY,
    503: _BUSY,
    529: _BUSY,
}


def meaning(status: int, about: str) -> Meaning:
    """What a status from 400 on means, together with the service's code and words."""
    for words, said in _WORDS:
        if words.search(about):
            return said
    if status in {400, 422} and TOO_LONG.search(about):
        return _LONG
    if _USED_UP.search(about):
        return _QUOTA
    return _STATUSES.get(status) or (_DOWN if status >= 500 else _REFUSED)
