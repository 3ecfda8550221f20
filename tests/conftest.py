"""What holds for every test: a clean environment, no network but this machine, asyncio."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

# A busy machine is no failure; what must be quick is measured by `bench`.
settings.register_profile("parlour", deadline=None)
settings.load_profile("parlour")

_OWN_VARIABLES = ("PARLOUR_", "OPENAI_", "AZURE_OPENAI_", "DASHSCOPE_", "MCP_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_THIS_MACHINE = ("127.0.0.1", "::1", "localhost", "")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees a key, an address or a proxy of the developer's."""
    for name in list(os.environ):
        if name.startswith(_OWN_VARIABLES) or name.lower() in _PROXIES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("PARLOUR_CODE", "off")  # trying sandboxes takes a second: for those tests that use one
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


def _guarded(connect: Any, reached: list[str]) -> Any:
    def checked(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _THIS_MACHINE:
            reached.append(str(address[0]))
            raise ConnectionRefusedError("Tests have no network.")
        return connect(self, address)

    return checked


@pytest.fixture
def free_port() -> int:
    """A port of 127.0.0.1 that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
