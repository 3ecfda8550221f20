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
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from core.errors import need_packages
from core.rag.config import RAGConfig
from core.rag.context_builder import ContextBuilder
from core.rag.document import required
from core.rag.document_locks import DocumentLocks, ReadRequest
from core.rag.draft import display_name
from core.rag.embedded_shelf import EmbeddedShelf
from core.rag.figures import Figures
from core.rag.given import (
    check_count,
    check_folder,
    check_ids,
    check_kind,
    check_page,
    check_page_of,
    check_parts,
    check_passage,
    check_question,
    check_zoom,
)
from core.rag.ingest import Ingestor, Parts, open_index, restore_mark
from core.rag.not_read import of_text
from core.rag.originals import FileInfo, Originals
from core.rag.pages import Pages, Pictures
from core.rag.parsers.catalog import HEAD
from core.rag.parsers.process import Limits
from core.rag.readings import RememberedNotes
from core.rag.retriever import Retriever
from core.rag.sources import file_here, path_given
from core.rag.tables.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from types import TracebackType

    from core.rag.config import RetrievalType
    from core.rag.document import Document, Heading, PageShape, Passage, ReadingProgress, Rectangle
    from core.rag.originals import Fetch
    from core.rag.prepared import Prepared, PreparedVectors
    from core.rag.shelf import Shelf

_P = ParamSpec("_P")
_T = TypeVar("_T")

_AT_ONCE = 2  # files that the async twins read in at the same time
_ZOOM = 2.0


class Library:
    """Documents in one folder, safe in many threads and processes. Use `Library.open`.

    Args:
        folder: The library's folder.
        config: How to chunk and search.
        limits: What one file may cost.
        shelf: Where its passages are; a file in the folder by default. It is closed with the library.
        fetch: As of `Originals`.

    Attributes:
        pages: The pages of documents, with their words.
        tables: The tables of documents, which one SELECT asks.
        figures: The figures of documents, and their pictures.
        context: Builds passages by their positions in their documents.
        readings: What models noted of documents that they read whole.
        retriever: Searches, and knows how far the vectors and the quick indices are.
    """

    def __init__(
        self,
        folder: Path,
        config: RAGConfig,
        limits: Limits | None = None,
        shelf: Shelf | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        self._config = config
        self._limits = limits or Limits()
        self._originals = Originals(folder / "originals", fetch)
        self._pictures = Pictures(folder / "pictures", config.pdf_reader)
        index = folder / "library.sqlite"
        self._shelf: Shelf = shelf or EmbeddedShelf(open_index(index))
        self.pages = Pages(self._shelf, self._originals, folder / "pictures", config.pdf_reader, self._limits)
        self.tables = Tables(
            self._shelf, self._originals, self.pages, folder / "pictures", config.pdf_reader, self._limits
        )
        self.figures = Figures(self._shelf, self._originals, self._pictures)
        self.retriever = Retriever(self._shelf, config)
        self.context = ContextBuilder(self._shelf)
        self.readings = RememberedNotes(self._shelf.notes)
        self._locks = DocumentLocks(self._shelf.lock)
        parts = Parts(
            self._shelf, self._originals, self._pictures, self.pages, self.retriever, self._locks, restore_mark(index)
        )
        self._ingestor = Ingestor(parts, config, self._limits)
        self._readers = ThreadPoolExecutor(_AT_ONCE, "library-reader")
        self._finders = ThreadPoolExecutor(4, "library-finder")
        try:
            self._ingestor.restore()
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls,
        folder: str | Path,
        config: RAGConfig | Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        shelf: Shelf | None = None,
        fetch: Fetch | None = None,
    ) -> Library:
        """Open the library in `folder`, making it where there is none; `config` says how it reads and searches.

        A damaged file is moved aside, and everything is read again from the originals: nothing is lost. So it is where
        the file was deleted or emptied. Where reading again is cut short, by a full disk or because the process is
        killed, the next opening goes on with it.
        `limits` are those of reading a file. `shelf` holds the passages, where that is no file in the folder; it is
        closed with the library. `fetch` puts the file of a document that was added on another machine, by its SHA-256,
        under a path, and says whether it could.

        Raises:
            MissingExtraError: The extra `documents` is not installed.
            NoSpaceError: The disk is full, and there is something to read again.
            SettingsError: The config, or another argument, is wrong; the message names it.
            StorageError: The folder cannot be used.
        """
        need_packages("A library of documents", ["numpy", "snowballstemmer"])
        place = path_given(folder, "folder", 'Give the path of a folder, such as "my-library".')
        check_folder(place)
        check_parts(limits, shelf, fetch)
        return cls(Path(place), RAGConfig.of(config), limits, shelf, fetch)

    def close(self) -> None:
        """Let go of files and threads; what is being read is given up, and nothing of it stays."""
        self._locks.close()
        self._readers.shutdown()
        self._finders.shutdown()
        self.retriever.close()
        self._shelf.close()

    def is_intact(self) -> bool:
        """Whether the library's file is still the one that was opened: not closed, deleted, emptied or replaced."""
        return self._shelf.is_intact()

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> Library:
        """The same library: copies of an agent share it."""
        return self

    def __reduce__(self) -> NoReturn:
        """Raises TypeError: an open library stays in its process."""
        raise TypeError("A Library cannot be pickled: open it again with Library.open(folder) where it is needed.")

    # ---- taking in and out

    def add(  # noqa: PLR0913 - what is wanted of a reading
        self,
        path: str | Path,
        *,
        name: str | None = None,
        password: str = "",
        progress: Callable[[ReadingProgress], None] | None = None,
        cancelled: threading.Event | None = None,
        enough: threading.Event | None = None,
        again: bool = False,
    ) -> Document:
        """Read a file in; all of it is searchable when this returns, the first pages of a long one much sooner.

        Until then the document has the status "reading", and `remove` ends it. Bytes that are here already are not
        read again, and of two who add the same at once the second waits. What a process left that was killed while it
        read is replaced. A document that proves damaged is kept as far as it can be read, with the note
        "document_damaged"; a letter or an archive in which files could not be read has "document_parts_unread":
        where it is shown it says which and why, and no search finds that.

        Of an encrypted PDF or Office file (DOCX, XLSX, PPTX, DOC, XLS, PPT) a copy without encryption is kept as the
        original, readable by its owner only, like the passages in the library's file: its pages can be shown later
        without asking again. The password itself is neither kept nor logged, and reaches the reader through its
        standard input.

        Args:
            path: A file of this machine, or the address of a page or file on the web, which is fetched.
            name: What to call it; its own name or title by default. Only shown, never used as a path.
            password: Opens it, if it is encrypted; other encrypted files, such as ODS, are refused.
            progress: Told how far reading is, in this thread; ten times a second at most, and once at the end.
            cancelled: Ends reading within a second when it is set; nothing of it stays.
            enough: Ends it too, but what was read stays as a document that is `stopped`; adding it once more reads the
                rest. Set before anything can be found, it does what `cancelled` does.
            again: Read it anew from what is kept of it (no password is asked); until all is read, the old text stays.

        Raises:
            SettingsError: It is no path.
            NotFoundError: There is no such file.
            FetchError: The address cannot be fetched, or may not be.
            LockedDocumentError: It is encrypted, and the password is missing, or wrong (key
                `document_password_wrong`).
            DocumentError: It cannot be read, or was cancelled or removed meanwhile (key `document_cancelled`); nothing
                of it stays but what a stopped one had.
            NoSpaceError: The disk is full; it stays no more than then.
        """
        path = path_given(path, "A document", hint="Give its path or its address; a text goes to add_text.")
        return self._add_file(
            path, name, password, ReadRequest(progress, (cancelled,) if cancelled else (), again, enough)
        )

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
        info = FileInfo(display_name(name), page, is_text=True)
        return self._ingestor.add(self._originals.stage_bytes(data), document_id, info, "", ReadRequest())

    def take(self, path: str | Path, ready: Prepared, vectors: PreparedVectors) -> Document:
        """Take in a file that was read elsewhere; nothing where its bytes are here already.

        Args:
            path: The file.
            ready: What was read of it.
            vectors: Keeps the vectors that came with it.

        Raises:
            NotFoundError: There is no such file.
            DocumentError: It has changed since it was read (key `document_changed`), or is no file.
            NoSpaceError: The disk is full; nothing of it stays.
        """
        staged = self._originals.stage(Path(path), self._limits.file_bytes, HEAD)
        return self._ingestor.take(staged, ready, vectors)

    def prepared_vectors(self) -> PreparedVectors:
        """What keeps vectors that come with documents which were read elsewhere, for `take`."""
        from core.rag.prepared import PreparedVectors

        return PreparedVectors(self._shelf, self._config.embedding_model)

    def read_at_once(self, count: int) -> None:
        """Let the async twins read `count` files at the same time from now on; two where nothing is said."""
        readers, self._readers = self._readers, ThreadPoolExecutor(count, "library-reader")
        readers.shutdown(wait=False)

    def remove(self, document_id: str) -> None:
        """Take the document `document_id` out, its file and pictures too. One that is being read is read no further.

        Raises:
            NotFoundError: It is not here.
        """
        if not self._locks.is_reading(document_id):
            self.document(document_id)
        self._ingestor.remove(document_id)

    # ---- looking

    def documents(self) -> list[Document]:
        """All documents, the oldest first."""
        return self._shelf.documents()

    def headings(self, document_ids: Collection[str]) -> dict[str, list[Heading]]:
        """The headings of the first two levels of each of these documents that has any.

        Args:
            document_ids: Of documents; others have no headings.

        Raises:
            StorageError: The library cannot be read.
        """
        return self._shelf.headings(document_ids)

    def document(self, document_id: str) -> Document:
        """The document of the id `document_id`.

        Raises:
            NotFoundError: It is not here.
        """
        return required(self._shelf.document(document_id))

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
            SettingsError: There is no such way of searching, or it needs vectors, and the library was opened without;
                or another argument is not what it has to be. The message names it.
            StorageError: The library cannot be read.
        """
        check_question(question)
        check_count(k)
        check_kind(retrieval_type)
        check_ids(documents)
        most = self._config.top_k if k is None else k
        there = self._shelf.passages(self.retriever.scored(question, most, retrieval_type, documents))
        found = of_text(there)
        if len(found) < len(there):  # as many others in place of what is no text
            more = self.retriever.scored(question, most + len(there) - len(found), retrieval_type, documents)
            found = of_text(self._shelf.passages(more))[:most]
        return [passage for passage in found if passage.score >= self._config.score_threshold]

    def holding(self, text: str, k: int, *, documents: Collection[str] | None = None) -> list[Passage]:
        """Passages that may hold all words of `text`, the last of them perhaps only begun; the best first.

        It asks what stands there, where `find` asks what answers. Words are compared by their stems, so a passage may
        have a word in another form.

        Args:
            text: Words as somebody types them; with none that says anything nothing is found.
            k: How many at most.
            documents: Only in those with these ids; in all by default.

        Raises:
            SettingsError: An argument is not what it has to be.
            StorageError: The library cannot be read.
        """
        check_question(text, "text")
        check_count(k)
        check_ids(documents)
        return of_text(self._shelf.passages(self.retriever.holding(text, k, documents)))

    def first_passages(self, k: int | None = None, *, documents: Collection[str] | None = None) -> list[Passage]:
        """The first passages of each of `documents`, `k` in all: what "summarise this" is answered from.

        Each document has its share: the first passage of each comes before the second of any.

        Raises:
            SettingsError: An argument is not what it has to be.
            StorageError: The library cannot be read.
        """
        check_count(k)
        check_ids(documents)
        most = self._config.top_k if k is None else k
        wanted = [d.id for d in self._shelf.documents() if documents is None or d.id in documents]
        each = [self._shelf.first_ids(document_id, most) for document_id in wanted[: max(most, 0)]]
        shares = [0] * len(each)
        left = most
        while left > 0 and (open_ := [at for at, ids in enumerate(each) if shares[at] < len(ids)]):
            for at in open_[:left]:
                shares[at] += 1
            left -= len(open_[:left])
        ids = [chunk_id for share, ids in zip(shares, each, strict=True) for chunk_id in ids[:share]]
        return of_text(self._shelf.passages([(chunk_id, 0.0) for chunk_id in ids]))

    def wait_for_vectors(self, seconds: float | None = None) -> bool:
        """Wait until search by meaning knows every chunk, `seconds` at most; whether it does.

        Search by words knows them as soon as `add` returns, and stands in until then. Where the library searches by
        words exclusive there is nothing to wait for.
        """
        return self.retriever.wait_for_vectors(seconds)

    # ---- showing

    def page_picture(self, passage: Passage, zoom: float = _ZOOM) -> bytes:
        """The passage's page as PNG with the passage marked.

        Args:
            passage: From `find`.
            zoom: Pixels for each point (1/72 inch).

        Raises:
            SettingsError: `passage` is none, or `zoom` no number above 0.
            NotFoundError: The document is gone.
            DocumentError: It has no pages (key `document_no_pages`), or the page cannot be drawn.
        """
        check_passage(passage)
        check_zoom(zoom)
        document = self.document(passage.document_id)
        original = self._originals.path(document.id)
        return self._pictures.get(document, original, passage.page or 0, zoom, passage.rectangles)

    def page_image(self, document_id: str, page: int, zoom: float = _ZOOM) -> bytes:
        """The `page` (from 1) of `document_id` as PNG, unmarked; `zoom` and errors as in `page_picture`."""
        check_page(page)
        check_zoom(zoom)
        document = self.document(document_id)
        self._pictures.check(document)
        check_page_of(document, page)
        return self._pictures.get(document, self._originals.path(document.id), page, zoom)

    def page_size(self, document_id: str, page: int) -> tuple[float, float]:
        """Width and height of a `page` (from 1) of `document_id` as displayed, in points.

        Raises:
            NotFoundError: There is no such document or page.
            DocumentError: Its pages cannot be shown (key `document_no_pages`).
        """
        shape = self._shape(document_id, page)
        return (shape.width, shape.height)

    def text_box(self, document_id: str, page: int) -> Rectangle | None:
        """The box around all text of a page in points, or `None`; arguments and errors are as of `page_size`."""
        return self._shape(document_id, page).text_box

    # ---- the same without blocking the loop

    async def aadd(  # noqa: PLR0913 - as of `add`
        self,
        path: str | Path,
        *,
        name: str | None = None,
        password: str = "",
        progress: Callable[[ReadingProgress], None] | None = None,
        cancelled: threading.Event | None = None,
        enough: threading.Event | None = None,
        again: bool = False,
    ) -> Document:
        """`add`, in a thread; at most two files are read at once. Cancelling the task does what `cancelled` does."""
        over = threading.Event()
        request = ReadRequest(progress, (over, cancelled) if cancelled else (over,), again, enough)
        work = self._readers.submit(self._add_file, path, name, password, request)
        reading = asyncio.wrap_future(work)
        reading.add_done_callback(lambda end: end.cancelled() or end.exception())  # who is cancelled asks no more
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            over.set()
            if not work.cancel():
                await asyncio.wait([reading])
            raise

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

    async def aholding(self, text: str, k: int, *, documents: Collection[str] | None = None) -> list[Passage]:
        """`holding`, in a thread."""
        return await self._within(self._finders, self.holding, text, k, documents=documents)

    async def abeginnings(self, k: int | None = None, *, documents: Collection[str] | None = None) -> list[Passage]:
        """`beginnings`, in a thread."""
        return await self._within(self._finders, self.first_passages, k, documents=documents)

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
        document = self.document(document_id)
        self._pictures.check(document)
        check_page_of(document, page)
        return self._shelf.shape(document_id, page)

    def _add_file(self, path: str | Path, name: str | None, password: str, request: ReadRequest) -> Document:
        with file_here(
            path, name, self._limits, own_network=self._config.own_network, stopped=request.is_stopped
        ) as found:
            staged = self._originals.stage(found[0], self._limits.file_bytes, HEAD)
        return self._ingestor.add(staged, staged.id, FileInfo(display_name(found[1])), password, request)
