"""What there is of built-in models, what would fit, and downloads in the background."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from core.errors import ConflictError, UnknownNameError
from core.llm.weight_places import HuggingFace
from core.llm.weights import WeightStore
from core.models.weight_files import Machine, WeightFile, WeightFiles
from tests.model_hub import ModelHub, model_hub

GIGA = 1_000_000_000
ROOMY = Machine(64 * GIGA, 64 * GIGA, 500 * GIGA)
BODY = random.Random(5).randbytes(600_000)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with model_hub("Qwen/Qwen3-0.6B-GGUF", {"Qwen3-0.6B-Q8_0.gguf": BODY}) as running:
        yield running


def files(folder: Path, hub: ModelHub | None = None, machine: Machine = ROOMY) -> WeightFiles:
    places = [HuggingFace(hub.address)] if hub is not None else []
    return WeightFiles(WeightStore(folder, places), lambda _: machine)


def row(there: WeightFiles, name: str = "qwen3-0.6b") -> WeightFile:
    return next(one for one in there.list() if one.weights.name == name)


def until(there: WeightFiles, state: str) -> WeightFile:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if (one := row(there)).state == state:
            return one
        threading.Event().wait(0.01)
    raise AssertionError(row(there))


def test_a_download_goes_on_in_the_background_and_its_size_is_known_then(tmp_path: Path, hub: ModelHub) -> None:
    there = files(tmp_path, hub)
    assert (row(there).state, row(there).weights.size) == ("absent", 0)
    hub.pause.clear()
    there.start("qwen3-0.6b")
    there.start("qwen3-0.6b")  # a second press changes nothing
    assert until(there, "fetching").ours is False
    hub.pause.set()
    one = until(there, "here")
    assert (one.done, one.weights.size, one.ours) == (len(BODY), len(BODY), True)
    assert len(hub.downloads) == 1


def test_a_download_that_is_cancelled_keeps_what_has_come_and_can_be_deleted(tmp_path: Path, hub: ModelHub) -> None:
    there = files(tmp_path, hub)
    hub.pause.clear()
    there.start("qwen3-0.6b")
    until(there, "fetching")
    end = time.monotonic() + 30
    while not row(there).done and time.monotonic() < end:
        threading.Event().wait(0.01)
    with pytest.raises(ConflictError):
        there.remove("qwen3-0.6b")
    there.cancel("qwen3-0.6b")
    hub.pause.set()
    one = until(there, "begun")
    assert 0 < one.done < len(BODY)
    assert there.remove("qwen3-0.6b") >= one.done
    assert row(there).state == "absent"


def test_why_a_download_failed_is_told(tmp_path: Path) -> None:
    there = files(tmp_path)
    there.start("qwen3-0.6b")
    one = until(there, "absent")
    assert one.failed is not None
    assert one.failed.words_key == "weights_unrecorded"


@pytest.mark.parametrize(
    ("machine", "fit"),
    [
        (ROOMY, "suits"),
        (Machine(8 * GIGA, GIGA // 2, 500 * GIGA), "tight"),
        (Machine(GIGA // 2, GIGA // 4, 500 * GIGA), "no_memory"),
        (Machine(8 * GIGA, 8 * GIGA, GIGA // 10), "no_disk"),
    ],
)
def test_whether_a_model_suits_the_machine_is_told_by_its_memory_and_disk(
    tmp_path: Path, machine: Machine, fit: str
) -> None:
    assert row(files(tmp_path, machine=machine), "qwen2.5-coder-0.5b").fit == fit
    assert row(files(tmp_path, machine=machine), "qwen3.5-2b").fit == "unknown"  # nobody knows how large it is


def test_memory_is_told_as_measured_or_as_reckoned(tmp_path: Path) -> None:
    there = files(tmp_path)
    assert (row(there, "qwen2.5-coder-0.5b").memory, row(there, "qwen2.5-coder-0.5b").estimated) == (657_000_000, False)
    assert row(there, "qwen3.5-4b").estimated
    assert row(there, "qwen3.5-2b").memory == 0


def test_the_machine_is_measured_where_the_folder_is_not_made_yet(tmp_path: Path) -> None:
    machine = Machine.measured(tmp_path / "not" / "there")
    assert 0 < machine.free_memory <= machine.memory
    assert machine.free_disk > 0


def test_a_name_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"qwen3\.5-2b"):
        files(tmp_path).start("qwen3.5-2bb")
