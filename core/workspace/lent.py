"""What others share with an owner: looked up at each use, and opened in the others' own indices, to be read alone."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from core.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from core.rag.library import Library
    from core.storage.documents import Reach
    from core.storage.lending import Lent
    from core.storage.stores import OwnerStores


class LentIndices:
    """The one way from an owner to the index of somebody else: what the stores say is shared with the owner now.

    Args:
        stores: Of the owner.
        index: Opens the index of whoever it is told.
    """

    def __init__(self, stores: OwnerStores, index: Callable[[str], AbstractAsyncContextManager[Library]]) -> None:
        self._stores = stores
        self._index = index

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


def _check(lent: Lent, libraries: Sequence[str]) -> None:
    """Whether libraries are lent to the owner still, in a thread that looks into them."""
    if not lent.still(libraries):
        raise NotFoundError(
            "A library that somebody shared is not shared with you any more.",
            hint="Ask again: the answer is given without it.",
            key="library_taken_back",
        )
