"""Asks again when a service was busy or out of reach, as long as nothing of the reply has been seen."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from core.errors import ModelUnavailableError
from core.messages.events import MessageStarted

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Source, Stream

logger = logging.getLogger(__name__)

Sleep: TypeAlias = Callable[[float], Awaitable[object]]

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LONGEST_ASKED_PAUSE = 60.0
_FINAL = ("DataInspectionFailed", "inappropriate content", "maximum context length")


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait before the next attempt, and with what.

    Args:
        sleep: Awaited with seconds.
        chance: A number from 0 to 1, so that many clients do not come back together.
    """

    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = random.random

    def length(self, attempt: int, asked: float | None) -> float:
        """Seconds before attempt `attempt` (from 1); what the service asked for counts, up to a minute."""
        if asked is not None:
            return min(max(asked, 0.0), LONGEST_ASKED_PAUSE)
        return min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE) * self.chance()


PAUSES = Pauses()


def retry(request: ChatRequest, below: Source, pauses: Pauses = PAUSES) -> Stream:
    """Up to `generate_cfg["max_retries"]` further attempts; 0, the default, adds nothing to the stream.

    Raises:
        ModelServiceError: The last attempt's, as it came.
    """
    attempts = int(request.generate.get("max_retries") or 0)
    return _attempts(request, below, attempts, pauses) if attempts > 0 else below(request)


async def _attempts(request: ChatRequest, below: Source, left: int, pauses: Pauses) -> Stream:
    started = False
    told = False
    for attempt in count(1):
        try:
            async with aclosing(below(request)) as events:
                async for event in events:
                    if isinstance(event, MessageStarted):
                        if started:  # every attempt announces itself; the reader hears it once
                            continue
                        started = True
                    else:
                        told = True
                    yield event
            return
        except ModelUnavailableError as error:
            if told or attempt > left or any(words in str(error) for words in _FINAL):
                raise
            pause = pauses.length(attempt, error.retry_after)
            logger.warning("The model is not available (%s); attempt %d in %.1f s.", error.code, attempt + 1, pause)
        await pauses.sleep(pause)
