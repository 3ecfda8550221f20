"""The composition root: builds stores, model, documents, agents and runs, and hands them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from core.agents.assistant import Assistant
    from core.llm.base import BaseChatModel
    from core.rag.library import Library
    from core.readiness import Readiness
    from core.runs.manager import Runs
    from core.runs.run import Run
    from core.settings import Settings
    from core.storage.base import DocumentRecord, FileRecord
    from core.storage.conversations import ConversationStore
    from core.storage.documents import DocumentStore
    from core.storage.files import FileStore


class Engine:
    """Everything behind the page, on one event loop; an async context manager.

    Args:
        settings: Where things live and which model answers.
        model: A model to use instead of the one that the settings name.
    """

    settings: Settings
    readiness: Readiness
    model: BaseChatModel | None
    conversations: ConversationStore
    runs: Runs
    files: FileStore
    documents: DocumentStore

    def __init__(self, settings: Settings, *, model: BaseChatModel | None = None) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    def on_change(self, callback: Callable[[str | None, str | None], None]) -> Callable[[], None]:
        """Call back with (owner, conversation) when a run or document of it changes, with (None, None) when the
        readiness does; returns what ends this."""
        raise NotImplementedError

    async def library(self, owner: str) -> Library:
        """The owner's library, opened when first asked for."""
        raise NotImplementedError

    async def agent(self, owner: str, conversation_id: str) -> Assistant:
        """Who answers in a conversation."""
        raise NotImplementedError

    async def check_attachments(self, owner: str, file_ids: Sequence[str]) -> list[str]:
        """What cannot be used, before sending: keys "picture_not_taken", "sound_not_taken", "document_unsupported"."""
        raise NotImplementedError

    async def add_document(self, owner: str, conversation_id: str, file: FileRecord) -> DocumentRecord:
        """Take a file into the conversation; it is read in the background."""
        raise NotImplementedError

    async def send(
        self,
        owner: str,
        conversation_id: str,
        text: str,
        file_ids: Sequence[str] = (),
        lang: Literal["en", "zh"] = "en",
    ) -> Run:
        """A user's message, and the run that answers it."""
        raise NotImplementedError

    async def edit(self, owner: str, message_id: str, text: str, lang: Literal["en", "zh"] = "en") -> Run:
        """A changed question beside the old one (its files stay), and the run that answers it."""
        raise NotImplementedError

    async def regenerate(self, owner: str, message_id: str, lang: Literal["en", "zh"] = "en") -> Run:
        """Another reply beside `message_id` (or to it, where it is a question)."""
        raise NotImplementedError

    async def continue_(self, owner: str, message_id: str, lang: Literal["en", "zh"] = "en") -> Run:
        """A reply that begins with what there is of `message_id` and goes on."""
        raise NotImplementedError

    async def stop(self, owner: str, conversation_id: str) -> None:
        """Stop the conversation's run, if one lives; what there is of the reply stays."""
        raise NotImplementedError

    async def delete_conversation(self, owner: str, conversation_id: str) -> None:
        """Stop its run and delete it with its messages, runs, documents and the files that nothing else needs."""
        raise NotImplementedError

    def retry_model(self) -> None:
        """Try again to fetch and load the model."""
        raise NotImplementedError
