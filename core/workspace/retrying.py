"""A question is answered once more, when a document of it is read at last."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from core.errors import ConflictError
from core.storage.base import file_ids

if TYPE_CHECKING:
    from core.languages import Lang
    from core.storage.base import DocumentRecord
    from core.workspace.conversation import Conversation

_OF_READING: Final = ("document_", "fetch_", "recording_", "hearing_")
"""How the keys of what goes wrong with reading begin."""


async def retry_failed_answer(
    conversation: Conversation, record: DocumentRecord, lang: Lang, *, opened: bool = False
) -> None:
    """Answer the last question once more, if a document of it is being read that its answer had to do without.

    Args:
        lang: The language of the page.
        opened: Whether a password has opened it, or its owner has said yes to what it costs: then an answer from the
            other files is no whole one either.
    """
    thread = await conversation.messages()
    if len(thread) < 2 or record.file_id not in file_ids(thread[-2].parts):
        return
    error = (await conversation.runs.reply(thread[-1])).error or {}
    failed = thread[-1].status == "error" and str(error.get("key", "")).startswith(_OF_READING)
    if failed or (opened and thread[-1].status == "complete"):
        with suppress(ConflictError):
            await conversation.regenerate(thread[-1].id, lang)
