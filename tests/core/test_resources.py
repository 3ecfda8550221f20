"""File descriptors and room on the disk: counted, and told before they run out."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from core import resources
from core.engine import Engine
from core.models import weight_files
from core.models.weight_files import Machine
from core.rag.parsers import scans_ahead
from core.readiness import Readiness
from core.resources import all_memory, free_memory
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel

_RUNS_OUT = """
import json, os, resource, sys
from core import resources
from core.readiness import Readiness

_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
readiness = Readiness()
readiness.checks["descriptors"] = resources.descriptors_check
readiness.mark("database", "ready")
readiness.mark("page", "ready")
said = [readiness.as_dict()]
held = []
while True:
    try:
        held.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        break
said.append(readiness.as_dict())
for one in held[:20]:
    os.close(one)
said.append(readiness.as_dict())
resources.raise_descriptor_limit()
said.append(readiness.as_dict())
print(json.dumps(said))
"""


@pytest.mark.parametrize("open_", [0, 60_000], ids=["idle", "busy"])
def test_ready_means_that_enough_are_left(open_: int) -> None:
    assert resources.Descriptors(open_, 65_536).suffice
    assert resources.Descriptors(900, 1_024).suffice
    assert not resources.Descriptors(1_000, 1_024).suffice
    assert not resources.Descriptors(50, 64).suffice


def test_a_check_that_fails_is_told_and_makes_the_house_unready() -> None:
    readiness, state = Readiness(), {"ready": True, "open": 12, "limit": 1_024}
    readiness.checks["descriptors"] = lambda: state
    readiness.mark("database", "ready")
    readiness.mark("page", "ready")
    assert readiness.ready
    state["ready"] = False
    assert not readiness.ready
    assert readiness.as_dict()["ready"] is False
    assert readiness.as_dict()["descriptors"] == {"ready": False, "open": 12, "limit": 1_024}


if sys.platform != "win32":  # which has no such limit

    def test_a_process_with_none_left_says_so_and_raises_its_limit_as_far_as_it_may() -> None:
        done = subprocess.run([sys.executable, "-c", _RUNS_OUT], capture_output=True, text=True, check=True)
        fresh, full, freed, raised = json.loads(done.stdout)
        assert fresh["ready"]
        assert (full["ready"], full["descriptors"]["limit"]) == (False, 64)
        assert freed["ready"]
        assert raised["descriptors"]["limit"] > 64


def test_a_disk_with_room_is_ready_and_a_full_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resources.disk_check(tmp_path)["ready"] is True
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    assert resources.disk_check(tmp_path) == {"ready": False, "free": 1_000_000}
    engine = Engine(Settings.load(home=tmp_path), model=ScriptedModel("x"))
    assert engine.readiness.as_dict()["disk"]["ready"] is False


def test_a_disk_that_is_gone_is_not_ready(tmp_path: Path) -> None:
    assert resources.disk_check(tmp_path / "unplugged")["ready"] is False


def test_the_memory_that_a_container_may_use_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1200000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 300000\nfile 400000\n")
    assert (free_memory(tmp_path), all_memory(tmp_path)) == (500_000, 1_200_000)
    (tmp_path / "memory.max").write_text("max\n")
    for group in (tmp_path, tmp_path / "none"):
        assert 500_000 < free_memory(group) <= all_memory(group)


def test_models_and_scans_are_held_against_the_same_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (weight_files, scans_ahead):
        monkeypatch.setattr(module, "free_memory", lambda: 1_000)
    monkeypatch.setattr(weight_files, "all_memory", lambda: 2_000)
    machine = Machine.measured(tmp_path)
    assert (machine.memory, machine.free_memory) == (2_000, 1_000)
    assert scans_ahead.threads() == 1
