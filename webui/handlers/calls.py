"""All of a call, for its owner: the arguments as fields, what is cut on the page, and what stands in a result."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from anyio import to_thread
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from webui.handlers.approval import arguments_of, call_of
from webui.panels.approval import argument_fields
from webui.render.calls import label_of
from webui.render.documents import file_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.runs.reply import CallBlock
    from webui.context import WebContext

_PRIVATE = {"cache-control": "no-store"}
_LONG = {"cache-control": "private, max-age=86400"}
# What a browser may show by itself, because it can hold no script.
_SHOWN = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"}
    | {"audio/mpeg", "audio/wav", "audio/x-wav", "audio/ogg", "audio/flac", "video/mp4", "video/webm"}
)


class CallRoutes:
    """`GET /calls/given`, `text` and `item`, for the owner of the reply that `message` names; `call` names its call."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/calls/given", self._answering(self.given), methods=["GET"]),
            Route("/calls/text", self._answering(self.text), methods=["GET"]),
            Route("/calls/item", self._answering(self.item), methods=["GET"]),
        ]

    async def given(self, request: Request, call: CallBlock) -> Response:
        """The call's arguments as fields that can be changed."""
        words = self._words(request.headers.get("accept-language", ""))
        shown = [field._asdict() for field in argument_fields(arguments_of(call))]
        about = {"name": call.name, "label": label_of(call.name, words), "fields": shown}
        return JSONResponse(about, headers=_PRIVATE)

    async def text(self, request: Request, call: CallBlock) -> Response:
        """All that went in (`of=given`), or all that came back."""
        if request.query_params.get("of") == "given":
            text = _written(call)
        else:
            text = await self._whole(request.scope["owner"], call)
        headers = {**_PRIVATE, "content-disposition": 'attachment; filename="result.txt"'}
        return PlainTextResponse(text, headers=headers)

    async def item(self, request: Request, call: CallBlock) -> Response:
        """A picture or file that stands in the result; what a browser cannot show safely is saved instead."""
        asked = request.query_params.get("n", "")
        number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else -1
        items = call.result.items if call.result is not None else []
        value: Any = items[number].value if 0 <= number < len(items) and items[number].type != "text" else None
        raw = _decoded(value)
        kind = (
            str(value)[5:].partition(",")[0].partition(";")[0].lower()
        )  # a browser is told to take it for nothing else
        if kind in _SHOWN:
            return Response(raw, media_type=kind, headers=_LONG)
        name = {"content-disposition": 'attachment; filename="result"'}
        return Response(raw, media_type="application/octet-stream", headers={**_LONG, **name})

    async def _whole(self, owner: str, call: CallBlock) -> str:
        """All of the text that came back; what the model was not shown stands in the last item."""
        if call.result is None:
            return ""
        if not (call.result.extra or {}).get("whole") or not call.result.items:
            return call.result.get_text_content()
        last = call.result.items[-1]
        if not (stored := file_id(last)):
            return _decoded(last.value).decode("utf-8", "replace")
        _, path = await self._engine.files.get(owner, stored)
        return await to_thread.run_sync(partial(path.read_text, "utf-8", "replace"))

    def _answering(
        self, work: Callable[[Request, CallBlock], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Finds the call; whoever it does not belong to is told that there is none."""

        async def answer(request: Request) -> Response:
            owner, asked = request.scope["owner"], request.query_params
            if owner is None:
                return PlainTextResponse("", 401, headers=_PRIVATE)
            try:
                message = await self._engine.conversations.message(owner, asked.get("message", ""))
                call = call_of(await self._engine.runs.reply(owner, message), asked.get("call", ""))
                return await work(request, call)
            except ParlourError as error:
                words = self._words(request.headers.get("accept-language", ""))
                return PlainTextResponse(words.error(error), 404, headers=_PRIVATE)

        return answer


def _written(call: CallBlock) -> str:
    """What went in, each argument under its name; as the model wrote it where it cannot be read."""
    given = argument_fields(arguments_of(call))
    if len(given) == 1:
        return given[0].text
    parts = (f"{one.name}:\n{one.text}\n" if "\n" in one.text else f"{one.name}: {one.text}" for one in given)
    return "\n".join(parts) or call.arguments


def _decoded(value: Any) -> bytes:
    """What a `data:` address holds. Raises NotFoundError for any other."""
    if not isinstance(value, str) or not value.startswith("data:"):
        raise NotFoundError("There is no such part.")
    about, _, held = value.partition(",")
    try:
        return b64decode(held, validate=True) if about.endswith(";base64") else unquote_to_bytes(held)
    except (NotBase64, ValueError) as error:
        raise NotFoundError("It cannot be read.") from error
