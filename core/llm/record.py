"""One call of a model as one record: its four stages, and what it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from core.llm.request import ChatRequest
    from core.llm.service import Service
    from core.messages.events import FinishReason
    from core.messages.message import Message, Usage

Outcome: TypeAlias = Literal["finished", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What went in and came out of one call, at each of its four stages.

    Args:
        given: The request as the caller made it.
        sent: The request after fitting and templates; as given where the call failed before.
        raw: The reply as the service gave it, tags and all.
        parsed: The reply as the caller got it: thoughts, text and calls told apart.
        usage: Tokens and their price.
        reason: Why the reply ended; `None` where it did not come to its end.
        outcome: Whether it ended by itself, failed, or was left before its end.
        error: What made it fail.
        seconds: From the question to the end.
        first_token_seconds: From the question to the first of the reply; `None` where none came.
        retries: How many attempts came after the first.
        cache_hit: Whether the reply came from the cache.
        request_id: Our own name for the call; log lines and traces have it too.
        response_id: The service's name for its reply, where it said one.
        service: Where the model is.
        model: The model's name.
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
"""Told of each call when it is over, on the loop that ran it; it must be quick, and must not fail."""
