"""The graph of a large library's vectors: it finds what comparing all finds, and nothing depends on it."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import core.rag.search.stored_vectors
from core.rag import records
from core.rag.document import Chunk, Document
from core.rag.index_file import IndexFile
from core.rag.library import Library
from core.rag.search import near_index
from core.rag.search.near_index import NearGraph, NearIndex
from core.rag.search.stored_vectors import Vectors
from core.rag.search.turns import InTurns
from core.rag.search.vector import HybridSearcher, VectorSearcher
from core.rag.search.word_table import WordTable

SIZE = 64
MANY = 3_000
STOP = threading.Event()
WITHOUT: Any = None
TOPIC = re.compile(r"(topic\d+)")
Made = Callable[..., Vectors]


class Topics:
    """A vector for each text: of the topic that it names, and of all that it says."""

    model = "topics"
    at_once = 500

    def ready(self) -> bool:
        return True

    def passages(self, texts: Sequence[str]) -> Any:
        said = [TOPIC.split(text, 1)[1:] for text in texts]  # without the name of its document
        made = [self._of(topic) + 1.2 * self._of(topic + rest) for topic, rest in said]
        return np.array([one / np.linalg.norm(one) for one in made], np.float16).astype(np.float32)

    questions = passages

    @staticmethod
    @cache
    def _of(text: str) -> Any:
        return np.random.default_rng(crc32(text.encode())).standard_normal(SIZE)

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture(scope="module", autouse=True)
def smaller() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as here:
        here.setattr(near_index, "LARGE", 1_000)
        here.setattr(core.rag.search.stored_vectors, "_BATCH", 500)
        yield


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IndexFile]:
    opened = IndexFile(tmp_path / "library.sqlite")
    WordTable(opened)
    yield opened
    opened.close()


def put(file: IndexFile, name: str, chunks: int = MANY) -> None:
    with file.writing() as db:
        said = [Chunk(f"topic{number % 40} of {name} {number}") for number in range(chunks)]
        records.insert(db, Document(name, name, "text/plain", None, chunks), said, [])


def drop(file: IndexFile, name: str) -> None:
    with file.writing() as db:
        db.execute("DELETE FROM documents WHERE id = ?", (name,))


@pytest.fixture(scope="module")
def library_of(tmp_path_factory: pytest.TempPathFactory, smaller: None) -> Callable[..., Path]:
    """The folder of a library with these documents, made once for all tests."""

    @cache
    def of(**documents: int) -> Path:
        folder = tmp_path_factory.mktemp("library")
        file = IndexFile(folder / "library.sqlite")
        WordTable(file)
        made_anew(file, **documents)
        file.close()
        return folder

    return of


@pytest.fixture
def made(library_of: Callable[..., Path]) -> Made:
    """Vectors of a library with these documents, and their graph, copied into a file without any."""

    def copied(file: IndexFile, **documents: int) -> Vectors:
        folder = library_of(**documents)
        with closing(sqlite3.connect(folder / "library.sqlite")) as whole, closing(sqlite3.connect(file.path)) as empty:
            whole.backup(empty)
        for path in folder.glob("library.near-*"):
            shutil.copy(path, file.path.parent)
        return opened(file)

    return copied


def made_anew(file: IndexFile, **documents: int) -> Vectors:
    """The same, made by this test itself."""
    for name, chunks in documents.items():
        put(file, name, chunks)
    vectors = opened(file)
    assert InTurns([vectors]).fill(STOP)
    assert vectors.graph is not None
    assert vectors.graph.fill(STOP)
    return vectors


def opened(file: IndexFile) -> Vectors:
    return Vectors(file, Topics(), graph=NearIndex(file, Topics.model))


def graph_files(file: IndexFile) -> list[Path]:
    return sorted(file.path.parent.glob("library.near-*"))


def best(vectors: Vectors, question: str, documents: Sequence[str] | None = None) -> list[int]:
    return [one for one, _ in VectorSearcher(WordTable(vectors.file), [vectors]).find(question, 10, documents)]


def agreement(vectors: Vectors, documents: Sequence[str] | None = None) -> float:
    """The share of the ten best by comparing all that are among the ten best."""
    exact = Vectors(vectors.file, Topics())
    asked = [f"topic{number % 40} question {number}" for number in range(100)]
    shares = [len({*best(exact, one, documents)} & {*best(vectors, one, documents)}) for one in asked]
    return sum(shares) / (10 * len(shares))


def compared(vectors: Vectors, question: str) -> int:
    likeness = vectors.like(question, nearest=200)
    assert likeness is not None
    return len(likeness.ids)


def test_the_ten_best_are_those_of_comparing_all(file: IndexFile, made: Made) -> None:
    vectors = made(file, a=MANY, b=MANY)
    assert compared(vectors, "topic3 anything") < 500
    assert agreement(vectors) >= 0.99


def test_scores_are_exact(file: IndexFile, made: Made) -> None:
    vectors, exact = made(file, a=MANY), Vectors(file, Topics())
    every, near = exact.like("topic7 what"), vectors.like("topic7 what", nearest=200, also=[1, 5, 2_999])
    assert every is not None
    assert near is not None
    assert {1, 5, 2_999} < {*near.ids.tolist()}
    places = np.searchsorted(every.ids, near.ids)
    assert np.allclose(near.cosines, every.cosines[places], atol=1e-6)
    assert len(every.ids) == MANY


def test_words_and_meaning_together_find_the_same_with_and_without(file: IndexFile, made: Made) -> None:
    vectors = made(file, a=MANY)
    both = [HybridSearcher(WordTable(file), [one]) for one in (vectors, Vectors(file, Topics()))]
    for number in range(20):
        question = f"topic{number} of a {number * 41}"
        first, second = (searcher.find(question, 5) for searcher in both)
        assert first[0][0] == second[0][0]
        assert first[0][1] == pytest.approx(second[0][1], abs=0.02)


def test_what_is_gone_is_not_found_and_what_comes_is(file: IndexFile, made: Made) -> None:
    vectors = made(file, a=MANY, b=MANY)
    drop(file, "a")
    with file.reading() as db:
        left = records.chunk_ids(db, "b")
    assert {*best(vectors, "topic5 question")} <= {*left}
    assert agreement(vectors) >= 0.99
    put(file, "c", 50)
    assert vectors.like("topic5 question", nearest=200) is None  # as long as a vector is missing
    assert InTurns([vectors]).fill(STOP)
    assert best(vectors, "topic5 of c 5")[0] == left[-1] + 6  # before it is in the graph
    assert vectors.graph is not None
    assert vectors.graph.fill(STOP)
    assert best(vectors, "topic5 of c 5")[0] == left[-1] + 6
    assert agreement(vectors) >= 0.99


@pytest.mark.parametrize("documents", [["few"], ["some"], ["few", "some"], ["many", "few"], ["nobody"], []])
def test_only_the_documents_that_were_named_are_searched(file: IndexFile, made: Made, documents: list[str]) -> None:
    vectors = made(file, many=4_000, few=30, some=2_100)
    with file.reading() as db:
        wanted = {one for name in documents for one in records.chunk_ids(db, name)}
    found = best(vectors, "topic5 question", documents)
    assert {*found} <= wanted
    if wanted:
        assert len(found) == 10
        assert agreement(vectors, documents) >= 0.99


def test_a_graph_outlives_its_process(file: IndexFile, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    made(file, a=MANY)
    (kept,) = graph_files(file)
    monkeypatch.setattr(NearGraph, "add", WITHOUT)  # it is not made again
    again = opened(file)
    assert compared(again, "topic1 question") < 500
    assert again.graph is not None
    assert again.graph.fill(STOP)
    assert graph_files(file) == [kept]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [Path.unlink, cut, changed, lambda path: path.write_bytes(b"")])
def test_a_graph_that_is_missing_or_damaged_is_made_anew(file: IndexFile, made: Made, harm: Any) -> None:
    made(file, a=MANY)
    (kept,) = graph_files(file)
    harm(kept)
    again = opened(file)
    assert compared(again, "topic1 question") == MANY  # all are compared meanwhile
    assert again.graph is not None
    assert again.graph.fill(STOP)
    assert compared(again, "topic1 question") < 500
    (fresh,) = graph_files(file)
    assert fresh != kept
    assert agreement(opened(file)) >= 0.99


def test_a_graph_of_another_library_is_not_believed(file: IndexFile, made: Made, tmp_path: Path) -> None:
    made(file, a=MANY)
    (tmp_path / "other").mkdir()
    other = IndexFile(tmp_path / "other" / "library.sqlite")
    WordTable(other)
    vectors = made(other, z=MANY)
    (kept,), (strange,) = graph_files(other), graph_files(file)
    kept.write_bytes(strange.read_bytes())  # as if it had been put back from a backup of something else
    vectors = opened(other)
    assert compared(vectors, "topic1 question") == MANY
    other.close()


def test_a_graph_mostly_of_what_is_gone_is_made_anew_and_a_small_library_needs_none(
    file: IndexFile, made: Made
) -> None:
    vectors = made(file, a=MANY, b=1_100)
    assert vectors.graph is not None
    drop(file, "a")
    assert vectors.graph.fill(STOP)
    now = vectors.graph.now()
    assert now is not None
    assert len(now.graph) == 1_100
    assert len(graph_files(file)) == 1
    drop(file, "b")
    put(file, "c", 20)
    assert InTurns([vectors]).fill(STOP)
    assert vectors.graph.fill(STOP)
    assert vectors.graph.now() is None
    assert graph_files(file) == []
    assert len(best(vectors, "topic5 question")) == 10


def test_what_a_process_left_that_was_killed_is_swept_and_what_another_writes_now_stays(file: IndexFile) -> None:
    put(file, "a")
    vectors = Vectors(file, Topics(), graph=NearIndex(file, Topics.model))
    assert InTurns([vectors]).fill(STOP)
    assert vectors.graph is not None
    assert vectors.graph.fill(STOP)
    (kept,) = file.path.parent.glob("*.near-*")
    names = ("library.near-0123456789abcdef", "library.near-fedcba9876543210", "other.near-0123456789abcdef")
    left, fresh, others = (file.path.with_name(name) for name in names)
    for path in (left, fresh, others):
        path.write_bytes(b"graph")
    for path in (kept, left, others):
        os.utime(path, (1, 1))
    near_index.sweep(file)
    assert set(file.path.parent.glob("*.near-*")) == {kept, fresh, others}


def test_a_graph_that_grew_is_written_once_in_a_while(file: IndexFile, made: Made) -> None:
    vectors = made(file, a=MANY)
    (first,) = graph_files(file)
    for number, chunks in enumerate((100, 300)):
        put(file, f"more {number}", chunks)
        assert InTurns([vectors]).fill(STOP)
        assert vectors.graph is not None
        assert vectors.graph.fill(STOP)
        (kept,) = graph_files(file)
        assert (kept == first) == (number == 0)
    assert agreement(opened(file)) >= 0.99


def test_a_graph_without_room_on_the_disk_serves_from_memory(
    file: IndexFile, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(NearGraph, "save", full)
    vectors = made_anew(file, a=MANY)
    assert compared(vectors, "topic1 question") < 500
    assert graph_files(file) == []
    assert "cannot be kept" in caplog.text


def test_making_a_graph_ends_when_the_library_closes(file: IndexFile) -> None:
    put(file, "a")
    vectors = opened(file)
    assert InTurns([vectors]).fill(STOP)
    stop = threading.Event()
    stop.set()
    assert vectors.graph is not None
    assert not vectors.graph.fill(stop)
    assert vectors.graph.now() is None
    assert graph_files(file) == []


def test_without_the_package_all_are_compared(file: IndexFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_index, "is_installed", lambda: False)
    vectors = made_anew(file, a=MANY)
    assert compared(vectors, "topic1 question") == MANY
    assert graph_files(file) == []


def test_questions_may_come_while_the_graph_grows(file: IndexFile, made: Made) -> None:
    vectors = made(file, a=1_500)
    put(file, "b", 2_500)
    assert InTurns([vectors]).fill(STOP)
    assert vectors.graph is not None
    growing = threading.Thread(target=vectors.graph.fill, args=(STOP,))
    growing.start()
    for number in count():
        assert best(vectors, f"topic{number % 40} of b {number % 2_500}")[0] == 1_501 + number % 2_500
        if not growing.is_alive():
            break
    growing.join()
    assert agreement(vectors) >= 0.99


def test_a_library_makes_its_graph_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_index, "LARGE", 30)
    made_now = threading.Event()
    save = NearGraph.save

    def kept(graph: NearGraph, path: Path) -> str:
        digest = save(graph, path)
        made_now.set()  # its file is there from now on
        return digest

    monkeypatch.setattr(NearGraph, "save", kept)
    config = {"retrieval_type": "vector", "embedding_model": "use", "chunk_size": 32}
    with Library.open(tmp_path / "large", config) as library:
        text = "\n\n".join(
            f"Paragraph {number} tells of the river of that number. {'It is long. ' * 9}" for number in range(60)
        )
        assert library.add_text(text, name="rivers").chunks > 30
        assert made_now.wait(240)  # a model is loaded and read with, on whatever machine this is
        assert library.retriever.wait_for_words(240)
        assert len(library.find("river", 3)) == 3
        assert list((tmp_path / "large").glob("library.near-*"))
