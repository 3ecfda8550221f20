"""What others share with an owner: looked up at each use, and opened in the others' own indices, to be read alone."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from core.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from core.rag.attached import Attached
    from core.rag.document import Passage
    from core.rag.library import Library
    from core.reading.libraries import Libraries, OpenedLibrary
    from core.storage.base import DocumentRecord
    from core.storage.documents import DocumentStore, Reach
    from core.storage.lending import Lent
    from core.storage.stores import OwnerStores


@dataclass(frozen=True, slots=True)
class Lenders:
    """What opens what is somebody else's.

    Args:
        index: The index of whoever it is told.
        libraries: Their libraries, and their documents.
    """

    index: Callable[[str], AbstractAsyncContextManager[Library]]
    libraries: Callable[[str], tuple[Libraries, DocumentStore]]


class LentIndices:
    """The one way from an owner to the index of somebody else: what the stores say is shared with the owner now.

    Args:
        stores: Of the owner.
        lenders: Opens what is somebody else's, once the stores have said whose.
    """

    def __init__(self, stores: OwnerStores, lenders: Lenders) -> None:
        self._stores = stores
        self._index = lenders.index
        self._libraries = lenders.libraries

    async def shelf(self, library_id: str) -> LentShelf:
        """A library that is lent to the owner now. Raises NotFoundError."""
        found = await self._stores.lent.library(library_id)
        return LentShelf(self._stores.lent, *self._libraries(found.library.owner_id))

    @asynccontextmanager
    async def joined(self, reach: Reach) -> AsyncGenerator[Library]:
        """The owner's index with what others share of what a conversation is answered from.

        What is taken back meanwhile is gone at the next look into it, key `library_taken_back`.

        Raises:
            StorageError: An index cannot be opened.
        """
        from core.rag.joined import JoinedLibrary, Lot  # brings the document readers with it

        async with AsyncExitStack() as opened:
            own = await opened.enter_async_context(self._index(self._stores.owner))
            lots: list[Lot] = []
            for whose, texts in reach.lent.items():
                library = await opened.enter_async_context(self._index(whose))
                lots.append(Lot(library, texts.documents, partial(_check, self._stores.lent, [*texts.libraries])))
            yield JoinedLibrary(own, lots)

    @asynccontextmanager
    async def index_of(self, library_id: str) -> AsyncGenerator[Library]:
        """The index that has all texts of a library that is lent to the owner now.

        Raises:
            NotFoundError: It is not.
            StorageError: The index cannot be opened.
        """
        found = await self._stores.lent.library(library_id)
        async with self._index(found.library.owner_id) as library:
            yield library

    @asynccontextmanager
    async def holding(self, document_id: str) -> AsyncGenerator[Library]:
        """The index that has a text of the owner's, or one in a library that is lent to the owner now.

        Args:
            document_id: The text's id in the index.

        Raises:
            NotFoundError: Neither; the owner's own index is not opened for that.
            StorageError: The index cannot be opened.
        """
        if await self._stores.documents.owns_library_document(document_id):
            whose: str | None = self._stores.owner
        else:
            whose = await self._stores.lent.holder(document_id)
        if whose is None:
            raise NotFoundError("There is no such document.", kind="document")
        async with self._index(whose) as library:
            yield library


class LentShelf:
    """A library that is lent to an owner, seen as `Libraries` shows one's own; what changes it asks for that right.

    Args:
        lent: What is shared with the owner.
        libraries: Those of whoever shares it, of which this one alone is used.
        documents: The same of documents.
    """

    def __init__(self, lent: Lent, libraries: Libraries, documents: DocumentStore) -> None:
        self._lent = lent
        self._libraries = libraries
        self._documents = documents

    async def opened(self, library_id: str) -> OpenedLibrary:
        """The library with its documents. Raises NotFoundError."""
        await self._lent.library(library_id)
        return await self._libraries.opened(library_id)

    async def tried(self, library_id: str, question: str) -> list[Passage]:
        """What a question finds in it, the best first. Raises NotFoundError."""
        await self._lent.library(library_id)
        return await self._libraries.tried(library_id, question)

    async def unsearched(self, library_id: str) -> list[Attached]:
        """Its documents that no search looks through whole yet. Raises NotFoundError."""
        await self._lent.library(library_id)
        return await self._libraries.unsearched(library_id)

    async def check_room(self, library_id: str) -> None:
        """Check that one document more of whoever shares it may wait to be read.

        Raises:
            NotFoundError: It is not lent to the owner.
            ParlourError: key `lent_to_read`.
            TooManyRequestsError: key `reading_full`: so many of theirs wait that no more may.
        """
        await self._lent.library(library_id, writes=True)
        await self._libraries.check_room(library_id)

    async def add(self, library_id: str, source: Path | bytes, name: str) -> DocumentRecord:
        """Copy a file into it: it belongs to whoever shares the library, and counts as theirs.

        Raises:
            NotFoundError: It is not lent to the owner.
            ParlourError: key `lent_to_read`.
            QuotaError: There is no room for it with whoever shares the library.
        """
        await self._lent.library(library_id, writes=True)
        return await self._libraries.add(library_id, source, name)

    async def remove(self, document_id: str) -> None:
        """Take a document out. Raises NotFoundError, ParlourError (`lent_to_read`)."""
        await self._check_written(document_id)
        await self._libraries.remove(document_id)

    async def cancel(self, document_id: str) -> None:
        """Stop reading a document. Raises NotFoundError, ParlourError (`lent_to_read`)."""
        await self._check_written(document_id)
        await self._libraries.cancel(document_id)

    async def read_again(self, document_id: str, password: str = "") -> None:
        """Read a document anew. Raises NotFoundError, ParlourError (`lent_to_read`)."""
        await self._check_written(document_id)
        await self._libraries.read_again(document_id, password)

    async def _check_written(self, document_id: str) -> None:
        shelf = (await self._documents.get(document_id)).collection_id
        await self._lent.library(shelf or "", writes=True)


def _check(lent: Lent, libraries: Sequence[str]) -> None:
    """Whether libraries are lent to the owner still, in a thread that looks into them."""
    if not lent.still(libraries):
        raise NotFoundError(
            "A library that somebody shared is not shared with you any more.",
            hint="Ask again: the answer is given without it.",
            key="library_taken_back",
        )
