"""All stores of an owner, bound to that owner: nothing above this room tells a store whose rows it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.storage.arriving import ArrivingConversations
from core.storage.conversations import Allowances, ConversationStore, SummaryStore
from core.storage.documents import AllDocuments, DocumentStore, LibraryStore
from core.storage.files import AllFiles
from core.storage.folders import FolderStore
from core.storage.mcp_servers import McpServerStore
from core.storage.model_services import ModelServiceStore
from core.storage.owner_settings import OwnerSettings
from core.storage.preferences import PreferenceStore
from core.storage.queued_messages import AllQueuedMessages, QueuedMessages
from core.storage.runs import AllRuns
from core.storage.search import SearchStore
from core.storage.space import SpaceStore
from core.storage.whole_conversations import WholeConversations

if TYPE_CHECKING:
    from pathlib import Path

    from core.storage.database import Database
    from core.storage.files import FileStore
    from core.storage.runs import RunStore
    from core.storage.sealing import Sealer


@dataclass(frozen=True, slots=True)
class OwnerStores:
    """What is kept of one owner. It holds nothing open, and costs nothing to make.

    Args:
        conversations: With their turns.
        queued: Messages that wait for the end of a reply.
        whole: The same, to be handed out.
        arriving: The same, on their way in.
        search: Through all of it, by words.
        documents: Of conversations and libraries, and how far reading them is.
        files: Attachments, and what models and tools made.
        space: How much of it all there is.
        runs: Replies as work, with their events and steps.
        preferences: What holds for all of the owner's conversations.
        allowances: What runs unasked in single conversations.
        summaries: Of what models cannot read any more.
        mcp_servers: Those that the owner set up.
    """

    owner: str
    conversations: ConversationStore
    folders: FolderStore
    queued: QueuedMessages
    whole: WholeConversations
    arriving: ArrivingConversations
    search: SearchStore
    documents: DocumentStore
    libraries: LibraryStore
    files: FileStore
    space: SpaceStore
    runs: RunStore
    settings: OwnerSettings
    preferences: PreferenceStore
    allowances: Allowances
    summaries: SummaryStore
    mcp_servers: McpServerStore
    model_services: ModelServiceStore


class Stores:
    """The stores of all owners.

    Args:
        database: Has the rows.
        files: Has a folder for the files of each owner.
        sealer: Seals keys.
        quota: Bytes that the files of one owner may take, the local owner excepted; no limit if left out.

    Attributes:
        documents: Those of all owners.
        files: The same.
        runs: The same.
        queued: The same.
    """

    def __init__(self, database: Database, files: Path, sealer: Sealer, *, quota: int | None = None) -> None:
        self.database = database
        self._sealer = sealer
        self.documents = AllDocuments(database)
        self.files = AllFiles(database, files, quota=quota)
        self.runs = AllRuns(database)
        self.queued = AllQueuedMessages(database)

    def of(self, owner: str) -> OwnerStores:
        """Those of one owner, who need not be known yet."""
        database = self.database
        settings = OwnerSettings(database, owner)
        return OwnerStores(
            owner,
            conversations=ConversationStore(database, owner),
            folders=FolderStore(database, owner),
            queued=QueuedMessages(database, owner),
            whole=WholeConversations(database, owner),
            arriving=ArrivingConversations(database, owner),
            search=SearchStore(database, owner),
            documents=DocumentStore(database, owner),
            libraries=LibraryStore(database, owner),
            files=self.files.of(owner),
            space=SpaceStore(database, owner),
            runs=self.runs.of(owner),
            settings=settings,
            preferences=PreferenceStore(settings),
            allowances=Allowances(database, owner),
            summaries=SummaryStore(database, owner),
            mcp_servers=McpServerStore(database, self._sealer, owner),
            model_services=ModelServiceStore(database, self._sealer, owner),
        )
