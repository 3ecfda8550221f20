"""Messages that wait for the end of a reply: put there, taken back into the composer, removed, or sent by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from webui.context import json_body, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.storage.base import FileRecord
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.handlers.desk import Desk
    from webui.views import View

_PRIVATE: Final = {"cache-control": "no-store"}


class QueueRoutes:
    """`POST /conversations/{id}/queue/take`: a message that waits, taken out to be changed in the composer."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/conversations/{conversation_id}/queue/take", self.take, methods=["POST"])]

    async def take(self, request: Request) -> Response:
        """The text and files of the message `{"id"}`, which waits no more; `{"failed": sentence}` where it is gone."""
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        asked = await json_body(request) or {}
        words = self._words(request.headers.get("accept-language", ""))
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                queue = workspace.queue(request.path_params["conversation_id"])
                taken = await queue.take(text_of(asked.get("id")))
        except ParlourError as error:
            status = 404 if isinstance(error, NotFoundError) else 503
            return JSONResponse({"failed": words.error(error)}, status, _PRIVATE)
        files = [{"name": file.name, "address": f".{file.address}"} for file in taken.files]
        return JSONResponse({"text": taken.message.text, "files": files}, headers=_PRIVATE)


async def queue_up(
    workspace: Workspace, view: View, conversation_id: str, text: str, files: Sequence[FileRecord]
) -> None:
    """Let a message wait for the end of the reply. Raises as `ConversationQueue.add`, and where no model takes it."""
    model = await workspace.conversation(conversation_id).model()
    for refused in await workspace.unsupported_files(files, model):
        raise refused
    await workspace.queue(conversation_id).add(text, [file.id for file in files])
    view.resting = False
    view.wake_up(stale=True)


async def unqueue(desk: Desk, view: View, message_id: str) -> None:
    """Remove a message that waits. Raises NotFoundError: it was sent."""
    async with desk.workspace(view) as workspace:
        await workspace.queue(view.conversation_id).remove(message_id)


async def move_queued(desk: Desk, view: View, message_id: str, before: str) -> None:
    """Let a message be sent before another one that waits, or as the last. Raises NotFoundError: it was sent."""
    view.wake_up(stale=True)
    async with desk.workspace(view) as workspace:
        await workspace.queue(view.conversation_id).move(message_id, before)


async def send_queued(desk: Desk, view: View, message_id: str) -> None:
    """Send a message that waits for its owner. Raises as `ConversationQueue.send`."""
    view.resting = False
    view.wake_up(stale=True)
    async with desk.workspace(view) as workspace:
        await workspace.queue(view.conversation_id).send(message_id)
