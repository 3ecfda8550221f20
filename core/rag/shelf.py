"""The `Shelf` protocol: where the passages of a library are kept, found and compared.

The embedded form is one SQLite file (`embedded_shelf.py`), the grown form PostgreSQL (`grown/`). What is asked of both
is the same, and so is what they answer: `tests/contract/test_shelves.py` holds them to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Collection, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from core.rag.document import Document, Figure, Heading, PageShape, Passage
    from core.rag.draft import Piece
    from core.rag.embedding.across import Script
    from core.rag.embedding.base import Embedder, Floats
    from core.rag.half_read import KeptPages

    Ids = NDArray[np.int64]

Scored = list[tuple[int, float]]
"""Chunk ids with scores, the best first."""


@dataclass(frozen=True, slots=True)
class Similarity:
    """Cosines of chunks with a question, by growing ids; `in_parts`, those of the likest part of each."""

    ids: Ids
    cosines: Floats
    in_parts: bool = False


def writable(text: str) -> str:
    """The text as every database can keep it: NUL and halves of characters have no place there."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Derived(Protocol):
    """An index that is derived from the chunks of a library."""

    def fill(self, stop: threading.Event) -> bool:
        """Bring the index up to date, unless `stop` is set before; whether it is up to date.

        Raises:
            ParlourError: It cannot be done now.
        """
        ...


class Graph(Derived, Protocol):
    """An index that a shelf wants only where it holds very much."""

    def is_wanted(self) -> bool:
        """Whether there is one, or enough for one."""
        ...


class QuickWords(Graph, Protocol):
    """A quicker index of words, which a large library may have."""

    def close(self) -> None:
        """Let go of it."""
        ...


class Vectors(Protocol):
    """The vectors of one model; `Shelf.making` makes those that are missing.

    Attributes:
        patience: Seconds that a question waits for a model of this machine that is only being loaded, before it is
            searched without it; `None` is as long as that takes.
    """

    patience: float | None

    @property
    def embedder(self) -> Embedder:
        """The model."""
        ...

    @property
    def graph(self) -> Graph | None:
        """Finds the nearest in a large library; `None` where all vectors are compared."""
        ...

    def check_size(self, size: int) -> None:
        """Check that vectors of so many numbers fit to those that are there. Raises ModelMisbehavedError."""
        ...

    def keep(self, made: Sequence[tuple[int, NDArray[np.float16]]]) -> None:
        """Keep vectors of chunks that were made elsewhere; those of chunks that are gone by now are passed over.

        Raises:
            StorageError: The library cannot be written.
        """
        ...

    def made(self, documents: Collection[str]) -> dict[str, tuple[int, int]] | None:
        """Of each of these documents, how many chunks have a vector and how many there are.

        `None` where the library is too large for this model, and so no more are made.
        """
        ...

    def like(
        self,
        question: str,
        documents: Collection[str] | None = None,
        *,
        nearest: int = 0,
        also: Sequence[int] = (),
        script: Script | None = None,
    ) -> Similarity | None:
        """The similarity of each chunk to the question.

        `None` if there is nothing to compare, while a chunk has no vector yet, or if the model does not run.

        Args:
            documents: Only chunks of these; of all by default.
            nearest: How many of the nearest are enough; 0 is all.
            also: Chunks whose similarity is needed as well.
            script: Of the question, where the chunks are in another: see `core.rag.embedding.across`.

        Raises:
            ParlourError: The service that makes vectors failed.
        """
        ...


class Found(Protocol):
    """What ways of searching ask of a shelf.

    Raises:
        DamagedIndexError: The index of words must be built anew (`Shelf.mend`).
        StorageError: It cannot be read.
    """

    def words(self, asked: Sequence[str], k: int, documents: Collection[str] | None = None) -> Scored:
        """The best `k` chunks that hold any of these terms, by BM25."""
        ...

    def all_words(
        self,
        asked: Sequence[str],
        k: int,
        documents: Collection[str] | None = None,
        *,
        either: Sequence[str] = (),
        begun: str = "",
    ) -> Scored:
        """The best `k` chunks that hold all of these terms, by BM25.

        Args:
            either: Where there are any: one of them as well, or a term that begins with `begun`.
            begun: The first letters of a term; "" for none.
        """
        ...

    def terms_of(self, chunk_ids: Sequence[int]) -> Mapping[int, str]:
        """The terms of chunks in their order, parted by spaces."""
        ...

    def texts_of(self, chunk_ids: Sequence[int]) -> list[str]:
        """The texts of chunks, in any order."""
        ...

    def beginnings(self, k: int, documents: Collection[str] | None = None) -> list[tuple[int, int]]:
        """The first `k` chunks with their positions, taken from all documents in turns."""
        ...


class Notes(Protocol):
    """What models noted of documents, kept so that nothing is read and paid for twice."""

    def kept(self, keys: Collection[str]) -> Mapping[str, str]:
        """Those of the notes that there are, by their keys. Raises StorageError."""
        ...

    def keep(self, key: str, documents: Sequence[str], notes: str) -> None:
        """Keep notes until one of the documents goes; of very many the oldest go.

        Args:
            documents: Ids of those that the notes are of. Where one is gone by now, nothing is kept.

        Raises:
            StorageError: The library cannot be written.
        """
        ...


class Lock(Protocol):
    """A lock of one document, among all threads, processes and machines that use a library."""

    def acquire(self) -> bool:
        """Take it; false at once where somebody else has it. Raises StorageError."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...


class Shelf(Found, Protocol):
    """The documents of one library, with their passages, pages, figures and vectors. Raises StorageError.

    Many threads and processes may use one; a document that goes meanwhile is left out of what is answered.
    """

    @property
    def notes(self) -> Notes:
        """What models noted of the documents."""
        ...

    def documents(self) -> list[Document]:
        """All documents, the oldest first."""
        ...

    def document(self, document_id: str) -> Document | None:
        """One document, if it is there."""
        ...

    def put(self, piece: Piece, *, is_first: bool, check: Callable[[], None] = lambda: None) -> Document | None:
        """Make a piece of a document searchable: all of it, or nothing.

        Args:
            piece: Its chunks, page shapes and figures, and the document's record including them. The stored name stays.
                The pages that it keeps stay until the document is read to its end.
            is_first: Replaces what is there of the document.
            check: Called within the change; what it raises undoes it.

        Returns:
            The stored record; `None` where the document was taken out meanwhile.

        Raises:
            NoSpaceError: The disk is full.
            StorageError: It cannot be written.
        """
        ...

    def half_read(self, document_id: str, page: int | None = None) -> list[KeptPages]:
        """The pages that are kept of a document whose reading has not come to its end, in their order.

        Args:
            page: Only those that were kept together with this one.
        """
        ...

    def rename(self, document_id: str, name: str) -> None:
        """Give a document another name."""
        ...

    def mark_stopped(self, document_id: str) -> None:
        """Note that a document's reading was stopped, and that the rest can be read later."""
        ...

    def remove(self, document_id: str) -> None:
        """Take a document out with all that belongs to it; one that is not there is no error."""
        ...

    def passages(self, scored: Sequence[tuple[int, float]]) -> list[Passage]:
        """The chunks with these ids, in this order, without those deleted meanwhile."""
        ...

    def whole(self, documents: Collection[str]) -> list[Passage]:
        """All passages of documents, in their own order; the oldest document first."""
        ...

    def some(self, document_id: str, start: int, most: int) -> list[Passage]:
        """Passages of a document in its own order, from the one at `start` on."""
        ...

    def first_ids(self, document_id: str, most: int) -> list[int]:
        """The ids of a document's first chunks."""
        ...

    def places(self, chunk_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Of chunks that are here, the position in the document and how much repeats the chunk before."""
        ...

    def letters(self, documents: Collection[str], most: float | None = None) -> int:
        """How long the text of documents is; what chunks repeat counts each time. Not counted past `most`."""
        ...

    def headings(self, documents: Collection[str]) -> dict[str, list[Heading]]:
        """The headings of the first two levels of each document, in the order in which they come."""
        ...

    def figures(self, documents: Collection[str]) -> list[Figure]:
        """The figures of documents, in their order."""
        ...

    def holding(self, document_id: str, page: int | None, text: str) -> list[tuple[int, str]]:
        """The ids and texts of chunks on a page of a document that hold a text."""
        ...

    def shape(self, document_id: str, page: int) -> PageShape:
        """The shape of a page. Raises NotFoundError."""
        ...

    def last_page(self, document_id: str) -> int:
        """The last page that is stored; 0 if none is."""
        ...

    def position(self, document_id: str, *, chunk_id: int | None = None, page: int | None = None) -> int:
        """How many chunks come before a chunk, or before a page."""
        ...

    def height(self, passage: Passage) -> float:
        """Where a passage is on its page, roughly, from 0 to 1, by the chunks around it."""
        ...

    def vectors(
        self, embedder: Embedder, *, most: int | None, in_parts: bool, moved: Callable[[], None]
    ) -> Vectors | None:
        """The vectors of a model; `None` where this shelf keeps none.

        Args:
            most: Chunks up to which a library uses this model, a slow one; `None` is any number.
            in_parts: Whether each part of a chunk has a vector, and the best counts.
            moved: Called after each batch, in the thread that makes the vectors.
        """
        ...

    def making(self, vectors: Sequence[Vectors]) -> Sequence[Derived]:
        """What makes the vectors of these models in the background: `core.rag.search.turns` says in which order.

        Where several processes use the shelf, and part the work, one of them makes them at a time.

        Args:
            vectors: Of a shelf's `vectors`; the first model has all before the next begins.
        """
        ...

    def quick_words(self, on_old: Callable[[], None]) -> QuickWords | None:
        """The quicker index of words that `words` uses where it is up to date; `None` where there is no such.

        Args:
            on_old: Called when a question found it behind the library.
        """
        ...

    def mend(self) -> None:
        """Build a damaged index of words anew from the chunks. Raises DamagedIndexError where that is in vain."""
        ...

    def lock(self, document_id: str) -> Lock:
        """The lock of a document that is read or removed."""
        ...

    def is_intact(self) -> bool:
        """Whether it is open, and still what was opened."""
        ...

    def close(self) -> None:
        """Let go of it; those who use it end first."""
        ...
