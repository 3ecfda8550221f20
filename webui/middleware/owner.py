"""Refuses requests that are meant for another host or come from another site's page, and says who asks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders

from core.errors import TooManyRequestsError
from core.mcp.app_addresses import OPEN_PATHS
from core.net.addresses import MARK_HEADER, is_own_request
from core.storage.base import LOCAL_OWNER
from webui.auth import PageToken
from webui.middleware.answers import answer, refuse, words_of
from webui.middleware.entrance import ANEW_PATH, TOKEN_PATH, Entrance
from webui.middleware.proxy import client_address, counted_as
from webui.middleware.then import is_asked

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from core.limits import Limits, RateLimiter
    from core.settings import Settings
    from webui.auth import Hosts, Owners

# Whoever supervises Parlour asks by whatever name and address it knows; they are told no more than yes or no.
_PROBES = frozenset({"/healthz", "/readyz"})
SHARED = "/shared/"
"""Whoever has a link to a snapshot may read it: its address is the secret."""
METRICS_PATH = "/metrics"
VISITOR_HEADER = "x-parlour-visitor"
"""Names the owner where a browser keeps no cookies for a page in a frame; other sites cannot send it along."""
VISITOR_PATH = "/visitor"
_OTHER_PROGRAMS = "/mcp"  # shows a token of its own
_DOORS = ("/v1/", "/embed/")  # shows a key, by which alone it is known
EMBED_SCRIPT, EMBED_PAGE = "/embed.js", "/embed"
_AT_THE_DOORS = frozenset({EMBED_SCRIPT, EMBED_PAGE}) | OPEN_PATHS


class _Came(NamedTuple):
    """How a request came: why it is refused, or "", and whether it may be the local owner's."""

    refused: str
    is_direct: bool


class OwnerMiddleware:
    """Puts who asks into the scope; a browser that opens the page for the first time gets an owner of its own.

    `scope["owner"]` is the owner or `None`, `scope["visitor"]` whether the request may not be the local owner's, and
    `scope["trusted"]` whether whoever asks has shown the token or is the local owner.

    Args:
        owners: Knows browsers again.
        hosts: By which names Parlour may be asked.
        token: Opens the page.
        kept: The token is one that Parlour made and keeps in its data folder.
        newcomers: Limits how many browsers of one address may be new.
        accounts: People sign in; no browser is made an owner of its own by opening the page.
    """

    def __init__(  # noqa: PLR0913 - each by name
        self,
        app: ASGIApp,
        owners: Owners,
        hosts: Hosts,
        token: PageToken | None = None,
        *,
        kept: bool = False,
        newcomers: RateLimiter | None = None,
        accounts: bool = False,
    ) -> None:
        self.app = app
        self._owners = owners
        self._hosts = hosts
        self._token = token or PageToken("", cookies=owners.cookies)
        self._entrance = Entrance(self._token, owners, kept=kept)
        self._newcomers = newcomers
        self._accounts = accounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # `SocketDoor` has those that Parlour speaks
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["path"] == METRICS_PATH:  # shows a token of its own, whatever name and address it asks by
            await self.app({**scope, "owner": None, "visitor": True, "trusted": False}, receive, send)
            return
        headers = Headers(scope=scope)
        came = self._came(scope, headers)
        if scope["path"].startswith(_DOORS) or scope["path"] in _AT_THE_DOORS:
            await self._at_the_doors(scope, receive, send, came)
            return
        shown = self._has_shown(scope, headers)
        if came.refused and scope["path"] not in _PROBES:
            await self._entrance.refuse(scope, send, came.refused)
        elif came.refused:
            await self.app({**scope, "owner": None, "visitor": True, "trusted": False}, receive, send)
        elif self._asks_for_token(came) and not shown and scope["path"] not in _PROBES:
            await self._at_the_door(scope, receive, send, came)
        else:
            await self._let_in(scope, receive, send, came, shown=shown)

    def _came(self, scope: Scope, headers: Headers) -> _Came:
        host, origin = headers.get("host", ""), headers.get("origin")
        if any(is_own_request(mark) for mark in headers.getlist(MARK_HEADER)):
            return _Came("refused.own", is_direct=False)
        if not self._hosts.knows(host):
            return _Came("refused.host", is_direct=False)
        if origin is not None and not self._hosts.trusts(origin, host):
            return _Came("refused.site", is_direct=False)
        if not self._owners.local:
            return _Came("", is_direct=False)
        relayed = scope.get("relayed", "no")
        straight = relayed == "no" or (relayed == "trusted" and self._token.asked)
        named_here = self._hosts.is_this_machine(host)
        if straight and named_here and (origin is None or self._hosts.is_same(origin, host)):
            return _Came("", is_direct=True)
        # By an allowed name visitors come; by a name of this machine they cannot be told from its owner.
        return _Came("refused.relayed" if named_here else "", is_direct=False)

    def _asks_for_token(self, came: _Came) -> bool:
        return self._token.asked and (came.is_direct or self._token.for_everybody)

    def _has_shown(self, scope: Scope, headers: Headers) -> bool:
        if self._token.shown_by(headers.get("cookie", "")):
            return True
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        return scope["path"] in _PROBES and kind.lower() == "bearer" and self._entrance.by_program(scope, bearer)

    async def _at_the_door(self, scope: Scope, receive: Receive, send: Send, came: _Came) -> None:
        """The token is asked for, and has not been shown."""
        asked = (scope["method"], scope["path"])
        if asked == ("POST", TOKEN_PATH):
            await self._entrance.by_form(scope, receive, send)
        elif asked == ("GET", "/") and _names_token(scope):
            await self._entrance.by_address(scope, send, known=False)
        elif is_asked(scope) or (scope["path"] == "/" and scope["method"] in {"GET", "HEAD"}):
            await self._entrance.ask(scope, send)
        elif scope["path"] == _OTHER_PROGRAMS or (
            scope["path"].startswith(SHARED) and scope["method"] in {"GET", "HEAD"}
        ):
            await self.app({**scope, "owner": None, "visitor": not came.is_direct, "trusted": False}, receive, send)
        else:
            await refuse(scope, send, 401, "entrance.needed")

    async def _at_the_doors(self, scope: Scope, receive: Receive, send: Send, came: _Came) -> None:
        """A program with a key: no cookie counts, so that no page of another site can ask in its reader's name."""
        if came.refused:
            said = words_of(scope)(came.refused)
            told = {"message": said, "type": "invalid_request_error", "param": None, "code": came.refused}
            body = json.dumps({"error": told}, ensure_ascii=False)
            await answer(send, 403, body, "application/json", (("cache-control", "no-store"),))
            return
        await self.app({**scope, "owner": None, "visitor": not came.is_direct, "trusted": False}, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send, came: _Came, *, shown: bool) -> None:
        cookies = Headers(scope=scope).get("cookie", "")
        direct_and_known = came.is_direct and (shown or not self._token.asked)
        owner = self._owners.of(cookies, visitor=not direct_and_known)
        kept = owner is not None
        if owner is None:  # its browser keeps no cookie in a frame
            owner = self._owners.named(Headers(scope=scope).get(VISITOR_HEADER, ""))
        scope = {
            **scope,
            "owner": owner,
            "visitor": not came.is_direct,
            "trusted": shown or owner == LOCAL_OWNER,
        }
        asked = (scope["method"], scope["path"])
        if asked == ("GET", VISITOR_PATH):
            told = json.dumps({"cookie": kept, "known": owner is not None})
            await answer(send, 200, told, "application/json", [("cache-control", "no-store")])
        elif asked == ("GET", "/") and _names_token(scope) and self._token.asked:
            await self._entrance.by_address(scope, send, known=True)
        elif asked == ("POST", ANEW_PATH) and owner is None:
            if not await self._one_too_many(scope, send):
                await self._entrance.begin_afresh(scope, send)
        elif asked == ("POST", TOKEN_PATH) and self._token.asked:
            await self._entrance.by_form(scope, receive, send)
        elif asked == ("GET", "/") and owner is None and not self._accounts and self._owners.unread(cookies):
            await self._entrance.say_unread(scope, send)
        elif asked == ("GET", "/"):
            await self._open(scope, receive, send, shown=shown)
        else:
            await self.app(scope, receive, send)

    async def _open(self, scope: Scope, receive: Receive, send: Send, *, shown: bool) -> None:
        """The page: who has no owner yet gets one; cookies are renewed, so that they never end on who comes again."""
        if scope["owner"] is None and self._accounts:
            await self.app(scope, receive, send)
            return
        if scope["owner"] is None and await self._one_too_many(scope, send):
            return
        https = scope["scheme"] == "https"
        owner = scope["owner"] or self._owners.new()
        if scope["owner"] is None and Headers(scope=scope).get("sec-fetch-dest") == "iframe":
            scope.setdefault("page_notes", {})["visitor"] = self._owners.written(owner)
        cookies = [] if owner == LOCAL_OWNER else [self._owners.cookie(owner, https=https)]
        if shown:
            cookies.append(self._token.proof(https=https))

        async def with_cookies(message: Message) -> None:
            if message["type"] == "http.response.start":
                for cookie in cookies:
                    MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        await self.app({**scope, "owner": owner}, receive, with_cookies)

    async def _one_too_many(self, scope: Scope, send: Send) -> bool:
        """Whether too many browsers of this address are new; then that is said."""
        try:
            if self._newcomers is not None:
                await self._newcomers.take(counted_as(client_address(scope)))
        except TooManyRequestsError as error:
            await self._entrance.say_too_many(scope, send, error)
            return True
        return False


def newcomers_of(limits: Limits, settings: Settings) -> RateLimiter:
    """What counts how many browsers of one address come for the first time."""
    return limits.rate(
        "newcomers", settings.new_owners, 60.0, error="too_many_visitors", message="Too many new visitors."
    )


def _names_token(scope: Scope) -> bool:
    return "token" in parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
