"""The gate: every stage is run and counted, and nothing that a stage started outlives it."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEAVE_A_SERVER = """
import subprocess, sys
server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(server.pid))
"""


@pytest.fixture
def gate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gate", ROOT / ".ci" / "gate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_running(pid: int) -> bool:
    """A process that nobody has waited for yet counts as gone."""
    try:
        os.kill(pid, 0)
        return " Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_stage_leaves_no_server_running(gate: ModuleType, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    passed, _ = gate.run_stage("server", [sys.executable, "-c", LEAVE_A_SERVER, str(note)])
    assert passed
    assert not is_running(int(note.read_text()))


def test_a_failing_stage_fails_the_gate_and_the_others_still_run(
    gate: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stages = [
        ("first", [sys.executable, "-c", "raise SystemExit(3)"]),
        ("second", [sys.executable, "-c", "print('ran')"]),
    ]
    monkeypatch.setattr(gate, "stages", lambda **_: stages)
    assert gate.main() == 1
    said = capfd.readouterr().out
    assert "FAILED  first" in said
    assert "ran" in said
    assert "ok      second" in said


def test_the_stages_check_everything_in_order(gate: ModuleType) -> None:
    names = [name for name, _ in gate.stages(everything=False)]
    assert names == ["format", "lint", "layers", "types", "tests", "screen", "page"]
