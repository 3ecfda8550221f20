"""What a refusal of DashScope's means to a user: its words and codes say more than its status."""

from __future__ import annotations

import re
from typing import Final

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError
from core.llm.backends import meanings
from core.llm.backends.meanings import Meaning

_OTHER_SERVICE: Final = Meaning(
    ModelRefusedError,
    "",
    "Models of text are of the type qwen_dashscope; those that see or hear of qwenvl_dashscope or qwenaudio_dashscope.",
)

NO_CALLS: Final = re.compile(
    r"(?:tool|function)[_ ]?(?:call|calling|choice|s)?\b.{0,30}not support|not support.{0,30}(?:tool|function)"
    r"|tool_choice is one of",
    re.IGNORECASE,
)
"""How models without calls of their own say so, or without a choice among them while they think."""

# The codes say more than the status does, and the words sometimes more than the code: the first that is found counts.
_WORDS: Final = tuple(
    (re.compile(words, re.IGNORECASE), said)
    for words, said in (
        (r"data_?inspection_?failed|inappropriate content|content_filter", meanings.INSPECTED),
        (
            r"range of input length|context[_ ](?:length|size|window)|prompt is too long|too many tokens",
            meanings.TOO_LONG,
        ),
        (
            r"arrearage|good standing|overdue|free_?tier|free (?:\w+ )?quota|not_?purchased|unpurchased",
            meanings.USED_UP,
        ),
        (r"insufficient_?\w*quota", meanings.USED_UP),
        (r"^throttling|limit_?requests|rate ?limit|ratequota", meanings.BUSY),
        (r"invalid_?api_?key|invalid api-?key|incorrect api key", meanings.KEY),
        (r"url error, please check url", _OTHER_SERVICE),
        (r"model_?not_?found|model not exist|model .{0,60}(?:does )?not exist|no such model", meanings.UNKNOWN),
        (NO_CALLS.pattern, meanings.NO_CALLS),
    )
)
# A model's own refusal, passed on by the service as a failure of its own: asking again would not help.
_INNER: Final = re.compile(r"(?:<|Error code: )([45]\d\d)\b")
# In a stream an older service leaves the status out: the code's beginning tells it.
_BEGINNINGS: Final = {
    "internalerror": 500,
    "systemerror": 500,
    "requesttimeout": 408,
    "serviceunavailable": 503,
    "modelserving": 503,
    "modelunavailable": 503,
    "throttling": 429,
    "invalidapikey": 401,
    "accessdenied": 403,
    "model": 404,
    "invalid": 400,
    "badrequest": 400,
    "datainspection": 400,
    "arrearage": 400,
}


def status_of(code: str) -> int:
    """The HTTP status that a code stands for, where an event brought none; 0 where that is not known."""
    plain = code.lower().replace("_", "")
    return next((known for start, known in _BEGINNINGS.items() if plain.startswith(start)), 0)


def meaning(status: int, code: str, message: str, *, spoke: bool) -> Meaning:
    """What a refusal means.

    Args:
        status: HTTP status; 0 where it is not known.
        code: The service's own.
        message: Its words.
        spoke: Whether part of the reply had come.
    """
    about = f"{code} {message}"
    for words, said in _WORDS:
        if words.search(about):
            return said
    inner = _INNER.match(message)
    if inner and status not in range(400, 500):
        status = int(inner[1])
    if status:
        return meanings.by_status(status)
    return Meaning(ModelMisbehavedError if spoke else ModelUnavailableError, "", "Ask again.")
