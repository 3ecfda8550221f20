"""The meter of the composer: what the next message will take and cost, and what makes it smaller."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.bridge.pool import BoundedDict
from core.errors import NotFoundError, ParlourError
from core.llm.tokens import counter_for
from core.toolbox.toolbox import CODE
from core.workspace.usable import WEB, costs_of
from webui.context import json_body, log_text, text_of
from webui.render.price import money
from webui.render.tool_words import label_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.models.model_name import ModelName
    from core.workspace.metering import Meter, Metering
    from core.workspace.saving import Saving
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words

_log = logging.getLogger(__name__)
_SAVE: Final = "/meter/save"
_PRIVATE: Final = {"cache-control": "no-store"}
_LONGEST: Final = 200_000  # letters of a draft: a longer one becomes a document
_KEPT: Final = 20.0
"""Seconds for which what a conversation holds is not counted again while somebody types."""
_MOST: Final = 64


class MeterRoutes:
    """`POST /meter` with `{"conversation", "draft", "fresh"}`: the parts, the room, the price and savings, as JSON.

    `chips` among them has the tokens of the tools that the composer's chips switch.

    `POST /meter/save` with `{"conversation", "draft", "key", "on"}` chooses a saving, or takes it back, and answers
    the same.
    """

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words
        self._known = BoundedDict[tuple[str, str], tuple[float, "Metering", dict[str, int]]](_MOST)

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route(path, self.meter, methods=["POST"]) for path in ("/meter", _SAVE)]

    async def meter(self, request: Request) -> Response:
        """The meter; `{}` while no model is loaded, or for a conversation that is not there."""
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        try:
            asked = await json_body(request) or {}
            conversation, draft = text_of(asked.get("conversation")), text_of(asked.get("draft"))[:_LONGEST]
            saves = request.url.path.endswith(_SAVE) and bool(conversation)
            async with self._engine.workspaces.open(owner) as workspace:
                if saves:
                    talk, key = workspace.conversation(conversation), text_of(asked.get("key"))
                    await talk.save_tokens(key, words.spoken, on=asked.get("on") is True)
                known = await self._metering(workspace, conversation, words, fresh=saves or asked.get("fresh") is True)
            if known is None:
                return JSONResponse({}, headers=_PRIVATE)
            metering, chips = known
            data = meter_data(await metering.with_draft(draft), words)
            return JSONResponse({**data, "chips": chips}, headers=_PRIVATE)
        except NotFoundError:
            return JSONResponse({}, headers=_PRIVATE)
        except ParlourError as error:
            return JSONResponse({"failed": words.error(error)}, 503, _PRIVATE)
        except Exception as error:
            _log.error("What a message takes could not be counted.\n%s", log_text(error))
            return JSONResponse({"failed": words.error({"key": "unexpected"})}, 503, _PRIVATE)

    async def _metering(
        self, workspace: Workspace, conversation: str, words: Words, *, fresh: bool
    ) -> tuple[Metering, dict[str, int]] | None:
        """What is counted, and what the tools of the chips cost in each message."""
        key = (workspace.owner, conversation)
        known = self._known.get(key)
        if known is not None and not fresh and time.monotonic() - known[0] < _KEPT:
            return known[1:]
        talk = workspace.conversation(conversation)
        counted = await talk.metering(words.spoken)
        if counted is None:
            return None
        chips = await _chips(workspace, await talk.model() if conversation else None)
        self._known[key] = time.monotonic(), counted, chips
        return counted, chips


async def _chips(workspace: Workspace, name: ModelName | None) -> dict[str, int]:
    """The tokens of the tools behind each chip, as the steering counts them; those that are not there are left out."""
    model = (await workspace.models.chosen(name)).loader.model
    costs = await costs_of(workspace.services, [*WEB, CODE], (model and model.counter) or counter_for(""))
    chips = {"web": sum(costs.get(one, 0) for one in WEB), "code": costs.get(CODE, 0)}
    return {chip: tokens for chip, tokens in chips.items() if tokens}


def meter_data(meter: Meter, words: Words) -> dict[str, Any]:
    """The meter as the page's script draws it."""
    parts = [
        _part("instructions", meter.instructions),
        _part("tools", meter.tools, words("meter.tools_on", n=meter.tool_count) if meter.tool_count else ""),
        _part("files", meter.files, words("meter.whole") if meter.whole else ""),
        _part("history", meter.history, words("meter.messages", n=meter.messages) if meter.messages else ""),
        _part("draft", meter.draft),
    ]
    return {
        "room": meter.room,
        "reserved": meter.reserved,
        "taken": meter.taken,
        "exact": meter.exact,
        "parts": [part for part in parts if part["tokens"]],
        "savings": [_saving(one, words) for one in meter.savings],
        **_prices(meter, words),
    }


def _prices(meter: Meter, words: Words) -> dict[str, Any]:
    """What the next message costs, of each model where two answer it; nothing where nothing costs anything."""
    second = meter.second
    if meter.free and not meter.paid and (second is None or second.free):
        return {}
    own = _price(meter.cost, words, free=meter.free)
    each = [{"model": meter.label if second is not None else "", "cost": own}]
    if second is not None:
        each.append({"model": second.label, "cost": _price(second.cost, words, free=second.free)})
    return {"next": each, "spent": money(meter.spent, words)}


def _price(cost: float | None, words: Words, *, free: bool) -> str:
    about = money(cost, words, free=free)
    return words("meter.about", cost=about) if cost and not free else about


def _saving(one: Saving, words: Words) -> dict[str, Any]:
    """A saving as a row: what is done by it, about what, and how to name it once it is done."""
    state = "done" if one.done else "do"
    noted = {"passages": words("attach.comma").join(one.names), "tools": _tools_noted(one, words)}
    note = noted.get(one.kind, words("meter.save_seen"))
    if one.kind == "summary" and one.done and one.pending:
        note = words("meter.save_pending")
    if one.pending and not one.free:
        note = words("meter.save_costs", note=note, cost=_price(one.cost, words, free=False))
    return {
        "key": one.key,
        "title": words(f"meter.save_{one.kind}_{state}", n=one.count, name=_brought(one.about, words)),
        "note": note,
        "tokens": one.tokens,
        "done": one.done,
    }


def _brought(about: str, words: Words) -> str:
    """What tools are called together: those of the web, of a server, or one of Parlour's own."""
    if about == "web":
        return words("bar.web")
    server = about.partition(":")[2]
    return f"“{server}”" if server else label_of(about, words) or about


def _tools_noted(one: Saving, words: Words) -> str:
    if one.done:
        return words("meter.save_here")
    return words("meter.save_tools_one" if one.count == 1 else "meter.save_tools", n=one.count)


def _part(name: str, tokens: int, note: str = "") -> dict[str, Any]:
    return {"name": name, "tokens": tokens, "note": note}
