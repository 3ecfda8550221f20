"""C1 to C22, C27, C30: each way out is tried in each driver, in a real child; what fails is refused, and why."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.tools.sandbox.box import Box, Limits, Places
from core.tools.sandbox.drivers import DRIVERS, Launch
from core.tools.sandbox.landlock import Landlock
from core.tools.sandbox.self_test import Verdict, choose, try_out

CASES = tuple(f"C{number}" for number in (*range(1, 23), 27, 30))

_TRY_OUT = """
import json, os, pathlib, sys, tempfile
from core.tools.sandbox import landlock
from core.tools.sandbox.drivers import DRIVERS
from core.tools.sandbox.self_test import try_out
version = int(os.environ["VERSION"])
if version:
    landlock.landlock_version = lambda: version
with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    os.chmod(folder, 0o711)
    verdict = try_out(DRIVERS[os.environ["DRIVER"]](), pathlib.Path(folder))
print(json.dumps([verdict.held, verdict.reason, list(verdict.cases)]))
"""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    """Of each driver, tried once."""
    home = tmp_path_factory.mktemp("home")
    (home / "parlour.db").write_text("private", encoding="utf-8")
    found: dict[str, Verdict] = {}
    for name in ("bubblewrap", "landlock"):
        root = tmp_path_factory.mktemp(name)
        root.chmod(0o711)
        found[name] = try_out(DRIVERS[name](), root, (home,))
    return found


@pytest.mark.parametrize("case", CASES)
def test_a_way_out_is_shut(verdicts: dict[str, Verdict], driver: str, case: str) -> None:
    verdict = verdicts[driver]
    if verdict.held:
        assert case in verdict.cases
    else:
        assert verdict.reason


def test_a_driver_that_locks_nothing_in_is_refused_and_its_holes_are_named(tmp_path: Path) -> None:
    # The cases that would do harm where nothing holds them are left out: no bomb, no gigabytes, no file.
    tame = ("C1", "C2", "C6", "C8", "C9", "C13", "C14", "C19")
    verdict = try_out(_Tame(_Open(), tame), tmp_path)
    assert not verdict.held
    assert verdict.reason.startswith("it does not hold C1 (it worked")
    assert set(verdict.cases) == set(tame)


def test_a_driver_whose_sockets_are_not_seen_outside_is_refused(tmp_path: Path) -> None:
    """A kernel in it would never be heard: gVisor without its option for that."""

    class Deaf(_Tame):
        def inside(self, box: Box) -> Places:
            return replace(box.here, channels=tmp_path / "only-inside")

    verdict = try_out(Deaf(_Open(), ("C1",)), tmp_path)
    assert verdict.reason.startswith("it does not start here (a socket that it makes is not seen outside")


def test_a_driver_that_does_not_start_is_refused_with_what_it_said(tmp_path: Path) -> None:
    class Broken(Landlock):
        def launch(self, box: Box, words: Sequence[str], *, info: int | None = None) -> Launch:
            del words, info
            return Launch((sys.executable, "-c", "raise SystemExit('no permission to make namespaces')"), box.here)

    verdict = try_out(Broken(), tmp_path)
    assert verdict.reason == "it does not start here (no permission to make namespaces)"


def test_a_driver_that_lacks_something_is_not_even_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.tools.sandbox.surroundings.machine", lambda: "")
    choice = choose("auto", tmp_path)
    assert choice.driver == ""
    assert choice.reason == "; ".join(
        f"{name}: it needs Linux on x86_64 or aarch64" for name in ("bubblewrap", "landlock")
    )
    assert not list(tmp_path.iterdir())


def test_without_docker_the_reason_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose("docker", tmp_path).reason == "docker: the program docker is not installed"
    assert choose("runsc", tmp_path).reason == "runsc: the program docker is not installed"
    assert choose("off", tmp_path).reason == "it is switched off by the settings"


def test_the_answer_is_kept_until_something_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def pretended(driver: Any, *_: object) -> Verdict:
        tried.append(driver.name)
        return Verdict(driver.name, held=driver.name == "landlock", reason="no" * (driver.name != "landlock"))

    monkeypatch.setattr("core.tools.sandbox.self_test.try_out", pretended)
    known = tmp_path / "sandbox.json"
    first = choose("auto", tmp_path, (), known)
    assert (first.driver, tried) == ("landlock", ["bubblewrap", "landlock"])
    assert choose("auto", tmp_path, (), known) == first
    assert len(tried) == 2
    monkeypatch.setattr("core.tools.sandbox.landlock.landlock_version", lambda: 99)
    choose("auto", tmp_path, (), known)
    assert len(tried) == 4
    known.write_text("{", encoding="utf-8")
    choose("auto", tmp_path, (), known)
    assert len(tried) == 6
    choose("auto", tmp_path, (tmp_path / "more",), known)  # something else is to be hidden
    assert len(tried) == 8
    monkeypatch.setattr("core.tools.sandbox.self_test._rights", lambda: "of a container with the same folder")
    choose("auto", tmp_path, (tmp_path / "more",), known)
    assert len(tried) == 10


@pytest.mark.parametrize(("slow", "other"), [("bubblewrap", True), ("landlock", False)])
def test_what_failed_for_once_is_tried_again_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str, other: bool
) -> None:
    def too_slow(command: Any, **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 60)

    def tried(driver: Any, *of: Any) -> Verdict:
        if driver.name == slow:
            with monkeypatch.context() as patched:
                patched.setattr("core.tools.sandbox.self_test.subprocess.run", too_slow)
                return try_out(driver, *of)
        return Verdict(driver.name, held=other, reason="" if other else "no")

    monkeypatch.setattr("core.tools.sandbox.self_test.try_out", tried)
    monkeypatch.setattr("core.tools.sandbox.bubblewrap.Bubblewrap.lacking", lambda _: "")
    choice = choose("auto", tmp_path, (), tmp_path / "sandbox.json")
    assert bool(choice.driver) == other
    assert "nothing was heard" in choice.reason
    assert not (tmp_path / "sandbox.json").exists()


@pytest.mark.parametrize(
    ("version", "namespaces"), [("0", False), ("4", True)], ids=["no namespaces", "an older Landlock"]
)
def test_without_rights_and_namespaces_landlock_holds_all_the_same(
    as_plain_user: Callable[..., Any], version: str, namespaces: bool
) -> None:
    held, reason, cases = as_plain_user(_TRY_OUT, namespaces=namespaces, DRIVER="landlock", VERSION=version)
    assert (held, reason) == (True, "") or (not held and reason)
    assert not held or cases == list(CASES)


def test_bubblewrap_without_namespaces_is_refused_with_its_reason(as_plain_user: Callable[..., Any]) -> None:
    held, reason, _ = as_plain_user(_TRY_OUT, namespaces=False, DRIVER="bubblewrap", VERSION="0")
    assert not held
    assert reason.startswith(("it does not start here (", "the program bwrap is not installed"))


def test_l6_a_child_of_the_same_user_cannot_read_the_environment(as_plain_user: Callable[..., Any]) -> None:
    looked = as_plain_user(
        """
import json, os, subprocess, sys
from core.tools.sandbox.landlock import hide_environment
look = f"print(b'CANARY' in open('/proc/{os.getpid()}/environ', 'rb').read())"
def looked():
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, env={})
    return done.stdout.strip() or done.stderr.strip().rpartition("\\n")[2].split(":")[0]
before = looked()
hide_environment()
print(json.dumps([before, looked(), os.geteuid()]))
""",
        OPENAI_API_KEY="sk-CANARY",
    )
    # Where the tests can be nobody but root, a kernel is another user, and nothing need be hidden from one's own.
    assert looked[:2] == ["True", "PermissionError" if looked[2] else "True"]


class _Open(Landlock):
    """Runs the program as it is."""

    name = "open"

    def launch(self, box: Box, words: Sequence[str], *, info: int | None = None) -> Launch:
        del info
        return Launch((sys.executable, "-I", str(box.here.run / words[0]), *words[1:]), box.here)


class _Tame:
    """Another driver, of whose self-test only some cases are run."""

    exempt = ()

    def __init__(self, driver: Landlock, cases: Sequence[str]) -> None:
        self.name = driver.name
        self._driver, self._cases = driver, cases

    def lacking(self) -> str:
        return ""

    def version(self) -> str:
        return ""

    def inside(self, box: Box) -> Places:
        return box.here

    def end(self, box: Box) -> Sequence[str]:
        return ()

    def launch(self, box: Box, words: Sequence[str], *, info: int | None = None) -> Launch:
        path = Path(words[1])
        settings = {**json.loads(path.read_text("utf-8")), "cases": self._cases}
        path.chmod(0o600)
        path.write_text(json.dumps(settings), encoding="utf-8")
        return self._driver.launch(box, words, info=info)


@pytest.mark.parametrize(("name", "runtime"), [("docker", []), ("runsc", ["--runtime", "runsc"])])
def test_a_container_has_no_network_no_rights_and_the_folders_of_its_box_alone(
    tmp_path: Path, name: str, runtime: list[str]
) -> None:
    share = tmp_path / "share"
    share.mkdir()
    box = Box.make(tmp_path, share, Limits())
    driver = DRIVERS[name]()
    launch = driver.launch(box, ("kernel.py", "settings.json"))
    command = list(launch.command)
    words = " ".join(command)
    for wanted in ("--network none", "--read-only", "--cap-drop ALL", "no-new-privileges", "--pull never"):
        assert wanted in words
    mounted = [command[at + 1] for at, word in enumerate(command) if word == "--volume"]
    assert [one.split(":")[0] for one in mounted] == [
        str(path) for path in (box.here.run, box.here.channels, box.here.job, box.here.share)
    ]
    assert [word for word in command if word in {"--runtime", "runsc"}] == runtime
    assert "/var/run/docker.sock" not in words
    assert command[-4:] == ["-I", "-S", "/run/confine.py", "/run/spec.json"]
    assert list(driver.end(box))[1:] == ["kill", f"parlour-{box.folder.name}"]
    box.remove()
    assert list(tmp_path.iterdir()) == [share]


def test_a_python_below_the_temporary_folder_is_not_hidden_by_that_of_the_sandbox(tmp_path: Path) -> None:
    box = Box.make(tmp_path, tmp_path, Limits())
    words = DRIVERS["bubblewrap"]().launch(box, ("probe.py",)).command
    assert max(at for at, word in enumerate(words) if word == "--tmpfs") < words.index("--ro-bind")
