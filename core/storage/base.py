"""What the stores keep: frozen rows, each with its owner. Times are Unix seconds (UTC)."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, overload

from core.errors import ConflictError
from core.messages.content import STORED
from core.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from sqlalchemy import Row

    from core.messages.message import Usage

RunStatus: TypeAlias = Literal["running", "complete", "paused", "stopped", "error", "interrupted"]
DocumentStatus: TypeAlias = Literal["reading", "ready", "failed", "cancelled"]
Role: TypeAlias = Literal["user", "assistant"]
Section: TypeAlias = Literal["pinned", "filed", "loose", "archived"]
TitledBy: TypeAlias = Literal["question", "model", "person"]

_ID = re.compile(r"[A-Za-z0-9_-]{22}")

LOCAL_OWNER = "local"
DEMONSTRATIONS = "demonstrations"
"""The owner of what everybody may watch; no cookie makes anybody this one."""
FILE_ADDRESS = STORED


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """A conversation.

    Args:
        id: Its own.
        owner_id: Whose it is.
        title: What the history calls it.
        created_at: When it began.
        updated_at: When something was said last.
        leaf_id: The newest turn of the branch that is shown.
        titled_by: Who made the title; one by a person is never replaced.
        folder_id: The folder it is in.
        pinned_at: When it was pinned.
        archived_at: When it was archived.
    """

    id: str
    owner_id: str
    title: str
    created_at: float
    updated_at: float
    leaf_id: str | None = None
    titled_by: TitledBy = "question"
    folder_id: str | None = None
    pinned_at: float | None = None
    archived_at: float | None = None


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of the history; folders stand in the order of `position`, and `settings` hold for what is in them."""

    id: str
    owner_id: str
    name: str
    position: float
    settings: Mapping[str, Any]
    created_at: float


@dataclass(frozen=True, slots=True)
class ListedRow:
    """A row of the list of conversations.

    Args:
        place: Where it stands, as an address names it.
        section: Pinned, in a folder (the folder's own row among these), in none, or archived.
        folder: The folder that it is in, or that it is.
        conversation: `None` where it is a folder's own row.
    """

    place: str
    section: Section
    folder: Folder | None = None
    conversation: ConversationRecord | None = None


@dataclass(frozen=True, slots=True)
class History:
    """A part of the list of conversations.

    Args:
        rows: In their order; of a folder that is open, what is in it follows it.
        folders: All of the owner's, in their order.
        sizes: How many conversations there are in each folder, by its id; none for an empty one.
        homes: The folders of conversations that are in one, of those used last.
        archived: Whether these are the archived ones.
        has_archive: Whether there are any archived ones.
        end: The place of the last row, where more rows follow; else "".
    """

    rows: tuple[ListedRow, ...] = ()
    folders: tuple[Folder, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    homes: Mapping[str, str] = field(default_factory=dict[str, str])
    archived: bool = False
    has_archive: bool = False
    end: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the list of conversations: the place that it ends with, and how many rows it has."""

    end: str
    rows: int


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a list, and which of them holds a conversation that was asked for."""

    parts: tuple[Part, ...]
    at: int | None = None


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message that waits until the reply of its conversation ends; the lowest `position` is the next."""

    id: str
    conversation_id: str
    text: str
    file_ids: tuple[str, ...]
    position: float
    created_at: float


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One turn of the tree: a user's message, or a whole reply (its text, calls and results as `parts`)."""

    id: str
    conversation_id: str
    parent_id: str | None
    role: Role
    parts: tuple[Message, ...]
    run_id: str | None
    status: RunStatus
    created_at: float


def stored_message(row: Row[Any], parts: Iterable[dict[str, Any]]) -> StoredMessage:
    """A turn from a row of the table `messages` and its decoded `parts`."""
    return StoredMessage(
        id=row.id,
        conversation_id=row.conversation_id,
        parent_id=row.parent_id,
        role=row.role,
        parts=tuple(Message(**part) for part in parts),
        run_id=row.run_id,
        status=row.status,
        created_at=row.created_at,
    )


class Thread(Sequence[StoredMessage]):
    """The turns from root to leaf. A page shows the last few of thousands, and only those are decoded.

    Args:
        rows: Of the table `messages`, their `parts` as the text of a JSON array.
    """

    def __init__(self, rows: Sequence[Row[Any]] = ()) -> None:
        self._rows = rows
        self._made: dict[int, StoredMessage] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> StoredMessage: ...
    @overload
    def __getitem__(self, at: slice) -> list[StoredMessage]: ...
    def __getitem__(self, at: int | slice) -> StoredMessage | list[StoredMessage]:
        if isinstance(at, slice):
            return [self[place] for place in range(*at.indices(len(self)))]
        place = range(len(self))[at]
        made = self._made.get(place)
        if made is None:
            row = self._rows[place]
            made = self._made[place] = stored_message(row, json.loads(row.parts))
        return made

    def versions(self, tree: Sequence[Row[Any]]) -> dict[str, tuple[str, ...]]:
        """For each turn that has versions their ids, the oldest first, its own among them.

        Args:
            tree: The `id`, `parent_id` and `role` of each turn of the conversation, in the order in which they came.
        """
        beside: defaultdict[tuple[str | None, str], list[str]] = defaultdict(list)
        for row in tree:
            beside[row.parent_id, row.role].append(row.id)
        found = ((row.id, tuple(beside[row.parent_id, row.role])) for row in self._rows)
        return {turn_id: versions for turn_id, versions in found if len(versions) > 1}


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A reply as a piece of work; `error` is `{"key", "message", "hint", "details"}`.

    `epoch` counts the processes that have held the run, from 1; writes of an earlier one are refused.
    """

    id: str
    owner_id: str
    conversation_id: str
    message_id: str
    status: RunStatus
    error: dict[str, Any] | None
    model: str
    usage: Usage | None
    started_at: float
    finished_at: float | None
    epoch: int = 1


@dataclass(frozen=True, slots=True)
class Lease:
    """Who holds a run: the process, and until when (Unix seconds) if it is not renewed; `None`: it was given up.

    Args:
        over: Whether that time is over, by the clock of the database.
    """

    worker: str
    until: float | None
    over: bool = field(default=False, compare=False)


WAITING: Final = "waiting"
"""In place of a process: nobody holds the run until its user has answered, or `until` is over."""
QUEUED: Final = "queued"
"""In place of a process: the run was asked for where no replies are written, and waits for a process that does."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event of a run as the table keeps it; `at` in seconds since the run began."""

    seq: int
    at: float
    kind: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WholeLog:
    """What the table holds of a run's events, unless a server that fell back has lost some.

    Args:
        before: How many rows were stored.
        rows: All of them anew, the last ones too.
    """

    before: int
    rows: Callable[[], Sequence[EventRow]]


@dataclass(frozen=True, slots=True)
class AgentThought:
    """One step of a reply: what was thought, what was called, what came of it.

    Args:
        id: Its own.
        message_id: The reply.
        thought: What was said before the call; in a step without one, what was thought last.
        tool_name: The tool; `None` in a step without a call.
        tool_input: Its arguments, as JSON text.
        observation: What the tool gave.
        position: From 1, without a gap in one reply.
        created_at: When the step was over, where that is known.
    """

    id: str
    message_id: str
    thought: str
    tool_name: str | None
    tool_input: str | None
    observation: str | None
    position: int
    created_at: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values: the arguments read (left as they are where they are no JSON), the time as text."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values["tool_input"] = _read(self.tool_input)
        values["created_at"] = self.created_at.isoformat() if self.created_at is not None else None
        return values


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A stored file; `name` is for people only, `media_type` was found in the content, `size` is in bytes."""

    id: str
    owner_id: str
    name: str
    media_type: str
    size: int
    sha256: str
    created_at: float

    @property
    def address(self) -> str:
        """How messages name the file."""
        return FILE_ADDRESS + self.id


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document of a conversation or of a named library: `conversation_id` or `collection_id`, never both.

    Args:
        library_id: Its id in the index of all the owner's documents, the hash of its content, as soon as a search
            finds some of it: of a ready one always, of one that is being read perhaps, else `None`.
        error: Why a failed one failed; in a ready one, what is wrong with it all the same.
        facts: What reading it found: `pages`, `total`, `scanned`, `tables`, `chunks`, `seconds`.
    """

    id: str
    owner_id: str
    conversation_id: str | None
    file_id: str
    name: str
    library_id: str | None
    status: DocumentStatus
    error: dict[str, Any] | None
    pages: int | None
    created_at: float
    facts: dict[str, Any] | None = None
    collection_id: str | None = None


@dataclass(frozen=True, slots=True)
class NamedLibrary:
    """Documents under a name, which conversations can use; how many there are, and how many are still being read."""

    id: str
    owner_id: str
    name: str
    created_at: float
    documents: int = 0
    reading: int = 0


@dataclass(frozen=True, slots=True)
class ConversationSnapshot:
    """What a page shows of a conversation: the branch that is shown from root to leaf, its documents and libraries.

    `versions` has the ids of all versions of a turn, the oldest first, for those turns that have several, and
    `settings` what was chosen for this conversation alone.
    """

    conversation: ConversationRecord
    thread: Sequence[StoredMessage]
    documents: list[DocumentRecord]
    libraries: list[NamedLibrary] = field(default_factory=list[NamedLibrary])
    versions: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])


def busy() -> ConflictError:
    """The conversation is being answered."""
    hint = "Wait until the reply ends, or stop it."
    return ConflictError("This conversation is being answered.", hint=hint, key="busy")


def new_id() -> str:
    """An id that cannot be guessed: 128 random bits as 22 letters that fit into an address."""
    return secrets.token_urlsafe(16)


def is_id(text: str) -> bool:
    """Whether a text has the form of an id."""
    return _ID.fullmatch(text) is not None


def _read(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text


def folder_name(owner: str) -> str:
    """The name of an owner's folders. Owners' names come from elsewhere: only what is plain is used as it is."""
    return owner if re.fullmatch(r"[\w-]{1,64}", owner, re.ASCII) else hashlib.sha256(owner.encode()).hexdigest()


def file_ids(messages: Iterable[Message]) -> list[str]:
    """The stored files that messages name, in order, each once."""
    addresses = (str(item.value) for message in messages for item in message.items if item.type != "text")
    found = (re.fullmatch(rf"{FILE_ADDRESS}([\w-]+)", address) for address in addresses)
    return list(dict.fromkeys(match[1] for match in found if match))
