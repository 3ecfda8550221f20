"""A sandbox on another machine behind a proxy that encrypts: what is asked, what it prints, its files and Stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from core.errors import ToolError
from tests.certificates import certificate_for
from tests.e2e.app_process import AppProcess
from tests.grown_servers import Served, proxy
from tests.ports import free_port
from tests.webui.server.test_sandbox_role import TALK, kernels, sandbox

__all__ = ["proxy", "sandbox"]
pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CADDY = """
{{
\tadmin off
\tauto_https off
}}
https://localhost:{port} {{
\tbind 127.0.0.1
\ttls {folder}/chat.pem {folder}/chat.key
\treverse_proxy 127.0.0.1:{behind}
}}
"""
HAPROXY = """
defaults
    mode http
    timeout connect 5s
    timeout client 1h
    timeout server 1h
frontend sandbox
    bind 127.0.0.1:{port} ssl crt {folder}/chat.pem
    default_backend sandbox
backend sandbox
    server one 127.0.0.1:{behind}
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate_for("localhost", tmp_path_factory.mktemp("certificate"))


@pytest.fixture(params=[("caddy", CADDY), ("haproxy", HAPROXY)], ids=["caddy", "haproxy"])
def address(
    request: pytest.FixtureRequest,
    sandbox: AppProcess,
    certificate: Path,
    proxy: Callable[[str, str, int], Served],
) -> str:
    name, text = request.param
    port = free_port()
    proxy(name, text.format(port=port, folder=certificate, behind=sandbox.port), port)
    return f"https://localhost:{port}"


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "chat.pem"))


@pytest.mark.usefixtures("trusted")
async def test_code_runs_behind_tls_as_without(address: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"1\n2\n" * 2_000_000)
    async with kernels(address) as there:
        printed = asyncio.Event()
        waits = "import time\nrows = open('large').read().split()\nprint('begun', flush=True)\ntime.sleep(600)"
        runs = asyncio.create_task(
            there.run(TALK, waits, files={"large": tmp_path / "large"}, progress=lambda *_: printed.set())
        )
        await asyncio.wait_for(printed.wait(), 60)
        runs.cancel()
        with suppress(asyncio.CancelledError):
            await runs
        after = await there.run(
            TALK, "open('out.csv', 'w').write('a,b')\nlen(rows)", files={"large": tmp_path / "large"}
        )
        assert (after.text, after.fresh) == ("4000000", False), "Stop came through, and variables stay"
        assert [(one.name, one.data) for one in after.files] == [("out.csv", b"a,b")]
        await there.forget(TALK)


async def test_a_certificate_that_nobody_vouches_for_is_no_sandbox(address: str) -> None:
    async with kernels(address) as there:
        with pytest.raises(ToolError) as told:
            await there.run(TALK, "1 + 1")
    assert told.value.words_key == "sandbox_away"
