"""Drops what the log of a finished reply says a second time: its text, calls and results are in the message itself."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from core.runs.log import LoggedEvent
from core.runs.rows import events_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from core.messages.message import Message
    from core.storage.runs import RunStore

_LOG = logging.getLogger(__name__)

KEPT_KINDS: Final = frozenset({"claims_checked", "message_finished", "turns_summarised", "within"})
"""What stands in the log alone: it stays."""

_FIRST_AFTER: Final = 60.0  # seconds; a start has other things to do
_EVERY: Final = 24 * 3600.0


async def prune_daily(store: RunStore, older_than: float) -> None:
    """Drop what replies do not need that ended so many seconds ago; once a day, for ever."""
    pause = _FIRST_AFTER
    while True:
        await asyncio.sleep(pause)
        pause = _EVERY
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
