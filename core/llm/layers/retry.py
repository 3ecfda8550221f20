"""Asks again when a service was busy or out of reach, as long as nothing of the reply has been seen."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from core.errors import ContextTooLongError, ModelMisbehavedError, ModelServiceError, ModelUnavailableError
from core.llm.layers.breaker import Breaker, Breakers, breakers
from core.llm.request import is_off
from core.llm.service import account_mark, key_of
from core.messages.events import MessageStarted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.request import ChatRequest, Layer, Source, Stream
    from core.llm.service import Served

logger = logging.getLogger(__name__)

Sleep: TypeAlias = Callable[[float], Awaitable[object]]

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
LONGEST_ASKED_PAUSE: Final = 60.0
LONGEST_SILENCE: Final = 60.0
"""Seconds after which a service that says nothing is given up, not asked again: somebody waits for all attempts."""
_FINAL_WORDS: Final = ("datainspectionfailed", "inappropriate content", "maximum context length")
_BUSY_CODES: Final = frozenset({"408", "409", "429"})
_ALIVE_CODES: Final = frozenset({"409", "429"})


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait before the next attempt, and with what.

    Args:
        sleep: Awaited with seconds.
        chance: A number from 0 to 1, so that many clients do not come back together.
        clock: Seconds that never go back.
    """

    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    def length(self, attempt: int, asked: float | None) -> float | None:
        """Seconds before attempt `attempt` (from 1); `None` where the service asks for more than a minute."""
        if asked is None:
            return min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE) * self.chance()
        return max(asked, 0.0) if asked <= LONGEST_ASKED_PAUSE else None


PAUSES: Final = Pauses()


def retry(model: Served, pauses: Pauses = PAUSES, known: Breakers | None = None) -> Layer:
    """The layer for one model: up to `generate_cfg["max_retries"]` further attempts; 0 is the default.

    With or without retries it holds the circuit breaker of the service and its key: after five calls that failed for
    good within 30 s the next ones fail at once, for 30 s. `generate_cfg["circuit_breaker"]` may be false. A model in
    this process has no service to spare.

    Raises:
        ModelServiceError: The last attempt's, as it came; or at once, where trying again cannot help.
    """

    def layer(request: ChatRequest, below: Source) -> Stream:
        retries = max(0, int(float(request.generate.get("max_retries") or 0)))
        breaker = None if is_off(request.generate.get("circuit_breaker")) else _breaker(model, known)
        if not retries and breaker is None:
            return below(request)
        return _attempts(_Call(request, retries, pauses, breaker or Breaker()), below, model)

    return layer


async def _attempts(call: _Call, below: Source, model: Served) -> Stream:
    rest = call.breaker.admit()
    if rest is not None:
        raise _resting(model, rest)
    started = False
    try:
        while True:
            try:
                async with aclosing(below(call.request)) as events:
                    async for event in events:
                        if not call.told:
                            if not isinstance(event, MessageStarted):
                                call.answered()
                            elif started:  # every attempt announces itself; the reader hears it once
                                continue
                            started = True
                        yield event
                return
            except ModelServiceError as error:
                pause = call.pause(error)
                if pause is None:
                    call.failed(error)
                    raise
            await call.pauses.sleep(pause)
    finally:
        call.ended()


@dataclass(slots=True)
class _Call:
    """One call: how often it may be asked again, and what its service's breaker is told of it."""

    request: ChatRequest
    retries: int
    pauses: Pauses
    breaker: Breaker
    told: bool = False
    _attempt: int = 0
    _settled: bool = False
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        """Time counts from now on."""
        self._began = self.pauses.clock()

    def answered(self) -> None:
        """The first of the reply is there: from now on nothing is asked again."""
        self.told = self._settled = True
        self.breaker.succeeded()

    def failed(self, error: ModelServiceError) -> None:
        """The call is lost."""
        if not self._settled:
            self._settled = True
            if may_help(error) and not _is_busy(error):
                self.breaker.failed()
            else:  # busy, or unwilling: it is there
                self.breaker.succeeded()

    def ended(self) -> None:
        """Nothing more comes, whatever the reason."""
        if not self._settled:
            self.breaker.left()

    def pause(self, error: ModelServiceError) -> float | None:
        """Seconds to wait before asking again; `None` where it cannot help, or would take too long."""
        self._attempt += 1
        if self.told or self._attempt > self.retries or not may_help(error):
            return None
        if error.words_key == "model_slow" and self.pauses.clock() - self._began >= LONGEST_SILENCE:
            return None
        pause, notes = self.pauses.length(self._attempt, error.retry_after), self.request.notes
        if pause is None:
            return None
        if notes is not None:
            if notes.deadline is not None and asyncio.get_running_loop().time() + pause >= notes.deadline:
                return None
            notes.retries = self._attempt
        code, number = error.code or "no answer", self._attempt + 1
        logger.warning("The model is not available (%s); attempt %d in %.1f s.", code, number, pause)
        return pause


def may_help(error: ModelServiceError) -> bool:
    """Whether asking the same again may help.

    By the error's class where a back end of ours made it, by its code where it is the seed's plain one.
    """
    if isinstance(error, ContextTooLongError | ModelMisbehavedError) or error.words_key == "model_quota":
        return False
    code = str(error.code or "")
    about = f"{code} {error}".lower()
    if any(words in about for words in _FINAL_WORDS):
        return False
    if code in _BUSY_CODES or isinstance(error, ModelUnavailableError):
        return True
    if type(error) is not ModelServiceError:
        return False
    if code:
        return len(code) == 3 and code.isdigit() and code.startswith("5")
    return isinstance(error.exception, OSError)  # connections and time-outs are its children


def _is_busy(error: ModelServiceError) -> bool:
    """Whether the service is there, and says that it has too much to do."""
    code = str(error.code or "")
    return code in _ALIVE_CODES or (error.words_key == "model_overloaded" and not code.startswith("5"))


def _breaker(model: Served, known: Breakers | None) -> Breaker | None:
    """The breaker of the model's service; a model in this process has none."""
    service = model.service
    if not service.address and service.here:
        return None
    return (known or breakers()).of(account_mark(service.address or f"{service.name} {model.model}", key_of(model.cfg)))


def _resting(model: Served, rest: float) -> ModelUnavailableError:
    name = model.service.name
    seconds = max(1, round(rest))
    about: Mapping[str, Any] = {"host": name, "model": model.model, "seconds": seconds}
    error = ModelUnavailableError(
        None,
        None,
        f"{name} failed several times in a row and is left alone for {seconds} s.",
        hint="Wait a little and ask again.",
        retry_after=float(seconds),
        key="model_resting",
    )
    error.details |= about
    return error
