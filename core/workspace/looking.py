"""What stands in the documents that an owner may read: passages with all the words that somebody looks for."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from core.errors import NotFoundError
from core.storage.conversations import clean
from core.storage.excerpts import Excerpt, Sought, excerpt
from core.storage.search import FoundName

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from core.rag.document import Passage
    from core.rag.library import Library
    from core.storage.stores import OwnerStores
    from core.workspace.lent import LentIndices

MOST: Final = 12
"""Passages that are found at most."""
OF_EACH: Final = 3
"""Of them of one document."""
_LOOKED_AT: Final = 120  # passages that may fit


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that has all the words.

    Args:
        passage: Itself, with its document's id in the index, its chunk and its page.
        place: Where its document stands: a conversation or a library.
        said: The line of it with most of the words.
    """

    passage: Passage
    place: FoundName
    said: Excerpt


@dataclass(frozen=True, slots=True)
class FoundPassages:
    """At most `MOST` passages, and whether more fit."""

    passages: tuple[FoundPassage, ...] = ()
    more: bool = False


class DocumentSearch:
    """Looks through the text of one owner's documents, and of those in libraries that are lent to the owner.

    What stands in a temporary conversation is not found.

    Args:
        stores: Of the owner.
        lent: What others share with the owner.
        index: Opens the owner's index.
    """

    def __init__(self, stores: OwnerStores, lent: LentIndices, index: Callable[[], Awaitable[Library]]) -> None:
        self._stores = stores
        self._lent = lent
        self._index = index

    async def find(self, text: str) -> FoundPassages:
        """The passages with all words of `text`, the last of them perhaps only begun.

        Accents and capitals do not matter. A word may stand in a heading above the passage or in the document's name.

        Raises:
            StorageError: The database failed, or an index cannot be read.
        """
        said = clean(text)
        sought = Sought.of(said)
        if not sought.words:
            return FoundPassages()
        each = [await self._own(said, sought), *[one async for one in self._others(said, sought)]]
        found = [one for rank in zip_longest(*each) for one in rank if one is not None]
        return FoundPassages(tuple(found[:MOST]), more=len(found) > MOST)

    async def _own(self, text: str, sought: Sought) -> Sequence[FoundPassage]:
        places = await self._stores.search.places()
        if not places:  # nothing is opened for who has no documents
            return ()
        found = await (await self._index()).aholding(text, _LOOKED_AT)
        return await asyncio.to_thread(_fitting, found, places, sought)

    async def _others(self, text: str, sought: Sought) -> AsyncGenerator[Sequence[FoundPassage]]:
        for one in await self._stores.lent.libraries():
            shelf = one.library
            try:
                opened = await (await self._lent.shelf(shelf.id)).opened(shelf.id)
                places = {
                    record.library_id: FoundName(record.id, record.name, (), None, shelf.id, shelf.name)
                    for record in opened.documents
                    if record.library_id is not None
                }
                if not places:
                    continue
                async with self._lent.index_of(shelf.id) as library:
                    found = await library.aholding(text, _LOOKED_AT, documents=list(places))
            except NotFoundError:  # it was taken back meanwhile
                continue
            yield await asyncio.to_thread(_fitting, found, places, sought)


def _fitting(passages: Sequence[Passage], places: Mapping[str, FoundName], sought: Sought) -> list[FoundPassage]:
    """Those passages that have the words as they were typed, a few of each document."""
    found: list[FoundPassage] = []
    count: Counter[str] = Counter()
    for one in passages:
        place = places.get(one.document_id)
        if place is None or count[one.document_id] >= OF_EACH or len(found) > MOST:
            continue
        said = excerpt(one.text, sought)
        if said.marks and sought.fits(f"{place.name}\n{one.heading}\n{one.text}"):
            count[one.document_id] += 1
            found.append(FoundPassage(one, place, said))
    return found
