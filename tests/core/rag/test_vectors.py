"""Comparing vectors in memory: exact, and right while a library changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from core.rag import records
from core.rag.document import Chunk, Document
from core.rag.index_file import IndexFile
from core.rag.search.keyword import KeywordSearcher
from core.rag.search.stored_vectors import Vectors
from core.rag.search.turns import InTurns
from core.rag.search.vector import HybridSearcher, VectorSearcher, top
from core.rag.search.word_table import WordTable


class ByLot:
    """A vector for each text, drawn by the text."""

    model = "by lot"
    at_once = 100

    def ready(self) -> bool:
        return True

    def passages(self, texts: Sequence[str]) -> Any:
        made = [np.random.default_rng(crc32(text.encode())).standard_normal(16) for text in texts]
        return np.array([one / np.linalg.norm(one) for one in made], np.float16).astype(np.float32)

    questions = passages

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IndexFile]:
    opened = IndexFile(tmp_path / "library.sqlite")
    WordTable(opened)
    yield opened
    opened.close()


def put(file: IndexFile, name: str, count: int) -> None:
    with file.writing() as db:
        chunks = [Chunk(f"{name} {number}") for number in range(count)]
        records.insert(db, Document(name, name, "text/plain", None, count), chunks, [])


def drop(file: IndexFile, name: str) -> None:
    with file.writing() as db:
        db.execute("DELETE FROM documents WHERE id = ?", (name,))


def expected(file: IndexFile, question: str, documents: Sequence[str] | None = None) -> dict[int, Any]:
    with file.reading() as db:
        rows = [(one, text) for one, text in records.chunk_texts(db)]
        wanted = {one for name in documents for one in records.chunk_ids(db, name)} if documents is not None else None
    asked = ByLot().questions([question])[0]
    cosines = ByLot().passages([text for _, text in rows]) @ asked if rows else []
    return {
        one: pytest.approx(float(cosine), abs=1e-3)
        for (one, _), cosine in zip(rows, cosines, strict=True)
        if wanted is None or one in wanted
    }


def compared(vectors: Vectors, question: str, documents: Sequence[str] | None = None) -> dict[int, float] | None:
    found = vectors.like(question, documents)
    if found is None:
        return None
    assert list(found.ids) == sorted(found.ids)
    return dict(zip(found.ids.tolist(), found.cosines.tolist(), strict=True))


def test_every_chunk_is_compared_whatever_came_and_went(file: IndexFile) -> None:
    vectors, other = Vectors(file, ByLot()), Vectors(file, ByLot())
    stop = threading.Event()
    for step, name in enumerate("abcdefg"):
        put(file, name, 5 + 3 * step)
        assert InTurns([(vectors, other)[step % 2]]).fill(stop)
        if step % 3 == 2:
            drop(file, "abcdefg"[step - 1])
        for one in (vectors, other):
            assert compared(one, f"question {step}") == expected(file, f"question {step}")
            assert compared(one, "few", [name]) == expected(file, "few", [name])
            most = [kept for kept in "acdfg" if kept <= name]
            assert compared(one, "most", most) == expected(file, "most", most)


def test_nothing_is_compared_while_a_vector_is_missing(file: IndexFile) -> None:
    vectors = Vectors(file, ByLot())
    assert vectors.like("anything") is None
    put(file, "a", 3)
    assert vectors.like("anything") is None
    assert InTurns([vectors]).fill(threading.Event())
    put(file, "b", 3)
    assert vectors.like("anything") is None
    assert vectors.like("anything", ["a", "b"]) is None
    assert compared(vectors, "anything", ["a"]) == expected(file, "anything", ["a"])
    assert vectors.like("anything", []) is None
    assert vectors.like("anything", ["nobody"]) is None


def test_vectors_that_come_late_find_their_place(file: IndexFile) -> None:
    put(file, "a", 4)
    vectors = Vectors(file, ByLot())
    with file.writing() as db:
        for at in (3, 4, 1, 2):
            (row,) = [ByLot().passages([text])[0] for one, text in records.chunk_texts(db) if one == at]
            db.execute(
                "INSERT INTO vectors (model, chunk_id, vector) VALUES (?, ?, ?)",
                (ByLot.model, at, row.astype(np.float16).tobytes()),
            )
            if at == 4:
                db.execute("COMMIT")
                assert vectors.like("early") is None
                db.execute("BEGIN")
    assert compared(vectors, "late") == expected(file, "late")


def test_a_gap_is_filled_whether_or_not_there_is_more_behind_it(file: IndexFile) -> None:
    put(file, "a", 20)
    vectors = Vectors(file, ByLot())
    assert InTurns([vectors]).fill(threading.Event())
    for name in ("", "b"):
        with file.writing() as db:
            db.execute("DELETE FROM vectors WHERE chunk_id IN (2, 9)")
        if name:
            put(file, name, 9)
        assert InTurns([vectors]).fill(threading.Event())
        again = Vectors(file, ByLot())
        assert compared(again, "question") == expected(file, "question")


def test_what_was_found_stays_as_it_is_when_more_comes(file: IndexFile) -> None:
    vectors = Vectors(file, ByLot())
    put(file, "a", 40)
    assert InTurns([vectors]).fill(threading.Event())
    found = vectors.like("question")
    assert found is not None
    before = found.ids.copy(), found.cosines.copy()
    for name in "bcde":
        put(file, name, 3)
        assert InTurns([vectors]).fill(threading.Event())
        assert compared(vectors, "question") == expected(file, "question")
    assert np.array_equal(found.ids, before[0])
    assert np.array_equal(found.cosines, before[1])


def test_the_best_are_taken_from_all(file: IndexFile) -> None:
    vectors = Vectors(file, ByLot())
    put(file, "a", 200)
    assert InTurns([vectors]).fill(threading.Event())
    likeness = vectors.like("question")
    assert likeness is not None
    order = np.argsort(-likeness.cosines, kind="stable")
    assert top(likeness.cosines, 7) == order[:7].tolist()
    searcher = VectorSearcher(WordTable(file), [vectors])
    assert [one for one, _ in searcher.find("question", 7)] == likeness.ids[order[:7]].tolist()
    found = HybridSearcher(WordTable(file), [vectors]).find("question", 7)
    assert [one for one, _ in found] == likeness.ids[order[:7]].tolist()  # no chunk shares a word with it


def test_words_of_a_chunk_that_is_gone_by_now_do_no_harm(file: IndexFile, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = Vectors(file, ByLot())
    put(file, "a", 9)
    assert InTurns([vectors]).fill(threading.Event())
    monkeypatch.setattr(KeywordSearcher, "find", lambda *_: [(999, 9.0), (4, 3.0), (0, 1.0)])
    found = HybridSearcher(WordTable(file), [vectors]).find("question", 9)
    assert {one for one, _ in found} == set(range(1, 10))
    assert dict(found)[4] >= 0.5


def test_how_many_chunks_of_a_document_have_vectors_is_known_while_they_are_made(file: IndexFile) -> None:
    put(file, "a", 5)
    put(file, "b", 3)
    vectors = Vectors(file, ByLot(), most=10)
    assert vectors.made(["a", "b", "nobody"]) == {"a": (0, 5), "b": (0, 3)}
    assert InTurns([vectors]).fill(threading.Event())
    with file.writing() as db:
        db.execute("DELETE FROM vectors WHERE chunk_id = 2")
    assert vectors.made(["a"]) == {"a": (4, 5)}
    put(file, "c", 5)
    assert vectors.made(["a"]) is None  # too many for this model: nobody waits for it
