"""One owner's world: conversations, the model, documents, and what is open while somebody works in it."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

from core.bridge.cancellation import result_for_all
from core.errors import NotFoundError, StorageError
from core.reading.attachments import takes, unsupported_files
from core.reading.intake import is_locked
from core.reading.senses import asked_first, is_heard
from core.workspace.conversation import Conversation
from core.workspace.looking import DocumentSearch
from core.workspace.queue import ConversationQueue
from core.workspace.retrying import Retried, retry_failed_answer
from core.workspace.taking import Taking

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.errors import ParlourError
    from core.languages import Lang
    from core.models.model_name import ModelName
    from core.models.own_models import OwnerModels
    from core.rag.library import Library
    from core.reading.attachments import Named
    from core.reading.libraries import Libraries
    from core.reading.owner_intake import OwnerIntake
    from core.runs.manager import OwnerRuns
    from core.storage.base import DocumentRecord
    from core.storage.conversation_list import ConversationList
    from core.storage.folders import FolderStore
    from core.storage.people import Role
    from core.storage.preferences import PreferenceStore
    from core.storage.search import SearchStore
    from core.toolbox.choices import Rules
    from core.toolbox.toolbox import OwnerTools
    from core.workspace.dictation import OwnerDictation
    from core.workspace.judging import OwnerJudging
    from core.workspace.lent import LentShelf
    from core.workspace.services import OwnerServices
    from core.workspace.steering import OwnerSteering

_OPENS_WITHIN = 20.0  # seconds, until a password has shown whether it is right


class Workspace:
    """What one owner has. It may be closed whenever nobody uses it: all truth is in the database and in files.

    Args:
        services: What it works with, of its owner.
        open_index: Opens the index of the owner's documents.
        close_index: Closes it.
        role: The role that its owner had when it was opened; `None` without an account.

    Attributes:
        conversations: The owner's conversations, with their turns.
        documents: Of conversations and libraries, and how far reading them is.
        files: Attachments, and what models and tools made.
        settings: What the owner chose.
    """

    def __init__(
        self,
        services: OwnerServices,
        *,
        open_index: Callable[[Workspace], Awaitable[Library]],
        close_index: Callable[[Library], Awaitable[None]],
        role: Role | None = None,
    ) -> None:
        self.services = services
        self.owner = services.owner
        self.role = role
        self.stores = services.stores
        self.conversations = self.stores.conversations
        self.documents = self.stores.documents
        self.files = self.stores.files
        self.settings = self.stores.settings
        self._open_index = open_index
        self._close_index = close_index
        self._index: asyncio.Future[Library] | None = None
        self._is_closed = False

    @cached_property
    def libraries(self) -> Libraries:
        """The owner's named libraries."""
        return self.services.libraries

    @property
    def intake(self) -> OwnerIntake:
        """The owner's documents, on their way into the index."""
        return self.services.intake

    @property
    def runs(self) -> OwnerRuns:
        """The owner's replies, as they are made."""
        return self.services.runs

    @property
    def tools(self) -> OwnerTools:
        """The owner's tools, and what was chosen about them."""
        return self.services.tools

    @property
    def rules(self) -> Rules:
        """When the owner is asked before a tool runs."""
        return self.services.tools.rules

    @property
    def models(self) -> OwnerModels:
        """Which model answers the owner, and those that were set up."""
        return self.services.models

    @property
    def steering(self) -> OwnerSteering:
        """Instructions, parameters and tools of conversations."""
        return self.services.steering

    @property
    def dictation(self) -> OwnerDictation:
        """Turns recordings into text."""
        return self.services.dictation

    @property
    def judging(self) -> OwnerJudging:
        """Has models judge the sentences of replies."""
        return self.services.judging

    @property
    def folders(self) -> FolderStore:
        """Of conversations."""
        return self.stores.folders

    @property
    def conversation_list(self) -> ConversationList:
        """What the list of conversations shows, in parts."""
        return self.stores.conversation_list

    @property
    def search(self) -> SearchStore:
        """Through all that the owner has, by words."""
        return self.stores.search

    @cached_property
    def document_search(self) -> DocumentSearch:
        """Through the text of all documents that the owner may read, by words."""
        return DocumentSearch(self.stores, self.services.lent, self.index)

    @property
    def preferences(self) -> PreferenceStore:
        """What holds for all of the owner's conversations."""
        return self.stores.preferences

    @cached_property
    def taking(self) -> Taking:
        """Conversations on their way out."""
        return Taking(self.services)

    def conversation(self, conversation_id: str) -> Conversation:
        """One of the owner's conversations. That it is there shows when something is done in it."""
        return Conversation(self.services, conversation_id)

    def queue(self, conversation_id: str) -> ConversationQueue:
        """The messages that wait for the end of a conversation's reply."""
        return ConversationQueue(self.conversation(conversation_id))

    # ---- the model

    async def unsupported_files(self, files: Sequence[Named], name: ModelName | None = None) -> list[ParlourError]:
        """What a model cannot take, one error for each such file; none while it is not loaded.

        Args:
            name: Which model; the owner's usual one where it is left out.
        """
        hears = any(is_heard(file) for file in files) and await self.services.dictation.file_way() is not None
        return unsupported_files(files, (await self.models.chosen(name)).loader.model, hears=hears)

    async def accepts_audio(self, name: ModelName | None = None) -> bool:
        """Whether a model takes recordings, the owner's usual one if none is named; false while it is not loaded."""
        model = (await self.models.chosen(name)).loader.model
        return model is not None and takes(model, "sound")

    # ---- documents

    async def read_again(self, document_id: str, lang: Lang = "en") -> DocumentRecord:
        """Read a document that failed or was called off once more.

        The last question is answered then, if it could not be answered because of it, or had its answer from the other
        files while this one waited for a yes to its price.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        agreed = asked_first(await self.stores.documents.get(document_id))
        record = await self.intake.retry(document_id)
        await self._retried(record, lang, agreed=agreed)
        return record

    async def unlock(self, document_id: str, password: str, lang: Lang = "en") -> tuple[DocumentRecord, Retried]:
        """Read a document with its password, and say what becomes of the last question.

        That is answered once more if it could not be answered because of the document; not if it had its answer from
        the other files. It returns once the password has proved right or wrong.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        before = await self.stores.documents.get(document_id)
        await self.intake.retry(document_id, password)
        record = await self.intake.wait_for_first_pages(document_id, _OPENS_WITHIN)
        return record, await self._retried(record, lang) if is_locked(before) else Retried()

    async def _retried(self, record: DocumentRecord, lang: Lang, *, agreed: bool = False) -> Retried:
        if record.conversation_id is None or record.status == "failed":
            return Retried()
        return await retry_failed_answer(self.conversation(record.conversation_id), record, lang, agreed=agreed)

    async def index(self) -> Library:
        """The index of all the owner's documents; opened by the first who wants it, open as long as the workspace.

        Raises:
            StorageError: Its folder cannot be used, or the workspace is closed (key `library_closed`).
        """
        if self._is_closed:
            raise StorageError("The library is closed.", key="library_closed")
        index = self._index
        if index is None or not self.is_open:
            index = self._index = asyncio.ensure_future(self._open_index(self))
        return await result_for_all(index)

    def holding(self, document_id: str) -> AbstractAsyncContextManager[Library]:
        """The index that has a text of the owner's, or of a library that is lent to the owner; as `LentIndices`."""
        return self.services.lent.holding(document_id)

    async def is_being_read(self, document_id: str) -> bool:
        """Whether a document with this text is being read: the owner's, or of a library that is lent to the owner.

        Args:
            document_id: The text's id in the index, the SHA-256 of the file.
        """
        return await self.documents.is_being_read(document_id) or await self.stores.lent.is_being_read(document_id)

    async def shelf(self, library_id: str) -> Libraries | LentShelf:
        """What has a library: the owner's own, or one that is lent to the owner. Raises NotFoundError."""
        try:
            return await self.services.lent.shelf(library_id)
        except NotFoundError:
            return self.libraries

    async def shelf_of(self, document_id: str) -> Libraries | LentShelf:
        """The same by a document that stands in it."""
        lent = await self.stores.lent.shelf_of(document_id)
        return await self.shelf(lent) if lent is not None else self.libraries

    @property
    def is_open(self) -> bool:
        """Whether it holds anything that takes time to open: if not, there is no reason to keep it."""
        index = self._index
        return index is not None and not (index.done() and (index.cancelled() or index.exception() is not None))

    @property
    def is_intact(self) -> bool:
        """Whether what is open can still be used: the file of the index was not deleted, emptied or replaced."""
        index = self._index
        return index is None or not index.done() or not self.is_open or index.result().is_intact()

    async def aclose(self) -> None:
        """Close what is open."""
        self._is_closed = True
        if self._index is not None:
            await asyncio.wait({self._index})
            if self.is_open:
                await self._close_index(self._index.result())
