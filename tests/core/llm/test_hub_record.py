"""Weights whose hash only the repository knows: recorded before the download, checked after it, deleted on wish."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from filelock import FileLock
from huggingface_hub import constants
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ConflictError, ModelServiceError
from core.llm.hub_record import NoRecordError, recorded, sha256_in
from core.llm.weight_places import HuggingFace, mark_of
from core.llm.weights import NoLongerWantedError, WeightStore
from core.llm.weights_candidates import CANDIDATES
from core.llm.weights_catalog import WEIGHTS, Weights, named, on_offer
from tests.model_hub import COMMIT, ModelHub, model_hub

BODY = random.Random(3).randbytes(1_500_000)
NAME = "Small-Model-Q4_K_M.gguf"
MODEL = Weights("small", "Small", {"en": "nobody", "zh": "无"}, "small.gguf", 0, "", "MIT", 0, "maker/Small-GGUF")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    files = {
        NAME: BODY,
        "Small-Model-Q8_0.gguf": b"other",
        "mmproj-Small-Model-Q4_K_M.gguf": b"eyes",
        "S-Q4_K_M-00001-of-00002.gguf": b"half",
        "README.md": b"# Small",
    }
    with model_hub("maker/Small-GGUF", files) as running:
        yield running


def store(folder: Path, hub: ModelHub) -> WeightStore:
    return WeightStore(folder, [HuggingFace(hub.address)])


def test_name_size_and_hash_come_from_the_record_and_the_file_is_checked_by_them(tmp_path: Path, hub: ModelHub) -> None:
    kept = store(tmp_path, hub)
    path = kept.fetch(MODEL)
    assert path == tmp_path / "small.gguf"
    assert path.read_bytes() == BODY
    known = kept.known(MODEL)
    assert (known.remote_file, known.size, known.sha256) == (NAME, len(BODY), hub.sha256(NAME))
    assert known.revision == COMMIT
    assert any(f"/resolve/{COMMIT}/" in one for one in hub.paths)  # what was recorded, whatever is newer meanwhile


def test_a_file_that_is_here_is_found_without_the_hub(tmp_path: Path, hub: ModelHub) -> None:
    store(tmp_path, hub).fetch(MODEL)
    assert WeightStore(tmp_path, []).fetch(MODEL) == tmp_path / "small.gguf"


def test_a_download_goes_on_only_where_the_file_is_still_the_same(tmp_path: Path, hub: ModelHub) -> None:
    kept, stop = store(tmp_path, hub), threading.Event()
    with pytest.raises(NoLongerWantedError):
        kept.fetch(MODEL, lambda _: stop.set(), stop)
    begun = kept.begun(MODEL)
    assert 0 < begun < len(BODY)
    assert kept.fetch(MODEL).read_bytes() == BODY
    first, second = hub.downloads
    assert first == {}
    assert second["range"] == f"bytes={begun}-"
    assert second["if-range"].startswith('"')
    assert not mark_of(tmp_path / "small.gguf.part").exists()


def test_where_the_store_has_another_file_by_then_it_is_fetched_from_its_beginning(
    tmp_path: Path, hub: ModelHub
) -> None:
    kept = store(tmp_path, hub)
    (tmp_path / "small.gguf.part").write_bytes(b"old" * 1000)
    mark_of(tmp_path / "small.gguf.part").write_text('"of-another-file"', "utf-8")
    assert kept.fetch(MODEL).read_bytes() == BODY
    assert hub.downloads == [{"range": "bytes=3000-", "if-range": '"of-another-file"'}]


def test_what_does_not_have_the_recorded_hash_is_refused_and_deleted(tmp_path: Path, hub: ModelHub) -> None:
    kept, stop = store(tmp_path, hub), threading.Event()
    with pytest.raises(NoLongerWantedError):
        kept.fetch(MODEL, lambda _: stop.set(), stop)
    hub.told[NAME] = hub.sha256(NAME)  # the hub says that nothing has changed
    hub.files[NAME] = bytes(len(BODY))
    with pytest.raises(ModelServiceError) as caught:
        kept.fetch(MODEL)
    assert caught.value.words_key == "weights_broken"
    assert not list(tmp_path.glob("*.gguf")) + list(tmp_path.glob("*.part"))


def test_two_hashes_for_one_file_are_no_hash(tmp_path: Path, hub: ModelHub) -> None:
    hub.told[NAME] = "0" * 64
    with pytest.raises(ModelServiceError) as caught:
        store(tmp_path, hub).fetch(MODEL)
    assert caught.value.words_key == "weights_unrecorded"
    assert not hub.downloads


def test_a_file_whose_hash_nobody_tells_is_not_downloaded(tmp_path: Path, hub: ModelHub) -> None:
    hub.linked = False
    with pytest.raises(ModelServiceError) as caught:
        store(tmp_path, hub).fetch(MODEL)
    assert caught.value.words_key == "weights_unrecorded"
    assert not hub.downloads


def test_a_pinned_file_that_the_hub_says_has_another_hash_is_not_downloaded(tmp_path: Path, hub: ModelHub) -> None:
    pinned = Weights(
        "small", "Small", {}, "small.gguf", len(BODY), "1" * 64, "MIT", 0, "maker/Small-GGUF", remote_file=NAME
    )
    with pytest.raises(ModelServiceError) as caught:
        store(tmp_path, hub).fetch(pinned)
    assert caught.value.words_key == "weights_unreachable"
    assert not hub.downloads


def test_a_repository_that_is_not_there_is_said(tmp_path: Path, hub: ModelHub) -> None:
    elsewhere = Weights("small", "Small", {}, "small.gguf", 0, "", "MIT", 0, "maker/Nothing")
    with pytest.raises(ModelServiceError) as caught:
        store(tmp_path, hub).fetch(elsewhere)
    assert caught.value.words_key == "weights_unrecorded"


def test_deleting_takes_what_was_fetched_and_nothing_else(tmp_path: Path, hub: ModelHub) -> None:
    kept = store(tmp_path / "own", hub)
    kept.fetch(MODEL)
    (tmp_path / "own" / "of-somebody.gguf").write_bytes(b"mine")
    assert kept.remove(MODEL) >= len(BODY)
    assert {path.name for path in (tmp_path / "own").iterdir()} <= {"of-somebody.gguf", "small.gguf.lock"}
    assert kept.remove(MODEL) == 0


def test_what_another_process_is_fetching_is_not_deleted(tmp_path: Path, hub: ModelHub) -> None:
    (tmp_path / "small.gguf.part").write_bytes(b"half")
    with FileLock(tmp_path / "small.gguf.lock"), pytest.raises(ConflictError) as caught:
        store(tmp_path, hub).remove(MODEL)
    assert caught.value.words_key == "weights_busy"
    assert (tmp_path / "small.gguf.part").exists()


@given(st.text(max_size=80))
def test_a_header_holds_a_sha256_or_nothing(text: str) -> None:
    found = sha256_in(text)
    assert found == "" or (len(found) == 64 and found in text.lower())
    assert sha256_in(f'"{"ab" * 32}"') == "ab" * 32


@pytest.mark.parametrize(
    "body",
    ["<html>Please log in</html>", "{}", "[1, null, []]", '[{"path": "../../etc/x-Q4_K_M.gguf", "size": 3}]', "[]"],
)
def test_an_answer_that_lists_no_such_file_is_no_record(body: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=body)

    with httpx.Client(transport=httpx.MockTransport(answer)) as client, pytest.raises(NoRecordError):
        recorded(client, "http://hub", MODEL)


def test_the_candidates_are_offered_by_name_and_pin_no_invented_hash() -> None:
    assert list(on_offer()) == [*WEIGHTS, *CANDIDATES]
    assert named("qwen3.5-2b") is CANDIDATES["qwen3.5-2b"]
    for weights in CANDIDATES.values():
        assert (weights.size, weights.sha256, weights.wheels) == (0, "", ())
        assert weights.repository.count("/") == 1
