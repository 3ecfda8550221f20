"""Each call as a span with the GenAI attributes of OpenTelemetry, where the program around us has set that up.

`opentelemetry` is never imported here first: a program that wants traces has imported it, and every other one pays
nothing. No text of a message travels unless `generate_cfg["log_messages"]` is true.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

from core.llm.call_log import error_name, told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.record import ModelCall
    from core.llm.request import ChatRequest
    from core.llm.service import Served
    from core.messages.message import Message

_API: Final = "opentelemetry.trace"
_SETTINGS: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "n": "choice.count",
}


def begin_trace(model: Served, request: ChatRequest, request_id: str) -> Trace | None:
    """A span for one call, a child of the current one; `None` where nobody traces."""
    api: Any = sys.modules.get(_API)
    if api is None:
        return None
    service = model.service
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": service.provider,
        "gen_ai.request.model": model.model,
        "gen_ai.request.stream": True,
        "parlour.request_id": request_id,
        **_settings(request.generate),
    }
    if service.host:
        attributes["server.address"] = service.host
    if service.port:
        attributes["server.port"] = service.port
    tracer = api.get_tracer("parlour")
    span = tracer.start_span(f"chat {model.model}", kind=api.SpanKind.CLIENT, attributes=attributes)
    return Trace(span) if span.is_recording() else None


class Trace:
    """The span of a call that is under way.

    Args:
        span: As OpenTelemetry made it.
    """

    __slots__ = ("_span",)

    def __init__(self, span: Any) -> None:
        self._span = span

    def end(self, call: ModelCall, *, with_text: bool) -> None:
        """Say how the call ended, and end the span.

        Args:
            call: A call that is over.
            with_text: Whether what was said goes with it.
        """
        attributes = {name: value for name, value in _outcome(call).items() if value is not None}
        if with_text:
            attributes |= _text(call)
        self._span.set_attributes(attributes)
        if call.error is not None:
            api: Any = sys.modules[_API]
            self._span.set_status(api.StatusCode.ERROR, error_name(call.error))
        self._span.end()


def _settings(generate: Mapping[str, Any]) -> dict[str, Any]:
    said = {f"gen_ai.request.{name}": generate[key] for key, name in _SETTINGS.items() if generate.get(key) is not None}
    if stop := generate.get("stop"):
        said["gen_ai.request.stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
    return said


def _outcome(call: ModelCall) -> dict[str, Any]:
    usage = call.usage
    return {
        "gen_ai.response.id": call.response_id,
        "gen_ai.response.finish_reasons": ["tool_calls" if call.reason == "calls" else call.reason]
        if call.reason
        else None,
        "gen_ai.response.time_to_first_chunk": call.first_token_seconds,
        "gen_ai.usage.input_tokens": usage.prompt_tokens if usage else None,
        "gen_ai.usage.output_tokens": usage.completion_tokens if usage else None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens if usage else None,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens if usage else None,
        "parlour.usage.estimated": usage.estimated if usage else None,
        "parlour.usage.cost": usage.cost if usage else None,
        "parlour.outcome": call.outcome,
        "parlour.retries": call.retries,
        "parlour.cache_hit": call.cache_hit,
        "error.type": error_name(call.error) if call.error else None,
    }


def _text(call: ModelCall) -> dict[str, str]:
    asked: list[Any] = _parts(call.sent.messages)
    answered: list[Any] = _parts(call.parsed)
    for message in answered:
        message["finish_reason"] = call.reason or ""
    return {
        "gen_ai.input.messages": json.dumps(asked, ensure_ascii=False),
        "gen_ai.output.messages": json.dumps(answered, ensure_ascii=False),
    }


def _parts(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages in the form that the conventions give them: a role and parts."""
    shaped: list[dict[str, Any]] = []
    for message, said in zip(messages, told(messages), strict=True):
        parts: list[dict[str, Any]] = []
        call_id = (message.extra or {}).get("function_id", "")
        if message.reasoning_content:
            parts.append({"type": "reasoning", "content": said["reasoning_content"]})
        if message.role == "function":
            parts.append({"type": "tool_call_response", "id": call_id, "response": said["content"]})
        elif said["content"]:
            parts.append({"type": "text", "content": said["content"]})
        if call := message.function_call:
            parts.append({"type": "tool_call", "id": call_id, "name": call.name, "arguments": call.arguments})
        shaped.append({"role": "tool" if message.role == "function" else message.role, "parts": parts})
    return shaped
