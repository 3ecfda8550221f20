"""One call of a model as a record, a log line, and an OpenTelemetry span.

The log line reads `model_call request_id=… service=… model=… total_ms=…`; its logger is `core.llm.calls`, its level
INFO, and the same values are in the log record as `model_call`, for handlers that write JSON. A span has the GenAI
attributes; `opentelemetry` is used only if the program has imported it. Neither holds secrets, nor any text of a
message unless `generate_cfg["log_messages"]` is true.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from core.errors import ModelServiceError
from core.llm.wire.turns import note
from core.observing import begun, is_traced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.llm.request import ChatRequest
    from core.llm.service import Served, Service
    from core.messages.events import FinishReason
    from core.messages.message import Message, Usage
    from core.observing import Span

Outcome: TypeAlias = Literal["finished", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One finished call, with its four stages: given, sent, raw, parsed.

    Args:
        given: The request as the caller made it.
        sent: The request after fitting and templates; as given if the call failed before.
        raw: The reply as the service sent it, tags included.
        parsed: The reply as the caller got it: reasoning, text and calls.
        usage: Tokens and cost.
        reason: The finish reason; `None` if the reply is incomplete.
        outcome: Whether it finished, failed, or was stopped.
        seconds: From the request to the end.
        first_token_seconds: From the request to the first of the reply; `None` if nothing came.
        retries: How many attempts came after the first.
        cache_hit: Whether the reply came from the cache.
        request_id: Our own id of the call, also in log lines and traces.
        response_id: The service's id of its reply, if there is one.
    """

    given: ChatRequest
    sent: ChatRequest
    raw: list[Message]
    parsed: list[Message]
    usage: Usage | None
    reason: FinishReason | None
    outcome: Outcome
    error: BaseException | None
    seconds: float
    first_token_seconds: float | None
    retries: int
    cache_hit: bool
    request_id: str
    response_id: str | None
    service: Service
    model: str


OnCall: TypeAlias = Callable[[ModelCall], object]
"""Called after each call, on the loop that ran it; must be quick, and must not fail."""


_logger = logging.getLogger("core.llm.calls")
_PLAIN: Final = re.compile(r"[\w.:/@+-]+")


def logs_calls() -> bool:
    """Whether the log lines are enabled."""
    return _logger.isEnabledFor(logging.INFO)


def log_call(call: ModelCall, *, with_text: bool) -> None:
    """Write the log line.

    Args:
        with_text: Whether to include the messages' text.
    """
    if not logs_calls():
        return
    values = {name: value for name, value in _values(call).items() if value is not None}
    if with_text:
        values["sent"], values["reply"] = logged_messages(call.sent.messages), logged_messages(call.parsed)
    line = " ".join(f"{name}={_quoted(value)}" for name, value in values.items())
    _logger.info("model_call %s", line, extra={"model_call": values})


def logged_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages for a log or a trace: their text, with media as notes."""
    shown: list[dict[str, Any]] = []
    for message in messages:
        logged: dict[str, Any] = {"role": message.role, "content": "".join(map(note, message.items))}
        if message.reasoning_content:
            logged["reasoning_content"] = message.reasoning_content
        if message.function_call:
            logged["function_call"] = message.function_call.model_dump()
        shown.append(logged)
    return shown


def error_name(error: BaseException) -> str:
    """The service's error code, else the class of the error; never its message."""
    code = error.code if isinstance(error, ModelServiceError) else None
    return str(code or type(error).__name__)


def _values(call: ModelCall) -> dict[str, Any]:
    usage, first = call.usage, call.first_token_seconds
    return {
        "request_id": call.request_id,
        "response_id": call.response_id,
        "service": call.service.name,
        "model": call.model,
        "outcome": call.outcome,
        "reason": call.reason,
        "error": error_name(call.error) if call.error else None,
        "first_token_ms": None if first is None else round(first * 1000, 1),
        "total_ms": round(call.seconds * 1000, 1),
        "prompt_tokens": usage.prompt_tokens if usage else None,
        "completion_tokens": usage.completion_tokens if usage else None,
        "reasoning_tokens": usage.reasoning_tokens if usage else None,
        "cached_tokens": usage.cached_tokens if usage else None,
        "estimated": usage.estimated if usage else None,
        "cost": usage.cost if usage else None,
        "retries": call.retries,
        "cache_hit": call.cache_hit,
    }


def _quoted(value: object) -> str:
    """A value quoted so that it cannot break the line."""
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


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
    """A span for one call, a child of the current one; `None` without tracing."""
    if not is_traced():
        return None
    service = model.service
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": service.provider,
        "gen_ai.request.model": model.model,
        "gen_ai.request.stream": True,
        "parlour.request_id": request_id,
        "server.address": service.host or None,
        "server.port": service.port or None,
        **_settings(request.generate),
    }
    if request.purpose != "answer":
        attributes["parlour.purpose"] = request.purpose
    made = begun(f"chat {model.model}", attributes, "model", side="client")
    return None if made is None else Trace(made)


class Trace:
    """The span of a running call."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def end(self, call: ModelCall, *, with_text: bool) -> None:
        """Set the outcome, and end the span.

        Args:
            with_text: Whether to include the messages' text.
        """
        self._span.set(_outcome(call))
        if with_text:
            self._span.set(_text(call))
        if call.error is not None:
            self._span.fail_with(call.error)
            self._span.fail(error_name(call.error))
        self._span.end()


def _settings(generate: Mapping[str, Any]) -> dict[str, Any]:
    attributes = {
        f"gen_ai.request.{name}": generate[key] for key, name in _SETTINGS.items() if generate.get(key) is not None
    }
    if stop := generate.get("stop"):
        attributes["gen_ai.request.stop_sequences"] = [stop] if isinstance(stop, str) else list(stop)
    return attributes


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
    """Messages in the form of the GenAI conventions: a role and parts."""
    shaped: list[dict[str, Any]] = []
    for message, logged in zip(messages, logged_messages(messages), strict=True):
        parts: list[dict[str, Any]] = []
        call_id = (message.extra or {}).get("function_id", "")
        if message.reasoning_content:
            parts.append({"type": "reasoning", "content": logged["reasoning_content"]})
        if message.role == "function":
            parts.append({"type": "tool_call_response", "id": call_id, "response": logged["content"]})
        elif logged["content"]:
            parts.append({"type": "text", "content": logged["content"]})
        if call := message.function_call:
            parts.append({"type": "tool_call", "id": call_id, "name": call.name, "arguments": call.arguments})
        shaped.append({"role": "tool" if message.role == "function" else message.role, "parts": parts})
    return shaped
