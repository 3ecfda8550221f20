"""Log lines as JSON objects, for what collects and searches them."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, cast

from core.observing import ids_now


class JsonLines(logging.Formatter):
    """One object for each record: `time`, `level`, `logger`, `message`, and what it belongs to.

    `run` and `conversation` are there within a reply, `trace` and `span` where it is traced, `error` with the stack
    where an exception was logged, and `model_call` with its values where a model was called.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **ids_now(),
        }
        call: object = getattr(record, "model_call", None)
        if isinstance(call, dict):
            told["model_call"] = cast("dict[str, Any]", call)
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


def log_as_json() -> None:
    """Have all handlers of this process write such lines from now on."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonLines())
