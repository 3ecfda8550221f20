"""Breaks the code in the places of `tests/mutants.toml`, one at a time, and says which faults no test notices.

`python .ci/mutants.py` is what `make mutants` runs; `--only NAME` (as often as wanted) takes those whose names hold
NAME, `--list` names them all and runs nothing. It works in a copy of the files that git knows.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_ROOT = Path(__file__).resolve().parent.parent
TABLE = "tests/mutants.toml"
_LONGEST = 120.0  # seconds for the tests of one fault: whatever hangs has been noticed
_LONGEST_WHOLE = 1800.0  # for all of them on the code as it is
_NAMED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_TESTS_FAILED = 1  # pytest's exit status; others say that nothing was tested


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault that somebody might make.

    Args:
        name: The promise that it breaks, in a few words.
        file: Where.
        text: What stands there, exactly once.
        broken: What is put in its place.
        tests: The tests that must fail: files, or tests in them as pytest names them.
    """

    name: str
    file: str
    text: str
    broken: str
    tests: tuple[str, ...]


def load(root: Path) -> list[Mutant]:
    """The table."""
    rows = tomllib.loads((root / TABLE).read_text("utf-8"))["mutant"]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def problems(root: Path, mutants: Sequence[Mutant]) -> list[str]:
    """Why entries cannot be tried, one sentence each."""
    found: list[str] = []
    names = [one.name for one in mutants]
    found += [f"{name}: there are two of this name." for name in dict.fromkeys(names) if names.count(name) > 1]
    for one in mutants:
        path = root / one.file
        times = path.read_text("utf-8").count(one.text) if path.is_file() else 0
        if times != 1:
            found.append(f"{one.name}: its text occurs {times} times in {one.file}, and not once.")
        if one.text == one.broken:
            found.append(f"{one.name}: nothing is broken.")
        if not one.tests:
            found.append(f"{one.name}: no test is named.")
        found += [f"{one.name}: there is no test {test}." for test in one.tests if not _exists(root, test)]
    return found


def _exists(root: Path, test: str) -> bool:
    name, _, inside = test.partition("::")
    if not (root / name).is_file():
        return False
    wanted = inside.partition("[")[0].rpartition("::")[2]
    return not inside or f"def {wanted}(" in (root / name).read_text("utf-8")


@contextmanager
def _copied(root: Path) -> Iterator[Path]:
    """A copy of the files that git knows, as they are now; it is gone afterwards."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    with tempfile.TemporaryDirectory(prefix="parlour-mutants-") as made:
        copy = Path(made) / "parlour"
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)
        yield copy


@contextmanager
def _broken(copy: Path, mutant: Mutant) -> Iterator[None]:
    """The copy with one fault in it."""
    path = copy / mutant.file
    sound, made = path.read_bytes(), path.stat()
    try:
        path.write_bytes(sound.replace(mutant.text.encode(), mutant.broken.encode(), 1))
        # Another second than any before: compiled files are told by it, and those of the sound code lie beside it.
        os.utime(path, (made.st_atime, made.st_mtime + 60))
        yield
    finally:
        path.write_bytes(sound)
        os.utime(path, ns=(made.st_atime_ns, made.st_mtime_ns))


def run_tests(copy: Path, tests: Iterable[str], longest: float, *, compiles: bool = False) -> tuple[int | None, str]:
    """Run tests in the copy until the first one fails; pytest's exit status (`None`: too long), and what it said."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *dict.fromkeys(tests)]
    told = {"PYTHONPATH": str(copy)} | ({} if compiles else {"PYTHONDONTWRITEBYTECODE": "1"})
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            cwd=copy,
            env={**os.environ, **told},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status = None
        try:
            status = process.wait(longest)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _end(process)
        said.seek(0)
        return status, said.read().decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it with whatever it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def verdict(status: int | None, said: str) -> tuple[bool, str]:
    """Whether a fault was noticed, and by what."""
    if status is None:
        return True, "killed by the time that it takes"
    named = _NAMED.search(said)
    if status == _TESTS_FAILED and named is not None:
        return True, f"killed by {named[1]}"
    return False, "SURVIVED" if status == 0 else f"NOTHING WAS TESTED (pytest ended with {status})"


def run(root: Path, mutants: Sequence[Mutant]) -> int:
    """Try all of them; the exit status of the program."""
    with _copied(root) as copy:
        begun = time.monotonic()
        status, said = run_tests(copy, (test for one in mutants for test in one.tests), _LONGEST_WHOLE, compiles=True)
        if status != 0:
            print(f"{said}\nThe tests do not pass on the code as it is.")
            return 1
        print(f"The tests pass on the code as it is ({time.monotonic() - begun:.0f} s).", flush=True)
        left = 0
        for one in mutants:
            at = time.monotonic()
            with _broken(copy, one):
                noticed, by = verdict(*run_tests(copy, one.tests, _LONGEST))
            left += not noticed
            print(f"{one.name}: {by} ({time.monotonic() - at:.0f} s)", flush=True)
        print(f"\n{len(mutants)} faults, {left} survived, {time.monotonic() - begun:.0f} s.")
        return 1 if left else 0


def main() -> int:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(prog="make mutants", description="Which faults does no test notice?")
    parser.add_argument("--only", action="append", metavar="NAME", help="those whose names hold this")
    parser.add_argument("--list", action="store_true", help="name them, and run nothing")
    asked = parser.parse_args()
    mutants = [one for one in load(_ROOT) if not asked.only or any(part in one.name for part in asked.only)]
    if asked.list:
        print("\n".join(f"{one.name} ({one.file})" for one in mutants))
        return 0
    wrong = problems(_ROOT, mutants) or ([] if mutants else ["There is none of this name."])
    if wrong:
        print("\n".join(wrong))
        return 1
    return run(_ROOT, mutants)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the copy goes, too
    sys.exit(main())
