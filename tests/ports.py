"""Ports of 127.0.0.1 for servers that tests start in processes of their own."""

from __future__ import annotations

import os
import socket
import tempfile
from itertools import count
from pathlib import Path

from filelock import FileLock

_FIRST = 20_000
_MANY = 10_000
_WHOSE = os.getuid() if hasattr(os, "getuid") else 0
_NOTE = Path(tempfile.gettempdir()) / f"parlour-test-ports-{_WHOSE}"


def free_port() -> int:
    """A port that nobody listens on, and that no other test gets for a long time.

    A system gives out ports from 32,768 on, or higher, to whoever asks for any. Such a port may be another's by the
    time that a server, which takes seconds to start, listens on it. So these lie below, and all test processes of this
    account take them in turn.
    """
    with FileLock(f"{_NOTE}.lock"):
        last = int(_NOTE.read_text("ascii") or 0) if _NOTE.exists() else 0
        for number in count(last + 1):
            port = _FIRST + number % _MANY
            with socket.socket() as probe:
                if _is_free(probe, port):
                    _NOTE.write_text(str(number % _MANY), "ascii")
                    return port
    raise AssertionError


def _is_free(probe: socket.socket, port: int) -> bool:
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
