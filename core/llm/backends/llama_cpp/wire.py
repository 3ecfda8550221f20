"""Requests as llama.cpp takes them, and its chunks as events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from core.errors import ContextTooLongError, ModelMisbehavedError, ModelRefusedError, ModelServiceError
from core.llm.backends.local import local_turns
from core.llm.calling.neutral import has_calls, without_tokens
from core.llm.request import OUR_KEYS, ChatRequest, call_ids
from core.llm.usage import usage_from
from core.llm.wire.openai import ChunkReader, Senses, messages_json, settings_json
from core.llm.wire.tools import ToolNames
from core.messages.content import ContentItem
from core.messages.events import Event, MessageFinished, ReasoningDelta, TextDelta
from core.messages.message import SYSTEM, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.backends.llama_cpp.server import Chunk
    from core.messages.message import Usage

# Small models fall into loops: their makers advise a repetition penalty of 1.1, and the DRY sampler makes each token
# after 24 repeated ones less likely, across line breaks too (hence a breaker that nobody writes). Quoting a sentence
# stays possible.
_AGAINST_LOOPS: Final[Mapping[str, Any]] = {
    "repeat_penalty": 1.1,
    "repeat_last_n": 128,
    "dry_multiplier": 0.8,
    "dry_allowed_length": 24,
    "dry_penalty_last_n": 512,
    "dry_sequence_breakers": ["\u241e"],
}
_HINT: Final = "Check generate_cfg and response_format."


def question_body(request: ChatRequest, who: str) -> dict[str, Any]:
    """The request as llama.cpp takes it, `who` at the front of the system message.

    Tools that are still in the request are for the model's own chat template.

    Raises:
        ModelRefusedError: A tool cannot be sent as it is.
    """
    if _is_native(request):
        names = _AnyName()
        settings = settings_json(request)
        harmless = [_harmless(message) for message in request.messages]
        messages = messages_json((Message(SYSTEM, who), *harmless), Senses(), request.lang, names)
    else:
        settings = {key: value for key, value in request.generate.items() if key not in OUR_KEYS and value is not None}
        messages = local_turns(request.messages, request.lang, who=who)
    if "enable_thinking" in settings:
        given = {"enable_thinking": bool(settings.pop("enable_thinking")), **settings.get("chat_template_kwargs", {})}
        settings["chat_template_kwargs"] = given
    return {
        "temperature": 0.2,
        **_AGAINST_LOOPS,
        **settings,
        "messages": messages,
        "cache_prompt": True,
        "stream_options": {"include_usage": True},
    }


class LlamaReply:
    """Reads one reply.

    Args:
        request: The one that it answers.
    """

    def __init__(self, request: ChatRequest) -> None:
        native = _is_native(request)
        self._native = ChunkReader(call_ids(request.messages)) if native else None
        self._begun = False
        self._reason = ""
        self._usage: Usage | None = None

    def feed(self, chunk: Chunk | Exception) -> list[Event]:
        """The events of one chunk.

        Raises:
            ModelServiceError: It is a failure, or reports one.
        """
        if isinstance(chunk, Exception):
            raise _broken(chunk, begun=self._begun)
        if "error" in chunk:
            raise _failed(chunk["error"])
        self._begun = True
        if self._native is not None:
            return self._native.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        events: list[Event] = []
        for choice in chunk.get("choices") or ():
            delta: Mapping[str, Any] = choice.get("delta") or {}
            if thought := delta.get("reasoning_content"):
                events.append(ReasoningDelta(thought))
            if text := delta.get("content"):
                events.append(TextDelta(text))
            self._reason = choice.get("finish_reason") or self._reason
        self._usage = usage_from(chunk.get("usage")) or self._usage
        return events

    def close(self) -> list[Event]:
        """The last events.

        Raises:
            ModelMisbehavedError: The reply is incomplete.
        """
        events: list[Event] = []
        if self._native is not None:
            events = self._native.close()
        elif self._reason:
            events = [MessageFinished("length" if self._reason == "length" else "stop", self._usage)]
        if not events or not isinstance(events[-1], MessageFinished):
            raise ModelMisbehavedError(message="The built-in model stopped in the middle of its answer.")
        return events


def _is_native(request: ChatRequest) -> bool:
    """Whether llama.cpp handles tool calls; Parlour's calling templates would have taken them out of the request."""
    return bool(request.functions) or has_calls(request.messages)


class _AnyName(ToolNames):
    """Names as they are: llama.cpp takes any, and the model may write them as text."""

    def wire_name(self, name: str) -> str:
        """The name itself."""
        return name


def _harmless(message: Message) -> Message:
    items = [
        ContentItem(text=without_tokens(item.text or "")) if item.type == "text" else item for item in message.items
    ]
    return message.model_copy(update={"content": items}) if items else message


def _broken(error: Exception, *, begun: bool) -> ModelServiceError:
    if begun:
        return ModelMisbehavedError(error, message=f"The built-in model failed: {error}", hint="Ask again.")
    # What fails before the first chunk is a bad request, mostly a faulty schema.
    message = f"The built-in model cannot do what was asked: {error}"
    return ModelRefusedError(error, code="400", message=message, hint=_HINT)


def _failed(error: Mapping[str, Any]) -> ModelServiceError:
    code, message = str(error.get("code", "")), str(error.get("message", ""))
    if error.get("type") == "exceed_context_size_error":
        return ContextTooLongError(code=code, message=message, hint="Ask less at once, or begin a new conversation.")
    if code.startswith("4"):
        return ModelRefusedError(code=code, message=message, hint=_HINT)
    return ModelMisbehavedError(code=code, message=message, hint="Ask again, or start Parlour again.")
