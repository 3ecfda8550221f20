"""`/v1/ag-ui`: a run of an agent in the protocol of AG-UI, for front ends that speak it. Experimental."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from core.doors.ag_ui import RunReply, chat_messages, id_of, run_asked
from core.doors.catalog import ASSISTANT
from core.doors.door import Answer
from core.doors.parts import Parts
from webui.doors.entry import json_of
from webui.doors.stream import ReplyStream

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from core.doors.door import Door


async def run(request: Request, door: Door) -> Response:
    """A run, always as a stream of events; who answers stands in the address."""
    given = await json_of(request)
    thread, run_id = id_of(given, "threadId"), id_of(given, "runId")
    messages = chat_messages(given)
    await door.check_use()  # before anything is fetched for it
    async with AsyncExitStack() as opened:
        parts = await opened.enter_async_context(Parts(door))
        model = request.path_params.get("model") or ASSISTANT
        asked = run_asked(given, model, await parts.resolved(messages))
        await door.find(asked.model)  # told with its status
        answer = Answer(door, asked, documents=parts.has_documents)
        form = RunReply(answer, thread, run_id, parts.documents)

        async def over() -> None:
            answer.remember()

        return ReplyStream(answer, form, closing=opened.pop_all().aclose, over=over)
