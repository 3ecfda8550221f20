"""Reads files on this machine, by the queue that reads what comes by the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import StorageError
from core.ingesting.keeping import raised

if TYPE_CHECKING:
    from core.ingesting.keeping import Keeping
    from core.ingesting.sources import Item


class ReaderHere:
    """A `Reader` in this process: each file is opened in a process of its own, as ever.

    Args:
        keeping: Keeps files as documents.
        pdf_reader: The library that reads PDF.
        at_once: How many files are read at the same time.
    """

    def __init__(self, keeping: Keeping, pdf_reader: str, at_once: int) -> None:
        self._keeping, self._pdf_reader = keeping, pdf_reader
        self.at_once = at_once + 1  # one is on its way in while the others are read

    async def read(self, item: Item) -> str:
        """As of `Reader`."""
        async with self._keeping.opened(item, self._pdf_reader) as path, self._keeping.document(path, item.name) as new:
            intake, stores = self._keeping.intake, self._keeping.stores
            file = await stores.files.record(new.file_id)
            await intake.add(None, file, collection_id=new.collection_id)
            record = await intake.wait_for_end(new.id)
            if record.status == "reading":
                raise StorageError("What was read could not be stored.", hint="Look at the log, and run it once more.")
            if record.status != "ready":
                raise raised(record.error)
            return record.id
