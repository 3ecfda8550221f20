"""Several libraries as one, to be read alone: an owner's own, and what others share with her.

Documents may have other names in it than in their indices.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NoReturn

from core.errors import NotFoundError
from core.rag.called import name_here, passage_here, tables_here
from core.rag.context_builder import ContextBuilder
from core.rag.figures import Figures
from core.rag.library import Library
from core.rag.pages import Pages
from core.rag.prose import count_tokens
from core.rag.retriever import Retriever
from core.rag.search.terms import terms
from core.rag.tables.query import MOST_ROWS, SECONDS, ask
from core.rag.tables.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from core.rag.called import Names
    from core.rag.config import RetrievalType
    from core.rag.document import Block, Document, Figure, Heading, Passage, Rectangle
    from core.rag.page_content import ContentWriter, PageContent
    from core.rag.scope_part import Part
    from core.rag.tables.query import Answer, Named

_RANKS = 4  # a passage that has none of the question's words counts as much as one that stands so much lower


class Lot:
    """A library, and which of its documents count.

    Args:
        documents: Their ids; all where it is `None`.
        check: Called before each use, in the thread that uses it; raises where it may be used no more.
    """

    def __init__(
        self, library: Library, documents: Collection[str] | None = None, check: Callable[[], None] | None = None
    ) -> None:
        self._library = library
        self._documents = frozenset(documents) if documents is not None else None
        self._check = check

    @property
    def library(self) -> Library:
        """The library itself, as long as it may be used. Raises NotFoundError."""
        if self._check is not None:
            self._check()
        return self._library

    def of(self, wanted: Collection[str] | None) -> list[str] | None:
        """Those of these documents that count here; `None` for all that there are."""
        if self._documents is None:
            return None if wanted is None else list(wanted)
        return [one for one in (self._documents if wanted is None else wanted) if one in self._documents]

    def has(self, document_id: str) -> bool:
        """Whether a document counts here."""
        return self._documents is not None and document_id in self._documents


class Lots:
    """What a joined library is made of: the owner's own library, and lots of others' libraries.

    All that it gives raises as the lots' `check` where one may be used no more.

    Args:
        names: What documents are called; those without a name have that of their index.
    """

    def __init__(self, own: Library, others: Sequence[Lot], names: Names) -> None:
        self.own = own
        self._others = others
        self.names = names

    def holding(self, document_id: str) -> Library:
        """The library that has a document; the owner's own for one that none has."""
        return next((one.library for one in self._others if one.has(document_id)), self.own)

    def parts(self, documents: Collection[str] | None) -> Iterator[tuple[Library, list[str] | None]]:
        """The libraries with those of these documents that each has, the owner's own first; without those of none."""
        taken = [one for one in documents or () if any(lot.has(one) for lot in self._others)]
        mine = None if documents is None else [one for one in documents if one not in set(taken)]
        if mine is None or mine:
            yield self.own, mine
        for lot in self._others:
            theirs = lot.of(documents)
            if theirs:
                yield lot.library, theirs

    def called(self, passages: Iterable[Passage]) -> list[Passage]:
        """The passages, of documents by their names here."""
        return [passage_here(self.names, one) for one in passages]

    def document(self, document: Document) -> Document:
        """The document by its name here."""
        name = name_here(self.names, document.id, document.name)
        return document if name == document.name else replace(document, name=name)


class _JoinedPages(Pages):
    def __init__(self, lots: Lots) -> None:
        self._lots = lots

    def content(
        self, document_id: str, page: int | None = None, part: int | None = None, *, passage: Passage | None = None
    ) -> PageContent:
        return self._lots.holding(document_id).pages.content(document_id, page, part, passage=passage)

    def writer(self, document_id: str, media_type: str) -> ContentWriter:
        del document_id, media_type
        raise _only_read()

    def before(self, document_id: str, page: int) -> list[Any]:
        return self._lots.holding(document_id).pages.before(document_id, page)

    def blocks(self, document_id: str) -> Generator[Block]:
        return self._lots.holding(document_id).pages.blocks(document_id)

    def chunks(self, document_id: str, start: int = 0, most: int = 50) -> list[Passage]:
        return self._lots.called(self._lots.holding(document_id).pages.chunks(document_id, start, most))

    def chunk(self, document_id: str, chunk_id: int) -> Passage:
        return passage_here(self._lots.names, self._lots.holding(document_id).pages.chunk(document_id, chunk_id))

    def position(self, document_id: str, *, chunk_id: int | None = None, page: int | None = None) -> int:
        return self._lots.holding(document_id).pages.position(document_id, chunk_id=chunk_id, page=page)


class _JoinedFigures(Figures):
    def __init__(self, lots: Lots) -> None:
        self._lots = lots

    def of(self, document_ids: Collection[str]) -> list[Figure]:
        found = [one for library, ids in self._lots.parts(document_ids) for one in library.figures.of(ids or ())]
        return [replace(one, document=name_here(self._lots.names, one.document_id, one.document)) for one in found]

    def passages(self, figures: Sequence[Figure]) -> list[Passage]:
        found: list[Passage] = []
        for library, ids in self._lots.parts({one.document_id for one in figures}):
            found += library.figures.passages([one for one in figures if one.document_id in set(ids or ())])
        return self._lots.called(found)

    def picture(self, figure: Figure, pixels: int) -> Path:
        return self._lots.holding(figure.document_id).figures.picture(figure, pixels)


class _JoinedTables(Tables):
    def __init__(self, lots: Lots) -> None:
        self._lots = lots

    def of(self, document_ids: Collection[str], stopped: Callable[[], bool] | None = None) -> list[Named]:
        found: list[Named] = []
        for library, ids in self._lots.parts(document_ids):
            taken = {one.name for one in found}
            for one in library.tables.of(ids or (), stopped):
                names = (one.name, *(f"{one.name}_{number}" for number in range(2, len(taken) + 3)))
                named = next(name for name in names if name not in taken)
                taken.add(named)
                found.append(replace(one, name=named))
        return tables_here(self._lots.names, found)

    def ask(
        self, document_ids: Collection[str], query: str, *, seconds: float = SECONDS, most: int = MOST_ROWS
    ) -> Answer:
        return ask(self.of(document_ids), query, seconds=seconds, most=most)


class _JoinedContext(ContextBuilder):
    def __init__(self, lots: Lots) -> None:
        self._lots = lots

    def merged(self, passages: Sequence[Passage]) -> list[Passage]:
        rank = {(one.document_id, one.chunk_id): at for at, one in reversed(list(enumerate(passages)))}
        found: list[Passage] = []
        for library, ids in self._lots.parts({one.document_id for one in passages}):
            found += library.context.merged([one for one in passages if one.document_id in set(ids or ())])
        return self._lots.called(sorted(found, key=lambda one: rank.get((one.document_id, one.chunk_id), len(rank))))

    def part(self, documents: Collection[str], part: Part) -> list[Passage]:
        parts = self._lots.parts(documents)
        return self._lots.called(one for library, ids in parts for one in library.context.part(ids or (), part))

    def whole(self, documents: Collection[str], part: Part | None = None, *, unread: bool = False) -> list[Passage]:
        found: list[Passage] = []
        for library, ids in self._lots.parts(documents):
            found += library.context.whole(ids or (), part, unread=unread)
        return self._lots.called(found)

    def letters(self, documents: Collection[str]) -> int:
        return sum(library.context.letters(ids or ()) for library, ids in self._lots.parts(documents))

    def full_text(self, documents: Collection[str], most_tokens: int) -> list[Passage] | None:
        found: list[Passage] = []
        for library, ids in self._lots.parts(documents):
            some = library.context.full_text(ids or (), most_tokens)
            if some is None:
                return None
            found += some
        fits = found and sum(count_tokens(one.text) for one in found) <= most_tokens
        return self._lots.called(found) if fits else None


class _JoinedRetriever(Retriever):
    """Of the retriever, what is asked of documents; searching is `JoinedLibrary.find`."""

    def __init__(self, lots: Lots) -> None:
        self._lots = lots

    def vector_progress(self, documents: Collection[str]) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for library, ids in self._lots.parts(documents):
            found |= library.retriever.vector_progress(ids or ())
        return found

    def wait_for_vectors(self, seconds: float | None = None) -> bool:
        return all(library.retriever.wait_for_vectors(seconds) for library, _ in self._lots.parts(None))

    def vectors_idle(self) -> bool:
        return all(library.retriever.vectors_idle() for library, _ in self._lots.parts(None))


class JoinedLibrary(Library):
    """An owner's library together with documents of others' libraries, which each stay where they are.

    It is only read: nothing is added or taken out. What models noted of documents goes into the owner's own library
    alone. The libraries are opened and closed by others.

    Args:
        own: The owner's.
        others: Documents of others.
        names: What documents are called here; those without a name have that of their index.
    """

    def __init__(self, own: Library, others: Sequence[Lot] = (), names: Names | None = None) -> None:
        self._lots = lots = Lots(own, others, names or {})
        self._config = own._config  # noqa: SLF001 - of its own class
        self._finders = own._finders  # noqa: SLF001 - the same
        self.pages = _JoinedPages(lots)
        self.tables = _JoinedTables(lots)
        self.figures = _JoinedFigures(lots)
        self.context = _JoinedContext(lots)
        self.retriever = _JoinedRetriever(lots)
        self.readings = own.readings

    def close(self) -> None:
        """Nothing: each library is closed by whoever opened it."""

    def is_intact(self) -> bool:
        """Whether the owner's own library is."""
        return self._lots.own.is_intact()

    def add(self, *_: Any, **__: Any) -> NoReturn:
        """Raises NotFoundError."""
        raise _only_read()

    def add_text(self, text: str, *, name: str, page: int | None = None) -> NoReturn:
        """Raises NotFoundError."""
        del text, name, page
        raise _only_read()

    def take(self, *_: Any, **__: Any) -> NoReturn:
        """Raises NotFoundError."""
        raise _only_read()

    def prepared_vectors(self) -> NoReturn:
        """Raises NotFoundError."""
        raise _only_read()

    def read_at_once(self, count: int) -> NoReturn:
        """Raises NotFoundError."""
        del count
        raise _only_read()

    def remove(self, document_id: str) -> NoReturn:
        """Raises NotFoundError."""
        del document_id
        raise _only_read()

    def documents(self) -> list[Document]:
        """All of the owner's, and after them those of others that count."""
        found: list[Document] = []
        for library, ids in self._lots.parts(None):
            wanted = None if ids is None else frozenset(ids)
            found += [one for one in library.documents() if wanted is None or one.id in wanted]
        return list({one.id: self._lots.document(one) for one in reversed(found)}.values())[::-1]

    def headings(self, document_ids: Collection[str]) -> dict[str, list[Heading]]:
        """As of `Library`."""
        found: dict[str, list[Heading]] = {}
        for library, ids in self._lots.parts(document_ids):
            found |= library.headings(ids or ())
        return found

    def document(self, document_id: str) -> Document:
        """As of `Library`."""
        return self._lots.document(self._lots.holding(document_id).document(document_id))

    def find(
        self,
        question: str,
        k: int | None = None,
        retrieval_type: RetrievalType | None = None,
        *,
        documents: Collection[str] | None = None,
    ) -> list[Passage]:
        """As of `Library`: what each library finds, put into one order."""
        most = self._config.top_k if k is None else k
        each = [one.find(question, most, retrieval_type, documents=ids) for one, ids in self._lots.parts(documents)]
        return self._lots.called(each[0] if len(each) == 1 else _in_one_order(question, each)[: max(most, 0)])

    def holding(self, text: str, k: int, *, documents: Collection[str] | None = None) -> list[Passage]:
        """As of `Library`: of each library in turn."""
        each = [one.holding(text, k, documents=ids) for one, ids in self._lots.parts(documents)]
        found = [one for rank in zip_longest(*each) for one in rank if one is not None]
        return self._lots.called(found[: max(k, 0)])

    def first_passages(self, k: int | None = None, *, documents: Collection[str] | None = None) -> list[Passage]:
        """As of `Library`."""
        most = self._config.top_k if k is None else k
        each = [one.first_passages(most, documents=ids) for one, ids in self._lots.parts(documents)]
        found = [one for rank in zip_longest(*each) for one in rank if one is not None]
        return self._lots.called(found[: max(most, 0)])

    def wait_for_vectors(self, seconds: float | None = None) -> bool:
        """As of `Library`."""
        return self.retriever.wait_for_vectors(seconds)

    def page_picture(self, passage: Passage, zoom: float = 2.0) -> bytes:
        """As of `Library`."""
        return self._lots.holding(passage.document_id).page_picture(passage, zoom)

    def page_image(self, document_id: str, page: int, zoom: float = 2.0) -> bytes:
        """As of `Library`."""
        return self._lots.holding(document_id).page_image(document_id, page, zoom)

    def page_size(self, document_id: str, page: int) -> tuple[float, float]:
        """As of `Library`."""
        return self._lots.holding(document_id).page_size(document_id, page)

    def text_box(self, document_id: str, page: int) -> Rectangle | None:
        """As of `Library`."""
        return self._lots.holding(document_id).text_box(document_id, page)


def _in_one_order(question: str, each: Sequence[Sequence[Passage]]) -> list[Passage]:
    """What several libraries found, the best first.

    Scores of two libraries say nothing beside each other. The rank that a passage has in its own library counts, and
    how much of what is asked stands in it: so a library that has nothing to the question pushes nothing out.
    """
    asked = {one for one in terms(question) if len(one) > 1}
    ranked: list[tuple[float, int, Passage]] = []
    for found in each:
        for rank, one in enumerate(found):
            there = asked.intersection(terms(f"{one.document}\n{one.heading}\n{one.text}"))
            share = len(there) / len(asked) if asked else 1.0
            ranked.append((rank + _RANKS * (1 - share), rank, one))
    ordered = sorted(ranked, key=lambda one: one[:2])
    first = max((one.score for found in each for one in found), default=1.0)
    # Scores fall with the order, as whoever reads them expects.
    return [replace(one, score=first / (1 + at / len(ordered))) for at, (_, _, one) in enumerate(ordered)]


def _only_read() -> NotFoundError:
    return NotFoundError("Libraries that are joined are only read.", hint="Use the library that has the document.")
