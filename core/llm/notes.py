"""What the layers learn about one call while it runs; it travels with the request."""

from __future__ import annotations

from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.llm.request import ChatRequest
    from core.messages.events import Event


def _request_id() -> str:
    return token_hex(8)


@dataclass(slots=True)
class CallNotes:
    """Written by whoever knows, read by the layer that records the call.

    Attributes:
        request_id: Our own name for the call, in logs and traces.
        response_id: The service's name for its reply; a back end that hears one writes it here.
        retries: How many attempts came after the first.
        cache_hit: Whether the reply came from the cache.
        deadline: When the whole turn must be over, in the loop's seconds.
        sent: The request after templates and fitting.
        raw: The reply as it came, event by event; `None` where nobody wants it.
    """

    request_id: str = field(default_factory=_request_id)
    response_id: str | None = None
    retries: int = 0
    cache_hit: bool = False
    deadline: float | None = None
    sent: ChatRequest | None = None
    raw: list[Event] | None = None
