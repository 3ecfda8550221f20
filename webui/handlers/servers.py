"""Where the service that signs in to a server of tools sends the owner's browser back to."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from core.outward import PATH
from webui.context import log_text
from webui.panels.servers import answered_page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from webui.context import WebContext

_log = logging.getLogger(__name__)

SIGNED_IN = f"{PATH}/signed-in"
_PRIVATE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}


class ServerRoutes:
    """`GET /mcp/signed-in`, for the owner of the request."""

    def __init__(self, context: WebContext) -> None:
        self._servers = context.engine.toolbox.servers
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """The one."""
        return [Route(SIGNED_IN, self.signed_in, methods=["GET"])]

    async def signed_in(self, request: Request) -> Response:
        """Take the answer, and say in the reader's language what came of it; nothing of the answer is shown."""
        words = self._words(request.headers.get("accept-language", ""))
        owner, status, error = request.scope["owner"], 200, None
        try:
            if owner is None:
                raise NotFoundError("This browser is no owner's.", key="sign_in_unknown")
            server = await self._servers.signed_in(owner, request.url.query)
            error = server.error
            title = words("servers.signed_in", name=server.kept.name)
        except NotFoundError as unknown:
            error, status, title = unknown, 404, ""
        except ParlourError as failed:
            error, title = failed, ""
        except Exception as failed:  # the door of the page: the tab says so
            _log.error("An answer to a sign-in came, and taking it failed.\n%s", log_text(failed))
            error, status, title = ParlourError(""), 500, ""
        said = words("servers.close_tab")
        if error is not None:
            title, remedy = words.error_parts(error)
            said = words.line(remedy.rstrip(".。"), said) if remedy else said
        return HTMLResponse(answered_page(title, said, words), status, _PRIVATE)


def sign_in_address(request: Request) -> str:
    """The whole address of that route, as the reader's browser knows this page: so it works behind a proxy, too."""
    url = request.url
    origin = request.headers.get("origin") or f"{url.scheme}://{request.headers.get('host', url.netloc)}"
    return f"{origin}{request.scope.get('root_path', '')}{SIGNED_IN}"
