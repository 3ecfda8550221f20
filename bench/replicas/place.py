"""The servers that several Parlours share, Parlours over them, and what each takes of the processor."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError

import psutil

from bench.kills.forked_page import ForkedApp, Origin
from tests.e2e.app_process import ROOT
from tests.grown_postgres import running_postgres
from tests.grown_servers import redis_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.grown_postgres import PostgresServer
    from tests.grown_servers import Served

# The tests' PostgreSQL waits for no disk; this one does, as people run it.
AS_RUN: Final = ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "autovacuum=on", "max_connections=200")
QUIET: Final = {
    "OWNERS": "cookie",
    "TOKEN": "off",
    "RETRIEVAL": "keyword",
    "CHECK_CLAIMS": "0",
    "MESSAGES_PER_DAY": "0,0",
    "MODEL": "scripted",
    "API_KEY": "any",
}
ALL: Final = ("all", "all")


class OriginWithTool(Origin):
    """The process that page servers are forked from, whose assistant has one tool: it adds a line to a file.

    Args:
        calls: The file.
    """

    def __init__(self, calls: Path) -> None:
        command = [sys.executable, "-m", "bench.replicas.forked", str(calls)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class ForkedWorker(ForkedApp):
    """One that shows no page."""

    def wait_until_ready(self) -> None:
        """Ask `/readyz` until it answers 200. Raises RuntimeError as of `AppProcess`."""
        with suppress(HTTPError):  # there is no page to open
            super().wait_until_ready()


@dataclass
class Place:
    """What several Parlours have in common.

    Args:
        folder: Where each has its data folder.
        postgres: Where their rows are.
        redis: Tells what happens in replies.
        origin: Parlours are forked from it.
        calls: Where the tool writes.
        roles: Of the Parlours, one for each.

    Attributes:
        parlours: Those that were begun, by their names.
    """

    folder: Path
    postgres: PostgresServer
    redis: Served
    origin: Origin
    calls: Path
    roles: Sequence[str] = ALL
    parlours: dict[str, ForkedApp] = field(default_factory=dict[str, ForkedApp])
    secret: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def database(self) -> str:
        """As `PARLOUR_DATABASE` has it."""
        return self.postgres.address("parlour")

    @property
    def redis_address(self) -> str:
        """As `PARLOUR_REDIS` has it."""
        return f"redis://127.0.0.1:{self.redis.port}/0"

    def begin(self, model: str, **settings: str) -> None:
        """Start a Parlour for each role.

        Args:
            model: The address of the service that answers.
        """
        shared = {"DATABASE": self.database, "REDIS": self.redis_address, "SECRET": self.secret, "BASE_URL": model}
        for number, role in enumerate(self.roles):
            own = {"ROLE": role} if role != "all" else {}
            name = f"{role}{number}"
            given = {**QUIET, **shared, **own, **settings}
            made = ForkedWorker if role == "worker" else ForkedApp
            self.parlours[name] = made(self.folder / name, None, given, origin=self.origin)
        for parlour in self.parlours.values():
            parlour.start()

    def end(self) -> None:
        """End them."""
        for parlour in self.parlours.values():
            parlour.stop()
        self.parlours.clear()

    @property
    def serving(self) -> list[ForkedApp]:
        """Those that serve pages."""
        return [one for name, one in self.parlours.items() if not name.startswith("worker")]

    @property
    def writing(self) -> list[str]:
        """The names of those that write replies."""
        return [name for name in self.parlours if not name.startswith("web")]

    def used(self) -> dict[str, float]:
        """Seconds of the processor so far: of Parlours by role, of PostgreSQL, of Redis."""
        spent: dict[str, float] = {}
        for name, parlour in self.parlours.items():
            if parlour.process is not None:
                role = name.rstrip("0123456789")
                spent[role] = spent.get(role, 0.0) + used(parlour.process.pid)
        return spent | self.used_by_servers()

    def used_by_servers(self) -> dict[str, float]:
        """The same, of PostgreSQL and Redis alone."""
        assert self.postgres.process is not None
        assert self.redis.process is not None
        return {"PostgreSQL": used(self.postgres.process.pid), "Redis": used(self.redis.process.pid)}


def used(pid: int) -> float:
    """Seconds of the processor that a process and all below it have taken, those that ended among them."""
    spent = 0.0
    for process in (top := psutil.Process(pid), *top.children(recursive=True)):
        try:
            spent += sum(process.cpu_times()[:4])  # its own, and of those that it has waited for
        except psutil.NoSuchProcess:
            continue
    return spent


def between(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """What was spent from one look to the next."""
    return {name: seconds - before.get(name, 0.0) for name, seconds in after.items()}


def in_words(spent: dict[str, float], events: int) -> str:
    """For a reader: µs of each for an event."""
    return ", ".join(f"{name} {seconds / max(1, events) * 1e6:.0f}" for name, seconds in spent.items())


def load() -> str:
    """How busy the machine is otherwise, for a reader."""
    return f"{os.getloadavg()[0]:.1f} wanted a core in the last minute, {os.cpu_count()} cores"


@contextmanager
def shared(roles: Sequence[str] = ALL) -> Iterator[Place]:
    """PostgreSQL and Redis, running, and what Parlours are forked from; all of it ends with the block."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="parlour-replicas-")))
        postgres = stack.enter_context(running_postgres())
        postgres.stop()
        postgres.start(*AS_RUN)
        postgres.make("parlour")
        redis = redis_server(folder / "redis").start()
        stack.callback(redis.stop)
        calls = folder / "calls"
        origin = OriginWithTool(calls)
        stack.callback(origin.close)
        place = Place(folder, postgres, redis, origin, calls, roles)
        stack.callback(place.end)
        yield place
