"""What holds for every test: a clean environment, no network but this machine, databases made quickly, asyncio."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.agents import kept_indices
from tests import ports
from tests.late_certificates import read_when_needed
from tests.tries import register_profiles
from tests.warm_readers import Origin
from webui.gradio_patches import LeanFinder

pytest_plugins = ("tests.grown_servers", "tests.grown_postgres")  # started by the first test that asks for one

register_profiles()
read_when_needed()
sys.meta_path.insert(0, LeanFinder())  # whichever test imports Gradio first, its stubs are not written

_OWN_VARIABLES = ("PARLOUR_", "OPENAI_", "AZURE_OPENAI_", "DASHSCOPE_", "MCP_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost", "")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """The collector neither looks for rubbish among what is being collected nor, in each test, among what was."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)  # at Python's own, a tenth of the tests' time
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What `slow.txt` lists is marked as slow, like what is marked so beside its code."""
    slow = set(slow_names((item.nodeid for item in items), set(slow_tests())))
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)


def slow_names(names: Iterable[str], listed: Collection[str]) -> list[str]:
    """The tests that are listed, with what they are given or without it."""
    return [name for name in names if name in listed or name.partition("[")[0] in listed]


def slow_tests() -> list[str]:
    """The lines of `slow.txt`."""
    lines = Path(__file__).with_name("slow.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees a key, an address or a proxy of the developer's."""
    for name in list(os.environ):
        if name.startswith(_OWN_VARIABLES) or name.lower() in _PROXIES:
            monkeypatch.delenv(name)
    # No test finds what another one read.
    monkeypatch.setattr(kept_indices, "place", lambda: tmp_path_factory.mktemp("indices"))
    monkeypatch.setenv("PARLOUR_CODE", "off")  # trying sandboxes takes a second: for those tests that use one
    monkeypatch.setenv("PARLOUR_TITLES", "0")  # a call that a script does not reckon with: for those tests that do
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A connection to another machine is refused and fails the test, but for tests that fetch weights."""
    reached: list[str] = []
    if not request.node.get_closest_marker("weights"):
        for name in ("connect", "connect_ex"):
            monkeypatch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name), reached))
    yield
    assert not reached, f"This test tried to reach {', '.join(reached)}; tests use 127.0.0.1 alone."


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], bytes]:
    """Gives a new database file as the migrations make it, made at the first call."""
    made: list[bytes] = []

    def content() -> bytes:
        if not made:
            from core.storage.migrations.upgrade import bring_up_to_date

            path = tmp_path_factory.mktemp("migrated") / "parlour.db"
            bring_up_to_date(path)
            made.append(path.read_bytes())
        return made[0]

    return content


@pytest.fixture(scope="session")
def compiled() -> Callable[[Any], Any]:
    """Has an engine of SQLAlchemy use the statements that others compiled: a fifth of the time of tests that store.

    Each engine would compile its own, for they are found by its dialect. What a dialect learns of SQLite it learns with
    its first connection, so that of an engine that has had one is used.
    """
    first: list[Any] = []

    def sharing(engine: Any) -> Any:
        if not first or first[0].dialect.server_version_info is None:
            first[:] = [engine]
        else:
            engine.dialect, engine._compiled_cache = first[0].dialect, first[0]._compiled_cache
        return engine

    return sharing


@pytest.fixture(autouse=True)
def quick_databases(
    monkeypatch: pytest.MonkeyPatch, migrated: Callable[[], bytes], compiled: Callable[[Any], Any]
) -> None:
    """New databases are copies of a migrated one, and nothing waits for the disk: a power failure is not tested.

    A module whose subject is how a database is made or made durable overrides this.
    """
    monkeypatch.setattr(os, "fsync", lambda _: None)
    if "core.storage.database" not in sys.modules:
        return
    from core.storage import database

    inner: Any = database  # two names of its own are replaced
    bring_up_to_date, transaction, engine_of = inner.bring_up_to_date, inner._transaction, inner._engine

    def copied(path: Path) -> None:
        folder = path.parent
        if not (path.exists() or folder.is_file() or (folder / ".restoring.json").exists()):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            path.write_bytes(migrated())
        bring_up_to_date(path)

    def unsynced(engine: Any, opening: tuple[str, ...], work: Callable[[Any], Any]) -> Any:
        return transaction(engine, ("PRAGMA synchronous=OFF", opening[-1]), work)

    monkeypatch.setattr(database, "bring_up_to_date", copied)
    monkeypatch.setattr(database, "_engine", lambda path, *, size: compiled(engine_of(path, size=size)))
    monkeypatch.setattr(database, "_transaction", unsynced)


@pytest.fixture(scope="session")
def origin_of_readers() -> Iterator[Origin]:
    """What readers of documents are forked from."""
    origin = Origin()
    yield origin
    origin.close()


@pytest.fixture(autouse=True)
def warm_readers(monkeypatch: pytest.MonkeyPatch, origin_of_readers: Origin) -> None:
    """Readers of documents import nothing anew. A module whose subject is their process overrides this."""
    process = sys.modules.get("core.rag.parsers.process")
    if process is not None and sys.platform == "linux":
        monkeypatch.setattr(process, "subprocess", origin_of_readers.subprocess)


def _guarded(connect: Any, reached: list[str]) -> Any:
    def checked(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _THIS_MACHINE:
            reached.append(str(address[0]))
            raise ConnectionRefusedError("Tests have no network.")
        return connect(self, address)

    return checked


@pytest.fixture
def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    return ports.free_port()
