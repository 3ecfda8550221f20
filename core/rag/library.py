"""A library: documents that can be searched and shown, in one folder.

    >>> with Library.open("my-library") as library:
    ...     library.add("manual.pdf")
    ...     for passage in library.find("How do I reset it?"):
    ...         print(passage.document, passage.page, passage.text)

The folder holds one SQLite file, the original files by the hash of their bytes, and pictures of pages that were looked
at. Nothing is read twice: the same bytes are the same document.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from core.errors import DocumentError, NotFoundError
from core.rag import records
from core.rag.config import RAGConfig
from core.rag.finding import Finder
from core.rag.index_file import DamagedIndexError, IndexFile, move_aside
from core.rag.originals import Known, Originals, Taken
from core.rag.pages import Pages
from core.rag.parsers.catalog import HEAD
from core.rag.parsers.process import Limits
from core.rag.pictures import Pictures
from core.rag.reading import Reading, display_name, read_file, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping
    from types import TracebackType

    from core.rag.config import RetrievalType
    from core.rag.document import Document, PageShape, Passage, Rectangle

_log = logging.getLogger(__name__)
_P = ParamSpec("_P")
_T = TypeVar("_T")

_AT_ONCE = 2  # files that the async twins read in at the same time
_ZOOM = 2.0


class Library:
    """Documents in one folder, safe in many threads and processes. Use `Library.open`.

    Args:
        folder: Where everything is.
        config: How to cut and search.
        limits: What one file may cost.
    """

    def __init__(self, folder: Path, config: RAGConfig, limits: Limits | None = None) -> None:
        self._config = config
        self._limits = limits or Limits()
        self._originals = Originals(folder / "originals")
        self._pictures = Pictures(folder / "pictures", config.pdf_reader)
        self._file, lost = _opened(folder / "library.sqlite")
        self.pages = Pages(self._file, self._originals, folder / "pictures", config.pdf_reader)
        self._finder = Finder(self._file, config)
        self._reading: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._readers = ThreadPoolExecutor(_AT_ONCE, "library-reader")
        self._finders = ThreadPoolExecutor(4, "library-finder")
        if lost:
            self._restore()

    @classmethod
    def open(
        cls, folder: str | Path, config: RAGConfig | Mapping[str, Any] | None = None, *, limits: Limits | None = None
    ) -> Library:
        """Open the library in `folder`, making it where there is none.

        A damaged file is moved aside, and everything is read again from the originals: nothing is lost.

        Raises:
            SettingsError: The config is wrong.
            StorageError: The folder cannot be used.
        """
        return cls(Path(folder), RAGConfig.of(config), limits)

    def close(self) -> None:
        """Let go of files and threads; what is being read is finished first."""
        self._readers.shutdown()
        self._finders.shutdown()
        self._finder.close()
        self._file.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---- taking in and out

    def add(self, path: str | Path, *, name: str | None = None) -> Document:
        """Read a file in; it is searchable when this returns. Bytes that are here already are not read again.

        Args:
            path: A file of this machine.
            name: What to call it; the file's own name by default. Only shown, never used as a path.

        Raises:
            NotFoundError: There is no such file.
            DocumentError: It cannot be read; nothing of it stays.
            NoSpaceError: The disk is full.
        """
        source = Path(path)
        shown = display_name(source.name if name is None else name)
        taken = self._originals.take(source, self._limits.file_bytes, HEAD)
        return self._add(taken, taken.id, Known(shown))

    def add_text(self, text: str, *, name: str, page: int | None = None) -> Document:
        """Take in a text.

        Args:
            text: Plain, or Markdown if the name ends so.
            name: What to call it.
            page: The page that it stands on, if it is part of something with pages.

        Raises:
            BrokenDocumentError: It is empty.
            NoSpaceError: The disk is full.
        """
        data = text.encode("utf-8", errors="replace")
        document_id = hashlib.sha256(data if page is None else data + f"\0page {page}".encode()).hexdigest()
        return self._add(self._originals.take_bytes(data), document_id, Known(display_name(name), page, is_text=True))

    def remove(self, document_id: str) -> None:
        """Take a document out, its file and pictures too.

        Raises:
            NotFoundError: It is not here.
        """
        with self._file.writing() as db:
            _present(records.get(db, document_id))
            self._finder.words.remove(db, records.chunk_ids(db, document_id))
            db.execute("DELETE FROM documents WHERE id = ?", (document_id,))
        self._finder.changed()
        self._originals.drop(document_id)
        self._pictures.drop(document_id)

    # ---- looking

    def documents(self) -> list[Document]:
        """All documents, the oldest first."""
        with self._file.reading() as db:
            return records.everything(db)

    def document(self, document_id: str) -> Document:
        """One document.

        Raises:
            NotFoundError: It is not here.
        """
        with self._file.reading() as db:
            return _present(records.get(db, document_id))

    def find(
        self,
        question: str,
        k: int | None = None,
        retrieval_type: RetrievalType | None = None,
        *,
        documents: Collection[str] | None = None,
    ) -> list[Passage]:
        """The passages that answer a question best, the best first.

        Args:
            question: In any words.
            k: How many; the config's `top_k` by default.
            retrieval_type: How to search; the config's by default.
            documents: Only in those with these ids; in all by default.

        Raises:
            StorageError: The library cannot be read.
        """
        most = self._config.top_k if k is None else k
        scored = self._finder.scored(question, most, retrieval_type, documents)
        with self._file.reading() as db:
            found = records.passages(db, scored)
        return [passage for passage in found if passage.score >= self._config.score_threshold]

    def beginnings(self, k: int | None = None, *, documents: Collection[str] | None = None) -> list[Passage]:
        """The first passages of each document, `k` in all: what "summarise this" is answered from.

        Raises:
            StorageError: The library cannot be read.
        """
        most = self._config.top_k if k is None else k
        with self._file.reading() as db:
            wanted = [d.id for d in records.everything(db) if documents is None or d.id in documents]
            each = -(-most // len(wanted)) if wanted else 0
            ids = [chunk_id for document_id in wanted for chunk_id in sorted(records.chunk_ids(db, document_id))[:each]]
            return records.passages(db, [(chunk_id, 0.0) for chunk_id in ids[:most]])

    def wait_for_vectors(self, seconds: float | None = None) -> bool:
        """Wait until search by meaning knows every chunk, `seconds` at most; whether it does.

        Search by words knows them as soon as `add` returns, and stands in until then. Where the library searches by
        words alone there is nothing to wait for.
        """
        return self._finder.wait_for_vectors(seconds)

    def wait_for_words(self, seconds: float | None = None) -> bool:
        """Wait until the quick index of a large library is up to date, `seconds` at most; whether it is.

        Nothing has to wait for it: search finds the same without it, only slower.
        """
        return self._finder.wait_for_words(seconds)

    # ---- showing

    def page_picture(self, passage: Passage, zoom: float = _ZOOM) -> bytes:
        """The passage's page as PNG with the passage marked.

        Args:
            passage: From `find`.
            zoom: Pixels for each point (1/72 inch).

        Raises:
            NotFoundError: The document is gone.
            DocumentError: It has no pages (key `document_no_pages`), or the page cannot be drawn.
        """
        document = self.document(passage.document_id)
        original = self._originals.path(document.id)
        return self._pictures.get(document, original, passage.page or 0, zoom, passage.rectangles)

    def page_image(self, document_id: str, page: int, zoom: float = _ZOOM) -> bytes:
        """A page as PNG, unmarked; errors as in `page_picture`."""
        document = self.document(document_id)
        return self._pictures.get(document, self._originals.path(document.id), page, zoom)

    def page_size(self, document_id: str, page: int) -> tuple[float, float]:
        """Width and height of a page as displayed, in points.

        Raises:
            NotFoundError: There is no such document or page.
            DocumentError: Its pages cannot be shown (key `document_no_pages`).
        """
        shape = self._shape(document_id, page)
        return (shape.width, shape.height)

    def text_box(self, document_id: str, page: int) -> Rectangle | None:
        """The box around all text of a page, in points; `None` where there is no text. Errors as in `page_size`."""
        return self._shape(document_id, page).text_box

    # ---- the same without blocking the loop

    async def aadd(self, path: str | Path, *, name: str | None = None) -> Document:
        """`add`, in a thread; at most two files are read at once."""
        return await self._within(self._readers, self.add, path, name=name)

    async def afind(
        self,
        question: str,
        k: int | None = None,
        retrieval_type: RetrievalType | None = None,
        *,
        documents: Collection[str] | None = None,
    ) -> list[Passage]:
        """`find`, in a thread."""
        return await self._within(self._finders, self.find, question, k, retrieval_type, documents=documents)

    async def abeginnings(self, k: int | None = None, *, documents: Collection[str] | None = None) -> list[Passage]:
        """`beginnings`, in a thread."""
        return await self._within(self._finders, self.beginnings, k, documents=documents)

    async def aremove(self, document_id: str) -> None:
        """`remove`, in a thread."""
        await self._within(self._finders, self.remove, document_id)

    async def apage_picture(self, passage: Passage, zoom: float = _ZOOM) -> bytes:
        """`page_picture`, in a thread."""
        return await self._within(self._finders, self.page_picture, passage, zoom)

    async def apage_image(self, document_id: str, page: int, zoom: float = _ZOOM) -> bytes:
        """`page_image`, in a thread."""
        return await self._within(self._finders, self.page_image, document_id, page, zoom)

    # ---- inside

    @staticmethod
    async def _within(pool: ThreadPoolExecutor, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.get_running_loop().run_in_executor(pool, partial(work, *args, **kwargs))

    def _shape(self, document_id: str, page: int) -> PageShape:
        self._pictures.check(self.document(document_id))
        with self._file.reading() as db:
            return records.shape(db, document_id, page)

    def _add(self, taken: Taken, document_id: str, known: Known) -> Document:
        try:
            with self._alone(document_id):
                return self._same(document_id, known) or self._read_and_keep(taken, document_id, known)
        finally:
            taken.path.unlink(missing_ok=True)

    def _same(self, document_id: str, known: Known) -> Document | None:
        """The document that these bytes are already, under the name that they came with this time."""
        with self._file.reading() as db:
            document = records.get(db, document_id)
        if document is None or document.name == known.name:
            return document
        with self._file.writing() as db:
            db.execute("UPDATE documents SET name = ? WHERE id = ?", (known.name, document_id))
        self._originals.describe(document_id, known)
        return replace(document, name=known.name)

    def _read_and_keep(self, taken: Taken, document_id: str, known: Known) -> Document:
        reading = self._read(taken.path, taken.head, document_id, known)
        self._originals.keep(taken, document_id)
        self._insert(reading)
        self._originals.describe(document_id, known)
        return reading.document

    def _read(self, path: Path, head: bytes, document_id: str, known: Known) -> Reading:
        if known.is_text:
            return read_text(path.read_text(encoding="utf-8"), known.page, document_id, known.name, self._config)
        return read_file(path, head, document_id, known.name, self._config, self._limits)

    def _insert(self, reading: Reading) -> None:
        document = reading.document
        title = document.title or document.name
        texts = [records.searched_text(title, chunk.heading, chunk.text) for chunk in reading.chunks]
        prepared = self._finder.words.prepare(texts)
        with self._file.writing() as db:
            if records.get(db, document.id):  # another process was faster
                return
            ids = records.insert(db, document, reading.chunks, reading.shapes)
            self._finder.words.add(db, ids, prepared)
        self._finder.changed()

    def _restore(self) -> None:
        """Read every original again, after the index was lost."""
        for document_id, known in self._originals.known():
            path = self._originals.path(document_id)
            try:
                with path.open("rb") as stream:
                    head = stream.read(HEAD)
                self._insert(self._read(path, head, document_id, known))
            except (DocumentError, OSError):
                _log.exception("A document could not be read again.")

    @contextmanager
    def _alone(self, document_id: str) -> Generator[None]:
        """Two who add the same bytes at once: the second waits, and finds them there."""
        with self._guard:
            lock = self._reading.setdefault(document_id, threading.Lock())
        try:
            with lock:
                yield
        finally:
            with self._guard:
                self._reading.pop(document_id, None)


def _opened(path: Path) -> tuple[IndexFile, bool]:
    """The library's file, and whether a damaged one had to make way for it."""
    try:
        return IndexFile(path), False
    except DamagedIndexError:
        move_aside(path)
        return IndexFile(path), True


def _present(document: Document | None) -> Document:
    if document is None:
        raise NotFoundError("There is no such document.")
    return document
