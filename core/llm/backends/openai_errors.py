"""What the OpenAI SDK and its HTTP layer raise, translated once into Parlour's errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import openai

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.llm.backends import translator
from core.llm.backends.openai_meanings import INSPECTED, TOO_LONG, meaning
from core.llm.backends.translator import HTTP_ERRORS
from core.llm.retry_after import seconds_until

VENDOR_ERRORS = (openai.OpenAIError, *HTTP_ERRORS)
"""What the SDK, the HTTP layer and a timeout raise."""


class Translator(translator.Translator):
    """Translates for a service of the OpenAI protocol."""

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
        """What an HTTP status other than success means."""
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
        return self.said(error.status_code, str(body.get("code") or ""), said, _pause(headers))

    def said(self, status: int, code: str, message: str, retry_after: float | None = None) -> ModelServiceError:
        """An error by status, the service's own code and its words."""
        message = self.redacted(message)
        return self.meant(
            meaning(status, f"{code} {message}"), str(status), message, retry_after, {"service_code": code}
        )

    def moved(self, location: str) -> ModelServiceError:
        """The service sends its callers elsewhere; a key does not go along by itself."""
        place = urlsplit(location)
        if not place.netloc:  # to a page of its own, to sign in most often
            return self.html()
        address = f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path.removesuffix('/chat/completions')}"
        said = f"{self.host} sends its callers to another address."
        error = self.made(ModelRefusedError, said, f"Use {address} as the address, if you trust it.")
        error.details["place"] = address
        return error

    def in_stream(self, error: Mapping[str, Any], *, spoke: bool) -> ModelServiceError:
        """An error that came as a chunk of the reply."""
        code = str(error.get("code") or error.get("type") or "")
        status = int(code) if code.isdigit() else {"rate_limit_exceeded": 429, "server_error": 500}.get(code, 0)
        message = str(error.get("message") or "The service reported an error.")
        if status or INSPECTED.search(code + message) or TOO_LONG.search(code + message):
            return self.said(status or 400, code, message)
        kind = ModelMisbehavedError if spoke else ModelUnavailableError
        return self.made(kind, self.redacted(message), "Ask again.", code=code or None)

    def _unusable(self, error: Exception) -> ModelServiceError:
        if "api_key" in str(error) or "credentials" in str(error).lower():
            hint = "Set api_key, or the vendor's variable: OPENAI_API_KEY, AZURE_OPENAI_API_KEY, DASHSCOPE_API_KEY."
            return self.keyless(hint)
        return self.made(ModelMisbehavedError, self.redacted(str(error)), "")


def _pause(headers: Mapping[str, str]) -> float | None:
    """Seconds that the service asks to wait; a few say it in milliseconds."""
    exact = headers.get("retry-after-ms", "")
    return int(exact) / 1000 if exact.isdecimal() else seconds_until(headers.get("retry-after"))


def _mapping(body: object) -> Mapping[str, Any]:
    if isinstance(body, list) and body:  # as Google's service does
        first = cast("list[object]", body)[0]
        return _mapping(cast("Mapping[str, object]", first).get("error")) if isinstance(first, Mapping) else {}
    return cast("Mapping[str, Any]", body) if isinstance(body, Mapping) else {}
