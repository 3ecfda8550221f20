"""A program's question and its reply as a conversation that the page shows, where the program wants that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from core.messages.computed import own_event, own_message
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, USER, Message
from core.reading.attachments import title_of
from core.runs.log import LoggedEvent
from core.runs.rows import rows_of
from core.runs.steps import ended_steps, thoughts_of
from core.storage.base import RunRecord, StoredMessage, new_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.doors.door import Answer
    from core.storage.base import Role


async def store_conversation(answer: Answer, text: str) -> str:
    """Keep it; returns the id of the conversation. Pictures and files that came with the question are named, not kept.

    Args:
        text: The reply as the program gets it, for one of which nothing else is known.

    Raises:
        StorageError: It cannot be kept.
    """
    stores = answer.door.stores
    said = [own_message(_plain(one)) for one in answer.asked.messages if one.role != SYSTEM]
    question = next((one for one in said if one.role == USER), Message(USER, text[:200]))
    conversation = await stores.conversations.create(title_of(question))
    parent: str | None = None
    for role, parts in _turns(said):
        parent = (await stores.conversations.add_message(conversation.id, role, parts, parent)).id
    lines = [*map(own_event, answer.events), *answer.account.lines]
    logged = [LoggedEvent(at, 0.0, event) for at, event in enumerate(lines, 1)]
    parts = tuple(map(own_message, answer.messages()))
    logged += ended_steps(parts, logged)
    now = time.time()
    place = StoredMessage(new_id(), conversation.id, parent, "assistant", parts, new_id(), "complete", now)
    name = answer.offered.name if answer.offered is not None else answer.asked.model
    record = RunRecord(
        str(place.run_id), answer.door.owner, conversation.id, place.id, "complete", None, name, None, now, now
    )
    await stores.runs.add_whole(record, place, rows_of(logged), thoughts_of(record, parts, logged))
    answer.door.doors.services.of(answer.door.owner).changed(conversation.id)
    return conversation.id


def _turns(said: Sequence[Message]) -> list[tuple[Role, list[Message]]]:
    """The messages as turns: what the model and its tools say between two questions is one."""
    turns: list[tuple[Role, list[Message]]] = []
    for one in said:
        role: Role = "assistant" if one.role in {ASSISTANT, FUNCTION} else "user"
        if turns and turns[-1][0] == role == "assistant":
            turns[-1][1].append(one)
        else:
            turns.append((role, [one]))
    return turns


def _plain(message: Message) -> Message:
    """A message without what cannot be shown from here later: files of the request are gone by then."""
    if isinstance(message.content, str):
        return message
    texts = [item.text if item.type == "text" else f"[{item.type}]" for item in message.content]
    return message.model_copy(update={"content": "\n".join(text or "" for text in texts)})
