"""The gate: every stage is run and counted, and nothing that a stage started outlives it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
import tomllib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import slow_names, slow_tests

ROOT = Path(__file__).resolve().parent.parent
LEAVE_A_SERVER = """
import subprocess, sys
server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(server.pid))
"""
# Says that it begins, and ends only once the other one has begun, too.
MEET = """
import pathlib, sys, time
folder, own, other = sys.argv[1:]
print(own, "begins", flush=True)
pathlib.Path(folder, own).touch()
while not pathlib.Path(folder, other).exists():
    time.sleep(0.01)
print(own, "ends")
"""
WAIT = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
ENDED = f"""
import signal, sys
sys.path.insert(0, sys.argv[1])
import gate
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
group = [[(name, [sys.executable, "-c", {WAIT!r}, f"{{sys.argv[2]}}/{{name}}"])] for name in ("first", "second")]
gate.run_group(group)
"""

COMMIT = ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "a"]


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
    results = gate.run_group([[("server", [sys.executable, "-c", LEAVE_A_SERVER, str(note)])]])
    assert results["server"][0]
    assert not is_running(int(note.read_text()))


@pytest.mark.parametrize("in_one_lane", [True, False])
def test_a_failing_stage_fails_the_gate_and_the_others_still_run(
    in_one_lane: bool, gate: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = (
        ("first", [sys.executable, "-c", "raise SystemExit(3)"]),
        ("second", [sys.executable, "-c", "print('ran')"]),
    )
    monkeypatch.setattr(gate, "stages", lambda **_: [[[first, second]]] if in_one_lane else [[[first]], [[second]]])
    assert gate.main() == 1
    said = capfd.readouterr().out
    assert "FAILED  first" in said
    assert "ran" in said
    assert "ok      second" in said


def test_lanes_side_by_side_run_at_the_same_time_and_none_hides_another(
    gate: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    group = [[(name, [sys.executable, "-c", MEET, str(tmp_path), name, other])] for name, other in ("ab", "ba")]
    failing = ("c", [sys.executable, "-c", "import sys; print('wrong', file=sys.stderr); sys.exit(1)"])
    monkeypatch.setattr(gate, "stages", lambda **_: [[*group, [failing]]])
    assert gate.main() == 1
    said = capfd.readouterr().out
    whole = ["== a: ", "a begins\na ends\n", "== a: passed", "== b: ", "b begins\nb ends\n== b: passed", "== c: "]
    places = [said.index(part) for part in [*whole, "wrong\n== c: FAILED", "ok      a", "ok      b", "FAILED  c"]]
    assert places == sorted(places)


def test_which_test_failed_is_said_while_its_lane_and_the_others_still_run(gate: ModuleType, tmp_path: Path) -> None:
    write = (
        "import pathlib, time\n\n\ndef test_of_nothing():\n    pass\n\n\ndef test_of_a():\n    raise SystemError\n\n\n"
    )
    write += "def test_of_b():\n"
    write += "    until = time.monotonic() + 60\n    while not pathlib.Path(__file__).with_name('go').exists():\n"
    write += "        assert time.monotonic() < until\n        time.sleep(0.01)\n"
    (tmp_path / "test_both.py").write_text(write, "utf-8")
    options = ["-q", "--rootdir", str(tmp_path), "-p", "no:cacheprovider", "-o", "addopts="]
    tests = [sys.executable, "-m", "pytest", *gate._AT_ONCE, *options, str(tmp_path)]
    told = gate._Running("kept", tests, shown=False)
    said = StringIO()
    try:
        with redirect_stdout(said):
            while not told.has_ended():
                if "FAILED at once: test_both.py::test_of_a" in said.getvalue():
                    (tmp_path / "go").touch()
                time.sleep(0.01)  # between two looks
            told.say()
    finally:
        told.end()
    assert (tmp_path / "go").exists()
    assert "1 failed, 2 passed" in said.getvalue()
    assert said.getvalue().count("== kept: FAILED at once: ") == 1


def test_a_stages_last_line_says_what_it_took_of_the_processor_children_counted(
    gate: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    busy = "import time\nwhile time.process_time() < 0.7: pass\n"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])\n"
    outer += "import os, pathlib; pathlib.Path(os.environ['GATE_TIMES']).write_text('100.5\\n20\\n')"  # as browsers do
    _, _, of_cpu = gate.run_group([[("busy", [sys.executable, "-c", outer])]])["busy"]
    assert 121.2 <= of_cpu < 130
    assert re.search(r"== busy: passed in \d+ s, 12\d s of CPU", capfd.readouterr().out)


def test_a_gate_that_is_ended_ends_all_stages_that_run_side_by_side(tmp_path: Path) -> None:
    gate = subprocess.Popen([sys.executable, "-c", ENDED, str(ROOT / ".ci"), str(tmp_path)], stdout=subprocess.DEVNULL)
    notes = [tmp_path / "first", tmp_path / "second"]
    while not all(note.exists() and note.read_text() for note in notes):
        assert gate.poll() is None
        time.sleep(0.02)  # between two looks
    gate.terminate()
    assert gate.wait(30) == 143
    assert not [note for note in notes if is_running(int(note.read_text()))]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two modules with their tests, committed on `main`."""
    files = {
        "core/a/shape.py": "ROUND = 1\n",
        "core/a/colour.py": "RED = 1\n",
        "tests/core/a/test_shape.py": "\n",
        "tests/core/a/test_shape_edges.py": "\n",
        "tests/core/test_whole.py": "from core.a import shape\n",
        "tests/core/test_other.py": "from core.a.colour import RED\n",
        "tests/e2e/test_seen.py": "from core.a.shape import ROUND\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for command in (["init", "-q", "-b", "main"], ["add", "."], COMMIT):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_a_fast_gate_takes_the_tests_of_what_changed_and_those_that_import_it(
    gate: ModuleType, repository: Path
) -> None:
    subprocess.run(["git", *COMMIT, "--allow-empty"], cwd=repository, check=True)
    assert gate.fast.changed_files(repository) == []
    (repository / "core/a/shape.py").write_text("ROUND = 2\n", encoding="utf-8")
    (repository / "tests/core/test_new.py").write_text("\n", encoding="utf-8")
    changed = gate.fast.changed_files(repository)
    assert changed == ["core/a/shape.py", "tests/core/test_new.py"]
    chosen = ["tests/core/test_new.py", "tests/core/a/test_shape.py"]
    chosen += ["tests/core/a/test_shape_edges.py", "tests/core/test_whole.py"]
    assert gate.fast.tests_of(repository, changed) == (chosen, 0)


def test_a_fast_gate_knows_what_a_branch_committed_and_says_what_it_leaves_out(
    gate: ModuleType, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "checkout", "-q", "-b", "work"], cwd=repository, check=True)
    (repository / "core/a/colour.py").write_text("RED = 2\n", encoding="utf-8")
    subprocess.run(["git", *COMMIT, "-a"], cwd=repository, check=True)
    assert gate.fast.changed_files(repository) == ["core/a/colour.py"]
    monkeypatch.setattr(gate.fast, "MOST_TEST_FILES", 1)
    both = ["core/a/colour.py", "core/a/shape.py"]
    assert gate.fast.tests_of(repository, both) == (["tests/core/a/test_shape.py"], 3)


def test_the_stages_check_everything_in_order(gate: ModuleType) -> None:
    names = [[[name for name, _ in lane] for lane in group] for group in gate.stages(everything=False)]
    assert names == [[["format", "lint", "layers"]], [["tests"], ["screen"], ["types", "page"]]]


def test_types_are_those_of_all_that_is_shipped_and_in_test_all_of_tests_and_measurements_too(gate: ModuleType) -> None:
    def typed(*, everything: bool) -> set[str]:
        (command,) = (
            one
            for lanes in gate.stages(everything=everything)
            for lane in lanes
            for name, one in lane
            if name == "types"
        )
        return set(command[1:])

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pyright"]
    assert typed(everything=True) == set()  # all that the project names
    assert typed(everything=False) == {*project["include"], "tests/package"} - {"tests", "bench"}


def test_what_is_left_to_make_test_all_is_there_and_stands_in_order() -> None:
    listed = slow_tests()
    assert listed == sorted(set(listed))
    for line in listed:
        path, _, name = line.partition("[")[0].partition("::")
        name = name.rpartition("::")[2]  # in a class or not
        assert f"def {name}(" in (ROOT / path).read_text("utf-8"), f"{line} is not there any more."


def test_of_what_is_left_in_a_browser_quick_tests_keep_the_core_in_the_gate() -> None:
    """`kept.toml` names them; a test that goes along to `slow.txt`, or away, can keep nothing."""
    listed = set(slow_tests())
    left = tomllib.loads((ROOT / "tests" / "kept.toml").read_text("utf-8"))
    assert len(left) > 20
    for path, tests in left.items():
        for name, keepers in tests.items():
            assert any(line.partition("[")[0] == f"tests/{path}::{name}" for line in listed), name
            assert keepers
            for keeper in keepers:
                file, _, kept = keeper.partition("::")
                assert f"def {kept}(" in (ROOT / "tests" / file).read_text("utf-8"), f"{keeper} is not there."
                assert f"tests/{keeper}" not in listed, f"{keeper} is left itself."


def test_a_test_with_parameters_is_left_by_its_name_alone_or_by_what_it_is_given() -> None:
    both = "tests/test_one.py::test_both"
    assert slow_names([f"{both}[a]", f"{both}[b]", "tests/test_one.py::test_more"], {both}) == [
        f"{both}[a]",
        f"{both}[b]",
    ]
    assert slow_names([f"{both}[a]", f"{both}[b]"], {f"{both}[b]"}) == [f"{both}[b]"]
