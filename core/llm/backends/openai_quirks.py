"""What one service turned out not to take. It is learned from a refusal, once, and the question asked again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

_STREAM: Final = re.compile(
    r'"param":\s*"stream"|verified to stream|(?:stream|streaming) (?:is|are) not supported|not support stream',
    re.IGNORECASE,
)


@dataclass(slots=True)
class Quirks:
    """What is asked for, as far as the service has not refused it.

    Args:
        usage: Tokens are asked for; older servers refuse the option.
        streams: The reply comes in pieces; a few models give only whole ones.
        parallel: `parallel_tool_calls` may be said; models that reason refuse it.
        short_limit: The limit is called `max_tokens`; newer models of OpenAI's want `max_completion_tokens`.
    """

    usage: bool = True
    streams: bool = True
    parallel: bool = True
    short_limit: bool = True

    def fitted(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request as this service takes it."""
        whole = {**body, "stream": self.streams}
        if self.usage and self.streams:
            whole.setdefault("stream_options", {"include_usage": True})
        else:
            whole.pop("stream_options", None)
        if not self.short_limit and "max_tokens" in whole:
            whole["max_completion_tokens"] = whole.pop("max_tokens")
        if not self.parallel:
            whole.pop("parallel_tool_calls", None)
        return whole

    def learn(self, refusal: str, asked: dict[str, Any]) -> bool:
        """Whether the service's words tell something new, so that asking again may help."""
        if "stream_options" in asked and "stream_options" in refusal:
            self.usage = False
        elif asked["stream"] and _STREAM.search(refusal):
            self.streams = False
        elif "parallel_tool_calls" in asked and "parallel_tool_calls" in refusal:
            self.parallel = False
        elif "max_tokens" in asked and "max_completion_tokens" in refusal:
            self.short_limit = False
        else:
            return False
        return True
