"""A question is answered once more, when a document of it is read at last."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.errors import ConflictError
from core.storage.base import file_ids

if TYPE_CHECKING:
    from core.languages import Lang
    from core.storage.base import DocumentRecord
    from core.workspace.conversation import Conversation

_OF_READING: Final = ("document_", "fetch_", "recording_", "hearing_")
"""How the keys of what goes wrong with reading begin."""


@dataclass(frozen=True, slots=True)
class Retried:
    """What became of the last question, when a document of the conversation is read once more.

    Args:
        answers: Whether it is being answered once more.
        reply: The id of its reply, where it came with the document and was answered without it; "" otherwise.
    """

    answers: bool = False
    reply: str = ""


async def retry_failed_answer(
    conversation: Conversation, record: DocumentRecord, lang: Lang, *, agreed: bool = False
) -> Retried:
    """Answer the last question once more, if a document of it is being read without which it had no answer.

    A question that was answered from the other files is asked again by its reader alone.

    Args:
        lang: The language of the page.
        agreed: Whether its owner has just said yes to what reading it costs: then it was attached to be answered from,
            and an answer from the other files is no whole one.
    """
    thread = await conversation.messages()
    if len(thread) < 2 or record.file_id not in file_ids(thread[-2].parts):
        return Retried()
    last = thread[-1]
    error = (await conversation.runs.reply(last)).error or {}
    failed = last.status == "error" and str(error.get("key", "")).startswith(_OF_READING)
    if failed or (agreed and last.status == "complete"):
        with suppress(ConflictError):
            await conversation.regenerate(last.id, lang)
            return Retried(answers=True)
    return Retried(reply=last.id if last.status == "complete" else "")
