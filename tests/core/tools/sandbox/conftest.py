"""Sandboxes of this machine, and a plain user for what root cannot show."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import ToolError
from core.tools.sandbox import surroundings
from core.tools.sandbox.box import Limits
from core.tools.sandbox.kernels import Kernels

ROOT = Path(__file__).resolve().parents[4]
DRIVERS = ("bubblewrap", "landlock")
_PLAIN_USER = "1001"


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where answers of the self-test are kept, so that each driver is tried once."""
    return tmp_path_factory.mktemp("sandbox")


@pytest.fixture(autouse=True)
def watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kernel takes is looked at more often than outside of tests."""
    monkeypatch.setattr("core.tools.sandbox.kernel._WATCH", 0.1)


@pytest.fixture
def of_others() -> set[int]:
    """The numbers of processes below this one before the test, which may be ending still."""
    return {one.pid for one in psutil.Process().children(recursive=True)}


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def opened(known: Path) -> Callable[..., Any]:
    """`async with opened(driver) as kernels`: kernels that end with the block.

    A driver that this machine cannot run is proved to be refused, with a reason, and gives None.
    """

    @asynccontextmanager
    async def open_them(driver: str, **more: Any) -> AsyncIterator[Kernels | None]:
        kernels = Kernels(wanted=driver, known=known / driver, **{"ahead": False, **more})
        try:
            choice = await kernels.chosen()
            if choice.driver:
                yield kernels
                return
            assert choice.reason
            with pytest.raises(ToolError, match="is off on this machine"):
                await kernels.run("any", "1")
            yield None
        finally:
            await kernels.aclose()

    return open_them


@pytest.fixture
def small() -> Limits:
    return Limits(folder=24 << 20, scratch=8 << 20, file=16 << 20)


@pytest.fixture
def as_plain_user() -> Iterator[Callable[..., Any]]:
    """Runs Python as a user without rights, and returns the JSON that it prints last.

    Where the tests run as root, folders that such a user cannot walk to are shown to it in a file system of its own; a
    container may forbid that, and then it is root that runs it.
    """
    place = Path(tempfile.mkdtemp(prefix="plain-user-"))
    place.chmod(0o755)

    def run(code: str, *, namespaces: bool = True, **environment: str) -> Any:
        script = place / "script.py"
        script.write_text(code, encoding="utf-8")
        script.chmod(0o644)
        command = [str(surroundings.python()), "-B", str(script)]
        if not namespaces:
            closed = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set -all --no-new-privs "
            inside = f'if unshare -Ur true; then exec unshare -Ur sh -c \'{closed} "$@"\' sh "$@"; fi; exec "$@"'
            command = ["sh", "-c", inside, "sh", *command]
        if os.geteuid() == 0:
            command = _as_other(place, command)
        paths = os.pathsep.join(map(str, (ROOT, *surroundings.packages())))
        given = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "TMPDIR": "/tmp", "HOME": "/", **environment}
        done = subprocess.run(command, capture_output=True, text=True, env=given, timeout=90, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.strip().rpartition("\n")[2])

    yield run
    shutil.rmtree(place)


def _as_other(place: Path, command: list[str]) -> list[str]:
    """The command as another user, for whom closed folders on the way are replaced by empty ones."""
    needed = [ROOT, surroundings.python().parent.parent, *surroundings.packages()]
    needed = [path for path in needed if _closed(path) is not None]
    user = ["setpriv", "--reuid", _PLAIN_USER, "--regid", _PLAIN_USER, "--clear-groups", "--"]
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        return command if needed else [*user, *command]
    steps = ["set -e"]
    for number, path in enumerate(needed):
        steps += [f"mkdir -p {place}/{number}", f"mount --bind {path} {place}/{number}"]
    for folder in dict.fromkeys(map(_closed, needed)):
        steps.append(f"mount -t tmpfs -o mode=755 none {folder}")
    for number, path in enumerate(needed):
        steps += [f"mkdir -p {path}", f"mount --bind {place}/{number} {path}"]
    steps.append(f'exec {" ".join(user)} "$@"')
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", "\n".join(steps), "sh", *command]


def _closed(path: Path) -> Path | None:
    """The topmost folder on the way that others cannot walk through."""
    steps = [*reversed(path.parents), path]
    return next((step for step in steps if not step.stat().st_mode & 0o001), None)
