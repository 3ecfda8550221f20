"""What goes wrong for a program, in the shape and with the status codes of OpenAI's protocol."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse

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


def body(message: str, kind: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "param": param or None, "code": code}}


def refusal(
    status: int,
    message: str,
    code: str,
    *,
    kind: str = "invalid_request_error",
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """An answer that says what is wrong."""
    return JSONResponse(body(message, kind, code), status, {"cache-control": "no-store", **(headers or {})})


def refused(error: Exception) -> JSONResponse:
    """The answer to a request that failed with an error."""
    status, told, headers = told_of(error)
    return JSONResponse(told, status, {"cache-control": "no-store", **headers})


def told_of(error: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers for an error; what nobody foresaw is told without its words."""
    if not isinstance(error, ParlourError):
        told = body(
            "Something unexpected went wrong; the log of Parlour has the details.", "server_error", "unexpected"
        )
        return 500, told, {}
    status, kind, code = _status(error)
    param = error.param if isinstance(error, BadRequestError) else None
    return status, body(str(error), kind, code, param), _headers(error, status)


def _status(error: ParlourError) -> tuple[int, str, str]:
    wrong, limit, server = "invalid_request_error", "rate_limit_error", "server_error"
    match error:
        case BadRequestError():
            return 413 if error.code == "too_large" else 400, wrong, error.code
        case BadMessagesError() | ContextTooLongError():
            code = "context_length_exceeded" if isinstance(error, ContextTooLongError) else "invalid_messages"
            return 400, wrong, code
        case ContentRefusedError():
            return 400, wrong, "content_filter"
        case ModelRefusedError():
            return _of_service(error)
        case ModelServiceError():
            many = error.code == "429"
            return (429, limit, "rate_limit_exceeded") if many else (503, server, error.words_key)
        case TooManyRequestsError():
            return 429, limit, error.words_key
        case QuotaError():
            return 413, wrong, error.words_key
        case ConflictError():
            return 409, wrong, error.words_key
        case NotFoundError():
            return 404, wrong, "model_not_found" if error.words_key == "api_model" else "not_found"
        case LimitReachedError():
            return 400, wrong, error.words_key
        case DocumentError():
            return 400, wrong, error.words_key
        case SettingsError():
            gone = error.words_key in {"model_gone", "model_not_named"}
            return (404, wrong, "model_not_found") if gone else (400, wrong, error.words_key)
        case _:
            return 500, server, error.words_key


def _of_service(error: ModelRefusedError) -> tuple[int, str, str]:
    if error.code in KEY_CODES:
        return 502, "server_error", "model_refused"
    if error.code == "404":
        return 404, "invalid_request_error", "model_not_found"
    return 400, "invalid_request_error", error.words_key


def _headers(error: ParlourError, status: int) -> dict[str, str]:
    if status not in {429, 503}:
        return {}
    told = getattr(error, "retry_after", None)
    return {"retry-after": str(max(1, math.ceil(told)) if told else _AGAIN)}
