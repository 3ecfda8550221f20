"""What goes wrong for a program, in the shape and with the status codes of OpenAI's protocol."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from core.doors.asked import BadRequestError
from core.errors import (
    BadMessagesError,
    ConflictError,
    ContentRefusedError,
    ContextTooLongError,
    DocumentError,
    LimitReachedError,
    ModelRefusedError,
    ModelServiceError,
    NotFoundError,
    ParlourError,
    QuotaError,
    SettingsError,
    TooManyRequestsError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_CODES: Final = frozenset({"401", "403"})
"""A service of the house refuses the house's own key: that is not the program's doing."""
_AGAIN: Final = 5  # seconds, where nobody knows better
_WRONG: Final = "invalid_request_error"
_LIMIT: Final = "rate_limit_error"
_SERVER: Final = "server_error"
_UNFORESEEN: Final = "Something unexpected went wrong; the log of Parlour has the details."
# The first that an error is one of counts.
_KNOWN: Final[tuple[tuple[type[ParlourError], int, str, str], ...]] = (
    (BadMessagesError, 400, _WRONG, "invalid_messages"),
    (ContextTooLongError, 400, _WRONG, "context_length_exceeded"),
    (ContentRefusedError, 400, _WRONG, "content_filter"),
    (TooManyRequestsError, 429, _LIMIT, ""),
    (QuotaError, 413, _WRONG, ""),
    (ConflictError, 409, _WRONG, ""),
    (NotFoundError, 404, _WRONG, ""),
    (LimitReachedError, 400, _WRONG, ""),
    (DocumentError, 400, _WRONG, ""),
    (SettingsError, 400, _WRONG, ""),
)
_NO_MODEL: Final = frozenset({"api_model", "model_gone", "model_not_named"})


class JsonAnswer(Response):
    """JSON that any text fits into: half a character, which models and programs write now and then, stays escaped."""

    media_type = "application/json"

    def __init__(self, told: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(told, separators=(",", ":"))
        super().__init__(body, status, {"cache-control": "no-store", **(headers or {})})


def body(message: str, kind: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "param": param or None, "code": code}}


def refusal(
    status: int, message: str, code: str, *, kind: str = _WRONG, headers: Mapping[str, str] | None = None
) -> JsonAnswer:
    """An answer that says what is wrong."""
    return JsonAnswer(body(message, kind, code), status, headers)


def refused(error: Exception) -> JsonAnswer:
    """The answer to a request that failed with an error."""
    status, told, headers = told_of(error)
    return JsonAnswer(told, status, headers)


def told_of(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers for an error; what nobody foresaw is told without its words."""
    if not isinstance(error, ParlourError):
        return 500, body(_UNFORESEEN, _SERVER, "unexpected"), {}
    status, kind, code = _status(error)
    param = error.param if isinstance(error, BadRequestError) else None
    return status, body(str(error), kind, code, param), _headers(error, status)


def _status(error: ParlourError) -> tuple[int, str, str]:
    """Status, type and code."""
    if isinstance(error, BadRequestError):
        return 413 if error.code == "too_large" else 400, _WRONG, error.code
    if error.words_key == "api_not_for":
        return 403, "permission_error", "model_not_allowed"
    if error.words_key in _NO_MODEL:
        return 404, _WRONG, "model_not_found"
    for kind, status, named, code in _KNOWN:
        if isinstance(error, kind):
            return status, named, code or error.words_key
    return _of_service(error) if isinstance(error, ModelServiceError) else (500, _SERVER, error.words_key)


def _of_service(error: ModelServiceError) -> tuple[int, str, str]:
    if error.code == "429":
        return 429, _LIMIT, "rate_limit_exceeded"
    if not isinstance(error, ModelRefusedError):
        return 503, _SERVER, error.words_key
    if error.code in KEY_CODES:
        return 502, _SERVER, "model_refused"
    return (404, _WRONG, "model_not_found") if error.code == "404" else (400, _WRONG, error.words_key)


def _headers(error: ParlourError, status: int) -> dict[str, str]:
    if status not in {429, 503}:
        return {}
    told = getattr(error, "retry_after", None)
    return {"retry-after": str(max(1, math.ceil(told)) if told else _AGAIN)}
