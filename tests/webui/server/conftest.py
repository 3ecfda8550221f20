"""Apps in processes of their own, and tabs of their readers without a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.kills.forked_page import ForkedApp, Origin
from core.testing.behaviour import behave
from core.testing.model_server import ModelServer
from tests.e2e.app_process import AppProcess
from tests.webui.server.raw_page import RawPage


@pytest.fixture(scope="session")
def origin() -> Iterator[Origin]:
    """What the two apps are forked from, both of which import the same."""
    origin = Origin()
    yield origin
    origin.close()


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory, origin: Origin) -> Iterator[AppProcess]:
    """An app of one person at one machine."""
    with ModelServer(behave) as model:
        app = ForkedApp(tmp_path_factory.mktemp("alone") / "home", model, origin=origin).start()
        yield app
        app.stop()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, origin: Origin) -> Iterator[AppProcess]:
    """An app whose browsers are owners of their own, as on a network; files of one megabyte at most."""
    with ModelServer(behave) as model:
        settings = {"OWNERS": "cookie", "MAX_UPLOAD_MB": "1", "NEW_OWNERS_PER_MINUTE": "0"}
        app = ForkedApp(tmp_path_factory.mktemp("shared") / "home", model, settings, origin=origin).start()
        yield app
        app.stop()


def tab_of(app: AppProcess) -> Iterator[RawPage]:
    """A tab of a reader, closed with the test."""
    tab = RawPage(app.address).open()
    yield tab
    tab.close()


@pytest.fixture
def page(app: AppProcess) -> Iterator[RawPage]:
    yield from tab_of(app)


@pytest.fixture
def alice(shared: AppProcess) -> Iterator[RawPage]:
    yield from tab_of(shared)


@pytest.fixture
def bob(shared: AppProcess) -> Iterator[RawPage]:
    yield from tab_of(shared)
