"""The headers that keep hostile text harmless: nothing runs and nothing loads but what Parlour itself serves."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders

from webui.bundles import coding_for, packed
from webui.middleware.answers import words_of
from webui.page_head import with_first_paint, with_head

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PAGE_POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; media-src 'self' blob:; font-src 'self' data:; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
)
# Whatever is not the page may be looked at, but is never a document of this site.
OTHER_POLICY = "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
_WORTH = 16 * 1024  # bytes; our own small pages go as they are
_PLAIN = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(self)"),
    ("cross-origin-opener-policy", "same-origin"),
    ("x-dns-prefetch-control", "off"),  # a link in a reply would tell its host that it was shown
)


class HeadersMiddleware:
    """Adds the headers, and the nonce to each script of a page.

    Args:
        ancestors: Sites that may show the page in a frame, besides its own.
    """

    def __init__(self, app: ASGIApp, ancestors: tuple[str, ...] = ()) -> None:
        self.app = app
        self._ancestors = " ".join(("'self'", *ancestors))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        clothed = _Clothed(scope, send, self._ancestors)
        if scope["path"] == "/":  # what is added goes into the page itself, so it must come here unpacked
            kept = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
            scope = {**scope, "headers": kept, "page_notes": clothed.notes}
        await self.app(scope, receive, clothed)


class _Clothed:
    """A `send` that adds headers; pages are held back until they are whole, the rest passes untouched."""

    def __init__(self, scope: Scope, send: Send, ancestors: str) -> None:
        self._scope = scope
        self._send = send
        self._ancestors = ancestors
        self._start: Message | None = None
        self._pieces: list[bytes] = []
        self.notes: dict[str, str] = {}
        """What is inside says for the page: `visitor`, by which a browser without cookies is known."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif message["type"] == "http.response.body" and self._start is not None:
            self._pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._finish(self._start)
        else:
            await self._send(message)

    async def _begin(self, message: Message) -> None:
        headers = Headers(scope=message)
        is_page = headers.get("content-type", "").startswith("text/html") and "content-encoding" not in headers
        if is_page and not _is_sandboxed(headers.get("content-security-policy", "")):
            self._start = message
            return
        dressed = self._dress(message, OTHER_POLICY)
        if headers.get("content-type", "").startswith("text/event-stream"):
            # A proxy that collects or packs a stream holds every word back until much has come, or until the end.
            dressed["x-accel-buffering"] = "no"
            dressed["cache-control"] = _unchanged(headers.get("cache-control", ""))
        await self._send(message)

    async def _finish(self, start: Message) -> None:
        nonce = secrets.token_urlsafe(16)
        page = with_head(b"".join(self._pieces), words_of(self._scope).lang)
        page = with_first_paint(
            page,
            self._scope.get("base", "./"),
            self._scope.get("language", ""),
            framed=Headers(scope=self._scope).get("sec-fetch-dest") == "iframe",
            visitor=self.notes.get("visitor", ""),
        )
        page = page.replace(b"<script", f'<script nonce="{nonce}"'.encode())
        headers = self._dress(start, _PAGE_POLICY.format(nonce=nonce, ancestors=self._ancestors))
        headers["content-security-policy"] = headers["content-security-policy"].replace("{nonce}", nonce)
        coding = coding_for(Headers(scope=self._scope).get("accept-encoding", ""))
        if coding and len(page) > _WORTH:  # it names nothing of its reader's that could be guessed by its length
            page = await to_thread.run_sync(packed, page, coding)
            headers["content-encoding"] = coding
        if page or headers.get("content-length") == "0":  # the answer to HEAD has a length and no body
            headers["content-length"] = str(len(page))
        headers["cache-control"] = "no-store"
        headers["vary"] = "Accept-Encoding, Accept-Language"
        await self._send(start)
        await self._send({"type": "http.response.body", "body": page})

    def _dress(self, start: Message, policy: str) -> MutableHeaders:
        headers = MutableHeaders(scope=start)
        stricter = headers.get("referrer-policy")
        for name, value in _PLAIN:
            headers[name] = value
        if stricter == "no-referrer":
            headers["referrer-policy"] = stricter
        headers.setdefault("content-security-policy", policy)
        return headers


def _is_sandboxed(policy: str) -> bool:
    """Whether a page is no document of ours, and goes as it is."""
    return any(part.split()[:1] == ["sandbox"] for part in policy.split(";"))


def _unchanged(cache: str) -> str:
    """A `Cache-Control` that also forbids to change what passes."""
    parts = [part.strip() for part in cache.split(",") if part.strip()] or ["no-cache"]
    return ", ".join(dict.fromkeys([*parts, "no-transform"]))
