"""What the reader decides about a call, all of a call for its owner, and a call made again with other arguments."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NotBase64
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote_to_bytes

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from core.errors import BadArgumentsError, ConflictError, NotFoundError, ParlourError
from core.mcp.forms import answers, form_of
from webui.panels.approval import approval_mark, argument_fields, edited_arguments, unfit_sentence
from webui.render.documents import file_id
from webui.render.tool_words import label_of
from webui.views import Unfit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.runs.log import ApprovalAsked
    from core.runs.reply import CallBlock, Reply
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.handlers.desk import Desk
    from webui.views import View


async def allow(desk: Desk, view: View, call_id: str, edits: object, *, always: bool, asked: object = None) -> None:
    """Let a call be made, with what was typed into its fields; what does not fit its tool is told at the field.

    Args:
        view: The tab: the call is one of the conversation that it shows.
        edits: What stands in the fields that were touched, by the arguments' names.
        always: Ask no more for this tool in this conversation.
        asked: Which question the tab showed: one that was left open long ago is no answer to another.

    Raises:
        ConflictError: key `already_decided`: nobody waits for this any more.
        ParlourError: key `wrong_arguments`.
    """
    async with desk.workspace(view) as workspace:
        question = await _asked(workspace, view, call_id, asked)
        arguments = edited_arguments(question.arguments, edits)
        conversation = workspace.conversation(view.conversation_id)
        view.unfit = None
        try:
            await conversation.decide(call_id, allowed=True, arguments=arguments, always=always)
        except BadArgumentsError as error:
            typed = cast("dict[str, object]", edits)
            view.unfit = _unfit(view, question, typed, error)
            view.wake_up()


def _unfit(view: View, asked: ApprovalAsked, typed: Mapping[str, object], error: BadArgumentsError) -> Unfit:
    """What is wrong, at the field that the error names, where it was typed into; else at the first that was."""
    touched = [name for name in asked.arguments if name in typed]
    named = str(error.details.get("field") or "")
    field = next((one for one in touched if named == one or named.startswith(f"{one}.")), touched[0])
    said = unfit_sentence(error, view.words)
    return Unfit(approval_mark(asked), asked.call_id, field, str(typed[field]), said)


async def refuse(desk: Desk, view: View, call_id: str, *, asked: object = None) -> None:
    """Do not let a call be made. Raises ConflictError, as `allow`."""
    async with desk.workspace(view) as workspace:
        await _asked(workspace, view, call_id, asked)
        await workspace.conversation(view.conversation_id).decide(call_id, allowed=False)


async def answer(desk: Desk, view: View, input_id: str, typed: object) -> None:
    """Tell a server what it asks during a call.

    Args:
        view: The tab: the call is one of the conversation that it shows.
        typed: What stands in the fields of its form, by their names; `None` is a no.

    Raises:
        ConflictError: key `already_decided`: nobody waits for this any more.
        ParlourError: key `wrong_answer`.
    """
    async with desk.workspace(view) as workspace:
        waiting = [call.input for call in await _waiting(workspace, view) if call.input is not None]
        asked = next((one for one in waiting if one.input_id == input_id), None)
        if asked is None:
            raise _decided()
        values = None
        if typed is not None:
            given = cast("dict[str, object]", typed) if isinstance(typed, dict) else {}
            values = answers(form_of(asked.schema) or (), given)
        await workspace.runs.give(view.conversation_id, input_id, values)


async def rerun(desk: Desk, view: View, message_id: str, call_id: str, edits: object) -> None:
    """Begin another version of a reply at one of its calls, with other arguments.

    Raises:
        NotFoundError: There is no such call.
        ConflictError: key `busy`.
        ParlourError: key `wrong_arguments`.
    """
    async with desk.workspace(view) as workspace:
        message = await workspace.conversations.message(message_id)
        call = call_of(await workspace.runs.reply(message), call_id)
        given = arguments_of(call)
        arguments = edited_arguments(given, edits) or given
        conversation = workspace.conversation(view.conversation_id)
        await conversation.run_again(message_id, call_id, arguments, view.words.spoken)


def call_of(reply: Reply, call_id: str) -> CallBlock:
    """A call of a reply, by its address. Raises NotFoundError."""
    call = reply.call(call_id)
    if call is None:
        raise NotFoundError("There is no such call.")
    return call


def arguments_of(call: CallBlock) -> dict[str, Any]:
    """What a call was made with: as it was edited, else as the model wrote it; nothing where that cannot be read."""
    if call.edited is not None:
        return call.edited
    try:
        given = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


async def _asked(workspace: Workspace, view: View, call_id: str, shown: object) -> ApprovalAsked:
    waiting = await _waiting(workspace, view)
    asked = next((call.asked for call in waiting if call.call_id == call_id and call.input is None), None)
    if asked is None or (shown is not None and shown != approval_mark(asked)):
        raise _decided()
    return asked


async def _waiting(workspace: Workspace, view: View) -> list[CallBlock]:
    run = await workspace.runs.found(view.conversation_id)
    return run.reply().asking if run is not None else []


def _decided() -> ConflictError:
    return ConflictError("This was decided already.", key="already_decided")


_PRIVATE = {"cache-control": "no-store"}
_LONG = {"cache-control": "private, max-age=86400"}
# What a browser may show by itself, because it can hold no script.
_SHOWN = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"}
    | {"audio/mpeg", "audio/wav", "audio/x-wav", "audio/ogg", "audio/flac", "video/mp4", "video/webm"}
)


class CallRoutes:
    """`GET /calls/given`, `text` and `item`, for the owner of the reply that `message` names; `call` names its call."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/calls/given", self._answering(self.given), methods=["GET"]),
            Route("/calls/text", self._answering(self.text), methods=["GET"]),
            Route("/calls/item", self._answering(self.item), methods=["GET"]),
        ]

    async def given(self, request: Request, workspace: Workspace, call: CallBlock) -> Response:
        """The call's arguments as fields that can be changed."""
        del workspace
        words = self._words(request.headers.get("accept-language", ""))
        shown = [field._asdict() for field in argument_fields(arguments_of(call))]
        about = {"name": call.name, "label": label_of(call.name, words), "fields": shown}
        return JSONResponse(about, headers=_PRIVATE)

    async def text(self, request: Request, workspace: Workspace, call: CallBlock) -> Response:
        """All that went in (`of=given`), or all that came back."""
        if request.query_params.get("of") == "given":
            text = _written(call)
        else:
            text = await _whole(workspace, call)
        headers = {**_PRIVATE, "content-disposition": 'attachment; filename="result.txt"'}
        return PlainTextResponse(text, headers=headers)

    async def item(self, request: Request, workspace: Workspace, call: CallBlock) -> Response:
        """A picture or file that stands in the result; what a browser cannot show safely is saved instead."""
        del workspace
        asked = request.query_params.get("n", "")
        number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else -1
        items = call.result.items if call.result is not None else []
        value: Any = items[number].value if 0 <= number < len(items) and items[number].type != "text" else None
        raw = _decoded(value)
        kind = (
            str(value)[5:].partition(",")[0].partition(";")[0].lower()
        )  # a browser is told to take it for nothing else
        if kind in _SHOWN:
            return Response(raw, media_type=kind, headers=_LONG)
        name = {"content-disposition": 'attachment; filename="result"'}
        return Response(raw, media_type="application/octet-stream", headers={**_LONG, **name})

    def _answering(
        self, work: Callable[[Request, Workspace, CallBlock], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Finds the call; whoever it does not belong to is told that there is none."""

        async def answer(request: Request) -> Response:
            owner = request.scope["owner"]
            if owner is None:
                return PlainTextResponse("", 401, headers=_PRIVATE)
            try:
                return await self._engine.demonstrations.also(owner, partial(_answered, request, work))
            except ParlourError as error:
                words = self._words(request.headers.get("accept-language", ""))
                return PlainTextResponse(words.error(error), 404, headers=_PRIVATE)

        return answer


async def _answered(
    request: Request, work: Callable[[Request, Workspace, CallBlock], Awaitable[Response]], workspace: Workspace
) -> Response:
    asked = request.query_params
    message = await workspace.conversations.message(asked.get("message", ""))
    call = call_of(await workspace.runs.reply(message), asked.get("call", ""))
    return await work(request, workspace, call)


async def _whole(workspace: Workspace, call: CallBlock) -> str:
    """All of the text that came back; what the model was not shown stands in the last item."""
    if call.result is None:
        return ""
    if not (call.result.extra or {}).get("whole") or not call.result.items:
        return call.result.get_text_content()
    last = call.result.items[-1]
    if not (stored := file_id(last)):
        return _decoded(last.value).decode("utf-8", "replace")
    return (await workspace.files.read(stored)).decode("utf-8", "replace")


def _written(call: CallBlock) -> str:
    """What went in, each argument under its name; as the model wrote it where it cannot be read."""
    given = argument_fields(arguments_of(call))
    if len(given) == 1:
        return given[0].text
    parts = (f"{one.name}:\n{one.text}\n" if "\n" in one.text else f"{one.name}: {one.text}" for one in given)
    return "\n".join(parts) or call.arguments


def _decoded(value: Any) -> bytes:
    """What a `data:` address holds. Raises NotFoundError for any other."""
    if not isinstance(value, str) or not value.startswith("data:"):
        raise NotFoundError("There is no such part.")
    about, _, held = value.partition(",")
    try:
        return b64decode(held, validate=True) if about.endswith(";base64") else unquote_to_bytes(held)
    except (NotBase64, ValueError) as error:
        raise NotFoundError("It cannot be read.") from error
