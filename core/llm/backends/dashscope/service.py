"""DashScope over HTTP: its address and key, requests within their timeouts, uploads, and what its errors mean."""

from __future__ import annotations

import json
import re
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import httpx2
from pydantic_core import from_json

from core.errors import ModelMisbehavedError, ModelRefusedError, ModelUnavailableError, SettingsError, extra_for
from core.known_hosts import is_dashscope
from core.llm.backends import errors
from core.llm.backends.dashscope.media import policy_of
from core.llm.backends.errors import HTTP_ERRORS, INSPECTED, Meaning, seconds_until
from core.llm.backends.http_clients import AFTER_END_SECONDS, CONNECT_SECONDS, IdleTimeout, http_pool
from core.llm.wire.reading import EventLines, one_event
from core.llm.wire_log import noted_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from contextlib import AsyncExitStack

    from core.errors import ModelServiceError
    from core.llm.backends.http_clients import Limits
    from core.llm.wire.dashscope import DashScopeReader, Json
    from core.llm.wire_log import WireLog


_COMPATIBLE: Final = re.compile(r"/compatible-mode/v(\d+)$")
NO_KEY: Final = "Set api_key, or DASHSCOPE_API_KEY."
KEY_STAYS: Final = "Set api_key: the one in DASHSCOPE_API_KEY goes to the vendor's own addresses alone."


class Endpoint(NamedTuple):
    """Address and key; `hint` says where to set a key if there is none."""

    address: str
    api_key: str
    hint: str = ""

    def __repr__(self) -> str:
        return f"Endpoint({self.address!r})"  # without the key


def checked_address(given: str | None) -> str | None:
    """The address as it is used; `None` leaves it to the SDK.

    Raises:
        ValueError: It is not an HTTP address.
    """
    given = (given or "").strip()
    if not given or given == "dashscope":
        return None
    address = (given if "://" in given else f"http://{given}").rstrip("/")
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0 or re.search(r"\s", address):
        raise ValueError("it must be an address such as https://dashscope.aliyuncs.com/api/v1")
    # The same host serves the OpenAI protocol under another path, which is the address that people mostly have.
    return _COMPATIBLE.sub(r"/api/v\1", address)


def resolve_endpoint(address: str | None, api_key: str, workspace: str | None) -> Endpoint:
    """The endpoint that settings describe; what they leave out is resolved by the SDK.

    Environment variables, regions and key files are the SDK's own business. It is imported only if it is needed, as
    that takes most of a second.

    Args:
        address: From the settings, as `checked_address` returns it.
        api_key: From the settings, or empty.
        workspace: Part of the host in some regions.

    Raises:
        SettingsError: The region's address needs a workspace.
    """
    if address and api_key:
        return Endpoint(address, api_key)
    with extra_for("DashScope's usual address and key"):
        import dashscope
        from dashscope.common import env
        from dashscope.common.error import DashScopeException

    resolved: Any = env.resolve_base_url  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    try:
        usual = str(resolved(str(dashscope.base_http_api_url), workspace)).rstrip("/")
    except (DashScopeException, ValueError) as error:
        if address is None:
            raise SettingsError(f"DashScope's address is not known: {error}", hint="Set workspace.") from error
        usual = ""
    found = address or usual
    if api_key:
        return Endpoint(found, api_key)
    if found != usual and not is_dashscope(found):
        return Endpoint(found, "", KEY_STAYS)
    return Endpoint(found, _usual_key(), NO_KEY)


def _usual_key() -> str:
    from dashscope.common.api_key import get_default_api_key
    from dashscope.common.error import AuthenticationError

    try:
        return str(get_default_api_key() or "")
    except (AuthenticationError, OSError):
        return ""


_TASK: Final = "services/aigc/{}-generation/generation"
_NO_STORE: Final = {400, 404, 405}


@dataclass(frozen=True, slots=True)
class DashScopeService:
    """HTTP requests of one model.

    Args:
        address: Up to and with `/api/v1`.
        headers: Sent with every request; they hold the key.
        translator: Makes errors of refusals.
    """

    address: str
    headers: Mapping[str, str] = field(repr=False)
    model: str
    translator: Translator

    async def connect(self) -> None:
        """Open a connection, whatever the service answers.

        Raises:
            httpx2.RequestError: It is out of reach.
        """
        http = await http_pool().client(self)
        await http.get(f"{self.address}/models", params={"page_size": 1}, headers=self.headers)

    async def ask(
        self, stack: AsyncExitStack, task: str, body: Json, limits: Limits, wire: WireLog
    ) -> AsyncGenerator[bytes, None]:
        """Send a request; returns the bytes of the reply, as server-sent events.

        Args:
            stack: Closes the response, which stops the service.
            task: "text" or "multimodal".
            body: As `body_json` makes it.
            limits: `first` is the one for the response's head.
            wire: Takes down what is sent and answered.

        Raises:
            ModelServiceError: The service refuses.
            SettingsError: `generate_cfg` cannot be written as JSON.
            httpx2.RequestError: It is out of reach.
        """
        try:
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        except (TypeError, ValueError, RecursionError) as error:
            hint = "Give texts, numbers, lists and dicts alone."
            raise SettingsError(f"generate_cfg cannot be written as JSON: {error}.", hint=hint) from error
        http = await http_pool().client(self)
        headers = {
            **self.headers,
            "Content-Type": "application/json; charset=utf-8",
            "Accept": "text/event-stream",
            "X-DashScope-SSE": "enable",
            "X-Accel-Buffering": "no",
        }
        if b'"oss://' in content:
            headers["X-DashScope-OssResourceResolve"] = "enable"
        opening = http.stream(
            "POST",
            f"{self.address}/{_TASK.format(task)}",
            content=content,
            headers=headers,
            timeout=httpx2.Timeout(limits.first, connect=CONNECT_SECONDS, read=None),  # `IdleTimeout` limits reading
        )
        with noted_in(wire):
            response = await stack.enter_async_context(opening)
        if response.status_code != 200:
            wire.received(await response.aread())
        await self._check(response)
        kind = response.headers.get("content-type", "").lower()
        if "html" in kind:
            raise self.translator.html()
        if "json" in kind and "event" not in kind:  # not a stream, or an error with status 200
            return one_event(await response.aread())
        return response.aiter_bytes()

    async def policy(self) -> dict[str, Any] | None:
        """The upload policy; `None` where the service has no store.

        Raises:
            ModelServiceError: The service refuses for another reason.
        """
        http = await http_pool().client(self)
        asked = {"action": "getPolicy", "model": self.model}
        response = await http.get(f"{self.address}/uploads", params=asked, headers=self.headers)
        if response.status_code in _NO_STORE:
            return None
        await self._check(response)
        return policy_of(_json_body(response))

    async def _check(self, response: httpx2.Response) -> None:
        status = response.status_code
        if status == 200:
            return
        await response.aread()
        html = "html" in response.headers.get("content-type", "").lower()
        if html and status < 500 and status not in {401, 403}:
            raise self.translator.html()
        refusal = _json_body(response)
        inner: Any = refusal.get("error")  # a server of OpenAI's protocol
        refusal = cast("dict[str, Any]", inner) if isinstance(inner, dict) else refusal
        if not refusal and not html and response.text:
            refusal = {"message": response.text}
        raise self.translator.refusal(status, refusal, seconds_until(response.headers.get("retry-after")))


async def in_time(
    first: bytes | None, source: AsyncGenerator[bytes, None], limits: Limits, reader: DashScopeReader
) -> AsyncGenerator[bytes, None]:
    """The bytes of a reply, each piece within its timeout.

    No chunk is marked as the last. Once the finish reason is there, what follows at once is drained, so that the
    connection can be reused.

    Args:
        first: The first piece; `None` where there is none.
        limits: `idle` is the one for each further piece.
        reader: Knows the finish reason.
    """
    piece = first
    with IdleTimeout() as idle:
        async with aclosing(source):
            while piece is not None:
                yield piece
                if reader.error is not None:
                    return
                limit = limits.idle if reader.reason is None else AFTER_END_SECONDS
                try:
                    piece = await idle.next(source, limit)
                except HTTP_ERRORS:
                    if reader.reason is None:
                        raise
                    return


def _json_body(response: httpx2.Response) -> dict[str, Any]:
    """The JSON object in a body, which may be a stream of one event; empty where there is none."""
    lines = EventLines()
    for raw in (response.content, *lines.feed(response.content), *lines.close()):
        try:
            body: Any = from_json(raw)
        except ValueError:
            continue
        if isinstance(body, dict):
            return cast("dict[str, Any]", body)
    return {}


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


def _status_of(code: str) -> int:
    """The HTTP status that a code stands for; 0 where that is not known."""
    plain = code.lower().replace("_", "")
    return next((known for start, known in _BEGINNINGS.items() if plain.startswith(start)), 0)


def meaning(status: int, code: str, message: str, *, spoke: bool) -> Meaning:
    """What a refusal means to the user.

    Args:
        status: HTTP status; 0 where it is not known.
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
        status = status or _status_of(code)
        found = meaning(status, code, message, spoke=spoke)
        known = {"service_code": code, "request_id": str(said.get("request_id") or "")}
        shown = code if found is INSPECTED and code else str(status or code)
        return self.make_refusal(found, shown, message, retry_after, known)
