"""Checkpoints of a run: nothing that happens while one is written is missed by the next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from core.messages.events import TextDelta
from core.runs.log import RunLog
from core.runs.rows import Checkpoint
from core.storage.base import EventRow
from core.storage.runs import Checkpoints, RunStore
from core.storage.use import UNLIMITED
from tests.core.runs.conftest import Talk

pytestmark = pytest.mark.anyio


class Busy(RunStore):
    """While it writes for the first time, one more event happens."""

    log: RunLog | None = None

    async def append(self, run_id: str, rows: Sequence[EventRow], **more: Any) -> None:
        log, self.log = self.log, None
        if log is not None:
            log.append(TextDelta("later"))
        await super().append(run_id, rows, **more)


async def test_what_happens_during_a_write_is_written_by_the_next(talk: Talk) -> None:
    record, _ = await talk.store.create(talk.id, user=[], parent_id=None, worker="here")
    store, log = Busy(talk.database, "alice", Checkpoints(talk.database), UNLIMITED), RunLog()
    store.log = log
    checkpoint = Checkpoint(store, record, log, gone=lambda error: pytest.fail(str(error)))
    writing = asyncio.create_task(checkpoint.keep())
    await asyncio.sleep(0)  # it watches the log
    log.append(TextDelta("now"))
    await checkpoint.catch_up()
    await checkpoint.catch_up()
    stored = await talk.store.events(record.id)
    assert [row.payload["text"] for row in stored] == ["now", "later"]
    checkpoint.close()
    await writing
