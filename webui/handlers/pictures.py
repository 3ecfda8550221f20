"""Pictures from elsewhere that a reply names: fetched by the server when a reader asks for one, never by the page."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.errors import FetchError, ParlourError
from core.net.fetcher import FetchLimits, fetch
from core.storage.files import media_type_of_head
from webui.context import json_body, log_text, text_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from webui.context import WebContext

_log = logging.getLogger(__name__)

_PRIVATE: Final = {"cache-control": "no-store"}
_KINDS: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"})
_LIMITS: Final = FetchLimits(size=8 * 1024 * 1024, seconds=15.0, types=("image/", "application/octet-stream"))
_LONGEST: Final = 4_000
_HEAD: Final = 4_096


class PictureRoutes:
    """`POST /pictures/show` with the address of a picture; it comes back as itself."""

    def __init__(self, context: WebContext) -> None:
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/pictures/show", self.show, methods=["POST"])]

    async def show(self, request: Request) -> Response:
        """The picture; `{"failed": sentence}` where it cannot be had, or is none."""
        if request.scope["owner"] is None:
            return JSONResponse({}, 401, _PRIVATE)
        asked = await json_body(request)
        address = text_of((asked or {}).get("address"))
        if not 0 < len(address) <= _LONGEST:
            return JSONResponse({}, 400, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        failed: ParlourError | dict[str, str]
        try:
            fetched = await fetch(address, limits=_LIMITS)
            kind = media_type_of_head(fetched.data[:_HEAD], "")  # by its bytes: what a server says it is proves nothing
            if kind in _KINDS:
                return Response(fetched.data, media_type=kind, headers=_PRIVATE)
            failed = FetchError("This is no picture.", key="no_picture")
        except ParlourError as error:
            failed = error
        except Exception as error:  # the door of the page: it says so, and goes on
            _log.error("A picture was asked for, and it failed.\n%s", log_text(error))
            failed = {"key": "unexpected"}
        return JSONResponse({"failed": words.error(failed)}, 502, _PRIVATE)
