"""Dictation by recording: what would happen to a recording, told before there is one; and its text."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.errors import ParlourError
from core.llm.transcription import LONGEST_SECONDS, MOST_BYTES, recording_of, too_long
from core.workspace.dictation import BROWSER
from webui.context import answered_in_time, log_text, text_of
from webui.panels.dictation import way_data
from webui.panels.models import failure

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words

_log = logging.getLogger(__name__)

_PRIVATE: Final = {"cache-control": "no-store"}


class DictationRoutes:
    """`GET /dictation/way` and `POST /dictation/text`, for the owner of the request."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """Both of them."""
        return [
            Route("/dictation/way", self.way, methods=["GET"]),
            Route("/dictation/text", self.text, methods=["POST"]),
        ]

    async def way(self, request: Request) -> Response:
        """What turns speech into text: the browser, or what a recording would go to; nothing is asked for that."""
        words, owner = self._words(request.headers.get("accept-language", "")), request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                return JSONResponse(await _way(workspace, words), headers=_PRIVATE)
        except ParlourError as error:
            return JSONResponse({"browser": True, "problem": words.error(error)}, headers=_PRIVATE)

    async def text(self, request: Request) -> Response:
        """The text of a recording: the body is a sound file, the address says what was announced about it."""
        words, owner = self._words(request.headers.get("accept-language", "")), request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        if not request.headers.get("content-type", "").startswith("audio/"):
            return JSONResponse({}, 400, _PRIVATE)  # a form of another site could send anything else
        asked = request.query_params
        announced, talk = text_of(asked.get("as")), text_of(asked.get("talk"))
        try:
            data = await _body(request)
            recording = recording_of(data, _seconds(asked.get("seconds")))
        except ClientDisconnect:
            return Response(status_code=400)
        except ParlourError as error:
            status = 413 if error.words_key == "recording_too_long" else 400
            return JSONResponse({"failed": words.error(error)}, status, _PRIVATE)

        async def done() -> dict[str, Any]:
            try:
                async with self._engine.workspaces.open(owner) as workspace:
                    heard = await workspace.dictation.transcribe(recording, announced, talk, words.spoken)
                    return {"text": heard}
            except ParlourError as error:
                return {"failed": failure(error, words), "changed": error.words_key == "dictation_changed"}
            except Exception as error:  # the door of the page: it says so, and goes on
                _log.error("A recording was to become text, and it failed.\n%s", log_text(error))
                return {"failed": words.error({"key": "unexpected"})}

        return await answered_in_time(done(), _PRIVATE)


async def _way(workspace: Workspace, words: Words) -> dict[str, Any]:
    chosen = await workspace.dictation.chosen()
    told: dict[str, Any] = {"browser": chosen in {"", BROWSER}, "longest": LONGEST_SECONDS}
    try:
        way = await workspace.dictation.way()
    except ParlourError as error:
        return {**told, "problem": failure(error, words)}
    if way is not None:
        return {**told, "way": way_data(way, words, local=workspace.models.is_local)}
    return {**told, "problem": words("dictation.no_browser")} if chosen == BROWSER else told


async def _body(request: Request) -> bytes:
    """The body; a longer one is not read to its end. Raises ParlourError, key `recording_too_long`."""
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > MOST_BYTES:
        raise too_long()
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > MOST_BYTES:
            raise too_long()
    return bytes(data)


def _seconds(given: str | None) -> float:
    try:
        seconds = float(given or 0)
    except ValueError:
        return 0.0
    return seconds if 0 <= seconds < 1e6 else 0.0
