"""Files that are about to be added to a question: which of them would be refused, asked before they are sent."""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import QuotaError
from core.rag.parsers.catalog import HEAD
from core.storage.files import media_type_of_head
from webui.context import json_body, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.errors import ParlourError
    from webui.context import WebContext
    from webui.uploads import Uploads
    from webui.words import Words

_PRIVATE = {"cache-control": "no-store"}
_MOST_FILES = 40
_LARGEST = 2**53 - 1  # bytes of a file: the largest whole number that JavaScript has
_LONGEST = _MOST_FILES * (HEAD * 4 // 3 + 1024)  # bytes of a request: the heads in base64, names and sizes


@dataclass(frozen=True, slots=True)
class _Offered:
    """A file as the page describes it."""

    name: str
    media_type: str
    size: int
    head: bytes


class AttachingRoutes:
    """`POST /uploads/check`: a file that would be refused never leaves the browser, and holds up no other."""

    def __init__(self, context: WebContext, uploads: Uploads) -> None:
        self._engine = context.engine
        self._words = context.words
        self._uploads = uploads

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/uploads/check", self.check, methods=["POST"])]

    async def check(self, request: Request) -> Response:
        """Which of `{"files": [{"name", "size", "head"}]}` would be refused; `head` is the first 64 KiB in base64.

        Answers `{"refused": [index, …], "said": sentences}`.
        """
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        files = _offered(await json_body(request, _LONGEST) or {})
        if files is None:
            return JSONResponse({}, 400, _PRIVATE)
        refused: dict[int, ParlourError] = {}
        before = self._uploads.size_held(owner)
        async with self._engine.workspaces.open(owner) as workspace:
            for index, file in enumerate(files):
                error = self._uploads.refusal(file.name, file.size, file.head)
                error = error or next(iter(await workspace.not_taken([file])), None)
                error = error or await self._no_room(owner, file, before)
                if error is not None:
                    refused[index] = error
                else:
                    before += file.size
        words = self._words(request.headers.get("accept-language", ""))
        answer = {"refused": list(refused), "said": said_of(list(refused.values()), words)}
        return JSONResponse(answer, headers=_PRIVATE)

    async def _no_room(self, owner: str, file: _Offered, before: int) -> QuotaError | None:
        try:
            await self._engine.files.check_room(owner, before + file.size)
        except QuotaError as error:
            error.details["name"] = file.name
            return error
        return None


def said_of(errors: Sequence[ParlourError], words: Words) -> str:
    """Lines about files that are not taken, one for each reason: what several share is said once, with all their names.

    Args:
        errors: One for each file, with its name among the details.
        words: Of the reader's language.
    """
    alike: dict[tuple[str, ...], list[ParlourError]] = {}
    for error in errors:
        others = (f"{name}={value}" for name, value in error.details.items() if name not in {"name", "kind"})
        alike.setdefault((error.words_key, *others), []).append(error)
    happened: dict[str, list[str]] = {}  # by the remedy, which is said once
    for group in alike.values():
        names = words("attach.comma").join(str(error.details.get("name", "…")) for error in group)
        sentence, remedy = words.error_parts(
            {"key": group[0].words_key, "details": {**group[0].details, "name": names}}
        )
        told = sentence if names in sentence else words("attach.named", names=names, said=sentence)
        happened.setdefault(remedy, []).append(words.line(told))
    gap = "" if words.lang == "zh" else " "
    return "\n".join(
        line for remedy, told in happened.items() for line in (*told[:-1], gap.join(filter(None, (told[-1], remedy))))
    )


def _offered(given: dict[str, Any]) -> list[_Offered] | None:
    """What the page describes; None where it is nothing that the page would send."""
    listed = given.get("files")
    if not isinstance(listed, list) or len(cast("list[object]", listed)) > _MOST_FILES:
        return None
    offered: list[_Offered] = []
    for one in cast("list[object]", listed):
        if not isinstance(one, dict):
            return None
        described = cast("dict[str, object]", one)
        size, name = described.get("size"), text_of(described.get("name"))
        if not isinstance(size, int) or not 0 <= size <= _LARGEST:
            return None
        try:
            head = binascii.a2b_base64(text_of(described.get("head")))[:HEAD]
        except ValueError:
            return None
        offered.append(_Offered(name, media_type_of_head(head, name), size, head))
    return offered
