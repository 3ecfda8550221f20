"""Watches each call from outside: its time and tokens, one log line, a trace, and a record for who wants one."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from core.llm.call_log import log_call, logs_calls
from core.llm.layers.counting import HEAVY, is_heavy
from core.llm.layers.turn_limit import TurnLimit, turn_seconds
from core.llm.notes import CallNotes
from core.llm.prices import cost_of, fetch_list, has_price
from core.llm.record import ModelCall, OnCall, Outcome
from core.llm.request import is_on
from core.llm.service import Served
from core.llm.telemetry import Trace, begin_trace
from core.llm.usage import estimated_for
from core.messages.events import CallDelta, Event, MessageFinished, MessageStarted, ReasoningDelta, TextDelta
from core.messages.transcript import Transcript

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Layer, Source, Stream


class Recorded(Served, Protocol):
    """A model whose calls may be listened to."""

    call_listeners: tuple[OnCall, ...]


def record(model: Recorded) -> Layer:
    """The layer for one model, the outermost of those that always work.

    It ends a turn that takes too long, completes the usage (an estimate where the service says nothing, the price
    where it is known), and tells of the call when it is over.

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
    """The layer that notes what is sent, and the reply as it came where somebody wants it."""
    notes = request.notes
    if notes is None:
        return below(request)
    notes.sent = request
    return below(request) if notes.raw is None else _kept(request, below, notes.raw)


async def _kept(request: ChatRequest, below: Source, raw: list[Event]) -> Stream:
    async with aclosing(below(request)) as events:
        async for event in events:
            raw.append(event)
            yield event


async def _recorded(watch: _Watch, below: Source) -> Stream:
    request = watch.begin()
    say, limit = watch.said.append, watch.limit
    try:  # a layer may refuse the request before there is a stream
        source = below(request) if watch.parsed is None else _kept(request, below, watch.parsed)
        async with aclosing(source) as events:
            async for event in events:
                if isinstance(event, TextDelta):  # the hot path
                    say(event.text)
                    if watch.first is None:
                        watch.first = perf_counter()
                else:
                    event = await watch.other(event)  # noqa: PLW2901 - the last one, with its usage complete
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
    """One call, seen from outside."""

    model: Recorded
    given: ChatRequest
    said: list[str] = field(default_factory=list[str])
    first: float | None = None
    parsed: list[Event] | None = None
    limit: TurnLimit = field(init=False)
    _notes: CallNotes = field(default_factory=CallNotes)
    _began: float = field(default_factory=perf_counter)
    _end: MessageFinished | None = None
    _trace: Trace | None = None
    _error: BaseException | None = None

    def begin(self) -> ChatRequest:
        """The request with its notes; from now on time counts."""
        self.limit.begin()
        notes = self._notes
        notes.deadline = self.limit.deadline
        if self.model.call_listeners or is_on(self.given.generate.get("log_messages")):
            notes.raw, self.parsed = [], []
        self._trace = begin_trace(self.model, self.given, notes.request_id)
        if has_price(self.model.service):
            fetch_list()
        return replace(self.given, notes=notes)

    async def other(self, event: Event) -> Event:
        """Anything but text: noted; the last event comes back with its usage complete."""
        if isinstance(event, MessageFinished):
            self._end = await self._finished(event)
            return self._end
        if isinstance(event, ReasoningDelta):
            self.said.append(event.text)
        elif isinstance(event, CallDelta):
            self.said.append(event.arguments)
        if self.first is None and not isinstance(event, MessageStarted):
            self.first = perf_counter()
        return event

    def failed(self, error: BaseException) -> None:
        """The call ended before its time.

        Raises:
            ModelServiceError: In place of a cancellation: the turn took too long.
        """
        if isinstance(error, asyncio.CancelledError) and self.limit.was_it():
            self._error = self.limit.error(self.model, told=self.first is not None)
            raise self._error from error
        if not isinstance(error, GeneratorExit | asyncio.CancelledError):
            self._error = error

    def end(self) -> None:
        """Tell of the call."""
        self.limit.close()
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

    async def _finished(self, event: MessageFinished) -> MessageFinished:
        usage, service = event.usage, self.model.service
        if usage is None:
            sent, count = self._notes.sent or self.given, self.model.count_tokens
            if sum(map(len, self.said)) > HEAVY or is_heavy(sent.messages):
                usage = await asyncio.to_thread(estimated_for, sent, self.said, count)
            else:
                usage = estimated_for(sent, self.said, count)
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
            parsed=Transcript(self.parsed or ()).messages(),
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

    def _outcome(self) -> Outcome:
        if self._error is not None:
            return "failed"
        return "stopped" if self._end is None else "finished"
