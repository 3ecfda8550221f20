"""What refusals mean to a user, whichever service says so: the error, the page's sentence, what to do next."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from core.errors import ContextTooLongError, ModelRefusedError, ModelServiceError, ModelUnavailableError


class Meaning(NamedTuple):
    """The class of the error, the key of the page's sentence, and what to do next."""

    kind: type[ModelServiceError]
    key: str
    hint: str


FOREIGN: Final = re.compile(
    r"illegal|invalid|malformed|not HTTP|bad (?:status|header)|WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL|record layer",
    re.IGNORECASE,
)
"""A server that speaks something else than HTTP, or HTTP where TLS was meant and the other way round."""

INSPECTED: Final = Meaning(ModelRefusedError, "model_content_refused", "Rephrase the question.")
TOO_LONG: Final = Meaning(ContextTooLongError, "", "Start a new conversation, or shorten the message.")
KEY: Final = Meaning(ModelRefusedError, "model_key_wrong", "Check the API key and what it may use.")
USED_UP: Final = Meaning(ModelRefusedError, "model_quota", "Check the account's balance with the service.")
BUSY: Final = Meaning(ModelUnavailableError, "model_overloaded", "Wait a little and ask again.")
DOWN: Final = Meaning(ModelUnavailableError, "", "Wait a little and ask again.")
UNKNOWN: Final = Meaning(ModelRefusedError, "model_unknown", "Check the model's name and the service's address.")
NO_CALLS: Final = Meaning(ModelRefusedError, "", "Leave use_raw_api out: the tools go into the prompt then.")
BLIND: Final = Meaning(ModelRefusedError, "picture_not_taken", "Ask a model that sees, or set vision: false.")
DEAF: Final = Meaning(ModelRefusedError, "sound_not_taken", "Ask a model that hears, or set audio: false.")
REFUSED: Final = Meaning(ModelRefusedError, "", "Change what it names: the messages, the tools, or generate_cfg.")

_STATUSES: Final = {
    401: KEY,
    402: USED_UP,
    403: KEY,
    404: UNKNOWN,
    408: DOWN,
    413: TOO_LONG,
    429: BUSY,
    503: BUSY,
    529: BUSY,
}


def by_status(status: int) -> Meaning:
    """What an HTTP status from 400 on means by itself."""
    return _STATUSES.get(status) or (DOWN if status >= 500 else REFUSED)
