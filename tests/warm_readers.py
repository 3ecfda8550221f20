"""Processes that read documents, forked from one that has imported what they need: it takes longer than to read one.

In the product each is a program of its own; where that is the subject, a test overrides the fixture `warm_readers`.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_READER = [sys.executable, "-P", "-m", "core.rag.parsers.worker"]
_IMPORTED = (
    "core.rag.parsers.worker",
    "core.rag.parsers.pdf",
    "core.rag.parsers.pdf_mupdf",
    "core.rag.parsers.pdf_tables",
    "core.rag.parsers.text",
    "core.rag.parsers.web_page",
    "core.rag.parsers.spreadsheet",
    "core.rag.parsers.word",
    "docx",
    "pymupdf",
    "python_calamine",
    "selectolax.lexbor",
    "PIL.Image",
)
_MESSAGE = 1 << 16


class Origin:
    """What they are forked from; it is started with the first of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._speaking = threading.Lock()  # questions and answers of several threads would be taken for each other's
        self.subprocess = SimpleNamespace(Popen=self._start, PIPE=subprocess.PIPE)

    def _start(self, command: list[str], *, stdin: int, stdout: int, stderr: Any, env: dict[str, str]) -> Any:
        if command != _READER:
            return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, env=env)
        (asked, asking), (telling, told), (ended, ending) = os.pipe(), os.pipe(), os.pipe()
        theirs = [asked, told, stderr.fileno(), ending]
        with self._speaking:
            given = {name: env[name] for name in ("TMPDIR", "TEMP", "TMP")}
            pid = self._fork({"folder": str(Path.cwd()), "variables": given}, theirs)
        for one in (asked, told, ending):
            os.close(one)
        return Reader(pid, asking, telling, ended)

    def _fork(self, asked: dict[str, Any], theirs: list[int]) -> int:
        if self._process is None:
            from core.child_process import environment

            self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with other:
                command = [sys.executable, "-P", "-m", __name__, str(other.fileno())]
                self._process = subprocess.Popen(command, env=environment(), pass_fds=[other.fileno()])
        socket.send_fds(self._socket, [json.dumps(asked).encode()], theirs)
        return int(self._socket.recv(_MESSAGE))

    def close(self) -> None:
        """End it, once what it forked has ended."""
        if self._process is not None:
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
            self._process.wait()


class Reader:
    """As much of `subprocess.Popen` as is asked of a process that reads documents."""

    def __init__(self, pid: int, stdin: int, stdout: int, ended: int) -> None:
        self.pid = pid
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        self.returncode: int | None = None
        self._ended = os.fdopen(ended, "rb")
        self._waiting = threading.Lock()  # one thread waits for the process, another one kills it

    def kill(self) -> None:
        """End it, unless it has ended."""
        with suppress(ProcessLookupError):
            if self.returncode is None:
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """How it ended, as `subprocess` tells it."""
        with self._waiting:
            if self.returncode is None:
                self.returncode = os.waitstatus_to_exitcode(int(self._ended.read()))
                self._ended.close()
        return self.returncode


def _serve(asked: socket.socket) -> None:
    for name in _IMPORTED:
        with suppress(ImportError):  # an extra that is not installed
            import_module(name)
    heard, hearing = os.pipe()
    os.set_blocking(hearing, False)
    signal.set_wakeup_fd(hearing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting = selectors.DefaultSelector()
    waiting.register(asked, selectors.EVENT_READ)
    waiting.register(heard, selectors.EVENT_READ)
    running: dict[int, int] = {}  # where it is told how a process ended, by its id
    open_ = True
    while open_ or running:
        for key, _ in waiting.select():
            if key.fileobj is asked:
                message, given, _, _ = socket.recv_fds(asked, _MESSAGE, 4)
                open_ = bool(message)
                if not open_:
                    waiting.unregister(asked)
                    continue
                pid = os.fork()
                if not pid:
                    _read(json.loads(message), given)
                for one in given[:3]:
                    os.close(one)
                running[pid] = given[3]
                asked.send(str(pid).encode())
            else:
                os.read(heard, _MESSAGE)
                _tell_who_ended(running)


def _tell_who_ended(running: dict[int, int]) -> None:
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            with os.fdopen(running.pop(found[0]), "wb") as told, suppress(BrokenPipeError):
                told.write(str(found[1]).encode())


def _read(asked: dict[str, Any], given: list[int]) -> None:
    """Become the process that reads."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, one in enumerate(given[:3]):
        os.dup2(one, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # with them, those of others
    os.chdir(asked["folder"])
    os.environ |= asked["variables"]
    tempfile.tempdir = None
    code = 1
    try:
        import_module("core.rag.parsers.worker").main()
        code = 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        with suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
