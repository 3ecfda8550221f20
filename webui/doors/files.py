"""`/v1/files`: files that a program brings, to name them in questions."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final

from starlette.formparsers import MultiPartException
from starlette.requests import Request

from core.doors.asked import BadRequestError
from webui.doors.refusals import JsonAnswer
from webui.stored_files import stored_file

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.datastructures import UploadFile
    from starlette.responses import Response
    from starlette.types import Message, Receive

    from core.doors.door import Door
    from core.storage.api_state import ApiFile

_PREFIX: Final = "file-"
_PURPOSES: Final = frozenset({"assistants", "user_data", "vision", "batch", "fine-tune", "evals"})
_BLOCK: Final = 1024 * 1024


class FileRoutes:
    """The files of programs.

    Args:
        most: Bytes of one file.
        folder: Where they arrive.
    """

    def __init__(self, most: int, folder: Path) -> None:
        self._most = most
        self._folder = folder

    async def add(self, request: Request, door: Door) -> Response:
        """Keep a file."""
        told = request.headers.get("content-length", "")
        if told.isdecimal() and int(told) > self._most + _BLOCK:
            raise self._too_large()
        request = Request(request.scope, self._bounded(request.receive))
        try:
            async with request.form(max_files=1, max_fields=20, max_part_size=_BLOCK) as form:
                file, purpose = form.get("file"), form.get("purpose")
                if file is None or isinstance(file, str):
                    raise BadRequestError("The request brings no file.", param="file", code="missing")
                if purpose not in _PURPOSES:
                    known = ", ".join(sorted(_PURPOSES))
                    raise BadRequestError("This is no purpose of a file.", param="purpose", hint=f"Known: {known}.")
                kept = await self._kept(file, str(purpose), door)
        except MultiPartException as error:
            raise BadRequestError("The form of the request cannot be read.", code="invalid_form") from error
        return JsonAnswer(_json(kept))

    async def all(self, request: Request, door: Door) -> Response:
        """All of them, the newest first."""
        purpose = request.query_params.get("purpose")
        there = await door.stores.api_files.list()
        data = [_json(one) for one in there if purpose in {None, one.purpose}]
        ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
        return JsonAnswer({"object": "list", "data": data, "has_more": False, **ends})

    async def one(self, request: Request, door: Door) -> Response:
        """What is known about one."""
        return JsonAnswer(_json(await door.stores.api_files.get(_id(request))))

    async def content(self, request: Request, door: Door) -> Response:
        """Its bytes."""
        await door.stores.api_files.get(_id(request))
        return await stored_file(request, door.stores.files, _id(request), {"cache-control": "no-store"})

    async def delete(self, request: Request, door: Door) -> Response:
        """Delete one."""
        await door.stores.api_files.delete(_id(request))
        return JsonAnswer({"id": _PREFIX + _id(request), "object": "file", "deleted": True})

    def _bounded(self, receive: Receive) -> Receive:
        """A `receive` of which no more is taken than a file may have, and what belongs to a form."""
        left = self._most + _BLOCK

        async def bounded() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise self._too_large()
            return message

        return bounded

    async def _kept(self, file: UploadFile, purpose: str, door: Door) -> ApiFile:
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        draft = self._folder / f"program-{secrets.token_hex(8)}.part"
        try:
            await self._written(file, draft)
            return await door.stores.api_files.put(file.filename or "file", draft, purpose)
        finally:
            await asyncio.to_thread(draft.unlink, missing_ok=True)

    async def _written(self, file: UploadFile, draft: Path) -> None:
        size = 0
        with draft.open("xb") as writing:
            while block := await file.read(_BLOCK):
                size += len(block)
                if size > self._most:
                    raise self._too_large()
                await asyncio.to_thread(writing.write, block)
        if not size:
            raise BadRequestError("The file is empty.", param="file")

    def _too_large(self) -> BadRequestError:
        said = f"The file is larger than {self._most // _BLOCK} MB."
        return BadRequestError(said, param="file", code="too_large")


def _id(request: Request) -> str:
    return str(request.path_params["file_id"]).removeprefix(_PREFIX)


def _json(kept: ApiFile) -> dict[str, Any]:
    """A file in OpenAI's form."""
    record = kept.file
    about = {"id": _PREFIX + record.id, "object": "file", "bytes": record.size, "created_at": int(record.created_at)}
    return {**about, "filename": record.name, "purpose": kept.purpose, "status": "processed", "expires_at": None}
