"""Observes each call from outside: time, tokens, cost, log, trace, a record for listeners, and the turn's timeout."""

from __future__ import annotations

import asyncio
import weakref
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, Protocol

from core.bridge.watchdog import AwakeTimer
from core.errors import ModelMisbehavedError, ModelServiceError, ModelUnavailableError
from core.llm.layers.fit_context import HEAVY, is_heavy
from core.llm.ledger import LedgerCall, agent_now, ledger_now
from core.llm.request import CallNotes, is_on
from core.llm.service import Served
from core.llm.telemetry import ModelCall, OnCall, Outcome, Trace, begin_trace, log_call, logs_calls
from core.llm.usage import cost_of, estimated_for, fetch_list, has_price, written
from core.messages.events import Event, MessageFinished, MessageStarted, TextDelta
from core.messages.transcript import Transcript
from core.observing import is_measured
from core.observing import record as measure

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from core.llm.ledger import Ledger
    from core.llm.request import ChatRequest, Layer, Source, Stream


class Recorded(Served, Protocol):
    """A model with listeners for its calls."""

    call_listeners: tuple[OnCall, ...]
    label: str


def record(model: Recorded) -> Layer:
    """The layer for one model, the outermost of those that are always active.

    It ends a turn that takes too long, completes the usage (estimated if the service sends none, with the cost if the
    price is known), and reports the call when it is over.

    Raises:
        ModelServiceError: The turn took longer than `generate_cfg["turn_timeout"]`.
    """

    def layer(request: ChatRequest, below: Source) -> Stream:
        watch = _Watch(model, request)
        stream = _recorded(watch, below)
        watch.limit = TurnLimit(turn_seconds(request.generate, model), stream)
        return stream

    return layer


def stages(request: ChatRequest, below: Source) -> Stream:
    """The layer that notes the request as sent, and the raw reply if somebody wants it."""
    notes = request.notes
    if notes is None:
        return below(request)
    notes.sent = request
    return below(request) if notes.raw is None else _copied(request, below, notes.raw)


async def _copied(request: ChatRequest, below: Source, raw: list[Event]) -> Stream:
    async with aclosing(below(request)) as events:
        async for event in events:
            raw.append(event)
            yield event


async def _recorded(watch: _Watch, below: Source) -> Stream:
    request = watch.begin()
    keep, limit = watch.events.append, watch.limit
    try:  # a layer may raise before there is a stream
        async with aclosing(below(request)) as events:
            async for event in events:
                if isinstance(event, TextDelta):  # the hot path
                    if watch.first is None:
                        watch.first = perf_counter()
                else:
                    event = await watch.other(event)  # noqa: PLW2901 - the last one, with its usage completed
                keep(event)
                yield event
                if limit.over:
                    raise limit.error(watch.model, told=True)
    except BaseException as error:
        watch.failed(error)
        raise
    finally:
        watch.end()


@dataclass(slots=True)
class _Watch:
    """What is observed of one call."""

    model: Recorded
    given: ChatRequest
    events: list[Event] = field(default_factory=list["Event"])
    first: float | None = None
    limit: TurnLimit = field(init=False)
    _notes: CallNotes = field(default_factory=CallNotes)
    _began: float = field(default_factory=perf_counter)
    _end: MessageFinished | None = None
    _trace: Trace | None = None
    _error: BaseException | None = None
    _ledger: Ledger | None = None
    _line: LedgerCall | None = None

    def begin(self) -> ChatRequest:
        """Start the clocks; returns the request with its notes."""
        self.limit.begin()
        notes = self._notes
        notes.deadline = self.limit.deadline
        if self.model.call_listeners or is_on(self.given.generate.get("log_messages")):
            notes.raw = []
        self._trace = begin_trace(self.model, self.given, notes.request_id)
        if has_price(self.model.service):
            fetch_list()
        self._ledger = ledger_now()
        if self._ledger is not None:
            self._open(self._ledger)
        return replace(self.given, notes=notes)

    async def other(self, event: Event) -> Event:
        """Note an event that is not text; the last one comes back with its usage completed."""
        if isinstance(event, MessageFinished):
            self._end = await self._finished(event)
            return self._end
        if self.first is None and not isinstance(event, MessageStarted):
            self.first = perf_counter()
        return event

    def failed(self, error: BaseException) -> None:
        """The call ended early.

        Raises:
            ModelServiceError: In place of a cancellation by the turn limit.
        """
        if isinstance(error, asyncio.CancelledError) and self.limit.was_it():
            self._error = self.limit.error(self.model, told=self.first is not None)
            raise self._error from error
        if not isinstance(error, GeneratorExit | asyncio.CancelledError):
            self._error = error

    def end(self) -> None:
        """Report the call."""
        self.limit.close()
        if self._ledger is not None and self._line is not None:
            self._close(self._ledger, self._line)
        if is_measured():
            self._measure()
        traced, listeners = self._trace, self.model.call_listeners
        if traced is None and not listeners and not logs_calls():
            return
        call = self._call()
        wants_text = is_on(self.given.generate.get("log_messages"))
        if traced is not None:
            traced.end(call, with_text=wants_text)
        log_call(call, with_text=wants_text)
        for listen in listeners:
            listen(call)

    def _open(self, ledger: Ledger) -> None:
        """Tell the ledger that the call begins."""
        notes, here = self._notes, self.model.service.here
        line = LedgerCall(notes.request_id, self.model, here, self.given, *agent_now())
        notes.wire = line.wire
        notes.on_read = partial(ledger.reads, line)
        if notes.raw is None and not self.model.service.address:  # nothing of it goes over a wire
            notes.raw = []
        self._line = line
        ledger.began(line, lambda: self.first is not None)

    def _close(self, ledger: Ledger, line: LedgerCall) -> None:
        """Tell the ledger how the call ended."""
        notes, end = self._notes, self._end
        line.sent, line.events, line.raw = notes.sent, self.events, notes.raw
        line.usage = end.usage if end is not None else None
        line.is_calling = end is not None and end.reason == "calls"
        line.outcome, line.error = self._outcome(), self._error
        line.seconds = perf_counter() - self._began
        line.first = None if self.first is None else self.first - self._began
        line.retries, line.cached = notes.retries, notes.cache_hit
        ledger.ended(line)

    async def _finished(self, event: MessageFinished) -> MessageFinished:
        usage, service = event.usage, self.model.service
        if usage is None:
            sent, count = self._notes.sent or self.given, self.model.count_tokens
            said = written(self.events)
            if sum(map(len, said)) > HEAVY or is_heavy(sent.messages):
                usage = await asyncio.to_thread(estimated_for, sent, said, count)
            else:
                usage = estimated_for(sent, said, count)
        if usage.cost is None:
            cost = 0.0 if self._notes.cache_hit else await cost_of(usage, self.model.model, service)
            usage = usage if cost is None else usage.model_copy(update={"cost": cost})
        return event if usage is event.usage else replace(event, usage=usage)

    def _call(self) -> ModelCall:
        notes, now = self._notes, perf_counter()
        sent = self.given if notes.sent is None else replace(notes.sent, notes=None)
        return ModelCall(
            given=self.given,
            sent=sent,
            raw=Transcript(notes.raw or ()).messages(),
            parsed=Transcript(self.events if notes.raw is not None else ()).messages(),
            usage=self._end.usage if self._end else None,
            reason=self._end.reason if self._end else None,
            outcome=self._outcome(),
            error=self._error,
            seconds=now - self._began,
            first_token_seconds=None if self.first is None else self.first - self._began,
            retries=notes.retries,
            cache_hit=notes.cache_hit,
            request_id=notes.request_id,
            response_id=notes.response_id,
            service=self.model.service,
            model=self.model.model,
        )

    def _measure(self) -> None:
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self.model.service.provider,
            "gen_ai.request.model": self.model.model,
        }
        took = perf_counter() - self._began
        measure("gen_ai.client.operation.duration", took, {**about, "outcome": self._outcome()})
        if self.first is not None:
            measure("gen_ai.client.operation.time_to_first_chunk", self.first - self._began, about)
        usage = self._end.usage if self._end is not None else None
        if usage is not None:
            measure("gen_ai.client.token.usage", usage.prompt_tokens, {**about, "gen_ai.token.type": "input"})
            measure("gen_ai.client.token.usage", usage.completion_tokens, {**about, "gen_ai.token.type": "output"})

    def _outcome(self) -> Outcome:
        if self._error is not None:
            return "failed"
        return "stopped" if self._end is None else "finished"


DEFAULT_TURN_SECONDS: Final = 600.0


def turn_seconds(generate: Mapping[str, Any], model: Served) -> float | None:
    """`generate_cfg["turn_timeout"]`, 0 for no limit; by default ten minutes for a service, none for a local model."""
    given = generate.get("turn_timeout")
    if given is None:
        return None if model.service.here else DEFAULT_TURN_SECONDS
    return float(given) or None


class TurnLimit:
    """Cancels the task that reads a reply when its time is over; a single timer, which costs nothing per event.

    The task is the one that reads the first event; another that reads on is stopped at its next event.

    Args:
        seconds: Not counting those asleep; `None` for no limit.
        reading: The stream: the task is cancelled only while it waits for it.
    """

    __slots__ = ("_reading", "_task", "_timer", "deadline", "over", "seconds")

    def __init__(self, seconds: float | None, reading: Stream) -> None:
        self.over = False
        self.seconds = seconds
        self.deadline: float | None = None
        # Weak, so that an abandoned stream is closed at once, not by the garbage collector.
        self._reading: weakref.ref[Any] = weakref.ref(reading)
        self._task: asyncio.Task[Any] | None = None
        self._timer: AwakeTimer | None = None

    def begin(self) -> None:
        """Start the timer, for the calling task."""
        if self.seconds is not None:
            loop = asyncio.get_running_loop()
            self._task = asyncio.current_task()
            self.deadline = loop.time() + self.seconds
            self._timer = AwakeTimer(self._end, loop=loop)
            self._timer.start(self.seconds)

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def was_it(self) -> bool:
        """Whether a cancellation came from this limit alone; it is then uncancelled."""
        return self.over and self._task is not None and self._task.uncancel() == 0

    def error(self, model: Served, *, told: bool) -> ModelServiceError:
        """The error to raise.

        Args:
            model: Named in the error.
            told: Whether part of the reply had come.
        """
        name = model.service.name
        kind = ModelMisbehavedError if told else ModelUnavailableError
        said = f"{name} was not done after {self.seconds:g} s."
        hint = "What had come is kept: continue it, or ask again." if told else "Ask again, or set turn_timeout higher."
        error = kind(None, None, said, hint=hint, key="model_cut_off" if told else "model_slow")
        error.details |= {"host": name, "model": model.model}
        return error

    def _end(self) -> None:
        self.over = True
        reading = self._reading()
        if self._task is not None and reading is not None and reading.ag_running:
            self._task.cancel()
