"""One document on its way into a library: how far it has come, how it is called off, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from core.errors import DocumentError, NotFoundError, ParlourError
from core.rag.document import ReadingProgress
from core.reading.senses import AGREED
from core.runs.run import as_dict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection

    from core.rag.document import Document
    from core.rag.library import Library
    from core.rag.unread_parts import UnreadParts
    from core.storage.base import DocumentRecord, FileRecord
    from core.storage.readings import Unread
    from core.storage.stores import OwnerStores


FOUND = ("ready", "stopped")
"""States in a library of what was read, all or some of it."""

_PASSING = frozenset({"document_id", "fetching", "row", "rows"})  # of no interest afterwards


def read(
    document: Document,
    name: str,
    progress: ReadingProgress | None,
    *,
    known: bool,
    unread: UnreadParts | None = None,
) -> dict[str, Any]:
    """Of a document that was read, to its end or until somebody stopped it.

    Args:
        document: As it is in the index.
        name: What its owner calls it.
        progress: How far it came.
        known: Nothing had to be read: the same bytes were there.
        unread: Files in it that could not be read, as far as they are known.
    """
    if document.status == "stopped":
        return {"status": "cancelled", "library_id": document.id, "facts": facts_of(progress)}
    told = replace(
        progress or ReadingProgress(document.id),
        pages=document.pages or 0,
        total=document.pages,
        chunks=document.chunks,
        scanned=document.scanned,
        tables=document.tables,
        seconds=document.seconds,
        invisible=document.invisible,
    )
    facts = {**(facts_of(told) or {}), **({"known": True} if known else {})}
    ready: dict[str, Any] = {"status": "ready", "library_id": document.id, "pages": document.pages, "facts": facts}
    if document.note:
        parts: dict[str, Any] = {}
        if unread is not None and unread.names:
            parts = {"files": [*unread.names], "more": unread.more}
        noted = DocumentError(f"{name}: {document.note}.", key=document.note, name=name, **parts)
        ready["error"] = as_dict(noted)
    return ready


def facts_of(progress: ReadingProgress | None) -> dict[str, Any] | None:
    """What is kept of how far it came."""
    if progress is None:
        return None
    return {name: value for name, value in asdict(progress).items() if name not in _PASSING}


def is_known(library: Library, digest: str, states: Collection[str] = ("ready",)) -> bool:
    """Whether a library has these bytes, in one of the states. Raises StorageError."""
    try:
        return library.document(digest).status in states
    except NotFoundError:
        return False


_LOG = logging.getLogger(__name__)
_CANCELLED = "document_cancelled"
_UNHELD = "document_unheld"
_LONGEST_PATIENCE = 60.0
_BYTES_A_SECOND = 1024 * 1024  # of scans; texts are read faster, and are smaller


class ReadingJob:
    """The reading of one document.

    Args:
        password: Opens it; kept nowhere but here, and no longer than the job lives.
        before: Its row before, if it was read already and is read anew, or was stopped and the rest is read.
        restores: It is read again because the index had lost it.
        epoch: The one in which this process reads it.
        unread: As it was taken, where it waited for a process, or was left by one.
    """

    def __init__(  # noqa: PLR0913 - what is known of it
        self,
        record: DocumentRecord,
        stores: OwnerStores,
        password: str = "",
        before: DocumentRecord | None = None,
        *,
        restores: bool = False,
        epoch: int = 0,
        unread: Unread | None = None,
    ) -> None:
        self.record = record
        self.epoch = epoch
        self.unread = unread
        self.stores = stores
        self.restores = restores
        self.password = password
        self.before = before
        self.progress: ReadingProgress | None = None
        """How far it is; `None` while it waits for its turn."""
        self.hears = False
        """Whether it is a recording, which a service hears."""
        self.passed = False
        """Whether it is left to others, which have its bytes."""
        self.cancelled = threading.Event()
        """Tells the library to give up."""
        self.enough = threading.Event()
        """Tells it to keep what it has, and to read no further."""
        self.opened = asyncio.Event()
        """It can be read: something of it was."""
        self.searchable = asyncio.Event()
        """A search finds some of it."""
        self.task: asyncio.Task[None] | None = None
        """Sees to it that the outcome is stored."""
        self.reading: asyncio.Task[dict[str, Any]] | None = None
        """The reading itself."""
        self._loop = asyncio.get_running_loop()

    def moved(self, progress: ReadingProgress) -> None:
        """Take note of how far it is; called from the thread that reads."""
        self.progress = progress
        if progress.pages or progress.chunks:
            self._loop.call_soon_threadsafe(self.opened.set)
        if progress.chunks:
            self._loop.call_soon_threadsafe(self.searchable.set)

    def stop(self) -> None:
        """Read no further; what a search finds already stays.

        Not of what has no pages and came with a question: nobody could say which part of it was read.
        """
        pages = self.progress.total if self.progress is not None else None
        if self.searchable.is_set() and (pages or self.record.conversation_id is None):
            self.enough.set()
        else:
            self.cancel()

    def cancel(self) -> None:
        """Call it off; what was read of it goes away again."""
        self.cancelled.set()
        if self.reading is not None:
            self.reading.cancel()

    def lost_hold(self) -> bool:
        """Whether the reading ended because the database was away for a moment: it is to be read again."""
        if self.reading is None or self.reading.cancelled():
            return False
        error = self.reading.exception()
        return isinstance(error, ParlourError) and error.words_key == _UNHELD

    def outcome(self) -> dict[str, Any]:
        """What is stored of a reading that is over: the status, and what goes with it."""
        if self.reading is None or self.reading.cancelled():
            return self._called_off()
        error = self.reading.exception()
        if error is None:
            state = self.reading.result()
            too_late = self.enough.is_set() and state["status"] == "ready" and self.before is None
            # Its question was to be answered without it; in a library it is as good as read.
            return self._called_off() if too_late and self.record.conversation_id is not None else state
        if not isinstance(error, ParlourError):
            _LOG.error("Document %s failed in a way nobody foresaw.", self.record.id, exc_info=error)
            error = DocumentError("It cannot be read.", hint="The log has the details.")
        if error.words_key == _CANCELLED:
            return self._called_off()
        told = as_dict(error)
        named = {**told, "details": {**told["details"], "name": self.record.name}}
        return {"status": "failed", "error": named, "facts": self._facts()}

    def kept(self, state: dict[str, Any]) -> dict[str, Any]:
        """What is stored if it was read on, or anew, in vain: it is as it was before, with what went wrong."""
        if self.before is None:
            return state
        of_before = {name: getattr(self.before, name) for name in ("status", "library_id", "pages", "facts", "error")}
        return {**of_before, "error": state.get("error") or self.before.error}

    def _called_off(self) -> dict[str, Any]:
        return {"status": "cancelled", "facts": self._facts()}

    def _facts(self) -> dict[str, Any] | None:
        """How far it came; whoever has agreed to its price is not asked again."""
        agreed = {AGREED: True} if (self.record.facts or {}).get(AGREED) else {}
        return {**(facts_of(self.progress) or {}), **agreed} or None


def patience(file: FileRecord) -> float:
    """For how many seconds others may go before a file: what is read in a moment goes before scans and long ones."""
    if file.media_type.startswith("image/"):
        return _LONGEST_PATIENCE
    return min(_LONGEST_PATIENCE, file.size / _BYTES_A_SECOND)


@dataclass(eq=False, slots=True)
class _Turn:
    owner: str
    due: float
    begun: asyncio.Future[None]


class Lanes:
    """Lets only so many read at once: who is due first comes first, and nobody takes all the room.

    Args:
        in_all: Readings at once.
    """

    def __init__(self, in_all: int, of_each: int) -> None:
        self._free = in_all
        self._of_each = of_each
        self._reading: Counter[str] = Counter()
        self._waiting: list[_Turn] = []

    @asynccontextmanager
    async def lane(self, owner: str, patience: float = 0.0) -> AsyncGenerator[None]:
        """Wait for a turn, and have it until the end of the block.

        Args:
            patience: Those who come up to so many seconds later may go before, if they have less.
        """
        loop = asyncio.get_running_loop()
        turn = _Turn(owner, loop.time() + patience, loop.create_future())
        self._waiting.append(turn)
        self._begin()
        try:
            await turn.begun
            yield
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self._free += 1
                self._reading[owner] -= 1
                self._reading += Counter()  # forgets those who read nothing
            self._begin()

    def _begin(self) -> None:
        """Give what room there is."""
        while self._free:
            able = [turn for turn in self._waiting if self._reading[turn.owner] < self._of_each]
            if not able:
                return
            turn = min(able, key=lambda one: one.due)
            self._waiting.remove(turn)
            self._free -= 1
            self._reading[turn.owner] += 1
            if not turn.begun.done():
                turn.begun.set_result(None)
