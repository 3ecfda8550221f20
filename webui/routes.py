"""Parlour's own routes: files and page pictures for their owner alone, uploads, and what the page is made of."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from core.errors import (
    DocumentError,
    NoSpaceError,
    NotFoundError,
    ParlourError,
    QuotaError,
    StorageError,
    TooManyRequestsError,
)
from core.mcp_endpoint import PATH as MCP_PATH
from webui.doors.embed import embed_routes
from webui.doors.routes import door_routes
from webui.handlers.api_keys import ApiKeyRoutes
from webui.handlers.approval import CallRoutes
from webui.handlers.apps import AppRoutes
from webui.handlers.dictation import DictationRoutes
from webui.handlers.documents import DocumentRoutes, LibraryRoutes
from webui.handlers.exporting import ExportRoutes
from webui.handlers.importing import ImportRoutes
from webui.handlers.inspecting import InspectRoutes
from webui.handlers.lending import LendingRoutes
from webui.handlers.listing import ListRoutes
from webui.handlers.metering import MeterRoutes
from webui.handlers.models import ModelRoutes
from webui.handlers.people import accounts_of
from webui.handlers.pictures import PictureRoutes
from webui.handlers.preferences import PreferenceRoutes
from webui.handlers.public_ask import PublicAskRoutes
from webui.handlers.queue import QueueRoutes
from webui.handlers.replies import ReplyRoutes
from webui.handlers.search import SearchRoutes
from webui.handlers.send import AttachingRoutes
from webui.handlers.services import ServiceRoutes
from webui.handlers.sharing import ShareRoutes
from webui.handlers.steering import SteeringRoutes
from webui.handlers.tools import ServerRoutes, ToolRoutes
from webui.offline import offline_routes
from webui.page_files import asset_routes
from webui.stored_files import stored_file
from webui.uploads import TooLargeError, size_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.rag.library import Library
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.uploads import Uploads
    from webui.views import Views

# What a browser may show by itself, because it can hold no script; everything else is saved to disk.
_SHOWN = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"}
    | {"audio/mpeg", "audio/wav", "audio/x-wav", "audio/ogg", "audio/webm", "audio/mp4", "audio/x-m4a", "audio/flac"}
    | {"audio/aac", "video/mp4", "video/webm", "video/ogg"}
)
_ZOOM = (0.5, 4.0)
_SOON = {"cache-control": "private, no-cache"}
_FIGURE_PIXELS = 1_000_000
_LONG = {"cache-control": "private, max-age=86400"}


class Routes:
    """The routes, registered before Gradio is mounted so that theirs come first."""

    def __init__(self, context: WebContext, uploads: Uploads, views: Views) -> None:
        self._engine = context.engine
        self._words = context.words
        self._uploads = uploads
        self._models = ModelRoutes(context)
        self._tools = ToolRoutes(context)
        self._servers = ServerRoutes(context)
        self._services = ServiceRoutes(context)
        self._libraries = LibraryRoutes(context, uploads)
        self._documents = DocumentRoutes(context)
        self._calls = CallRoutes(context)
        self._attaching = AttachingRoutes(context, uploads)
        self._exports = ExportRoutes(context)
        self._imports = ImportRoutes(context, uploads)
        self._inspect = InspectRoutes(context)
        self._meter = MeterRoutes(context)
        self._list = ListRoutes(context, views)
        self._search = SearchRoutes(context)
        self._public_ask = PublicAskRoutes(context)
        self._queue = QueueRoutes(context)
        self._replies = ReplyRoutes(context)
        self._shares = ShareRoutes(context)
        self._preferences = PreferenceRoutes(context)
        self._dictation = DictationRoutes(context)
        self._pictures = PictureRoutes(context)
        self._api_keys = ApiKeyRoutes(context)
        self._apps = AppRoutes(context)
        self._doors = [*door_routes(context), *embed_routes(context)]
        self._steering = SteeringRoutes(context)
        self._lending = LendingRoutes(context)
        self._accounts = accounts_of(context)

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            *self._doors,  # programs wait for each line of the table that stands above theirs
            Route("/files/{file_id}", self.file, methods=["GET"]),
            Route(MCP_PATH, self._engine.outward, methods=["GET", "POST", "DELETE"]),
            Route("/pages/{document_id}/{page:int}.png", self.page, methods=["GET"]),
            Route("/pages/{document_id}/figure/{number:int}.jpg", self.figure, methods=["GET"]),
            Route("/gradio_api/upload", self.upload, methods=["POST"]),
            Route("/gradio_api/upload_progress", self.progress, methods=["GET"]),
            *self._models.table(),
            *self._tools.table(),
            *self._servers.table(),
            *self._services.table(),
            *self._libraries.table(),
            *self._documents.table(),
            *self._attaching.table(),
            *self._calls.table(),
            *self._exports.table(),
            *self._imports.table(),
            *self._inspect.table(),
            *self._meter.table(),
            *self._list.table(),
            *self._search.table(),
            *self._public_ask.table(),
            *self._queue.table(),
            *self._replies.table(),
            *self._shares.table(),
            *self._preferences.table(),
            *self._dictation.table(),
            *self._pictures.table(),
            *self._api_keys.table(),
            *self._lending.table(),
            *self._apps.table(),
            *self._steering.table(),
            *(self._accounts.table() if self._accounts is not None else ()),
            *offline_routes(),
            *asset_routes(),
        ]

    async def file(self, request: Request) -> Response:
        """A stored file, to its owner; `?download=1` saves instead of showing."""
        owner = request.scope["owner"]
        if owner is None:
            return self._refused(request, 401, NotFoundError("There is no such file."))
        wanted = request.path_params["file_id"]
        shown = frozenset[str]() if "download" in request.query_params else _SHOWN
        try:
            return await self._engine.demonstrations.also(
                owner, lambda one: stored_file(request, one.files, wanted, _SOON, shown=shown)
            )
        except NotFoundError as error:
            return self._refused(request, 404, error)
        except StorageError as error:
            return self._refused(request, 503, error)

    async def page(self, request: Request) -> Response:
        """The picture of a page of a document, to its owner."""
        owner = request.scope["owner"]
        if owner is None:
            return self._refused(request, 401, NotFoundError("There is no such page."))
        document, page = request.path_params["document_id"], request.path_params["page"]
        try:
            drawn = partial(_drawn, document, page, _zoom(request.query_params.get("zoom")))
            picture = await self._engine.demonstrations.also(owner, drawn)
        except (NotFoundError, DocumentError) as error:
            return self._refused(request, 404, error)
        return Response(picture, media_type="image/png", headers=_LONG)

    async def figure(self, request: Request) -> Response:
        """The picture of a figure of a document, to its owner."""
        owner = request.scope["owner"]
        if owner is None:
            return self._refused(request, 401, NotFoundError("There is no such figure."))
        document, number = request.path_params["document_id"], request.path_params["number"]
        try:
            async with (
                self._engine.workspaces.open(owner) as workspace,
                workspace.holding(document) as library,
            ):
                picture = await to_thread.run_sync(_figure, library, document, number)
        except (NotFoundError, DocumentError) as error:
            return self._refused(request, 404, error)
        return Response(picture, media_type="image/jpeg", headers=_LONG)

    async def upload(self, request: Request) -> Response:
        """Take files in; Gradio's client expects their paths."""
        kind, upload_id = request.headers.get("content-type", ""), request.query_params.get("upload_id", "")
        owner = request.scope["owner"]
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                told, room = size_of(request), workspace.files.check_room
                uploads = await self._uploads.receive(
                    owner, kind, request.stream(), upload_id, told=told, room=room, shared=True
                )
        except TooLargeError as error:
            await self._uploads.drain(request.stream())
            error.details["size"] = self._uploads.size_told(request.headers.get("content-length", ""))
            return self._refused(request, 413, error)
        except ClientDisconnect:
            return Response(status_code=400)
        except NoSpaceError as error:
            return self._refused(request, 507, error)
        except QuotaError as error:
            await self._uploads.drain(request.stream())
            return self._refused(request, 507, error)
        except TooManyRequestsError as error:
            await self._uploads.drain(request.stream())
            return self._refused(request, 429, error, {"retry-after": str(error.retry_after)})
        except ParlourError as error:
            return self._refused(request, 400, error)
        return JSONResponse([str(upload.path) for upload in uploads])

    async def progress(self, request: Request) -> Response:
        """How far an upload has come, as a stream."""
        steps = self._uploads.progress(request.scope["owner"], request.query_params.get("upload_id", ""))
        try:
            first = await anext(steps)
        except NotFoundError as error:
            return self._refused(request, 404, error)

        async def told() -> AsyncIterator[str]:
            yield _event(first)
            async for step in steps:
                yield _event(step)

        return StreamingResponse(told(), media_type="text/event-stream")

    def _refused(
        self, request: Request, status: int, error: ParlourError, headers: Mapping[str, str] | None = None
    ) -> Response:
        words = self._words(request.headers.get("accept-language", ""))
        return PlainTextResponse(words.error(error), status, headers={"cache-control": "no-store", **(headers or {})})


async def _drawn(document: str, page: int, zoom: float, workspace: Workspace) -> bytes:
    # Asked first: an index is opened for whoever has documents in it, not for whoever knows an address.
    async with workspace.holding(document) as library:
        return await library.apage_image(document, page, zoom)


def _figure(library: Library, document: str, number: int) -> bytes:
    """The picture of a figure. Raises NotFoundError, DocumentError."""
    figure = next((one for one in library.figures.of([document]) if one.number == number), None)
    if figure is None:
        raise NotFoundError("There is no such figure.")
    try:
        return library.figures.picture(figure, _FIGURE_PIXELS).read_bytes()
    except OSError as error:
        raise NotFoundError("The figure cannot be shown.") from error


def _zoom(given: str | None) -> float:
    """Pixels for each point, in steps, so that only few pictures of one page are ever made."""
    try:
        asked = float(given or 2)
    except ValueError:
        return 2.0
    if asked != asked:  # noqa: PLR0124 - not a number
        return 2.0
    return round(min(max(asked, _ZOOM[0]), _ZOOM[1]) * 2) / 2


def _event(step: dict[str, Any]) -> str:
    return f"data: {json.dumps(step)}\n\n"
