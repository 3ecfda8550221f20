"""The application from the first moment: health, readiness, and a waiting page while the real one is built."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from core.observing import count
from core.readiness import Readiness
from webui.middleware.answers import answer, refuse
from webui.middleware.owner import METRICS_PATH
from webui.words import Words

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# A script loads it anew, once: a page that loads itself each second would be read aloud each second.
_WAITING = """<!doctype html>
<html lang="{lang}"><head><meta charset="utf-8"><noscript><meta http-equiv="refresh" content="1"></noscript>
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Parlour</title>
<style>
:root {{ color-scheme: light dark; background: light-dark(#f8f7f3, #191b19); color: light-dark(#4d5049, #b9b7aa); }}
body {{ margin: 0; height: 100vh; display: grid; place-items: center; font: 20px/1.4 Georgia, "Noto Serif", serif; }}
h1 {{ font: inherit; }}
</style></head><body><main><h1>{sentence}</h1></main>
<script>
const away = [502, 503, 504];
const ask = async () => {{
  const said = await fetch('./', {{ method: 'HEAD', cache: 'no-store' }}).catch(() => null);
  if (said && !away.includes(said.status)) location.reload();
  else setTimeout(ask, 1000);
}};
setTimeout(ask, 1000);
</script></body></html>
"""

LOST = "Connection errored out. "
"""What Gradio's front end compares an error with to know that nobody is there; with 503 it would say "busy"."""
_EVENTS = "/gradio_api/queue/join"

_KINDS = {
    "assets": "asset",
    "static": "asset",
    "gradio_api": "gradio",
    "files": "file",
    "pages": "file",
    "mcp": "mcp",
    "shared": "shared",
    "v1": "v1",
}


class StartupApp:
    """Serves the application once it is built, and answers by itself before.

    Args:
        opening: Opens the house; what it imports may take seconds. Called once, on the server's loop, with a
            callback that takes the house's readiness as soon as there is one.
        failed: Called with the error when the house cannot be opened.
        measurements: Answers `/metrics`; left out, there is nothing to be had there.
    """

    def __init__(
        self,
        opening: Callable[[Callable[[Readiness], None]], AbstractAsyncContextManager[ASGIApp]],
        failed: Callable[[Exception], None],
        measurements: Callable[[Scope, Send], Awaitable[None]] | None = None,
    ) -> None:
        self._opening = opening
        self._failed = failed
        self._measurements = measurements or _nothing_here
        self._app: ASGIApp | None = None
        self._readiness = Readiness()
        self._closing = asyncio.Event()
        self._draining = False
        self._task: asyncio.Task[None] | None = None
        self._serving: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the server's start and end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["path"] == "/healthz":
            await answer(send, 200, "ok")
        elif scope["path"] == "/readyz":
            await self._tell(scope, send)
        elif scope["path"] == METRICS_PATH:
            await self._measurements(scope, send)
        elif self._app is not None:
            await self._serve(self._app, scope, receive, send)
        elif scope["path"] == "/" and scope["method"] == "GET":
            await self._wait(scope, send)
        elif scope["path"].startswith("/assets/icons/"):
            await answer(send, 204, "")  # a browser asks for the icon late; that it waits is no error of the page
        else:
            await self._refuse(scope, send, "page.opening")

    @property
    def busy(self) -> bool:
        """Whether a request is being served inside."""
        return bool(self._serving)

    def drain(self) -> None:
        """Say from now on that nobody shall be sent here; who is here is served as before."""
        self._draining = True

    def close(self) -> None:
        """Begin to close the house: runs are stopped and their replies kept. May be called more than once."""
        self._closing.set()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._task = asyncio.create_task(self._open())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.close()
        await self._task
        await send({"type": "lifespan.shutdown.complete"})

    async def _open(self) -> None:
        try:
            async with self._opening(self._take) as app:
                self._app = app
                self._readiness.mark("page", "ready")
                await self._closing.wait()
                self._app = None
                for task in self._serving:
                    task.cancel()
        except Exception as error:  # noqa: BLE001 - whatever it is, the process must say so and end
            self._failed(error)

    async def _serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request inside; streams would never end by themselves, so closing the house cuts them."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("Requests are served in tasks.")
        self._serving.add(task)
        has_begun = False

        async def send_while_open(message: Message) -> None:
            # A stream that is cut must look cut: the page then waits until Parlour is back, and loads itself again.
            nonlocal has_begun
            if not self._closing.is_set():
                if not has_begun:
                    count("parlour.requests", {"kind": _kind(scope["path"]), "status": message["status"]})
                has_begun = True
                await send(message)

        try:
            await app(scope, receive, send_while_open)
        except asyncio.CancelledError:
            if not self._closing.is_set():
                raise
        finally:
            self._serving.discard(task)
        if self._closing.is_set() and not has_begun:
            await self._refuse(scope, send, "page.closing")

    async def _refuse(self, scope: Scope, send: Send, key: str) -> None:
        """Nobody is here. A page that is open already is told so in the words of its framework.

        It then says that the connection is lost, keeps what was typed, and loads itself again once there is an answer.
        """
        if scope["path"].endswith(_EVENTS):
            await _send(send, 502, "application/json", json.dumps({"error": LOST}))
        else:
            await answer(send, 503, _words(scope)(key))

    def _take(self, readiness: Readiness) -> None:
        self._readiness = readiness

    async def _tell(self, scope: Scope, send: Send) -> None:
        words = _words(scope)
        told = self._readiness.as_dict()
        if self._draining or self._closing.is_set():
            told["ready"] = False
        status = 200 if told["ready"] else 503
        if not scope.get("trusted"):  # which model and which sandbox there is helps an attacker alone
            await _send(send, status, "application/json", json.dumps({"ready": told["ready"]}))
            return
        for part in told["parts"].values():
            key: str
            details: dict[str, Any]
            key, details = part.pop("remedy_key"), part.pop("details") or {}
            part["remedy"] = words.error({"key": key, "details": details}) if key else ""
        await _send(send, status, "application/json", json.dumps(told, ensure_ascii=False))

    async def _wait(self, scope: Scope, send: Send) -> None:
        words = _words(scope)
        await _send(
            send, 503, "text/html; charset=utf-8", _WAITING.format(lang=words.lang, sentence=words("page.opening"))
        )


def _words(scope: Scope) -> Words:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return Words.of(headers.get(b"accept-language", b"").decode("latin-1"))


def _kind(path: str) -> str:
    """What a request is for, as one of few words."""
    return "page" if path == "/" else _KINDS.get(path.split("/")[1], "other")


async def _nothing_here(scope: Scope, send: Send) -> None:
    await refuse(scope, send, 404, "refused.not_here")


async def _send(send: Send, status: int, kind: str, text: str) -> None:
    body = text.encode()
    headers: list[Any] = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
