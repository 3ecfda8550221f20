"""`/v1/responses`: made, summed up, read again with what was said, and deleted."""

from __future__ import annotations

import json
import logging
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from core.agents.conversation import call_id, with_call_id
from core.doors.asked import BadRequestError, response_asked
from core.doors.compacting import compacted, expanded, said_before, with_private
from core.doors.door import Answer
from core.doors.input_items import kept_items, listed_items
from core.doors.parts import Parts
from core.doors.response_input import (
    answers_in,
    as_chat,
    begun_by_user,
    check_results,
    earlier_of,
    items_of,
    messages_of,
)
from core.doors.responses import ResponseReply
from core.doors.storing import store_conversation
from core.errors import LimitReachedError, NotFoundError
from core.runs.rows import rows_of
from webui.doors.chat import Whole, until_left
from webui.doors.entry import json_of
from webui.doors.refusals import JsonAnswer, refusal
from webui.doors.socket import REMEMBERED, Remembered
from webui.doors.stream import ReplyStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from core.doors.door import Door
    from core.storage.api_state import ApiResponseStore

_log = logging.getLogger(__name__)
_LARGEST: Final = 4 * 1024 * 1024  # characters of what is kept for a further request


class ResponseForm(ResponseReply):
    """A response as it goes over the wire."""

    keeps = False
    remembered: Remembered | None = None
    items: Sequence[dict[str, Any]] = ()

    async def end(self) -> None:
        """Close what is open, and keep the response for thirty days, so that a program can go on from it."""
        await super().end()
        if self.keeps or self.remembered is not None:
            await _keep(self.answer, self)

    def failed(self, told: dict[str, Any]) -> bytes:
        """What ends one that failed in its midst."""
        error = told["error"]
        body = {**self._body("failed"), "error": {"code": "server_error", "message": error["message"]}}
        return self._event("response.failed", response=body)


async def make(request: Request, door: Door) -> Response:
    """A response, as a stream or whole."""
    given = await json_of(request)
    given_items = items_of(given)
    items, private = expanded(door, given_items)
    answers = answers_in(items)
    keeps = given.get("store") is not False
    remembered: Remembered | None = request.scope.get(REMEMBERED)
    await door.check_use()  # before anything is fetched for it
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(door.opened())
        parts = await opened.enter_async_context(Parts(door))
        earlier = await earlier_of(given, answers, _Kept(door.stores.api_responses, remembered))
        said = messages_of(items) if earlier.messages else begun_by_user(messages_of(items))
        check_results(items, earlier.messages)
        told = await parts.resolved(said)
        asked = with_private(response_asked(as_chat(given), given, earlier.messages, told), private)
        await door.find(asked.model)
        answer = Answer(
            door,
            asked,
            documents=parts.has_documents,
            decided=earlier.decided,
            settled=earlier.settled,
            inside=earlier.inside,
            may_ask=keeps or remembered is not None,
        )
        form = ResponseForm(answer, given, parts.documents)
        form.keeps = keeps
        form.items = kept_items(given_items) if keeps else []
        form.remembered = remembered

        async def over() -> None:
            answer.remember()
            if asked.store:
                await store_conversation(answer, form.text.whole)

        if asked.stream:
            return ReplyStream(answer, form, closing=opened.pop_all().aclose, over=over)
        try:
            await until_left(request, answer.run(Whole(form.heard)))
        except LimitReachedError:
            if not answer.events:
                raise
            answer.reason = "length"
        await over()
        await form.end()
        return JsonAnswer(await form.body())


async def compact(request: Request, door: Door) -> Response:
    """What was said in short, as items that a further request begins with."""
    given = await json_of(request)
    given_items = items_of(given) if given.get("input") or not given.get("previous_response_id") else []
    items, private = expanded(door, given_items)
    await door.check_use()
    async with Parts(door) as parts:
        earlier = await earlier_of(given, {}, door.stores.api_responses)
        told = await parts.resolved(messages_of(items))
        asked = with_private(response_asked(as_chat(given), given, earlier.messages, told), private)
        made: list[dict[str, Any]] = []

        async def work() -> None:
            made.append(await compacted(door, asked, [*said_before(earlier.messages), *given_items]))

        await until_left(request, work())
    return JsonAnswer(made[0])


async def upgrade(request: Request, door: Door) -> Response:
    """For who may ask here, and comes without what makes a connection of it."""
    del request, door
    said = "This is asked by POST, or over a WebSocket."
    return refusal(426, said, "upgrade_required", headers={"upgrade": "websocket", "connection": "upgrade"})


async def read(request: Request, door: Door) -> Response:
    """A response that is kept."""
    state = await door.stores.api_responses.get(request.path_params["response_id"])
    if request.query_params.get("stream", "").lower() in {"true", "1"}:
        hint = "Ask without stream: it is over, and the answer has all of it."
        raise BadRequestError("Only a response in the background is streamed once more.", param="stream", hint=hint)
    return JsonAnswer(state["response"])


async def input_items(request: Request, door: Door) -> Response:
    """What the request for a response said, which is kept with it."""
    state = await door.stores.api_responses.get(request.path_params["response_id"])
    return JsonAnswer(listed_items(state.get("input") or [], request.query_params))


async def cancel(request: Request, door: Door) -> Response:
    """Nothing: a response that is kept is over, and one that is being made ends with its connection."""
    await door.stores.api_responses.get(request.path_params["response_id"])
    hint = "One that is still being made ends when its connection is closed."
    raise BadRequestError("Only a response in the background can be cancelled; this one is over.", hint=hint)


async def delete(request: Request, door: Door) -> Response:
    """Forget one."""
    response_id = request.path_params["response_id"]
    await door.stores.api_responses.delete(response_id)
    return JsonAnswer({"id": response_id, "object": "response", "deleted": True})


async def _keep(answer: Answer, form: ResponseForm) -> None:
    """Keep a response that is over; no page shows it."""
    said = [one for one in answer.asked.messages if one.role != "system"]
    guard = answer.guard
    known = guard.handed if guard is not None else {}
    made = [with_call_id(one, known[own]) if (own := call_id(one)) in known else one for one in answer.messages()]
    messages = [one.model_dump() for one in (*said, *made)]
    names = ("call_id", "name", "arguments", "yes")
    settled = [{name: getattr(one, name) for name in names} for one in guard.settled] if guard is not None else []
    inside = [[one.at, one.kind, one.payload] for one in rows_of(answer.inside)] if form.asked else []
    state = {"messages": messages, "asked": form.asked, "settled": settled, "inside": inside, "input": form.items}
    state["response"] = await form.body()
    if len(json.dumps(state, default=str)) > _LARGEST:
        _log.info("A response is too large to be kept, and cannot be gone on from.")
        return
    if form.remembered is not None:
        form.remembered.keep(form.id, state)
    if form.keeps:
        await answer.door.stores.api_responses.keep(form.id, state)


class _Kept:
    """Responses that a program goes on from: the one that its connection remembers, and those that are stored."""

    def __init__(self, stored: ApiResponseStore, remembered: Remembered | None) -> None:
        self._stored = stored
        self._remembered = remembered

    async def get(self, response_id: str) -> dict[str, Any]:
        """One of them. Raises NotFoundError."""
        if self._remembered is not None:
            with suppress(NotFoundError):
                return await self._remembered.get(response_id)
        return await self._stored.get(response_id)

    async def spend(self, response_id: str, question: str) -> bool:
        """Note that a question of one was answered; whether it was open until now. Raises StorageError."""
        here = self._remembered is not None and await self._remembered.spend(response_id, question)
        return await self._stored.spend(response_id, question) or here
