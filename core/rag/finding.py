"""The ways of searching one library: words at once, meaning as soon as its vectors are made."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from core.errors import ModelServiceError, SettingsError, StorageError
from core.rag import records
from core.rag.index_file import DamagedIndexError
from core.rag.rerank import reranker
from core.rag.search.catalog import SEARCHER_REGISTRY
from core.rag.search.keyword import KeywordSearcher
from core.rag.search.word_index import WordIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from core.rag.config import RAGConfig, RetrievalType
    from core.rag.filling import Filling
    from core.rag.index_file import IndexFile
    from core.rag.search.base import Searcher
    from core.rag.vectors import Vectors

_log = logging.getLogger(__name__)

_BY_MEANING = frozenset({"vector", "hybrid"})
# Chunks that a library may have for the better model of this machine, at a fifth of a second each.
_WORTH_ITS_TIME = 5_000
_RERANKED = 20  # passages that are read once more, for the best of them
_BEGINNINGS = 2  # passages of a document's beginning that come first, where they are wished for


class Finder:
    """Searches a library.

    Args:
        file: The library's file.
        config: How to search; vectors are made only where they are asked for.
    """

    def __init__(self, file: IndexFile, config: RAGConfig) -> None:
        self._file = file
        self._config = config
        self._guard = threading.Lock()
        self._reranker = reranker(config.reranker)
        self._vectors: list[Vectors] = []
        self._searchers: dict[RetrievalType, Searcher] = {}
        self._filling: Filling | None = None
        self._quick = WordIndex(file, self._follow)
        self._following: Filling | None = None
        self._leading: Filling | None = None
        self._closed = False
        self._followers: list[Callable[[], None]] = []
        self.words = KeywordSearcher(file)
        """Where chunks are taken in and out: words are always kept."""
        if config.retrieval_type in _BY_MEANING:
            self._begin()
        self._follow()

    def scored(
        self, question: str, k: int, kind: RetrievalType | None, documents: Collection[str] | None
    ) -> list[tuple[int, float]]:
        """Chunk ids with scores, the best first.

        Raises:
            SettingsError: It is to search by meaning, and was opened without vectors.
            StorageError: The library cannot be read.
        """
        wanted = kind or self._config.retrieval_type
        if wanted in _BY_MEANING and self._config.retrieval_type not in _BY_MEANING:
            hint = f'Open it with Library.open(folder, {{"retrieval_type": "{wanted}"}}).'
            raise SettingsError("This library was opened without vectors, which search by meaning needs.", hint=hint)
        if self._reranker is None or wanted == "front_page" or not question.strip():
            found = self._found(wanted, question, k, documents)
        else:
            found = self._reranked(question, self._found(wanted, question, max(k, _RERANKED), documents))[:k]
        if kind is None and self._config.beginnings_first and self._is_one(documents):
            found = _first(self._found("front_page", "", _BEGINNINGS, documents), found)[: max(k, 0)]
        return found

    def _found(
        self, kind: RetrievalType, question: str, k: int, documents: Collection[str] | None
    ) -> list[tuple[int, float]]:
        searcher = self._searcher(kind)
        try:
            return searcher.find(question, k, documents)
        except DamagedIndexError:
            self._mend()
            return searcher.find(question, k, documents)

    def _reranked(self, question: str, found: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """In the order that the reranker gives; in their own where it cannot say."""
        with self._file.reading() as db:
            texts = [records.searched_text("", one.heading, one.text).strip() for one in records.passages(db, found)]
        if self._reranker is None or len(texts) != len(found):  # one went meanwhile
            return found
        try:
            scores = self._reranker.scores(question, texts)
        except ModelServiceError as error:
            _log.warning("Passages stay in the order of the search: %s", error)
            return found
        scored = [(chunk_id, score) for (chunk_id, _), score in zip(found, scores, strict=True)]
        return sorted(scored, key=lambda one: -one[1])

    def _is_one(self, documents: Collection[str] | None) -> bool:
        if documents is not None:
            return len(documents) == 1
        with self._file.reading() as db:
            return len(records.everything(db)) == 1

    def changed(self) -> None:
        """Chunks came or went."""
        if self._filling is not None:
            self._filling.wake()
        self._follow()

    def wait_for_vectors(self, seconds: float | None = None) -> bool:
        """Wait until all vectors are made; whether they are. True where none are asked for."""
        return self._filling.wait(seconds) if self._filling is not None else True

    def vectors_settled(self) -> bool:
        """Whether no more vectors are being made: all are there, or they cannot be made now, or none are asked for."""
        return self._filling is None or self._filling.settled

    def on_vectors(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever some vectors were made, or no more come; returns what ends this.

        It is called in the thread that makes them, or that closes the library, and must not take long.
        """
        with self._guard:
            self._followers.append(callback)

        def leave() -> None:
            with self._guard:
                if callback in self._followers:
                    self._followers.remove(callback)

        return leave

    def vectors_made(self, documents: Collection[str]) -> dict[str, tuple[int, int]]:
        """Of each of these documents, how many chunks every model has a vector for, and how many there are."""
        found: dict[str, tuple[int, int]] = {}
        for vectors in self._vectors:
            for document, made in (vectors.made(documents) or {}).items():
                found[document] = min(made, found.get(document, made))
        return found

    def wait_for_words(self, seconds: float | None = None) -> bool:
        """Wait until the quick indices of a large library are up to date; whether they are. True without any."""
        return all(one.wait(seconds) for one in (self._following, self._leading) if one is not None)

    def close(self) -> None:
        """End the background work."""
        with self._guard:
            self._closed = True
            fillings = [self._filling, self._following, self._leading]
            self._filling = self._following = self._leading = None
        for filling in fillings:
            if filling is not None:
                filling.close()
        self._moved()
        self._quick.close()
        for vectors in self._vectors:
            vectors.embedder.close()
        if self._reranker is not None:
            self._reranker.close()

    def _searcher(self, kind: RetrievalType) -> Searcher:
        if kind in _BY_MEANING:
            self._begin()
        if kind not in self._searchers:  # making one looks at the file
            self._searchers[kind] = SEARCHER_REGISTRY[kind](self._file, self._vectors, self._quick)
        return self._searchers[kind]

    def _begin(self) -> None:
        """Load what vectors need: NumPy alone takes longer than a search by words."""
        with self._guard:
            if self._filling is not None or self._closed:
                return
            from core.rag.embedding.catalog import AUTO, embedders
            from core.rag.filling import Filling
            from core.rag.search.near_index import NearIndex, sweep
            from core.rag.vectors import Vectors

            models = embedders(self._config.embedding_model)
            sweep(self._file)
            automatic = self._config.embedding_model == AUTO and len(models) > 1
            self._vectors = [
                Vectors(self._file, model, _WORTH_ITS_TIME, in_parts=True, moved=self._moved)
                if automatic and model is models[0]
                else Vectors(self._file, model, graph=NearIndex(self._file, model.model), moved=self._moved)
                for model in models
            ]
            self._filling = Filling(list(reversed(self._vectors)), then=self._filled)

    def _filled(self) -> None:
        self._moved()
        self._lead()

    def _moved(self) -> None:
        with self._guard:
            followers = tuple(self._followers)
        for follower in followers:
            follower()

    def _lead(self) -> None:
        """Bring the graphs of the vectors up to date, where there are enough of these."""
        graphs = [vectors.graph for vectors in self._vectors if vectors.graph is not None]
        try:
            if self._leading is None and not any(graph.is_wanted() for graph in graphs):
                return
        except StorageError:  # the library is being closed
            return
        with self._guard:
            if self._leading is not None:
                self._leading.wake()
            elif not self._closed:
                from core.rag.filling import Filling

                self._leading = Filling(graphs, "library-graph")

    def _follow(self) -> None:
        """Bring the quick index of words up to date, where the library is large enough for one."""
        if self._following is None and not self._quick.is_wanted():
            return
        with self._guard:
            if self._following is not None:
                self._following.wake()
            elif not self._closed:
                from core.rag.filling import Filling

                self._following = Filling([self._quick], "library-words")

    def _mend(self) -> None:
        """Build a damaged search index anew from the chunks."""
        _log.warning("The search index is damaged; it is built anew.", exc_info=True)
        try:
            with self._file.writing() as db:
                self.words.rebuild(db, records.chunk_texts(db))
        except DamagedIndexError as error:
            self._file.give_up()
            error.hint = "Start Parlour again: the documents are then read again from their originals."
            raise


def _first(beginnings: list[tuple[int, float]], found: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The beginnings before what was found, and as good as the best of it."""
    best = max((score for _, score in found), default=1.0)
    first = {chunk_id: best for chunk_id, _ in beginnings}
    return [*first.items(), *((chunk_id, score) for chunk_id, score in found if chunk_id not in first)]
