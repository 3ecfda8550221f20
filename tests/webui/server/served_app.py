"""Parlour's own routes behind everything that looks at a request, on a port of this machine; without Gradio's page."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp

from core.engine import Engine
from core.settings import Settings
from tests.prompt_server import PromptServer
from webui.auth import Hosts, Owners
from webui.context import WebContext
from webui.doors.routes import DoorsFirst
from webui.doors.socket import SocketDoor
from webui.middleware.gate import GateMiddleware
from webui.middleware.headers import HeadersMiddleware
from webui.middleware.owner import OwnerMiddleware
from webui.routes import Routes
from webui.serving import guarded
from webui.uploads import Uploads
from webui.views import Views
from webui.words import Words


@dataclass
class Served:
    engine: Engine
    address: str


@asynccontextmanager
async def served(engine: Engine, settings: Settings, *, whole: bool = False) -> AsyncGenerator[Served]:
    """Serve until the end.

    Args:
        whole: By the settings, with the token that they ask for; else anybody of this machine is its owner.
    """
    uploads = Uploads(settings.home / "tmp", 1024 * 1024)
    inner = DoorsFirst(
        Starlette(routes=Routes(WebContext(engine, settings, Words.of), uploads, Views(Words.of)).table())
    )
    owners, hosts = Owners("secret", local=True), Hosts("127.0.0.1", any_address=False)
    app: ASGIApp = SocketDoor(HeadersMiddleware(OwnerMiddleware(GateMiddleware(inner, uploads), owners, hosts), ()))
    if whole:
        gate = GateMiddleware(inner, uploads, public=settings.public_ask > 0)
        app = guarded(gate, settings, "secret", settings.page_token())
    with socket.create_server(("127.0.0.1", 0)) as sock:
        config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=2)
        server = PromptServer(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        task = asyncio.create_task(server.serve(sockets=[sock]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield Served(engine, f"http://127.0.0.1:{sock.getsockname()[1]}")
        finally:
            server.should_exit = True
            await task
