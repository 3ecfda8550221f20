"""Errors of the OpenAI protocol: what the SDK raises and what services answer, translated into Parlour's errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import openai

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.llm.backends import errors
from core.llm.backends.errors import HTTP_ERRORS, seconds_until

if TYPE_CHECKING:
    from core.llm.backends.errors import Meaning

NO_CALLS: Final = re.compile(
    r"does not support (?:tool|function)|auto.{0,3} tool choice requires|tools? param requires|support tool use"
    r"|tool.?call(?:ing|s)?['\"`]* (?:is |are )?not supported|tools['\"`]* (?:is|are) not supported"
    r"|argument supplied: tools",
    re.IGNORECASE,
)
"""Refusals by services that have no tool calling."""

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


# Looked for before the status: some services send these with a 500, which would be retried.
_WORDS: Final = (
    (INSPECTED, errors.INSPECTED),
    (NO_CALLS, errors.NO_CALLS),
    (_BLIND, errors.BLIND),
    (_DEAF, errors.DEAF),
)


def meaning(status: int, about: str) -> Meaning:
    """What a status of 400 or more means, given the service's code and message."""
    for words, said in _WORDS:
        if words.search(about):
            return said
    if status in {400, 422} and TOO_LONG.search(about):
        return errors.TOO_LONG
    if status == 400 and _WRONG_KEY.search(about):
        return errors.KEY
    if _USED_UP.search(about):
        return errors.USED_UP
    return errors.by_status(status)


VENDOR_ERRORS = (openai.OpenAIError, *HTTP_ERRORS)
"""What the SDK, the HTTP layer and timeouts raise."""


class Translator(errors.Translator):
    """Translates failures of a service of the OpenAI protocol."""

    protocol = "OpenAI"
    ending = "/v1"

    def translated(self, error: Exception, *, spoke: bool = False) -> ModelServiceError:
        """Parlour's error for one of `VENDOR_ERRORS`."""
        match error:
            case openai.APIStatusError():
                return self._refusal(error)
            case openai.APIConnectionError() if isinstance(error.__cause__, HTTP_ERRORS):
                return super().translated(error.__cause__, spoke=spoke)
            case openai.APITimeoutError():
                return self.slow()
            case openai.APIConnectionError():
                return self.cut_off(spoke=spoke)
            case _ if isinstance(error, HTTP_ERRORS):
                return super().translated(error, spoke=spoke)
            case _:
                return self._unusable(error)

    def _refusal(self, error: openai.APIStatusError) -> ModelServiceError:
        """The error for a response that is not a success."""
        headers = error.response.headers
        body = _mapping(error.body)
        text = error.response.text
        if error.status_code < 400:
            return self.moved(headers.get("location", ""))
        if "html" in headers.get("content-type", "").lower() and error.status_code not in {401, 403}:
            if error.status_code < 500:
                return self.html(str(error.status_code))
            text = ""
        said = str(body.get("message") or body.get("detail") or text or f"HTTP status {error.status_code}")
        return self.by_status(error.status_code, str(body.get("code") or ""), said, _pause(headers))

    def by_status(self, status: int, code: str, message: str, retry_after: float | None = None) -> ModelServiceError:
        """The error for a status, the service's own code and its message."""
        message = self.redacted(message)
        return self.make_refusal(
            meaning(status, f"{code} {message}"), str(status), message, retry_after, {"service_code": code}
        )

    def moved(self, location: str) -> ModelServiceError:
        """The service redirects; it is not followed, as the key would go along."""
        place = urlsplit(location)
        if not place.netloc:  # most often its own sign-in page
            return self.html()
        address = f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path.removesuffix('/chat/completions')}"
        said = f"{self.host} sends its callers to another address."
        error = self.make(ModelRefusedError, said, f"Use {address} as the address, if you trust it.")
        error.details["place"] = address
        return error

    def in_stream(self, error: Mapping[str, Any], *, spoke: bool) -> ModelServiceError:
        """An error that came as a chunk of the reply."""
        code = str(error.get("code") or error.get("type") or "")
        status = int(code) if code.isdigit() else {"rate_limit_exceeded": 429, "server_error": 500}.get(code, 0)
        message = str(error.get("message") or "The service reported an error.")
        if status or INSPECTED.search(code + message) or TOO_LONG.search(code + message):
            return self.by_status(status or 400, code, message)
        kind = ModelMisbehavedError if spoke else ModelUnavailableError
        return self.make(kind, self.redacted(message), "Ask again.", code=code or None)

    def _unusable(self, error: Exception) -> ModelServiceError:
        if "api_key" in str(error) or "credentials" in str(error).lower():
            hint = "Set api_key, or the vendor's variable: OPENAI_API_KEY, AZURE_OPENAI_API_KEY, DASHSCOPE_API_KEY."
            return self.keyless(hint)
        return self.make(ModelMisbehavedError, self.redacted(str(error)), "")


def _pause(headers: Mapping[str, str]) -> float | None:
    """Seconds that the service asks to wait; some services say milliseconds."""
    exact = headers.get("retry-after-ms", "")
    return int(exact) / 1000 if exact.isdecimal() else seconds_until(headers.get("retry-after"))


def _mapping(body: object) -> Mapping[str, Any]:
    if isinstance(body, list) and body:  # as Google's service does
        first = cast("list[object]", body)[0]
        return _mapping(cast("Mapping[str, object]", first).get("error")) if isinstance(first, Mapping) else {}
    return cast("Mapping[str, Any]", body) if isinstance(body, Mapping) else {}
