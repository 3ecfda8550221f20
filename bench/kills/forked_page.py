"""Page servers that are forked from a process in which everything is imported already: a start then costs a third.

Run as `python -m bench.kills.forked_page` it is that process: each line it reads holds the environment of a server and
the file of what it prints; it answers with the id of the process.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Self, cast

import psutil

from tests.e2e.app_process import ROOT, AppProcess
from webui.gradio_patches import lean_import, prepare

_IMPORTED = (
    "webui.__main__",
    "webui.app",
    "webui.layout",
    "webui.page_files",
    "core.mcp_endpoint",
    "core.engine",
    "core.agents.assistant",
    "core.llm.backends.openai.model",
    "core.llm.backends.dashscope.service",
    "core.llm.tokens",
    "aiohttp",
    "tiktoken_ext.openai_public",
    "uvloop",
    "uvicorn.protocols.websockets.auto",
    "anyio._backends._asyncio",
    "webui.handlers.wiring",
    "webui.serving",
    "gradio",
    "uvicorn",
    "alembic.command",
    "sqlalchemy.dialects.sqlite",
)


class Origin:
    """The process that page servers are forked from."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "bench.kills.forked_page"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def fork(self, variables: dict[str, str], log: Path) -> int:
        """The id of a new page server."""
        into, out = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        into.write(json.dumps({"variables": variables, "log": str(log)}) + "\n")
        into.flush()
        return int(out.readline())

    def close(self) -> None:
        """End it; servers go on."""
        self._process.communicate()


class Forked:
    """What is asked of a process that was started, of one that somebody else forked."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)

    @property
    def pid(self) -> int:
        """Its id."""
        return self._process.pid

    def poll(self) -> int | None:
        """None while it runs; how it ended is not known here, and 1 is said."""
        return None if self._process.is_running() else 1

    def send_signal(self, sign: signal.Signals) -> None:
        """Send it a signal; nothing where it is gone."""
        try:
            self._process.send_signal(sign)
        except psutil.NoSuchProcess:
            return

    def kill(self) -> None:
        """End it as a power cut would."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it is gone."""
        try:
            self._process.wait(timeout)
        except psutil.TimeoutExpired as error:
            raise subprocess.TimeoutExpired("page", timeout or 0) from error
        return 0


@dataclass
class ForkedApp(AppProcess):
    """The whole app, in a process of its own that is forked.

    Args:
        origin: Forks it.
    """

    origin: Origin = field(default_factory=Origin)

    def start(self) -> Self:
        """Start the app and wait until `/readyz` says that every part is ready."""
        self.process = cast("subprocess.Popen[bytes]", Forked(self.origin.fork(self._environment(), self.log)))
        self.wait_until_ready()
        return self


def _serve(told: dict[str, Any]) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(told["variables"])
    log = os.open(told["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue] - a text stream
    from webui.__main__ import main

    return main([])


def _wait_for_those_that_ended(*_: object) -> None:
    """Otherwise what they took of the processor would be counted for nobody."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def origin() -> None:
    """Import everything, then fork a page server for each line that is read."""
    prepare(Path())  # each server says its own folder before Gradio asks for it
    with lean_import():
        for name in _IMPORTED:
            import_module(name)
    import_module("core.llm.tokens").qwen_encoding()  # each server would read its table
    gc.freeze()  # the collector of a server would write to what all share
    if threading.active_count() != 1:
        raise RuntimeError(f"Threads run already: {threading.enumerate()}")
    signal.signal(signal.SIGCHLD, _wait_for_those_that_ended)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            code = 1
            try:
                code = _serve(json.loads(line))
            finally:
                sys.stdout.flush()
                os._exit(code)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    origin()
