"""A reply whose answer its reader has written: a version beside the one of the model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from core.messages.transcript import Transcript
from core.runs.log import message_events
from core.runs.resume import events_to_edit
from core.runs.rows import rows_of
from core.runs.steps import ended_steps, thoughts_of
from core.storage.base import RunRecord, StoredMessage, new_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.runs.log import LoggedEvent
    from core.storage.stores import OwnerStores


async def rewritten(stores: OwnerStores, old: StoredMessage, logged: Sequence[LoggedEvent], text: str) -> StoredMessage:
    """Store a reply beside another one, with a text in place of its answer.

    Args:
        logged: What happened in the other one.
        text: The answer.

    Raises:
        ConflictError: key `busy`: the conversation is being answered.
        NotFoundError: It is gone.
    """
    told = events_to_edit(logged, text)
    parts = tuple(Transcript(message_events(told)).messages())
    told += ended_steps(parts, told)
    now, talk = time.time(), old.conversation_id
    place = StoredMessage(new_id(), talk, old.parent_id, "assistant", parts, new_id(), "complete", now)
    model = (await stores.runs.get(old.run_id)).model if old.run_id else ""
    record = RunRecord(str(place.run_id), stores.owner, talk, place.id, "complete", None, model, None, now, now)
    await stores.runs.add_whole(record, place, rows_of(told), thoughts_of(record, parts, told))
    return place
