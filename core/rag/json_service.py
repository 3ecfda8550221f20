"""A client for JSON services, with one mapping of failures to errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError, SettingsError
from core.net.service import seconds_to_wait

if TYPE_CHECKING:
    from collections.abc import Mapping

_BUSY = {408, 409, 429}


class JsonService:
    """One address with its key, and a connection pool that lives until `close`.

    Args:
        what: What to call it in errors: "embedding service".
        key: Sent as a bearer token; "" for none.
        seconds: How long an answer may take.

    Raises:
        SettingsError: No request can carry the key.
    """

    def __init__(self, what: str, url: str, key: str, seconds: float) -> None:
        if not (key.isascii() and key.isprintable()):
            # Nothing may show the key, and the error that sending it ends in would.
            raise SettingsError(
                f"The key of the {what} has a letter that no key can have.",
                hint="Copy it again from where it was made.",
            )
        import httpx

        self._what = what
        self._url = url
        self._client = httpx.Client(timeout=seconds, headers={"authorization": f"Bearer {key}"} if key else {})

    def asked(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer.

        Raises:
            ModelUnavailableError: The service is busy or out of reach.
            ModelRefusedError: It refused the key or the question.
            ModelMisbehavedError: Its answer is none.
        """
        import httpx

        try:
            # A letter that is only half there, as text cut in the middle may have it, has no bytes.
            data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", errors="replace")
            answer = self._client.post(self._url, content=data, headers={"content-type": "application/json"})
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:  # the last where it was closed meanwhile
            raise ModelUnavailableError(
                f"The {self._what} at {self._url} cannot be reached.", hint="Check its address."
            ) from error
        if answer.status_code in _BUSY or answer.status_code >= 500:
            said_to_wait = seconds_to_wait(answer.headers.get("retry-after", ""))
            raise ModelUnavailableError(
                f"The {self._what} is busy (status {answer.status_code}).", retry_after=said_to_wait
            )
        if answer.status_code != 200:
            # What it says may repeat the key, so it is not said again.
            raise ModelRefusedError(
                f"The {self._what} refused the request (status {answer.status_code}).",
                hint="Check the model's name and the key.",
            )
        try:
            said: Any = answer.json()
        except ValueError as error:
            raise self.misbehaved() from error
        if not isinstance(said, dict):
            raise self.misbehaved()
        return cast("dict[str, Any]", said)

    def misbehaved(self) -> ModelMisbehavedError:
        """The error for an unusable answer."""
        return ModelMisbehavedError(f"The {self._what} answered with something else.")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
