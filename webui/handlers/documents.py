"""Documents and named libraries: steering how they are read, and the routes of the dialog about libraries."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import NoSpaceError, NotFoundError, ParlourError, QuotaError, TooManyRequestsError
from webui.context import json_body, log_text, text_of
from webui.panels.libraries import found_data, libraries_data, library_data, listed_data
from webui.render.documents import held_as
from webui.render.refused import refusal_data
from webui.uploads import TooLargeError, size_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.handlers.desk import Desk
    from webui.uploads import Uploads
    from webui.views import View
    from webui.words import Words


_log = logging.getLogger(__name__)

_LONGEST = 8 * 1024
_PRIVATE = {"cache-control": "no-store"}


async def cancel(desk: Desk, view: View, document_id: str) -> None:
    """Stop reading a document. Raises NotFoundError."""
    async with desk.workspace(view) as workspace:
        await workspace.intake.cancel(document_id)
    view.wake_up(stale=True)


async def read_again(desk: Desk, view: View, document_id: str) -> None:
    """Read one more time what failed or was called off. Raises NotFoundError."""
    async with desk.workspace(view) as workspace:
        await workspace.read_again(document_id, view.words.spoken)
    view.resting = False
    view.wake_up(stale=True)


async def forget(desk: Desk, view: View, document_id: str) -> None:
    """Let go of what was read of a document that was stopped. Raises NotFoundError."""
    async with desk.workspace(view) as workspace:
        await workspace.intake.forget(document_id)
    view.wake_up(stale=True)


async def ask_now(desk: Desk, view: View) -> None:
    """Let the reply of this conversation go on with what can be searched, or with what it has read so far."""
    async with desk.workspace(view) as workspace:
        workspace.intake.stop_waiting(view.conversation_id)
        await workspace.runs.enough(view.conversation_id)


class DocumentRoutes:
    """`POST /documents/unlock`: `{"id", "password"}` of a document that asks for one, by its owner."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/documents/unlock", self.unlock, methods=["POST"])]

    async def unlock(self, request: Request) -> Response:
        """Read a document with its password; `{"failed": sentence}` where it is another one.

        Once it is open, `{"answers", "reply"}`, as of `Retried`.
        """
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        wanted = await _asked_to_open(request)
        if wanted is None:
            return JSONResponse({}, 400, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        document_id, password = wanted
        failed: ParlourError | dict[str, Any] = ParlourError()
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                record, retried = await workspace.unlock(document_id, password, words.spoken)
            if record.status != "failed":
                return JSONResponse({"answers": retried.answers, "reply": retried.reply}, headers=_PRIVATE)
            failed = record.error or {}
        except ParlourError as error:
            failed = error
        except Exception as error:
            _log.error("A document was not opened.\n%s", log_text(error))
        return JSONResponse({"failed": words.error(failed)}, headers=_PRIVATE)


async def _asked_to_open(request: Request) -> tuple[str, str] | None:
    """Which document, and its password; `None` where the request is not one of the page's own."""
    given = await json_body(request, _LONGEST)
    document_id, password = ((given or {}).get(name) for name in ("id", "password"))
    if not isinstance(document_id, str) or not isinstance(password, str) or not password:
        return None
    return text_of(document_id), text_of(password)


_TEXTS = ("library", "document", "name", "question", "password")
# A page of another site cannot send this along without asking first, and is refused then.
_OURS = "x-parlour"

Asked = dict[str, str]


class LibraryRoutes:
    """`GET /libraries/state`, `POST /libraries/create` and so on, each for the owner of the request."""

    def __init__(self, context: WebContext, uploads: Uploads) -> None:
        self._engine = context.engine
        self._words = context.words
        self._uploads = uploads

    def table(self) -> list[BaseRoute]:
        """All of them."""
        works = {
            "create": self.create,
            "rename": self.rename,
            "delete": self.delete,
            "remove": self.remove,
            "cancel": self.cancel,
            "again": self.again,
            "try": self.tried,
        }
        return [
            Route("/libraries/state", self.state, methods=["GET"]),
            *(Route(f"/libraries/{name}", self._answering(work), methods=["POST"]) for name, work in works.items()),
            Route("/libraries/{library}/files", self.files, methods=["POST"]),
            Route("/libraries/{library}/room", self.room, methods=["GET"]),
        ]

    async def state(self, request: Request) -> Response:
        """The list of libraries, and the one that is open, if it is still there."""
        asked = {"library": request.query_params.get("library", "")}
        return await self._told(request, lambda workspace, words: self._shown(workspace, asked["library"], words))

    async def create(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """A new library, which is open from now on."""
        library = await workspace.libraries.create(asked["name"])
        return await self._shown(workspace, library.id, words)

    async def rename(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Another name."""
        await workspace.libraries.rename(asked["library"], asked["name"])
        return await self._shown(workspace, asked["library"], words)

    async def delete(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Delete a library."""
        await workspace.libraries.delete(asked["library"])
        return await self._shown(workspace, "", words)

    async def remove(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Take a document out."""
        await (await workspace.shelf_of(asked["document"])).remove(asked["document"])
        return await self._shown(workspace, asked["library"], words)

    async def cancel(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Stop reading a document."""
        await (await workspace.shelf_of(asked["document"])).cancel(asked["document"])
        return await self._shown(workspace, asked["library"], words)

    async def again(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Read a document anew, with its password if it has one."""
        shelf = await workspace.shelf_of(asked["document"])
        await shelf.read_again(asked["document"], asked["password"])
        return await self._shown(workspace, asked["library"], words)

    async def tried(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """What a question finds."""
        library, question = asked["library"], asked["question"]
        libraries = await workspace.shelf(library)
        found = await libraries.tried(library, question)
        was_sought = bool(question.strip())  # with nothing to look for, more documents would not help
        unsearched = await libraries.unsearched(library) if was_sought and not found else ()
        return found_data(found, words, unsearched)

    async def room(self, request: Request) -> Response:
        """Whether a file more may wait to be read; a file that waits for that is not sent before."""
        library = str(request.path_params["library"])

        async def look(workspace: Workspace, _: Words) -> dict[str, Any]:
            await (await workspace.shelf(library)).check_room(library)
            return {}

        return await self._told(request, look)

    async def files(self, request: Request) -> Response:
        """Files for a library, written to disk as they arrive; what is refused leaves nothing behind."""
        library = str(request.path_params["library"])
        if _OURS not in request.headers:
            return JSONResponse({}, 400, _PRIVATE)

        async def take(workspace: Workspace, words: Words) -> dict[str, Any]:
            shelf = await workspace.shelf(library)
            known = {
                record.id for record in (await shelf.opened(library)).documents
            }  # asked before anything is written
            await shelf.check_room(library)  # before the files are counted: what has to wait is sent again
            kind = request.headers.get("content-type", "")
            told, room = size_of(request), workspace.files.check_room
            uploads = await self._uploads.receive(workspace.owner, kind, request.stream(), told=told, room=room)
            fresh: set[str] = set()
            try:
                for upload in uploads:
                    await self._uploads.check(upload)
                for upload in uploads:
                    record = await shelf.add(library, upload.path, upload.name)
                    fresh |= {record.id} - known
            finally:
                for upload in uploads:
                    self._uploads.forget(upload)
            return {
                **await self._shown(workspace, library, words),
                "fresh": len(fresh),
                "known": len(uploads) - len(fresh),
            }

        return await self._told(request, take)

    async def _shown(self, workspace: Workspace, library: str, words: Words) -> dict[str, Any]:
        libraries, lent = workspace.libraries, {one.library.id: one for one in await workspace.libraries.lent()}
        opened = None
        if library:
            with suppress(NotFoundError):  # deleted in another tab, or not shared any more
                intake, shelf = workspace.intake, await (await workspace.shelf(library)).opened(library)
                held_up = held_as(intake.held_up(), keeps=workspace.owner in self._engine.stores.people.keepers)
                opened = library_data(shelf, intake.progress, words, intake.preparing(), lent.get(library), held_up)
        listed = libraries_data(await libraries.list(), words)
        listed += [listed_data(one.library, words, one) for one in lent.values()]
        shares = {"shares": True} if await workspace.stores.lending.groups() else {}
        return {"libraries": listed, "opened": opened, "limit": self._uploads.limit // 2**20, **shares}

    def _answering(
        self, work: Callable[[Workspace, Asked, Words], Awaitable[dict[str, Any]]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            wanted = await _asked(request)
            if wanted is None:
                return JSONResponse({}, 400, _PRIVATE)
            return await self._told(request, lambda workspace, words: work(workspace, wanted, words))

        return answer

    async def _told(self, request: Request, work: Callable[[Workspace, Words], Awaitable[dict[str, Any]]]) -> Response:
        """Does the work, and tells what went wrong in a sentence."""
        words = self._words(request.headers.get("accept-language", ""))
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                return JSONResponse(await work(workspace, words), headers=_PRIVATE)
        except ClientDisconnect:
            return JSONResponse({}, 400, _PRIVATE)
        except ParlourError as error:
            if isinstance(error, (TooLargeError, NotFoundError, QuotaError, TooManyRequestsError)):
                await self._uploads.drain(request.stream())
            if isinstance(error, TooLargeError):
                error.details["size"] = self._uploads.size_told(request.headers.get("content-length", ""))
            status, wait = _status_of(error)
            # The dialog sends such a file again by itself, as soon as some of those before it are read.
            again = {"again": wait["retry-after"]} if error.words_key == "reading_full" else {}
            why = {"why": refusal_data(error)} if "name" in error.details else {}  # of a file, told beside others
            told = {"failed": words.error(error), **why, **again}
            return JSONResponse(told, status, headers={**_PRIVATE, **wait})
        except Exception:
            _log.exception("The dialog about libraries asked for something, and it failed.")
            return JSONResponse({"failed": words.error({"key": "unexpected"})}, headers=_PRIVATE)


def _status_of(error: ParlourError) -> tuple[int, dict[str, str]]:
    """The status of a refusal, and when to come again: limits are told as those of a conversation's files are."""
    if isinstance(error, TooManyRequestsError):
        return 429, {"retry-after": str(error.retry_after)}
    if isinstance(error, QuotaError | NoSpaceError):
        return 507, {}
    return (413 if isinstance(error, TooLargeError) else 200), {}


async def _asked(request: Request) -> Asked | None:
    """What the dialog asks; `None` where the request is not one of the page's own."""
    values = await json_body(request)
    return {name: text_of(values.get(name)) for name in _TEXTS} if values is not None else None
