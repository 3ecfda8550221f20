"""A service with a protocol of its own: its settings, one request over HTTP, and what its refusals mean."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast
from urllib.parse import urlsplit

import httpx2

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError, SettingsError
from core.llm.backends import errors
from core.llm.backends.errors import seconds_until
from core.llm.backends.http_clients import CONNECT_SECONDS, http_pool
from core.llm.backends.meanings import meaning, says_why
from core.llm.backends.service_config import ServiceConfig
from core.llm.wire.reading import one_event
from core.llm.wire_log import noted_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from typing import TypeAlias

    from core.errors import ModelServiceError
    from core.llm.backends.http_clients import Limits
    from core.llm.wire_log import WireLog

    Sign: TypeAlias = Callable[[str, bytes], Awaitable[Mapping[str, str]]]

_DELAY: Final = re.compile(r"(\d+(?:\.\d+)?)s")
_STATUS: Final = re.compile(r"[0-9]{3}")
_IDS: Final = ("request-id", "x-request-id", "x-amzn-requestid")


class NativeConfig(ServiceConfig):
    """The settings of such a back end, beside those of every service."""

    documents: bool | None = None
    prompt_caching: bool | str = True


class Sent(NamedTuple):
    """A request as it goes out: where to, below the service's address, with which headers and body."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class NativeService:
    """HTTP requests of one model.

    Args:
        address: Up to what `Sent.path` goes on with.
        headers: Sent with every request; they hold the key.
        translator: Makes errors of refusals.
        sign: Where requests are signed, makes the headers for an address and a body.
    """

    address: str
    headers: Mapping[str, str] = field(repr=False)
    translator: Translator
    sign: Sign | None = None

    def signing(self, sign: Sign) -> NativeService:
        """The same, whose requests are signed."""
        return replace(self, sign=sign)

    async def connect(self, path: str) -> None:
        """Open a connection, whatever the service answers.

        Raises:
            httpx2.RequestError: It is out of reach.
        """
        http = await http_pool().client(self)
        await http.get(f"{self.address}{path}", headers=self.headers)

    async def ask(self, sent: Sent, limits: Limits, wire: WireLog) -> httpx2.Response:
        """Send a request; the response is open, and its body not read yet unless it is a refusal.

        Raises:
            SettingsError: `generate_cfg` cannot be written as JSON.
            httpx2.RequestError: It is out of reach.
        """
        try:
            content = json.dumps(sent.body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        except (TypeError, ValueError, RecursionError) as error:
            hint = "Give texts, numbers, lists and dicts alone."
            raise SettingsError(f"generate_cfg cannot be sent: {error}.", hint=hint) from error
        http = await http_pool().client(self)
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream", **self.headers, **sent.headers}
        address = f"{self.address}{sent.path}"
        if self.sign is not None:
            headers |= await self.sign(address, content)
        timeout = httpx2.Timeout(limits.first, connect=CONNECT_SECONDS, read=None)  # `IdleTimeout` limits reading
        request = http.build_request("POST", address, content=content, headers=headers, timeout=timeout)
        with noted_in(wire):
            response = await http.send(request, stream=True)
        if response.status_code != 200:
            try:
                wire.received(await response.aread())
            finally:
                await response.aclose()
        return response

    async def pieces_of(self, response: httpx2.Response) -> AsyncGenerator[bytes, None]:
        """The bytes of a reply, as server-sent events."""
        kind = response.headers.get("content-type", "").lower()
        if "html" in kind:
            raise self.translator.html()
        if "json" in kind and "event" not in kind:  # not a stream
            return one_event(await response.aread())
        return response.aiter_bytes()


def id_of(response: httpx2.Response) -> str | None:
    """The service's id of a reply, where a header has it."""
    return next((found for name in _IDS if (found := response.headers.get(name))), None)


def _told(response: httpx2.Response) -> dict[str, Any]:
    """What a refusal says, as a dict; empty where it is no JSON."""
    try:
        body: Any = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    if isinstance(body, list) and body:  # Google's, outside of a stream
        body = cast("list[Any]", body)[0]
    if not isinstance(body, dict):
        return {}
    inner: Any = cast("dict[str, Any]", body).get("error")
    told = cast("dict[str, Any]", inner if isinstance(inner, dict) else body)
    return {"message": told["Message"], **told} if "Message" in told else told  # Amazon's, of some refusals


class Translator(errors.Translator):
    """Translates failures of such a service."""

    ending: ClassVar[str] = ".com"
    statuses: ClassVar[Mapping[str, int]] = {}
    """HTTP statuses by the service's own words, for errors that come within a stream."""

    def __init__(self, protocol: str, address: str, api_key: str, model: str, statuses: Mapping[str, int]) -> None:
        super().__init__(address, api_key, model)
        self._protocol, self._statuses = protocol, statuses

    def foreign(self) -> ModelServiceError:
        """Something answers there, but in another protocol."""
        said = f"{self.host} answered, but not as a model service of the {self._protocol} protocol."
        hint = "Check the service's address and its model_type."
        return self.make(ModelMisbehavedError, said, hint)

    def refused(self, response: httpx2.Response) -> ModelServiceError:
        """The error for a response that is not a success."""
        status, headers = response.status_code, response.headers
        if status < 400:
            return self._moved(headers.get("location", ""))
        html = "html" in headers.get("content-type", "").lower()
        if html and status < 500 and status not in {401, 403}:
            return self.html(str(status))
        told = _told(response)
        said = str(
            told.get("message")
            or told.get("detail")
            or told.get("Message")
            or ("" if html else response.text)
            or f"HTTP status {status}"
        )
        code = str(told.get("type") or told.get("status") or told.get("code") or "")
        pause = seconds_until(headers.get("retry-after"))
        return self._by_status(status, code, said, _delay(told) if pause is None else pause)

    def in_stream(self, told: Mapping[str, Any], *, spoke: bool) -> ModelServiceError:
        """An error that came within the reply."""
        words = [str(told.get(name) or "") for name in ("type", "status", "code")]
        status = next((self._statuses[word] for word in words if word in self._statuses), 0)
        status = status or next((int(word) for word in words if _STATUS.fullmatch(word)), 0)
        code = next((word for word in words if word and not word.isdigit()), "")
        message = str(told.get("message") or "The service reported an error.")
        if status or says_why(f"{code} {message}"):
            return self._by_status(status or 400, code, message, _delay(told))
        kind = ModelMisbehavedError if spoke else ModelUnavailableError
        return self.make(kind, self.redacted(message), "Ask again.", code=code or None)

    def _by_status(self, status: int, code: str, message: str, retry_after: float | None) -> ModelServiceError:
        message = self.redacted(message)
        found = meaning(status, f"{code} {message}")
        return self.make_refusal(found, str(status), message, retry_after, {"service_code": code})

    def _moved(self, location: str) -> ModelServiceError:
        """The service redirects; it is not followed, as the key would go along."""
        try:
            place = urlsplit(location)
        except ValueError:  # no address at all
            return self.html()
        if not place.netloc:
            return self.html()
        said = f"{self.host} sends its callers to another address."
        address = f"{place.scheme}://{place.netloc.rpartition('@')[2]}"
        error = self.make(ModelRefusedError, said, f"Use {address} as the address, if you trust it.")
        error.details["place"] = address
        return error


def _delay(told: Mapping[str, Any]) -> float | None:
    """The seconds to wait that Google's errors name among their details."""
    details: Any = told.get("details")
    for one in cast("list[Any]", details) if isinstance(details, list) else ():
        found = (
            _DELAY.fullmatch(str(cast("dict[str, Any]", one).get("retryDelay") or ""))
            if isinstance(one, dict)
            else None
        )
        if found:
            return float(found[1])
    return None
