"""All stores of an owner, bound to that owner: nothing above this room tells a store whose rows it means."""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.bridge.pool import Listeners
from core.storage.answered import AnsweredConversations
from core.storage.api_keys import AllApiKeys, ApiKeyStore
from core.storage.api_state import ApiFileStore, ApiResponseStore
from core.storage.app_tokens import AllApps, AppStore
from core.storage.arriving import ArrivingConversations
from core.storage.blobs import SHARES, files_beside, size_of
from core.storage.conversation_list import ConversationList
from core.storage.conversations import AllConversations, Allowances, ConversationStore
from core.storage.documents import AllDocuments, DocumentStore
from core.storage.files import AllFiles
from core.storage.folders import FolderStore
from core.storage.groups import GroupStore
from core.storage.ingested import IngestedStore
from core.storage.lending import Lending, Lent
from core.storage.libraries import LibraryStore
from core.storage.mcp_servers import McpServerStore
from core.storage.model_services import ModelServiceStore
from core.storage.owner_notes import NoteStore
from core.storage.owner_settings import OwnerSettings
from core.storage.people import PeopleStore
from core.storage.preferences import PreferenceStore
from core.storage.queued_messages import AllQueuedMessages, QueuedMessages
from core.storage.readings import AllReadings
from core.storage.run_news import RunNews, RunRequests
from core.storage.runs import AllRuns
from core.storage.search import SearchStore
from core.storage.second_replies import SecondReplyStore
from core.storage.shares import AllShares, ShareStore
from core.storage.space import SpaceStore
from core.storage.summaries import SummaryStore
from core.storage.use import UNLIMITED, UseStore, UsualLimits
from core.storage.whole_conversations import WholeConversations

if TYPE_CHECKING:
    from core.storage.blobs import Blobs
    from core.storage.database import Database
    from core.storage.files import FileStore
    from core.storage.runs import RunStore
    from core.storage.sealing import Sealer


class OwnerStores:
    """What is kept of one owner. It holds nothing open; what a question does not need is made when it is asked for.

    Attributes:
        conversations: With their turns.
        documents: Of conversations and libraries, and how far reading them is.
        files: Attachments, and what models and tools made.
        runs: Replies as work, with their events and steps.
        allowances: What runs unasked in single conversations.
        summaries: Of what models cannot read any more.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what a store is made of
        self,
        database: Database,
        owner: str,
        files: FileStore,
        runs: RunStore,
        sealer: Sealer,
        shares: AllShares,
        api_keys: AllApiKeys,
        standing: Listeners[[]],
    ) -> None:
        self.owner = owner
        self.files = files
        self.runs = runs
        self.conversations = ConversationStore(database, owner)
        self.documents = DocumentStore(database, owner)
        self.settings = OwnerSettings(database, owner)
        self.allowances = Allowances(database, owner)
        self.summaries = SummaryStore(database, owner)
        self._database = database
        self._sealer = sealer
        self._shares = shares
        self._api_keys = api_keys
        self.standing = standing

    @cached_property
    def libraries(self) -> LibraryStore:
        """Named libraries, and which conversations use them."""
        return LibraryStore(self._database, self.owner)

    @cached_property
    def shares(self) -> ShareStore:
        """Snapshots of conversations behind links."""
        return self._shares.of(self.owner, self.files.check_room)

    @cached_property
    def conversation_list(self) -> ConversationList:
        """What the list of conversations shows, in parts."""
        return ConversationList(self._database, self.owner)

    @cached_property
    def answered(self) -> AnsweredConversations:
        """Conversations in which replies were written, all at once."""
        return AnsweredConversations(self._database, self.owner)

    @cached_property
    def folders(self) -> FolderStore:
        """Of conversations."""
        return FolderStore(self._database, self.owner)

    @cached_property
    def queued(self) -> QueuedMessages:
        """Messages that wait for the end of a reply."""
        return QueuedMessages(self._database, self.owner)

    @cached_property
    def second_replies(self) -> SecondReplyStore:
        """What other models write to the same questions."""
        return SecondReplyStore(self._database, self.owner)

    @cached_property
    def ingested(self) -> IngestedStore:
        """What of folders and stores was taken into libraries."""
        return IngestedStore(self._database, self.owner)

    @cached_property
    def whole(self) -> WholeConversations:
        """Conversations, to be handed out."""
        return WholeConversations(self._database, self.owner)

    @cached_property
    def arriving(self) -> ArrivingConversations:
        """Conversations on their way in."""
        return ArrivingConversations(self._database, self.owner)

    @cached_property
    def search(self) -> SearchStore:
        """Through all of it, by words."""
        return SearchStore(self._database, self.owner)

    @cached_property
    def space(self) -> SpaceStore:
        """How much of it all there is."""
        return SpaceStore(self._database, self.owner, self.shares.used)

    @cached_property
    def api_keys(self) -> ApiKeyStore:
        """Which let the owner's programs in."""
        return ApiKeyStore(self._database, self.owner, self._api_keys)

    @cached_property
    def apps(self) -> AppStore:
        """Programs that the owner lets in at a page."""
        return AppStore(self._database, self.owner)

    @cached_property
    def api_files(self) -> ApiFileStore:
        """Which of the files came from programs."""
        return ApiFileStore(self._database, self.owner, self.files)

    @cached_property
    def api_responses(self) -> ApiResponseStore:
        """Replies that programs may go on from."""
        return ApiResponseStore(self._database, self.owner)

    @cached_property
    def notes(self) -> NoteStore:
        """What assistants keep for the owner."""
        return NoteStore(self._database, self.owner)

    @cached_property
    def preferences(self) -> PreferenceStore:
        """What holds for all of the owner's conversations."""
        return PreferenceStore(self.settings)

    @cached_property
    def lending(self) -> Lending:
        """What the owner shares with groups."""
        return Lending(self._database, self.owner, self.standing)

    @cached_property
    def lent(self) -> Lent:
        """What others share with the owner."""
        return Lent(self._database, self._sealer, self.owner, self.standing)

    @cached_property
    def mcp_servers(self) -> McpServerStore:
        """Those that the owner set up."""
        return McpServerStore(self._database, self._sealer, self.owner)

    @cached_property
    def model_services(self) -> ModelServiceStore:
        """Those that the owner set up, with their keys."""
        return ModelServiceStore(self._database, self._sealer, self.owner)


class Stores:
    """The stores of all owners.

    Args:
        database: Has the rows.
        files: Has a folder for the files of each owner, shared snapshots beside it; or another store of both.
        sealer: Seals keys.
        limits: What owners may ask in a day and a month, the local owner excepted.
        quota: Bytes that the files and snapshots of one owner may take, the local owner excepted; no limit if left out.

    Attributes:
        blobs: The bytes of files and snapshots.
        conversations: Those of all owners.
        documents: The same.
        readings: Who reads which of them.
        files: The same.
        runs: The same.
        run_news: How runs go on that other processes write.
        run_requests: What processes ask of each other's runs.
        queued: The same.
        shares: The same.
        api_keys: The same: they tell which owner a program asks for.
        apps: Programs that somebody let in at a page, by their codes and tokens.
        people: Who has an account, and with which role.
        groups: Of people.
        standing: Told when this process changed a role, a group, what is shared with one, or a persona.
        use: How much owners used.
    """

    def __init__(
        self,
        database: Database,
        files: Path | Blobs,
        sealer: Sealer,
        *,
        quota: int | None = None,
        limits: UsualLimits = UNLIMITED,
    ) -> None:
        self.database = database
        self.sealer = sealer
        self.conversations = AllConversations(database)
        self.documents, self.readings = AllDocuments(database), AllReadings(database)
        self.blobs = files_beside(files) if isinstance(files, Path) else files
        self.shares = AllShares(self.blobs, sealer)
        self.files = AllFiles(database, self.blobs, quota=quota, beside=partial(size_of, self.blobs, SHARES))
        self.runs = AllRuns(database, limits)
        self.run_news, self.run_requests = RunNews(database), RunRequests(database)
        self.queued = AllQueuedMessages(database)
        self.api_keys = AllApiKeys(database)
        self.apps = AllApps(database, self.api_keys)
        self.standing = Listeners[[]]()
        self.people = PeopleStore(database, self.standing)
        self.groups = GroupStore(database, self.standing)
        self.use = UseStore(database, limits)

    def of(self, owner: str) -> OwnerStores:
        """Those of one owner, who need not be known yet."""
        kept = (self.files.of(owner), self.runs.of(owner), self.sealer, self.shares, self.api_keys)
        return OwnerStores(self.database, owner, *kept, self.standing)
