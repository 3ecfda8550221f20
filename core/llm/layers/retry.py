"""Retries a call while nothing of the reply has been seen, and a circuit breaker for each service and key."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from core.errors import ContextTooLongError, ModelMisbehavedError, ModelServiceError, ModelUnavailableError
from core.llm.request import is_off
from core.llm.service import account_mark, key_of
from core.messages.events import MessageStarted

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from core.llm.request import ChatRequest, Layer, Source, Stream
    from core.llm.service import Served

logger = logging.getLogger(__name__)

Sleep: TypeAlias = Callable[[float], Awaitable[object]]

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
LONGEST_RETRY_AFTER: Final = 60.0
LONGEST_SILENCE: Final = 60.0
"""Seconds of silence after which a service is not retried: the user waits for all attempts together."""
_FINAL_WORDS: Final = ("datainspectionfailed", "inappropriate content", "maximum context length")
_BUSY_CODES: Final = frozenset({"408", "409", "429"})
_ALIVE_CODES: Final = frozenset({"409", "429"})


@dataclass(frozen=True, slots=True)
class Pauses:
    """The backoff before each retry.

    Args:
        sleep: Awaited with seconds.
        chance: Jitter from 0 to 1, so that clients do not retry in step.
        clock: Monotonic seconds.
    """

    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    def length(self, attempt: int, retry_after: float | None) -> float | None:
        """Seconds before retry `attempt` (from 1); `None` if the service asks for more than a minute."""
        if retry_after is None:
            return min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE) * self.chance()
        return max(retry_after, 0.0) if retry_after <= LONGEST_RETRY_AFTER else None


PAUSES: Final = Pauses()


def retry(model: Served, pauses: Pauses = PAUSES, known: Breakers | None = None) -> Layer:
    """The layer for one model: up to `generate_cfg["max_retries"]` retries, 0 by default.

    With or without retries it consults the circuit breaker of the service and its key: after five calls that failed
    for good within 30 s the next ones fail at once, for 30 s. `generate_cfg["circuit_breaker"]` may be false. Models
    in this process have no breaker.

    Raises:
        ModelServiceError: The last attempt's; or the first one that a retry cannot help.
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
                        if not call.has_begun:
                            if not isinstance(event, MessageStarted):
                                call.answered()
                            elif started:  # announced by an earlier attempt
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
    """The retries of one call, and its reports to the breaker."""

    request: ChatRequest
    retries: int
    pauses: Pauses
    breaker: Breaker
    has_begun: bool = False
    _attempt: int = 0
    _settled: bool = False
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self._began = self.pauses.clock()

    def answered(self) -> None:
        """The reply has begun: no more retries."""
        self.has_begun = self._settled = True
        self.breaker.succeeded()

    def failed(self, error: ModelServiceError) -> None:
        """The call failed for good."""
        if not self._settled:
            self._settled = True
            if may_help(error) and not _is_busy(error):
                self.breaker.failed()
            else:  # busy or refusing, but alive
                self.breaker.succeeded()

    def ended(self) -> None:
        """The call is over, for whatever reason."""
        if not self._settled:
            self.breaker.abandoned()

    def pause(self, error: ModelServiceError) -> float | None:
        """Seconds before the next retry; `None` if it cannot help or would take too long."""
        self._attempt += 1
        if self.has_begun or self._attempt > self.retries or not may_help(error):
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
    """Whether a retry may help: by the class of our back ends' errors, by the code of a plain `ModelServiceError`."""
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
    return isinstance(error.exception, OSError)  # connection errors and timeouts


def _is_busy(error: ModelServiceError) -> bool:
    """Whether the service is alive but overloaded."""
    code = str(error.code or "")
    return code in _ALIVE_CODES or (error.words_key == "model_overloaded" and not code.startswith("5"))


def _breaker(model: Served, known: Breakers | None) -> Breaker | None:
    """The breaker of the model's service; `None` for a model in this process."""
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


FAILURES: Final = 5
WITHIN_SECONDS: Final = 30.0
REST_SECONDS: Final = 30.0
MOST_KNOWN: Final = 1024
"""Breakers that are kept, least recently used dropped: on a shared page everybody brings a key."""

Clock = Callable[[], float]


@dataclass(slots=True)
class Breaker:
    """The circuit breaker of one service and key: five failures within 30 s open it for 30 s, then one call may try.

    Thread-safe. A call that `admit` let through reports its end: `succeeded`, `failed` or `abandoned`.

    Args:
        clock: Monotonic seconds.
    """

    clock: Clock = time.monotonic
    _failures: deque[float] = field(default_factory=lambda: deque[float](maxlen=FAILURES))
    _opened: float | None = None
    _trying: bool = False
    _guard: Lock = field(default_factory=Lock)

    def admit(self) -> float | None:
        """`None` to let a call through, else the seconds until one may try."""
        with self._guard:
            if self._opened is None:
                return None
            left = self._opened + REST_SECONDS - self.clock()
            if left > 0:
                return left
            if self._trying:
                return 1.0  # another call is trying
            self._trying = True
            return None

    def succeeded(self) -> None:
        """The service answered."""
        with self._guard:
            self._failures.clear()
            self._opened, self._trying = None, False

    def failed(self) -> None:
        """The service could not be reached, or failed."""
        with self._guard:
            now = self.clock()
            self._failures.append(now)
            if self._trying or (len(self._failures) == FAILURES and now - self._failures[0] <= WITHIN_SECONDS):
                self._opened, self._trying = now, False

    def abandoned(self) -> None:
        """The call ended without saying anything about the service: another may try."""
        with self._guard:
            self._trying = False


@dataclass(slots=True)
class Breakers:
    """One breaker for each service and key."""

    _known: dict[Hashable, Breaker] = field(default_factory=dict["Hashable", Breaker])
    _guard: Lock = field(default_factory=Lock)

    def of(self, key: Hashable) -> Breaker:
        """The breaker for `key`."""
        with self._guard:
            found = self._known[key] = self._known.pop(key, None) or Breaker()  # most recently used last
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]
            return found


@cache
def breakers() -> Breakers:
    """The breakers of this process."""
    return Breakers()
