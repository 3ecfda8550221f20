"""One reply being made: a task that nobody has to watch, writing a log that anybody may follow."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from core.agents.limits import Budget
from core.bridge.cancellation import contained
from core.bridge.watchdog import Clock, stood_by
from core.errors import LeaseLostError, LimitReachedError, NotFoundError, ParlourError, StorageError
from core.llm.ledger import recorded_by
from core.llm.visitors import WORKING_FOR
from core.messages.computed import own_event
from core.messages.events import Event, MessageStarted, TextDelta, ToolFinished
from core.messages.message import FUNCTION, Message
from core.messages.transcript import Transcript
from core.observing import span
from core.rag.claims.omission import LeftOut
from core.runs.approvals import ASKED_FOR, Inputs, Questions, Resting, RunGuard
from core.runs.begun import begun_in, noted_before
from core.runs.ledger import Length, RunLedger, observed
from core.runs.log import (
    Checked,
    ClaimsChecked,
    Hurry,
    LoggedEvent,
    MoreSaid,
    Queued,
    RunFinished,
    RunLog,
    StepRecorded,
    TurnsSummarised,
    Uncounted,
    message_events,
)
from core.runs.nested_events import NestedEvents, Progress
from core.runs.reply import Reply
from core.runs.rows import Checkpoint, rows_of
from core.runs.steps import Steps, thoughts_of
from core.tools.approval import Policy

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence

    from core.agents.going_on import Begun
    from core.limits import Slot
    from core.runs.log import Found, Hurried, RunEvent
    from core.storage.base import RunRecord, RunStatus
    from core.storage.runs import RunStore


Rules: TypeAlias = "Callable[[], Awaitable[Policy]]"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run may do.

    Args:
        policy: Which tools run, and which the user is asked about.
        rules: Reads the same anew for each call, so that what the user changes meanwhile holds at once; left out, the
            policy stays as it is.
        attended: Whether the user is asked; else, where two models are compared, what would be asked is refused.
        seconds: Its time; waiting for the user does not count.
        letters: The characters that all its model calls together may write: text, thoughts and arguments.
        cost: What its model calls may cost, in the currency of the price list; `None` for no limit.
        asked_for: Seconds until a question that nobody answers counts as refused.
        checked_within: Seconds that looking at a whole reply may take.
        shown_in: The conversation that shows its reply, where that is not the one it is written in.
        rests_after: Seconds of waiting for its user after which it lets its process go; never if left out.
        shared: Whether another process goes on with it where this one ends: a call that must not be made twice begins
            once it is in the table, which another process reads.
        gives_way: Is awaited before the model is asked, where pages are still to show their questions.
    """

    policy: Policy = field(default_factory=Policy)
    rules: Rules | None = None
    attended: bool = True
    seconds: float = 600.0
    letters: int = 2_000_000
    cost: float | None = None
    asked_for: float = ASKED_FOR
    checked_within: float = 10.0
    shown_in: str = ""
    rests_after: float | None = None
    shared: bool = False
    gives_way: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run begins with that is not new.

    Args:
        logged: What the reply has already, in the order in which it happened.
        may_have_run: The calls without a result that may have run all the same: of those, the ones that are not
            idempotent are not run again. `None` where no call is to be made before the model is asked.
        stored: Whether the events are in the run's table already.
    """

    logged: Sequence[LoggedEvent] = ()
    may_have_run: frozenset[str] | None = None
    stored: bool = False


_LOG = logging.getLogger(__name__)
_CLOSES_WITHIN = 1.0
_TRY_AGAIN_AFTER = 2.0
_ENDS_A_WORD = re.compile(r"[A-Za-z0-9.,;:!?)]$")
_BEGINS_A_WORD = re.compile(r"[A-Za-z0-9(]")


class Answerer(Protocol):
    """Whoever answers: an agent, or something that waits for one first."""

    def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event | TurnsSummarised, None]:
        """The reply as events, after what the model is given of the conversation."""
        ...


class Check(Protocol):
    """Holds the sentences of a whole reply against its passages."""

    async def __call__(self, reply: Reply, history: Sequence[Message], record: RunRecord) -> Sequence[Found]:
        """What the passages say to each, and beside them; nothing where there are no passages."""
        ...


class Run:
    """A reply as a task. Its log is the truth; the table follows it.

    Args:
        record: The run's row, already stored.
        store: Where events and the end are kept.
        beginning: What a continued reply begins with.
        terms: What it may do, and how long.
        check: Looks at a reply that is complete.
        slot: Its place among the replies that its owner may have at once; given back when it is over.

    Attributes:
        log: What happened, to be followed.
        ledger: The account of its model calls, to which those beside it are told as well.
        questions: Whether calls may run, to be answered.
        enough: Set when its owner wants the answer with what is read by then.
        inputs: What servers want to know during calls, to be answered.
        resting: Whether it has let this process go.
    """

    def __init__(
        self,
        record: RunRecord,
        store: RunStore,
        *,
        beginning: Beginning = Beginning(),
        terms: RunOptions | None = None,
        check: Check | None = None,
        slot: Slot | None = None,
    ) -> None:
        self.id = record.id
        self.owner = record.owner_id
        self.conversation_id = record.conversation_id
        self.message_id = record.message_id
        self.status: RunStatus = "running"
        self.error: dict[str, Any] | None = None
        self.stored = self._left_waiting = self._is_lost = self._no_model = False
        earlier = beginning.logged
        self.log = RunLog(earlier)
        self._store = store
        self.record = self._record = record
        self._terms = terms or RunOptions()
        self._may_have_run, self._begun = beginning.may_have_run, dict[str, "Begun"]()
        self._check = check
        self._slot = slot
        self._reply = Reply()
        self._reply.model = record.model
        self._transcript = Transcript(message_events(earlier))
        self._steps = Steps(sum(isinstance(one.event, StepRecorded) for one in earlier))
        last = earlier[-1].event if earlier else None
        self._broken_off = last.text if isinstance(last, TextDelta) else ""
        self._speakers = [one.event.name for one in earlier if isinstance(one.event, MessageStarted)][-1:]
        self._checkpoint = Checkpoint(store, record, self.log, gone=self._gone, stored=beginning.stored * len(earlier))
        self._clock = Clock(self._terms.seconds)
        self._progress = Progress(self.log.append)
        self._length, self.enough = Length(self._terms.letters), asyncio.Event()
        self._inside = NestedEvents(self.log.append, self._length.count)
        self.ledger = RunLedger(self.log, self._add)
        self.inputs = Inputs(self.log, self._stand, within=self._terms.asked_for)
        self.questions = Questions(self.log, self._checkpoint.catch_up, self._stand, within=self._terms.asked_for)
        self.resting = Resting(self._terms.rests_after, self._only_asks, self._rest)
        self._asked: RunStatus | None = None
        self._verdict: tuple[RunStatus, dict[str, Any] | None] = ("running", None)  # whether it can be stored or not
        self._stopping, self._ended = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def epoch(self) -> int:
        """In which this process holds the run; each of its writes says so."""
        return self._record.epoch

    @property
    def seconds(self) -> float:
        """How long it may take."""
        return self._terms.seconds

    @property
    def shown_in(self) -> str:
        """The conversation that shows the reply."""
        return self._terms.shown_in or self.conversation_id

    def begin(self, agent: Answerer, history: Sequence[Message], done: Callable[[Run], None]) -> None:
        """Start the task. `done` is called at the end, when followers have been told."""
        if self._may_have_run is not None:
            open_calls = [str((call.extra or {})["function_id"]) for call in self._transcript.unanswered()]
            self.questions.restore(self.log.since(), open_calls, lasting=self._terms.rules is None)
            self._begun = begun_in(noted_before(self.log.since()), open_calls)
        self._note_steps()
        self.ledger.when_late(partial(done, self))
        live = partial(self._live, agent, list(history), done)
        self._task = asyncio.create_task(observed(self, live), name=f"run {self.id}")

    def reply(self) -> Reply:
        """The reply so far: one object that all readers share, brought up to date here. Do not change it."""
        for logged in self.log.since(self._reply.seen):
            self._reply.apply(logged)
        return self._reply

    def lose_lease(self) -> None:
        """End because another process has taken the run over; what is written here no longer counts."""
        if not self._is_lost:
            _LOG.warning("Another process has taken run %s over; it ends here.", self.id)
        self._is_lost = True
        self._ask("interrupted")

    async def stop(self, status: RunStatus = "stopped") -> None:
        """Stop within a second or so; what there is of the reply stays. Returns when its end is stored."""
        self._ask(status)
        await self._ended.wait()

    async def suspend(self) -> None:
        """Stop because the process ends. A run that waits for its user or its turn stays so, for the next process.

        Where others share it, any other goes on there as well.
        """
        goes_on = self._terms.shared or self.questions.waiting or self._queued
        self._left_waiting = self._asked is None and goes_on
        await self.stop("interrupted")

    async def wait(self) -> RunStatus:
        """Wait for the end."""
        await self._ended.wait()
        return self.status

    async def settle(self) -> None:
        """Store the end of a run that is over, if that failed before.

        Raises:
            StorageError: It fails still.
        """
        if not self.stored:
            trouble = await self._store_end(*self._verdict)
            if trouble is not None:
                raise trouble
            self.status, self.error = self._verdict

    async def leave(self) -> None:
        """Give up storing the end, if that fails; the next start of the process finds the run interrupted."""
        if self._task is not None:
            if not self.stored:
                self._task.cancel()
            await asyncio.wait({self._task})

    def _stand_for_model(self, *, still: bool) -> None:
        self._no_model = still
        self._stand(still)

    def _stand(self, still: bool) -> None:  # noqa: FBT001 - the one thing it is told
        self._clock.stand(still or self._no_model or self.questions.waiting or self.inputs.waiting)
        self.resting.stand(self.questions.waiting)

    def _only_asks(self) -> float | None:
        """When silence becomes an answer, if all that is left to do is to wait for the user."""
        asked = self.questions.open
        calls = {str((call.extra or {})["function_id"]) for call in self._transcript.unanswered()}
        only = self._asked is None and calls == {one.call_id for one in asked} and not any(one.within for one in asked)
        return min(one.until for one in asked) if asked and only else None

    def _rest(self) -> None:
        self._left_waiting = True
        self._ask("interrupted")

    async def _add(self, event: RunEvent) -> None:
        """Store an event behind the end. Raises ConflictError where that is not stored, NotFoundError, StorageError.

        Not where another process has taken the run over: that end is not this one's.
        """
        if self._is_lost:
            raise LeaseLostError("Another process has taken this run over.", kind="run")
        (row,) = rows_of([LoggedEvent(0, 0.0, event)])
        await self._store.add(self.id, row.kind, row.payload)

    def _gone(self, error: NotFoundError) -> None:
        if isinstance(error, LeaseLostError):
            self.lose_lease()
        else:
            self._ask("stopped")

    def _ask(self, status: RunStatus) -> None:
        self._asked = self._asked or status
        self._stopping.set()

    async def _live(self, agent: Answerer, history: list[Message], done: Callable[[Run], None]) -> None:
        WORKING_FOR.set(self.owner)
        keeping = asyncio.create_task(self._checkpoint.keep())
        try:
            status, error = await self._in_turn(agent, history)
        except Exception:  # whatever it is: a run without an end would count as busy for ever
            _LOG.exception("Run %s failed in a way nobody foresaw.", self.id)
            status, error = "error", as_dict(_unforeseen())
        finally:
            if self._slot is not None:
                self._slot.release()
            self.questions.close()
            self.inputs.close()
            self._progress.close()
            self._inside.close()
            await self.ledger.settled(_CLOSES_WITHIN)
            self.ledger.close()
            self._checkpoint.close()
            await asyncio.wait({keeping})
            _forget(keeping)
        self._verdict = status, error
        trouble = await self._store_end(status, error)
        if trouble is None:
            self._end(status, error, done)
            return
        self._end("error", as_dict(trouble), done)
        while not self.stored:
            await asyncio.sleep(_TRY_AGAIN_AFTER)
            with suppress(StorageError):
                await self.settle()
        done(self)  # what is in the table now is the reply as it really ended

    @property
    def _queued(self) -> bool:
        return self._slot is not None and not self._slot.granted

    async def _in_turn(self, agent: Answerer, history: list[Message]) -> tuple[RunStatus, dict[str, Any] | None]:
        """Wait for its turn, which takes none of its time; then answer, and have the reply checked."""
        if self._slot is not None and self._queued:
            self.log.append(Queued())
            with span("queue", {"parlour.run_id": self.id, "parlour.queue": "replies at once"}):
                await self._until_stopped(self._slot.wait())
            if self._asked is not None:
                return self._asked, None
            self.log.append(Queued(waiting=False))
        status, error = await self._outcome(agent, history)
        if status == "complete" and self._check is not None:
            await self._checked(self._check, history)
        return status, error

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, or stop with it."""
        working, stopping = asyncio.create_task(work), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            working.cancel()
            stopping.cancel()

    async def _outcome(self, agent: Answerer, history: list[Message]) -> tuple[RunStatus, dict[str, Any] | None]:
        pump = asyncio.create_task(self._pump(agent, history))
        ends = [asyncio.create_task(end) for end in (self._stopping.wait(), self._length.over(), self._clock.over())]
        try:
            await asyncio.wait({pump, *ends}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            in_time = pump.done()
            if not in_time:
                await self._cut_off(pump)
        if in_time:
            return self._verdict_on(pump)
        if self._asked is not None:
            return self._asked, None
        if self._length.exceeded:
            return "paused", as_dict(_too_long(self._terms.letters))
        minutes = round(self._terms.seconds / 60)
        text = f"The reply has taken {minutes} minutes and waits to be told to go on."
        return "paused", as_dict(
            LimitReachedError(text, hint="Go on, or ask for less.", key="time_limit", minutes=minutes)
        )

    async def _checked(self, check: Check, history: Sequence[Message]) -> None:
        """Note what the passages say to the reply; Stop does not wait for it, and the reply is whole without it."""

        async def checked() -> Sequence[Found]:
            return await check(self.reply(), history, self._record)

        checking = asyncio.create_task(checked())
        stopping = asyncio.create_task(self._stopping.wait())
        found: Sequence[Found] | None = None
        try:
            await asyncio.wait(
                {checking, stopping}, timeout=self._terms.checked_within, return_when=asyncio.FIRST_COMPLETED
            )
            if checking.done() and not checking.cancelled():
                found = checking.result()
        except Exception:
            _LOG.exception("The sentences of run %s could not be checked.", self.id)
        finally:
            stopping.cancel()
            checking.cancel()
        self._note_checked(found)

    def _note_checked(self, found: Sequence[Found] | None) -> None:
        """Note it in the log; `None` is told as well, of a reply that has something to check."""
        if found is None:
            if any(passage.get("text") for passage in self.reply().passages):
                self.log.append(ClaimsChecked((), "none"))
            return
        beside = tuple(one for one in found if isinstance(one, LeftOut))
        over: Literal["", Hurried] = ""
        for one in found:
            over = one.over if isinstance(one, Hurry) else over
        claims = tuple(one for one in found if isinstance(one, Checked))
        uncounted = tuple(one for one in found if isinstance(one, Uncounted))
        if claims or uncounted:
            self.log.append(ClaimsChecked(claims, over, uncounted))
        if beside:
            self.log.append(MoreSaid(beside))

    async def _pump(self, agent: Answerer, history: list[Message]) -> None:
        if self._terms.gives_way is not None:
            await self._terms.gives_way()
        asks = self.questions if self._terms.attended else None
        noted = self._checkpoint.caught_up if self._terms.shared else None
        within = noted or self._checkpoint.catch_up
        guard = RunGuard(self._terms.policy, asks, self._terms.rules, noted, within, unasked="compared")
        given: dict[str, Any] = {"approval": guard, "progress": self._progress, "inside": self._inside}
        given |= {"budget": Budget(self._terms.cost), "enough": self.enough}
        if self._terms.attended:
            given["ask_user"] = self.inputs.ask
        if self._may_have_run is not None:
            given["may_have_run"] = self._may_have_run
        if self._begun:
            given["begun"] = self._begun
        with recorded_by(self.ledger), stood_by(self._stand_for_model), contained():  # an agent's own code
            async with aclosing(agent.stream(history, **given)) as events:
                async for event in events:
                    self._take(event)

    def _take(self, event: Event | TurnsSummarised) -> None:
        if isinstance(event, TurnsSummarised):
            self.log.append(event)
            return
        event = own_event(event)
        if isinstance(event, ToolFinished):
            self._progress.end(event.call_id)
            self._inside.end(event.call_id)
            self.questions.drop(event.call_id)  # its tool may be gone since it was asked about
        joined = self._joined(event)
        if joined is not None:
            self._length.count(joined)
            if self._length.exceeded:
                raise _too_long(self._terms.letters)
            self._transcript.apply(joined)
            self.log.append(joined)
            if isinstance(joined, ToolFinished):
                self._note_steps()

    def _note_steps(self, whole: Sequence[Message] | None = None) -> None:
        """Note in the log which steps are over; with the whole reply, all of them are."""
        for step in self._steps.take(whole or self._transcript.messages(), ended=whole is not None):
            self.log.append(step)

    def _joined(self, event: Event) -> Event | None:
        """The event, where it goes on with a text that broke off: in the same message, not glued to its last word."""
        if not self._broken_off:
            return event
        if isinstance(event, MessageStarted) and event.name in self._speakers:
            return None
        before, self._broken_off = self._broken_off, ""
        if isinstance(event, TextDelta) and _ENDS_A_WORD.search(before) and _BEGINS_A_WORD.match(event.text):
            return TextDelta(" " + event.text)
        return event

    async def _cut_off(self, pump: asyncio.Task[None]) -> None:
        pump.cancel()
        await asyncio.wait({pump}, timeout=_CLOSES_WITHIN)
        if not pump.done():
            _LOG.warning("What run %s was waiting for does not stop; the run ends without it.", self.id)
            pump.add_done_callback(_forget)

    def _verdict_on(self, pump: asyncio.Task[None]) -> tuple[RunStatus, dict[str, Any] | None]:
        error = asyncio.CancelledError("cancelled from inside") if pump.cancelled() else pump.exception()
        if error is None:
            return "complete", None
        if isinstance(error, LimitReachedError):
            return "paused", as_dict(error)
        if isinstance(error, ParlourError):
            _LOG.info("Run %s failed: %s", self.id, error)
            return "error", as_dict(error)
        _LOG.error("Run %s failed in a way nobody foresaw.", self.id, exc_info=error)
        return "error", as_dict(_unforeseen())

    async def _store_end(self, status: RunStatus, error: dict[str, Any] | None) -> StorageError | None:
        """Store the end; what prevented it, or None."""
        try:
            if self._left_waiting:
                rows = self._checkpoint.pending()
                if self.resting.until is not None:
                    await self._store.rest(self.id, rows, epoch=self.epoch, until=self.resting.until)
                else:
                    await self._store.append(self.id, rows, epoch=self.epoch, durable=True, leave=True)
                self.stored = True
                return None
            try:
                parts, usage = messages_at_end(self._transcript, status), self._transcript.usage
                self._note_steps(parts)
                rows, thoughts = self._checkpoint.pending(), thoughts_of(self._record, parts, self.log.since())
                await self._store.finish(
                    self.id,
                    status,
                    epoch=self.epoch,
                    parts=parts,
                    error=error,
                    usage=usage,
                    rows=rows,
                    whole=self._checkpoint.whole(),
                    thoughts=thoughts,
                )
            except StorageError:
                raise
            except Exception:
                # Something in the reply is no JSON. Left as it is, the conversation would count as busy for ever.
                _LOG.exception("The end of run %s cannot be stored as it is.", self.id)
                reason = as_dict(_unforeseen())
                await self._store.finish(self.id, "error", epoch=self.epoch, parts=(), error=reason)
        except LeaseLostError:
            _LOG.warning("The end of run %s is not stored: another process has taken it over, or ended it.", self.id)
        except NotFoundError:
            _LOG.info("Run %s was deleted with its conversation.", self.id)
        except StorageError as trouble:
            _LOG.warning("The end of run %s could not be stored yet: %s", self.id, trouble)
            return trouble
        self.stored = True
        return None

    def _end(self, status: RunStatus, error: dict[str, Any] | None, done: Callable[[Run], None]) -> None:
        self.status, self.error = status, error
        self.log.append(RunFinished(status, error))
        self._ended.set()
        done(self)


def _too_long(letters: int) -> LimitReachedError:
    said = f"The reply is {letters:,} characters long and waits to be told to go on."
    return LimitReachedError(said, hint="Go on, or ask for less.", key="length_limit", characters=f"{letters:,}")


def as_dict(error: ParlourError) -> dict[str, Any]:
    """An error as a run keeps it; details that are not JSON become text."""
    details = json.loads(json.dumps(error.details, default=str))
    return {"key": error.words_key, "message": str(error.args[0]), "hint": error.hint, "details": details}


def messages_at_end(transcript: Transcript, status: RunStatus) -> list[Message]:
    """The messages of a reply that is over: calls that were cut off get a result that says so."""
    cut_off = "stopped" if status in {"stopped", "paused"} else "interrupted"
    results = [cut_off_result(call, cut_off) for call in transcript.unanswered()]
    return [*transcript.messages(), *results]


def cut_off_result(call: Message, why: str) -> Message:
    """The result of a call that never ended."""
    name = call.function_call.name if call.function_call is not None else "tool"
    call_id = (call.extra or {}).get("function_id")
    extra = {"function_id": call_id, "failed": why}
    return Message(FUNCTION, "The call was cut off before it had a result.", name=name, extra=extra)


def _unforeseen() -> ParlourError:
    return ParlourError("Something unexpected went wrong.", hint="The log has the details.")


def _forget(task: asyncio.Task[None]) -> None:
    """Note what went wrong in a task that nobody waits for."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("%s failed.", task.get_name(), exc_info=error)
