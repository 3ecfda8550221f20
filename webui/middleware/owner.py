"""Refuses requests that are meant for another host or come from another site's page, and says who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from webui.middleware.answers import answer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from webui.auth import Hosts, Owners

_UNKNOWN_HOST = "Parlour does not answer to this address; its owner can allow it with PARLOUR_ALLOWED_HOSTS."
_OTHER_SITE = "Parlour answers only its own page; this request came from another site."


class OwnerMiddleware:
    """Puts the owner, or `None`, into `scope["owner"]`; a browser that opens the page for the first time gets one."""

    def __init__(self, app: ASGIApp, owners: Owners, hosts: Hosts) -> None:
        self.app = app
        self._owners = owners
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # Parlour speaks no websockets
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(headers)
        if refusal:
            await answer(send, 403, refusal)
            return
        owner = self._owners.of(headers.get("cookie", ""))
        if owner is None and scope["path"] == "/" and scope["method"] == "GET":
            owner = self._owners.new()
            send = self._introduced(owner, scope, send)
        scope["owner"] = owner
        await self.app(scope, receive, send)

    def _refusal(self, headers: Headers) -> str:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._hosts.knows(host):
            return _UNKNOWN_HOST
        if origin is not None and not self._hosts.trusts(origin, host):
            return _OTHER_SITE
        return ""

    def _introduced(self, owner: str, scope: Scope, send: Send) -> Send:
        """A `send` that gives the browser its cookie."""
        cookie = self._owners.cookie(owner, https=scope["scheme"] == "https")

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        return with_cookie
