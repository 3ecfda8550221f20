"""Searches a library: by words at once, by meaning as soon as its vectors are made in the background."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from core.errors import ModelServiceError, ParlourError, SettingsError, StorageError
from core.rag.index_file import DamagedIndexError
from core.rag.records import searched_text
from core.rag.rerank import reranker
from core.rag.search.base import SEARCHER_REGISTRY
from core.rag.search.keyword import KeywordSearcher

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from core.rag.config import RAGConfig, RetrievalType
    from core.rag.search.base import Searcher
    from core.rag.shelf import Derived, Shelf, Vectors

_log = logging.getLogger(__name__)

_BY_MEANING = frozenset({"vector", "hybrid"})
# Chunks that a library may have for the better model of this machine, at a fifth of a second each.
_WORTH_ITS_TIME = 5_000
_RERANKED = 20  # passages that are read once more, for the best of them
_BEGINNINGS = 2  # passages of a document's beginning that come first, where they are wished for


class Retriever:
    """Searches a library.

    Args:
        config: How to search; vectors are made only where they are asked for.
    """

    def __init__(self, shelf: Shelf, config: RAGConfig) -> None:
        self._shelf = shelf
        self._config = config
        self._guard = threading.Lock()
        self._reranker = reranker(config.reranker)
        self._vectors: list[Vectors] = []
        self._searchers: dict[RetrievalType, Searcher] = {}
        self._vector_indexer: BackgroundIndexer | None = None
        self._quick = shelf.quick_words(self._update_word_index)
        self._word_indexer: BackgroundIndexer | None = None
        self._graph_indexer: BackgroundIndexer | None = None
        self._closed = False
        self._followers: list[Callable[[], None]] = []
        if config.retrieval_type in _BY_MEANING:
            self._load_vectors()
        self._update_word_index()

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
            found = self._search(wanted, question, k, documents)
        else:
            found = self._reranked(question, self._search(wanted, question, max(k, _RERANKED), documents))[:k]
        if kind is None and self._config.starts_with_first_passages and self._is_single_document(documents):
            found = _beginnings_first(self._search("front_page", "", _BEGINNINGS, documents), found)[: max(k, 0)]
        return found

    def holding(self, text: str, k: int, documents: Collection[str] | None) -> list[tuple[int, float]]:
        """Ids of the chunks that may hold all words of a text, with scores, the best first. Raises StorageError."""
        words = KeywordSearcher(self._shelf)
        try:
            return words.holding(text, k, documents)
        except DamagedIndexError:
            _log.warning("The search index is damaged; it is built anew.", exc_info=True)
            self._shelf.mend()
            return words.holding(text, k, documents)

    def _search(
        self, kind: RetrievalType, question: str, k: int, documents: Collection[str] | None
    ) -> list[tuple[int, float]]:
        searcher = self._searcher(kind)
        try:
            return searcher.find(question, k, documents)
        except DamagedIndexError:
            _log.warning("The search index is damaged; it is built anew.", exc_info=True)
            self._shelf.mend()
            return searcher.find(question, k, documents)

    def _reranked(self, question: str, found: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """In the reranker's order; unchanged if it fails."""
        texts = [searched_text("", one.heading, one.text).strip() for one in self._shelf.passages(found)]
        if self._reranker is None or len(texts) != len(found):  # one went meanwhile
            return found
        try:
            scores = self._reranker.scores(question, texts)
        except ModelServiceError as error:
            _log.warning("Passages stay in the order of the search: %s", error)
            return found
        scored = [(chunk_id, score) for (chunk_id, _), score in zip(found, scores, strict=True)]
        return sorted(scored, key=lambda one: -one[1])

    def _is_single_document(self, documents: Collection[str] | None) -> bool:
        if documents is not None:
            return len(documents) == 1
        return len(self._shelf.documents()) == 1

    def changed(self) -> None:
        """Chunks were added or removed."""
        if self._vector_indexer is not None:
            self._vector_indexer.wake()
        self._update_word_index()

    def wait_for_vectors(self, seconds: float | None = None) -> bool:
        """Wait until all vectors are made; whether they are. True where none are asked for."""
        return self._vector_indexer.wait(seconds) if self._vector_indexer is not None else True

    def vectors_idle(self) -> bool:
        """Whether no more vectors are being made: all are there, or they cannot be made now, or none are asked for."""
        return self._vector_indexer is None or self._vector_indexer.is_settled

    def on_vector_progress(self, callback: Callable[[], None]) -> Callable[[], None]:
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

    def vector_progress(self, documents: Collection[str]) -> dict[str, tuple[int, int]]:
        """How far search by meaning has come: for each of these documents, the chunks that it knows, and all of them.

        Empty where the library searches by words exclusive; a document that is not here is left out.

        Raises:
            StorageError: The library cannot be read.
        """
        found: dict[str, tuple[int, int]] = {}
        for vectors in self._vectors:
            for document, made in (vectors.made(documents) or {}).items():
                found[document] = min(made, found.get(document, made))
        return found

    def wait_for_words(self, seconds: float | None = None) -> bool:
        """Wait until the quick indices of a large library are up to date, `seconds` at most each; whether they are.

        Nothing has to wait for them: search finds the same without, only slower.
        """
        return all(one.wait(seconds) for one in (self._word_indexer, self._graph_indexer) if one is not None)

    def close(self) -> None:
        """End the background work."""
        with self._guard:
            self._closed = True
            indexers = [self._vector_indexer, self._word_indexer, self._graph_indexer]
            self._vector_indexer = self._word_indexer = self._graph_indexer = None
        for indexer in indexers:
            if indexer is not None:
                indexer.close()
        self._notify()
        if self._quick is not None:
            self._quick.close()
        for vectors in self._vectors:
            vectors.embedder.close()
        if self._reranker is not None:
            self._reranker.close()

    def _searcher(self, kind: RetrievalType) -> Searcher:
        if kind in _BY_MEANING:
            self._load_vectors()
        if kind not in self._searchers:  # making one looks at the file
            self._searchers[kind] = SEARCHER_REGISTRY[kind](self._shelf, self._vectors)
        return self._searchers[kind]

    def _load_vectors(self) -> None:
        """Load the embedding models, on first use: importing NumPy alone takes longer than a search by words."""
        with self._guard:
            if self._vector_indexer is not None or self._closed:
                return
            from core.rag.embedding.catalog import AUTO, embedders

            models = embedders(self._config.embedding_model)
            automatic = self._config.embedding_model == AUTO and len(models) > 1
            made: list[Vectors | None] = []
            for model in models:
                slow = automatic and model is models[0]
                most = _WORTH_ITS_TIME if slow else None
                made.append(self._shelf.vectors(model, most=most, in_parts=slow, moved=self._notify))
            self._vectors = [vectors for vectors in made if vectors is not None]
            for vectors in self._vectors:
                vectors.patience = self._config.meaning_within
            making = self._shelf.making(list(reversed(self._vectors)))
            self._vector_indexer = BackgroundIndexer(making, then=self._vectors_done)

    def _vectors_done(self) -> None:
        self._notify()
        self._update_graphs()

    def _notify(self) -> None:
        with self._guard:
            followers = tuple(self._followers)
        for follower in followers:
            follower()

    def _update_graphs(self) -> None:
        """Bring the graphs of the vectors up to date, if there are enough vectors."""
        graphs = [vectors.graph for vectors in self._vectors if vectors.graph is not None]
        try:
            if self._graph_indexer is None and not any(graph.is_wanted() for graph in graphs):
                return
        except StorageError:  # the library is being closed
            return
        with self._guard:
            if self._graph_indexer is not None:
                self._graph_indexer.wake()
            elif not self._closed:
                self._graph_indexer = BackgroundIndexer(graphs, "library-graph")

    def _update_word_index(self) -> None:
        """Bring the quick index of words up to date, if the library is large enough for one."""
        if self._quick is None or (self._word_indexer is None and not self._quick.is_wanted()):
            return
        with self._guard:
            if self._word_indexer is not None:
                self._word_indexer.wake()
            elif not self._closed:
                self._word_indexer = BackgroundIndexer([self._quick], "library-words")


def _beginnings_first(beginnings: list[tuple[int, float]], found: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The beginnings before the hits, with the score of the best hit."""
    best = max((score for _, score in found), default=1.0)
    first = {chunk_id: best for chunk_id, _ in beginnings}
    return [*first.items(), *((chunk_id, score) for chunk_id, score in found if chunk_id not in first)]


class BackgroundIndexer:
    """A thread that keeps derived indexes up to date, one after the other.

    Args:
        then: Called in that thread after each round, whether it succeeded or not.
    """

    def __init__(
        self, what: Sequence[Derived], name: str = "library-vectors", then: Callable[[], None] | None = None
    ) -> None:
        self._all = what
        self._then = then
        self._change = threading.Condition()
        self._asked = 1  # for what came before this process
        self._done = 0
        self._whole = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There are new chunks."""
        with self._change:
            self._asked += 1
            self._change.notify_all()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the rounds requested so far; whether all indexes are up to date then."""
        with self._change:
            done = self._change.wait_for(lambda: self._done >= self._asked or self._stop.is_set(), seconds)
            return done and self._whole

    @property
    def is_settled(self) -> bool:
        """Whether all requested rounds are over, or it is closed."""
        with self._change:
            return self._done >= self._asked or self._stop.is_set()

    def close(self) -> None:
        """Stop after the batch at hand."""
        self._stop.set()
        with self._change:
            self._change.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._done < self._asked or self._stop.is_set())
                asked = self._asked
            if self._stop.is_set():
                return
            filled = [self._filled(one) for one in self._all]  # every one, also after one that failed
            with self._change:
                self._done, self._whole = asked, all(filled)
                self._change.notify_all()
            if self._then is not None and not self._stop.is_set():
                self._then()

    def _filled(self, one: Derived) -> bool:
        try:
            return one.fill(self._stop)
        except ParlourError as error:  # words find without it; the next document tries again
            _log.warning("%s: nothing could be made: %s", self._thread.name, error)
            return False
        except Exception:  # noqa: BLE001 - the thread goes on: whoever waits must hear that nothing comes now
            _log.exception("%s: nothing could be made.", self._thread.name)
            return False
