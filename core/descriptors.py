"""File descriptors of this process: as many as the system allows, and how many of them are left."""

from __future__ import annotations

import errno
import sys
from dataclasses import dataclass
from typing import Any

import psutil

_MOST = 65_536  # more is never needed, and programs that close every number they might have would take seconds
_LEAST_FREE = 16  # below it a page, a database and a reply cannot be opened together
_FREE = 0.05  # of the limit
_GONE = frozenset({errno.EMFILE, errno.ENFILE})


@dataclass(frozen=True, slots=True)
class Descriptors:
    """How many there are.

    Args:
        open: In use.
        limit: The most that this process may have.
    """

    open: int
    limit: int

    @property
    def suffice(self) -> bool:
        """Whether enough are left to serve people."""
        return self.limit - self.open >= max(_LEAST_FREE, _FREE * self.limit)


def raise_limit() -> None:
    """Let this process have as many as the system allows, where it has such a limit.

    A desktop allows 1,024 by default, and every open page and every document index needs some. A system that refuses
    leaves the limit as it is.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS has a lower limit that it does not tell
            return


def counted() -> Descriptors | None:
    """How many are in use now; `None` where the system has no such limit, or does not say."""
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        return Descriptors(psutil.Process().num_fds(), limit)
    except OSError as error:  # to count them takes one
        return Descriptors(limit, limit) if error.errno in _GONE else None
    except psutil.Error:
        return None


def told() -> dict[str, Any]:
    """What `/readyz` says of them; `ready` is false where too few are left."""
    now = counted()
    return {"ready": True} if now is None else {"ready": now.suffice, "open": now.open, "limit": now.limit}
