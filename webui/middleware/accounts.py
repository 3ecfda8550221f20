"""Says who asks by the session of their browser, and lets each role do what it may."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from starlette.datastructures import Headers, MutableHeaders

from core.errors import StorageError
from core.mcp.app_addresses import OPEN_PATHS
from webui.middleware.answers import answer, refuse, words_of
from webui.middleware.rights import lets, needed
from webui.middleware.then import remembering

if TYPE_CHECKING:
    from collections.abc import Generator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from core.people.people import Ended, Known, People
    from webui.auth import Cookies
    from webui.words import Words

SESSION: Final = "-session"
"""The kind of cookie that holds a session's token."""
SIGN_IN: Final = "sign-in"
_SAFE: Final = frozenset({"GET", "HEAD"})
_OTHER_PROGRAMS: Final = ("/mcp", "/v1/")  # they show a token, which no other site's page knows
_LOOKED_AT: Final = 30.0  # seconds: a stream whose session another process ended is cut by then
_RENEWED: Final = 24 * 3600.0


class _Refusal(Protocol):
    def __call__(self, known: Known | None, root: str, words: Words, *, nobody: bool) -> str: ...


class AccountsMiddleware:
    """Puts who asks into the scope, by a session; refuses what their role may not.

    `scope["owner"]` is the person's id, a guest's own, or `None`; `scope["known"]` the person with the session, or
    `None`; `scope["guest"]` the owner that the browser is without a session, or `None`.

    Args:
        people: Knows sessions.
        cookies: How cookies of this server are named and written.
        guests: Whether one may come without an account.
        refusal: The page for somebody who may not use what it stands at: given who asks, `None` for a guest without an
            account, the way to the root, and whether they need only sign in.
    """

    def __init__(
        self,
        app: ASGIApp,
        people: People,
        cookies: Cookies,
        *,
        guests: bool,
        refusal: _Refusal,
    ) -> None:
        self.app = app
        self._refusal = refusal
        self._people = people
        self._cookies = cookies
        self._guests = guests
        self._streams: set[_Stream] = set()
        people.ended.add(self._cut)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            tokens = tuple(filter(None, self._cookies.values(headers.get("cookie", ""), SESSION)))
            known = await self._people.by_session(tokens) if tokens else None
        except StorageError:
            await refuse(scope, send, 503, "account.not_now")
            return
        guest: str | None = scope["owner"]
        # Whose session ended has an account: they read so, and go on as a guest only when they say it.
        is_guest = guest is not None and self._guests and not tokens
        role = known.person.role if known is not None else "guest" if is_guest else None
        owner = known.person.id if known is not None else guest if is_guest else None
        scope = {**scope, "owner": owner, "known": known, "guest": guest, "trusted": role in {"administrator", "owner"}}
        needs = needed(scope["path"])
        if needs is None:
            await refuse(scope, send, 404, "refused.not_here")
        elif not lets(needs, role, account=known is not None):
            await self._refuse(scope, send, nobody=role is None or (needs == "account" and known is None))
        elif not _is_ours(scope, headers):
            await refuse(scope, send, 403, "refused.site")
        elif known is not None:
            await self._serve(known, tokens, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _serve(self, known: Known, tokens: tuple[str, ...], scope: Scope, receive: Receive, send: Send) -> None:
        """Serve somebody, until their session ends: then it is as if the browser had left."""
        if scope["path"] == "/":
            send = self._renewing(tokens[0] if len(tokens) == 1 else "", scope, send)
        with self._stream(known, tokens) as stream:
            await self.app(scope, stream.until_ended(receive, self._people), send)

    async def _refuse(self, scope: Scope, send: Send, *, nobody: bool) -> None:
        reads = "text/html" in Headers(scope=scope).get("accept", "")  # a browser that goes there; scripts do not
        path = str(scope["path"])
        root = scope.get("base", "./") if path == "/" else "../" * (path.count("/") - 1) or "./"
        safe = scope["method"] in _SAFE
        if reads and not (nobody and safe):
            page = self._refusal(scope["known"], root, words_of(scope), nobody=nobody)
            headers = [("cache-control", "no-store")]
            await answer(send, 401 if nobody else 403, page, "text/html; charset=utf-8", headers)
        elif not nobody:
            await _say(scope, send, 403, "account.not_your_role")
        elif safe and (reads or path == "/"):  # a form is not led there: nothing of it would be kept
            place = ("location", root + SIGN_IN)
            kept = remembering(scope, self._cookies)
            await answer(send, 303, "", headers=[place, *kept, ("cache-control", "no-store")])
        else:
            await _say(scope, send, 401, "account.needed")

    def _renewing(self, token: str, scope: Scope, send: Send) -> Send:
        """A `send` that begins the time of the cookie anew."""
        cookie = self._cookies.header(token, SESSION, https=scope["scheme"] == "https") if token else ""

        async def renew(message: Message) -> None:
            if cookie and message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("set-cookie", cookie)
            await send(message)

        return renew

    @contextmanager
    def _stream(self, known: Known, tokens: tuple[str, ...]) -> Generator[_Stream]:
        stream = _Stream(known, tokens)
        self._streams.add(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)
            stream.close()

    def _cut(self, ended: Ended) -> None:
        for stream in self._streams:
            if ended.covers(stream.known.session):
                stream.ended.set()


class _Stream:
    """A request that is being answered, and whether its session ended meanwhile."""

    def __init__(self, known: Known, tokens: tuple[str, ...]) -> None:
        self.known = known
        self.tokens = tokens
        self.ended = asyncio.Event()
        self._has_body = False
        # Whoever only looks whether the browser has left asks, and does not wait: what is begun then goes on.
        self._next: asyncio.Task[Message] | None = None

    def until_ended(self, receive: Receive, people: People) -> Receive:
        """A `receive` that says that the browser has left once the session ended."""

        async def received() -> Message:
            if not self._has_body:
                message = await receive()
                self._has_body = not message.get("more_body", False)
                return message
            if self._next is None:
                self._next = asyncio.create_task(_one(receive))
            ending = asyncio.create_task(self.ended.wait())
            try:
                while not (self._next.done() or self.ended.is_set()):
                    waited = {self._next, ending}
                    await asyncio.wait(waited, timeout=_LOOKED_AT, return_when=asyncio.FIRST_COMPLETED)
                    if not (self._next.done() or self.ended.is_set()) and not await people.by_session(self.tokens):
                        self.ended.set()
            finally:
                ending.cancel()
            if self.ended.is_set():
                return {"type": "http.disconnect"}
            message, self._next = self._next.result(), None
            return message

        return received

    def close(self) -> None:
        """Wait for nothing more."""
        if self._next is not None:
            self._next.cancel()


async def _say(scope: Scope, send: Send, status: int, key: str) -> None:
    """Refuse in the form that whoever asks reads: the page's script takes `{"failed": sentence}`."""
    if str(scope["path"]).startswith("/gradio_api/"):
        await refuse(scope, send, status, key)
        return
    told = json.dumps({"failed": words_of(scope)(key)}, ensure_ascii=False)
    await answer(send, status, told, "application/json", [("cache-control", "no-store")])


async def _one(receive: Receive) -> Message:
    return await receive()


def _is_ours(scope: Scope, headers: Headers) -> bool:
    """Whether a request that changes something comes from a page of this server.

    An `Origin` of another site was refused before. One that names none comes from no page of ours: browsers name it
    with every such request, and signing in, too, is nothing that another site may do for somebody.
    """
    if scope["method"] in _SAFE or scope["path"].startswith(_OTHER_PROGRAMS) or scope["path"] in OPEN_PATHS:
        return True
    return "origin" in headers or headers.get("sec-fetch-site") == "same-origin"
