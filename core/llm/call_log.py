"""One line of the log for each call of a model: `model_call request_id=… service=… model=… total_ms=…`.

The logger is `core.llm.calls`, the level INFO. The same values travel in the log record as `model_call`, for handlers
that write JSON. Nothing in it is secret, and no text of a message unless `generate_cfg["log_messages"]` is true.
"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any, Final

from core.errors import ModelServiceError
from core.llm.wire.notes import note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.record import ModelCall
    from core.messages.message import Message

_logger = logging.getLogger("core.llm.calls")
_PLAIN: Final = re.compile(r"[\w.:/@+-]+")


def logs_calls() -> bool:
    """Whether anybody reads the lines."""
    return _logger.isEnabledFor(logging.INFO)


def log_call(call: ModelCall, *, with_text: bool) -> None:
    """Write the line.

    Args:
        call: A call that is over.
        with_text: Whether what was said goes into it too.
    """
    if not logs_calls():
        return
    values = {name: value for name, value in _values(call).items() if value is not None}
    if with_text:
        values["sent"], values["reply"] = told(call.sent.messages), told(call.parsed)
    line = " ".join(f"{name}={_written(value)}" for name, value in values.items())
    _logger.info("model_call %s", line, extra={"model_call": values})


def told(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages for a log or a trace: their text, with pictures and sounds named instead of shown."""
    shown: list[dict[str, Any]] = []
    for message in messages:
        said: dict[str, Any] = {"role": message.role, "content": "".join(map(note, message.items))}
        if message.reasoning_content:
            said["reasoning_content"] = message.reasoning_content
        if message.function_call:
            said["function_call"] = message.function_call.model_dump()
        shown.append(said)
    return shown


def error_name(error: BaseException) -> str:
    """The service's code where there is one, else the error's class; never its text."""
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


def _written(value: object) -> str:
    """A value that cannot be taken for two, or for another line."""
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)
