"""Runs the checks, prints each one's name, output and time, and leaves nothing running.

`python .ci/gate.py` is what `make test` runs; `--all` adds the slow tests, `--fast` looks at what changed alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fast

_ROOT = Path(__file__).resolve().parent.parent
_PYTHON = sys.executable
_BIN = Path(_PYTHON).parent
_MOST_PROCESSES = 4
# Each process finds all tests for itself, which takes half a minute of each; but they are counted when they are traced.
_ON_ALL_CORES = ["-n", "auto", f"--maxprocesses={_MOST_PROCESSES}", "--dist=worksteal"]
# Forked from one that has found them; two more than there are cores, since tests wait for processes now and then.
_FORKED = ["-p", "tests.forked", "--forks", str(min((os.cpu_count() or 1) + 2, _MOST_PROCESSES))]
_SEVERAL = _FORKED if sys.platform == "linux" else _ON_ALL_CORES  # what else has threads of its own may not be forked
# Of examples that are made up, three of ten; `make test-all` tries all.
_FEW_EXAMPLES = ["--hypothesis-profile=gate"]
_SLOWEST = ["--durations=10", "--durations-min=1"]  # they are candidates for `tests/slow.txt`
# Each failure is said when it comes, in lines that begin so.
_AT_ONCE = ["-p", "tests.told_at_once"]
_FAILED = b"FAILED at once: "
_SCRIPTS = ["docs/site_pages.py", "app.py", "build_wheel.py", "set_up.py"]
_CODE = ["core", "webui", "parlour", "tests", "bench", "examples", ".ci", *_SCRIPTS]
# Of tests, the types of the program that names each public name; `make test-fast` looks at those that changed, and
# `make test-all` at all, and at what measures: both are a third of the whole, and a test that calls something wrongly
# fails.
_TYPED = ["core", "webui", "parlour", "tests/package", "app.py", "build_wheel.py", "set_up.py"]


Stage = tuple[str, list[str]]
"""A name and a command."""
Lane = list[Stage]
"""Stages that run one after another, whether they pass or not."""


def stages(*, everything: bool) -> list[list[Lane]]:
    """The groups of lanes: one group after another, the lanes of a group side by side."""
    pytest = [_PYTHON, "-m", "pytest", "-q", *_AT_ONCE] + (
        [] if everything else ["-m", "not slow", *_FEW_EXAMPLES, *_SLOWEST]
    )
    # Tracing every line makes the tests a third slower, so it is left to `make test-all`.
    coverage = ["--cov=core", "--cov=webui", "--cov-report=term"] if everything else []
    several = _ON_ALL_CORES if everything else _SEVERAL
    unit = [*pytest, *several, "--ignore=tests/e2e", "--ignore=tests/webui/screen", *coverage, "tests"]
    # Unit tests wait for processes and time now and then, a browser for its page: side by side they leave no core idle.
    # In the browser's two lanes one app and one browser serve all tests, each of which takes seconds to start.
    alone = _ON_ALL_CORES if everything else ["-n", "0"]
    page = [*pytest, *alone, "tests/e2e"]
    screen = [*pytest, *alone, "tests/webui/screen"]
    return [
        *stages_of_lint(),
        [
            [("tests", unit)],
            [("screen", screen)],
            [("types", [str(_BIN / "pyright"), *([] if everything else _TYPED)]), ("page", page)],
        ],
    ]


def stages_of_lint() -> list[list[Lane]]:
    """The stages that take seconds."""
    return [
        [
            [
                ("format", [str(_BIN / "ruff"), "format", "--check", *_CODE]),
                ("lint", [str(_BIN / "ruff"), "check", *_CODE]),
                ("layers", [str(_BIN / "lint-imports"), "--no-logo"]),
            ]
        ]
    ]


def fast_stages() -> list[list[Lane]]:
    """The stages of `make test-fast`: lint of everything, types and unit tests of what changed."""
    changed = fast.changed_files(_ROOT)
    typed = [name for name in changed if not name.startswith((".ci/", "docs/", "examples/"))]
    tests, left = fast.tests_of(_ROOT, changed)
    if left:
        print(f"{left} more test files import what changed; `make test` runs them.")
    checks: list[Lane] = []
    if tests:
        checks.append([("tests", [_PYTHON, "-m", "pytest", "-q", "-m", "not slow", *_FEW_EXAMPLES, *_SEVERAL, *tests])])
    if typed:
        checks.append([("types", [str(_BIN / "pyright"), *typed])])
    return [*stages_of_lint(), checks]


class _Running:
    """A stage in a process group of its own.

    Args:
        name: The stage's.
        command: The stage's.
        shown: Whether what it prints is seen as it comes; else it is kept, and printed whole by `say`.
    """

    def __init__(self, name: str, command: list[str], *, shown: bool) -> None:
        self.name = name
        self.seconds = 0.0
        self.cpu_seconds = 0.0
        self._said = 0
        self._half = b""
        self._title = " ".join(Path(part).name if part.startswith("/") else part for part in command)
        self._kept = None if shown else tempfile.TemporaryFile()  # noqa: SIM115 - `end` closes it
        if shown:
            print(f"\n== {name}: {self._title}", flush=True)
        self._begun = time.monotonic()
        self._times = tempfile.TemporaryDirectory()  # `end` closes it
        self._noted = Path(self._times.name, "browsers")
        self._process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env=_environment() | {"GATE_TIMES": str(self._noted)},
            stdin=subprocess.DEVNULL,
            stdout=self._kept,
            stderr=self._kept and subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def passed(self) -> bool:
        """Whether it ended well."""
        return self._process.returncode == 0

    def has_ended(self) -> bool:
        """Whether it has ended; whatever it left behind is ended then, too."""
        self._tell_failures()
        if not self.seconds and self._look():
            self.seconds = time.monotonic() - self._begun
            _end_group(self._process.pid)
        return self.seconds > 0

    def _look(self, *, wait: bool = False) -> bool:
        """Whether it has ended; then it is known how, and what it and all it waited for took of the processor."""
        if self._process.returncode is None and hasattr(os, "wait4"):
            pid, status, used = os.wait4(self._process.pid, 0 if wait else os.WNOHANG)
            if pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_seconds = used.ru_utime + used.ru_stime + self._of_browsers()
        elif wait:
            self._process.wait()
        return self._process.poll() is not None

    def _of_browsers(self) -> float:
        """What browsers took in processes that nobody waited for; the tests noted it."""
        return sum(map(float, self._noted.read_text("utf-8").split())) if self._noted.exists() else 0.0

    def _tell_failures(self) -> None:
        """Print the names of tests that failed since the last look, where what it prints is kept."""
        if self._kept is None or not hasattr(os, "pread"):
            return
        # The stage writes where this very file stands, so it is read without moving there.
        came = os.pread(self._kept.fileno(), 1_000_000, self._said)
        self._said += len(came)
        *lines, self._half = (self._half + came).split(b"\n")
        for line in lines:
            if line.startswith(_FAILED):
                print(f"\n== {self.name}: {line.decode('utf-8', 'replace')}", flush=True)

    def say(self) -> None:
        """Print how it went, after what it printed itself where that was not seen yet."""
        if self._kept is not None:
            print(f"\n== {self.name}: {self._title}", flush=True)
            self._kept.seek(0)
            print(self._kept.read().decode("utf-8", "replace"), end="", flush=True)
        took = f"{self.seconds:.0f} s, {self.cpu_seconds:.0f} s of CPU" if self.cpu_seconds else f"{self.seconds:.0f} s"
        print(f"== {self.name}: {'passed' if self.passed else 'FAILED'} in {took}", flush=True)

    def end(self) -> None:
        """End it, and whatever it started."""
        if not self.has_ended():
            _end_group(self._process.pid)
            self._look(wait=True)
        self._times.cleanup()
        if self._kept is not None:
            self._kept.close()


def run_group(group: list[Lane]) -> dict[str, tuple[bool, float, float]]:
    """Run lanes side by side; by name of a stage, whether it passed, its seconds, and those of the processor.

    What the first lane prints is seen as it comes, what the others print whole when all have ended; but which test
    failed is said at once.
    """
    left = [list(lane) for lane in group]
    running: list[_Running | None] = [None] * len(group)
    ended: list[list[_Running]] = [[] for _ in group]
    try:
        while any(left) or any(running):
            for number, stages_left in enumerate(left):
                one = running[number]
                if one is not None and one.has_ended():
                    ended[number].append(one)
                    running[number] = one = None
                    if number == 0:
                        ended[number][-1].say()
                if one is None and stages_left:
                    name, command = stages_left.pop(0)
                    running[number] = _Running(name, command, shown=number == 0)
            time.sleep(0.05)
        for lane in ended[1:]:
            for one in lane:
                one.say()
        return {one.name: (one.passed, one.seconds, one.cpu_seconds) for lane in ended for one in lane}
    finally:
        for one in [*running, *(one for lane in ended for one in lane)]:
            if one is not None:
                one.end()


def _end_group(group: int) -> None:
    if not hasattr(os, "killpg"):
        return
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, sign)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.3)


def _environment() -> dict[str, str]:
    cache = _ROOT / ".cache"
    return {
        **os.environ,
        "PYRIGHT_PYTHON_CACHE_DIR": str(cache / "pyright"),
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
        "MPLCONFIGDIR": str(cache / "matplotlib"),
        "GRADIO_TEMP_DIR": str(cache / "gradio"),
        "HF_HOME": str(cache / "huggingface"),
        "PYTHONUNBUFFERED": "1",
    }


def main() -> int:
    """Run every stage, so that one run shows all that is wrong."""
    results: dict[str, tuple[bool, float, float]] = {}
    chosen = fast_stages() if "--fast" in sys.argv else stages(everything="--all" in sys.argv)
    for group in chosen:
        results |= run_group(group)
    print(
        "\n"
        + "\n".join(
            f"{'ok    ' if ok else 'FAILED'}  {name:8} {seconds:5.0f} s {of_cpu:5.0f} s of CPU"
            for name, (ok, seconds, of_cpu) in results.items()
        )
    )
    return 0 if all(ok for ok, *_ in results.values()) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a stage which runs is ended too
    sys.exit(main())
