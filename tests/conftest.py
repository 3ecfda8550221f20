"""What holds for every test: a clean environment, no network but this machine, asyncio."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest

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
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")


@pytest.fixture(autouse=True)
def no_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to another machine is an error, but for tests that fetch weights."""
    if request.node.get_closest_marker("weights"):
        return
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))


def _guarded(connect: Any) -> Any:
    def checked(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _THIS_MACHINE:
            raise AssertionError(f"A test tried to reach {address[0]!r}; tests use 127.0.0.1 alone.")
        return connect(self, address)

    return checked


@pytest.fixture
def free_port() -> int:
    """A port of 127.0.0.1 that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
