"""Named libraries: routes of our own for the dialog; each answer holds all that the dialog shows."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import NoSpaceError, NotFoundError, ParlourError, QuotaError, TooManyRequestsError
from webui.asked import asked, text_of
from webui.incoming import TooLargeError
from webui.panels.libraries import found_data, opened_data, shelf_data
from webui.uploads import size_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from webui.context import WebContext
    from webui.uploads import Uploads
    from webui.words import Words

_log = logging.getLogger(__name__)

_PRIVATE = {"cache-control": "no-store"}
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
        ]

    async def state(self, request: Request) -> Response:
        """The list of libraries, and the one that is open, if it is still there."""
        asked = {"library": request.query_params.get("library", "")}
        return await self._told(request, lambda owner, words: self._shown(owner, asked["library"], words))

    async def create(self, owner: str, asked: Asked, words: Words) -> dict[str, Any]:
        """A new library, which is open from now on."""
        library = await self._engine.libraries.create(owner, asked["name"])
        return await self._shown(owner, library.id, words)

    async def rename(self, owner: str, asked: Asked, words: Words) -> dict[str, Any]:
        """Another name."""
        await self._engine.libraries.rename(owner, asked["library"], asked["name"])
        return await self._shown(owner, asked["library"], words)

    async def delete(self, owner: str, asked: Asked, words: Words) -> dict[str, Any]:
        """Delete a library."""
        await self._engine.libraries.delete(owner, asked["library"])
        return await self._shown(owner, "", words)

    async def remove(self, owner: str, asked: Asked, words: Words) -> dict[str, Any]:
        """Take a document out."""
        await self._engine.libraries.remove(owner, asked["document"])
        return await self._shown(owner, asked["library"], words)

    async def cancel(self, owner: str, asked: Asked, words: Words) -> dict[str, Any]:
        """Stop reading a document."""
        await self._engine.libraries.cancel(owner, asked["document"])
        return await self._shown(owner, asked["library"], words)

    async def again(self, owner: str, asked: Asked, words: Words) -> dict[str, Any]:
        """Read a document anew, with its password if it has one."""
        await self._engine.libraries.read_again(owner, asked["document"], asked["password"])
        return await self._shown(owner, asked["library"], words)

    async def tried(self, owner: str, asked: Asked, words: Words) -> dict[str, Any]:
        """What a question finds."""
        libraries, library = self._engine.libraries, asked["library"]
        question = asked["question"]
        found = await libraries.tried(owner, library, question)
        was_sought = bool(question.strip())  # with nothing to look for, more documents would not help
        unsearched = await libraries.unsearched(owner, library) if was_sought and not found else ()
        return found_data(found, words, unsearched)

    async def files(self, request: Request) -> Response:
        """Files for a library, written to disk as they arrive; what is refused leaves nothing behind."""
        library = str(request.path_params["library"])
        if _OURS not in request.headers:
            return JSONResponse({}, 400, _PRIVATE)

        async def take(owner: str, words: Words) -> dict[str, Any]:
            await self._engine.libraries.opened(owner, library)  # asked before anything is written
            kind = request.headers.get("content-type", "")
            told, room = size_of(request), self._engine.files.check_room
            uploads = await self._uploads.receive(owner, kind, request.stream(), told=told, room=room)
            known = {record.id for record in (await self._engine.libraries.opened(owner, library)).documents}
            fresh: set[str] = set()
            try:
                for upload in uploads:
                    record = await self._engine.libraries.add(owner, library, upload.path, upload.name)
                    fresh |= {record.id} - known
            finally:
                for upload in uploads:
                    self._uploads.forget(upload)
            return {**await self._shown(owner, library, words), "fresh": len(fresh), "known": len(uploads) - len(fresh)}

        return await self._told(request, take)

    async def _shown(self, owner: str, library: str, words: Words) -> dict[str, Any]:
        libraries = self._engine.libraries
        opened = None
        if library:
            with suppress(NotFoundError):  # deleted in another tab
                intake, shelf = self._engine.intake, await libraries.opened(owner, library)
                opened = opened_data(shelf, intake.progress, words, intake.preparing(owner))
        listed = shelf_data(await libraries.list(owner), words)
        return {"libraries": listed, "opened": opened, "limit": self._uploads.limit // 2**20}

    def _answering(
        self, work: Callable[[str, Asked, Words], Awaitable[dict[str, Any]]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            wanted = await _asked(request)
            if wanted is None:
                return JSONResponse({}, 400, _PRIVATE)
            return await self._told(request, lambda owner, words: work(owner, wanted, words))

        return answer

    async def _told(self, request: Request, work: Callable[[str, Words], Awaitable[dict[str, Any]]]) -> Response:
        """Does the work, and tells what went wrong in a sentence."""
        words = self._words(request.headers.get("accept-language", ""))
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        try:
            return JSONResponse(await work(owner, words), headers=_PRIVATE)
        except ClientDisconnect:
            return JSONResponse({}, 400, _PRIVATE)
        except ParlourError as error:
            if isinstance(error, (TooLargeError, NotFoundError, QuotaError, TooManyRequestsError)):
                await self._uploads.drain(request.stream())
            if isinstance(error, TooLargeError):
                error.details["size"] = self._uploads.size_told(request.headers.get("content-length", ""))
            status, wait = _status_of(error)
            return JSONResponse({"failed": words.error(error)}, status, headers={**_PRIVATE, **wait})
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
    values = await asked(request)
    return {name: text_of(values.get(name)) for name in _TEXTS} if values is not None else None
