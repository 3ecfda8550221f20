"""One agent in the A2A protocol (Agent2Agent): its card, and JSON-RPC in the versions 1.0 and 0.3 at one address.

Version 1.0 calls its methods `SendMessage`, `SendStreamingMessage`, `GetTask` and `CancelTask`; 0.3 calls them
`message/send`, `message/stream`, `tasks/get` and `tasks/cancel`, and writes parts, states and events otherwise.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from core.doors.asked import BadRequestError
from webui.agent_doors.a2a_task import OVER, Tasks, question_of
from webui.doors.entry import json_of
from webui.doors.refusals import JsonAnswer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from webui.agent_doors.a2a_task import Task
    from webui.agent_doors.answering import Host

CARD: Final = "/.well-known/agent-card.json"
PLACE: Final = "/a2a"
_METHODS: Final = {
    "SendMessage": ("send", True),
    "SendStreamingMessage": ("stream", True),
    "GetTask": ("get", True),
    "CancelTask": ("cancel", True),
    "message/send": ("send", False),
    "message/stream": ("stream", False),
    "tasks/get": ("get", False),
    "tasks/cancel": ("cancel", False),
}
"""What each asks for, and whether it speaks version 1.0."""
_NO_METHOD, _WRONG, _NO_JSON, _BAD_REQUEST, _BUSY = -32601, -32602, -32700, -32600, -32603
_NO_TASK, _OVER, _NO_SUCH_CONTENT = -32001, -32002, -32005
_LONGEST: Final = 200_000  # characters of a question
_LONGEST_MESSAGE: Final = 250_000  # with what stands around the question
_DEEPEST: Final = 100
_ALIVE: Final = 15.0


class RpcError(Exception):
    """What a request is refused with."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class A2a:
    """The agent behind JSON-RPC; whoever mounts it has looked at the token.

    Args:
        host: Whose agent it is.
        has_token: Whether the card says that a token is needed.
    """

    def __init__(self, host: Host, *, has_token: bool) -> None:
        self._host = host
        self._has_token = has_token
        self.tasks = Tasks(host)

    async def card(self, request: Request) -> Response:
        """What the agent is and where it is asked; anybody may read it."""
        return JsonAnswer(agent_card(self._host, f"{str(request.base_url).rstrip('/')}{PLACE}", token=self._has_token))

    async def call(self, request: Request) -> Response:
        """One request."""
        name: object = None
        try:
            given = await json_of(request)
            name = given.get("id")
            if given.get("jsonrpc") != "2.0" or not isinstance(given.get("method"), str):
                raise RpcError(_BAD_REQUEST, "The request is none of JSON-RPC 2.0.")
            known = _METHODS.get(given["method"])
            if known is None:
                raise RpcError(_NO_METHOD, f"There is no method {given['method'][:80]!r} here.")
            params: object = given.get("params")
            if not isinstance(params, dict):
                raise RpcError(_WRONG, "params must be an object.")
            return await self._done(known[0], cast("dict[str, Any]", params), name, _Form(newer=known[1]))
        except ClientDisconnect:
            return JsonAnswer(_failed(name, _BAD_REQUEST, "The request broke off."))
        except BadRequestError as error:
            code = _NO_JSON if error.code == "invalid_json" else _BAD_REQUEST
            return JsonAnswer(_failed(name, code, str(error)))
        except RpcError as error:
            return JsonAnswer(_failed(name, error.code, str(error)))

    async def _done(self, what: str, params: dict[str, Any], name: object, form: _Form) -> Response:
        if what in {"get", "cancel"}:
            task = self.tasks.find(str(params.get("id")))
            if task is None:
                raise RpcError(_NO_TASK, "There is no such task: it never was one, or is forgotten.")
            if what == "cancel":
                await _cancel(task)
            return JsonAnswer(_result(name, form.task(task)))
        task = self._begun(params)
        if what == "stream":
            headers = {"cache-control": "no-store"}
            events = _events(task, name, form)
            return StreamingResponse(events, media_type="text/event-stream", headers=headers)
        if not _returns_at_once(params) and task.work is not None:
            await asyncio.wait({task.work})
        return JsonAnswer(_result(name, form.sent(task)))

    def _begun(self, params: Mapping[str, Any]) -> Task:
        message: object = params.get("message")
        if not isinstance(message, dict):
            raise RpcError(_WRONG, "params.message must be an object.")
        told = cast("dict[str, Any]", message)
        parts: object = told.get("parts")
        if not isinstance(parts, list) or not parts:
            raise RpcError(_WRONG, "params.message.parts must be a list with something in it.")
        _check_size(told)
        texts = [_text(one) for one in cast("list[object]", parts)]
        if not any(text.strip() for text in texts) or sum(map(len, texts)) > _LONGEST:
            raise RpcError(_WRONG, f"A message needs text, of at most {_LONGEST:,} characters.")
        context: object = told.get("contextId") or ""
        if named := told.get("taskId"):
            task = self.tasks.find(str(named))
            if task is None:
                raise RpcError(_NO_TASK, "There is no such task: it never was one, or is forgotten.")
            if task.state not in OVER:
                raise RpcError(_WRONG, "The task is not over yet; it takes no further message.")
            context = task.context
        if not isinstance(context, str) or len(context) > 200:
            raise RpcError(_WRONG, "params.message.contextId must be a text of at most 200 characters.")
        if self.tasks.full:
            raise RpcError(_BUSY, "Too many tasks are under way; ask again later.")
        return self.tasks.begin(question_of(texts), told, context)


def agent_card(host: Host, address: str, *, token: bool) -> dict[str, Any]:
    """The card, which clients of both versions can read.

    Args:
        address: Where the agent is asked.
        token: Whether that needs a token.
    """
    skills = [{"id": "ask", "name": host.name, "description": host.about, "tags": ["chat"]}]
    card: dict[str, Any] = {
        "name": host.name,
        "description": host.about,
        "version": "1",
        "url": address,
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "supportedInterfaces": [
            {"url": address, "protocolBinding": "JSONRPC", "protocolVersion": one} for one in ("1.0", "0.3")
        ],
        "capabilities": {"streaming": True, "pushNotifications": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": skills,
    }
    if token:
        older = {"type": "http", "scheme": "bearer"}
        card["securitySchemes"] = {"bearer": {**older, "httpAuthSecurityScheme": {"scheme": "Bearer"}}}
        card["security"] = [{"bearer": list[str]()}]
        card["securityRequirements"] = [{"schemes": {"bearer": {"list": list[str]()}}}]
    return card


class _Form:
    """How a version of the protocol writes things down."""

    def __init__(self, *, newer: bool) -> None:
        self._newer = newer

    def task(self, task: Task) -> dict[str, Any]:
        """A task with all that there is of it."""
        artifact = {"artifactId": task.artifact, "name": "answer", "parts": [self._part(task.text)]}
        history = [{**task.message, "taskId": task.id, "contextId": task.context}]
        own: dict[str, Any] = {} if self._newer else {"kind": "task"}
        own |= {"id": task.id, "contextId": task.context, "status": self._status(task), "history": history}
        return {**own, "artifacts": [artifact]} if task.text else own

    def sent(self, task: Task) -> dict[str, Any]:
        """The answer to a message."""
        return {"task": self.task(task)} if self._newer else self.task(task)

    def more(self, task: Task, text: str, *, first: bool) -> dict[str, Any]:
        """An event: more of the answer."""
        artifact = {"artifactId": task.artifact, "name": "answer", "parts": [self._part(text)]}
        own: dict[str, Any] = {"taskId": task.id, "contextId": task.context, "artifact": artifact, "append": not first}
        return {"artifactUpdate": own} if self._newer else {"kind": "artifact-update", **own}

    def over(self, task: Task) -> dict[str, Any]:
        """An event: how it ended."""
        own: dict[str, Any] = {"taskId": task.id, "contextId": task.context, "status": self._status(task)}
        return {"statusUpdate": own} if self._newer else {"kind": "status-update", **own, "final": True}

    def _status(self, task: Task) -> dict[str, Any]:
        state = f"TASK_STATE_{task.state.upper()}" if self._newer else task.state
        status: dict[str, Any] = {"state": state, "timestamp": task.changed}
        if task.said:
            role = "ROLE_AGENT" if self._newer else "agent"
            kind = {} if self._newer else {"kind": "message"}
            ids = {"messageId": f"{task.id}-said", "taskId": task.id, "contextId": task.context}
            status["message"] = {**kind, **ids, "role": role, "parts": [self._part(task.said)]}
        return status

    def _part(self, text: str) -> dict[str, Any]:
        return {"text": text} if self._newer else {"kind": "text", "text": text}


async def _events(task: Task, name: object, form: _Form) -> AsyncGenerator[bytes, None]:
    """A task as server-sent events: itself, more and more of the answer, how it ended. It goes on if nobody reads."""
    yield _event(_result(name, form.sent(task)))
    first, following = True, task.follow()
    pending = asyncio.ensure_future(anext(following, None))
    try:
        while True:
            done, _ = await asyncio.wait({pending}, timeout=_ALIVE)
            if not done:
                yield b": keep-alive\n\n"
                continue
            more = pending.result()
            if more is None:
                break
            yield _event(_result(name, form.more(task, more, first=first)))
            first, pending = False, asyncio.ensure_future(anext(following, None))
        yield _event(_result(name, form.over(task)))
    finally:
        pending.cancel()
        with suppress(asyncio.CancelledError):
            await pending
        await following.aclose()


async def _cancel(task: Task) -> None:
    if task.state in OVER or task.work is None:
        raise RpcError(_OVER, f"The task is {task.state} already.")
    task.work.cancel()
    await asyncio.wait({task.work})
    if task.state not in OVER:  # it had not begun yet
        task.tell("canceled")


def _check_size(message: Mapping[str, Any]) -> None:
    """A message is kept with its task, with all that came in it, and told again. Raises RpcError."""
    level: list[Any] = [message]
    for _ in range(_DEEPEST):
        level = [
            below
            for one in level
            for below in (cast("dict[str, Any]", one).values() if isinstance(one, dict) else cast("list[Any]", one))
            if isinstance(below, dict | list)
        ]
    if level:
        raise RpcError(_WRONG, f"A message is nested at most {_DEEPEST} levels deep.")
    if len(json.dumps(message, ensure_ascii=False)) > _LONGEST_MESSAGE:
        raise RpcError(_WRONG, f"A message has at most {_LONGEST_MESSAGE:,} characters, with all that comes with it.")


def _text(part: object) -> str:
    """The text of a part. Raises RpcError."""
    told = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    if isinstance(told.get("text"), str):
        return told["text"]
    if "data" in told:
        return json.dumps(told["data"], ensure_ascii=False)
    raise RpcError(_NO_SUCH_CONTENT, "Only parts of text and data are taken here.")


def _returns_at_once(params: Mapping[str, Any]) -> bool:
    given: object = params.get("configuration")
    wanted = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    return wanted.get("returnImmediately") is True or wanted.get("blocking") is False


def _result(name: object, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "result": result}


def _failed(name: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "error": {"code": code, "message": message}}


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"
