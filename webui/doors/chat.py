"""`/v1/models` and `/v1/chat/completions`."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect

from core.doors.asked import MOST_MESSAGES, chat_asked, listed
from core.doors.chat import DONE, ChatReply
from core.doors.door import Answer
from core.doors.embedding import embedding_models
from core.doors.parts import Parts
from core.doors.storing import store_conversation
from core.errors import LimitReachedError
from webui.doors.entry import json_of
from webui.doors.refusals import JsonAnswer
from webui.doors.stream import ReplyStream, event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from core.doors.catalog import Offered
    from core.doors.door import Door
    from core.messages.events import Event


class ChatForm(ChatReply):
    """A chat completion as it goes over the wire."""

    def failed(self, told: dict[str, object]) -> bytes:
        """What ends one that failed in its midst."""
        return event(told) + DONE


class Whole:
    """Takes in a reply that is given whole."""

    full = False

    def __init__(self, take: Callable[[Event], Any]) -> None:
        self._take = take

    def take(self, event: Event) -> None:
        """Take in an event."""
        self._take(event)

    async def drained(self) -> None:
        """There is always room: a reply has its limit."""


async def models(request: Request, door: Door) -> Response:
    """What can be named as a model."""
    del request
    found = [_model(one) for one in await door.models()]
    found += [_embedder(name) for name in await _embedders(door)]
    return JsonAnswer({"object": "list", "data": found})


async def model(request: Request, door: Door) -> Response:
    """One of them."""
    wanted = request.path_params["model"]
    if wanted in await _embedders(door):
        return JsonAnswer(_embedder(wanted))
    return JsonAnswer(_model(await door.find(wanted)))


async def completions(request: Request, door: Door) -> Response:
    """A reply, as a stream or whole."""
    given = await json_of(request)
    messages = listed(given, "messages", MOST_MESSAGES)
    await door.check_use()  # before anything is fetched for it
    async with AsyncExitStack() as opened:
        workspace = await opened.enter_async_context(door.opened())
        parts = await opened.enter_async_context(Parts(door))
        asked = chat_asked(given, await parts.resolved(messages))
        await door.found(workspace, asked.model)  # told with its status, also where a stream is wanted
        answer = Answer(door, asked, documents=parts.has_documents)
        form = ChatForm(answer, parts.documents)

        async def over() -> None:
            answer.remember()
            if asked.store:
                await store_conversation(answer, form.text.whole)

        if asked.stream:
            closing = opened.pop_all().aclose
            return ReplyStream(answer, form, closing=closing, over=over)
        await until_left(request, made_whole(answer, form))
        await over()
        return JsonAnswer(await form.completion())


async def made_whole(answer: Answer, form: ChatReply) -> None:
    """Make a reply of which nothing is sent before its end. Raises as `Answer.run`."""
    try:
        await answer.run(Whole(form.heard))
    except LimitReachedError:
        if not answer.events:
            raise
        answer.reason = "length"


async def until_left(request: Request, work: Awaitable[None]) -> None:
    """Do the work; where the program goes away meanwhile, end it. Raises what the work raises."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.create_task(left())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
            raise ClientDisconnect
        working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _embedders(door: Door) -> list[str]:
    """The embedding models that a key may use; none where it is not for that."""
    if "embeddings" not in door.key.scopes:
        return []
    return [name for name in await asyncio.to_thread(embedding_models) if door.key.may_use(name)]


def _model(offered: Offered) -> dict[str, Any]:
    """A model in OpenAI's form, with what it is beside."""
    about = {"id": offered.id, "object": "model", "created": 0, "owned_by": "parlour"}
    return {**about, "name": offered.name, "kind": offered.kind}


def _embedder(name: str) -> dict[str, Any]:
    about = {"id": name, "object": "model", "created": 0, "owned_by": "parlour"}
    return {**about, "name": name, "kind": "embedding"}
