"""Gradio's queue for who has no page open, as its clients (`gradio_client`, `@gradio/client`) speak it.

It has one function, `ask`: what a client reads of it is a configuration like that of any Gradio application. Its number
is none of the page's functions. The protocol is `sse_v3` of Gradio 6.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from importlib.metadata import version
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, Response, StreamingResponse

from core.bridge.pool import BoundedDict
from webui.context import json_body
from webui.middleware.answers import words_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

FUNCTION: Final = 100_000
"""The number of `ask`."""
_MOST: Final = 200  # clients whose answers wait to be read
_LONGEST_SESSION: Final = 64  # letters; those of Gradio's clients have 36
_LOOK: Final = 0.5  # seconds until a question is noticed that came while others are answered
_ALIVE: Final = 15.0
_TEXT: Final = {"type": "textbox", "skip_api": False, "api_info": {"type": "string"}}


def told_of_itself(*, mcp: bool) -> dict[str, Any]:
    """What a Gradio application tells of itself, as far as there is anything for who has no page open."""
    ask = {"id": FUNCTION, "api_name": "ask", "api_visibility": "public", "backend_fn": True, "queue": True}
    ask |= {"inputs": [1], "outputs": [2], "targets": [], "cancels": [], "types": {"generator": False, "cancel": False}}
    return {
        "version": version("gradio"),
        "protocol": "sse_v3",
        "api_prefix": "/gradio_api",
        "mcp_server": mcp,
        "connect_heartbeat": False,
        "components": [
            {"id": number, **_TEXT, "props": {"label": label}} for number, label in ((1, "Question"), (2, "Answer"))
        ],
        "dependencies": [ask],
    }


class PublicQueue:
    """Questions that wait for their answers, by the session that each client makes up for itself.

    Args:
        begin: Begins an answer to what was given as a question; a response where it was refused.
        failed: The sentence that says why an answer failed, in the language of a request.
    """

    def __init__(
        self,
        begin: Callable[[Request, object], Awaitable[asyncio.Task[str] | Response]],
        failed: Callable[[Request, Exception], str],
    ) -> None:
        self._begin = begin
        self._failed = failed
        self._waiting = BoundedDict[str, dict[str, asyncio.Task[str]]](_MOST, _stop)
        self._followers = Counter[str]()

    async def join(self, request: Request) -> Response:
        """`POST …/queue/join` with `{"data": [question], "fn_index", "session_hash"}`: begin an answer."""
        given = await json_body(request) or {}
        session, data = str(given.get("session_hash") or ""), given.get("data")
        if given.get("fn_index") != FUNCTION or not 0 < len(session) <= _LONGEST_SESSION:
            return _refused(request)
        begun = await self._begin(request, data[0] if isinstance(data, list) and data else None)  # pyright: ignore[reportUnknownArgumentType] - anything
        if isinstance(begun, Response):
            return begun
        event = token_urlsafe(16)
        waiting = self._waiting.get(session, {})
        waiting[event] = begun
        self._waiting[session] = waiting
        return JSONResponse({"event_id": event})

    async def data(self, request: Request) -> Response:
        """`GET …/queue/data?session_hash=…`: the answers of a session as they come; it ends when none is left."""
        session = request.query_params.get("session_hash", "")
        if session not in self._waiting:
            return _refused(request)

        async def told() -> AsyncIterator[str]:
            said = time.monotonic()
            self._followers[session] += 1
            try:
                while waiting := self._waiting.get(session):
                    await asyncio.wait([*waiting.values()], timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
                    waiting = self._waiting.get(session, {})  # those that made room for others are gone
                    for event in [one for one, task in waiting.items() if task.done()]:
                        if (task := waiting.pop(event, None)) is not None:  # else another stream has told it
                            yield _line("process_completed", event_id=event, **self._came(request, task))
                    if time.monotonic() - said > _ALIVE:
                        said = time.monotonic()
                        yield _line("heartbeat")
                self._waiting.pop(session, None)  # what is asked from now on is followed by another stream
                yield _line("close_stream", event_id=None)
            except BaseException:  # the client has left
                if self._followers[session] == 1:
                    _stop(self._waiting.pop(session, {}))
                raise
            finally:
                self._followers -= Counter([session])

        return StreamingResponse(told(), media_type="text/event-stream")

    def _came(self, request: Request, task: asyncio.Task[str]) -> dict[str, Any]:
        try:
            return {"success": True, "output": {"data": [task.result()]}}
        except (Exception, asyncio.CancelledError) as error:
            failed = error if isinstance(error, Exception) else RuntimeError("The answer was called off.")
            return {"success": False, "output": {"error": self._failed(request, failed)}}


def _refused(request: Request) -> Response:
    """As the gate refuses what is not one's own: a page that has lost its cookie says so."""
    sentence = words_of(request.scope)("refused.not_yours")
    return JSONResponse({"detail": sentence, "error": sentence}, 403, {"cache-control": "no-store"})


def _line(kind: str, **more: object) -> str:
    return f"data: {json.dumps({'msg': kind, **more}, ensure_ascii=False)}\n\n"


def _stop(waiting: dict[str, asyncio.Task[str]]) -> None:
    """End answers that nobody reads any more: they would go on using the model."""
    for task in waiting.values():
        task.cancel()
