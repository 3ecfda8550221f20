"""Who searches while the model of meaning is only being loaded has passages by words, at once; meaning joins later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from core.rag.embedding import local
from core.rag.embedding.catalog import local_embedder
from core.rag.library import Library
from core.reading.indexing import index_config
from core.settings import Settings

LAKE = "The heron eats fish in the shallow lake."
BANK = "Interest rates were raised by the central bank."


class Loading:
    """A model of this machine that is loaded when it is told."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self.asked = 0

    def model(self, name: str) -> Callable[..., object]:
        self.asked += 1
        assert self.may_end.wait(60)

        def encode(texts: list[str], *, is_question: bool) -> object:
            rows = np.zeros((len(texts), 512), np.float32)
            rows[:, 0] = 1.0
            return rows

        return encode


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loading]:
    local_embedder.cache_clear()
    made = Loading()
    monkeypatch.setattr(local, "loaded", made.model)
    yield made
    made.may_end.set()
    local_embedder.cache_clear()


def filled(folder: Path) -> Path:
    with Library.open(folder, {"retrieval_type": "hybrid", "embedding_model": "use"}) as library:
        library.add_text(LAKE, name="lake")
        library.add_text(BANK, name="bank")
        assert library.wait_for_vectors(300)
    return folder


@pytest.mark.parametrize("kind", ["hybrid", "vector"])
def test_a_search_does_not_wait_for_a_model_that_is_only_being_loaded(
    tmp_path: Path, loading: Loading, kind: str
) -> None:
    folder = filled(tmp_path / "library")
    found: list[list[str]] = []
    with Library.open(folder, {"retrieval_type": kind, "embedding_model": "use", "meaning_within": 0.05}) as library:

        def search() -> None:
            found.append([one.document for one in library.find("heron")])

        searching = threading.Thread(target=search, daemon=True)
        searching.start()
        searching.join(120)
        assert found == [["lake"]]  # by words alone
        loading.may_end.set()
        assert local.LocalEmbedder.soon(local_embedder("use"), ["heron"], 60) is not None
        assert loading.asked == 1
        assert "bank" in [one.document for one in library.find("heron")]  # to this model all are alike


def test_a_search_that_has_time_waits_until_the_model_is_loaded(tmp_path: Path, loading: Loading) -> None:
    folder = filled(tmp_path / "library")
    with Library.open(folder, {"retrieval_type": "hybrid", "embedding_model": "use"}) as library:
        threading.Timer(0.1, loading.may_end.set).start()
        assert "bank" in [one.document for one in library.find("heron")]


def test_a_process_that_gives_no_sign_of_life_keeps_no_search_waiting(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(local.WORKERS, "runs", lambda name: answers.wait(60))
    loading.may_end.set()
    assert local_embedder("use").soon(["heron"], 0.01) is None
    assert local_embedder("use").soon(["heron"], 0.01) is None
    answers.set()
    rows = local_embedder("use").soon(["heron"], 60)
    assert rows is not None
    assert rows.shape == (1, 512)
    assert loading.asked == 1


def test_a_model_that_cannot_be_loaded_keeps_no_search_waiting_either(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> Callable[..., object]:
        raise OSError(name)

    monkeypatch.setattr(local, "loaded", broken)
    assert local_embedder("use").soon(["heron"], 60) is None


@pytest.mark.parametrize(("again", "found"), [(60.0, False), (0.0, True)])
def test_a_model_that_could_not_be_loaded_is_tried_again_after_a_while_and_not_for_each_question(
    again: float, found: bool, loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str) -> Callable[..., object]:
        raise OSError(name)

    monkeypatch.setattr(local, "_AGAIN", again)
    monkeypatch.setattr(local, "loaded", broken)
    assert local_embedder("use").soon(["heron"], 60) is None
    monkeypatch.setattr(local, "loaded", loading.model)
    loading.may_end.set()
    assert (local_embedder("use").soon(["heron"], 60) is not None) == found


def test_what_a_page_searches_waits_for_meaning_no_longer_than_half_a_second(tmp_path: Path) -> None:
    assert index_config(Settings.load(home=tmp_path)).meaning_within == 0.5
