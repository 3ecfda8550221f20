"""`/v1/responses` over a WebSocket, as OpenAI and Open Responses have it: each `response.create` is answered in turn.

A turn goes the way of a request over HTTP, past everything that looks at one (names and sites, the key, its budget,
limits), so nothing is let in here that would be refused there. What differs is that the connection remembers its newest
response, also one that is not stored, so that a program can go on from it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter, deque
from collections.abc import MutableMapping
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast

from core.doors.asked import LONGEST_BODY
from core.errors import NotFoundError
from webui.doors.refusals import body

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger(__name__)
PATH: Final = "/v1/responses"
REMEMBERED: Final = "remembered_response"
"""The key of the scope of a turn under which its connection's memory stands."""
LONGEST: Final = 3600.0
"""Seconds for which a connection lasts."""
MOST_WAITING: Final = 8
"""Messages that wait for the response before them; together they are no longer than one may be."""
MOST_OPEN: Final = 64
"""Connections of one key."""
_CREATE: Final = "response.create"
_NOT_SENT: Final = ("type", "stream_id", "stream_options", "background", "generate")
_OF_HTTP: Final = (b"connection", b"upgrade", b"content-length", b"content-type", b"transfer-encoding")
_WRONG: Final = "invalid_request_error"


class Remembered:
    """The newest response of a connection, as it would be stored."""

    def __init__(self) -> None:
        self._id = ""
        self._state: dict[str, Any] = {}

    def keep(self, response_id: str, state: dict[str, Any]) -> None:
        """Remember one, in place of the one before."""
        self._id, self._state = response_id, state

    def forget(self, response_id: object) -> None:
        """Forget one, if it is the one that is remembered."""
        if response_id == self._id:
            self._id, self._state = "", {}

    async def get(self, response_id: str) -> dict[str, Any]:
        """It. Raises NotFoundError for any other."""
        if not self._id or response_id != self._id:
            raise NotFoundError("There is no such response.", kind="response")
        return self._state

    async def spend(self, response_id: str, question: str) -> bool:
        """Note that a question of it was answered; whether it was open until now."""
        asked = cast("dict[str, Any]", self._state.get("asked") or {})
        return response_id == self._id and asked.pop(question, None) is not None


class SocketDoor:
    """Stands before all else and turns what comes over such a connection into requests.

    Args:
        app: Answers requests.
        root: The path below which Parlour is served; "" for the root of its site.
        clock: Seconds that never go back.
    """

    def __init__(self, app: ASGIApp, root: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self._path = root + PATH
        self._clock = clock
        self._open = Counter[bytes]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or a connection until its end."""
        if scope["type"] != "websocket" or scope["path"] != self._path:
            await self.app(scope, receive, send)
            return
        await receive()  # that it wants to be connected
        refused = await self._refused(scope)
        key = sha256(dict(scope["headers"]).get(b"authorization", b"")).digest()
        if refused is None and self._open[key] >= MOST_OPEN:
            said = f"This key has {MOST_OPEN} connections open already; close one first."
            refused = 429, json.dumps(body(said, "rate_limit_error", "too_many_connections")).encode()
        if refused is not None:
            await _deny(scope, send, *refused)
            return
        self._open[key] += 1
        try:
            await send({"type": "websocket.accept"})
            with suppress(OSError):  # it went away
                await _Connection(self.app, scope, receive, send, self._clock).serve()
        finally:
            self._open[key] -= 1
            self._open += Counter()  # those of nobody go

    async def _refused(self, scope: Scope) -> tuple[int, bytes] | None:
        """What a request with the same headers would be refused with, if it would."""
        answer = _Answer()
        await self.app(_request(scope, "GET", b""), _nothing_more(b""), answer.take)
        return None if answer.status == 426 else (answer.status, answer.data)


class _Connection:
    """One connection: a task reads what comes, so that its end is noticed while a response is made."""

    def __init__(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, clock: Callable[[], float]) -> None:
        self._app, self._scope, self._receive, self._send = app, scope, receive, send
        self._until, self._clock = clock() + LONGEST, clock
        self._waiting = deque[MutableMapping[str, Any]]()
        self._came = asyncio.Event()
        self._gone = asyncio.Event()
        self._remembered = Remembered()

    async def serve(self) -> None:
        """Answer until the program goes away, or an hour is over."""
        reading = asyncio.create_task(self._read())
        try:
            while not self._gone.is_set():
                left = self._until - self._clock()
                if left <= 0:
                    said = "A connection lasts for an hour; open a new one, and go on from there."
                    await self._tell(400, body(said, _WRONG, "websocket_connection_limit_reached"), None)
                    await self._send({"type": "websocket.close", "code": 1000})
                    return
                if not self._waiting:
                    self._came.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(left):
                            await self._came.wait()
                    continue
                await self._turn(self._waiting.popleft())
        finally:
            reading.cancel()

    async def _read(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._gone.set()
                self._came.set()
                return
            held = sum(len(one.get("text") or "") for one in self._waiting)
            too_much = bool(held) and held + len(message.get("text") or "") > LONGEST_BODY
            if too_much or len(self._waiting) >= MOST_WAITING:
                said = f"{len(self._waiting)} messages wait already; send more when a response is over."
                await self._tell(429, body(said, "rate_limit_error", "too_many_messages"), None)
                continue
            self._waiting.append(message)
            self._came.set()

    async def _turn(self, message: Message) -> None:
        """Answer one message."""
        given, wrong = _given(message)
        lane = given.get("stream_id")
        lane = lane if isinstance(lane, str) else None
        if wrong is not None:
            await self._tell(400, wrong, lane)
            return
        asked = {name: value for name, value in given.items() if name not in _NOT_SENT} | {"stream": True}
        data = json.dumps(asked).encode()
        answer = _Turn(self._send, lane)
        scope = _request(self._scope, "POST", data) | {REMEMBERED: self._remembered}
        try:
            await self._app(scope, _nothing_more(data, self._gone), answer.take)
        except OSError:
            raise
        except Exception:  # noqa: BLE001 - one turn is lost, not the connection
            _log.exception("A turn over a WebSocket failed.")
        if answer.status != 200:
            await self._tell(answer.status, answer.error(), lane)
        if answer.status != 200 or answer.has_failed:
            self._remembered.forget(given.get("previous_response_id"))

    async def _tell(self, status: int, error: dict[str, Any], lane: str | None) -> None:
        told = {"type": "error", "status": status, **error, **({"stream_id": lane} if lane else {})}
        await self._send({"type": "websocket.send", "text": json.dumps(told)})


class _Answer:
    """Takes in the answer to a request."""

    def __init__(self) -> None:
        self.status = 500
        self.data = b""

    async def take(self, message: MutableMapping[str, Any]) -> None:
        """The next part of it."""
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
        else:
            await self.more(bytes(message.get("body", b"")))

    async def more(self, data: bytes) -> None:
        """More of its body."""
        self.data += data

    def error(self) -> dict[str, Any]:
        """What it says went wrong."""
        with suppress(ValueError):
            told: object = json.loads(self.data)
            if isinstance(told, dict) and "error" in told:
                return cast("dict[str, Any]", told)
        return body("This could not be answered now; try again.", "server_error", "unexpected")


class _Turn(_Answer):
    """Takes in the answer to one turn; each event of a stream goes on at once, as a message of its own."""

    def __init__(self, send: Send, lane: str | None) -> None:
        super().__init__()
        self._send = send
        self._lane = lane
        self.has_failed = False

    async def more(self, data: bytes) -> None:
        """Pass on the events that are whole."""
        self.data += data
        if self.status != 200:
            return
        *events, self.data = self.data.split(b"\n\n")
        for event in events:
            told = next((line[6:] for line in event.split(b"\n") if line.startswith(b"data: ")), b"")
            if not told:
                continue  # a sign of life, which such connections have of their own
            self.has_failed = self.has_failed or event.startswith(b"event: response.failed")
            if self._lane is not None:
                told = json.dumps({**json.loads(told), "stream_id": self._lane}).encode()
            await self._send({"type": "websocket.send", "text": told.decode()})


def _given(message: Message) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What a message says, and what is wrong with it."""
    text = message.get("text")
    given: object = None
    if isinstance(text, str) and len(text) <= LONGEST_BODY:
        with suppress(ValueError, RecursionError):
            given = json.loads(text)
    if not isinstance(given, dict):
        return {}, body("A message must be a text of at most 10 MB: a JSON object.", _WRONG, "invalid_json")
    found = cast("dict[str, Any]", given)
    if found.get("type") != _CREATE:
        said = f"type is {str(found.get('type'))[:80]!r}; the one kind of message here is {_CREATE!r}."
        return found, body(said, _WRONG, "unknown_event", "type")
    if found.get("generate") is False:
        said = "generate is false, and nothing is prepared here without a response; leave it out."
        return found, body(said, _WRONG, "unsupported_parameter", "generate")
    return found, None


def _request(scope: Scope, method: str, data: bytes) -> dict[str, Any]:
    """A request by the same program for the same path."""
    headers = [
        (name, value)
        for name, value in scope["headers"]
        if name not in _OF_HTTP and not name.startswith(b"sec-websocket")
    ]
    headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    scheme = "https" if scope.get("scheme") in {"wss", "https"} else "http"
    shared = {name: value for name, value in scope.items() if name not in {"subprotocols", "extensions"}}
    return {**shared, "type": "http", "http_version": "1.1", "method": method, "scheme": scheme, "headers": headers}


def _nothing_more(data: bytes, gone: asyncio.Event | None = None) -> Receive:
    """Gives the body of a request, and then waits until its program is gone."""
    told = False

    async def receive() -> Message:
        nonlocal told
        if not told:
            told = True
            return {"type": "http.request", "body": data, "more_body": False}
        await (gone or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    return receive


async def _deny(scope: Scope, send: Send, status: int, data: bytes) -> None:
    """Answer that there will be no connection, with the reason where the server can send one."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": data})
