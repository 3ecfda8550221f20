"""The meter of the composer: `POST /meter`, what the next message will take and cost."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.bridge.pool import BoundedDict
from core.errors import NotFoundError, ParlourError
from webui.context import json_body, log_text, text_of
from webui.panels.inspector import money

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.workspace.metering import Meter, Metering
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words

_log = logging.getLogger(__name__)
_PRIVATE: Final = {"cache-control": "no-store"}
_LONGEST: Final = 200_000  # letters of a draft: a longer one becomes a document
_KEPT: Final = 20.0
"""Seconds for which what a conversation holds is not counted again while somebody types."""
_MOST: Final = 64


class MeterRoutes:
    """`POST /meter` with `{"conversation", "draft", "fresh"}`: the parts, the room and the price, as JSON."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words
        self._known = BoundedDict[tuple[str, str], tuple[float, "Metering"]](_MOST)

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/meter", self.meter, methods=["POST"])]

    async def meter(self, request: Request) -> Response:
        """The meter; `{}` while no model is loaded, or for a conversation that is not there."""
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        try:
            asked = await json_body(request) or {}
            conversation, draft = text_of(asked.get("conversation")), text_of(asked.get("draft"))[:_LONGEST]
            async with self._engine.workspaces.open(owner) as workspace:
                known = await self._metering(workspace, conversation, words, fresh=asked.get("fresh") is True)
            if known is None:
                return JSONResponse({}, headers=_PRIVATE)
            return JSONResponse(meter_data(await known.with_draft(draft), words), headers=_PRIVATE)
        except NotFoundError:
            return JSONResponse({}, headers=_PRIVATE)
        except ParlourError as error:
            return JSONResponse({"failed": words.error(error)}, 503, _PRIVATE)
        except Exception as error:
            _log.error("What a message takes could not be counted.\n%s", log_text(error))
            return JSONResponse({"failed": words.error({"key": "unexpected"})}, 503, _PRIVATE)

    async def _metering(self, workspace: Workspace, conversation: str, words: Words, *, fresh: bool) -> Metering | None:
        key = (workspace.owner, conversation)
        at, known = self._known.get(key, (0.0, None))
        if known is not None and not fresh and time.monotonic() - at < _KEPT:
            return known
        counted = await workspace.conversation(conversation).metering(words.spoken)
        if counted is not None:
            self._known[key] = time.monotonic(), counted
        return counted


def meter_data(meter: Meter, words: Words) -> dict[str, Any]:
    """The meter as the page's script draws it."""
    parts = [
        _part("instructions", meter.instructions),
        _part("tools", meter.tools, words("meter.tools_on", n=meter.tool_count) if meter.tool_count else ""),
        _part("files", meter.files),
        _part("history", meter.history, words("meter.messages", n=meter.messages) if meter.messages else ""),
        _part("draft", meter.draft),
    ]
    prices: dict[str, str] = {}
    if not meter.free or meter.paid:
        about = money(meter.cost, words, free=meter.free)
        prices["next"] = words("meter.about", cost=about) if meter.cost and not meter.free else about
        prices["spent"] = money(meter.spent, words)
    return {
        "room": meter.room,
        "reserved": meter.reserved,
        "taken": meter.taken,
        "exact": meter.exact,
        "parts": [part for part in parts if part["tokens"]],
        **prices,
    }


def _part(name: str, tokens: int, note: str = "") -> dict[str, Any]:
    return {"name": name, "tokens": tokens, "note": note}
