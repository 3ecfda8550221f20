"""AG-UI, the protocol by which agents speak to front ends: what is asked, and a reply as its events.

Of version 1.0 (https://docs.ag-ui.com/concepts/events). Experimental: state, activities and interrupts have no part.
"""

from __future__ import annotations

import json
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, cast

from core.doors.asked import BadRequestError, chat_asked, listed
from core.doors.chat import calls_json
from core.doors.citations import cited_places
from core.messages.events import CallDelta, CallStarted, MessageStarted, ReasoningDelta, TextDelta, ToolFinished

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.doors.asked import Asked
    from core.doors.door import Answer
    from core.messages.events import Event

MOST_MESSAGES: Final = 5_000
CITATIONS: Final = "citations"
"""The name of the event that says where the marks of an answer lead."""
_LONGEST_ID: Final = 200
_SPOKEN: Final = frozenset({"user", "assistant", "system", "developer", "tool"})
_FORMATS: Final = {"audio/mpeg": "mp3", "audio/mp3": "mp3"}


def chat_messages(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a run's input as those of a chat completion; what the front end is in stands first.

    Raises:
        BadRequestError: They cannot be read.
    """
    told: list[dict[str, Any]] = []
    context: object = given.get("context") or []
    if not isinstance(context, list) or not all(isinstance(one, dict) for one in cast("list[Any]", context)):
        raise BadRequestError("context must be a list of objects.", param="context")
    lines = [f"{one.get('description')}: {one.get('value')}" for one in cast("list[dict[str, Any]]", context)]
    if lines:
        told.append({"role": "system", "content": "\n".join(lines)})
    spoken = (one for one in listed(given, "messages", MOST_MESSAGES) if one.get("role") in _SPOKEN)
    return told + [_chat_message(one) for one in spoken]


def run_asked(given: Mapping[str, Any], model: str, messages: Sequence[Mapping[str, Any]]) -> Asked:
    """A run's input.

    Args:
        model: Who answers.
        messages: As `chat_messages` gave them, with all pictures and files in them.

    Raises:
        BadRequestError: It cannot be read.
    """
    tools: object = given.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(one, dict) for one in cast("list[Any]", tools)):
        raise BadRequestError("tools must be a list of objects.", param="tools")
    functions = [{"type": "function", "function": _function(one)} for one in cast("list[dict[str, Any]]", tools)]
    return chat_asked({"model": model, "stream": True, **({"tools": functions} if functions else {})}, messages)


def id_of(given: Mapping[str, Any], name: str) -> str:
    """`threadId` or `runId`, which come back with the first event and the last. Raises BadRequestError."""
    value = given.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_ID:
        raise BadRequestError(f"{name} must be a text of at most {_LONGEST_ID} letters.", param=name)
    return value


class RunReply:
    """One run.

    Args:
        answer: The reply.
        thread: The run's `threadId`.
        run: Its `runId`.
        files: The ids of files that the program brought, by the ids of their documents.
    """

    def __init__(self, answer: Answer, thread: str, run: str, files: Mapping[str, str]) -> None:
        self._answer = answer
        self._ids = {"threadId": thread, "runId": run}
        self._files = files
        self._message = ""  # the id of the text that is being written
        self._thought = ""
        self._said: list[str] = []
        self._calls: dict[str, tuple[str, list[str]]] = {}  # of the house's tools: name and arguments so far
        self._streamed: list[str] = []  # calls of a model alone, as they come

    def first(self) -> bytes:
        """What comes before all else."""
        return _event("RUN_STARTED", **self._ids, protocolVersion="1.0")

    def piece(self, event: Event) -> bytes:
        """What an event adds; empty for what is not told."""
        match event:
            case TextDelta(text):
                return self._text(text)
            case ReasoningDelta(text):
                return self._thinks(text)
            case MessageStarted():
                return self._closed()
            case CallStarted(call_id, name):
                if self._answer.guard is not None:
                    self._calls[call_id] = (name, [])
                    return self._closed()
                self._streamed.append(call_id)
                return self._closed() + _event("TOOL_CALL_START", toolCallId=call_id, toolCallName=name)
            case CallDelta(call_id, arguments) if call_id in self._streamed:
                return _event("TOOL_CALL_ARGS", toolCallId=call_id, delta=arguments) if arguments else b""
            case CallDelta(call_id, arguments) if call_id in self._calls:
                self._calls[call_id][1].append(arguments)
                return b""
            case ToolFinished(call_id, message):
                name, pieces = self._calls.get(call_id, (message.name or "", []))
                result: dict[str, Any] = {"messageId": _fresh("tool"), "toolCallId": call_id, "role": "tool"}
                if (message.extra or {}).get("failed"):
                    result["metadata"] = {"failed": True}
                made = self._closed() + _call(call_id, name, "".join(pieces))
                return made + _event("TOOL_CALL_RESULT", **result, content=message.get_text_content())
            case _:
                return b""

    async def last(self) -> bytes:
        """What ends it: calls of the front end's own tools, where marks lead, and what it took."""
        guard = self._answer.guard
        told = guard.told(self._answer.lang) if guard is not None else ""
        pieces = [self._closed(), self._text(told) if told else b"", self._closed()]
        pieces += [_event("TOOL_CALL_END", toolCallId=one) for one in self._streamed]
        handed = calls_json(self._answer.messages(), guard.handed) if guard is not None and guard.handed else []
        pieces += [_call(one["id"], one["function"]["name"], one["function"]["arguments"]) for one in handed]
        if guard is not None:
            reply = (*self._answer.earlier, *self._answer.messages())
            if places := cited_places(reply, "".join(self._said), self._files):
                pieces.append(_event("CUSTOM", name=CITATIONS, value=places))
        waiting = [*self._streamed, *(one["id"] for one in handed)]
        outcome = {"type": "success", **({"pendingToolCallIds": waiting} if waiting else {})}
        usage = await self._answer.account.usage()
        used: dict[str, Any] = {"model": self._answer.asked.model, "inputTokens": usage.prompt_tokens}
        used |= {"outputTokens": usage.completion_tokens, "totalTokens": usage.prompt_tokens + usage.completion_tokens}
        used |= {"reasoningTokens": usage.reasoning_tokens, "cachedInputTokens": usage.cached_tokens}
        return b"".join(pieces) + _event("RUN_FINISHED", **self._ids, outcome=outcome, usage=[used])

    def failed(self, told: dict[str, object]) -> bytes:
        """What ends one that failed in its midst."""
        error = cast("Mapping[str, Any]", told["error"])
        return self._closed() + _event("RUN_ERROR", message=error["message"], code=error.get("code") or "failed")

    # ---- inside

    def _text(self, text: str) -> bytes:
        begun = b""
        if not self._message:
            if not text.strip():
                return b""
            begun = self._closed()
            self._message, text = _fresh("msg"), text.lstrip()
            begun += _event("TEXT_MESSAGE_START", messageId=self._message, role="assistant")
            self._said += ["\n\n"] if self._said else []
        self._said.append(text)
        return begun + _event("TEXT_MESSAGE_CONTENT", messageId=self._message, delta=text)

    def _thinks(self, text: str) -> bytes:
        begun = b""
        if not self._thought:
            begun, self._thought = self._closed(), _fresh("thought")
            begun += _event("REASONING_START", messageId=self._thought)
            begun += _event("REASONING_MESSAGE_START", messageId=self._thought, role="reasoning")
        return begun + (_event("REASONING_MESSAGE_CONTENT", messageId=self._thought, delta=text) if text else b"")

    def _closed(self) -> bytes:
        """End the text or thought that is being written."""
        message, thought = self._message, self._thought
        self._message = self._thought = ""
        if thought:
            done = _event("REASONING_MESSAGE_END", messageId=thought)
            return done + _event("REASONING_END", messageId=thought)
        return _event("TEXT_MESSAGE_END", messageId=message) if message else b""


def _call(call_id: str, name: str, arguments: str) -> bytes:
    """A call whose arguments are all there."""
    begun = _event("TOOL_CALL_START", toolCallId=call_id, toolCallName=name)
    said = _event("TOOL_CALL_ARGS", toolCallId=call_id, delta=arguments) if arguments else b""
    return begun + said + _event("TOOL_CALL_END", toolCallId=call_id)


def _event(kind: str, **fields: Any) -> bytes:
    return b"data: " + json.dumps({"type": kind, **fields}).encode() + b"\n\n"


def _fresh(kind: str) -> str:
    return f"{kind}_{token_hex(12)}"


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    parameters: Any = tool.get("parameters") or {"type": "object", "properties": dict[str, Any]()}
    return {"name": tool.get("name"), "description": tool.get("description") or "", "parameters": parameters}


def _chat_message(given: Mapping[str, Any]) -> dict[str, Any]:
    role, content = given["role"], given.get("content")
    parts = [_part(one) for one in cast("list[Any]", content)] if isinstance(content, list) else content
    told: dict[str, Any] = {"role": "system" if role == "developer" else role, "content": parts}
    if role == "assistant" and given.get("toolCalls"):
        told["tool_calls"] = given["toolCalls"]
    if role == "tool":
        told["tool_call_id"] = given.get("toolCallId")
    return told


def _part(given: Any) -> Any:
    """A part of a message as one of OpenAI's; what cannot be read is told of by whoever reads those."""
    if not isinstance(given, dict):
        return given
    part = cast("dict[str, Any]", given)
    source: Any = part.get("source")
    if not isinstance(source, dict):
        return part
    held = cast("dict[str, Any]", source)
    kind, value, media = held.get("type"), held.get("value"), str(held.get("mimeType") or "")
    data = f"data:{media or 'application/octet-stream'};base64,{value}"
    match part.get("type"), kind:
        case "image", "data" | "url":
            return {"type": "image_url", "image_url": {"url": data if kind == "data" else value}}
        case "audio", "data":
            heard = _FORMATS.get(media, media.rpartition("/")[2].removeprefix("x-"))
            return {"type": "input_audio", "input_audio": {"data": value, "format": heard}}
        case "document", "data":
            return {"type": "file", "file": {"file_data": data, "filename": _name_of(part)}}
        case "document", "url":
            return {"type": "file", "file": {"file_url": value}}
        case _, "file":
            return {"type": "file", "file": {"file_id": value}}
        case _:
            return part


def _name_of(part: Mapping[str, Any]) -> str:
    about: Any = part.get("metadata")
    name: Any = cast("dict[str, Any]", about).get("filename") if isinstance(about, dict) else None
    return name if isinstance(name, str) else ""
