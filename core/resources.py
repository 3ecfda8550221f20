"""What a server may run out of: file descriptors, room on the disk of the data folder, and its processors."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

GROUP: Final = Path("/sys/fs/cgroup")
"""Where Linux tells what a container may use."""
# More is never needed, and programs that close every number they might have would take seconds.
_MOST_DESCRIPTORS = 65_536
_LEAST_DESCRIPTORS = 16  # below it a page, a database and a reply cannot be opened together
_FREE_SHARE = 0.05  # of the limit
_LEAST_ROOM = 16 * 1024 * 1024  # bytes; below it neither a reply nor an uploaded file can be counted on to be kept
_NICE = 5  # of 19: who waits for a reply goes before who waits for a scan, or signs in
_GONE = frozenset({errno.EMFILE, errno.ENFILE})


@dataclass(frozen=True, slots=True)
class Descriptors:
    """How many there are.

    Args:
        limit: The most that this process may have.
    """

    open: int
    limit: int

    @property
    def suffice(self) -> bool:
        """Whether enough are left to serve people."""
        return self.limit - self.open >= max(_LEAST_DESCRIPTORS, _FREE_SHARE * self.limit)


def raise_descriptor_limit() -> None:
    """Let this process have as many as the system allows, where it has such a limit.

    A desktop allows 1,024 by default, and every open page and every document index needs some. A system that refuses
    leaves the limit as it is.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS has a lower limit that it does not tell
            return


def count_descriptors() -> Descriptors | None:
    """How many are in use now; `None` where the system has no such limit, or does not say."""
    if sys.platform == "win32":
        return None
    import resource

    import psutil

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        return Descriptors(psutil.Process().num_fds(), limit)
    except OSError as error:  # to count them takes one
        return Descriptors(limit, limit) if error.errno in _GONE else None
    except psutil.Error:
        return None


def descriptors_check() -> dict[str, Any]:
    """What `/readyz` says of file descriptors; `ready` is false where too few are left."""
    now = count_descriptors()
    return {"ready": True} if now is None else {"ready": now.suffice, "open": now.open, "limit": now.limit}


def disk_check(home: Path) -> dict[str, Any]:
    """What `/readyz` says of the disk: whether there is room, and how many bytes are free.

    `free` is `None` where the system does not say.
    """
    try:
        free = shutil.disk_usage(home).free
    except OSError:
        return {"ready": home.is_dir(), "free": None}
    return {"ready": free >= _LEAST_ROOM, "free": free}


def free_memory(group: Path = GROUP) -> int:
    """Bytes of memory that no program uses, of what a container is allowed where there is one.

    Args:
        group: The folder in which Linux tells what a control group may use and does (cgroup v2, memory).
    """
    import psutil

    free = psutil.virtual_memory().available
    with suppress(OSError, ValueError):  # without a bound it says "max"
        bound, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        told = (line.split() for line in (group / "memory.stat").read_text().splitlines())
        # What is kept of files goes where there is need.
        free = min(free, bound - used + sum(int(value) for name, value in told if name == "inactive_file"))
    return max(0, free)


def all_memory(group: Path = GROUP) -> int:
    """Bytes of memory that there are, or that a container is allowed; `group` as of `free_memory`."""
    import psutil

    there = psutil.virtual_memory().total
    with suppress(OSError, ValueError):
        there = min(there, int((group / "memory.max").read_text()))
    return there


def step_back() -> None:
    """Let other threads go before this one and those that it begins, where the system knows threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + _NICE)
