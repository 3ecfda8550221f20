"""Events as the table keeps them: written while the log grows, pruned when the message says the same."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from pydantic import BaseModel

from core.errors import NotFoundError, StorageError
from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    SourceCited,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import PASSAGES, PROOF, Message, Usage
from core.rag.claims.omission import LeftOut
from core.rag.claims.rules import Reason
from core.runs.log import (
    ApprovalAsked,
    ApprovalGiven,
    AskedFor,
    CallStages,
    Checked,
    ClaimsChecked,
    ClaimsJudged,
    Edited,
    InputAsked,
    InputGiven,
    Judged,
    LoggedEvent,
    ModelAsked,
    ModelCalled,
    MoreSaid,
    NestedEvent,
    Queued,
    Rated,
    StepRecorded,
    TakenOver,
    ToolProgress,
    TracedWithin,
    TurnsSummarised,
    Uncounted,
)
from core.storage.base import EventRow, WholeLog

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from core.rag.claims.weighing import Verdict
    from core.runs.log import Hurried, RunEvent, RunLog
    from core.storage.base import RunRecord
    from core.storage.runs import AllRuns, RunStore


_Piece: TypeAlias = TextDelta | ReasoningDelta | CallDelta


def _claims(
    claims: list[tuple[int, int, Verdict, list[int], *tuple[list[Reason], ...]]],
    hurried: Literal["", Hurried] = "",
    uncounted: Literal[True] | Sequence[tuple[int, int]] = (),
) -> ClaimsChecked:
    """Rows of earlier versions tell no reasons, and of what no program counted not where it stands."""
    return ClaimsChecked(
        tuple(
            Checked(block, end, said, tuple(numbers), tuple(Reason(*one) for reasons in more for one in reasons))
            for block, end, said, numbers, *more in claims
        ),
        hurried,
        (Uncounted(),) if uncounted is True else tuple(Uncounted(*one) for one in uncounted),
    )


def borne_out(payload: Mapping[str, Any], claims: Collection[int]) -> dict[str, Any]:
    """The payload of a row of checked sentences, those at some indices supported, whatever was said of them."""
    return {
        **payload,
        "claims": [
            [block, end, "supported", numbers] if at in claims else [block, end, said, numbers, *more]
            for at, (block, end, said, numbers, *more) in enumerate(payload["claims"])
        ],
    }


def _cited(passages: list[dict[str, Any]], back: int = 0, marks: str = "") -> SourceCited:
    return SourceCited(tuple(passages), back, marks)


def _judged(model: str, said: list[tuple[int, int, bool]], decided: int = 0) -> ClaimsJudged:
    return ClaimsJudged(model, tuple(Judged(*one) for one in said), max(decided, len(said)))


def _more_said(left_out: list[tuple[int, int, int, str]]) -> MoreSaid:
    return MoreSaid(tuple(LeftOut(*one) for one in left_out))


def _called(within: Sequence[str] = (), **told: Any) -> ModelCalled:
    return ModelCalled(**told, within=tuple(within))


def _within(calls: list[str], event: dict[str, Any]) -> NestedEvent:
    kind = str(event["kind"])
    return NestedEvent(
        tuple(calls), cast("Event", _made(kind, {name: v for name, v in event.items() if name != "kind"}))
    )


_LOG = logging.getLogger(__name__)
_CLASSES: dict[str, Callable[..., RunEvent]] = {
    "message_started": MessageStarted,
    "text_delta": TextDelta,
    "reasoning_delta": ReasoningDelta,
    "item_added": ItemAdded,
    "source_cited": _cited,
    "call_started": CallStarted,
    "call_delta": CallDelta,
    "tool_started": ToolStarted,
    "tool_finished": ToolFinished,
    "message_finished": MessageFinished,
    "approval_asked": ApprovalAsked,
    "approval_given": ApprovalGiven,
    "input_asked": InputAsked,
    "input_given": InputGiven,
    "tool_progress": ToolProgress,
    "step_recorded": StepRecorded,
    "turns_summarised": TurnsSummarised,
    "queued": Queued,
    "asked_for": AskedFor,
    "traced_within": TracedWithin,
    "taken_over": TakenOver,
    "claims_checked": _claims,
    "claims_judged": _judged,
    "more_said": _more_said,
    "rated": Rated,
    "edited": Edited,
    "model_asked": ModelAsked,
    "model_called": _called,
    "call_stages": CallStages,
    "within": _within,
}
_MODELS: dict[str, type[BaseModel]] = {"message": Message, "item": ContentItem, "usage": Usage}


def rows_of(logged: Iterable[LoggedEvent]) -> list[EventRow]:
    """Rows for the table. Joined pieces are one row, with the number of the last piece and the time of the first.

    The end of a run is no row: the run itself has a status.
    """
    rows: list[EventRow] = []
    pending: list[LoggedEvent] = []
    for one in logged:
        if pending and not _same_text(pending[-1].event, one.event):
            rows.append(_row(pending))
            pending = []
        if one.event.kind in _CLASSES:
            pending.append(one)
    return [*rows, _row(pending)] if pending else rows


def logged_of(rows: Iterable[EventRow]) -> list[LoggedEvent]:
    """The events that rows keep; one that cannot be read, such as a newer program's, takes no other along."""
    logged: list[LoggedEvent] = []
    for row in rows:
        try:
            logged.append(LoggedEvent(row.seq, row.at, _made(row.kind, row.payload)))
        except (KeyError, TypeError, ValueError) as error:
            _LOG.warning("An event of the kind %r cannot be read: %s", row.kind, type(error).__name__)
    return logged


def _made(kind: str, payload: Mapping[str, Any]) -> RunEvent:
    if kind == "text_delta":  # nearly all of them
        return TextDelta(**payload)
    values = {name: _MODELS[name](**value) if name in _MODELS and value else value for name, value in payload.items()}
    return _CLASSES[kind](**values)


def events_of(messages: Iterable[Message]) -> list[Event]:
    """Events that would give these messages: for replies that no run wrote."""
    events: list[Event] = []
    calling = False
    for message in messages:
        call_id = str((message.extra or {}).get("function_id") or len(events))
        if message.role == "function":
            events += [ToolStarted(call_id), ToolFinished(call_id, message)]
            calling = False
            continue
        if not (calling and message.function_call is not None):  # calls one after the other are of one turn
            events.append(MessageStarted(message.name))
        calling = message.function_call is not None
        if isinstance(message.reasoning_content, str) and (message.reasoning_content or _proof(message)):
            events.append(ReasoningDelta(message.reasoning_content, _proof(message)))
        events += [TextDelta(item.text) if item.text else ItemAdded(item) for item in message.items]
        if cited := (message.extra or {}).get(PASSAGES):
            events.append(SourceCited(tuple(cited)))
        if message.function_call is not None:
            call = message.function_call
            events += [CallStarted(call_id, call.name, _proof(message)), CallDelta(call_id, call.arguments)]
    return events


def _proof(message: Message) -> str:
    return str((message.extra or {}).get(PROOF) or "")


def _same_text(one: object, other: object) -> bool:
    match one, other:
        case TextDelta(), TextDelta():
            return True
        case ReasoningDelta(), ReasoningDelta():
            return not one.proof  # a thought that has its proof is over
        case CallDelta(), CallDelta():
            return one.call_id == other.call_id
        case NestedEvent(), NestedEvent():
            return one.calls == other.calls and _same_text(one.event, other.event)
        case _:
            return False


def _row(joined: list[LoggedEvent]) -> EventRow:
    first = joined[0].event
    if isinstance(first, NestedEvent):
        inner = [one.event.event for one in joined if isinstance(one.event, NestedEvent)]
        event: RunEvent = replace(first, event=cast("Event", joined_text(inner)))
    else:
        event = joined_text([one.event for one in joined])
    return EventRow(joined[-1].seq, joined[0].at, event.kind, _payload(event))


def joined_text(pieces: Sequence[RunEvent]) -> RunEvent:
    """Neighbouring pieces of one text as one; of anything else there is only one."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    match first:
        case TextDelta() | ReasoningDelta():
            told = [one for one in pieces if isinstance(one, type(first))]
            joined = replace(first, text="".join(one.text for one in told))
            last = told[-1]
            return replace(joined, proof=last.proof) if isinstance(last, ReasoningDelta) else joined
        case CallDelta():
            return replace(first, arguments="".join(one.arguments for one in pieces if isinstance(one, CallDelta)))
        case _:
            return first


def _payload(event: RunEvent) -> dict[str, Any]:
    if isinstance(event, TextDelta):  # nearly all of them
        return {"text": event.text}
    if isinstance(event, NestedEvent):
        return {"calls": list(event.calls), "event": {"kind": event.event.kind, **_payload(event.event)}}
    values = {field.name: getattr(event, field.name) for field in fields(event) if field.name != "kind"}
    if not values.get("unthought", True):
        del values["unthought"]  # earlier versions read the rows, too
    for name in (
        "proof",
        "within",
        "hurried",
        "uncounted",
        *(("model",) if isinstance(event, MessageFinished) else ()),
    ):
        if not values.get(name, True):
            del values[name]
    if isinstance(event, ClaimsChecked):
        values["claims"] = [one if one.reasons else one[:4] for one in event.claims]  # as they do
    return {
        name: v.model_dump(mode="json", fallback=str) if isinstance(v, BaseModel) else v for name, v in values.items()
    }


_CHECKPOINT_EVERY = 0.25
_AFTER_TROUBLE = 1.0


class Checkpoint:
    """Keeps the table at most 250 ms behind the log.

    A write that fails is tried again a second later, with what has come since: a full disk costs nothing that fits
    into memory. These writes survive the death of the process, not that of the machine; the end of the run does.

    Args:
        gone: Called when the run's rows are gone, deleted with their conversation, or are another process's now.
        stored: How many events of the log are in the table already.
    """

    def __init__(
        self, store: RunStore, record: RunRecord, log: RunLog, gone: Callable[[NotFoundError], None], *, stored: int = 0
    ) -> None:
        self._store = store
        self._run_id = record.id
        self._epoch = record.epoch
        self._log = log
        self._gone = gone
        self._stored = stored
        self._rows = len(rows_of(log.since())) if stored else 0
        self._tried = asyncio.Event()
        self._new = asyncio.Event()
        self._now = asyncio.Event()
        self._closing = self._is_gone = False

    async def keep(self) -> None:
        """Write until `close`."""
        unwatch = self._log.watch(self._noticed)
        is_well = True
        try:
            while not self._closing:
                await self._new.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_until_tick() if is_well else _AFTER_TROUBLE):
                        await self._now.wait()
                self._new.clear()
                self._now.clear()
                is_well = await self._write()
                self._tried.set()
        finally:
            unwatch()
            self._tried.set()

    async def catch_up(self) -> None:
        """Wait until what is in the log now is in the table, or cannot be written at present."""
        last = len(self._log)
        for _ in range(2):  # one write may be on its way already
            if self._stored >= last or self._closing:
                return
            self._tried.clear()
            self._new.set()
            self._now.set()
            await self._tried.wait()

    async def caught_up(self) -> None:
        """Wait until what is in the log now is in the table; for ever where this process may write there no more."""
        last = len(self._log)
        while self._stored < last and not (self._closing or self._is_gone):
            await self.catch_up()
        if self._stored < last or self._is_gone:
            await asyncio.Event().wait()  # until whoever waits is cut off

    def close(self) -> None:
        """Let `keep` end; what is not written yet is in `pending`."""
        self._closing = True
        self._new.set()
        self._now.set()

    def pending(self) -> list[EventRow]:
        """The rows that are not in the table yet."""
        return rows_of(self._log.since(self._stored))

    def whole(self) -> WholeLog:
        """What there is in the table, and what there should be with what is not written yet."""
        return WholeLog(self._rows, lambda: rows_of(self._log.since()))

    def _noticed(self, urgent: bool) -> None:  # noqa: FBT001 - what a log tells its watchers
        self._new.set()
        if urgent:
            self._now.set()

    async def _write(self) -> bool:
        # Taken before the write: events go on arriving during it.
        rows, last = self.pending(), len(self._log)
        if self._closing:
            return True
        try:
            await self._store.append(self._run_id, rows, epoch=self._epoch)
        except NotFoundError as error:
            self._is_gone = True
            self._gone(error)
        except StorageError as error:
            _LOG.warning("A checkpoint of run %s failed and will be tried again: %s", self._run_id, error)
            self._new.set()
            return False
        self._stored = last
        self._rows += len(rows)
        return True


def _until_tick() -> float:
    """Seconds to the next tick, which is the same for all runs of a process."""
    return _CHECKPOINT_EVERY - time.monotonic() % _CHECKPOINT_EVERY


_KEPT_OF_CLAIMS: Final = frozenset({"claims_checked", "claims_judged", "more_said"})
KEPT_KINDS: Final = _KEPT_OF_CLAIMS | {
    "edited",
    "message_finished",
    "model_called",
    "rated",
    "turns_summarised",
    "within",
}
"""What stands in the log alone: it stays."""

WIRE_KINDS: Final = frozenset({"call_stages"})
"""What is large, and read by itself."""

_FIRST_AFTER: Final = 60.0  # seconds; a start has other things to do
_PRUNED_EVERY: Final = 24 * 3600.0


async def prune_daily(store: AllRuns, older_than: float) -> None:
    """Drop what replies do not need that ended so many seconds ago; once a day, for ever."""
    pause = _FIRST_AFTER
    while True:
        await asyncio.sleep(pause)
        pause = _PRUNED_EVERY
        try:
            pruned = await store.prune(time.time() - older_than, KEPT_KINDS)
        except Exception:  # noqa: BLE001 - logged below; there is another day
            _LOG.exception("The logs of old replies could not be shortened.")
        else:
            _LOG.info("The logs of %d old replies were shortened.", pruned)


def is_pruned(logged: Sequence[LoggedEvent]) -> bool:
    """Whether there is only what pruning leaves."""
    return bool(logged) and all(one.event.kind in KEPT_KINDS for one in logged)


def restored(parts: Iterable[Message], kept: Iterable[LoggedEvent]) -> list[LoggedEvent]:
    """The log of a pruned run as its message and what was left give it; without its times."""
    told = [LoggedEvent(0, 0.0, event) for event in events_of(parts)]
    return [replace(one, seq=seq) for seq, one in enumerate([*told, *kept], start=1)]
