"""Ports that tests take."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import ports


def test_no_port_is_given_out_twice_and_none_that_somebody_listens_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken, ThreadPoolExecutor(4) as threads:
        port = ports.free_port()
        taken.bind(("127.0.0.1", port))
        monkeypatch.setattr(ports, "_NOTE", tmp_path / "ports")  # else others would take some of them
        (tmp_path / "ports").write_text(str(port - 20_000 - 1))  # its turn is next
        found = list(threads.map(lambda _: ports.free_port(), range(40)))
    assert len({port, *found}) == 41
    assert all(20_000 <= one < 30_000 for one in found)  # none of those that a system gives to who wants any
