"""An owner's named libraries: made, filled, tried with a question, and used by conversations."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import NotFoundError, ParlourError, StorageError
from core.messages.invisible import plain_line
from core.rag.attached import with_meaning
from core.storage.conversations import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from core.rag.attached import Attached
    from core.rag.document import Passage
    from core.rag.library import Library
    from core.reading.owner_intake import OwnerIntake
    from core.storage.base import DocumentRecord, NamedLibrary
    from core.storage.lending import LentLibrary
    from core.storage.stores import OwnerStores

_LONGEST_NAME = 80
_LONGEST_QUESTION = 2_000
_TRIED = 8


@dataclass(frozen=True, slots=True)
class OpenedLibrary:
    """A library with its documents, the oldest first."""

    library: NamedLibrary
    documents: list[DocumentRecord]


def names_in(libraries: Iterable[OpenedLibrary]) -> dict[str, list[str]]:
    """What the documents of libraries are called there, by their ids in the index."""
    return names_of(record for one in libraries for record in one.documents)


def names_of(records: Iterable[DocumentRecord]) -> dict[str, list[str]]:
    """What documents are called, by their ids in the index; several names where one was added twice."""
    names: dict[str, list[str]] = {}
    for record in records:
        if record.library_id is not None:
            names.setdefault(record.library_id, []).append(record.name)
    return names


class Libraries:
    """The named libraries of one owner; it cannot name another.

    All documents of an owner are in one index, each text once; a named library is a choice of them.

    Args:
        intake: Reads them.
        index: Opens the owner's index.
        changed: Called with a conversation when it uses other libraries than before.
    """

    def __init__(
        self,
        stores: OwnerStores,
        *,
        intake: OwnerIntake,
        index: Callable[[], AbstractAsyncContextManager[Library]],
        changed: Callable[[str], None],
    ) -> None:
        self._stores = stores
        self._lent = stores.lent
        self._documents = stores.documents
        self._files = stores.files
        self._intake = intake
        self._index = index
        self._changed = changed

    # ---- libraries

    async def list(self) -> list[NamedLibrary]:
        """The owner's libraries, by name."""
        return await self._stores.libraries.list()

    async def lent(self) -> list[LentLibrary]:
        """Those that others share with the owner now, by name. Raises StorageError."""
        return await self._lent.libraries()

    async def known(self, library_id: str) -> NamedLibrary:
        """A library of the owner's, or one that is lent to the owner. Raises NotFoundError."""
        with suppress(NotFoundError):
            return (await self._lent.library(library_id)).library
        return await self._stores.libraries.get(library_id)

    async def opened(self, library_id: str) -> OpenedLibrary:
        """A library with its documents. Raises NotFoundError."""
        library = await self._stores.libraries.get(library_id)
        return OpenedLibrary(library, await self._documents.list_shelved(library_id))

    async def create(self, name: str) -> NamedLibrary:
        """A new, empty library.

        Raises:
            ParlourError: key `library_unnamed`: the name is empty.
            ConflictError: key `library_name_taken`.
        """
        return await self._stores.libraries.create(checked_name(name))

    async def rename(self, library_id: str, name: str) -> None:
        """Give it another name. Raises NotFoundError, and as `create`."""
        await self._stores.libraries.rename(library_id, checked_name(name))
        self._tell(await self._stores.libraries.users(library_id))

    async def delete(self, library_id: str) -> None:
        """Delete it with its documents; conversations use it no more. Raises NotFoundError."""
        users = await self._stores.libraries.users(library_id)
        for record in await self._documents.list_shelved(library_id):
            await self._call_off(record)
        freed, unneeded = await self._stores.libraries.delete(library_id)
        await self._intake.delete_unneeded(freed, unneeded)
        self._tell(users)

    # ---- documents

    async def check_room(self, library_id: str) -> None:
        """Check that one document more may wait to be read.

        Raises:
            NotFoundError: The library is not the owner's.
            TooManyRequestsError: key `reading_full`: so many of the owner wait that no more may.
        """
        await self._stores.libraries.get(library_id)
        await self._intake.check_room_for((), more=1)

    async def add(self, library_id: str, source: Path | bytes, name: str) -> DocumentRecord:
        """Copy a file into a library; it is read in the background. The same bytes are there once.

        Raises:
            NotFoundError: The library is not the owner's.
            NoSpaceError: The disk is full; nothing of the file is kept.
        """
        await self._stores.libraries.get(library_id)
        file = await self._files.put(name, source)
        kept = ""
        try:
            record = await self._intake.add(None, file, collection_id=library_id)
            kept = record.file_id
        finally:
            if kept != file.id:  # its bytes were there already, or nothing needs them
                with suppress(StorageError):
                    await self._files.delete(file.id)
        return record

    async def remove(self, document_id: str) -> None:
        """Take a document out of its library; its reading ends. Raises NotFoundError."""
        await self._call_off(await self._shelved(document_id))
        await self._intake.delete_unneeded(*await self._stores.libraries.remove_document(document_id))

    async def cancel(self, document_id: str) -> None:
        """Stop reading a document; it stays in the list, with what was read of it. Raises NotFoundError."""
        await self._call_off(await self._shelved(document_id))

    async def read_again(self, document_id: str, password: str = "") -> None:
        """Read a document anew; nothing to one that is being read. Until it was read, what there is of it stays.

        Args:
            password: What opens it, if it is locked and was not opened yet.

        Raises:
            NotFoundError: There is none such in a library of the owner.
        """
        await self._shelved(document_id)
        await self._intake.renew(document_id, password)

    async def tried(self, library_id: str, question: str) -> list[Passage]:
        """What a question finds in a library, the best first. Raises NotFoundError."""
        names = names_in([await self.opened(library_id)])
        asked = " ".join(question.split())[:_LONGEST_QUESTION]
        if not names or not asked:
            return []
        from core.rag.joined import JoinedLibrary  # brings the document readers with it

        async with self._index() as index:
            return await JoinedLibrary(index, names=names).afind(asked, _TRIED, documents=[*names])

    async def unsearched(self, library_id: str) -> list[Attached]:
        """The documents of a library that no search looks through whole yet. Raises NotFoundError."""
        files = await self._intake.shelved(library_id)
        if any(one.library_id is not None for one in files):
            async with self._index() as index:
                files = await asyncio.to_thread(with_meaning, files, index)
        return [one for one in files if not one.is_whole]

    # ---- conversations

    async def used_by(self, conversation_id: str) -> list[NamedLibrary]:
        """The libraries that a conversation uses, by name. Raises NotFoundError."""
        return await self._stores.libraries.used_by(conversation_id)

    async def lost_by(self, conversation_id: str) -> Sequence[str]:
        """Ids of those that a conversation is to use and that nobody shares with the owner now. Raises NotFoundError.

        A conversation for which such a library is switched off does not have it any more.
        """
        return await self._stores.libraries.lost_by(conversation_id)

    async def lost_among(self, library_ids: Sequence[str]) -> Sequence[str]:
        """Those of several libraries that somebody else has, who does not share them with the owner now."""
        return await self._stores.libraries.lost_among(library_ids)

    async def has_lost(self, conversation_id: str, text_id: str) -> bool:
        """Whether a text of the index stands in a library of `lost_by`. Raises NotFoundError."""
        return await self._stores.libraries.held_by_lost(conversation_id, text_id)

    async def use(self, conversation_id: str, library_id: str, *, on: bool) -> None:
        """Let a conversation use a library, or no more, also one that is not shared any more. Raises NotFoundError."""
        await self._stores.libraries.use(conversation_id, library_id, on=on)
        self._tell([conversation_id])

    # ---- inside

    async def _shelved(self, document_id: str) -> DocumentRecord:
        record = await self._documents.get(document_id)
        if record.collection_id is None:
            raise NotFoundError("There is no such document in a library.", kind="document")
        return record

    async def _call_off(self, record: DocumentRecord) -> None:
        if record.status == "reading":
            with suppress(NotFoundError):  # taken out meanwhile
                await self._intake.cancel(record.id)

    def _tell(self, conversation_ids: Sequence[str]) -> None:
        for conversation_id in conversation_ids:
            self._changed(conversation_id)


def checked_name(name: str) -> str:
    """A library's name as it is kept: one line, not too long.

    Raises:
        ParlourError: key `library_unnamed`: there is nothing of it.
    """
    plain = plain_line(clean(name))
    if not plain:
        raise ParlourError("The library needs a name.", hint="Type one.", key="library_unnamed")
    return plain[:_LONGEST_NAME].rstrip()
