"""Servers that several Parlours share, for tests: real ones on free ports of 127.0.0.1, started by the first test that
asks, ended with the last. `set_up.py` unpacks those that are Debian's."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from secrets import token_hex
from types import ModuleType
from typing import Any, Self

import pytest

from tests.ports import free_port

OF_PYPI = Path(sys.prefix) / "shared-servers"
"""The environment that `make test-all` makes for servers from the package index."""
_START_SECONDS = 60  # a machine that does other things as well takes its time


@dataclass
class Served:
    """A server's program in a process of its own.

    Args:
        name: The program, or where it is.
        arguments: What it is started with.
        port: Where it listens.
        folder: Where it writes, its log too.
    """

    name: str
    arguments: list[str]
    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> Self:
        """Start it, and wait until it listens."""
        from set_up import find_server, server_environment  # beside a Parlour that is installed there is none

        program = self.name if Path(self.name).is_absolute() else find_server(self.name)
        assert program, f"{self.name} is not here; `python set_up.py test` fetches it."
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            command = [program, *self.arguments]
            environment = {**server_environment(), "HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder)}
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        end = time.monotonic() + _START_SECONDS
        while not _listens(self.port):
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < end, (self.folder / "log").read_text()
            time.sleep(0.01)  # between two looks, not for luck
        return self

    def stop(self) -> None:
        """Tell it to end, and wait until it has."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(30)
            self.process = None

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def redis_server(folder: Path, port: int | None = None, program: str = "redis-server") -> Served:
    """A Redis, or another that speaks as it does, that keeps nothing on disk, not started yet."""
    at = port or free_port()
    kept_nowhere = ["--save", "", "--appendonly", "no"]
    return Served(program, ["--port", str(at), "--bind", "127.0.0.1", *kept_nowhere], at, folder)


@pytest.fixture(scope="session")
def redis_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One Redis for all tests of this process."""
    server = redis_server(tmp_path_factory.mktemp("redis"))
    yield server.start()
    server.stop()


@pytest.fixture
def redis(redis_of_session: Served) -> str:
    """The address of a Redis that holds nothing; other tests use it one after another."""
    port = redis_of_session.port
    with socket.create_connection(("127.0.0.1", port), timeout=30) as asked:
        asked.sendall(b"FLUSHALL\r\n")
        assert asked.recv(16).startswith(b"+OK")
    return f"redis://127.0.0.1:{port}/0"


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Served]:
    """A Redis of this test's own, running, for it to be ended or killed: `own_redis.kill()`."""
    server = redis_server(tmp_path / "redis")
    yield server.start()
    server.stop()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Callable[[str, str, int], Served]]:
    """Start HAProxy or Caddy with a configuration that listens on this port: `proxy("haproxy", text, port)`."""
    begun: list[Served] = []

    def start(name: str, text: str, port: int) -> Served:
        folder = tmp_path / f"{name}-{len(begun)}"
        folder.mkdir()
        file = folder / "configuration"
        file.write_text(text, encoding="utf-8")
        arguments = {"haproxy": ["-f", str(file)], "caddy": ["run", "--adapter", "caddyfile", "--config", str(file)]}
        begun.append(Served(name, arguments[name], port, folder))
        return begun[-1].start()

    yield start
    for one in begun:
        one.stop()


def promises_of(*modules: ModuleType) -> dict[str, Any]:
    """The tests of other files by their names, for a file that runs them with another server in the same place."""
    return {name: test for one in modules for name, test in vars(one).items() if name.startswith("test_")}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class S3Server:
    """A store that speaks S3: moto's server, in a process of its own.

    Args:
        port: Where it listens.
        process: It.
    """

    port: int
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def address(self) -> str:
        """What to set as `AWS_ENDPOINT_URL`."""
        return f"http://127.0.0.1:{self.port}"

    def make_bucket(self) -> str:
        """A new bucket that is empty; returns its name."""
        name = f"parlour-{token_hex(6)}"
        asked = HTTPConnection("127.0.0.1", self.port, timeout=30)
        asked.request("PUT", f"/{name}")
        answer = asked.getresponse()
        assert answer.status == 200, answer.read()
        asked.close()
        return name


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One S3 store for all tests of this process; each makes a bucket of its own."""
    port, folder = free_port(), tmp_path_factory.mktemp("s3")
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.s3_server", str(port)], stdout=log, stderr=log, cwd=Path(__file__).parents[1]
        )
    end = time.monotonic() + _START_SECONDS
    while not _listens(port):
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < end, (folder / "log").read_text()
        time.sleep(0.01)  # between two looks, not for luck
    yield S3Server(port, process)
    process.terminate()
    process.wait(30)
