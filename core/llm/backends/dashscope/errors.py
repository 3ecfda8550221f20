"""Errors of DashScope's protocol, translated into Parlour's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError
from core.llm.backends import errors
from core.llm.backends.errors import INSPECTED, Meaning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.errors import ModelServiceError

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
"""Refusals by models that have no tool calling, or no tool choice while they think."""

# Codes say more than the status, and messages sometimes more than codes: the first match counts.
_WORDS: Final = tuple(
    (re.compile(words, re.IGNORECASE), said)
    for words, said in (
        (r"data_?inspection_?failed|inappropriate content|content_filter", errors.INSPECTED),
        (
            r"range of input length|context[_ ](?:length|size|window)|prompt is too long|too many tokens",
            errors.TOO_LONG,
        ),
        (
            r"arrearage|good standing|overdue|free_?tier|free (?:\w+ )?quota|not_?purchased|unpurchased",
            errors.USED_UP,
        ),
        (r"insufficient_?\w*quota", errors.USED_UP),
        (r"^throttling|limit_?requests|rate ?limit|ratequota", errors.BUSY),
        (r"invalid_?api_?key|invalid api-?key|incorrect api key", errors.KEY),
        (r"url error, please check url", _OTHER_SERVICE),
        (r"model_?not_?found|model not exist|model .{0,60}(?:does )?not exist|no such model", errors.UNKNOWN),
        (NO_CALLS.pattern, errors.NO_CALLS),
    )
)
# A status that the model answered, wrapped by the service into a failure of its own: retrying would not help.
_INNER: Final = re.compile(r"(?:<|Error code: )([45]\d\d)\b")
# Older services leave the status out of a stream: the code's beginning tells it.
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
    """The HTTP status that a code stands for; 0 where that is not known."""
    plain = code.lower().replace("_", "")
    return next((known for start, known in _BEGINNINGS.items() if plain.startswith(start)), 0)


def meaning(status: int, code: str, message: str, *, spoke: bool) -> Meaning:
    """What a refusal means to the user.

    Args:
        status: HTTP status; 0 where it is not known.
        code: The service's own.
        message: The service's, redacted.
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
        return errors.by_status(status)
    return Meaning(ModelMisbehavedError if spoke else ModelUnavailableError, "", "Ask again.")


class Translator(errors.Translator):
    """Translates failures of a service of DashScope's own protocol."""

    protocol = "DashScope"
    ending = "/api/v1"

    def refusal(
        self, status: int, said: Mapping[str, Any], retry_after: float | None = None, *, spoke: bool = False
    ) -> ModelServiceError:
        """The error for a refusal.

        Args:
            status: HTTP status; 0 where the event left it out.
            said: `code`, `message` and `request_id`, each where there is one.
            retry_after: Seconds that the service asks to wait.
            spoke: Whether part of the reply had come.
        """
        code = str(said.get("code") or said.get("type") or "")
        message = self.redacted(str(said.get("message") or f"HTTP status {status}"))
        status = status or status_of(code)
        found = meaning(status, code, message, spoke=spoke)
        known = {"service_code": code, "request_id": str(said.get("request_id") or "")}
        shown = code if found is INSPECTED and code else str(status or code)
        return self.make_refusal(found, shown, message, retry_after, known)
