"""Runs the checks one after another, prints each one's name and time, and leaves nothing running.

`python .ci/gate.py` is what `make test` runs; `--all` adds the slow tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_PYTHON = sys.executable
_BIN = Path(_PYTHON).parent
# The browser's tests stay one after another: they wait for what a busy machine does late.
_ON_ALL_CORES = ["-n", "auto", "--maxprocesses=4", "--dist=worksteal"]
_CODE = ["core", "webui", "tests", "bench", "docs/site_pages.py", "examples", "app.py", "set_up.py", ".ci"]


def stages(*, everything: bool) -> list[tuple[str, list[str]]]:
    """The stages in order: a name, and the command."""
    pytest = [_PYTHON, "-m", "pytest", "-q"] + ([] if everything else ["-m", "not slow"])
    # Tracing every line makes the tests a third slower, so it is left to `make test-all`.
    coverage = ["--cov=core", "--cov=webui", "--cov-report=term"] if everything else []
    return [
        ("format", [str(_BIN / "ruff"), "format", "--check", *_CODE]),
        ("lint", [str(_BIN / "ruff"), "check", *_CODE]),
        ("layers", [str(_BIN / "lint-imports"), "--no-logo"]),
        ("types", [str(_BIN / "pyright")]),
        ("tests", [*pytest, *_ON_ALL_CORES, "--ignore=tests/e2e", "--ignore=tests/webui/screen", *coverage, "tests"]),
        ("screen", [*pytest, "tests/webui/screen"]),
        ("page", [*pytest, "tests/e2e"]),
    ]


def run_stage(name: str, command: list[str]) -> tuple[bool, float]:
    """Run one stage in a process group of its own, and end whatever it left behind."""
    print(f"\n== {name}: {' '.join(Path(part).name if part.startswith('/') else part for part in command)}", flush=True)
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=_ROOT, env=_environment(), stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        passed = process.wait() == 0
    finally:
        _end_group(process.pid)
    seconds = time.monotonic() - started
    print(f"== {name}: {'passed' if passed else 'FAILED'} in {seconds:.0f} s", flush=True)
    return passed, seconds


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
    results = {name: run_stage(name, command) for name, command in stages(everything="--all" in sys.argv)}
    print(
        "\n"
        + "\n".join(
            f"{'ok    ' if ok else 'FAILED'}  {name:8} {seconds:5.0f} s" for name, (ok, seconds) in results.items()
        )
    )
    return 0 if all(ok for ok, _ in results.values()) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a stage which runs is ended too
    sys.exit(main())
