"""Conversations from elsewhere: a file is sent up, and what becomes of it is told while it is read."""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from core.errors import NoSpaceError, ParlourError, QuotaError, TooManyRequestsError
from core.importing.problems import problem
from core.storage.base import new_id
from webui.context import json_body, log_text, text_of
from webui.render.imported import import_told
from webui.uploads import TooLargeError, size_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.uploads import Upload, Uploads
    from webui.words import Words

Opened: TypeAlias = "Callable[[], AbstractAsyncContextManager[Workspace]]"

_log = logging.getLogger(__name__)
_PRIVATE: Final = {"cache-control": "no-store"}
_OURS: Final = "x-parlour"  # a page of another site cannot send this along without asking first
_STEP: Final = 0.01
_AT_ONCE: Final = 2  # each unpacks into a folder of its own and writes long: more would only take longer


class ImportRoutes:
    """`POST /conversations/import`: one file, for the owner of the request.

    The answer is lines of JSON: `{"going"}`, a name by which `POST /conversations/import/stop` ends it, `{"share"}`
    while it is taken in, at the end `{"done", "left", "open"}` or `{"failed"}`.
    """

    def __init__(self, context: WebContext, uploads: Uploads) -> None:
        self._engine = context.engine
        self._words = context.words
        self._uploads = uploads
        self._deletions = context.deletions
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        # What comes in is left out where it is there already: so one file of an owner after the other.
        self._of_owner: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._works: set[asyncio.Task[dict[str, Any]]] = set()
        self._going: dict[tuple[str, str], asyncio.Event] = {}

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/conversations/import", self.bring_in, methods=["POST"]),
            Route("/conversations/import/stop", self.stop, methods=["POST"]),
        ]

    async def stop(self, request: Request) -> Response:
        """Call off what `{"going"}` names: nothing of it stays. What is over or somebody else's is passed over."""
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        name = text_of((await json_body(request) or {}).get("going"))
        stopped = self._going.get((owner, name))
        if stopped is not None:
            stopped.set()
        return JSONResponse({}, headers=_PRIVATE)

    async def bring_in(self, request: Request) -> Response:
        """Take the file in, and tell how it goes."""
        owner = request.scope["owner"]
        if owner is None or _OURS not in request.headers:
            return JSONResponse({}, 401 if owner is None else 400, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        kind, size = request.headers.get("content-type", ""), size_of(request)
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                room = workspace.files.check_room
                uploads = await self._uploads.receive(
                    owner, kind, request.stream(), told=size, room=room, any_kind=True
                )
        except ClientDisconnect:
            return Response(status_code=400)
        except ParlourError as error:
            if isinstance(error, (TooLargeError, QuotaError, TooManyRequestsError)):
                await self._uploads.drain(request.stream())
            if isinstance(error, TooLargeError):
                error.details["size"] = self._uploads.size_told(request.headers.get("content-length", ""))
            return JSONResponse({"failed": words.error(error)}, _status_of(error), _PRIVATE)
        opened = partial(self._engine.workspaces.open, owner)
        lines = self._lines((owner, new_id()), opened, uploads, words)
        return StreamingResponse(lines, media_type="application/json", headers=_PRIVATE)

    async def _lines(
        self, going: tuple[str, str], opened: Opened, uploads: list[Upload], words: Words
    ) -> AsyncGenerator[str, None]:
        shares: asyncio.Queue[float | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        last = 0.0
        stopped = self._going[going] = asyncio.Event()

        def look() -> None:  # in whatever thread the work is
            if stopped.is_set():
                raise problem("import_stopped", file=uploads[0].name)

        def tell(share: float) -> None:
            nonlocal last
            if share < 1:
                look()
            if share - last >= _STEP:
                last = share
                loop.call_soon_threadsafe(shares.put_nowait, share)

        # Who leaves has sent all of it: it is taken in all the same.
        bring = partial(_brought, opened, uploads[0], words, tell, look)
        work = asyncio.create_task(self._taken_in(uploads, bring))
        self._works.add(work)
        work.add_done_callback(self._works.discard)
        work.add_done_callback(lambda _: shares.put_nowait(None))
        work.add_done_callback(lambda _: self._going.pop(going, None))
        yield json.dumps({"going": going[1]}) + "\n"
        while (share := await shares.get()) is not None:
            yield json.dumps({"share": round(share, 2)}) + "\n"
        yield json.dumps(await asyncio.shield(work), ensure_ascii=False) + "\n"

    async def _taken_in(
        self, uploads: list[Upload], bring: Callable[[Collection[str]], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        owner = uploads[0].owner
        try:
            async with self._of_owner.setdefault(owner, asyncio.Semaphore()), self._at_once:
                return await bring(self._deletions.planned_of(owner))
        finally:
            for upload in uploads:
                self._uploads.forget(upload)


async def _brought(
    opened: Opened,
    upload: Upload,
    words: Words,
    tell: Callable[[float], None],
    look: Callable[[], None],
    going: Collection[str],
) -> dict[str, Any]:
    try:
        async with opened() as workspace:
            imported = await workspace.taking.bring_in(
                upload.path, name=upload.name, told=tell, look=look, unless_there=going
            )
    except ParlourError as error:
        return {"failed": words.error(error)}
    except Exception as error:
        _log.error("Conversations were not brought in.\n%s", log_text(error))
        return {"failed": words.error({"key": "unexpected"})}
    there = (*imported.conversations, *imported.here)
    said, *left = import_told(imported, words)
    return {"done": said, "left": left, "open": there[0] if there else ""}


def _status_of(error: ParlourError) -> int:
    if isinstance(error, NoSpaceError | QuotaError):
        return 507
    return 413 if isinstance(error, TooLargeError) else 429 if isinstance(error, TooManyRequestsError) else 400
