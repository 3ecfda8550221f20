"""What of this machine a sandbox shows: the Python that runs here with its packages, and the system's libraries."""

from __future__ import annotations

import os
import platform
import stat
import struct
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.tools.sandbox.bpf import ARCHITECTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

_SYSTEM: Final = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/bin", "/lib", "/lib64", "/bin")
_SHOWN: Final = ("/usr/share", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def machine() -> str:
    """`x86_64` or `aarch64`; empty where the filter knows no numbers, such as on other systems than Linux."""
    here = platform.machine()
    known = sys.platform == "linux" and here in ARCHITECTURES and struct.calcsize("P") == 8
    return here if known else ""


@cache
def python() -> Path:
    """The interpreter itself, past the links of a virtual environment."""
    return Path(sys.executable).resolve()


def packages() -> tuple[Path, ...]:
    """Where the packages of this Python are: of its environment alone, not of the one that this was made from."""
    found = (Path(path) for path in sys.path if Path(path).name in {"site-packages", "dist-packages"})
    return tuple(dict.fromkeys(path for path in found if path.is_dir()))


@cache
def packages_told() -> str:
    """The packages that a cell is told of: "numpy, pandas and matplotlib"."""
    there = [name for name in ("numpy", "pandas", "matplotlib") if find_spec(name) is not None]
    return " and ".join([", ".join(there[:-1]), *there[-1:]] if len(there) > 1 else there) or "nothing else"


def code_folders() -> tuple[Path, ...]:
    """Folders whose files are read and run: programs, libraries, Python. Not the whole of `/usr` or of a prefix,
    below which people put applications with their data."""  # noqa: D205, D209
    prefixes = dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix), python().parent.parent))
    own = [prefix / name for prefix in prefixes for name in ("lib", "lib64", "bin")]
    wanted = [*map(Path, _SYSTEM), *own, *packages(), python().parent]
    return tuple(dict.fromkeys(path for path in wanted if path.is_dir()))


def shown_paths() -> tuple[Path, ...]:
    """Files and folders that are read alone."""
    return tuple(path for path in map(Path, _SHOWN) if path.exists())


def hidden_prefixes() -> tuple[Path, ...]:
    """Those of Python's folders that another user cannot walk to, such as one below somebody's home."""
    wanted = dict.fromkeys((python().parent.parent, *packages()))
    return tuple(path for path in wanted if not _open_to_all(path))


def user_of_its_own(root: Path) -> int | None:
    """A user that nobody is, for one sandbox; None where this process may not become another.

    The numbers lie between those that distributions give to people, services and containers.

    Args:
        root: The folder of all sandboxes: one that is just being made has a folder there, but no process yet.
    """
    if os.geteuid() != 0:
        return None
    used = {owner for _, owner in _processes()}
    for path in root.iterdir():
        with suppress(OSError):  # it is being removed
            used.add(path.lstat().st_uid)
    free = [number for number in range(60_706, 61_184) if number not in used]
    return free[int.from_bytes(os.urandom(2), "big") % len(free)]


def processes_of_user() -> int:
    """How many threads this user has: the limit of processes counts them all."""
    count = 0
    for path, owner in _processes():
        if owner == os.geteuid():
            with suppress(OSError):
                count += sum(1 for _ in (path / "task").iterdir())
    return count


def _processes() -> Iterator[tuple[Path, int]]:
    """All processes that can be seen, with their users."""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):  # it ended
                yield path, path.stat().st_uid


def _open_to_all(path: Path) -> bool:
    steps = (path, *path.parents)
    return all(step.stat().st_mode & stat.S_IXOTH for step in steps)
