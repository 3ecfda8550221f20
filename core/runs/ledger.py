"""The account of a run: a line in its log for each call of a model, a span, and measurements of what took how long."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING, Final, Protocol

from core.errors import ConflictError, NotFoundError, ParlourError, StorageError
from core.llm.usage import estimated_for, written
from core.messages.events import CallDelta, ReasoningDelta, TextDelta
from core.observing import begun, count, is_measured, is_traced, record, span, within_run
from core.runs.call_stages import packed
from core.runs.log import AskedFor, CallStages, LoggedEvent, ModelAsked, ModelCalled, Queued, TracedWithin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
    from typing import Any

    from core.llm.ledger import LedgerCall
    from core.llm.request import ReadSoFar
    from core.messages.events import Event
    from core.messages.message import Usage
    from core.runs.log import RunEvent, RunLog
    from core.storage.base import RunRecord, RunStatus

_LOG = logging.getLogger(__name__)
READS_AFTER: Final = 0.5
"""Seconds of waiting after which it is counted how much the model reads: nobody looks at a shorter wait."""
TOLD_AFTER: Final = 1.0
"""Seconds after which it is told anew how far the model has read."""
_MOST_STAGES: Final = 4 * 1024 * 1024
"""Characters that the stages of all calls of one reply may take; of further calls only the lines are kept."""
_TRIES: Final = 20
_PAUSE: Final = 0.25
_LONGEST_ERROR: Final = 2_000


class RunLedger:
    """Writes the lines of one run: into its log while it lives, behind that once it is over.

    Args:
        log: The run's.
        add: Stores an event of a run that is over.
    """

    def __init__(self, log: RunLog, add: Callable[[RunEvent], Awaitable[None]]) -> None:
        self._log = log
        self._add = add
        self._changed: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._closed = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._told: dict[str, float] = {}  # when it was told last how far a call has read
        self._tasks: set[asyncio.Task[None]] = set()
        self._left = _MOST_STAGES

    # -- what models tell ---------------------------------------------------------------------------------------------

    def began(self, call: LedgerCall, spoke: Callable[[], bool]) -> None:
        """A call was begun."""
        self._here(self._began, call, spoke)

    def reads(self, call: LedgerCall, so_far: ReadSoFar) -> None:
        """The model reads its prompt, and is so far: told once a second."""
        self._here(self._reads_on, call, so_far)

    def ended(self, call: LedgerCall) -> None:
        """It is over, however it ended."""
        self._here(self._ended, call)

    def note(self, event: RunEvent) -> None:
        """Take in what was told elsewhere, of a call that was made for the question before there was a run."""
        self._write(event)

    # -- what the run tells -------------------------------------------------------------------------------------------

    def when_late(self, changed: Callable[[], None]) -> None:
        """Call back when a line was stored behind the end of the run."""
        self._changed = changed

    def close(self) -> None:
        """Write into the log no more: its last rows are on their way into the table."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    async def settled(self, within: float | None = None) -> None:
        """Wait until all that was told is written.

        Args:
            within: Seconds after which it goes on all the same.
        """
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=within)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _here(self, work: Callable[..., None], *given: Any) -> None:
        if threading.get_ident() == self._thread:
            work(*given)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, *given)

    def _began(self, call: LedgerCall, spoke: Callable[[], bool]) -> None:
        if self._closed:
            return
        self._log.append(ModelAsked(call.call_id, purpose_of(call), call.model.label))
        self._timers[call.call_id] = self._loop.call_later(READS_AFTER, self._reads, call, spoke)

    def _reads(self, call: LedgerCall, spoke: Callable[[], bool]) -> None:
        self._timers.pop(call.call_id, None)
        if not spoke():
            self._begin(self._count_read(call, spoke))

    def _reads_on(self, call: LedgerCall, so_far: ReadSoFar) -> None:
        told, now = self._told.get(call.call_id), self._loop.time()
        if self._closed or call.call_id in self._timers or (told is not None and now - told < TOLD_AFTER):
            return  # nobody looks at a short wait
        self._told[call.call_id] = now
        asked = ModelAsked(call.call_id, purpose_of(call), call.model.label, so_far.total, so_far.done, so_far.speed)
        self._log.append(asked)

    async def _count_read(self, call: LedgerCall, spoke: Callable[[], bool]) -> None:
        tokens = (await asyncio.to_thread(estimated_for, call.given, (), call.model.count_tokens)).prompt_tokens
        if not self._closed and not spoke() and call.call_id not in self._told:  # the model's own count is better
            self._log.append(ModelAsked(call.call_id, purpose_of(call), call.model.label, tokens))

    def _ended(self, call: LedgerCall) -> None:
        timer = self._timers.pop(call.call_id, None)
        if timer is not None:
            timer.cancel()
        self._told.pop(call.call_id, None)
        said = call.usage is None and (call.outcome == "stopped" or bool(written(call.events)))
        if not said:
            self._write(line_of(call, call.usage))
        self._begin(self._tell(call, counts=said))

    async def _tell(self, call: LedgerCall, *, counts: bool) -> None:
        """Write what takes a thread to make: the line of a call that broke off, and the stages of any."""
        if counts:
            usage = await asyncio.to_thread(
                estimated_for, call.sent or call.given, written(call.events), call.model.count_tokens
            )
            self._write(line_of(call, usage))
        stages = await asyncio.to_thread(packed, call, whole=self._left > 0)
        self._left -= len(stages)
        self._write(CallStages(call.call_id, stages))

    def _write(self, event: RunEvent) -> None:
        if self._closed:
            self._begin(self._write_late(event))
        else:
            self._log.append(event)

    async def _write_late(self, event: RunEvent) -> None:
        """Put an event behind the end of the run, once that is stored."""
        for _ in range(_TRIES):
            try:
                await self._add(event)
            except NotFoundError:
                return
            except (ConflictError, StorageError):
                await asyncio.sleep(_PAUSE)
            else:
                if self._changed is not None and isinstance(event, ModelCalled):
                    self._changed()
                return
        _LOG.warning("A model call could not be noted in the log of its reply.")

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(_noted(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _noted(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:  # noqa: BLE001 - logged; a reply does not fail by its account
        _LOG.exception("A model call could not be noted as a whole.")


def purpose_of(call: LedgerCall) -> str:
    """What a call is for; one that ends in calls of tools turns out to be a step on the way."""
    if call.given.purpose != "answer":
        return call.given.purpose
    if call.agent:
        return "agent"
    return "step" if call.is_calling else "answer"


def ended_calls(logged: Sequence[LoggedEvent]) -> list[LoggedEvent]:
    """The lines of calls that were under way when their process died, to come after these events."""
    asked = {one.event.call_id: one.event for one in logged if isinstance(one.event, ModelAsked)}
    over = {one.event.call_id for one in logged if isinstance(one.event, ModelCalled)}
    seq, at = (logged[-1].seq, logged[-1].at) if logged else (0, 0.0)
    lost = [one for one in asked.values() if one.call_id not in over]
    lines = [ModelCalled(one.purpose, one.model, None, 0.0, one.call_id, outcome="interrupted") for one in lost]
    return [LoggedEvent(number, at, line) for number, line in enumerate(lines, start=seq + 1)]


def stages_in(logged: Iterable[LoggedEvent]) -> dict[str, str]:
    """The stages among events, packed, by the call."""
    return {one.event.call_id: one.event.packed for one in logged if isinstance(one.event, CallStages)}


def line_of(call: LedgerCall, usage: Usage | None) -> ModelCalled:
    """The line of a call that is over."""
    return ModelCalled(
        purpose=purpose_of(call),
        model=call.model.label,
        usage=usage,
        seconds=call.seconds,
        call_id=call.call_id,
        first=call.first,
        retries=call.retries,
        requests=len(call.wire.exchanges),
        cached=call.cached,
        outcome=call.outcome,
        here=call.here,
        agent=call.agent,
        said=_said(call.error),
        within=call.within,
    )


def _said(error: BaseException | None) -> str:
    """What went wrong, in the words of Parlour or of the service; never a traceback."""
    if error is None:
        return ""
    return str(error.args[0] if isinstance(error, ParlourError) and error.args else type(error).__name__)[
        :_LONGEST_ERROR
    ]


_BAD: Final = frozenset({"error", "interrupted"})


class Observed(Protocol):
    """What is told of a run from outside."""

    id: str
    conversation_id: str
    record: RunRecord
    log: RunLog
    status: RunStatus
    error: dict[str, Any] | None


async def observed(run: Observed, live: Callable[[], Awaitable[None]]) -> None:
    """Let a run live, in a span of its own; each call of a model or tool is a child of it.

    Args:
        live: What the run does to its end.
    """
    before, began = len(run.log), time.monotonic()
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "parlour",
        "gen_ai.conversation.id": run.conversation_id,
        "parlour.run_id": run.id,
        "parlour.since_asked": round(max(0.0, time.time() - run.record.started_at), 3),  # s; it waited, or went on
    }
    within_run(run.id, run.conversation_id)
    with span("invoke_agent parlour", attributes, "run", within=_within(run) if is_traced() else "") as traced:
        try:
            await live()
        finally:
            if traced is not None:
                traced.set({"parlour.outcome": run.status})
            if traced is not None and run.status in _BAD:
                traced.fail(str((run.error or {}).get("key") or run.status))
    if is_measured():
        count("parlour.replies", {"outcome": run.status})
        record("parlour.reply.duration", time.monotonic() - began, {"outcome": run.status})
        for name, seconds in times(run.log.since(before)).items():
            record(f"parlour.reply.{name}", seconds)


def _within(run: Observed) -> str:
    """The request that asked for a run, where that is known; how long the run waited for this process is told there."""
    logged = [one.event for one in run.log.since()]
    context = next((one.context for one in logged if isinstance(one, TracedWithin)), "")
    if context and all(isinstance(one, AskedFor | TracedWithin) for one in logged):
        ids = {"parlour.run_id": run.id, "parlour.queue": "processes"}
        waited = begun("queue", ids, within=context, since=min(run.record.started_at, time.time()))
        if waited is not None:
            waited.end()
    return context


def times(logged: Sequence[LoggedEvent]) -> dict[str, float]:
    """What a run's log says of its beginning, in seconds; what it does not say is left out.

    Args:
        logged: The run's events, in their order; of a continued one, those since it went on.

    Returns:
        `queued`, how long it waited for its turn; `first_token`, from then to the first of a reply that its reader
        sees; and `overhead`, the part of this in which no model worked.
    """
    if not logged:
        return {}
    start = logged[0].at
    turns = [one.at for one in logged if isinstance(one.event, Queued) and not one.event.waiting]
    told = {"queued": turns[0] - start} if turns else {}
    start = turns[0] if turns else start
    first = next((one.at for one in logged if isinstance(one.event, TextDelta | ReasoningDelta | CallDelta)), None)
    if first is None:
        return told
    return {**told, "first_token": first - start, "overhead": first - start - _with_models(logged, start, first)}


def _with_models(logged: Sequence[LoggedEvent], start: float, first: float) -> float:
    """Seconds before `first` in which at least one model worked, of calls that are over."""
    worked: list[tuple[float, float]] = []
    for one in logged:
        if isinstance(one.event, ModelCalled):
            begun = max(start, one.at - one.event.seconds)
            if begun < first:
                worked.append((begun, min(first, one.at)))
    seconds, until = 0.0, start
    for begun, ended in sorted(worked):
        seconds += max(0.0, ended - max(begun, until))
        until = max(until, ended)
    return seconds


class Length:
    """Counts what all model calls of a run write, those of agents that are called as tools among them.

    Args:
        limit: Characters: text, thoughts and arguments.
    """

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._over = asyncio.Event()

    def count(self, event: Event) -> None:
        """Count what an event adds."""
        if isinstance(event, TextDelta | ReasoningDelta):
            self._left -= len(event.text)
        elif isinstance(event, CallDelta):
            self._left -= len(event.arguments)
        if self._left < 0:
            self._over.set()

    @property
    def exceeded(self) -> bool:
        """Whether more was written than may be."""
        return self._left < 0

    async def over(self) -> None:
        """Wait until more was written than may be."""
        await self._over.wait()
