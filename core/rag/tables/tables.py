"""The tables of a library's documents: read once from what is kept of each, then asked."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import DocumentError, NoSpaceError, NotFoundError
from core.rag.document import Block
from core.rag.page_content import ROWS, kind_of
from core.rag.parsers.base import ParseOptions
from core.rag.parsers.catalog import HEAD, parser_for
from core.rag.parsers.process import Limits, cancelled, stream
from core.rag.tables.query import MOST_ROWS, SECONDS, Answer, Named, ask
from core.rag.tables.shape import called
from core.rag.tables.store import VERSION, saved, write

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator
    from pathlib import Path

    from core.rag.document import Document
    from core.rag.originals import Originals
    from core.rag.pages import Pages
    from core.rag.shelf import Shelf
    from core.rag.tables.store import Table

_KEPT = f"tables-{VERSION}.sqlite"
_MOST_DOCUMENTS = 60
_READS = 6  # times what reading a document may cost: every row of every sheet comes out of it
_REMEMBERED = 400  # documents


class Tables:
    """Part of a library; use `Library.tables`.

    Args:
        folder: That of the pictures of pages, which may be deleted at any time.
        pdf_reader: As in `RAGConfig`.
        limits: What reading one file may cost.
    """

    def __init__(
        self, shelf: Shelf, originals: Originals, pages: Pages, folder: Path, pdf_reader: str, limits: Limits
    ) -> None:
        self._shelf, self._originals, self._pages = shelf, originals, pages
        self._folder, self._pdf_reader = folder, pdf_reader
        self._limits = replace(
            limits,
            answer_bytes=_READS * limits.answer_bytes,
            seconds=_READS * limits.seconds,
            memory=2 * limits.memory,
        )
        self._guard = threading.Lock()
        self._known: dict[str, tuple[Table, ...]] = {}

    def of(self, document_ids: Collection[str], stopped: Callable[[], bool] | None = None) -> list[Named]:
        """The tables of documents, by names that queries use; read from what is kept of a document the first time.

        A document whose tables cannot be read has none here. Blocks.

        Args:
            document_ids: Of documents of the library; those that are still being read have no tables yet.
            stopped: Asked from another thread, five times a second, while a document is read; true ends that.

        Raises:
            DocumentError: `stopped` said so (key `document_cancelled`).
            NoSpaceError: The disk is full.
            StorageError: The library cannot be read.
        """
        wanted = set(document_ids)
        there = [one for one in self._shelf.documents() if one.id in wanted and one.tables]
        found: list[Named] = []
        taken: set[str] = set()
        for document in [one for one in there if one.status in {"ready", "stopped"}][:_MOST_DOCUMENTS]:
            tables = self._tables(document, stopped)
            for table in tables:
                title = table.title if len(tables) > 1 else ""
                name = called(document.name, title, taken)
                taken.add(name)
                found.append(Named(name, document.name, document.id, self._path(document.id), table))
        return found

    def ask(
        self, document_ids: Collection[str], query: str, *, seconds: float = SECONDS, most: int = MOST_ROWS
    ) -> Answer:
        """Ask the tables of documents with one SELECT, in the SQL of SQLite. Blocks.

        Args:
            document_ids: As of `of`.
            query: Names tables and columns as `of` gives them.
            seconds: What it may take.
            most: Rows of the result that are given.

        Raises:
            BadArgumentsError: It is no SELECT over these tables, or wrong.
            ToolError: It takes too long.
            NoSpaceError: The disk is full.
            StorageError: The library cannot be read.
        """
        return ask(self.of(document_ids), query, seconds=seconds, most=most)

    def _path(self, document_id: str) -> Path:
        return self._folder / document_id / _KEPT

    def _tables(self, document: Document, stopped: Callable[[], bool] | None) -> tuple[Table, ...]:
        path = self._path(document.id)
        with self._guard:  # one at a time: reading a large sheet takes memory
            known = self._known.get(document.id)
            if known is not None and (not known or path.is_file()):
                return known
            try:
                found = saved(path)
            except (OSError, ValueError, KeyError, TypeError):
                found = self._read(document, path, stopped)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[document.id] = found
            return found

    def _read(self, document: Document, path: Path, stopped: Callable[[], bool] | None) -> tuple[Table, ...]:
        kind = kind_of(document.media_type)
        is_sheet, cut = kind == "sheet", ROWS if kind == "text" else 0
        try:
            with closing(
                self._streamed(document, "table_rows", stopped) if is_sheet else self._blocks(document, stopped)
            ) as blocks:
                return write(path, blocks, sheet=is_sheet, cut=cut)
        except NoSpaceError:
            raise
        except (DocumentError, NotFoundError):
            if stopped is not None and stopped():  # its tables are read when they are asked for again
                raise cancelled() from None
            return ()

    def _blocks(self, document: Document, stopped: Callable[[], bool] | None) -> Generator[Block]:
        """The blocks of a document, from what was kept of its pages when it was read; a text is read again."""
        if kind_of(document.media_type) != "lines":
            yield from self._pages.blocks(document.id)
            return
        with self._originals.path(document.id).open("rb") as file:
            parser, _ = parser_for(document.name, file.read(HEAD), self._pdf_reader)
        yield from self._streamed(document, parser, stopped)

    def _streamed(self, document: Document, parser: str, stopped: Callable[[], bool] | None) -> Generator[Block]:
        original = self._originals.path(document.id)
        options = ParseOptions(pictures=False)
        with closing(stream(original, document.name, parser, self._limits, options, stopped)) as found:
            for one in found:
                if isinstance(one, Block):
                    yield one
