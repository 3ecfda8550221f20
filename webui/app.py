"""Puts the application together: the engine, Parlour's own routes, the page, and Gradio around it. Wiring only."""

from __future__ import annotations

import asyncio
import gc
from contextlib import asynccontextmanager, closing, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from anyio import to_thread

from core.bridge.watchdog import watched
from core.llm.visitors import on_zero_gpu
from core.shared_limits import limits_of
from webui.auth import owners_of
from webui.bundles import assets_folder
from webui.context import WebContext
from webui.gradio_patches import lean_import, prepare
from webui.middleware.accounts import AccountsMiddleware
from webui.middleware.answers import refuse
from webui.middleware.gate import GateMiddleware
from webui.middleware.visitors import VisitorMiddleware
from webui.observing import gauges
from webui.page_look import Look
from webui.panels.sign_in import not_allowed_page
from webui.shared_uploads import SharedUploads
from webui.uploads import Uploads
from webui.words import Words

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from fastapi import FastAPI, Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from core.engine import Engine
    from core.importing.recording import About
    from core.readiness import Readiness
    from core.settings import Settings

_MIB = 1024 * 1024
# Gradio counts async handlers too: with its 40, the forty-first open page would wait for another to end.
_THREADS = 200
# Left out, Gradio takes 1 on a ZeroGPU Space: of two events at the same moment one would be refused.
_WAITING = 10_000


@asynccontextmanager
async def open_app(
    settings: Settings,
    tell: Callable[[Readiness], None],
    take: Callable[[Readiness], None],
    *,
    engine: Callable[[Settings], Engine] | None = None,
    look: Look = Look(),  # noqa: B008 - frozen
    first: Callable[[str], None] | None = None,
) -> AsyncGenerator[ASGIApp]:
    """Open the engine, build the application, and close both again.

    Args:
        tell: Called with the engine's readiness whenever it changes.
        take: Is given the engine's readiness as soon as there is one.
        engine: Makes the engine; Parlour's own if left out.
        look: What a program chose of the page.
        first: Is given the token of the link that makes the first owner, where people have accounts and nobody has one.

    Raises:
        ParlourError: The data folder or the database cannot be used.
    """
    limits = limits_of(settings.redis_address)
    often, told = settings.uploads_per_hour or None, "Too many files in one hour."
    rate = limits.rate("uploads", often, 3600.0, error="too_many_uploads", message=told)
    with closing(Uploads(settings.make_home() / "tmp", settings.max_upload_mb * _MIB, rate=rate)) as uploads:
        prepare(uploads.folder)
        engine_class = (await to_thread.run_sync(import_module, "core.engine")).Engine
        async with _kept(settings), (engine or engine_class)(settings) as opened:
            take(opened.readiness)
            if opened.stores.blobs.is_remote:
                uploads.shared = SharedUploads(opened.stores.blobs)
            gauges(opened)
            opened.on_change(partial(_pass_on, tell, opened.readiness))
            if settings.role == "worker":
                await opened.services.warm_up()
                ahead = asyncio.create_task(opened.services.read_ahead())
                with watched(asyncio.get_running_loop()):
                    yield no_pages
                ahead.cancel()
                await asyncio.wait({ahead})
                return
            context = WebContext(opened, settings, Words.of, look)
            # In a thread: Gradio takes seconds to import, and readiness is answered meanwhile.
            app, forget, functions = await to_thread.run_sync(build_app, context, uploads)
            gc.freeze()  # what was imported stays, so the collector need not walk it again
            async with app.router.lifespan_context(app):
                warming = asyncio.create_task(opened.services.warm_up())  # the page is there first
                ahead = asyncio.create_task(opened.services.read_ahead())
                accounts = settings.has_accounts
                public = settings.public_ask > 0
                gate = GateMiddleware(
                    _inside(app), uploads, forgotten=forget, functions=functions, public=public, accounts=accounts
                )
                with watched(asyncio.get_running_loop(), lambda: not warming.done()):
                    yield await with_accounts(gate, context, first) if accounts else gate
                await context.deletions.finish(opened)
                ahead.cancel()
                await asyncio.wait({warming, ahead})


def _inside(app: FastAPI) -> ASGIApp:
    from webui.doors.routes import DoorsFirst  # the application has brought it

    first = DoorsFirst(app)
    return VisitorMiddleware(first) if on_zero_gpu() else first


async def no_pages(scope: Scope, receive: Receive, send: Send) -> None:
    """What one that writes replies alone serves beside its health."""
    del receive
    await refuse(scope, send, 404, "refused.worker")


async def with_accounts(app: ASGIApp, context: WebContext, first: Callable[[str], None] | None) -> AccountsMiddleware:
    """The application for people who sign in. Raises MissingExtraError, StorageError."""
    people, settings = context.engine.people, context.settings
    await people.begin()
    token = await people.first_link()
    if token is not None and first is not None:
        first(token)
    cookies = owners_of(settings, settings.signing_secret()).cookies
    return AccountsMiddleware(app, people, cookies, guests=settings.guests, refusal=not_allowed_page)


class Built(NamedTuple):
    """The application.

    Args:
        forget: Forgets what waits for a session.
        functions: How many functions the page has.
    """

    app: FastAPI
    forget: Callable[[str], None]
    functions: int


def build_app(context: WebContext, uploads: Uploads) -> Built:
    """Parlour's own routes first, then the page at `/`."""
    with lean_import():
        import gradio as gr
    from fastapi import FastAPI

    from webui.gradio_patches import (
        SESSIONS,
        keep_no_settings,
        keep_recent,
        queue_first,
        send_objects_whole,
        skip_cheaply,
        wake_by_events,
    )
    from webui.gradio_threads import stay_on_loop
    from webui.handlers.public_ask import offers_mcp
    from webui.handlers.wiring import Handlers
    from webui.layout import build
    from webui.panels.welcome import translations
    from webui.routes import Routes
    from webui.theme import Theme, head

    stay_on_loop()
    skip_cheaply()
    send_objects_whole()
    handlers = Handlers(context, uploads)
    app = FastAPI(
        openapi_url=None, docs_url=None, redoc_url=None, routes=Routes(context, uploads, handlers.views).table()
    )
    demo = build(context, handlers.wire)
    keep_no_settings(demo)
    demo.max_threads = _THREADS
    demo.queue(default_concurrency_limit=None, api_open=False, max_size=_WAITING)
    blocks: Any = demo
    blocks.state_session_capacity = SESSIONS
    blocks.mcp_server = offers_mcp(context.settings)  # the page's configuration says so; the server is Parlour's own
    queue = blocks._queue  # noqa: SLF001 - there is no setting for it
    wake_by_events(queue)
    forget = keep_recent(queue)
    mount: Any = cast("Any", gr).mount_gradio_app  # its types are only partly known
    mounted = cast(
        "FastAPI",
        mount(
            app,
            demo,
            path="/",
            root_path=context.settings.root_path or None,
            auth_dependency=_owner,
            footer_links=[],
            run_history=False,
            enable_monitoring=False,
            ssr_mode=False,
            mcp_server=False,
            pwa=False,
            show_error=False,
            i18n=translations(context.look, offered_by(context), keeps=how_long(context.settings)),
            theme=Theme(),
            head=head() + context.look.style(),
        ),
    )
    queue_first(mounted)
    return Built(mounted, forget, len(blocks.fns))


def offered_by(context: WebContext) -> Callable[[str], Mapping[str, About]]:
    """The demonstrations that the start page offers in a language; those of the settings, else those that come along.

    A program's own page has none.
    """
    demonstrations, own = context.engine.demonstrations, context.settings.demos
    if context.engine.program is None and own != ("off",):
        demonstrations.offer([Path(one) for one in own] if own is not None else [assets_folder() / "demos"])
    return demonstrations.listed


def _kept(settings: Settings) -> AbstractAsyncContextManager[None]:
    """What takes a copy of everything to where it outlives this machine, if there is such a place."""
    if not (settings.bucket or settings.space_hosts):
        return nullcontext()
    from core.backup.bucket import bucket_of, keeping

    return keeping(bucket_of(settings))


def how_long(settings: Settings) -> str:
    """The key of the sentence on how long a Space keeps what is written there; "" elsewhere."""
    if not settings.space_hosts:
        return ""
    from core.backup.bucket import bucket_of

    return "hello.keeps" if bucket_of(settings) is not None else "hello.forgets"


def _pass_on(tell: Callable[[Readiness], None], readiness: Readiness, owner: str | None, _: str | None) -> None:
    if owner is None:
        tell(readiness)


def _owner(request: Request) -> str | None:
    return cast("dict[str, Any]", request.scope).get("owner")
