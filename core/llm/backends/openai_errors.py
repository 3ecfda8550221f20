"""What the OpenAI SDK and its HTTP layer raise, translated once into Parlour's errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import openai

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelServiceError, ModelUnavailableError
from core.llm.backends.meanings import FOREIGN
from core.llm.backends.openai_meanings import INSPECTED, TOO_LONG, meaning
from core.llm.retry_after import seconds_until
from core.llm.wire.refusals import without_keys

VENDOR_ERRORS = (openai.OpenAIError, httpx2.RequestError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError)
"""What the SDK, the HTTP layer and a timeout raise."""


class Translator:
    """Knows the service it translates for, so that errors can name it and never its key.

    Args:
        base_url: Address of the service; only its host is shown.
        api_key: Taken out of everything that the service says.
        model: Name of the model.
    """

    def __init__(self, base_url: str, api_key: str, model: str) -> None:
        self.host = urlsplit(base_url).netloc.rpartition("@")[2] or base_url
        self.about: dict[str, Any] = {"host": self.host, "model": model}
        self._keys = {api_key} if api_key else set[str]()

    def learn(self, api_key: str) -> None:
        """Take this key out of messages too: the SDK may have found it by itself."""
        self._keys.add(api_key)  # one too short to be a key hides nothing

    def translated(self, error: Exception, *, spoke: bool = False) -> ModelServiceError:
        """Parlour's error for one of `VENDOR_ERRORS`.

        Args:
            error: What was raised.
            spoke: Whether part of the reply had come, so that an end of the connection cuts it off.
        """
        match error:
            case openai.APIStatusError():
                return self._refusal(error)
            case openai.APITimeoutError() | httpx2.TimeoutException() | TimeoutError():
                return self._slow(error)
            case _ if "CERTIFICATE_VERIFY_FAILED" in (reason := _reason(error)):
                return self.untrusted()
            case _ if FOREIGN.search(reason) and not spoke:
                return self.foreign()
            case openai.APIConnectionError() | httpx2.RequestError() | httpx2.StreamError() | httpx2.InvalidURL():
                return self.cut_off(spoke=spoke)
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
        known = {"service_code": code, **self.about}
        message = self.redacted(message)
        kind, key, hint = meaning(status, f"{code} {message}")
        error = kind(None, str(status), message, known, hint=hint, retry_after=retry_after, key=key)
        error.details["seconds"] = retry_after
        return error

    def html(self, code: str | None = None) -> ModelServiceError:
        """The service talks HTML: most often its address is a web page's, or lacks `/v1`."""
        return self._made(
            ModelMisbehavedError,
            code,
            f"{self.host} answered with a web page, not as a model service.",
            "Check the service's address; it often ends in /v1.",
            "model_html",
        )

    def moved(self, location: str) -> ModelServiceError:
        """The service sends its callers elsewhere; a key does not go along by itself."""
        place = urlsplit(location)
        address = f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path.removesuffix('/chat/completions')}"
        said = f"{self.host} sends its callers to another address."
        hint = f"Use {address} as the address, if you trust it." if place.netloc else "Check the service's address."
        return self._made(ModelRefusedError, None, said, hint, "")

    def untrusted(self) -> ModelServiceError:
        """Nobody vouches for the service's certificate: asking again cannot help."""
        said = f"The certificate of {self.host} is not trusted."
        hint = "Check the address; for a server of your own, name its authority's file in SSL_CERT_FILE."
        return self._made(ModelRefusedError, None, said, hint, "model_unreachable")

    def foreign(self) -> ModelServiceError:
        """Something else answers there."""
        said = f"{self.host} answered, but not as a model service of the OpenAI protocol."
        hint = "Check the service's address and its model_type; the address often ends in /v1."
        return self._made(ModelMisbehavedError, None, said, hint, "")

    def in_stream(self, error: Mapping[str, Any], *, spoke: bool) -> ModelServiceError:
        """An error that came as a chunk of the reply."""
        code = str(error.get("code") or error.get("type") or "")
        status = int(code) if code.isdigit() else {"rate_limit_exceeded": 429, "server_error": 500}.get(code, 0)
        message = str(error.get("message") or "The service reported an error.")
        if status or INSPECTED.search(code + message) or TOO_LONG.search(code + message):
            return self.said(status or 400, code, message)
        kind = ModelMisbehavedError if spoke else ModelUnavailableError
        return self._made(kind, code or None, self.redacted(message), "Ask again.", "")

    def cut_off(self, *, spoke: bool) -> ModelServiceError:
        """The connection ended before the reply was whole, or never stood."""
        if not spoke:
            said, hint = f"{self.host} cannot be reached.", "Check the address, and that the service runs."
            return self._made(ModelUnavailableError, None, said, hint, "model_unreachable")
        return self._made(
            ModelMisbehavedError,
            None,
            f"{self.host} cut the reply off.",
            "Continue the reply, or ask again.",
            "model_cut_off",
        )

    def ended_early(self, *, spoke: bool, foreign: bool) -> ModelServiceError:
        """The connection ended in good order, but not the reply.

        Args:
            spoke: Whether part of it had come.
            foreign: Whether something had come that is none of the protocol's.
        """
        if spoke:
            return self.cut_off(spoke=True)
        if foreign:
            return self.foreign()
        said = f"{self.host} ended the reply before it began."
        return self._made(ModelUnavailableError, None, said, "Ask again.", "model_cut_off")

    def redacted(self, text: str) -> str:
        """The text, short and without anything that looks like a key."""
        return without_keys(text, *self._keys)

    def _slow(self, error: Exception) -> ModelServiceError:
        if isinstance(error, httpx2.ConnectTimeout) or isinstance(error.__cause__, httpx2.ConnectTimeout):
            return self.cut_off(spoke=False)
        said = f"{self.host} took too long to answer."
        return self._made(ModelUnavailableError, None, said, "Ask again, or set request_timeout higher.", "model_slow")

    def _unusable(self, error: Exception) -> ModelServiceError:
        if "api_key" in str(error) or "credentials" in str(error).lower():
            said = "There is no API key for the service."
            hint = "Set api_key, or the vendor's variable: OPENAI_API_KEY, AZURE_OPENAI_API_KEY, DASHSCOPE_API_KEY."
            return self._made(ModelRefusedError, None, said, hint, "model_key_missing")
        return self._made(ModelMisbehavedError, None, self.redacted(str(error)), "", "")

    def _made(
        self, kind: type[ModelServiceError], code: str | None, said: str, hint: str, key: str
    ) -> ModelServiceError:
        return kind(None, code, said, self.about, hint=hint, key=key)


def _pause(headers: Mapping[str, str]) -> float | None:
    """Seconds that the service asks to wait; a few say it in milliseconds."""
    exact = headers.get("retry-after-ms", "")
    return int(exact) / 1000 if exact.isdecimal() else seconds_until(headers.get("retry-after"))


def _reason(error: Exception) -> str:
    """What the HTTP layer said; the SDK wraps it."""
    cause = error if isinstance(error, httpx2.RequestError) else error.__cause__
    return str(cause) if isinstance(cause, httpx2.RemoteProtocolError | httpx2.ConnectError) else ""


def _mapping(body: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", body) if isinstance(body, Mapping) else {}
