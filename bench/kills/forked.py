"""Lives that are forked from a process in which everything is imported already: a life then costs a tenth."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from bench.kills.life import live

_PATIENCE = 180.0


def prepare() -> None:
    """Import what a life needs. Raises RuntimeError where that started a thread: then nothing may be forked."""
    for name in ("core.agents.assistant", "core.rag.library", "alembic.command", "sqlalchemy.dialects.sqlite"):
        import_module(name)
    if threading.active_count() != 1:
        raise RuntimeError(f"Threads run already: {threading.enumerate()}")


class Life:
    """One process, in a session of its own.

    Args:
        home: The data folder.
        log: Where what it prints goes.
        retrieval: How documents are searched.
    """

    def __init__(self, home: Path, log: Path, retrieval: str = "keyword") -> None:
        reading, self._commands = os.pipe()
        self._told, writing = os.pipe()
        self._rest = b""
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                os.setsid()
                os.close(self._commands)
                os.close(self._told)
                out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                os.dup2(out, 1)
                os.dup2(out, 2)
                live(home, reading, writing, retrieval)
                code = 0
            finally:
                sys.stdout.flush()
                os._exit(code)
        os.close(reading)
        os.close(writing)

    def do(self, what: str, **more: Any) -> None:
        """Tell it what to do."""
        data = json.dumps({"do": what, **more}).encode() + b"\n"
        while data:
            data = data[os.write(self._commands, data) :]

    def wait_for(self, key: str) -> dict[str, Any]:
        """Wait for what it tells under this name. Raises RuntimeError: it failed, ended, or took too long."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            for told in self._heard(1.0):
                if key in told:
                    return told
                if "failed" in told:
                    raise RuntimeError(told["failed"])
        raise RuntimeError(f"Nothing was told of {key!r} in {_PATIENCE:.0f} seconds.")

    def watch(self, seconds: float) -> list[dict[str, Any]]:
        """What it tells within this time."""
        end, heard = time.monotonic() + seconds, []
        while (left := end - time.monotonic()) > 0:
            heard += self._heard(left)
        return heard

    def kill(self) -> list[dict[str, Any]]:
        """Kill it, as the kernel does; returns what it had told before. Processes that it had started end too."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        heard: list[dict[str, Any]] = []
        while (more := self._heard(0.0)) or self._rest.endswith(b"\n"):
            heard += more
        os.close(self._commands)
        os.close(self._told)
        return heard

    def left_behind(self, seconds: float = 20.0) -> list[str]:
        """Processes of its session that go on for longer than this; they are ended then."""
        end = time.monotonic() + seconds
        while (there := _of_session(self.pid)) and time.monotonic() < end:
            time.sleep(0.02)
        for process in there:
            process.kill()
        return [str(process) for process in there]

    def _heard(self, seconds: float) -> list[dict[str, Any]]:
        ready, _, _ = select.select([self._told], [], [], seconds)
        if not ready:
            return []
        piece = os.read(self._told, 1 << 20)
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if not piece and seconds:
            raise RuntimeError("The process ended by itself.")
        return [json.loads(line) for line in lines]


def _of_session(session: int) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, PermissionError, psutil.Error):
            continue
    return found
