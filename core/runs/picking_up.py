"""Picks up the runs that dead processes have left: lets them go on, or ends them with what there is of them."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, TypeAlias

from core.errors import ConflictError, NotFoundError, ParlourError, StorageError, TooManyRequestsError
from core.messages.transcript import Transcript
from core.observing import record as note
from core.runs.ledger import ended_calls
from core.runs.log import message_events
from core.runs.resumable import ResumableRun
from core.runs.rows import logged_of, rows_of
from core.runs.run import as_dict, messages_at_end
from core.runs.steps import ended_steps, thoughts_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from core.storage.base import Lease, RunRecord, RunStatus
    from core.storage.stores import Stores

Resume: TypeAlias = "Callable[[ResumableRun], Awaitable[object]]"

_LOG = logging.getLogger(__name__)


async def pick_up(
    stores: Stores, record: RunRecord, lease: Lease, worker: str, resume: Resume | None, *, shared: bool
) -> bool:
    """Let a run go on, or end it; whether it was ended.

    Args:
        lease: Who held it.
        worker: This process.
        resume: Lets it go on; without it, it is interrupted.
        shared: As of `ResumableRun.of`.

    Raises:
        StorageError: The database failed.
    """
    error: ParlourError | None = None
    try:
        rows = await stores.of(record.owner_id).runs.events(record.id)
        try:
            seen = rows[-1].seq if rows else 0
            left = ResumableRun.of(record, lease, logged_of(rows), shared=shared, seen=seen) if resume else None
        except ParlourError as too_often:
            left, error = None, too_often
        if resume is not None and left is not None and await _goes_on(resume, left, shared=shared):
            return False
        await interrupt(stores, record, lease, worker, error=error)
    except ConflictError:
        _LOG.info("Run %s is picked up by another process, or lives.", record.id)
    except NotFoundError:
        _LOG.info("Run %s was deleted with its conversation.", record.id)
    except TooManyRequestsError:
        _LOG.info("Run %s waits: its owner has too many replies here.", record.id)
    else:
        return True
    return False


async def begin(stores: Stores, record: RunRecord, lease: Lease, worker: str, resume: Resume, *, lasts: float) -> None:
    """Begin with a run that waits for a process, unless another one is quicker.

    Args:
        lease: As it waits.
        worker: This process.
        resume: Lets it go on.
        lasts: Seconds of the lease.

    Raises:
        StorageError: The database failed.
    """
    try:
        taken = await stores.runs.take_over(record, lease, worker, lasts=lasts)
    except ConflictError:
        return
    note("parlour.reply.untaken", max(0.0, time.time() - record.started_at))  # two machines' clocks
    store = stores.of(record.owner_id).runs
    try:
        left = ResumableRun.of(taken, lease, logged_of(await store.events(record.id)))
        if left is not None and not await _goes_on(resume, left, shared=True):
            await _end(stores, taken, "interrupted", None)
    except TooManyRequestsError:
        await store.append(record.id, [], epoch=taken.epoch, leave=True)
    except (ConflictError, NotFoundError) as error:
        _LOG.info("Run %s is not begun: %s", record.id, error)


async def _goes_on(resume: Resume, left: ResumableRun, *, shared: bool) -> bool:
    """Let a run go on; whether it does.

    Raises:
        ConflictError: Somebody else has it.
        StorageError: The database failed, which may pass.
        TooManyRequestsError: Others may take it.
    """
    try:
        await resume(left)
    except ParlourError as error:
        passes = isinstance(error, StorageError) and not isinstance(error, NotFoundError)
        if passes or (shared and isinstance(error, TooManyRequestsError)):
            raise
        _LOG.warning("Run %s cannot go on: %s", left.record.id, error)
        return False
    except Exception:  # noqa: BLE001 - logged; tried again and again it would fail each time, and never end
        _LOG.exception("Run %s cannot go on, in a way nobody foresaw.", left.record.id)
        return False
    _LOG.info("Run %s goes on where it was.", left.record.id)
    return True


async def interrupt(
    stores: Stores,
    record: RunRecord,
    lease: Lease,
    worker: str,
    *,
    status: RunStatus = "interrupted",
    error: ParlourError | None = None,
) -> None:
    """End a run that a dead process has left; what there is of its reply is kept.

    Args:
        lease: Who held it.
        worker: This process.
        status: How it ends.
        error: What is told besides.

    Raises:
        ConflictError: Somebody holds it.
        NotFoundError: It is gone with its conversation.
        StorageError: The database failed.
    """
    await _end(stores, await stores.runs.take_over(record, lease, worker), status, error)


async def _end(stores: Stores, record: RunRecord, status: RunStatus, error: ParlourError | None) -> None:
    """End a run of this process with what is stored of it."""
    store = stores.of(record.owner_id).runs
    logged = logged_of(await store.events(record.id))  # all of them: the one before can add none any more
    transcript = Transcript(message_events(logged))
    parts = messages_at_end(transcript, status)
    steps = ended_steps(parts, logged)
    steps += ended_calls([*logged, *steps])
    await store.finish(
        record.id,
        status,
        epoch=record.epoch,
        parts=parts,
        error=as_dict(error) if error is not None else None,
        usage=transcript.usage,
        rows=rows_of(steps),
        thoughts=thoughts_of(record, parts, [*logged, *steps]),
    )
    _LOG.info("Run %s was %s; %d messages of its reply are kept.", record.id, status, len(parts))
