"""Valkey in the place of Redis keeps what Parlours share: the limits of people, and what is new in replies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import test_limits
from tests.core.runs import test_feeds
from tests.grown_servers import OF_PYPI, Served, promises_of, redis_server

globals().update(promises_of(test_limits, test_feeds))
feed, limits, patient = test_feeds.feed, test_limits.limits, test_limits.patient

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def valkey(folder: Path) -> Served:
    """A Valkey, not started yet, of the environment that `make test-all` makes for it."""
    return redis_server(folder, program=str(next(OF_PYPI.glob("**/valkey-server"))))


@pytest.fixture(scope="session")
def redis_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests of this file."""
    server = valkey(tmp_path_factory.mktemp("valkey"))
    yield server.start()
    server.stop()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Served]:
    """One of this test's own."""
    server = valkey(tmp_path / "valkey")
    yield server.start()
    server.stop()
