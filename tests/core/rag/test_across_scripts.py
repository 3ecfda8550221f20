"""A question is held against passages in another script without what all questions in its script share."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.rag import records
from core.rag.document import Chunk, Document
from core.rag.embedding import across
from core.rag.embedding.across import MEANS, Script, without_common
from core.rag.embedding.local import LocalEmbedder
from core.rag.embedding.packaged import PACKAGES, LocalName
from core.rag.index_file import IndexFile
from core.rag.search.stored_vectors import Vectors
from core.rag.search.turns import InTurns
from core.rag.search.vector import HybridSearcher
from core.rag.search.word_table import WordTable

SHARED, TOPIC, REST = np.eye(3, dtype=np.float32)
HUB, ANSWER, FAR = TEXTS = "A page like any question.", "A heron eats fish, as of 1921.", "Something else."


def unit(vector: Any) -> Any:
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class Leaning:
    """A model whose questions have much in common, and so has one of the passages."""

    model = "leaning"
    at_once = 8

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ready(self) -> bool:
        return True

    def passages(self, texts: Sequence[str]) -> Any:
        rows = {HUB: unit(SHARED + 0.6 * REST), ANSWER: unit(0.5 * SHARED + 0.9 * TOPIC), FAR: -SHARED}
        return np.array([next(row for told, row in rows.items() if told in text) for text in texts], np.float32)

    def questions(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return np.array([unit(SHARED + 0.3 * TOPIC) for _ in texts], np.float32)

    def close(self) -> None:
        """Nothing is held."""


class OnShelf:
    """The passages, and which of them a question's words find."""

    def __init__(self, said: Sequence[tuple[int, float]] = ()) -> None:
        self.said = said

    def words(self, *_: Any) -> list[tuple[int, float]]:
        return [*self.said]

    def terms_of(self, ids: Sequence[int]) -> dict[int, str]:
        return dict.fromkeys(ids, "")

    def texts_of(self, ids: Sequence[int]) -> list[str]:
        return [TEXTS[one - 1] for one in ids]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[IndexFile]:
    opened = IndexFile(tmp_path / "library.sqlite")
    WordTable(opened)
    with opened.writing() as db:
        chunks = [Chunk(text, heading="") for text in TEXTS]
        records.insert(db, Document("a", "a", "text/plain", None, len(chunks)), chunks, [])
    yield opened
    opened.close()


@pytest.fixture
def vectors(file: IndexFile) -> Vectors:
    made = Vectors(file, Leaning())
    assert InTurns([made]).fill(threading.Event())
    return made


@pytest.fixture
def of_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(across, "_means", lambda: {"leaning": {"Chinese": SHARED.tolist()}})


def found(vectors: Vectors, question: str, said: Sequence[tuple[int, float]] = ()) -> list[int]:
    shelf: Any = OnShelf(said)
    scored = HybridSearcher(shelf, [vectors]).find(question, 2)
    assert all(0 <= score <= 1 for _, score in scored)
    return [chunk_id for chunk_id, _ in scored]


@pytest.mark.usefixtures("of_chinese")
def test_a_passage_that_is_like_any_question_is_not_found_first_for_that(vectors: Vectors) -> None:
    assert found(vectors, "What does a heron eat?") == [1, 2]
    assert found(vectors, "苍鹭吃什么？") == [2, 1]


def test_with_a_model_whose_mean_is_not_known_the_likest_is_first(vectors: Vectors) -> None:
    assert found(vectors, "苍鹭吃什么？") == [1, 2]


def test_of_two_that_are_nearly_as_like_the_one_with_the_year_is_first(file: IndexFile) -> None:
    class Undecided(Leaning):
        def questions(self, texts: Sequence[str]) -> Any:
            return np.array([unit(0.6 * SHARED + 0.53 * TOPIC + 0.47 * REST) for _ in texts], np.float32)

    made = Vectors(file, Undecided())
    assert InTurns([made]).fill(threading.Event())
    assert found(made, "1921年的调查") == [1, 2]
    assert found(made, "1921年的调查", [(2, 1.0)]) == [2, 1]


def test_the_question_is_made_into_a_vector_once(file: IndexFile) -> None:
    model = Leaning()
    made = Vectors(file, model)
    assert InTurns([made]).fill(threading.Event())
    found(made, "苍鹭吃什么？")
    found(made, "What does a heron eat?")
    assert model.asked == ["苍鹭吃什么？", "What does a heron eat?"]


@pytest.mark.parametrize("name", PACKAGES)
@pytest.mark.parametrize("script", ["Chinese", "other"])
def test_of_each_model_that_is_installed_the_mean_of_questions_is_known(name: LocalName, script: Script) -> None:
    model = LocalEmbedder(name).model
    inner: Any = across
    mean = np.array(inner._means()[model][script], np.float32)
    asked = unit(mean + np.linspace(-0.05, 0.05, len(mean)))
    apart = without_common(model, asked, script)
    assert float(np.linalg.norm(apart)) == pytest.approx(1, abs=1e-5)
    assert float(apart @ unit(mean)) < float(asked @ unit(mean))
    assert MEANS.stat().st_size < 20_000


def test_the_vector_for_a_model_of_a_service_stays_as_it_is() -> None:
    asked = unit(SHARED + TOPIC)
    assert without_common("service x 3", asked, "Chinese") is asked
