"""Failures of model services translated into Parlour's errors, with every key redacted."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Final, NamedTuple
from urllib.parse import urlsplit

import httpx2

from core.errors import (
    ContextTooLongError,
    ModelMisbehavedError,
    ModelRefusedError,
    ModelServiceError,
    ModelUnavailableError,
)
from core.net.unpacking import TooMuchError


class Meaning(NamedTuple):
    """What a refusal means: the error's class, the key of its sentence on the page, and a hint."""

    kind: type[ModelServiceError]
    key: str
    hint: str


FOREIGN: Final = re.compile(
    r"illegal|invalid|malformed|not HTTP|bad (?:status|header)|WRONG_VERSION_NUMBER|UNKNOWN_PROTOCOL|record layer",
    re.IGNORECASE,
)
"""A server that does not speak HTTP, or TLS and plain HTTP mixed up."""

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
    """What an HTTP status of 400 or more means by itself."""
    return _STATUSES.get(status) or (DOWN if status >= 500 else REFUSED)


_SECRETS: Final = re.compile(
    r"\b(?:sk|pk|rk|key|hf|gsk|xai)[-_][A-Za-z0-9*_.-]{6,}|(?<=Bearer )[^\s\"']{6,}|AIza[\w-]{20,}"
)
_SHORTEST_KEY: Final = 5
_LONGEST_MESSAGE: Final = 500


def without_keys(text: str, *keys: str) -> str:
    """The text, shortened, with `keys` and whatever looks like one redacted; keys under five letters stay."""
    for key in keys:
        if len(key) >= _SHORTEST_KEY:
            text = text.replace(key, "…")
    text = _SECRETS.sub("…", text)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}…"


HTTP_ERRORS: Final = (httpx2.RequestError, httpx2.StreamError, httpx2.InvalidURL, TimeoutError)
"""What the HTTP layer and a timeout raise."""

_PROTOCOL_ERRORS: Final = (httpx2.RemoteProtocolError, httpx2.ConnectError)


class Translator:
    """Translates failures of one service; errors name its host and model, never its key.

    A subclass adds what refusals mean in its protocol.

    Args:
        address: Of the service; only its host is shown.
        api_key: Redacted from everything that the service says.
        model: Name of the model.
    """

    protocol: ClassVar[str] = ""
    ending: ClassVar[str] = ""
    """The usual end of such a service's address, for hints."""

    def __init__(self, address: str, api_key: str, model: str) -> None:
        self.host = urlsplit(address).netloc.rpartition("@")[2] or address
        self.about: dict[str, Any] = {"host": self.host, "model": model}
        """Details for the page's sentences."""
        self._keys = {api_key} if api_key else set[str]()

    def learn(self, api_key: str) -> None:
        """Redact this key too: the vendor's package may have found it by itself."""
        self._keys.add(api_key)

    def redacted(self, text: str) -> str:
        """The text, shortened, without keys."""
        return without_keys(text, *self._keys)

    def translated(self, error: Exception, *, spoke: bool = False) -> ModelServiceError:
        """Parlour's error for one of `HTTP_ERRORS`.

        Args:
            spoke: Whether part of the reply had come.
        """
        if isinstance(error, TooMuchError):
            said, hint = f"{self.host} answered with more than {error.most >> 20} MB.", "Check the service's address."
            return self.make(ModelMisbehavedError, said, hint)
        reason = str(error) if isinstance(error, _PROTOCOL_ERRORS) else ""
        if isinstance(error, httpx2.ConnectTimeout):
            return self.cut_off(spoke=False)
        if isinstance(error, httpx2.TimeoutException | TimeoutError):
            return self.slow()
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return self.untrusted()
        if FOREIGN.search(reason) and not spoke:
            return self.foreign()
        return self.cut_off(spoke=spoke)

    def slow(self) -> ModelServiceError:
        """The service timed out."""
        said, hint = f"{self.host} took too long to answer.", "Ask again, or set request_timeout higher."
        return self.make(ModelUnavailableError, said, hint, "model_slow")

    def html(self, code: str | None = None) -> ModelServiceError:
        """The service answered with HTML: its address is a web page's, or incomplete."""
        said = f"{self.host} answered with a web page, not as a model service."
        hint = f"Check the service's address; it often ends in {self.ending}."
        return self.make(ModelMisbehavedError, said, hint, "model_html", code)

    def untrusted(self) -> ModelServiceError:
        """The service's certificate is not trusted; never retried."""
        said = f"The certificate of {self.host} is not trusted."
        hint = "Check the address; for a server of your own, name its authority's file in SSL_CERT_FILE."
        return self.make(ModelRefusedError, said, hint, "model_unreachable")

    def foreign(self) -> ModelServiceError:
        """Something answers there, but in another protocol."""
        said = f"{self.host} answered, but not as a model service of the {self.protocol} protocol."
        hint = f"Check the service's address and its model_type; the address often ends in {self.ending}."
        return self.make(ModelMisbehavedError, said, hint)

    def cut_off(self, *, spoke: bool) -> ModelServiceError:
        """The connection failed, or broke in the middle of the reply."""
        if not spoke:
            said, hint = f"{self.host} cannot be reached.", "Check the address, and that the service runs."
            return self.make(ModelUnavailableError, said, hint, "model_unreachable")
        said = f"{self.host} cut the reply off."
        return self.make(ModelMisbehavedError, said, "Continue the reply, or ask again.", "model_cut_off")

    def ended_early(self, *, spoke: bool, foreign: bool) -> ModelServiceError:
        """The connection ended cleanly, but the reply was incomplete.

        Args:
            spoke: Whether part of it had come.
            foreign: Whether what had come was not of the protocol.
        """
        if spoke:
            return self.cut_off(spoke=True)
        if foreign:
            return self.foreign()
        said = f"{self.host} ended the reply before it began."
        return self.make(ModelUnavailableError, said, "Ask again.", "model_cut_off")

    def keyless(self, hint: str) -> ModelServiceError:
        """There is no API key."""
        return self.make(ModelRefusedError, "There is no API key for the service.", hint, "model_key_missing")

    def make_refusal(
        self, meaning: Meaning, code: str, message: str, retry_after: float | None, known: dict[str, Any]
    ) -> ModelServiceError:
        """The error for a refusal by the service.

        Args:
            meaning: Class, key and hint.
            code: The status, or the service's own code.
            retry_after: Seconds that the service asks to wait.
            known: Further details for programs; no secrets.
        """
        kind, key, hint = meaning
        error = kind(None, code, message, {**known, **self.about}, hint=hint, retry_after=retry_after, key=key)
        error.details |= {"seconds": retry_after, **self.about}
        return error

    def make(
        self, kind: type[ModelServiceError], said: str, hint: str, key: str = "", code: str | None = None
    ) -> ModelServiceError:
        """An error whose details name the service."""
        error = kind(None, code, said, self.about, hint=hint, key=key)
        error.details |= self.about
        return error


def seconds_until(retry_after: str | None, now: datetime | None = None) -> float | None:
    """The seconds in a `Retry-After` header, which holds seconds or a date; `None` if it is missing or invalid."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        return _until(retry_after, now or datetime.now(UTC))
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _until(date: str, now: datetime) -> float | None:
    try:
        when = parsedate_to_datetime(date)
    except ValueError:
        return None
    if when.tzinfo is None:  # "-0000": no time zone, which is GMT in HTTP
        when = when.replace(tzinfo=UTC)
    return max((when - now).total_seconds(), 0.0)
