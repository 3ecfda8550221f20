"""Files on their way into a named library: what every way of reading them shares."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from core.bridge.cancellation import run_to_end
from core.errors import DocumentError, NotFoundError, StorageError
from core.rag.parsers.catalog import HEAD, parser_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from core.ingesting.sources import Item, Source
    from core.rag.parsers.process import Limits
    from core.reading.owner_intake import OwnerIntake
    from core.storage.base import DocumentRecord, NamedLibrary
    from core.storage.stores import OwnerStores

# What is wrong with the house and not with a file: no further one could be kept either.
_OF_THE_HOUSE = frozenset({"no_space", "quota_full", "storage_failed", "library_closed"})


class Keeping:
    """Keeps files as documents of a named library, as the page does.

    Args:
        library: Which one.
        intake: Reads and removes the owner's documents.
        source: Where the files are.
        limits: What one file may cost.
    """

    def __init__(
        self, stores: OwnerStores, library: NamedLibrary, intake: OwnerIntake, source: Source, limits: Limits
    ) -> None:
        self.stores, self.library, self.intake = stores, library, intake
        self._source, self._limits = source, limits

    @asynccontextmanager
    async def opened(self, item: Item, pdf_reader: str) -> AsyncGenerator[Path]:
        """A file as one of this machine, to the end of an `async with` block, if there is a reader for its kind.

        Raises:
            DocumentError: There is none, or it cannot be opened.
            NotFoundError: It is gone.
            StorageError: Its store does not answer.
        """
        held = ExitStack()
        try:
            path = await run_to_end(
                asyncio.to_thread(held.enter_context, self._source.opened(item, self._limits.file_bytes))
            )
            await asyncio.to_thread(check_kind, path, item.name, pdf_reader)
            yield path
        finally:
            await run_to_end(asyncio.to_thread(held.close))

    @asynccontextmanager
    async def document(self, path: Path, name: str) -> AsyncGenerator[DocumentRecord]:
        """The document that a file is from now on; the same bytes are there once.

        Where the block fails or is cancelled, nothing stays of one that was not there before.
        """
        file = await self.stores.files.put(name, path)
        kept = ""
        try:
            record, _, epoch = await self.intake.noted(None, file, collection_id=self.library.id)
            kept = record.file_id
        finally:
            if kept != file.id:
                with suppress(StorageError):
                    await self.stores.files.delete(file.id)
        try:
            with self.intake.holding(record, epoch):
                yield record
        except BaseException:
            if kept == file.id:
                await run_to_end(self._undone(record))
            raise

    async def _undone(self, record: DocumentRecord) -> None:
        with suppress(NotFoundError):
            if (await self.stores.documents.get(record.id)).status == "ready":
                return
            await self.intake.cancel(record.id)
            gone = await self.stores.libraries.remove_document(record.id)
            await self.intake.delete_unneeded(*gone)


def check_kind(path: Path, name: str, pdf_reader: str) -> None:
    """Check that something reads such a file, before anything of it is kept. Raises DocumentError."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        said = f"{name!r} cannot be opened: {error.strerror}."
        raise DocumentError(said, hint="Let Parlour read it.", key="document_unopened", why=error.strerror) from error
    parser_for(name, head, pdf_reader)


def raised(stored: Mapping[str, Any] | None) -> DocumentError | StorageError:
    """The error of a reading that failed, from what its document keeps of it."""
    told = stored or {}
    key = str(told.get("key") or "document_failed")
    kind = StorageError if key in _OF_THE_HOUSE else DocumentError
    return kind(
        str(told.get("message") or ""), hint=str(told.get("hint") or ""), key=key, **(told.get("details") or {})
    )
