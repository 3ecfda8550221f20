"""One agent in OpenAI's protocol: `/v1/models` and `/v1/chat/completions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect
from starlette.routing import Route

from core.doors.asked import MOST_MESSAGES, BadRequestError, chat_asked, listed
from core.errors import ParlourError
from core.messages.message import ASSISTANT
from webui.agent_doors.answering import AgentAnswer, as_any
from webui.doors.chat import ChatForm, made_whole, until_left
from webui.doors.entry import json_of
from webui.doors.refusals import JsonAnswer, refusal, refused
from webui.doors.stream import ReplyStream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.doors.asked import Asked
    from core.messages.message import Message
    from webui.agent_doors.answering import Host


def openai_routes(host: Host) -> list[BaseRoute]:
    """The routes; whoever mounts them has looked at the token."""
    form = _OpenAI(host)
    return [
        Route("/v1/models", _told(form.models), methods=["GET"]),
        Route("/v1/models/{model:path}", _told(form.model), methods=["GET"]),
        Route("/v1/chat/completions", _told(form.completions), methods=["POST"]),
        Route("/v1/{rest:path}", _nothing, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ]


def _told(work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return await work(request)
        except ClientDisconnect:
            return refusal(400, "The request broke off.", "broken_off")
        except ParlourError as error:
            return refused(error)

    return answer


async def _nothing(request: Request) -> Response:
    return refusal(404, f"There is no {request.method} {request.url.path} here.", "unknown_url")


class _OpenAI:
    def __init__(self, host: Host) -> None:
        self._host = host

    async def models(self, request: Request) -> Response:
        """The agent, as the one model."""
        del request
        return JsonAnswer({"object": "list", "data": [self._model()]})

    async def model(self, request: Request) -> Response:
        """The same, by its name."""
        self._check(request.path_params["model"])
        return JsonAnswer(self._model())

    async def completions(self, request: Request) -> Response:
        """A reply, as a stream or whole."""
        given = await json_of(request)
        asked = chat_asked(given, listed(given, "messages", MOST_MESSAGES))
        self._check(asked.model)
        _check_asked(asked)
        answer = AgentAnswer(self._host, asked)
        form = ChatForm(as_any(answer), {})
        if asked.stream:
            return ReplyStream(as_any(answer), form)
        await until_left(request, made_whole(as_any(answer), form))
        return JsonAnswer(await form.completion())

    def _check(self, wanted: str) -> None:
        if wanted != self._host.name:
            said = f"There is no model {wanted!r} here."
            raise BadRequestError(said, param="model", code="model_not_found", hint=f"Ask for {self._host.name!r}.")

    def _model(self) -> dict[str, Any]:
        return {"id": self._host.name, "object": "model", "created": 0, "owned_by": "parlour", "kind": "agent"}


def _check_asked(asked: Asked) -> None:
    """Refuse what one agent does not take. Raises BadRequestError."""
    if asked.tools:
        said = "The agent has tools of its own, and takes none from who asks."
        raise BadRequestError(said, param="tools", hint="Leave tools out.")
    check_items(asked.messages)


def check_items(messages: Sequence[Message]) -> None:
    """Refuse what would have something read here or fetched: only text, and pictures that come along, are taken.

    Raises:
        BadRequestError: There is something else.
    """
    for one in messages:
        for item in one.items:
            if item.type != "text" and not (item.type == "image" and str(item.value).startswith("data:image/")):
                said = "Only text is taken here, and pictures that stand in the question itself (data:image/...)."
                raise BadRequestError(said, param="messages", code="unsupported_content")
    if messages[-1].role == ASSISTANT and not messages[-1].function_call:
        raise BadRequestError("The last message must be a question.", param="messages")
