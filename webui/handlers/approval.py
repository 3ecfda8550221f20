"""What the reader decides about a call, and a call that is made again with other arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from core.errors import ConflictError, NotFoundError
from core.mcp.forms import answers, form_of
from webui.panels.approval import approval_mark, edited_arguments

if TYPE_CHECKING:
    from core.runs.log import ApprovalAsked
    from core.runs.reply import CallBlock, Reply
    from webui.handlers.desk import Desk
    from webui.views import View


async def allow(desk: Desk, view: View, call_id: str, edits: object, *, always: bool, asked: object = None) -> None:
    """Let a call be made, with what was typed into its fields.

    Args:
        desk: What handlers work with.
        view: The tab: the call is one of the conversation that it shows.
        call_id: The call.
        edits: What stands in the fields that were touched, by the arguments' names.
        always: Ask no more for this tool in this conversation.
        asked: Which question the tab showed: one that was left open long ago is no answer to another.

    Raises:
        ConflictError: key `already_decided`: nobody waits for this any more.
        ParlourError: key `wrong_arguments`.
    """
    arguments = edited_arguments(_asked(desk, view, call_id, asked).arguments, edits)
    async with desk.conversation(view) as conversation:
        await conversation.decide(call_id, allowed=True, arguments=arguments, always=always)


async def refuse(desk: Desk, view: View, call_id: str, *, asked: object = None) -> None:
    """Do not let a call be made. Raises ConflictError, as `allow`."""
    _asked(desk, view, call_id, asked)
    async with desk.conversation(view) as conversation:
        await conversation.decide(call_id, allowed=False)


async def answer(desk: Desk, view: View, input_id: str, typed: object) -> None:
    """Tell a server what it asks during a call.

    Args:
        desk: What handlers work with.
        view: The tab: the call is one of the conversation that it shows.
        input_id: The question.
        typed: What stands in the fields of its form, by their names; `None` is a no.

    Raises:
        ConflictError: key `already_decided`: nobody waits for this any more.
        ParlourError: key `wrong_answer`.
    """
    asked = next((call.input for call in _waiting(desk, view) if call.input and call.input.input_id == input_id), None)
    if asked is None:
        raise _decided()
    values = None
    if typed is not None:
        given = cast("dict[str, object]", typed) if isinstance(typed, dict) else {}
        values = answers(form_of(asked.schema) or (), given)
    desk.engine.runs.give(view.owner, view.conversation_id, input_id, values)


async def rerun(desk: Desk, view: View, message_id: str, call_id: str, edits: object) -> None:
    """Begin another version of a reply at one of its calls, with other arguments.

    Raises:
        NotFoundError: There is no such call.
        ConflictError: key `busy`.
        ParlourError: key `wrong_arguments`.
    """
    message = await desk.engine.conversations.message(view.owner, message_id)
    call = call_of(await desk.engine.runs.reply(view.owner, message), call_id)
    given = arguments_of(call)
    arguments = edited_arguments(given, edits) or given
    async with desk.conversation(view) as conversation:
        await conversation.run_again(message_id, call_id, arguments, view.words.lang)


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


def _asked(desk: Desk, view: View, call_id: str, shown: object) -> ApprovalAsked:
    waiting = _waiting(desk, view)
    asked = next((call.asked for call in waiting if call.call_id == call_id and call.input is None), None)
    if asked is None or (shown is not None and shown != approval_mark(asked)):
        raise _decided()
    return asked


def _waiting(desk: Desk, view: View) -> list[CallBlock]:
    run = desk.engine.runs.live(view.conversation_id)
    return run.reply().asking if run is not None and run.owner == view.owner else []


def _decided() -> ConflictError:
    return ConflictError("This was decided already.", key="already_decided")
